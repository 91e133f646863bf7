"""Files of the compile cache that are damaged, foreign or cannot be written: each is as if it were absent."""

import errno
import importlib
import itertools
import json
import logging
import os
import pickle
import re
import shutil
import subprocess
import sys
import time
from collections import namedtuple
from pathlib import Path
from types import SimpleNamespace

import llvmlite.binding as llvm
import numba
import numba.core.caching
import numba.core.serialize
import numpy as np
import pytest
from numba import types
from numba.core import bytecode, event
from numba.core.typing import templates

from sgmcmc_lab.samplers import RunSpec, engine, stored_files
from sgmcmc_lab.samplers.compile import cache, content, jit
from sgmcmc_lab.samplers.compile.wasm import ModuleError, objects
from sgmcmc_lab.samplers.expressions import compiler
from sgmcmc_lab.samplers.targets import TARGETS
from tests.helpers.cases import for_each
from tests.helpers.reaches import EDITS, REACHES, SAME, UNKNOWN

ROOT = Path(__file__).parents[2]


def half_square(theta, out, params):
    for chain in range(theta.shape[0]):
        out[chain] = 0.5 * params[0] * theta[chain, 0] ** 2


def fourth_power(theta, out, params):
    for chain in range(theta.shape[0]):
        out[chain] = params[0] * theta[chain, 0] ** 4


class Lab:
    """A process's view of a folder: each :meth:`start` declares the function anew, as another process would."""

    def __init__(self, folder, monkeypatch):
        self.folder, self._monkeypatch = folder, monkeypatch
        self.compiled = 0
        """Functions that the last start has compiled."""

    def declare(self, function=half_square):
        for name, value in (("FOLDER", self.folder), ("_COMPILED", {}), ("_READY", set())):
            self._monkeypatch.setattr(jit, name, value)
        cache._warn.cache_clear()
        return jit.potential(function)

    def start(self, function=half_square):
        """The potential at θ = 2 with the parameter 3, and where the function is kept."""
        declared = self.declare(function)
        with event.install_recorder("numba:compile") as events:
            jit.prepare([declared])
        self.compiled = sum(one.is_start for _, one in events.buffer)
        out = np.empty(1)
        declared(np.array([[2.0]]), out, np.array([3.0]))
        return out[0], jit.kept_in(declared)

    def missing(self):
        return jit.missing([self.declare()])

    def names(self):
        return sorted(path.name for path in self.folder.iterdir())


@pytest.fixture
def lab(tmp_path, monkeypatch):
    return Lab(tmp_path / "digest", monkeypatch)


def cut(n):
    return lambda path: path.write_bytes(path.read_bytes()[:n])


def change_a_byte(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def zero_the_tail(path):
    content = path.read_bytes()
    path.write_bytes(content[:4096].ljust(len(content), b"\0"))


def another_functions(path):
    """The file of another function of the same type, whole, in this one's place."""
    other = numba.njit(error_model="numpy")(fourth_power)
    file = cache.CompiledFile(path.parent / "other", other, jit.POTENTIAL)
    other.compile(jit.POTENTIAL)
    file.save()
    path.write_bytes(file.path.read_bytes())


def folder_instead(path):
    path.unlink()
    path.mkdir()
    (path / "within").write_text("something")


def pipe_instead(path):
    path.unlink()
    os.mkfifo(path)


def link_instead(to):
    def link(path):
        path.unlink()
        path.symlink_to(path if to is None else to)

    return link


DAMAGES = {
    "absent": Path.unlink,
    "emptied": cut(0),
    "a digest and nothing else": cut(65),
    "cut to 1,000 bytes": cut(1000),
    "a byte short": cut(-1),
    "a byte more": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "a byte changed": change_a_byte,
    "zeros at its end": zero_the_tail,
    "nothing but zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "noise": lambda path: path.write_bytes(np.random.default_rng(1).bytes(5000)),
    "text": lambda path: path.write_text("compiled\n" * 100),
    "too large": lambda path: os.truncate(path, 10**12),
    "a pickle of something else": lambda path: path.write_bytes(pickle.dumps({"numba": "0.1"})),
    "of another function": another_functions,
    "a folder": folder_instead,
    "a pipe": pipe_instead,
    "a link to itself": link_instead(None),
    "a link to nothing": link_instead("gone"),
    "a link to a device": link_instead("/dev/zero"),
}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="pipes and links are of POSIX")
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_as_if_it_were_absent(damage, lab):
    """Compiled again, and written over whole: the next process loads it. Fails where the damage is run or raises."""
    value, path = lab.start()
    assert (value, lab.compiled, lab.missing()) == (6.0, 1, [])
    damage(path)
    assert len(lab.missing()) == 1
    assert lab.start() == (6.0, path) and lab.compiled == 1
    assert path.is_file() and not path.is_symlink() and lab.missing() == []
    assert lab.start() == (6.0, path) and lab.compiled == 0
    assert [name for name in lab.names() if name != "other"] == [path.name]


def test_without_the_digest_another_functions_code_is_run(lab, monkeypatch):
    """The planted fault of the test above."""
    _, path = lab.start()
    another_functions(path)
    monkeypatch.setattr(stored_files, "read", lambda path, of: path.read_bytes().partition(b"\n")[2])
    assert lab.start() == (48.0, path) and lab.compiled == 0


@pytest.mark.slow
@pytest.mark.parametrize("call", ["open", "fstat"])
@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.ESTALE, errno.ENOLCK])
def test_a_file_that_cannot_be_read_is_as_if_it_were_absent(call, number, lab, monkeypatch):
    """The tests may run as root, who reads everything: the system's answer is made up."""
    _, path = lab.start()
    real, opened = getattr(os, call), os.open

    def refuse(what, *others):
        name = what if call == "open" else os.readlink(f"/proc/self/fd/{what}")
        if str(name) == str(path):
            raise OSError(number, os.strerror(number))
        return real(what, *others)

    if call == "fstat" and not os.path.exists("/proc/self/fd"):
        pytest.skip("the system does not say which file it is")
    with monkeypatch.context() as refusing:
        refusing.setattr(stored_files.read_file.__globals__["os"], call, refuse)
        assert lab.start() == (6.0, path) and lab.compiled == 1
    assert os.open is opened
    assert lab.start() == (6.0, path) and lab.compiled == 0


@pytest.mark.parametrize("content", [b"", b"noise", pickle.dumps("text"), pickle.dumps(tuple(range(9)))])
def test_what_is_whole_and_does_not_load_is_compiled_again(content, lab, caplog):
    """Such as what another build of Numba of the same version has written: it is said once, and written over."""
    _, path = lab.start()
    (file,) = map(jit._file, jit.declared())
    stored_files.write(path, file._of, content)
    assert lab.missing() == []
    with caplog.at_level(logging.WARNING):
        assert lab.start() == (6.0, path) and lab.compiled == 1
    assert "does not load what it compiled" in caplog.text
    assert lab.start() == (6.0, path) and lab.compiled == 0


# --- writing ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS, errno.EACCES])
@pytest.mark.parametrize("call", ["write_bytes", "replace", "mkdir"])
def test_what_cannot_be_written_is_compiled_in_each_process(call, number, lab, monkeypatch, caplog):
    """Fails where a full disk ends the process, leaves half a file, or is told of for each function."""
    real = getattr(Path, call)

    def fail(self, *others, **options):
        if call == "write_bytes":
            real(self, others[0][: len(others[0]) // 2])
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as failing, caplog.at_level(logging.WARNING):
        failing.setattr(Path, call, fail)
        declared = [lab.declare(), jit.potential(fourth_power)]
        jit.prepare(declared)
        assert len(jit.missing(declared)) == 2
    assert [record.message for record in caplog.records] == [
        f"Compiled functions cannot be kept in {lab.folder}: {os.strerror(number)}"
    ]
    assert not lab.folder.exists() or lab.names() == []
    assert lab.start()[0] == 6.0 and lab.compiled == 1
    assert lab.start()[0] == 6.0 and lab.compiled == 0


def vanish(folder):
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


def file_instead(folder):
    vanish(folder)
    folder.write_text("something")


@pytest.mark.parametrize("happens", [vanish, file_instead])
def test_a_folder_that_is_gone_is_made_again(happens, lab):
    """While a process runs, which knows it from its start."""
    _, path = lab.start()
    declared = lab.declare()
    happens(lab.folder)
    jit.prepare([declared])
    assert jit.missing([declared]) == [] and lab.names() == [path.name]
    assert lab.start() == (6.0, path) and lab.compiled == 0


@pytest.mark.parametrize("happens", [vanish, file_instead])
def test_a_folder_above_that_is_a_file_stays(happens, lab, monkeypatch):
    """It may be a person's own: nothing is kept, and nothing is lost."""
    lab.start()
    vanish(lab.folder)
    above = lab.folder.parent
    above.rmdir()
    above.write_text("something")
    assert lab.start()[0] == 6.0 and lab.compiled == 1
    assert above.read_text() == "something"
    assert jit._folder_to_write(lab.folder) not in (None, lab.folder)


def test_a_file_in_the_place_of_the_folder_goes(tmp_path):
    (tmp_path / "digest").write_text("something")
    assert jit._folder_to_write(tmp_path / "digest") == tmp_path / "digest"
    assert (tmp_path / "digest").is_dir()


@pytest.mark.parametrize("fault", [False, True])
def test_who_reads_while_it_is_written_finds_the_old_content(fault, tmp_path, monkeypatch):
    """Fails where a second process reads, or a loss of power leaves, a part. Fault: it is written in its place."""
    path, found, real = tmp_path / "file", [], Path.write_bytes
    stored_files.write(path, "a function", b"old")

    def slowly(self, content):
        real(self, content[: len(content) // 2])
        found.append(stored_files.read(path, "a function"))
        real(self, content)

    monkeypatch.setattr(Path, "write_bytes", slowly)
    if fault:
        monkeypatch.setattr(Path, "with_name", lambda self, name: self)
        monkeypatch.setattr(Path, "replace", lambda self, other: None)
        monkeypatch.setattr(Path, "unlink", lambda self, missing_ok: None)
    stored_files.write(path, "a function", b"new")
    assert (found == [b"old"]) == (not fault)
    assert stored_files.read(path, "a function") == b"new" and stored_files.read(path, "another") is None


# --- what Numba and llvmlite promise none of -------------------------------------------------------------------------


def refuse(*given, **named):
    raise NotImplementedError("another release")


GONE = {
    "the form of a function": (numba.core.caching, "CompileResultCacheImpl", None),
    "what makes bytes of it": (numba.core.caching.CompileResultCacheImpl, "reduce", refuse),
    "what makes it of bytes": (numba.core.caching.CompileResultCacheImpl, "rebuild", refuse),
    "the lock": (sys.modules, "numba.core.compiler_lock", None),
    "loads": (numba.core.serialize, "loads", None),
    "the processor": (llvm, "get_host_cpu_features", refuse),
    "the triple": (cache, "llvm", SimpleNamespace()),
}
"""An owner, the name that it lacks, and what is in its place."""


@pytest.mark.slow
@pytest.mark.parametrize("gone", GONE.values(), ids=GONE)
def test_where_numba_lacks_a_name_each_process_compiles(gone, lab, monkeypatch, caplog):
    lab.start()
    owner, name, instead = gone
    with monkeypatch.context() as another, caplog.at_level(logging.WARNING):
        cache._machine.cache_clear()
        if owner is sys.modules:
            another.setitem(owner, name, None)
        elif instead is None:
            another.delattr(owner, name)
        else:
            another.setattr(owner, name, instead)
        assert lab.start()[0] == 6.0
        assert lab.start()[0] == 6.0 and (lab.compiled == 1) == (name != "reduce")
    cache._machine.cache_clear()
    said = "another release" if instead is refuse else "get_process_triple" if owner is cache else name
    assert (said in caplog.text) == (name != "reduce")
    assert lab.start()[0] == 6.0


class Slots:
    """A function whose attributes cannot be set, as one of another release may be."""

    __slots__ = ("_function",)

    def __init__(self, function):
        self._function = function

    def __getattr__(self, name):
        return getattr(self._function, name)


@pytest.mark.parametrize("without", ["get_compile_result", "a settable attribute"])
def test_a_function_whose_address_numba_looks_up_otherwise_is_left_alone(without, lab):
    declared = lab.declare()
    declared.compile(jit.POTENTIAL)
    jit._keep_addresses(object() if without == "get_compile_result" else Slots(declared), jit.POTENTIAL)
    assert "get_compile_result" not in vars(declared)
    jit._keep_addresses(declared, jit.POTENTIAL)
    found = declared.get_compile_result(jit.POTENTIAL)
    name = found.fndesc.llvm_func_name
    assert found.library.get_pointer_to_function(name) == type(found.library).get_pointer_to_function(
        found.library, name
    )


@pytest.mark.parametrize("gone", [True, False])
def test_native_code_is_made_where_its_passes_cannot_be_freed(gone, monkeypatch):
    """With the same draws as those of the machine."""
    spec = RunSpec.of("double_well", "recipe", sampler_params={"diffusion_entries": ("0.3 + theta**2",)}, seed=3)

    def drawn(hot):
        monkeypatch.setattr(compiler, "HOT", hot)
        compiler._RECENT.clear()
        run = engine.Run(spec)
        run.advance(50)
        compiler.wait()
        run.advance(50)
        return run._tier.codes, run.kept.copy()

    if gone:
        monkeypatch.delattr(llvm.newpassmanagers.NewPassManager, "_dispose")
    (codes, native), (none, plain) = drawn(-1.0), drawn(np.inf)
    assert codes and not none
    np.testing.assert_array_equal(native, plain)
    compiler._RECENT.clear()


@pytest.mark.slow
def test_without_a_private_name_a_function_is_not_compiled_for_webassembly(tmp_path, monkeypatch):
    """And the message has the name. Fails where Numba compiles it for this machine instead."""
    script = tmp_path / "cross.py"
    before = "import sys, runpy, numba.core.codegen as made\ndel made.CPUCodegen._module_pass_manager\n"
    script.write_text(f"{before}runpy.run_path({str(objects.CROSS)!r}, run_name='__main__')\n")
    monkeypatch.setattr(objects, "CROSS", script)
    monkeypatch.setattr(jit, "FOLDER", tmp_path)
    with pytest.raises(ModuleError, match=r"for WebAssembly: AttributeError: .*_module_pass_manager"):
        objects.objects([TARGETS["gaussian"].potential])


# --- whole processes -------------------------------------------------------------------------------------------------

DRAWS = """
import sys
{before}
from numba.core import event
from sgmcmc_lab.samplers import RunSpec, run
with event.install_recorder("numba:compile") as events:
    draws = run(RunSpec.of("gaussian", "sgld", n_steps=20, n_chains=2, seed=1)).draws
print(draws.tobytes().hex(), sum(one.is_start for _, one in events.buffer))
"""
WITHOUT = """
import llvmlite.binding, numba.core.caching, numba.core.codegen, numba.core.registry
del numba.core.caching.CompileResultCacheImpl
del llvmlite.binding.newpassmanagers.NewPassManager._dispose
def fixed(self, name, value):
    if name in ("get_compile_result", "get_pointer_to_function"):
        raise AttributeError(name)
    object.__setattr__(self, name, value)
numba.core.registry.CPUDispatcher.__setattr__ = numba.core.codegen.JITCodeLibrary.__setattr__ = fixed
"""
WITHOUT_PRIVATE_NAMES = """
from types import SimpleNamespace
from sgmcmc_lab.samplers.compile import numba_private
numba_private.FunctionIdentity = numba_private.llvm = SimpleNamespace()
"""
SMALL_FILES = """
import resource
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.targets import TARGETS
resource.setrlimit(resource.RLIMIT_FSIZE, (8000, 8000))
target = TARGETS["gaussian"]
jit.prepare([target.potential, target.gradient])
print(jit.is_ready([target.potential, target.gradient]), 2)
"""


def begin(cache, before="", script=DRAWS):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SGMCMC_LAB_CACHE": str(cache)}
    command = [sys.executable, "-c", script.replace("{before}", before)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True)


def end(process):
    """Its draws, how many functions it has compiled, and what it has said."""
    out, said = process.communicate(timeout=600)
    assert process.returncode == 0, said
    draws, compiled = out.split()
    return draws, int(compiled), said


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="pipes, links and limits are of POSIX")
def test_processes_draw_the_same_whatever_the_cache_holds(tmp_path):
    """Two that begin at once with an empty cache; one with each file damaged in another way; one whose Numba and
    llvmlite lack what they promise none of; and one in which they have none of the private names.
    """
    both = [begin(tmp_path / "cache") for _ in range(2)]
    (draws, compiled, _), other = map(end, both)
    assert other[0] == draws and compiled > 5
    files = sorted(path for path in (tmp_path / "cache").glob("*/*"))
    assert len(files) > 5 and {path.suffix for path in files} == {".nbc"}
    for path, damage in zip(files, list(DAMAGES.values())[1:], strict=False):
        if damage is not another_functions:
            damage(path)
    found, again, said = end(begin(tmp_path / "cache"))
    assert (found, said) == (draws, "") and again > 5
    assert sorted(path for path in (tmp_path / "cache").glob("*/*")) == files
    assert end(begin(tmp_path / "cache")) == (draws, 0, "")

    found, again, said = end(begin(tmp_path / "cache", WITHOUT))
    assert found == draws and again >= compiled
    assert "does not load what it compiled" in said

    found, again, said = end(begin(tmp_path / "cache", WITHOUT_PRIVATE_NAMES))
    assert found == draws and again >= compiled
    assert said.count("Compiled functions are not kept: ") == 1 and "_unique_ids" in said
    assert end(begin(tmp_path / "cache")) == (draws, 0, "")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the limit is of POSIX")
def test_a_file_that_the_system_cuts_is_not_kept(tmp_path):
    """Where files may have 8,000 bytes, as if the disk had no more: nothing is left there, and it is said once."""
    said = end(begin(tmp_path, script=SMALL_FILES))
    assert said[:2] == ("True", 2) and said[2].count("cannot be kept in") == 1
    assert list(tmp_path.glob("*/*")) == []


# --- the content of a function ---------------------------------------------------------------------------------------


def reaching(before="", after=""):
    """The potential above with this edit."""
    assert before in REACHES
    names = {"__name__": "reaching"}
    exec(REACHES.replace(before, after, 1), names)  # noqa: S102
    return numba.njit(error_model="numpy")(names["potential"])


def digest(*edit, signature=jit.POTENTIAL):
    return content.digest_of(reaching(*edit), signature)


@for_each("edit", EDITS.values(), ids=EDITS)
def test_an_edit_of_what_a_function_reaches_is_noticed(edit):
    same = list(EDITS.values()).index(edit) < SAME
    assert (digest(*edit) == digest()) == same


def test_the_signature_counts_with_the_fields_of_its_tuples():
    """Fails where a kernel reads the field of another name."""
    other = types.NamedTuple([jit.matrix, jit.matrix], namedtuple("State", "position momentum"))
    swapped = types.NamedTuple([jit.matrix, jit.matrix], namedtuple("State", "momentum position"))
    assert str(other) == str(swapped)
    digests = {digest(signature=types.void(kind, jit.lent_vector, jit.lent_vector)) for kind in (other, swapped)}
    assert len(digests) == 2


@pytest.mark.parametrize("edit", UNKNOWN.values(), ids=UNKNOWN)
def test_what_reaches_something_unknown_is_not_kept(edit, tmp_path):
    """Fails where it is left out of the digest."""
    declared = reaching(*edit)
    with pytest.raises(content.UnknownContentError):
        content.digest_of(declared, jit.POTENTIAL)
    assert cache.file_of(tmp_path, declared, jit.POTENTIAL) is None


def test_what_changes_after_it_was_compiled_is_not_kept():
    """Numba goes on with the old value: fails where its code is kept under the digest of the new one."""
    declared = reaching()
    names = declared.py_func.__globals__
    first = content.digest_of(declared, jit.POTENTIAL)
    names["far"].compile((types.float64, types.int64))
    assert content.digest_of(declared, jit.POTENTIAL) == first
    names["STEP"] = 0.25
    with pytest.raises(content.UnknownContentError, match="before"):
        content.digest_of(declared, jit.POTENTIAL)


def test_an_overload_counts(monkeypatch):
    """No name in a function leads to a method that others than Numba declare for a type."""
    first = digest()
    with monkeypatch.context() as registered:
        for what in ("functions", "attributes"):
            registered.setattr(templates.builtin_registry, what, list(getattr(templates.builtin_registry, what)))

        def doubled(x):
            return lambda x: 2 * x

        templates.builtin_registry.functions.append(templates.make_overload_template(abs, doubled, {}, True, "never"))
        second = digest()
    assert first == digest() != second


EXTENDS = re.compile(
    r"register_model|lower_(cast|builtin|getattr|constant)|@overload|type_callable|typeof_impl|register_jitable|@(un)?box|@infer"
)


def test_numba_is_extended_in_the_one_file_whose_source_counts():
    """Fails where a change of another such file would leave old machine code in use."""
    files = [path for folder in ("samplers", "app", "lessons") for path in (ROOT / folder).rglob("*.py")]
    found = [path.name for path in files if EXTENDS.search(path.read_text(encoding="utf-8"))]
    assert found == ["borrowed_arrays.py"]


@pytest.mark.parametrize(
    ("setting", "value", "counts"),
    [("NUMBA_NUM_THREADS", 1, False), ("CACHE_DIR", "/", False), ("DUMP_LLVM", 1, False), ("OPT", 0, True)]
    + [(name, "another", True) for name in ("CPU_NAME", "BOUNDSCHECK", "LOOP_VECTORIZE", "DEBUG_NRT", "NEW_ONE")],
)
def test_settings_of_numba_count_where_they_change_code(setting, value, counts, lab, monkeypatch):
    path = jit.kept_in(lab.declare())
    monkeypatch.setattr(numba.config, setting, value, raising=False)
    assert (jit.kept_in(lab.declare()) != path) == counts


EVERY = """
import sgmcmc_lab.samplers.models
import sgmcmc_lab.samplers.diagnostics
from sgmcmc_lab.samplers.compile import jit
names, files = map(jit.name_of, jit.declared()), [jit.kept_in(function) for function in jit.declared()[::20]]
print(len(jit.declared()), len(set(names)), len(files), len(set(files)), None in files)
"""


def test_every_function_has_a_file():
    """In a process of its own: other tests declare copies of modules under the same names."""
    done = subprocess.run([sys.executable, "-c", EVERY], capture_output=True, text=True, check=True)
    functions, names, some, files, without = done.stdout.split()
    assert (functions, some, without) == (names, files, "False") and int(functions) > 250


def scaled(factor):
    def scaled_potential(theta, out, params):
        for chain in range(theta.shape[0]):
            out[chain] = factor * theta[chain, 0]

    return jit.potential(scaled_potential)


@pytest.mark.parametrize("fault", [False, True])
def test_processes_name_what_they_compile_apart(fault, lab, monkeypatch):
    """Numba numbers symbols from 1: fails where one process takes two closures of others for one. Fault: they do."""
    ids = bytecode.FunctionIdentity
    monkeypatch.setattr(ids, "_unique_ids", ids._unique_ids)
    for factor in (1.0, 2.0):
        lab.declare()
        cache.number_symbols.cache_clear()
        cache.number_symbols(os.getpid())
        if fault:
            ids._unique_ids = itertools.count(10**9)
        jit.prepare([scaled(factor)])
    lab.declare()
    first, second = scaled(1.0), scaled(2.0)
    jit.prepare([first, second])
    assert len(list(lab.folder.glob("*scaled*"))) == 2

    @numba.njit(types.void(types.FunctionType(jit.POTENTIAL), jit.matrix, jit.vector, jit.vector))
    def call(function, theta, out, params):
        function(theta, out, params)

    found = np.empty(2)
    for k, function in enumerate((first, second)):
        call(function, np.array([[3.0]]), found[k : k + 1], np.empty(1))
    assert (found.tolist() == [3.0, 6.0]) == (not fault)


def test_old_files_go(lab, monkeypatch):
    """The newest versions of a function stay. Fails where each edit adds a file for ever."""
    monkeypatch.setattr(cache, "VERSIONS", 2)
    lab.start(fourth_power)
    for k in range(3):
        old = lab.folder / f"{half_square.__module__}.half_square-{k}.nbc"
        old.write_bytes(b"old")
        os.utime(old, (k, k))
    _, path = lab.start()
    assert lab.names() == sorted([path.name, old.name, *(name for name in lab.names() if "fourth" in name)])
    assert len(lab.names()) == 3


def test_what_nobody_uses_goes_from_the_folder(tmp_path, monkeypatch):
    """Fails where files of earlier versions stay for ever, or a file goes that is in use, or of others. Planted: such
    files, and one that the system protects, as Windows protects an open file.
    """
    folder, old, mixed = tmp_path / "functions", tmp_path / ("0a" * 8), tmp_path / ("1b" * 8)
    days = {
        folder / "new.nbc": 1,
        folder / "of spring.nbc": 100,
        folder / "unused.nbc": 200,
        folder / "wasm" / "unused.o": 200,
        folder / f".{'c' * 32}.part": 2,
        old / "one.nbc": 20,
        old / "wasm" / "one.o": 20,
        mixed / "one.nbc": 20,
        mixed / "held.nbc": 20,
        mixed / "new.nbc": 2,
        tmp_path / "sweeps" / "one.nbc": 900,
    }
    foreign = [folder / "theirs.nbc", folder / "notes.txt", mixed / "theirs.o", tmp_path / ("2c" * 8) / "theirs.nbc"]
    for path, age in {**days, **dict.fromkeys(foreign, 900)}.items():
        if path in foreign:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"something else\n" * 10)
        else:
            stored_files.write(path, "a function", bytes(1000))
        os.utime(path, (time.time() - age * stored_files.DAY,) * 2)
    (old / cache.LOCK).touch()
    unlink = Path.unlink

    def held(path, missing_ok=False):
        if path.name == "held.nbc":
            raise PermissionError(errno.EACCES, "in use")
        unlink(path, missing_ok)

    def left():
        return {path for path in tmp_path.rglob("*") if not path.is_dir()}

    monkeypatch.setattr(Path, "unlink", held)
    cache.tidy(folder)
    kept = {"new.nbc", "of spring.nbc", "held.nbc"}
    stay = {path for path in days if path.name in kept or path.parent.name == "sweeps"}
    assert left() == {*stay, *foreign} and not old.exists()

    monkeypatch.setattr(cache, "MAX_BYTES", 1500)
    cache.tidy(folder)
    assert left() == {*stay, *foreign} - {folder / "of spring.nbc"}


def test_a_function_that_is_loaded_counts_as_new(lab):
    """Fails where what is used each day goes for its age."""
    _, path = lab.start()
    for days, new in ((100, True), (0.5, False)):
        written = time.time() - days * stored_files.DAY
        os.utime(path, (written, written))
        assert lab.start() == (6.0, path) and lab.compiled == 0
        assert (path.stat().st_mtime > written + 1) == new


@pytest.mark.parametrize("comes", [True, False])
def test_what_another_process_has_begun_is_left_to_it(comes, lab):
    """Loaded where it comes, and compiled here where the others have ended without it."""
    _, path = lab.start()
    content_of, looks = path.read_bytes(), []
    path.unlink()
    claims = lab.folder / cache.CLAIMS
    claims.mkdir()
    (claims / path.stem).touch()

    def live():
        looks.append(comes and path.write_bytes(content_of))
        return comes or len(looks) < 2

    with jit.shared(live):
        assert lab.start() == (6.0, path) and lab.compiled == (not comes)
        assert len(looks) == (1 if comes else 2)
        assert lab.start(fourth_power)[0] == 48.0 and lab.compiled == 1 and not jit.claim(jit.declared()[0])


EDITED = """
import importlib, json, sys
from pathlib import Path
import sgmcmc_lab
from sgmcmc_lab.samplers.compile import jit
importlib.import_module("sgmcmc_lab.samplers.models")
print(json.dumps({jit.name_of(f): jit.digest_of(f) for f in jit.declared()}))
"""


@pytest.mark.slow
def test_an_edit_compiles_its_own_functions_alone(tmp_path):
    """Ten kernels of a copy are edited: so many functions, and no other one, have another key."""
    importlib.import_module("sgmcmc_lab.samplers.models")
    own = {jit.name_of(f): f for f in jit.declared() if f.py_func.__module__.startswith("sgmcmc_lab.samplers.")}
    before = {name: jit.digest_of(f) for name, f in own.items()}
    copy = shutil.copytree(ROOT / "assets" / "package", tmp_path / "sgmcmc_lab")
    shutil.copytree(ROOT / "samplers", copy / "samplers")
    edited = 0
    for path in sorted((copy / "samplers" / "kernels").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        new = re.sub(r"(@jit\.kernel\ndef \w+\([^)]*\):\n)", r"\1    n = n + 0\n", text, count=1)
        if new != text and edited < 10:
            path.write_text("# Moved.\n" + new, encoding="utf-8")
            edited += 1
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    out = subprocess.run([sys.executable, "-c", EDITED], cwd=tmp_path, env=environment, capture_output=True, check=True)
    after = json.loads(out.stdout)
    changed = [name for name in after if before.get(name) != after[name]]
    assert edited == len(changed) == 10 < len(before) / 20, changed

"""Compilation ahead: in the order of the lessons, by one process on a computer, which ends with its server."""

import errno
import os
import subprocess
import sys
import threading
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from sgmcmc_lab.app.server import compiling, warmup
from sgmcmc_lab.lessons import library as lessons
from sgmcmc_lab.lessons.library import load_all, load_outlines
from sgmcmc_lab.samplers import stored_files
from sgmcmc_lab.samplers.compile import cache, jit
from sgmcmc_lab.samplers.models.run import needed
from sgmcmc_lab.samplers.running_statistics import count_row


@pytest.mark.parametrize("fault", [False, True])
def test_lessons_come_first_and_in_order(fault, monkeypatch):
    """Fails where a class in its first lesson waits for the functions of the last. Fault: the order of declaration."""
    library = load_all()
    monkeypatch.setattr(lessons, "find", library.lessons.get)
    if fault:
        monkeypatch.setattr(lessons, "load_outlines", lambda: ({}, ()))
    order = list(dict.fromkeys(f for functions in compiling.in_order() for f in functions))
    assert set(order) == set(jit.declared())
    places, far = [], 0
    for lesson in library.lessons.values():
        functions = [order.index(f) for step in lesson.steps if step.spec for f in needed(step.spec)]
        far = max([far, *functions])
        places.append(far)
    met = len(
        {f for lesson in library.lessons.values() for step in lesson.steps if step.spec for f in needed(step.spec)}
    )
    assert (places[-1] == met - 1) == (not fault)
    assert (places[0] < met / 4) == (not fault)


@pytest.mark.parametrize("fault", [False, True])
def test_a_lesson_is_read_when_its_turn_comes(fault, monkeypatch):
    """Fails where the first lesson's functions wait for those with which the last one is read. Fault: all are read."""
    read, find = [], lessons.find

    def found(key):
        read.append(key)
        return find(key)

    monkeypatch.setattr(lessons, "find", found)
    if fault:
        monkeypatch.setattr(lessons, "load_outlines", lambda: ([key for key in load_outlines()[0] if found(key)], ()))
    order = compiling.in_order([jit.name_of(count_row)])
    assert next(order) == [count_row] and read == []
    next(order)
    assert (read == ["langevin"]) == (not fault)


class EverybodysLock:
    """The planted fault: a lock that everybody has."""

    def __call__(self, file):
        pass


@pytest.mark.parametrize("lock", [warmup._lock, EverybodysLock()])
def test_one_server_compiles_and_the_others_wait(lock, tmp_path, monkeypatch):
    """Fails where each of the processes of --num-procs compiles everything."""
    began, kept = [], []
    all_tried, first_done = threading.Barrier(3), threading.Event()
    tried = threading.local()

    def missing(functions=None):
        return [] if kept else ["a function"]

    def run(folder, first):
        began.append(threading.get_ident())
        first_done.wait(300)
        kept.append(True)

    def locked(file):
        try:
            return lock(file)
        finally:
            if not getattr(tried, "once", False):
                tried.once = True
                all_tried.wait(300)
                first_done.set()

    monkeypatch.setattr(jit, "FOLDER", tmp_path)
    monkeypatch.setattr(jit, "missing", missing)
    monkeypatch.setattr(warmup, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(warmup, "_run", run)
    monkeypatch.setattr(warmup, "_lock", locked)
    servers = [threading.Thread(target=warmup.compile_apart, args=([],)) for _ in range(3)]
    for server in servers:
        server.start()
    for server in servers:
        server.join(600)
    assert (len(began) == 1) == (not isinstance(lock, EverybodysLock))


@pytest.mark.parametrize(("folder", "functions"), [(None, ["f"]), ("kept", [])])
def test_nothing_is_begun_where_nothing_would_come_of_it(folder, functions, tmp_path, monkeypatch):
    """Fails where a process compiles what no other can read, or what is kept already."""
    monkeypatch.setattr(jit, "FOLDER", folder and tmp_path)
    monkeypatch.setattr(jit, "missing", lambda *given: functions)
    monkeypatch.setattr(warmup, "_run", lambda *given: pytest.fail("a process was begun"))
    warmup.compile_apart([])


@pytest.mark.parametrize("missing", [["f"], []])
def test_processes_begin_before_the_page_is_imported_where_it_misses_a_function(missing, monkeypatch):
    """And once: a second round would compile nothing. Where it misses none, they are begun for the rest later."""
    runs = []
    monkeypatch.setattr(jit, "missing", lambda *given: missing)
    monkeypatch.setattr(warmup, "compile_apart", runs.append)
    warmup.begin.cache_clear()
    wait = warmup.begin()
    assert warmup.begin() is wait
    assert wait() == bool(missing)
    assert len(runs) == len(missing)
    warmup._compile_rest(["first"])
    assert len(runs) == 1
    warmup.begin.cache_clear()


@pytest.mark.slow
def test_a_process_that_compiles_knows_what_the_opening_page_needs():
    """Fails where a module that declares a function is imported by the page alone: the server would compile it."""
    code = "import sys; from sgmcmc_lab.app.server import compiling; print(len(next(compiling.in_order(sys.argv[1:]))))"
    names = [jit.name_of(function) for function in warmup.first_functions()]
    found = subprocess.run([sys.executable, "-c", code, *names], capture_output=True, text=True, check=True)
    assert int(found.stdout) == len(names)


def test_the_loop_is_compiled_first():
    """It takes as long as all other functions of the opening page, and one process compiles it alone."""
    first = warmup.first_functions()
    assert jit.name_of(first[0]).endswith(".advance_all")
    assert {jit.name_of(f) for f in jit.readings()} < {jit.name_of(f) for f in first}


@pytest.mark.slow
@pytest.mark.parametrize("ends", [True, False])
def test_it_ends_with_its_server(ends, tmp_path):
    """Fails where a server that was killed leaves a process that compiles for a minute. Fault: it does not look."""
    code = "import time; from sgmcmc_lab.app.server import compiling; compiling.in_order = lambda names: iter([time.sleep(60)]); "
    code += "compiling.main()" if ends else "compiling.when_done = lambda *all: None; compiling.main()"
    environment = {**os.environ, "SGMCMC_LAB_CACHE": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, env=environment) as process:
        process.stdin.close()
        try:
            ended = process.wait(200 if ends else 1) == 0
        except subprocess.TimeoutExpired:
            ended = False
        process.kill()
    assert ended == ends


@pytest.mark.slow
@pytest.mark.parametrize("reads", ["", "compiling.FileIO = lambda *all, **others: sys.stdin.buffer; "])
def test_it_ends_in_order_when_all_is_compiled(reads, tmp_path):
    """While its server goes on. Fault: it reads with a lock, for which Python, that ends, does not wait."""
    code = f"import sys, time; from sgmcmc_lab.app.server import compiling; {reads}"
    code += "compiling.in_order = lambda names: iter([time.sleep(0.5) or []]); compiling.main()"
    environment = {**os.environ, "SGMCMC_LAB_CACHE": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, env=environment) as process:
        assert (process.wait(600) == 0) == (not reads)


def test_where_the_cache_cannot_be_written_one_of_its_own_takes_its_place(tmp_path, monkeypatch):
    """With what is kept in it. Fails where a lab with a read-only home does not start, or compiles it all again."""
    kept = tmp_path / "read-only" / "digest"
    kept.mkdir(parents=True)
    (kept / "function.nbc").write_bytes(b"compiled")
    (kept / "damaged.nbc").symlink_to("damaged.nbc")
    kept.chmod(0o555)
    opened = jit.tempfile.TemporaryFile

    def refuse(dir=None):
        if dir == kept:
            raise PermissionError
        return opened(dir=dir)

    monkeypatch.setattr(jit.tempfile, "TemporaryFile", refuse)
    folder = jit._folder_to_write(kept)
    assert folder not in (None, kept) and (folder / "function.nbc").read_bytes() == b"compiled"
    assert folder.stat().st_mode & 0o200
    monkeypatch.setattr(jit.tempfile, "mkdtemp", lambda prefix: refuse(kept))
    assert jit._folder_to_write(kept) is None


@pytest.mark.parametrize("code", [0, 3])
def test_as_many_processes_compile_as_there_are_cores(code, tmp_path, monkeypatch, caplog):
    """They share the work as long as one of them lives, and one that fails is told of."""
    begun, seen = [], []

    class Process:
        def __init__(self, command, **options):
            begun.append(command)
            self.returncode = None

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def poll(self):
            return self.returncode

        def wait(self):
            seen.append((jit._OTHERS[0](), (tmp_path / cache.CLAIMS).is_dir()))
            self.returncode = code
            return code

    monkeypatch.setattr(warmup.subprocess, "Popen", Process)
    monkeypatch.setattr(warmup.os, "cpu_count", lambda: 3)
    warmup._run(tmp_path, [count_row, other := jit.declared()[0]])
    assert len(begun) == 3 and begun[0][-2:] == [jit.name_of(count_row), jit.name_of(other)]
    assert seen == [(True, True)] * 3 and not jit._OTHERS and not (tmp_path / cache.CLAIMS).exists()
    assert len(caplog.records) == (code != 0)


# --- a cache that is damaged -----------------------------------------------------------------------------------------


def half_square(theta, out, params):
    for chain in range(theta.shape[0]):
        out[chain] = 0.5 * params[0] * theta[chain, 0] ** 2


def square(theta, out, params):
    for chain in range(theta.shape[0]):
        out[chain] = params[0] * theta[chain, 0] ** 2


@pytest.fixture
def started(tmp_path, monkeypatch):
    """Starts a server's warm-up of two functions in a thread, as a server does; what they then give, and how often a
    process was begun."""
    runs = []
    monkeypatch.setattr(warmup, "_run", lambda *given: runs.append(len(jit.missing())))
    monkeypatch.setattr(warmup, "library", lambda: None)
    monkeypatch.setattr(warmup.gc, "freeze", lambda: None)

    def start():
        runs.clear()
        warmup.begin.cache_clear()
        for name, value in (("FOLDER", tmp_path / "digest"), ("_COMPILED", {}), ("_READY", set())):
            monkeypatch.setattr(jit, name, value)
        first, second = jit.potential(half_square), jit.potential(square)
        monkeypatch.setattr(warmup, "functions", lambda spec: [first])
        thread = threading.Thread(target=warmup.compile_all)
        thread.start()
        thread.join(600)
        # A thread that ends in an exception leaves what it was to make ready.
        assert jit.is_ready([first, second])
        out = np.empty((2, 1))
        for function, given in zip((first, second), out, strict=True):
            function(np.array([[2.0]]), given, np.array([3.0]))
        return out.ravel().tolist(), list(runs), sorted((tmp_path / "digest").glob("*.nbc"))

    return start


def instead(path):
    path.unlink()
    path.mkdir()


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    [partial(os.truncate, length=0), partial(os.truncate, length=1000), instead],
    ids=["emptied", "cut", "a folder"],
)
def test_a_damaged_cache_is_compiled_again_by_the_warm_up(damage, started):
    """Fails where the thread ends with the first damaged file, and with it at every start after that."""
    values, runs, files = started()
    assert (values, runs, len(files)) == ([6.0, 12.0], [2], 2)
    assert started() == (values, [], files)
    for path in files:
        damage(path)
    assert started() == (values, [2], files)
    assert started() == (values, [], files)


@pytest.mark.slow
def test_a_start_removes_what_an_earlier_version_has_left(started, tmp_path):
    """Fails where it stays until a person looks."""
    old = tmp_path / ("0a" * 8) / "one.nbc"
    stored_files.write(old, "a function", b"code")
    os.utime(old, (0, 0))
    started()
    assert not old.parent.exists()


@pytest.mark.slow
@pytest.mark.parametrize("place", ["folder", "file", "pipe", "link"])
def test_a_lock_that_is_no_file_does_not_end_the_warm_up(place, tmp_path, started):
    """Anything in its place is removed; if nothing can be locked, the server compiles by itself."""
    lock = tmp_path / "digest" / warmup.LOCK
    lock.parent.mkdir()
    if place == "folder":
        (lock / "within").mkdir(parents=True)
    elif place == "file":
        lock.write_bytes(b"noise")
    elif place == "pipe":
        os.mkfifo(lock)
    else:
        lock.symlink_to(lock)
    values, runs, _ = started()
    assert values == [6.0, 12.0] and runs == ([] if place == "link" else [2])


@pytest.mark.parametrize(("number", "waits"), [(errno.EAGAIN, True), (errno.ENOLCK, False), (errno.EOPNOTSUPP, False)])
def test_a_server_waits_for_a_lock_only_where_another_has_it(number, waits, tmp_path, monkeypatch):
    """Fails where each server of a file system without locks waits for ever."""
    waited, answers = [], iter([["f"], ["f"], [], []])

    def refuse(file):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(jit, "FOLDER", tmp_path)
    monkeypatch.setattr(jit, "missing", lambda *given: next(answers))
    monkeypatch.setattr(warmup, "_lock", refuse)
    monkeypatch.setattr(warmup, "_run", lambda *given: pytest.fail("a process was begun"))
    # In this module alone: threads of other tests sleep, too.
    monkeypatch.setattr(warmup, "time", SimpleNamespace(**{**vars(warmup.time), "sleep": waited.append}))
    warmup.compile_apart([])
    assert len(waited) == (2 if waits else 0)


AHEAD = """
import errno, sys
from sgmcmc_lab.app.server import compiling
from sgmcmc_lab.samplers import stored_files
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.targets import TARGETS
def full(*given):
    raise OSError(errno.ENOSPC, "No space left on device")
stored_files.write = full
{fault}
target = TARGETS["gaussian"]
compiling.in_order = lambda names: iter([[target.potential, target.gradient]])
sys.exit(compiling.main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["", "jit.missing = lambda functions: functions if len(functions) > 1 else []"])
def test_it_ends_where_nothing_of_it_is_kept(fault, tmp_path):
    """Fails where a process compiles for minutes onto a full disk what no server will find."""
    environment = {**os.environ, "SGMCMC_LAB_CACHE": str(tmp_path)}
    command = [sys.executable, "-c", AHEAD.replace("{fault}", fault)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stderr=pipe, env=environment, text=True) as process:
        said = process.stderr.read()
        code = process.wait(600)
    assert (code == compiling.NOT_KEPT) == (said.count("First start") == 1) == (not fault)
    assert said.count("No space left on device") == 1

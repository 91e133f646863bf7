"""The engine's file: current, whole, and refused by the name of a function whose source is another one now."""

import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from sgmcmc_lab.samplers.compile import content, jit
from sgmcmc_lab.samplers.compile.wasm import ModuleError, engine, link
from sgmcmc_lab.samplers.compile.wasm import __main__ as build
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.live import description
from sgmcmc_lab.samplers.targets import TARGETS
from tests.helpers.reaches import EDITS, REACHES, SAME, UNKNOWN

SGLD = jit.name_of(SAMPLERS["sgld"].advance)


@pytest.fixture(scope="module")
def functions():
    return description.engine_functions()


@pytest.fixture(scope="module")
def made():
    return engine.engine()


@pytest.mark.core
def test_the_engine_is_current(functions, made):
    """After a change of a source: python -m sgmcmc_lab.samplers.compile.wasm. All Pythons have the same digests."""
    assert not made.without(functions)
    assert not {*made.digests} - {jit.name_of(function) for function in functions}
    assert not made.stale(functions)
    assert made.made_with["sources"] == build.sources()


def test_it_has_what_its_runs_call(functions):
    """Also at another temperature, and of a posterior that a person types."""
    specs = [
        RunSpec.of("gaussian", "sgld"),
        RunSpec.of("banana", "hmc", temperature=2.0),
        RunSpec.of("posterior", "nuts"),
        RunSpec.of("fisher", "gmc"),
    ]
    names = {jit.name_of(function) for function in functions}
    for spec in specs:
        assert {jit.name_of(function) for function in description.functions(spec)} <= names
    assert link.module(f for spec in specs for f in description.functions(spec)) == engine.engine().module


def test_it_exports_each_function(made):
    assert engine.SECTION not in made.module
    assert all(name.encode() in made.module for name in (*made.digests, *link.EXPORTS))
    assert not engine.imports(made.module)


def test_a_changed_source_is_refused_by_name(functions, made, monkeypatch):
    """Fails where an older function would run in a page."""
    (kernel,) = [function for function in functions if jit.name_of(function) == SGLD]
    changed = made._replace(digests=made.digests | {SGLD: "0" * 16})
    monkeypatch.setattr(engine, "engine", lambda: changed)
    with pytest.raises(ModuleError, match=f"older {re.escape(SGLD)}.*{re.escape(engine.COMMAND)}"):
        link.module([kernel])
    others = [function for function in functions if function is not kernel][:3]
    assert link.module(others) == made.module


def test_without_a_linker_a_function_beside_it_is_named(made, monkeypatch):
    monkeypatch.setattr(link, "can_link", lambda: False)
    less = {name: digest for name, digest in made.digests.items() if name != SGLD}
    monkeypatch.setattr(engine, "engine", lambda: made._replace(digests=less))
    with pytest.raises(ModuleError, match=f"does not have {re.escape(SGLD)}.*lab\\[build\\]"):
        link.module(description.functions(RunSpec.of("gaussian", "sgld")))


DAMAGE = {
    "absent": None,
    "empty": b"",
    "another file": b"<html>",
    "cut off": slice(-20),
    "without its section": slice(8),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_ends_in_a_sentence(damage, made, tmp_path, monkeypatch):
    path = tmp_path / "engine.wasm"
    if damage is not None:
        path.write_bytes(damage if isinstance(damage, bytes) else engine.PATH.read_bytes()[damage])
    monkeypatch.setattr(engine, "PATH", path)
    with pytest.raises(ModuleError, match=r"engine.wasm cannot be read .*It is built by"):
        engine.engine.__wrapped__()


def test_a_section_is_read_as_it_was_written(made):
    """Also where a length takes several bytes, and what a host does not read stands before."""
    for digests in ({}, {"a": "b"}, {str(k): "0" * 40 for k in range(900)}):
        bare = made._replace(
            module=b"\0asm\1\0\0\0" + b"\0\2\1x", digests=digests, called={}, made_with={"python": "3"}
        )
        whole = engine.with_section(bare)
        assert engine.parsed(whole) == bare and len(whole) > len(bare.module)


# --- digests of sources ----------------------------------------------------------------------------------------------


def reaching(folder, before="", after=""):
    """The digest of the potential in a file with this edit."""
    assert before in REACHES
    path = folder / f"reaching{len(list(folder.iterdir()))}.py"
    path.write_text(REACHES.replace(before, after, 1), encoding="utf-8")
    spec = spec_from_file_location("reaching", path)
    module = module_from_spec(spec)
    sys.modules["reaching"] = module
    try:
        spec.loader.exec_module(module)
        return content.source_digest_of(jit.helper(module.potential), jit.POTENTIAL, {})
    finally:
        del sys.modules["reaching"]


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edit_of_a_source_is_noticed(edit, tmp_path):
    same = list(EDITS.values()).index(edit) < SAME
    assert (reaching(tmp_path, *edit) == reaching(tmp_path)) == same


@pytest.mark.parametrize("edit", UNKNOWN.values(), ids=UNKNOWN)
def test_what_reaches_something_unknown_has_no_digest(edit, tmp_path):
    with pytest.raises(content.UnknownContentError):
        reaching(tmp_path, *edit)


def test_a_function_without_a_source_has_no_digest():
    names = {}
    exec("def potential(theta, out, params):\n    out[0] = 1.0\n", names)  # noqa: S102
    with pytest.raises(content.UnknownContentError, match="source"):
        content.source_digest_of(jit.helper(names["potential"]), jit.POTENTIAL, {})


def test_names_of_a_comprehension_are_told_as_those_of_a_module(tmp_path):
    """In Python 3.12 they are variables of the function around it, before that they are not: both have one digest."""
    before = "out[chain] = near"
    after = "numbers = [STEP * k for k in range(2)]\n        out[chain] = numbers[0] + near"
    changed = reaching(tmp_path, before, after)
    assert changed == reaching(tmp_path, before, after)
    assert changed != reaching(tmp_path, before, after.replace("for k in range(2)", "for k in range(3)"))


# --- the command -----------------------------------------------------------------------------------------------------


def test_the_command_says_what_it_lacks(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(build, "can_link", lambda: False)
    assert build.main(["--out", str(tmp_path / "engine.wasm")]) == 2
    assert 'pip install "sgmcmc-lab[build]"' in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_function_of_another_package_is_linked_beside(tmp_path, monkeypatch):
    """The page of a plug-in has a module of its own, with what the engine has, too."""
    monkeypatch.setattr(jit, "FOLDER", tmp_path)
    made = engine.engine()
    target = TARGETS["gaussian"]
    name = jit.name_of(target.potential)
    less = {one: digest for one, digest in made.digests.items() if one != name}
    monkeypatch.setattr(engine, "engine", lambda: made._replace(digests=less))
    found = link.module([target.potential, target.gradient])
    assert all(one.encode() in found for one in (name, jit.name_of(target.gradient), *link.EXPORTS))
    assert not engine.imports(found)
    assert len(found) < len(made.module) / 10


@pytest.mark.core
def test_the_weekly_build_has_the_versions_of_the_file(made):
    """Other versions would build other bytes."""
    root = Path(__file__).parents[2]
    weekly = (root / ".github/workflows/weekly.yml").read_text(encoding="utf-8")
    # The last line of a name is that of the newest Python.
    pinned = dict(re.findall(r"^(\w+)==([\w.]+)", (root / "assets/constraints.txt").read_text(encoding="utf-8"), re.M))
    found = {name: made.made_with[name] for name in ("numba", "llvmlite", "numpy", "ziglang")}
    assert found == {name: pinned[name] for name in found}
    assert f"binaryen@{made.made_with['binaryen']}" in weekly
    assert f'python-version: "{made.made_with["python"]}"' in weekly

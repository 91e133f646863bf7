"""The command line, in processes of its own."""

import csv
import gc
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from sgmcmc_lab.lessons.cli import main as lessons_main
from sgmcmc_lab.samplers import Experiment, RunSpec, engine, run
from sgmcmc_lab.samplers.cli import catalogue, main
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.files import FileError
from sgmcmc_lab.samplers.gradients import GRADIENTS
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.models import METHODS, MODELS
from sgmcmc_lab.samplers.models.topics.corpus import read_path
from sgmcmc_lab.samplers.parameters import SpecError, check_all, declared
from sgmcmc_lab.samplers.targets import TARGETS
from sgmcmc_lab.samplers.targets.linear_table import TableLinear

LISTED = {"targets": TARGETS, "samplers": SAMPLERS, "gradients": GRADIENTS, "models": MODELS, "methods": METHODS}
COMMAND = [sys.executable, "-m", "sgmcmc_lab.samplers"]
ROOT = Path(__file__).parents[2]


def spec_file(folder, text):
    path = folder / "spec.json"
    path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
    return path


def started(*arguments, **kw):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        **kw,
    )


def theta_of_netcdf(path):
    import xarray

    with xarray.open_datatree(path) as tree:
        return tree["posterior"]["theta"].to_numpy(), tree.attrs["spec"]


def theta_of_csv(path, dim):
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    n_chains = 1 + max(int(row["chain"]) for row in rows)
    values = [[float(row[f"theta_{i + 1}"]) for i in range(dim)] for row in rows]
    return np.array(values).reshape(n_chains, -1, dim)


def test_the_list_is_complete(capsys):
    assert main(["list", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    for name, registry in LISTED.items():
        assert [x["key"] for x in data[name]] == list(registry)
        for entry in data[name]:
            assert [p["name"] for p in entry["parameters"]] == [n for n, _ in declared(registry[entry["key"]])]
            for p in entry["parameters"]:
                assert {"type", "default", "label", "unit", "tex", "doc"} <= set(p)
                limits = {"flag": set(), "option": {"options"}, "formula": {"max_characters"}}
                limits["formulas"] = {"max_characters", "max_length"}
                assert limits.get(p["type"], {"bounds"}) <= set(p), p
                assert p["label"], p
                assert p["doc"], p


def test_the_list_says_what_models_and_methods_take():
    """Fails where a model's or a method's bounds are not those that its parameters hold to: the bounds themselves are
    taken, what is beyond them is refused."""
    data, tried = catalogue(), 0
    for name, registry in (("models", MODELS), ("methods", METHODS)):
        for entry in data[name]:
            owner = registry[entry["key"]]
            for p in entry["parameters"]:
                if p["type"] in ("real", "integer"):
                    low, high = p["bounds"]
                    for value in (low, high):
                        check_all(owner, name, {p["name"]: value})
                    for value in (low - 1, high + 1):
                        with pytest.raises(SpecError):
                            check_all(owner, name, {p["name"]: value})
                        tried += 1
    assert tried > 20


@pytest.mark.slow
def test_exactly_the_listed_methods_fit_their_model():
    """Fails where a model and a method that do not fit are listed, or others are not."""
    listed = {(x["target"], x["sampler"]) for x in catalogue()["model_combinations"]}
    for model in MODELS:
        for method in METHODS:
            try:
                Experiment.of(model, {method: {}})
            except SpecError:
                assert (model, method) not in listed
            else:
                assert (model, method) in listed


@pytest.mark.slow
def test_exactly_the_listed_combinations_make_a_spec():
    listed = {(x["target"], x["sampler"], x["gradient"]) for x in catalogue()["combinations"]}
    for target in TARGETS:
        for sampler in SAMPLERS:
            for gradient in GRADIENTS:
                try:
                    RunSpec.of(target, sampler, gradient)
                except ValueError:
                    assert (target, sampler, gradient) not in listed
                else:
                    assert (target, sampler, gradient) in listed


def test_the_plain_list_names_everything(capsys):
    assert main(["list"]) == 0
    text = capsys.readouterr().out
    for registry in LISTED.values():
        for key, cls in registry.items():
            assert key in text
            for name, _ in declared(cls):
                assert name in text


LESSON = """+++
title = "One"
minutes = 1
+++

## One

```toml
[experiment]
target = "gaussian"
lanes = ["sgld"]
n_steps = 200

[[claim]]
says = "The mean is somewhere."
measure = "mean"
above = -9
below = 9
```
"""
COLD = """
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.targets import TARGETS
target = TARGETS["gaussian"]
jit.prepare([target.potential, target.gradient])
"""


def terminal_of(cache, script, terminal=True):
    """The standard error of a Python process, which is a terminal or a pipe."""
    reader, writer = os.openpty() if terminal else os.pipe()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SGMCMC_LAB_CACHE": str(cache)}
    process = subprocess.Popen([sys.executable, "-c", script], stderr=writer, env=environment)
    assert process.wait(timeout=600) == 0
    # A terminal's output remains for its reader as long as one end is open.
    os.set_blocking(reader, False)
    try:
        return os.read(reader, 100_000).decode()
    except BlockingIOError:
        return ""
    finally:
        os.close(writer)
        os.close(reader)


@pytest.mark.slow
def test_a_cold_cache_says_what_it_compiles_on_a_terminal(tmp_path):
    """Fails where a process with a cold cache compiles in silence on a terminal, or leaves its line there; and where it
    speaks with a warm one, or where no terminal is."""
    said = terminal_of(tmp_path, COLD)
    lines = [line.removeprefix("\x1b[K").strip() for line in said.split("\r")]
    assert lines == ["", "compiling 1 of 2: potential of gaussian", "compiling 2 of 2: gradient of gaussian", ""]
    assert terminal_of(tmp_path, COLD) == ""
    assert terminal_of(tmp_path / "other", COLD, terminal=False) == ""


@pytest.mark.slow
def test_what_is_only_loaded_is_not_said_to_be_compiled(tmp_path):
    """Fails where a server tells of a first start what it loads, at each start and after all was compiled."""
    tells = COLD.replace(
        "gradient])", "gradient], lambda done, total, what: print(done, total, what, file=sys.stderr))"
    )
    script = f"import sys{tells}"
    compiled = ["0 2 potential of gaussian", "1 2 gradient of gaussian", "2 2 "]
    assert terminal_of(tmp_path, script, terminal=False).splitlines() == compiled
    assert terminal_of(tmp_path, script, terminal=False).splitlines() == ["0 2 ", "1 2 ", "2 2 "]


def test_every_headless_way_compiles_aloud(tmp_path, monkeypatch):
    """Fails where ``run``, ``lessons`` or a run in Python compiles with a progress of its own, or not before it runs:
    what they need is then ready. Planted fault: a run without it, which is what the page does."""
    asked = []
    real = jit.prepare

    def prepare(functions, progress=None):
        functions = list(functions)
        asked.append((set(functions), progress))
        real(functions, progress)

    monkeypatch.setattr(jit, "prepare", prepare)
    spec = RunSpec.of("gaussian", "sgld", n_steps=5)
    needed = set(engine.functions(spec))

    def aloud():
        found = any(needed <= functions and progress is None for functions, progress in asked)
        asked.clear()
        return found

    path = spec_file(tmp_path, spec.to_json())
    assert main(["run", str(path), "--out", str(tmp_path / "out.csv")]) == 0
    assert aloud()
    engine.Run(spec)
    assert aloud()
    (tmp_path / "lessons").mkdir()
    (tmp_path / "lessons" / "01-one.md").write_text(LESSON, encoding="utf-8")
    monkeypatch.setenv("SGMCMC_LESSONS", str(tmp_path / "lessons"))
    assert lessons_main(["one"]) == 0
    assert aloud()
    jit.prepare(needed, lambda *_: None)
    assert not aloud()


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".nc", ".csv"])
@pytest.mark.parametrize(("target", "sampler"), [("quartic", "sgld"), ("sparse_dirichlet", "scir")])
def test_a_saved_run_holds_the_draws_of_run_to_the_bit(tmp_path, suffix, target, sampler):
    spec = RunSpec.of(target, sampler, seed=5, n_chains=3, n_steps=40, burn_in=10, thin=2)
    out = tmp_path / f"draws{suffix}"
    assert main(["run", str(spec_file(tmp_path, spec.to_json())), "--out", str(out)]) == 0
    draws = run(spec).draws
    if suffix == ".nc":
        theta, stored = theta_of_netcdf(out)
        assert RunSpec.from_json(stored) == spec
    else:
        theta = theta_of_csv(out, draws.shape[2])
    np.testing.assert_array_equal(theta, draws)
    # The planted fault: another seed's draws are not those.
    assert not np.array_equal(
        theta, run(RunSpec.of(target, sampler, seed=6, n_chains=3, n_steps=40, burn_in=10, thin=2)).draws
    )
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([out.name, "spec.json"])


@pytest.mark.slow
def test_an_experiment_has_a_file_for_each_lane(tmp_path, capsys):
    data = {"target": "quartic", "lanes": [{"sampler": "sgld"}, {"sampler": "hmc"}], "n_steps": 20}
    assert main(["run", str(spec_file(tmp_path, data)), "--out", str(tmp_path / "out.nc")]) == 0
    said = capsys.readouterr().out
    for spec, name in zip(Experiment.from_dict(data).runs(), ("out-1-sgld.nc", "out-2-hmc.nc"), strict=True):
        np.testing.assert_array_equal(theta_of_netcdf(tmp_path / name)[0], run(spec).draws)
        assert name in said


def test_the_file_before_is_replaced_and_nothing_else_is_left(tmp_path):
    out = tmp_path / "draws.csv"
    out.write_text("old")
    spec = RunSpec.of("quartic", "sgld", n_steps=5)
    assert main(["run", str(spec_file(tmp_path, spec.to_json())), "--out", str(out)]) == 0
    assert out.read_text().startswith("chain,draw,theta_1")


@pytest.mark.slow
def test_a_diverged_run_exits_with_1_and_keeps_what_was_before(tmp_path, capsys):
    spec = RunSpec.of("quartic", "sgld", sampler_params={"step_size": 1.5}, n_steps=1000)
    out = tmp_path / "draws.nc"
    assert main(["run", str(spec_file(tmp_path, spec.to_json())), "--out", str(out)]) == 1
    assert "blew up" in capsys.readouterr().err
    theta, _ = theta_of_netcdf(out)
    assert 0 < theta.shape[1] < 1000
    assert np.isfinite(theta).all()


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT between processes")
def test_ctrl_c_keeps_what_is_drawn(tmp_path):
    spec = RunSpec.of("sparse_dirichlet", "scir", n_chains=2, n_steps=100_000_000, thin=1000)
    out = tmp_path / "draws.nc"
    process = started("run", spec_file(tmp_path, spec.to_json()), "--out", out)
    # The line that is printed when the sampling begins.
    for line in process.stderr:
        if line.startswith("SCIR on"):
            break
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    theta, _ = theta_of_netcdf(out)
    assert f"the {theta.shape[1]:,} draws" in errors
    assert theta.shape[1] > 0
    # The file has the first draws of the same run.
    short = RunSpec.of("sparse_dirichlet", "scir", n_chains=2, n_steps=5000, thin=1000)
    np.testing.assert_array_equal(theta[:, :5], run(short).draws[:, : theta.shape[1]])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["draws.nc", "spec.json"]


GOOD = {"target": "quartic", "sampler": "sgld", "n_steps": 10}
ON_MODEL = {"target": "network", "lanes": [{"sampler": "network_map"}], "n_steps": 2}
BAD = {
    "truncated JSON": ('{"target": "quartic", "samp', "out.nc", ["spec", "not JSON"]),
    "empty file": ("", "out.nc", ["spec", "not JSON"]),
    "unknown target": ({**GOOD, "target": "quartik"}, "out.nc", ["target", "'quartik'", "quartic"]),
    "alpha 0": (
        {"target": {"key": "sparse_dirichlet", "params": {"alpha": 0}}, "sampler": "scir"},
        "out.nc",
        ["target.alpha", "0", "allowed is a number from 0.005"],
    ),
    "d a million": (
        {"target": {"key": "dense_dirichlet", "params": {"dimension": 10**6}}, "sampler": "scir"},
        "out.nc",
        ["target.dimension", "1000000", "from 2 to 100"],
    ),
    "an unknown field": ({**GOOD, "steps": 10}, "out.nc", ["steps", "10", "n_steps"]),
    "a sampler that does not fit": ({**GOOD, "sampler": "scir"}, "out.nc", ["sampler", "'scir'", "sgld"]),
    "a run that only adapts": (
        {"target": "gaussian", "sampler": {"key": "hmc", "params": {"adapt_steps": 10}}, "burn_in": 0, "n_steps": 10},
        "out.nc",
        ["sampler.adapt_steps", "10", "at most 9"],
    ),
    "not an object": ("[1, 2]", "out.nc", ["spec", "object"]),
    "a bad suffix": (GOOD, "out.txt", ["out", "'out.txt'", ".nc and .csv"]),
    "no suffix": (GOOD, "out", ["out", "'out'", ".nc and .csv"]),
    "no such folder": (GOOD, "nowhere/out.nc", ["out", "nowhere", "no folder"]),
    "an unknown field on a model": (ON_MODEL | {"steps": 3}, "out.csv", ["steps", "3", "n_steps"]),
    "draws of a model": (ON_MODEL, "out.nc", ["out", "'out.nc'", ".csv"]),
    "a file of one's own that is not given": (
        ON_MODEL | {"target": {"key": "network", "params": {"graph": "uploaded"}}},
        "out.csv",
        ["data", "own graph", "--data"],
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_exits_with_2_and_one_clear_sentence(tmp_path, capsys, what):
    text, out, parts = BAD[what]
    assert main(["run", str(spec_file(tmp_path, text)), "--out", str(tmp_path / out)]) == 2
    errors = capsys.readouterr().err
    assert errors.startswith("error: ")
    assert len(errors.strip().splitlines()) == 1
    for part in parts:
        assert part in errors, errors
    assert [p.name for p in tmp_path.iterdir()] == ["spec.json"]


def test_an_experiment_on_a_file_is_run_with_that_file(tmp_path, capsys):
    """The graph is that of the file: the pairs that are seen are its own."""
    edges = tmp_path / "pets.csv"
    edges.write_text("".join(f"{i},{(i + step) % 12}\n" for i in range(12) for step in (1, 2)), encoding="utf-8")
    own = ON_MODEL | {"target": {"key": "network", "params": {"graph": "uploaded"}}}
    out = tmp_path / "curves.csv"
    spec = str(spec_file(tmp_path, own))
    assert main(["run", spec, "--out", str(out), "--data", str(edges)]) == 0
    assert "held-out AUC" in capsys.readouterr().out
    with out.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["step"] for row in rows] == ["0", "1", "2"]
    pairs = 12 * 11 // 2
    assert 0.7 * pairs < int(rows[1]["observed pairs seen"]) < 0.9 * pairs
    missing = str(tmp_path / "none.csv")
    for data, files, parts in (
        (own, [missing], ["data", "no such file"]),
        (own, [spec], ["spec.json", ".csv"]),
        (own, [str(edges), missing], ["data", "no such file"]),
        (GOOD, [str(edges)], ["data", "for a model of data, not for quartic"]),
        (ON_MODEL, [str(edges)], ["data", "built-in graph blocks"]),
    ):
        spec_file(tmp_path, data)
        assert main(["run", spec, "--out", str(tmp_path / "out.csv"), "--data", *files]) == 2
        errors = capsys.readouterr().err
        assert all(part in errors for part in parts), errors


@pytest.mark.slow
def test_an_experiment_on_a_table_is_run_with_that_table_and_no_other(tmp_path, capsys):
    rows = tmp_path / "rows.csv"
    rows.write_text("a,y\n" + "".join(f"{k},{k * k % 7}\n" for k in range(12)), encoding="utf-8")
    key = TableLinear.read({"rows.csv": rows.read_bytes()}).key
    experiment = {
        "target": {"key": "linear_table", "params": {"table": key}},
        "lanes": [{"sampler": "exact"}],
        "n_steps": 400,
    }
    spec, out = str(spec_file(tmp_path, experiment)), tmp_path / "out.nc"
    assert main(["run", spec, "--out", str(out), "--data", str(rows)]) == 0
    capsys.readouterr()
    assert theta_of_netcdf(out)[0].shape[-1] == 3
    errors = []
    for params, files in (({"table": key}, []), ({"table": key}, ["twice"]), ({}, ["rows.csv"])):
        if files == ["twice"]:
            (tmp_path / "twice").write_bytes(rows.read_bytes().replace(b"0,0", b"0,3"))
        gc.collect()
        spec_file(tmp_path, {**experiment, "target": {"key": "linear_table", "params": params}})
        assert main(["run", spec, "--out", str(out), *(["--data", str(tmp_path / files[0])] if files else [])]) == 2
        errors.append(capsys.readouterr().err)
    assert "--data" in errors[0]
    assert "target.table" in errors[1]
    assert f"which is on diabetes; to be on this one it needs table = {key}" in errors[2]


def test_a_missing_or_unreadable_file_exits_with_2(tmp_path, capsys):
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"\xff\xfe\x00")
    for path, part in ((tmp_path / "missing.json", "no such file"), (tmp_path, "directory"), (binary, "UTF-8")):
        assert main(["run", str(path), "--out", str(tmp_path / "out.nc")]) == 2
        errors = capsys.readouterr().err
        assert errors.startswith("error: spec = ")
        assert part in errors


def test_a_pipe_or_a_device_is_refused_at_once(tmp_path, capsys):
    """Fails where a command waits for somebody who writes into a pipe, or reads a device that has no end."""
    pipe, out = tmp_path / "pipe.csv", str(tmp_path / "out.csv")
    os.mkfifo(pipe)
    own = spec_file(tmp_path, ON_MODEL | {"target": {"key": "network", "params": {"graph": "uploaded"}}})
    for named in (str(pipe), "/dev/zero"):
        for arguments in (["run", named, "--out", out], ["run", str(own), "--out", out, "--data", named]):
            assert main(arguments) == 2
            assert "it is not an ordinary file" in capsys.readouterr().err
        with pytest.raises(FileError, match="not an ordinary file"):
            read_path(Path(named))


@pytest.mark.slow
def test_a_process_with_bad_input_shows_no_traceback(tmp_path):
    process = started("run", tmp_path / "missing.json", "--out", tmp_path / "out.nc")
    out, errors = process.communicate(timeout=600)
    assert (process.returncode, out) == (2, "")
    assert "Traceback" not in errors

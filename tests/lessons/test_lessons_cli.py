"""Lessons from the command line, and their sweeps: here, in processes, on a cluster, and again after a stop."""

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from sgmcmc_lab.lessons import load_all, read, record, sweep
from sgmcmc_lab.lessons.claims import mean
from sgmcmc_lab.lessons.cli import main
from sgmcmc_lab.lessons.headless import run_step
from sgmcmc_lab.lessons.measures.base import Estimate
from sgmcmc_lab.lessons.sweep import Cluster, Processes, Results, in_process, in_threads, reduced, slope
from sgmcmc_lab.samplers import RunSpec, engine
from sgmcmc_lab.samplers.diagnostics import ks
from tests.helpers.course import LESSONS

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "sgmcmc_lab.lessons"]

SWEEP = """+++
title = "A sweep"
minutes = 1
+++

## Fig 2

```toml
seeds = 3

[experiment]
target = "sparse_dirichlet"
lanes = ["scir(step_size:0.1)~minibatch(batch_size:10)", "sgrld(step_size:0.0025)~minibatch(batch_size:10)"]
n_chains = 1
n_steps = 300
burn_in = 300
seed = 7

[sweep]
measure = "chain_ks"

[sweep.grid]
lane1.sampler.step_size = [0.5, 0.1, 0.05]
lane2.sampler.step_size = [0.005, 0.0005]
gradient.batch_size = [10, 100]

[quick]
n_steps = 100
grid = { lane1.sampler.step_size = [0.5, 0.1] }

[[claim]]
says = "SCIR at its best step is nearer to the posterior than SGRLD at its own."
sweep = "best"
where = { gradient.batch_size = 10 }
against = 2
below = 0.8

[[claim]]
says = "The best step is one of the smaller ones."
sweep = "best_at"
where = { gradient.batch_size = 10 }
below = 0.3

[[claim]]
says = "At one point."
sweep = "at"
where = { gradient.batch_size = 100, sampler.step_size = 0.1 }
above = 0
below = 1
```
"""

ONE = """+++
title = "One claim"
minutes = 1
+++

## Exact

```toml
[experiment]
target = "gaussian"
lanes = ["exact"]
n_chains = 16
n_steps = 1000

[[claim]]
says = "The variance is 1."
measure = "variance"
equals = 1
tolerance = 0.1
```
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a good lesson, a lesson whose claim is false, and a sweep; results of sweeps go to another one."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "right.md").write_text(ONE, encoding="utf-8")
    (own / "wrong.md").write_text(ONE.replace("equals = 1", "equals = 1.2"), encoding="utf-8")
    (own / "fig2.md").write_text(SWEEP, encoding="utf-8")
    monkeypatch.setenv("SGMCMC_LESSONS", str(own))
    return own


@pytest.fixture(scope="module")
def step(tmp_path_factory):
    path = tmp_path_factory.mktemp("lesson") / "sweep.md"
    path.write_text(SWEEP, encoding="utf-8")
    return read(path).steps[0]


def numbers(table):
    return [(row.point.lane, row.point.values, [(e.value, e.error, e.exact) for e in row.seeds]) for row in table.rows]


# --- sweeps ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_sweep_has_every_point_and_seed(step):
    """Fails where a point is missing or is another run than it says: each score is that of the engine's own run."""
    table = sweep.of_step(step, quick=False, seeds=3, do=in_process)
    assert Counter(row.point.lane for row in table.rows) == {1: 6, 2: 4}
    assert len({(row.point.lane, row.point.values) for row in table.rows}) == 10
    for row in table.rows[::3]:
        at = dict(row.point.values)
        assert row.point.spec.sampler.key == ("scir", "sgrld")[row.point.lane - 1]
        for i, found in enumerate(row.seeds):
            spec = RunSpec.of(
                "sparse_dirichlet",
                row.point.spec.sampler.key,
                "minibatch",
                seed=7 + i,
                n_chains=1,
                n_steps=300,
                burn_in=300,
                sampler_params={"step_size": at["sampler.step_size"]},
                gradient_params={"batch_size": at["gradient.batch_size"]},
            )
            trace = engine.run(spec)
            assert found.value == ks.of_draws(trace.target, trace.draws[0])
    assert len({e.value for row in table.rows for e in row.seeds}) == 30
    quick = sweep.of_step(step, quick=True, seeds=1, do=in_process)
    assert Counter(row.point.lane for row in quick.rows) == {1: 4, 2: 4}
    assert {row.point.spec.n_steps for row in quick.rows} == {100}


def test_the_reductions_of_a_sweep(step):
    table = sweep.of_step(step, quick=True, seeds=2, do=in_process)
    best, best_at, at = step.claims
    means = {row.point.values: mean(row.seeds).value for row in table.rows if row.point.lane == 1}
    of_ten = {
        dict(values)["sampler.step_size"]: x for values, x in means.items() if dict(values)["gradient.batch_size"] == 10
    }
    assert mean(reduced(best, table, 1)).value == min(of_ten.values())
    assert reduced(best_at, table, 1)[0].value == min(of_ten, key=of_ten.get)
    wanted = (("sampler.step_size", 0.1), ("gradient.batch_size", 100))
    assert mean(reduced(at, table, 1)).value == means[wanted]
    diverged = [
        row._replace(seeds=(Estimate(float("nan")),)) if dict(row.point.values)["sampler.step_size"] == 0.5 else row
        for row in table.rows
    ]
    left = replace(table, rows=tuple(diverged))
    assert mean(reduced(best, left, 1)).value == of_ten[0.1]  # a point that blew up is not the best


@pytest.mark.slow
def test_the_slope_of_a_power_law():
    x = [0.1, 0.2, 0.4, 0.8]
    exact = slope(x, [Estimate(-3 * h**2, 0.01 * h**2) for h in x])
    assert exact.value == pytest.approx(2)
    rng = np.random.default_rng(3)
    noisy = [
        slope(x, [Estimate(h**1.5 * (1 + 0.05 * z), 0.05 * h**1.5) for h, z in zip(x, rng.normal(size=4), strict=True)])
        for _ in range(4000)
    ]
    found = np.array([e.value for e in noisy])
    assert abs(found.mean() - 1.5) < 5 * found.std() / 60
    assert found.std() == pytest.approx(np.mean([e.error for e in noisy]), rel=0.06)
    assert np.isnan(slope(x, [Estimate(0.0), *[Estimate(1.0)] * 3]).value)


@pytest.mark.slow
def test_processes_and_a_cluster_give_the_same_numbers(step, compile_cache):
    """Fails where a sweep depends on where it runs: bit for bit the same here, in threads, in processes and on Dask.

    Planted fault: another seed."""
    distributed = pytest.importorskip("distributed")
    here = sweep.of_step(step, quick=True, seeds=2, do=in_process)
    threads = sweep.of_step(step, quick=True, seeds=2, do=in_threads)
    local = sweep.of_step(step, quick=True, seeds=2, do=Processes(2))
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address="127.0.0.1:0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        spread = sweep.of_step(step, quick=True, seeds=2, do=Cluster(client))
    assert numbers(threads) == numbers(here)
    assert numbers(local) == numbers(here)
    assert numbers(spread) == numbers(here)
    other = replace(step, quick_spec=replace(step.quick_spec, seed=8))
    assert numbers(sweep.of_step(other, quick=True, seeds=2, do=in_process)) != numbers(here)


class Stopping:
    """Does some tasks, and is then interrupted; counts what it was asked to do."""

    def __init__(self, most):
        self.most, self.asked, self.done = most, 0, 0

    def __call__(self, tasks):
        self.asked = len(tasks)
        for answer in in_process(tasks):
            if self.done == self.most:
                raise KeyboardInterrupt
            self.done += 1
            yield answer


@pytest.mark.slow
def test_a_sweep_goes_on_where_it_stopped(step, tmp_path):
    """Fails where a run that was done is done again, or a stopped sweep ends with other numbers."""
    results, whole = Results(tmp_path), sweep.of_step(step, quick=True, seeds=2, do=in_process)
    first = Stopping(5)
    with pytest.raises(KeyboardInterrupt):
        sweep.of_step(step, quick=True, seeds=2, do=first, results=results)
    assert first.asked == 16
    rest = Stopping(100)
    again = sweep.of_step(step, quick=True, seeds=2, do=rest, results=results)
    assert (rest.asked, again.reused) == (11, 5)
    assert numbers(again) == numbers(whole)
    none = Stopping(0)
    assert sweep.of_step(step, quick=True, seeds=2, do=none, results=results).reused == 16
    assert none.asked == 0
    # A seed more asks for the new runs alone.
    more = Stopping(100)
    sweep.of_step(step, quick=True, seeds=3, do=more, results=results)
    assert more.asked == 8


def test_results_of_other_code_or_half_written_are_not_used(step, tmp_path, monkeypatch):
    results = Results(tmp_path)
    sweep.of_step(step, quick=True, seeds=1, do=in_process, results=results)
    files = sorted(tmp_path.glob("*.json"))
    assert len(files) == 8
    files[0].write_text("{", encoding="utf-8")
    files[1].write_text('{"task": {}, "answer": [0.5, null, null]}', encoding="utf-8")
    files[2].write_text(files[3].read_text(encoding="utf-8"), encoding="utf-8")  # another task's answer
    again = Stopping(100)
    sweep.of_step(step, quick=True, seeds=1, do=again, results=results)
    assert again.asked == 3
    assert not list(tmp_path.glob("*.part"))
    monkeypatch.setitem(sweep._CODE, "digest", "changed")
    changed = Stopping(100)
    sweep.of_step(step, quick=True, seeds=1, do=changed, results=results)
    assert changed.asked == 8


ANSWER = '{"task": {}, "answer": %s}'


@pytest.mark.parametrize("content", [
    "", "{", "[]", "null", "0", '{"answer": [0.5, null, null]}', ANSWER % "[1, 2]", ANSWER % "[NaN, 1, 1]",
    ANSWER % ("[1" + "0" * 400 + ", 1, 1]"), ANSWER % "[" * 100_000, ANSWER % '["1", 1, 1]', "\ud800",
])  # fmt: skip
def test_a_result_that_is_not_as_it_was_written_is_none(content, tmp_path):
    """Fails where a damaged file ends the sweep, or its numbers are taken."""
    results, task = Results(tmp_path), {"spec": {}, "measure": "m", "quantity": "value"}
    results.put(task, [0.5, None, 1.0])
    (path,) = tmp_path.glob("*.json")
    whole = path.read_bytes()
    assert results.get(task) == [0.5, None, 1.0]
    path.write_bytes(content.encode(errors="surrogatepass"))
    assert results.get(task) is None
    path.write_bytes(whole.replace(b"0.5", b"0.6"))
    assert results.get(task) is None
    results.put(task, [0.5, None, 1.0])
    assert results.get(task) == [0.5, None, 1.0]


@pytest.mark.parametrize("place", ["file above", "folder in its place", "full disk"])
def test_a_sweep_whose_results_cannot_be_kept_goes_on(place, step, tmp_path, monkeypatch, caplog):
    """Fails where hours of runs are lost to a full disk."""
    results = Results(tmp_path / "above" / "sweeps")
    if place == "file above":
        (tmp_path / "above").write_text("a person's own")
    elif place == "folder in its place":
        monkeypatch.setattr(sweep, "digest", lambda task: "one")
        (results.folder / "one.json" / "within").mkdir(parents=True)
    else:
        monkeypatch.setattr(Path, "write_bytes", lambda *given: (_ for _ in ()).throw(OSError(28, "No space left")))

    def done(tasks):
        return ((i, [float(i), 0.1, None]) for i in range(len(tasks)))

    table = sweep.of_step(step, quick=True, seeds=1, do=done, results=results)
    assert len(table.rows) == 8
    assert ("cannot be kept" in caplog.text) == (place != "folder in its place")
    assert (results.folder / "one.json").is_file() == (place == "folder in its place")


def test_the_digest_is_of_the_whole_code(tmp_path, monkeypatch):
    """Fails where a change in a file of the engine leaves old results in use."""
    before = sweep.code_digest()
    for name in ("samplers", "lessons"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "samplers" / "gradients" / "full.py").write_text("# another\n", encoding="utf-8")
    monkeypatch.setattr(sweep, "_CODE", {})
    monkeypatch.setattr(sweep.samplers, "__file__", str(tmp_path / "samplers" / "__init__.py"))
    assert sweep.code_digest() != before


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ('[sweep]\nmeasure = "chain_ks"\n', "[sweep]\n", 19, "sweep.measure = None: it is needed"),
        ("gradient.batch_size = [10, 100]\n", "gradient.size = [10, 100]\n", 25, "there is no such value"),
        ("gradient.batch_size = [10, 100]\n", "gradient.batch_size = [10, 100]\nlane3.sampler.step_size = [1]\n", 26, "there is no such value"),
        ("lane1.sampler.step_size = [0.5, 0.1, 0.05]", "lane1.sampler.step_size = 0.5", 23, "a list of 1 to 100 values"),
        ("[0.005, 0.0005]", "[0.005, 50]", 24, "step_size = 50: allowed is a number"),
        ("[0.5, 0.1] }", "[0.5] , lane2.x = [1] }", 29, "the sweep has no such axis"),
        ('where = { gradient.batch_size = 10 }\nagainst', 'where = { gradient.batch_size = 11 }\nagainst', 34, "allowed at full and at reduced length"),
        (", sampler.step_size = 0.1 }", " }", 47, "a value is needed for sampler.step_size"),
        ('sweep = "best"\n', 'sweep = "bets"\n', 33, "allowed is one of at, best"),
        ('sweep = "best_at"\nwhere = { gradient.batch_size = 10 }', 'sweep = "best_at"', 38, "just one"),
        ('sweep = "best_at"', 'sweep = "slope"', 41, "one axis of three or more"),
        ("[10, 100]\n", f"[{', '.join(map(str, range(1, 102)))}]\n", 25, "a list of 1 to 100 values"),
        ("gradient.batch_size = [10, 100]\n", "gradient.batch_size = [10, 100]\nlane1.gradient.batch_size = [10]\n", 22, "an axis twice"),
        ("below = 0.8", "below = 0.8\nquantity = \"bias\"", 37, "allowed is one of value, ratio, difference"),
    ],
)  # fmt: skip
def test_bad_input_of_a_sweep(tmp_path, old, new, line, message):
    from sgmcmc_lab.lessons import LessonError

    assert old in SWEEP
    path = tmp_path / "x.md"
    path.write_text(SWEEP.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(LessonError) as caught:
        read(path)
    assert message in caught.value.message, caught.value
    assert caught.value.line == line, caught.value


# --- the command line ------------------------------------------------------------------------------------------------


def test_the_list_names_every_lesson(folder, capsys):
    assert main([]) == 0
    out = capsys.readouterr().out
    for key, lesson in LESSONS.items():
        assert f"{key} " in out
        assert f"{lesson.title} ({lesson.minutes} minutes" in out


def test_a_broken_lesson_is_told_and_the_others_run(folder, capsys):
    (folder / "broken.md").write_text(ONE.replace("minutes = 1", "minutes = one"), encoding="utf-8")
    assert main([]) == 2
    captured = capsys.readouterr()
    assert "right" in captured.out
    assert captured.err == "error: broken.md:3: it is not TOML: invalid value.\n"
    assert main(["right", "--quick"]) == 0
    assert main(["broken"]) == 2
    assert "there is no such lesson" in capsys.readouterr().err


CHECKED = """+++
title = "Checked"
minutes = 1
+++
## a
```toml
experiment = "target=gaussian&lane=sgld(step_size:0.2)~full&lane=sgld(step_size:0.8)~full&n_chains=64&n_steps=8000"

[[check]]
says = "Half the step has half the floor."
supports = ["watch"]
change = { lane2.sampler.step_size = 0.4 }
measure = "ks"
lane = 2
against = "before"
equals = 0.44
tolerance = 0.05
```
## b
```toml
n_steps = 2
experiment = { target = "topics(corpus:bars;n_topics:10)", lanes = ["collapsed_gibbs"] }
[[check]]
says = "More steps have the lower perplexity."
supports = ["answer"]
change = { n_steps = 40 }
measure = "score"
against = "before"
quantity = "difference"
below = 0
```
"""


@pytest.mark.slow
def test_a_check_is_measured_on_a_changed_run_beside_the_unchanged_one(folder, capsys, tmp_path):
    """Planted faults: the change is not made; the other lane is looked at; fewer steps in place of more."""
    out = tmp_path / "out.json"
    (folder / "checked.md").write_text(CHECKED, encoding="utf-8")
    assert main(["checked", "--json", str(out)]) == 0
    text = capsys.readouterr().out
    assert "pass  check: Half the step has half the floor." in text
    assert "0 of 0 claims passed, 2 of 2 checks" in text
    first = json.loads(out.read_text(encoding="utf-8"))["lessons"]["checked"]["steps"][0]
    assert first["claims"] == []
    assert first["checks"][0]["supports"] == ["watch"]
    for old, new in (("step_size = 0.4", "step_size = 0.8"), ("lane = 2", "lane = 1"), ("n_steps = 40", "n_steps = 1")):
        (folder / "checked.md").write_text(CHECKED.replace(old, new), encoding="utf-8")
        assert main(["checked"]) == 1
        assert "1 of 2 checks, 1 FAILED" in capsys.readouterr().out, new


def test_a_false_claim_exits_1(folder, capsys, tmp_path):
    """The planted fault: a claim that is false, beside one that is true, from the same runs."""
    out = tmp_path / "out.json"
    assert main(["right", "--json", str(out)]) == 0
    text = capsys.readouterr().out
    assert "pass  The variance is 1." in text
    assert "expected 1, tolerance 0.1" in text
    assert "1 of 1 claims passed" in text
    right = json.loads(out.read_text(encoding="utf-8"))["lessons"]["right"]["steps"][0]["claims"][0]
    assert main(["wrong", "right", "--json", str(out)]) == 1
    text = capsys.readouterr().out
    assert "FAIL  The variance is 1." in text
    assert "1 of 2 claims passed, 1 FAILED" in text
    report = json.loads(out.read_text(encoding="utf-8"))["lessons"]
    wrong = report["wrong"]["steps"][0]["claims"][0]
    assert report["right"]["steps"][0]["claims"][0] == right
    assert (right["passed"], wrong["passed"], right["measured"]) == (True, False, wrong["measured"])
    assert right["measured"] == run_step(load_all().lessons["right"].steps[0]).results[0].measured
    assert (right["expected"], right["tolerance"], right["by_seed"]) == ("1", 0.1, [right["measured"]])
    assert "is 0.2" in wrong["reason"] or "away from 1.2" in wrong["reason"]


def test_the_table_has_the_papers_numbers(folder, tmp_path):
    paper = 'paper = { figure = "Fig 1 | a", kind = "printed", number = 1.01, ours = 1, reason = "Chance." }\n'
    (folder / "right.md").write_text(ONE.replace("tolerance = 0.1\n", f"tolerance = 0.1\n{paper}"), encoding="utf-8")
    out = tmp_path / "table.md"
    assert main(["right", "wrong", "--table", str(out)]) == 1
    lines = [one for one in out.read_text(encoding="utf-8").splitlines() if one]
    length, _, _, *kinds, head, line, row, passed, _, _, right, wrong = lines
    assert length == "Measured at full length."
    assert kinds[0] == "| printed in the paper | 1 | 0 |"
    assert row.startswith("| Fig 1 ¦ a | The variance is 1. | 1.01 | printed | ")
    assert row.endswith(" | 1 ± 0.1 | right 1 | Chance. |")
    assert passed == "1 of 2 claims and 0 of 0 checks in 2 lessons passed."
    today = datetime.now(UTC).date().isoformat()
    for one, held in ((right, "| right | 1 of 1 | 0 of 0 | `"), (wrong, "| wrong | 0 of 1 | 0 of 0 | `")):
        assert one.startswith(held) and f"` | {today}; " in one and platform.python_version() in one
    assert len({one.count("|") for one in (head, line, row)}) == 1


def test_a_table_is_written_into_its_place(folder, tmp_path):
    """Fails where a command overwrites the text around its table."""
    out = tmp_path / "table.md"
    out.write_text(f"Before.\n\n{record.BEGIN}\nold\n{record.END}\n\nAfter.\n", encoding="utf-8")
    assert main(["right", "--table", str(out)]) == 0
    text = out.read_text(encoding="utf-8")
    assert text.startswith(f"Before.\n\n{record.BEGIN}\n\nMeasured at full length")
    assert text.endswith(f" |\n\n{record.END}\n\nAfter.\n") and "| right | 1 of 1 |" in text and "old" not in text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["right", "--table"], "it holds lessons of the course at full length"),
        (["all", "--quick", "--table"], "it holds lessons of the course at full length"),
        (["all", "--seeds", "2", "--table"], "it holds lessons of the course at full length"),
        (["--table", "all"], "it needs the NAME of the lesson before it"),
        (["--json", "all"], "it needs the NAME of the lesson before it"),
    ],
)
def test_the_results_are_those_of_lessons_of_the_course_at_full_length(arguments, says, folder, capsys, monkeypatch):
    """Fails where other runs replace the results, or a named file is forgotten."""
    monkeypatch.setattr("sgmcmc_lab.lessons.cli.run_step", lambda *given, **named: pytest.fail("it runs"))
    assert main(arguments) == 2
    assert says in capsys.readouterr().err


@pytest.mark.slow
def test_a_cluster_by_its_address(folder, tmp_path):
    """Fails where --cluster gives other numbers than this machine."""
    distributed = pytest.importorskip("distributed")
    outs = [tmp_path / "here.json", tmp_path / "there.json"]
    with distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=2,
        processes=False,
        protocol="tcp://",
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
    ) as cluster:
        for i, where in enumerate((("--processes", "1"), ("--cluster", cluster.scheduler_address))):
            arguments = ["fig2", "--quick", "--results", str(tmp_path / str(i)), "--json", str(outs[i])]
            assert main([*arguments, *where]) in (0, 1)
    assert outs[0].read_text(encoding="utf-8") == outs[1].read_text(encoding="utf-8")
    assert len(list((tmp_path / "1").glob("*.json"))) == 8


def test_seeds_are_counted_on(folder, capsys, tmp_path):
    out = tmp_path / "out.json"
    assert main(["right", "--seeds", "3", "--json", str(out)]) == 0
    found = json.loads(out.read_text(encoding="utf-8"))["lessons"]["right"]["steps"][0]["claims"][0]
    assert len(set(found["by_seed"])) == 3
    assert found["measured"] == pytest.approx(np.mean(found["by_seed"]))
    assert "seeds: " in capsys.readouterr().out


@pytest.mark.slow
def test_plots_are_pictures(folder, tmp_path):
    """Fails where a figure is missing or empty: it has the colours of its lanes."""
    matplotlib = pytest.importorskip("matplotlib")
    plots = tmp_path / "plots"
    assert main(["langevin", "fig2", "--quick", "--plots", str(plots), "--results", str(tmp_path / "r")]) in (0, 1)
    files = {path.name for path in plots.glob("*.png")}
    assert files == {"langevin-1-joint.png", "langevin-2-marginal.png", "fig2-1-sweep.png"}
    from sgmcmc_lab.lessons.figures import COLOURS

    for name in ("langevin-2-marginal.png", "fig2-1-sweep.png"):
        pixels = matplotlib.image.imread(plots / name)[..., :3]
        assert min(pixels.shape[:2]) > 300
        for colour in COLOURS[:2]:
            wanted = matplotlib.colors.to_rgb(colour)
            assert (np.abs(pixels - wanted).max(axis=-1) < 0.05).sum() > 100, (name, colour)


MORE = """
figures = ["marginal", "joint", "trace", "autocorrelation"]
names = ["a", "b"]

[experiment]
target = "quartic"
lanes = ["exact", "sgld(step_size:0.02)~full"]
n_chains = 8
n_steps = 2000
"""
WORDS = """
figures = ["sweep"]

[experiment]
target = "gaussian"
lanes = ["hmc~full", "exact"]
n_chains = 8
n_steps = 500

[sweep]
measure = "variance"

[sweep.grid]
lane1.sampler.accept = [true, false]
"""


@pytest.mark.slow
@pytest.mark.parametrize("settings", [MORE, WORDS])
def test_every_kind_of_figure(tmp_path, settings):
    """Fails where a figure of the registry is not drawn, or a lesson may name one that there is not."""
    matplotlib = pytest.importorskip("matplotlib")
    from sgmcmc_lab.lessons import figures
    from sgmcmc_lab.lessons.lesson import FIGURES

    assert {*figures.OF_RUNS, figures.SWEEP} == set(FIGURES)
    path = tmp_path / "x.md"
    path.write_text(f'+++\ntitle = "x"\nminutes = 1\n+++\n## s\n```toml{settings}```\n', encoding="utf-8")
    lesson = read(path)
    written = figures.write(run_step(lesson.steps[0]), lesson, tmp_path)
    assert [each.name for each in written] == [f"x-1-{name}.png" for name in lesson.steps[0].figures]
    for each in written:
        pixels = matplotlib.image.imread(each)[..., :3]
        wanted = matplotlib.colors.to_rgb("#8d99ae" if "joint" in each.name else figures.COLOURS[0])
        assert (np.abs(pixels - wanted).max(axis=-1) < 0.08).sum() > 40, each.name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "there is no such lesson; there are: langevin"),
        (["right", "--json", "none/x.json"], "the folder none is not there"),
        (["right", "--cluster", "tcp://127.0.0.1:1"], "no scheduler answers there"),
    ],
)
def test_bad_input_exits_2(folder, capsys, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    if "--cluster" in arguments:
        pytest.importorskip("distributed")
        monkeypatch.setattr(sweep, "PATIENCE", "0.5s")
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def started(*arguments, environment, new_group=False):
    # A test run in the background may ignore SIGINT, and its child processes inherit that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(
            [*COMMAND, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            start_new_session=new_group,
        )
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for another process")
def test_a_stopped_command_goes_on(folder, tmp_path):
    """Ctrl-C in the middle of a sweep exits with 130 and keeps what is done; the same command then does the rest, and
    its numbers are those of a command that was never stopped."""
    long = SWEEP.replace("n_steps = 300", "n_steps = 4000").replace("seeds = 3", "seeds = 6")
    (folder / "fig2.md").write_text(long, encoding="utf-8")
    results = tmp_path / "results"
    environment = {"SGMCMC_LESSONS": str(folder)}
    process = started("fig2", "--results", results, "--processes", 1, environment=environment)
    give_up = time.monotonic() + 120
    while len(list(results.glob("*.json"))) < 3 and time.monotonic() < give_up and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 130, err
    assert "goes on" in err
    kept = {path.name: path.stat().st_mtime_ns for path in results.glob("*.json")}
    assert 3 <= len(kept) < 60
    outs = [tmp_path / "a.json", tmp_path / "b.json"]
    for out, where in zip(outs, (results, tmp_path / "fresh"), strict=True):
        assert main(["fig2", "--results", str(where), "--processes", "1", "--json", str(out)]) in (0, 1)
    assert outs[0].read_text(encoding="utf-8") == outs[1].read_text(encoding="utf-8")
    assert all((results / name).stat().st_mtime_ns == at for name, at in kept.items())


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for another process")
@pytest.mark.parametrize(("name", "options"), [("right", ()), ("fig2", ("--processes", 2))])
def test_a_stop_is_soon(folder, tmp_path, name, options):
    """Fails where Ctrl-C, which a terminal sends to all processes, waits for the end of a run of hours, or where
    processes of a sweep are left behind."""
    psutil = pytest.importorskip("psutil")
    endless = ONE.replace("n_steps = 1000", "n_steps = 1000000000\nthin = 1000")
    (folder / "right.md").write_text(endless, encoding="utf-8")
    (folder / "fig2.md").write_text(SWEEP.replace("seeds = 3", "seeds = 100"), encoding="utf-8")
    process = started(
        name, "--results", tmp_path, *options, environment={"SGMCMC_LESSONS": str(folder)}, new_group=True
    )
    process.stdout.readline()  # the lesson's title: now it runs
    give_up = time.monotonic() + 120
    while name == "fig2" and not list(tmp_path.glob("*.json")) and time.monotonic() < give_up:
        time.sleep(0.05)
    time.sleep(2)
    assert process.poll() is None
    group = [process.pid, *(child.pid for child in psutil.Process(process.pid).children(recursive=True))]
    assert len(group) > 2 or name == "right"
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    give_up = time.monotonic() + 30
    while (left := [pid for pid in group if alive(psutil, pid)]) and time.monotonic() < give_up:
        time.sleep(0.05)
    assert not left


def alive(psutil, pid):
    """Whether a process runs; one that has ended and that nobody has asked about is a zombie."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.slow
def test_workers_of_another_version_are_refused(step, monkeypatch):
    """Fails where a cluster with other code gives numbers: they would not be those of this machine."""
    distributed = pytest.importorskip("distributed")
    from sgmcmc_lab.samplers import SpecError

    real = sweep.work
    monkeypatch.setattr(sweep, "work", lambda task, code: real(task, code + "x"))
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
        ) as cluster,
        distributed.Client(cluster) as client,
        pytest.raises(SpecError, match="another version"),
    ):
        sweep.of_step(step, quick=True, seeds=1, do=Cluster(client))

"""Hostile models for the typed posterior: each is refused in a sentence, or read in a bounded number of calls."""

import json

import pytest

from sgmcmc_lab.samplers.expressions.limits import MAX_WORK, work_limit
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.targets import posterior
from sgmcmc_lab.samplers.targets.posterior import TypedPosterior
from sgmcmc_lab.samplers.targets.posterior_data import PRESETS
from tests.helpers.cases import for_each
from tests.helpers.work import calls_of
from tests.hostile_models import models, read, tables

MOST_CALLS = 1_000_000
"""At .1 µs each the 100 ms of a core that a model may take."""
NINE = "*".join(f"exp(a{k}*y)" for k in range(10))
WORST = (
    # The slowest of 100,000: densities in each other, whose derivatives by ten bounded parameters share little.
    "beta_lpdf(((sin(beta_lpdf(a0,cos(beta_lpdf(((beta_lpdf(a8,a9,beta_lpdf(a7,a1,exp(a0+a1+a2+a3+a4+a5+a6+a7+a8+a9))))*(y+a1))*(y+a1),a2,a0)),1)))^-1)^.5,a9,a2)",
    "((student_t_lpdf(y,student_t_lpdf(student_t_lpdf(y,(i1_over_i0(student_t_lpdf((a0+a1+a2+a3+a4+a5+a6+a7+a8+a9)^2,1,a0,a2)))*(y+a1),1,a0),1,a9,a5),a3,1))*(y+a1))*(y+a1)",
    f"log_mix(0.5, {NINE}, log_mix(0.5, -({NINE}), {NINE}))",
)


def model_of(row: str, bound: str = "0 < {} < 1") -> dict[str, str]:
    names = [f"a{k}" for k in range(10)]
    return {
        "table": "doses",
        "parameters": ", ".join(map(bound.format, names)),
        "prior": f"normal_lpdf({'+'.join(names)}, 0, 1)",
        "row": row,
        "curve": "",
    }


@pytest.mark.slow
def test_hostile_models_are_refused_in_a_sentence_or_read_soon():
    """300 of them by a seed; ``python -m tests.hostile_models`` has 100,000."""
    own, taken, refused = tables(), 0, set()
    for model in models(300, 5, own):
        said = []
        assert calls_of(lambda model=model, said=said: said.append(read(model))) < MOST_CALLS, json.dumps(model)
        taken += said == [""]
        if said != [""]:
            assert said[0].endswith(".") and said[0].startswith("target") and len(said[0]) < 600, said
            refused.add(said[0].split(" =")[0])
    # They get past each field, and the grammar.
    assert taken > 20 and refused >= {"target.parameters", "target.prior", "target.row", "target.curve"}


@for_each("row", WORST, ids=lambda row: row[:20])
@for_each("bound", ["{}", "0 < {} < 1"])
def test_the_worst_are_bounded(row, bound):
    model = model_of(row, bound)
    assert calls_of(lambda: read(model)) < MOST_CALLS


def test_one_bound_holds_for_all_of_a_model(monkeypatch):
    """Each derivative alone is within the bound; ten of them, of a prior and of rows, together must be."""
    model = model_of(WORST[0])
    assert "its expanded form is too large" in read(model) or calls_of(lambda: read(model)) < MOST_CALLS
    spent = []
    monkeypatch.setattr(posterior, "work_limit", lambda: spent.append(1) or work_limit(MAX_WORK // 10))
    assert "target.row" in (said := read(model)) and "its expanded form is too large" in said
    assert spent == [1]


@pytest.mark.parametrize("key", PRESETS)
def test_presets_take_less_than_a_quarter_of_the_bound(key, monkeypatch):
    monkeypatch.setattr(posterior, "work_limit", lambda: work_limit(MAX_WORK // 4))
    assert read({**PRESETS[key]._asdict(), "table": key}) == ""


@pytest.mark.slow
def test_fault_a_model_without_a_bound_of_its_own(monkeypatch):
    """Without it each operation has its own, and ten derivatives take ten."""
    from contextlib import nullcontext

    most = max(calls_of(lambda row=row: read(model_of(row))) for row in WORST)
    monkeypatch.setattr(posterior, "work_limit", nullcontext)
    assert max(calls_of(lambda row=row: read(model_of(row))) for row in WORST) > most


def test_a_file_holds_no_number_that_is_none():
    rows = b"".join(b"%d,%d\n" % (k, k * k % 7) for k in range(20))
    for cell in (b"nan", b""):
        table = TypedPosterior.read({"trial.csv": b"dose,y\n" + rows + b"2," + cell + b"\n"})
        assert len(table.y) == 20 and "1 row with a missing value left out" in table.taken.sentence
    for cell in (b"inf", b"-inf", b"1e400", b"1e10", b"1,5", b"one"):
        content = b"dose,y\n" + rows + b"2," + cell + b"\n"
        with pytest.raises(Exception, match=r"line 22") as caught:
            TypedPosterior.read({"trial.csv": content})
        assert isinstance(caught.value, SpecError) or type(caught.value).__name__ == "FileError"

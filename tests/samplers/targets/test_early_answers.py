"""Rough answers of a target whose exact ones take seconds, and runs that go on when those come."""

import threading
from contextlib import suppress

import numpy as np
import pytest

from sgmcmc_lab.samplers import Experiment, Run
from sgmcmc_lab.samplers.choices import Choice, make_target
from sgmcmc_lab.samplers.diagnostics import ks
from sgmcmc_lab.samplers.files import EndedError
from sgmcmc_lab.samplers.targets import TARGETS, long_run
from sgmcmc_lab.samplers.targets.long_run import LongRun
from sgmcmc_lab.samplers.targets.posterior_data import PRESETS


def silent(what, share):
    pass


@pytest.fixture(params=["schools", "outliers"])
def experiment(request):
    """One whose exact answers are a long run's, and one whose are a quadrature's."""
    params = PRESETS[request.param]._replace(table=request.param)._asdict()
    target = {"key": "posterior", "params": params}
    return Experiment.from_dict({"target": target, "lanes": [{"sampler": "sgld"}], "n_chains": 4, "seed": 1})


@pytest.mark.slow
def test_rough_answers_need_no_exact_ones(experiment):
    target = experiment.make_target()
    target.prepare(silent)
    early = target.early()
    assert early is target.early(), "they are computed once"
    assert early.uncertainty > 5 * target.uncertainty
    for exact, rough in zip(target.columns, early.columns, strict=True):
        assert abs(rough.mean - exact.mean) < 6 * early.uncertainty * np.sqrt(exact.variance)
        assert 0.2 < rough.variance / exact.variance < 5


@pytest.mark.slow
def test_a_run_that_began_early_is_the_run_that_knew_its_target(experiment):
    (spec,) = experiment.runs()
    target = make_target(spec.target)
    target.prepare(silent)
    early, late = Run(spec, early=target.early()), Run(spec)
    for run in (early, late):
        run.advance(300)
    rough = [ks.distance(early.statistics, k) for k in range(target.n_columns)]
    early.know(target.counted_like(early.target))
    assert np.array_equal(early.position, late.position)
    for k in range(target.n_columns):
        assert early.statistics.mean(k) == pytest.approx(late.statistics.mean(k), rel=1e-9)
        assert early.statistics.variance(k) == pytest.approx(late.statistics.variance(k), rel=1e-9)
    early_ks, late_ks = ([ks.distance(run.statistics, k) for k in range(target.n_columns)] for run in (early, late))
    # The bins are others, and no bin holds much.
    assert early_ks == pytest.approx(late_ks, abs=0.003)
    assert rough != pytest.approx(late_ks, abs=0.003), "the rough answers were others"


@pytest.mark.parametrize(("row", "kept"), [("normal_lpdf(y, k^2, 2)", False), ("normal_lpdf(y, k, 2)", True)])
def test_rough_answers_that_miss_a_mode_are_not_gone_on_with(row, kept):
    params = {"table": "counts", "parameters": "k", "prior": "normal_lpdf(k, 0, 3)", "row": row, "curve": ""}
    target = make_target(Choice("posterior", tuple(params.items())))
    early = target.early()
    target.prepare(silent)
    assert (target.counted_like(early) is not None) == kept


class Held:
    """Long runs that stop in ``tell`` until they are released, each in a thread."""

    def __init__(self, monkeypatch):
        self.begun, self.released, self.answers = threading.Event(), threading.Event(), []
        monkeypatch.setattr(LongRun, "_found", self._found)

    def _found(self, tell):
        tell("", None)
        self.answers.append(object())
        return self.answers[-1]

    def tell(self, what, share):
        self.begun.set()
        assert self.released.wait(60)

    def begin(self, target):
        thread = threading.Thread(target=target.prepare, args=(self.tell,), daemon=True)
        thread.start()
        assert self.begun.wait(60)
        return thread


@pytest.fixture
def held(monkeypatch):
    made = Held(monkeypatch)
    yield made
    made.released.set()


def tumours():
    return TARGETS["logistic_tumours"]()


def returns(call, within=60):
    """Whether a call in another thread returns within these seconds, beside one that is held."""
    done = threading.Event()
    threading.Thread(target=lambda: (call(), done.set()), daemon=True).start()
    return done.wait(within)


def test_a_held_long_run_holds_up_no_other_target(held):
    known, other = tumours(), tumours()
    known._reference = object()
    thread = held.begin(tumours())
    assert returns(lambda: known.prepare(silent))
    assert returns(lambda: other.prepare(silent)) and other.ready
    held.released.set()
    thread.join(60)
    assert len(held.answers) == 2


def test_fault_a_lock_of_all_targets_is_seen(held, monkeypatch):
    lock, prepare = threading.Lock(), LongRun.prepare

    def locked(self, tell):
        with lock:
            prepare(self, tell)

    monkeypatch.setattr(LongRun, "prepare", locked)
    known = tumours()
    known._reference = object()
    held.begin(tumours())
    assert not returns(lambda: known.prepare(silent), within=0.2)


def test_two_callers_share_one_long_run(held):
    target, told = tumours(), threading.Event()
    held.begin(target)
    second = threading.Thread(target=target.prepare, args=(lambda what, share: told.set(),), daemon=True)
    second.start()
    assert told.wait(60), "the second caller can be cancelled while it waits"
    held.released.set()
    second.join(60)
    assert target.ready and len(held.answers) == 1


def test_the_second_caller_makes_the_long_run_that_the_first_one_cancels(held):
    target = tumours()

    def cancel(what, share):
        held.tell(what, share)
        raise EndedError

    def cancelled():
        with suppress(EndedError):
            target.prepare(cancel)

    threading.Thread(target=cancelled, daemon=True).start()
    assert held.begun.wait(60)
    second = threading.Thread(target=target.prepare, args=(silent,), daemon=True)
    second.start()
    held.released.set()
    second.join(60)
    assert target.ready and len(held.answers) == 1


def test_a_long_run_that_ends_before_the_claim_is_not_made_again(held, monkeypatch):
    target = tumours()

    class Late:
        """A lock that another thread holds until it has made the run."""

        def __enter__(self):
            target._reference = made

        def __exit__(self, *_):
            pass

    made = object()
    monkeypatch.setattr(long_run, "_CLAIMING", Late())
    target.prepare(silent)
    assert target._reference is made and held.answers == []

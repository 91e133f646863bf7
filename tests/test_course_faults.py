"""A planted fault for every claim of lessons 3 to 6, 8, 9, 14, 15 and 18, which must make it fail.

The claims themselves are held against sound runs by ``tests/test_lessons.py``. Here their experiment has something
wrong with it, at the same reduced length, and those claims that the fault is about must not pass. Seeds are fixed.
"""

from dataclasses import replace

import pytest

from lessons import load_all, measures
from lessons.headless import run_step
from lessons.specs import changed

LIBRARY = load_all()
OWN = ("minibatch-noise", "momentum", "recipe-d", "recipe-q", "thermostats", "riemannian", "order", "scan", "diagnostics-mislead")  # fmt: skip

# For every step: what is wrong, and the claims, counted from 1, that must notice. Two numbers are lanes exchanged; a
# table is a change as in a lesson.
FAULTS = {
    ("minibatch-noise", 1): [((1, 2), (1, 2)), ((2, 3), (4,)), ({"target": {"mean": 0.5}}, (3,))],
    ("minibatch-noise", 2): [
        # HMC's leapfrog is of second order; of noise that is subtracted ten times as much is the same.
        ({"lane1": "sghmc(step_size:0.1;friction:1)~full"}, (1,)),
        ({"lane2": "sgld(step_size:0.1)~gaussian_corrected(variance:5)"}, (2,)),
    ],
    ("minibatch-noise", 3): [
        ((1, 2), (1, 2)),
        ({"target": {"items": 20}, "lane1": {"gradient": {"replacement": False}}}, (3,)),
    ],
    ("momentum", 1): [((1, 2), (1, 2)), ({"target": {"sd1": 1.1}}, (3,))],
    ("momentum", 2): [((1, 2), (1, 2)), ((2, 3), (3,))],
    ("momentum", 3): [((1, 2), (1, 2))],
    ("momentum", 4): [((2, 3), (1, 2))],
    ("recipe-d", 1): [((1, 2), (2, 3, 4)), ({"target": {"sd1": 1.1}}, (1,))],
    ("recipe-d", 2): [
        ({"lane2": {"sampler": {"gamma": False}}}, (2,)),
        ({"lane1": {"sampler": {"diffusion_entries": ["1 + 4*exp(-4*theta^2)"], "gamma": False}}}, (1,)),
        ((1, 2), (3,)),
    ],
    ("recipe-d", 3): [({"lane2": {"sampler": {"friction": 1.01}}}, (1,))],
    ("recipe-q", 1): [((1, 2), (1, 2)), ({"target": {"sd1": 1.2}}, (3,))],
    ("recipe-q", 2): [((1, 2), (1, 2)), ((2, 3), (3,))],
    ("recipe-q", 3): [((1, 3), (1, 2))],
    ("thermostats", 1): [((1, 2), (1, 2, 4)), ({"lane2": {"gradient": {"variance": 30.0}}}, (3,))],
    ("thermostats", 2): [
        ((1, 3), (1, 2, 4)),
        ({"lane3": "sggmc(step_size:0.1;friction:1)~gaussian(variance:40)"}, (3,)),
    ],
    ("thermostats", 3): [((1, 2), (1, 3)), ({"lane2": "sggmc(step_size:0.02;friction:1)~minibatch(batch_size:4)"}, (2,))],
    ("thermostats", 4): [({"sampler": {"friction": 1.2}}, (1,))],
    ("riemannian", 1): [((1, 2), (1, 2)), ({"lane2": {"sampler": {"step_size": 0.5}}}, (3,))],
    ("riemannian", 2): [((3, 4), (1, 2)), ((2, 3), (3,)), ((1, 3), (4,))],
    ("riemannian", 3): [((3, 4), (1, 2)), ((2, 3), (3,))],
    ("riemannian", 4): [((1, 2), (1,)), ((2, 3), (2,)), ((1, 3), (3,))],
    ("riemannian", 5): [((1, 4), (1, 4)), ((2, 4), (2,)), ((3, 4), (3,))],
    ("order", 1): [
        # A wrong drift is an error of order 0, unknown noise one of order 1.
        ({"lane1": {"sampler": {"drift_entries": ["", "-theta - 1.5*r"]}}}, (1, 4)),
        ({"lane2": "sggmc(step_size:0.8;friction:2)~gaussian(variance:2)"}, (2, 3)),
    ],
    ("order", 2): [((1, 2), (1, 2, 3, 4))],
    ("order", 3): [
        ({"lane1": "sggmc(step_size:0.05;friction:15)~full"}, (1,)),
        ({"lane2": "sggmc_euler(step_size:0.1;friction:2)~full"}, (2, 3)),
    ],
    ("scan", 1): [((1, 2), (1, 2))],
    ("scan", 2): [
        ((1, 2), (1, 2)), ((2, 3), (3,)), ({"lane1": "sggmc(step_size:0.05;friction:9)~gaussian(variance:320)"}, (4,)),
    ],
    ("diagnostics-mislead", 1): [
        ({"target": {"radius": 2.4}, "n_steps": 20_000}, (1, 2, 3, 4)),
        ({"target": {"radius": 1.5}, "n_steps": 2_000}, (5, 6)),
    ],
    ("diagnostics-mislead", 2): [({"target": {"radius": 4.0}}, (1, 2))],
    ("diagnostics-mislead", 3): [
        ({"sampler": {"step_size": 2e-4}}, (1, 3)), ({"lane1": {"sampler": {"step_size": 0.1}}}, (2,)),
        ({"lane2": {"sampler": {"gamma": True}}}, (4,)),
    ],
}  # fmt: skip
PATCHED = {("scan", 3)}
"""Steps whose fault is not one of the experiment; it has a test of its own."""


def faulty(spec, fault):
    if isinstance(fault, dict):
        return changed(spec, fault)
    lanes = list(spec.lanes)
    i, j = (number - 1 for number in fault)
    lanes[i], lanes[j] = lanes[j], lanes[i]
    return replace(spec, lanes=tuple(lanes))


def test_every_claim_has_a_planted_fault():
    steps = {(key, step.number): step for key in OWN for step in LIBRARY.lessons[key].steps if step.claims}
    assert set(steps) == set(FAULTS) | PATCHED
    for place, faults in FAULTS.items():
        noticed = sorted(number for _, claims in faults for number in claims)
        assert noticed == list(range(1, len(steps[place].claims) + 1)), place


@pytest.mark.parametrize(("key", "number", "fault", "numbers"), [(*place, *fault) for place, faults in FAULTS.items() for fault in faults])  # fmt: skip
def test_claims_notice_a_planted_fault(key, number, fault, numbers):
    """Fails where a claim passes although its experiment is at fault."""
    step = LIBRARY.lessons[key].steps[number - 1]
    claims = tuple(step.claims[n - 1] for n in numbers)
    sweep = step.sweep if any(claim.reduction for claim in claims) else None
    outcome = run_step(replace(step, quick_spec=faulty(step.quick_spec, fault), claims=claims, sweep=sweep), quick=True)
    passed = [f"{x.claim.says} {x.measured:g}, allowed {x.allowed}" for x in outcome.results if x.passed]
    assert not passed, passed


def test_claims_of_the_scan_notice_a_planted_fault(monkeypatch):
    """Fails where the claims about Gibbs pass with another τ, 1 + s²N/m."""
    monkeypatch.setattr(measures, "exact_tau", lambda m, n, variance: 1 + variance * n / m)
    outcome = run_step(LIBRARY.lessons["scan"].steps[2], quick=True)
    assert not [x.claim.says for x in outcome.results if x.passed]

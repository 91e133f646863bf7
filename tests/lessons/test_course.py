"""Every claim and check of the course holds at reduced length, and has a planted fault that makes it fail.

The fault is in the experiment: something in it is changed and it is run again, or two of its lanes change places,
and then those claims that the fault is about must not pass. Seeds are fixed. A step's checks are counted on after its
claims.
"""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from sgmcmc_lab.lessons import headless, sweep
from sgmcmc_lab.lessons.evidence import evidence
from sgmcmc_lab.lessons.headless import run_step
from sgmcmc_lab.lessons.measures import scan
from sgmcmc_lab.lessons.measures.base import OWN_RUN
from sgmcmc_lab.lessons.specs import changed
from sgmcmc_lab.samplers.lanes import max_lanes
from sgmcmc_lab.samplers.models.run import ModelRun
from sgmcmc_lab.samplers.targets.posterior_data import PRESETS as OWN
from tests.helpers.course import LESSONS


def with_checks(step):
    """The step with its checks among its claims."""
    return replace(step, claims=(*step.claims, *step.checks), checks=())


def held_to_runs(key):
    """The steps of a lesson with claims or checks, by number."""
    return {step.number: with_checks(step) for step in LESSONS[key].steps if step.claims or step.checks}


FIRST = ("langevin", "step-size", "gamma")
"""Lessons whose planted fault is everywhere the same: the first two lanes exchanged."""


def shifted(step):
    """Each claim of a sweep looks at the next batch size; that about the last, at the first."""
    (sizes,) = (axis.values for axis in step.sweep.axes if axis.name == "gradient.batch_size")
    following = dict(zip(sizes, (*sizes[1:], sizes[0]), strict=True))
    claims = tuple(
        replace(claim, where=tuple((name, following[n]) for name, n in claim.where)) for claim in step.claims
    )
    return replace(step, claims=claims)


def whole(step):
    """The sweep takes the number itself for its bias."""
    return replace(step, sweep=replace(step.sweep, quantity="value"))


def unlearned(step):
    """No method makes more than two steps."""
    lanes = tuple(replace(lane, n_steps=2) for lane in step.quick_spec.lanes)
    return replace(step, quick_spec=replace(step.quick_spec, lanes=lanes))


def _model(key):
    """The table of a typed posterior that differs from its lesson's step: the same model in other coordinates."""
    return {"table": key, **{name: value for name, value in OWN[key]._asdict().items() if isinstance(value, str)}}


def unchanged(step):
    """The change that a check is about is not made."""
    claims = tuple(
        replace(claim, **dict.fromkeys(("change", "quick_change"), claim.change and {})) for claim in step.claims
    )
    return replace(step, claims=claims)


# For every step: what is wrong, and the claims, counted from 1, that must notice. Two numbers are lanes or
# methods exchanged; a table is a change as in a lesson. A check that is not here has the fault that its change is not
# made, or else that its lane is the next one.
FAULTS = {
    ("langevin", 1): [
        ({"lane2": {"sampler": {"drift_entries": ["12 - 11.126721*theta1 - 5.574118*theta2", "6.212333 - 5.574118*theta1 - 8.053817*theta2"]}}}, (2,)),
        ({"lane1": {"sampler": {"step_size": 0.03}}}, (5,)),
    ],
    ("langevin", 2): [((2, 3), (6,))],
    # A chain with an accept step has no floor.
    ("step-size", 1): [((1, 2), (1, 2, 3, 4)), ({"lane1": "hmc(step_size:0.4)~full", "lane2": "hmc(step_size:0.8)~full"}, (5, 6))],
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
    ("momentum", 1): [((1, 2), (1, 2, 5, 6, 7)), ({"target": {"sd1": 1.1}}, (3, 4))],
    ("momentum", 2): [((1, 2), (1, 2)), ((2, 3), (3,)), ({"lane1": {"gradient": {"variance": 8.0}}}, (4, 5)), ({"lane2": {"sampler": {"friction": 0.01}}}, (6,))],
    ("momentum", 3): [((2, 3), (1, 2, 3, 4, 5)), ({"target": {"sd1": 1.1}}, (6, 7))],
    ("diagnostics-mislead", 1): [
        ({"target": {"radius": 2.4}, "n_steps": 20_000}, (1, 2, 3, 4, 7, 8)),
        ({"target": {"radius": 1.5}, "n_steps": 2_000}, (5, 6, 9)),
    ],
    ("diagnostics-mislead", 2): [({"target": {"radius": 4.0}}, (1, 2))],
    ("diagnostics-mislead", 3): [
        ({"sampler": {"step_size": 2e-4}}, (1, 3)), ({"lane1": {"sampler": {"step_size": 0.1}}}, (2, 8)),
        ({"lane2": {"sampler": {"diffusion_entries": ["1"]}}}, (4, 7)), ({"lane2": {"sampler": {"step_size": 0.4}}}, (6,)),
    ],
    ("stein", 1): [((1, 2), (1, 2, 3)), ({"lane2": "sgld(step_size:0.0005)~full"}, (4,))],
    ("stein", 2): [((1, 2), (2, 4)), ({"lane1": {"sampler": {"step_size": 0.3}}}, (1, 5)), ({"lane2": "sgld(step_size:0.3)~full"}, (3,))],
    ("stein", 3): [({"target": {"items": 1000}}, (1,))],
    ("dw", 1): [({"target": {"sd1": 1.1}}, (1,))],
    ("dw", 2): [({"target": {"sd": 2.0}}, (1, 2, 4, 5)), ((1, 2), (3,))],
    ("dw", 3): [((1, 2), (1, 2)), ((2, 3), (3,))],
    ("recipe-d", 1): [((1, 2), (3, 4, 5, 6)), ({"target": {"sd1": 1.1}}, (1,)), ({"lane2": {"sampler": {"step_size": 0.2}}}, (2,))],
    ("recipe-d", 2): [
        ({"lane2": {"sampler": {"gamma": False}}}, (2, 4)),
        ({"lane1": {"sampler": {"diffusion_entries": ["1 + 4*exp(-4*theta^2)"], "gamma": False}}}, (1, 5)),
        ((1, 2), (3,)),
    ],
    ("recipe-d", 3): [({"lane2": {"sampler": {"friction": 1.01}}}, (1,)), ({"lane1": {"sampler": {"diffusion_entries": ["0", "0", "0"], "drift_entries": ["r", "-theta - r"]}}}, (2,))],
    ("recipe-q", 1): [((1, 2), (1, 2, 4, 5, 6)), ({"target": {"sd1": 1.2}}, (3, 7, 8))],
    ("recipe-q", 2): [((1, 2), (1, 2)), ((2, 3), (3,))],
    ("recipe-q", 3): [((1, 3), (1, 2))],
    ("thermostats", 1): [((1, 2), (1, 2, 4)), ({"lane2": {"gradient": {"variance": 30.0}}}, (3,))],
    ("thermostats", 2): [
        ((1, 3), (1, 2, 4)), ((1, 2), (6,)), ({"target": {"sd": 1.2}}, (7, 8, 9)),
        ({"lane3": "sggmc(step_size:0.1;friction:1)~gaussian(variance:40)"}, (3,)),
    ],
    ("thermostats", 3): [((1, 2), (1, 3)), ({"lane2": "sggmc(step_size:0.02;friction:1)~minibatch(batch_size:4)"}, (2,)), ({"lane1": "sggmc(step_size:0.02;friction:1)~gaussian(variance:700)"}, (4,))],
    ("thermostats-figures", 1): [({"sampler": {"friction": 1.2}}, (1,))],
    # The error without Γ does not belong to the step.
    ("gamma", 1): [((1, 2), (3,))],
    ("riemannian", 1): [((1, 2), (1, 2))],
    ("riemannian", 2): [((1, 2), (1, 2, 3))],
    # With the target's scale another the variance is, and the mean without Γ.
    ("riemannian", 3): [((1, 2), (1, 2, 5)), ({"target": {"scale": 1.5}}, (3, 4))],
    ("riemannian-figures", 1): [((3, 4), (1, 2)), ((2, 3), (3,)), ((1, 3), (4,))],
    ("riemannian-figures", 2): [((3, 4), (1, 2)), ((2, 3), (3,))],
    ("riemannian-figures", 3): [((1, 2), (1,)), ((2, 3), (2,)), ((1, 3), (3,))],
    ("riemannian-figures", 4): [((1, 4), (1, 4)), ((2, 4), (2,)), ((3, 4), (3,))],
    ("boundary", 1): [((1, 2), (1, 2, 3, 4, 5))],
    ("boundary", 2): [({"lane1": "cir(step_size:0.1)~full"}, (1, 2, 4))],
    ("boundary", 3): [({"target": {"shape": 0.1}}, (1, 2, 3))],
    ("boundary", 4): [((1, 3), (2,)), ((2, 3), (1, 3, 4, 5, 6, 7, 8, 9))],
    ("boundary-figures", 1): [((1, 3), (1, 3)), ((2, 3), (2,))],
    # SGRLD is the same process in other steps, with nearly the same τ: for the claim of τ it is no fault.
    ("scir", 1): [((1, 3), (2,)), ((1, 2), (5,)), ((2, 3), (1, 3, 4, 6, 7))],
    ("scir", 2): [
        ((1, 2), (1, 2, 3, 4)),
        # A step near 0 has no error of its own: then the batch size is the only one of SGRLD's lane, too.
        ({"lane2": "scir(step_size:0.5)~minibatch(batch_size:10)"}, (6,)),
    ],
    ("scir", 3): [({"target": "sparse_dirichlet"}, (1, 2, 4))],
    ("scir-figures", 1): [({"lane1": "sgrld(step_size:0.0005)~minibatch"}, (1, 2, 3, 4, 5, 11)), ({"target": {"alpha": 0.5}}, (6, 7, 8, 9, 10))],
    ("scir-figures", 2): [({"target": "sparse_dirichlet"}, (2, 3, 4, 5, 7, 8, 9, 10, 11, 12)), (shifted, (1, 6))],
    ("bias-variance", 1): [({"target": {"alpha": 1.5}}, (1, 2, 3, 4))],
    ("bias-variance", 2): [((1, 2), (1,)), ((2, 3), (2, 3, 4))],
    ("bias-variance", 3): [({"lane1": {"gradient": {"batch_size": 80}}}, (1, 4, 5)), (whole, (2, 3))],
    ("bias-variance", 4): [((1, 2), (1, 2)), ((2, 3), (3,))],
    ("bias-variance-figures", 1): [({"target": {"alpha": 1.5}}, (1, 2)), ((1, 2), (3,))],
    ("bias-variance-figures", 2): [((1, 2), (1,)), ((2, 3), (2, 3, 4))],
    ("bias-variance-figures", 3): [((1, 2), (1, 2))],
    ("circle", 1): [
        ({"lane1": {"sampler": {"step_size": 1.2, "accept": False}}, "lane2": "sggmc(step_size:0.005;friction:2.5)~gaussian(variance:1000)"}, (1, 2, 4, 5)),
        ({"lane2": "sggmc(step_size:0.0001;friction:2.5)~gaussian_corrected(variance:1000)"}, (3,)),
    ],
    ("circle", 2): [((1, 2), (1, 2, 3, 4))],
    ("circle", 3): [((1, 2), (1, 2, 4, 5)), ({"lane2": {"gradient": {"variance": 200.0}}}, (3,))],
    ("circle", 4): [
        ((1, 2), (3, 4)), ({"start": [0.9914448613738104, -0.13052619222005157, 0.9238795325112867, 0.3826834323650898], "lane1": {"sampler": {"step_size": 1e-5}}}, (1, 2)),
        ({"target": {"data_seed": 5}}, (5, 6)),
    ],
    ("circle-figures", 1): [((1, 2), (3, 4)), ({"lane1": {"sampler": {"step_size": 1e-5}}}, (1, 2))],
    ("circle-figures", 2): [({"lane1": {"sampler": {"step_size": 0.001}}}, (1, 2, 3))],
    ("order", 1): [
        # A wrong drift is an error of order 0, unknown noise one of order 1.
        ({"lane1": {"sampler": {"drift_entries": ["", "-theta - 1.5*r"]}}}, (1, 4, 5)),
        ({"lane2": "sggmc(step_size:0.8;friction:2)~gaussian(variance:2)"}, (2, 3)),
    ],
    ("order", 2): [((1, 2), (1, 2, 3, 4))],
    ("order", 3): [
        ({"lane1": "sggmc(step_size:0.05;friction:15)~full"}, (1,)),
        ({"lane2": "sggmc_euler(step_size:0.1;friction:2)~full"}, (2, 3)),
    ],
    ("scan", 1): [((1, 2), (1, 2))],
    ("scan", 2): [
        ((1, 2), (1, 2)), ((2, 3), (3,)), ({"lane1": "sggmc(step_size:0.05;friction:9)~gaussian(variance:320)"}, (4, 5)),
    ],
    ("topics", 1): [(unlearned, (1, 2, 3))],
    ("topics", 2): [((2, 3), (1, 2, 3, 4))],
    ("topics", 3): [((1, 2), (1, 2)), (unlearned, (3,))],
    ("topics-figures", 1): [((1, 2), (1,)), ((2, 3), (2,)), ((1, 4), (3,))],
    ("network", 1): [(unlearned, (1,)), ({"target": {"n_communities": 2}}, (2,))],
    ("network", 2): [((2, 3), (1, 2)), ((1, 3), (3,)), ((1, 2), (4, 5))],
    ("network", 3): [((1, 2), (1, 2)), ((1, 3), (3,))],
    ("network-figures", 1): [((1, 3), (1, 2, 3)), ((2, 4), (4,)), ((1, 5), (5, 6))],
    ("network-figures", 2): [((1, 3), (1,)), ((1, 2), (2,)), ((2, 3), (3,)), ((1, 4), (4,))],
    ("network-figures", 3): [((1, 5), (1, 2, 3, 4))],
    ("search", 1): [((1, 2), (1, 2, 3, 4)), ({"lane1": {"sampler": {"curl_entries": ["-exp(theta^2/4)"], "gamma": False}}, "lane2": {"sampler": {"gamma": False}}}, (5, 6))],
    ("search", 2): [((1, 2), (1, 2, 3, 4)), ((2, 3), (5, 6))],
    ("drift", 1): [((1, 2), (1, 2, 4, 5)), ({"lane2": {"sampler": {"drift_entries": ["-(1 + theta^2)*(4*theta^3 - 4*theta) + 2*theta"]}}}, (3,))],
    ("drift", 2): [((1, 2), (1, 3)), ({"lane1": {"sampler": {"diffusion_entries": ["2", "0", "2"]}}}, (2, 4))],
    ("clusters", 1): [(unlearned, (1, 2, 3, 4))],
    ("clusters", 2): [
        ({"target": {"freedom": 6.0}}, (1, 4)),
        ({"lane2": {"sampler": {"split_merge": 0, "start_clusters": 100}}, "target": {"cluster_sd": 0.05}}, (2,)),
        ({"lane1": {"sampler": {"split_merge": 0}}, "target": {"cluster_sd": 0.05}}, (3,)), ({"target": {"points": "iris"}}, (5,)),
    ],
    ("clusters", 3): [((1, 2), (1, 2, 4, 5)), ({"lane3": "mixture_scir(start_clusters:1)"}, (3, 7)), ({"lane2": "mixture_gibbs(start_clusters:1)"}, (6,))],
    ("clusters", 4): [
        ({"lane1": "mixture_gibbs(start_clusters:1)"}, (1,)), ({"lane2": "mixture_gibbs(start_clusters:6)"}, (2,)),
        ({"target": {"alpha_mean": 100.0}}, (3, 4)), (unlearned, (5,)),
    ],
    ("spherical", 1): [(unlearned, (1, 3, 4)), ({"target": {"n_topics": 2}}, (2,))],
    ("spherical", 2): [((1, 2), (1, 2)), ((2, 3), (3,))],
    ("spherical", 3): [((1, 3), (1, 2, 3)), ((2, 3), (4,))],
    ("factors", 1): [(unlearned, (1, 2)), ((1, 2), (3,))],
    ("factors", 2): [((1, 2), (1, 2, 3))],
    ("factors", 3): [((1, 2), (1, 2, 4, 5, 6, 7, 8, 9)), (unlearned, (3,))],
    ("factors-figures", 1): [((1, 2), (1, 2))],
    ("factors-figures", 2): [((1, 2), (1,))],
    ("control-variates", 1): [((2, 3), (1, 2))],
    ("control-variates", 2): [((2, 3), (1, 2, 3, 4, 5))],
    ("control-variates", 3): [((1, 2), (1, 2, 3, 4, 7, 8))],
    ("control-variates", 4): [((2, 3), (1, 2)), ((2, 4), (3,)), ((1, 3), (4,))],
    ("gap", 1): [
        ({"lane1": "sghmc(step_size:0.01;friction:0.5)~minibatch(batch_size:5)"}, (1,)),
        ({"lane1": {"sampler": {"step_size": 0.0001, "n_leapfrog": 1}}}, (2, 3)),
    ],
    ("gap", 2): [
        ((1, 2), (1, 4)),
        ({"lane2": "sghmc(step_size:0.01;friction:0.5)~minibatch(batch_size:5)"}, (2,)),
        ((1, 3), (3, 6)), ({"lane3": "sghmc(step_size:0.01;friction:5)~full"}, (5,)),
    ],
    ("own", 1): [({"target": {"row": OWN["outliers"].row}}, (2,)), ({"lane1": "sgld(step_size:0.08)~full"}, (1, 3))],
    ("own", 2): [({"target": {"row": OWN["outliers"].row.replace("student_t_lpdf(y, 2,", "normal_lpdf(y,")}}, (1, 2, 3))],
    ("own", 3): [({"target": _model("schools_not_centred")}, (1, 2))],
    ("own", 4): [({"target": _model("schools")}, (1, 2))],
    # A constant step is not falling, and a falling one has no floor.
    ("schedules", 1): [((1, 2), (1, 2, 3, 4, 5, 6))],
    ("schedules", 2): [((1, 2), (1, 2))],
    # Other data, a model of less data, and a run that is at another temperature than the text says.
    ("temperature", 1): [((1, 2), (1, 2, 3, 4, 5, 6, 7))],
    ("temperature", 2): [({"target": {"data_seed": 2}}, (1, 2, 3, 4)), ({"temperature": 3}, (5,))],
    ("temperature", 3): [({"target": {"items": 20}}, (1, 2, 3, 4)), ({"temperature": 3}, (5,))],
    # The sampler that minibatches bias in place of the exact one, and the reverse.
    ("exact-minibatch", 1): [((1, 2), (1, 2, 3, 4, 5, 6, 7))],
    ("exact-minibatch", 2): [((1, 2), (1, 2, 3, 4, 5, 6, 8, 9))],
    ("exact-minibatch", 3): [((1, 2), (1, 2, 3, 4, 5, 6, 7, 8, 9))],
    # The lane without swaps, without a bias or at another temperature in place of the one that the claim is about.
    ("tempering", 1): [((1, 2), (1, 2, 3, 4, 5, 9)), ({"lane2": {"sampler": {"rungs": 2}}}, (6,)), ({"lane2": {"sampler": {"rungs": 8}}}, (7, 8))],
    ("tempering", 2): [((2, 3), (1, 5, 6)), ((1, 2), (2, 3, 4))],
    ("tempering", 3): [((1, 2), (1, 2, 3, 4, 5, 6, 8))],
    ("sweep", 1): [((2, 3), (1, 2))],
    ("sweep", 2): [({"target": {"strength": 1.0, "shrinkage": 1.0}, "lane1": {"sampler": {"cost_ratio": 1000.0}}}, (1, 3, 4, 5)), ((2, 3), (2,))],
    ("sweep-figures", 1): [({"target": {"strength": 0.1, "shrinkage": 100.0}}, (1, 2, 3))],
    ("sweep-figures", 2): [({"target": {"strength": 1.0, "shrinkage": 1.0}, "lane1": {"sampler": {"cost_ratio": 1000.0}}}, (1,))],
    ("sweep", 3): [((1, 2), (1,)), ({"target": {"strength": 0.9}}, (2,))],
    # The rule in the place of the other.
    ("sweep", 4): [((1, 2), (1, 2, 3)), ({"target": {"strength": 1.0}}, (4,))],
}  # fmt: skip
PATCHED = {("scan", 3)}
"""The claims about Gibbs: their fault is another formula for τ, 1 + s²N/m."""


def faults_of(step, key):
    """The planted faults of a step, each with the numbers of the claims that must notice."""
    found = list(FAULTS.get((key, step.number), []))
    known = {number for _, numbers in found for number in numbers}
    n = len(LESSONS[key].steps[step.number - 1].claims)
    if key in FIRST and step.sweep is None:
        about = [i for i, claim in enumerate(step.claims[:n], 1) if {claim.lane, claim.against} & {1, 2}]
        found += [((1, 2), [i for i in about if i not in known])]
    for i, check in enumerate(step.claims[n:], n + 1):
        if i not in known:
            lanes = (check.lane, check.lane % len(step.quick_spec.lanes) + 1)
            found.append((unchanged if check.change is not None else lanes, (i,)))
    return found


def exchanged(listed, numbers):
    out = list(listed)
    i, j = (number - 1 for number in numbers)
    out[i], out[j] = out[j], out[i]
    return tuple(out)


def remembering():
    """``evidence`` that makes no run twice: a fault runs what it changes."""
    runs = {}

    def found(spec, needs=(), report=None):
        had, out = runs.get(spec, (set(), None))
        if out is None or not set(needs) <= had:
            out = evidence(spec, needs, report)
            runs[spec] = set(needs), out
        return out

    return found


def starting():
    """``start`` that begins no model's run twice, and none of a lane of which nothing is asked; and the lanes of which
    something is, if not of all.
    """
    done, asked = {}, set()

    def begun(experiment, model):
        specs = experiment.runs()
        idle = (SimpleNamespace(spec=spec, next=None) for spec in specs)
        wanted = [not asked or lane in asked for lane in range(1, len(specs) + 1)]
        runs = tuple(
            (done.get(spec) or ModelRun(spec, model)) if each else other
            for spec, each, other in zip(specs, wanted, idle, strict=True)
        )
        done.update((run.spec, run) for run, each in zip(runs, wanted, strict=True) if each)
        return runs

    return begun, asked


def judged(step, fault, sound):
    """The step's claims held against a run with the fault, or against the sound one with its lanes exchanged."""
    # One seed shows a fault of a model's methods.
    seeds = 1 if step.quick_spec.of_model else None
    swept = any(claim.reduction for claim in step.claims)
    if isinstance(fault, tuple):
        if not swept and not any(claim.change is not None for claim in step.claims):
            lanes = tuple(exchanged(lanes, fault) for lanes in sound.lanes[:seeds])
            return [headless._judge(claim, lanes, None, True) for claim in step.claims]
        step = replace(step, quick_spec=replace(step.quick_spec, lanes=exchanged(step.quick_spec.lanes, fault)))
    elif isinstance(fault, dict):
        step = replace(step, quick_spec=changed(step.quick_spec, fault))
    else:
        step = fault(step)
        if fault is shifted:
            return [headless._judge(claim, sound.lanes, sound.table, True) for claim in step.claims]
    return run_step(step if swept else replace(step, sweep=None), quick=True, seeds=seeds).results


def test_every_claim_has_a_planted_fault():
    claimed = {(lesson.key, step.number) for lesson in LESSONS.values() for step in lesson.steps if step.claims}
    wanting = {place for place in claimed if place[0] not in FIRST}
    assert wanting <= set(FAULTS) | PATCHED
    steps = {(key, number): step for key in LESSONS for number, step in held_to_runs(key).items()}
    assert set(FAULTS) | PATCHED <= set(steps)
    for place, faults in FAULTS.items():
        noticed = sorted(number for _, claims in faults for number in claims)
        claims = LESSONS[place[0]].steps[place[1] - 1].claims
        needed = set() if place[0] in FIRST else set(range(1, len(claims) + 1))
        assert len(set(noticed)) == len(noticed), place
        assert needed <= set(noticed) <= set(range(1, len(steps[place].claims) + 1)), place


@pytest.mark.slow
@pytest.mark.parametrize("key", LESSONS)
def test_claims_of_a_lesson(key, monkeypatch, subtests):
    """Fails where a claim does not hold at reduced length, or holds although its experiment is at fault. Where a
    claim allows four standard errors from 64 chains, chance alone makes it fail once in 6,000 choices of the seed
    (Student's law with 63 degrees)."""
    for number, step in held_to_runs(key).items():
        with subtests.test(number=number), monkeypatch.context() as patch:
            check_claims(key, step, patch)


def check_claims(key, step, monkeypatch):
    if step.quick_spec.target.values().get("corpus") == "reuters":
        pytest.importorskip("lda", reason="the package with the Reuters articles is not built for this Python")
    remembered = remembering()
    for module in (headless, sweep):
        monkeypatch.setattr(module, "evidence", remembered)
    begun, asked = starting()
    monkeypatch.setattr(headless, "start", begun)
    needs = headless._needs
    # A lane that is put in another's place is asked for what the other had to keep.
    every = set().union(*needs(claim for claim in step.claims if claim.reduction is None).values())
    monkeypatch.setattr(headless, "_needs", lambda claims: dict.fromkeys(range(1, max_lanes("topics") + 1), every))
    sound = run_step(step, quick=True)
    failed = [f"{x.claim.says} measured {x.measured:.6g}. {x.reason}" for x in sound.results if not x.passed]
    assert not failed, "\n".join(failed)
    # A fault's run has no lanes but those of the claims that it is about.
    nothing = {lane: {OWN_RUN} for lane in range(1, max_lanes("topics") + 1)}
    monkeypatch.setattr(headless, "_needs", lambda claims: nothing | needs(claims))
    for fault, numbers in faults_of(step, key):
        some = replace(step, claims=tuple(step.claims[n - 1] for n in numbers))
        # A claim about a change counts the unchanged lanes behind the changed ones.
        asked.update((lane - 1) % len(step.quick_spec.lanes) + 1 for claim in some.claims for lane in claim.lanes)
        held = [f"{x.claim.says} {x.measured:g}, allowed {x.allowed}" for x in judged(some, fault, sound) if x.passed]
        assert not held, f"with {fault}: {held}"
        asked.clear()
    if (key, step.number) in PATCHED:
        monkeypatch.setattr(scan, "exact_tau", lambda m, n, variance: 1 + variance * n / m)
        n = len(LESSONS[key].steps[step.number - 1].claims)
        again = [headless._judge(claim, sound.lanes, sound.table, True) for claim in step.claims[:n]]
        assert not [x.claim.says for x in again if x.passed]

"""The data with which a live page checks a lesson's claims on its run: measures, goals, lengths and exact values."""

from dataclasses import asdict, replace
from typing import Any

import numpy as np

from sgmcmc_lab.lessons.evidence import snapshot_interval
from sgmcmc_lab.lessons.lesson import Claim, Step
from sgmcmc_lab.lessons.measures import MEASURES
from sgmcmc_lab.lessons.measures.base import MOMENTA, OWN_RUN, Evidence, Measure
from sgmcmc_lab.lessons.measures.expectation import Expectation
from sgmcmc_lab.lessons.measures.kl import KL
from sgmcmc_lab.lessons.measures.ks import KS, ChainKS
from sgmcmc_lab.samplers import kolmogorov
from sgmcmc_lab.samplers.diagnostics import divergence, ks
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.live import description
from sgmcmc_lab.samplers.parameters import declared
from sgmcmc_lab.samplers.running_statistics import Statistics
from sgmcmc_lab.samplers.trace import Trace

MEASURED = (
    "mean", "variance", "power", "probability", "quantile", "ks", "chain_ks", "kl", "joint_kl", "tau", "cost", "rhat", "acceptance",
    "data", "clipped", "diverged", "temperature", "auxiliary", "expectation",
)  # fmt: skip
"""The measures that a live page computes, in ``measures.js``."""
SEPARATE = ("ensemble_mean", "ensemble_variance", "ensemble_mgf", "scan_tau", "scan_cost")
"""The measures that a live page computes from separate runs, in ``separate.js``."""


def can_measure(measure: Measure, spec: RunSpec) -> bool:
    """Whether a live page computes the measure of such a run while it moves."""
    if isinstance(measure, Expectation) and measure.moment(spec.make_target()).sums is None:
        return False
    if isinstance(measure, Expectation | ChainKS) and (spec.make_schedule().falls or spec.make_sampler().weighs):
        # The page's sums over the draws have no weights.
        return False
    if isinstance(measure, ChainKS) and _odds_columns(spec) is None:
        return False
    return measure.key in MEASURED


def _odds_columns(spec: RunSpec) -> list[dict[str, Any]] | None:
    """The columns whose KS distances are averaged, each with its constants; None where one is not of odds."""
    target = spec.make_target()
    found = {k: ks.odds_constants(target.columns[k]) for k in target.ks_columns}
    columns = [{"k": k, "constants": list(one)} for k, one in found.items() if one is not None]
    return columns if len(columns) == len(found) else None


def is_measured(step: Step, claim: Claim) -> bool:
    """Whether a live page checks the claim on its run."""
    if claim.reduction is not None or step.spec is None:
        return False
    return can_measure(claim.make_measure(), step.spec.runs()[claim.lane - 1])


def is_separate(claim: Claim) -> bool:
    """Whether a live page checks the claim on separate runs."""
    return claim.reduction is None and claim.measure.key in SEPARATE


def described_claim(step: Step, place: int) -> dict[str, Any]:
    """A live claim as ``claims.js`` takes it: measure, goals, lengths, and the target's exact values."""
    claim = step.claims[place]
    assert step.spec is not None and step.quick_spec is not None
    measure, runs = claim.make_measure(), step.spec.runs()
    specs = [runs[number - 1] for number in claim.lanes]
    quick = step.quick_spec.runs()
    first, full = (max(spec.runs()[n - 1].n_steps for n in claim.lanes) for spec in (step.quick_spec, step.spec))
    return {
        "place": place,
        "measure": described_measure(measure),
        "lanes": [number - 1 for number in claim.lanes],
        "quantity": claim.quantity,
        "exact": [exact(measure, spec) for spec in specs],
        "follows": [follows(measure, quick[number - 1], runs[number - 1]) for number in claim.lanes],
        "perRoot": per_root(measure, specs[0]),
        "times": [float(spec.make_sampler().time_per_step) for spec in specs],
        "cells": cells(measure, specs[0]),
        **goals(claim),
        "first": first,
        "full": full,
    }


def described_separately(step: Step, place: int) -> dict[str, Any]:
    """A claim on separate runs at reduced length as ``separate.js`` takes it, for the step's own target."""
    claim = step.claims[place]
    assert step.quick_spec is not None
    measure, runs = claim.make_measure(), step.quick_spec.runs()
    lanes = []
    for number in claim.lanes:
        run = description.of_run(runs[number - 1])
        del run["target"]
        lanes.append({"run": run, "exact": exact(measure, runs[number - 1])})
    return {
        "place": place,
        "measure": described_measure(measure),
        "lanes": lanes,
        "quantity": claim.quantity,
        **goals(claim),
        "seeds": step.quick_seeds,
    }


def goals(claim: Claim) -> dict[str, Any]:
    """The goal of a claim's sentence, and that of the reduced length, where it is another one."""
    return {"goal": asdict(claim.goal), "quick": asdict(claim.quick_goal) if claim.quick_goal != claim.goal else None}


def follows(measure: Measure, spec: RunSpec, full: RunSpec) -> dict[str, Any] | None:
    """The sums that a measure needs in addition to the running statistics, as ``followed.js`` takes them; ``spec`` is
    the run at reduced length, whose snapshots the ``full`` run continues.
    """
    if measure.requires == MOMENTA:
        return {"every": snapshot_interval(spec), "moments": {}, "gaps": None}
    if isinstance(measure, ChainKS):
        return {"every": 0, "moments": {}, "gaps": {"most": full.n_steps // full.thin, "columns": _odds_columns(spec)}}
    if isinstance(measure, Expectation):
        moment = measure.moment(spec.make_target())
        found = {"sums": moment.sums.py_func.__name__, "constants": [float(x) for x in moment.constants]}
        return {"every": 0, "moments": {str(measure.number): found}, "gaps": None}
    return None


def exact(measure: Measure, spec: RunSpec) -> float | None:
    """A measure's value under the target distribution; None where it is unknown or depends on the draws."""
    if measure.requires == OWN_RUN:
        # Its run is the shortest one.
        spec = replace(spec, n_chains=1, n_steps=1, thin=1)
    target = spec.make_target()
    statistics = Statistics.empty(target.columns, 1, target.dim, target.planar)
    nothing = Trace(spec, target, statistics, np.zeros((1, 1, target.dim)), 0, 0, 0, 0, 0.0, 0, 0, 0, None)
    momenta = np.zeros((1, 1, len(spec.make_sampler().auxiliary(target.sampled))))
    with np.errstate(all="ignore"):
        found = measure.of(Evidence(nothing, momenta)).exact
    return None if found is None or not np.isfinite(found) else float(found)


def ks_columns(step: Step) -> list[int]:
    """The columns, from 0, whose own KS distance a claim or the sweep of a step names."""
    measures = [claim.make_measure() for claim in step.claims]
    if step.sweep is not None:
        measures.append(MEASURES[step.sweep.measure.key](**step.sweep.measure.values()))
    return [column - 1 for measure in measures if isinstance(measure, KS) and (column := int(measure.column))]


def described_measure(measure: Measure) -> dict[str, Any]:
    """A measure by its key, with the values of its parameters."""
    return {"key": measure.key, "values": {name: getattr(measure, name) for name, _ in declared(type(measure))}}


def per_root(measure: Measure, spec: RunSpec) -> float | None:
    """The exact value times √n for n draws of all chains, where it is proportional to 1/√n; None otherwise."""
    if isinstance(measure, ChainKS):
        return kolmogorov.baseline(1 / spec.n_chains)
    return kolmogorov.baseline(1) if isinstance(measure, KS) else None


def cells(measure: Measure, spec: RunSpec) -> dict[str, Any]:
    """The cells of the KL divergence of one column, by the column's number."""
    if not isinstance(measure, KL):
        return {}
    cuts, masses = divergence.cells(spec.make_target().columns[measure.k])
    return {str(measure.column): {"cuts": description.packed(cuts), "masses": description.packed(masses)}}


def poisson() -> dict[str, Any]:
    """The arrays that the KL divergence of a column needs in addition to its cells."""
    grid, terms = divergence.poisson_terms()
    return {"grid": description.packed(grid), "terms": description.packed(terms)}

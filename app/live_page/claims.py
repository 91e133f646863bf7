"""The data with which a live page checks a lesson's claims on its run: measures, goals, lengths and exact values."""

from dataclasses import asdict
from typing import Any

import numpy as np

from lessons.lesson import Claim, Step
from lessons.measures.base import Evidence, Measure
from lessons.measures.kl import KL
from samplers.accumulate import Statistics
from samplers.diagnostics import divergence, ks
from samplers.parameters import declared
from samplers.spec import RunSpec
from samplers.trace import Trace
from samplers.wasm import description

MEASURED = (
    "mean", "variance", "power", "probability", "quantile", "ks", "kl", "joint_kl", "tau", "cost", "rhat", "acceptance",
    "clipped", "diverged",
)  # fmt: skip
"""The measures that a live page computes, in ``measures.js``."""


def is_measured(claim: Claim) -> bool:
    """Whether a live page checks the claim on its run."""
    return claim.live and claim.measure.key in MEASURED


def described_claim(step: Step, place: int) -> dict[str, Any]:
    """A live claim as ``claims.js`` takes it: measure, goals, lengths, and the target's exact values."""
    claim = step.claims[place]
    assert step.spec is not None and step.quick_spec is not None
    measure, runs = claim.make_measure(), step.spec.runs()
    specs = [runs[number - 1] for number in claim.lanes]
    first, full = (max(spec.runs()[n - 1].n_steps for n in claim.lanes) for spec in (step.quick_spec, step.spec))
    return {
        "place": place,
        "measure": described_measure(measure),
        "lanes": [number - 1 for number in claim.lanes],
        "quantity": claim.quantity,
        "exact": [exact(measure, spec) for spec in specs],
        "perRoot": per_root(measure),
        "times": [float(spec.make_sampler().time_per_step) for spec in specs],
        "cells": cells(measure, specs[0]),
        "goal": asdict(claim.goal),
        "quick": asdict(claim.quick_goal),
        "first": first,
        "full": full,
    }


def exact(measure: Measure, spec: RunSpec) -> float | None:
    """A measure's value under the target distribution; None where it is unknown or depends on the draws."""
    target = spec.make_target()
    statistics = Statistics.empty(target.columns, 1, target.dim, target.planar)
    nothing = Trace(spec, target, statistics, None, 0, 0, 0, 0, 0.0, 0, 0, 0, None)
    with np.errstate(all="ignore"):
        found = measure.of(Evidence(nothing, np.zeros((1, 1, target.dim)))).exact
    return None if found is None or not np.isfinite(found) else float(found)


def described_measure(measure: Measure) -> dict[str, Any]:
    """A measure by its key, with the values of its parameters."""
    return {"key": measure.key, "values": {name: getattr(measure, name) for name, _ in declared(type(measure))}}


def per_root(measure: Measure) -> float | None:
    """The exact value times √n for n draws, where it is proportional to 1/√n; None otherwise."""
    return ks.KOLMOGOROV_MEAN if measure.key == "ks" else None


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

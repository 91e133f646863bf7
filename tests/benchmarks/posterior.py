"""The speed of a typed posterior, beside the same one written by hand."""

import time
from dataclasses import replace
from typing import Any

import numpy as np

from sgmcmc_lab.samplers.engine import Run
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.targets.logistic_regression import LogisticRegression
from sgmcmc_lab.samplers.targets.own import Table, keep
from tests.benchmarks.recipes import warm
from tests.benchmarks.timing import CHAINS, UNCOUNTED, Effort, Requirement, Work, in_turns, ratio_of

TYPED = {
    "parameters": "a, b",
    "prior": "normal_lpdf(a, 0, 3) + normal_lpdf(b, 0, 3)",
    "row": "bernoulli_logit_lpmf(kind, a*radius + b*texture)",
    "curve": "",
}
"""The model of the hand-written target, whose τ is 3."""
GRADIENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "minibatches of 10": ("minibatch", {"batch_size": 10}),
    "minibatches of 100": ("minibatch", {"batch_size": 100}),
    "the full gradient": ("full", {}),
}
SLOW = {"step_size": 1e-4}
"""A step that is stable with all data."""


def tumours() -> Table:
    """All data of the hand-written target, which is there while the caller holds it."""
    fit = LogisticRegression(items=569).fit()
    return keep(Table(("radius", "texture"), fit.data, "kind", np.asarray(fit.kinds, dtype=float)))


def posterior_requirements(effort: Effort) -> list[Requirement]:
    """The promises of typed posteriors: their speed over that of the hand-written target, with the same data."""
    table = tumours()
    out = []
    for n in CHAINS:
        for what, (key, params) in GRADIENTS.items():
            chosen: dict[str, Any] = {"sampler_params": SLOW, "gradient_params": params, "n_chains": n}
            specs = {
                "by hand": RunSpec.of("logistic_regression", "sgld", key, target_params={"items": 569}, **chosen),
                "typed": RunSpec.of("posterior", "sgld", key, target_params={**TYPED, "table": table.key}, **chosen),
            }
            works: dict[str, tuple[Work, int]] = {
                name: (warm(Run(replace(spec, burn_in=UNCOUNTED))), n) for name, spec in specs.items()
            }
            rates = in_turns(works, effort, time.thread_time)
            title = (
                f"SGLD on a typed logistic regression, {what}, over the one by hand, {n} chain{'s' if n > 1 else ''}"
            )
            out.append(Requirement(title, ratio_of(rates, "typed", "by hand"), 0.8))
    return out

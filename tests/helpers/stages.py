"""The stages on which views are compared, number for number: experiments of three lanes, and what is recorded of a
column.
"""

import numpy as np

from sgmcmc_lab.samplers import Experiment

NAMES = ("alpha", "beta", "gamma")
"""The lanes' titles; none is part of anything else that a view says."""
PLAIN = {"layout": "theta"}
ON_A_LINE = [
    {**PLAIN, "diffusion_entries": ("1",)},
    {**PLAIN, "diffusion_entries": ("1+theta^2",), "gamma": False},
    {**PLAIN, "diffusion_entries": ("2",), "step_size": 0.02},
]
# The target, the samplers, the axis, the coordinate.
STAGES = {
    "plane": ("correlated_gaussian", ["sgld", "hmc", "sghmc"], "gradients", 1),
    "line": ("double_well", ["hmc", "exact", "sghmc"], "seconds", 0),
    "simplex": ("sparse_dirichlet", ["scir", ("cir", {"step_size": 0.5}), ("scir", {"step_size": 1.0})], "steps", 4),
    "circle": ("circle_mixture", ["sggmc", "gmc", "geodesic_sgld"], "gradients", 0),
    "sphere": ("fisher", ["gsgnht", "gmc", "sggmc"], "gradients", 2),
    "recipes on a line": ("double_well", [("recipe", each) for each in ON_A_LINE], "steps", 0),
    "recipes among others": ("double_well", ["sgld", ("recipe", ON_A_LINE[1]), ("recipe", ON_A_LINE[0])], "steps", 0),
}


def experiment_of(name):
    """The experiment of a stage."""
    target, samplers, *_ = STAGES[name]
    lanes = [
        {"sampler": {"key": s, "params": {}} if isinstance(s, str) else {"key": s[0], "params": s[1]}} for s in samplers
    ]
    return Experiment.from_dict({"target": target, "lanes": lanes, "n_chains": 4, "seed": 3})


def summary(column):
    """How many numbers there are, and three sums of them; the last knows their order."""
    x = np.asarray(column, dtype=float)
    return [len(x), *(float(f"{y:.10g}") for y in (x.sum(), np.abs(x).sum(), (x * np.cos(np.arange(len(x)))).sum()))]

"""Why a run does not agree with its target, in a sentence that is measured on the run itself.

Particles are few points; transitions may diverge; chains may have visited a part of the distribution only, or have not
mixed; chains that have mixed have a bias, of the step size or of the gradient's noise. A sampler may also measure a
bias of its own at the draws of a run that agrees.
"""

from math import isfinite, sqrt

import numpy as np

from sgmcmc_lab.samplers import convergence, kolmogorov
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.diagnostics import ks
from sgmcmc_lab.samplers.engine import Run
from sgmcmc_lab.samplers.running_statistics import N_BINS, Statistics

FAR = 0.1
"""The mean KS distance from which on a run does not agree with its target."""
FIRST = 2000
"""Steps of each chain before there is something to be said: fewer, of chains that start at one place, are far from most
targets."""
VISITED = 0.9
"""Chains that have visited less of the probability are in a part of the distribution."""
UNMIXED = 1.1
"""The R-hat of chains that have not mixed."""
OFTEN = 0.1
"""The share of divergent transitions from which on they are the reason."""
ENOUGH = 50
"""Particles with which SVGD stands for most targets."""
LAST = 64
"""Draws of each chain at which a sampler measures its own bias."""
_MERGED = 32
"""Bins of the histogram that count as one place."""


def visited(statistics: Statistics, k: int) -> float:
    """The exact probability of the places, of column ``k``, where a draw has been."""
    _, cdf = ks.edges_and_cdf(statistics.columns[k])
    counts, ends = statistics.counts(k), cdf[::_MERGED]
    inside = counts[1:-1].reshape(N_BINS // _MERGED, _MERGED).sum(axis=1)
    masses = np.diff(ends, prepend=0.0, append=1.0)
    return float(masses[np.concatenate([counts[:1], inside, counts[-1:]]) > 0].sum())


def doubt(run: Run) -> str:
    """Why the draws do not agree with the target, in a sentence; empty where they agree or nothing is known.

    Of draws that agree, the sampler's own sentence on its bias.
    """
    statistics, target = run.statistics, run.target
    if run.counted < FIRST or run.divergence is not None:
        return ""
    distances = {k: ks.distance(statistics, k) for k in target.ks_columns}
    mean = float(np.mean(list(distances.values())))
    # Without exact answers it is no number.
    if not isfinite(mean):
        return ""
    if mean < FAR:
        draws = statistics.tail(LAST)
        return run.sampler.bias_at(target, draws.reshape(-1, draws.shape[-1]))
    worst = max(distances, key=lambda k: distances[k])
    said = f"KS {mean:.2g}: {_reason(run, worst, distances[worst])}"
    return f"{said}. {run.sampler.known_bias}" if run.sampler.known_bias else f"{said}."


def _reason(run: Run, k: int, distance: float) -> str:
    statistics, name = run.statistics, run.target.columns[k].name
    n, what = statistics.n_chains, "particles" if run.interacting else "chains"
    if run.interacting and n < ENOUGH:
        return f"{n} particles are {n} points, however many steps they make; {ENOUGH} stand for the target more closely"
    diverged = run.counts[jit.DIVERGED] / max(statistics.n_draws, 1) if run.sampler.diverges else 0.0
    if diverged >= OFTEN:
        return f"{diverged:.0%} of the transitions diverged; with a smaller step, fewer do"
    if (share := visited(statistics, k)) < VISITED:
        return f"the {what} have visited {share:.0%} of the probability of {name}"
    if run.interacting:
        return f"{n} particles are {n} points, however many steps they make, and too close together"
    found = convergence.summary(statistics.history(), k)
    if not isfinite(found.ess_bulk):
        return f"{name} has not moved"
    if found.rhat > UNMIXED or distance < 2 * kolmogorov.KOLMOGOROV_MEAN / sqrt(found.ess_bulk):
        rhat = [f"R̂ {found.rhat:.2f}"] if isfinite(found.rhat) else []
        # Weighted draws have no ESS.
        ess = [] if statistics.weighted else [f"{found.ess_bulk:.0f} effective draws"]
        return ": ".join(filter(None, [f"{name} has not mixed", ", ".join(rhat + ess)]))
    noise = run.gradient.noise()
    noisy = noise.variance > 0 or noise.batch_size > 0
    cause = "step size, or the noise of its gradient," if noisy else "step size"
    return f"the chains agree with each other, but the {cause} biases {name}; a smaller step has less bias"

"""SCIR on a Dirichlet posterior that is put together otherwise.

The command is ``python -m sgmcmc_lab.lessons.papers.baker_2018_section_2_3``.

Baker et al. 2018 say that their process serves most constructions that use Dirichlet distributions (section 2.3), and
use two: gammas divided by their sum (Algorithm 1), and sticks (Sethuraman 1994), whose betas are γ₀/(γ₀ + γ₁) of two
gammas each, as in their mixture (Algorithm 2). Both have the same posterior and the same minibatches here; the table
has the mean KS distance of their section 2.2, at the best step size of the grid.
"""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import special

from sgmcmc_lab.samplers.console import Parser
from sgmcmc_lab.samplers.parameters import SpecError

Array = NDArray[np.floating[Any]]

COUNTS = {"sparse": np.array([800, 100, 100] + 7 * [0]), "dense": np.full(10, 100)}
ALPHA = 0.1
STEPS = (1.0, 0.5, 0.1, 0.05, 0.01)
BATCHES = (1, 10, 100)
N_STEPS = 1000
"""Kept, and as many before them, as in section 2.2."""
CONSTRUCTIONS = ("gammas", "sticks", "sticks, smallest first")


def transition(rng: Generator, theta: Array, shape: Array, step: float) -> Array:
    """The CIR process's exact transition over a time ``step``, with the stationary distribution Gamma(shape, 1)."""
    keep = np.exp(-step)
    return np.asarray((1 - keep) * rng.standard_gamma(shape + rng.poisson(theta * keep / (1 - keep))))


def remainders(shape: Array) -> Array:
    """Σ_{l>j} of shapes (..., d), for all j but the last, (..., d − 1); the sums run from the end."""
    return np.cumsum(shape[..., ::-1], axis=-1)[..., ::-1][..., 1:]


def draws(
    construction: str, counts: NDArray[np.int64], batch_size: int | None, step: float, chains: int, rng: Generator
) -> Array:
    """Odds ω_j / Σ_{l>j} ω_l, (steps, chains, d − 1), after as many steps, by minibatches with replacement.

    Without a batch size all data count. The chains start at exact draws.
    Sticks that begin with the smallest are put back into the order of the data.
    """
    sticks, n = construction != "gammas", counts.sum()
    order = np.argsort(counts, kind="stable") if construction == CONSTRUCTIONS[2] else np.arange(len(counts))
    counts = counts[order]

    def pairs(a: Array) -> Array:
        return np.concatenate([a[..., :-1], remainders(a)], axis=-1) if sticks else a

    first = pairs(ALPHA + counts)
    theta: Array = rng.standard_gamma(np.broadcast_to(first, (chains, first.size)))
    out = np.empty((N_STEPS, chains, len(counts) - 1))
    for t in range(-N_STEPS, N_STEPS):
        estimate = counts if batch_size is None else n / batch_size * rng.multinomial(batch_size, counts / n, chains)
        theta = transition(rng, theta, np.broadcast_to(pairs(ALPHA + estimate), theta.shape), step)
        if t >= 0:
            out[t] = odds(theta, order, sticks)
    return out


def odds(theta: Array, order: NDArray[np.int64], sticks: bool) -> Array:
    """ω_j / Σ_{l>j} ω_l in the order of the data. A value that underflows counts as 1e-300."""
    if not sticks:
        omega = np.maximum(theta, 1e-300)
    else:
        one, rest = np.maximum(np.split(theta, 2, axis=-1), 1e-300)
        # ω_j = v_j Π_{l<j} (1 − v_l), by logs; the last has all that is left.
        left = np.concatenate(
            [np.zeros((len(theta), 1)), np.cumsum(np.log(rest) - np.log(one + rest), axis=-1)], axis=-1
        )
        logs = left + np.concatenate([np.log(one) - np.log(one + rest), np.zeros((len(theta), 1))], axis=-1)
        omega = np.empty_like(logs)
        omega[:, order] = np.maximum(np.exp(logs), 1e-300)
    return omega[:, :-1] / remainders(omega)


def score(of: Array, counts: NDArray[np.int64]) -> Array:
    """The mean KS distance of each chain, (chains,), by the transform of Rosenblatt: beta CDFs of the shares."""
    a = ALPHA + counts
    u = np.sort(special.betainc(a[:-1], remainders(a), of / (1 + of)), axis=0)
    grid = np.arange(len(u) + 1)[:, None, None] / len(u)
    return np.asarray(np.maximum((grid[1:] - u).max(axis=0), (u - grid[:-1]).max(axis=0)).mean(axis=-1))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table. Exit code 2 for bad input, said in one sentence."""
    parser = Parser(prog="python -m sgmcmc_lab.lessons.papers.baker_2018_section_2_3", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="how many chains, 5 unless told")
    options = parser.parse_args(arguments)
    if not 2 <= options.seeds <= 100:
        print(f"error: {SpecError('seeds', options.seeds, 'allowed is a whole number from 2 to 100')}", file=sys.stderr)
        return 2
    print("mean KS distance at the best h, ± the standard deviation over seeds")
    for name, counts in COUNTS.items():
        for n in BATCHES:
            print(f"{name}, n = {n}", end="")
            for construction in CONSTRUCTIONS:
                rng = np.random.default_rng(1)
                found = {h: score(draws(construction, counts, n, h, options.seeds, rng), counts) for h in STEPS}
                h = min(found, key=lambda h: found[h].mean())
                print(f"; {construction}: {found[h].mean():.3f} ± {found[h].std(ddof=1):.3f} (h = {h:g})", end="")
            print(flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

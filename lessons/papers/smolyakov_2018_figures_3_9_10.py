"""The halves of a sweep, compared at equal time.

The command is ``python -m sgmcmc_lab.lessons.papers.smolyakov_2018_figures_3_9_10``.

The weights w_z and w_θ are measured, every batch size of Smolyakov, Liu & Fisher is tried (their Algorithm 1), and then
chains with the chosen size, one latent variable and all of them are compared in equal time: the squared error of their
means (Figures 3 and 9) and R-hat of three of them (Figure 10), from the same start. Times are of this process's own
work, and no draw depends on them but by how many there are.
"""

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import SFC64, Generator, SeedSequence

from sgmcmc_lab.lessons.papers.trials import Trials, rhat
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.console import Parser
from sgmcmc_lab.samplers.files import FileError
from sgmcmc_lab.samplers.models.batch_size import block_length, tau_int
from sgmcmc_lab.samplers.models.sparse.minibatch_gibbs import MinibatchGibbs, sizes_of
from sgmcmc_lab.samplers.models.sparse.model import Sparse
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.targets.base import Array
from sgmcmc_lab.samplers.targets.own import Table

CASES: Mapping[str, dict[str, Any]] = {
    "strong": {},
    "weak": {"strength": 0.1, "shrinkage": 30.0},
    "diabetes": {"data": "diabetes", "shrinkage": 5.0},
}
"""Made-up data as in the paper; weak effects under a strong prior; and a lasso."""
TRIAL, CHAINS, SWEEPS = 20_000, 48, 300
"""Sweeps with all that the trial of a size takes as long as, chains of each size, and sweeps with all that a chain
takes as long as."""
PARTS = (0.03, 0.1, 0.3, 1.0)
"""The error is taken after these parts of the time."""
GROUP = 3
"""Chains whose R-hat is taken, as in the paper."""


@dataclass(frozen=True)
class Row:
    """One batch size."""

    size: int
    sweeps: int
    """In the time of :data:`SWEEPS` with all."""
    errors: Array
    """(chains, PARTS): the squared error of the mean over the second half so far, in posterior variances."""
    rhat: Array
    """(PARTS,): the median over groups of the largest over coefficients."""

    def against(self, first: "Row") -> tuple[float, float]:
        """The error at the end over that of another size, and its standard error."""
        a, b = self.errors[:, -1], first.errors[:, -1]
        spread = sum(x.var(ddof=1) / len(x) / x.mean() ** 2 for x in (a, b))
        return float(a.mean() / b.mean()), float(a.mean() / b.mean() * np.sqrt(spread))


@dataclass(frozen=True)
class Comparison:
    """The trials, and what came of the choice."""

    trials: Trials
    """τ of w, on average over the coefficients with their posterior variances all alike."""
    rows: tuple[Row, ...]
    """The chosen size first."""


def draws_of(model: Sparse, size: int, n: int, seed: SeedSequence) -> tuple[Array, float]:
    """The w of ``n`` sweeps from the common start, (n, d), and the seconds that they took."""
    method, rng = MinibatchGibbs(), Generator(SFC64(seed))
    jit.prepare(method.compiled)
    state = method.start(model, rng)
    began = time.process_time()
    out = method.sweep(model, state, size, n, rng)
    return out, time.process_time() - began


def seconds_of(model: Sparse, size: int, cost: float) -> float:
    """The time of one sweep: the fastest of five runs, for other work on the machine only adds to it."""
    n = max(int(cost / (size + 10)), 20)
    return min(draws_of(model, size, n, SeedSequence(0))[1] for _ in range(5)) / n


def compare(model: Sparse, trial: int = TRIAL, chains: int = CHAINS, sweeps: int = SWEEPS, seed: int = 1) -> Comparison:
    """The chosen size, one latent variable and all, in the time that all take for so many sweeps."""
    n, tried, runs = model.n_data, *SeedSequence(seed).spawn(2)
    sizes = sizes_of(n)
    seconds = np.array([seconds_of(model, int(m), 100 * (n + 10)) for m in sizes])
    taus = []
    for size, each, own in zip(sizes, seconds, tried.spawn(len(sizes)), strict=True):
        count = int(trial * seconds[0] / each)
        draws = draws_of(model, int(size), count + count // 10, own)[0][count // 10 :]
        taus.append(np.mean([tau_int(x, block_length(int(size), n)) for x in draws.T]))
    trials, rows = Trials(sizes, np.array(taus), seconds), []
    for size, own in zip(dict.fromkeys((trials.chosen, 1, n)), runs.spawn(3), strict=False):
        count = int(sweeps * seconds[0] / trials.seconds_of(size))
        stops = [max(int(part * count), 4) for part in PARTS]
        errors, rhats, group = [], [], []
        for one in own.spawn(chains):
            draws = draws_of(model, size, count, one)[0]
            means = [draws[stop // 2 : stop].mean(axis=0) for stop in stops]
            errors.append([((mean - model.reference.mean) ** 2 / model.reference.variance).mean() for mean in means])
            group.append(draws)
            if len(group) == GROUP:
                together = np.array(group)
                rhats.append([rhat(together[:, stop // 2 : stop]) for stop in stops])
                group = []
        rows.append(Row(size, count, np.array(errors), np.median(rhats, axis=0)))
    return Comparison(trials, tuple(rows))


def as_text(name: str, model: Sparse, found: Comparison) -> str:
    """The trials and the comparison."""
    local, overall = found.trials.weights
    first = found.rows[0]
    budget = first.sweeps * found.trials.seconds_of(first.size)
    heads = "".join(f"{f'{1e3 * part * budget:.3g} ms':>11}" for part in PARTS)
    lines = [
        f"{name}: {len(model.x):,} data, {model.x.shape[1]} coefficients, {model.n_data:,} latent variables, λ = {model.shrinkage:g}; "
        f"w_z = {1e9 * local:.3g} ns, w_θ/w_z = {overall / local:.3g}; {model.reference.how}",
        str(found.trials),
        "  squared error of the means in posterior variances | R̂ of three chains, from w = 0 after",
        f"  {'m':>5} {heads}  |{heads}    error at the end over the chosen size's",
    ]
    for row in found.rows:
        ratio, error = row.against(first)
        last = "1" if row is first else f"{ratio:.2f} ± {error:.2f}"
        lines.append(
            f"  {row.size:5} "
            + "".join(f"{x:11.2g}" for x in row.errors.mean(axis=0))
            + "  |"
            + "".join(f"{x:11.3f}" for x in row.rhat)
            + f"    {last}"
        )
    return "\n".join(lines)


def prostate(path: Path) -> Table:
    """The prostate data of Stamey et al. 1989 in the form of Hastie, Tibshirani & Friedman."""
    header = path.read_text(encoding="utf-8").splitlines()[0].split()
    rows = np.loadtxt(path, skiprows=1, usecols=range(1, 10))
    return Table(tuple(header[:8]), rows[:, :8], header[8], rows[:, 8])


def of_path(path: Path) -> Sparse:
    """A lasso on a CSV file, or on ``prostate.data``."""
    if path.name == "prostate.data":
        return Sparse(prostate(path), data="uploaded", shrinkage=5.0)
    return Sparse(Sparse.read({path.name: path.read_bytes()}), data="uploaded", shrinkage=5.0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison and print its tables."""
    parser = Parser(prog="python -m sgmcmc_lab.lessons.papers.smolyakov_2018_figures_3_9_10", description=__doc__)
    parser.add_argument(
        "cases", nargs="*", default=["strong", "weak"], metavar="case", help=f"{', '.join(CASES)}, or a CSV file"
    )
    parser.add_argument(
        "--trial", type=int, default=TRIAL, help="sweeps with all that the trial of a size takes as long as"
    )
    parser.add_argument("--sweeps", type=int, default=SWEEPS, help="sweeps with all that a chain takes as long as")
    parser.add_argument("--chains", type=int, default=CHAINS)
    options = parser.parse_args(arguments)
    for name in options.cases:
        try:
            model = Sparse(**CASES[name]) if name in CASES else of_path(Path(name))
        except (SpecError, FileError, OSError) as error:
            parser.error(str(error))
        found = compare(model, options.trial, options.chains, options.sweeps)
        print(as_text(name, model, found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The paper's Figures 4 to 6 in numbers.

The command is ``python -m sgmcmc_lab.lessons.papers.knowles_2015_figures_4_to_6``.

Figure 4: Amari errors of loadings and processor times on made-up data, by the rows N. Figure 5: −log density of a
held-out row by N and by processor time, on wines and digits or on a CSV file of one's own, because the CyTOF cells of
the paper are not available. Figure 6: estimated covariances of these from 200 rows, and how far they are from that of
the held-out rows. ± is a standard deviation over seeds, each of which has rows of its own. The pictures are drawn by
:mod:`lessons.papers.pictures`.
"""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from numpy.random import SFC64, Generator

from sgmcmc_lab.samplers.console import Parser
from sgmcmc_lab.samplers.files import FileError, read_file
from sgmcmc_lab.samplers.models import METHODS
from sgmcmc_lab.samplers.models.factors.amari import amari
from sgmcmc_lab.samplers.models.factors.baselines import empirical, sparse_pca, sparse_pca_covariance
from sgmcmc_lab.samplers.models.factors.data import BUILT_IN, MADE_FACTORS, Rows, read
from sgmcmc_lab.samplers.models.factors.model import Factors
from sgmcmc_lab.samplers.models.run import ModelChain
from sgmcmc_lab.samplers.parameters import UPLOADED, SpecError
from sgmcmc_lab.samplers.targets.base import Array
from sgmcmc_lab.samplers.targets.own import MAX_BYTES

SEEDS, STEPS = 5, 1000
MADE_ROWS = 10, 20, 100, 1000, 10_000
REAL_ROWS = 20, 50, 100, 200, 1000
REAL_STEPS, REAL_RHO, REAL_SWEEPS = 3000, 0.9, 500
"""The steps and ρ of gamma SGVB, as in the paper for CyTOF, and the sweeps of Gibbs."""
COVARIANCE_ROWS = 200
LOOKS = 16
"""Scores on the way of a run, evenly spaced on a log axis of its steps."""
MADE_METHODS = {"factors_sgvb": "gamma SGVB", "factors_norm_sgvb": "NormSGVB", "factors_gibbs": "NSFA"}
"""The methods of Figure 4, which also has sparse PCA."""
REAL_METHODS = "gamma SGVB", "NSFA", "sparse PCA", "Ledoit–Wolf", "rows' covariance"
SHOWN = "held-out rows", "gamma SGVB", "Ledoit–Wolf", "rows' covariance"
"""The covariances of Figure 6."""
PAPERS_CODE = {20: 0.08, 100: 0.026, 1000: 0.014, 10_000: 0.015}
"""By N: the Amari error of one run of the paper's released code. The paper has its own in a picture only."""
RANDOM_LOADINGS = 0.36
"""The Amari error of loadings of the same distribution that have nothing to do with the true ones."""
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Held:
    """The methods' predictions of held-out rows, from some number of rows."""

    scores: Array
    """−log density of a held-out row in the end, (seeds, REAL_METHODS)."""
    seconds: Array
    """The processor times until then, (seeds, REAL_METHODS)."""
    paths: Array
    """The processor times and −log densities on the way, of gamma SGVB and NSFA, (seeds, 2, LOOKS, 2)."""


@dataclass
class Found:
    """The data of the three figures."""

    made: dict[int, Array]
    """By N: see :func:`made`."""
    real: dict[str, dict[int, Held]] = field(default_factory=dict)
    """By data and N."""
    covariances: dict[str, Array] = field(default_factory=dict)
    """By data: those of the first seed, (SHOWN, D, D)."""


def fit(
    model: Factors, key: str, n_steps: int, seed: int, rho: float = 0.95, looks: int = 0
) -> tuple[ModelChain, float, Array]:
    """A run, its processor time in seconds, and times and −scores on the way, (looks, 2); scoring takes no time."""
    chosen = METHODS[key]() if key == "factors_gibbs" else METHODS[key](rho=rho)
    chain = ModelChain(model, chosen, Generator(SFC64(seed)))
    at, path, spent = np.geomspace(1, n_steps, looks).round(), [], 0.0
    for step in range(1, n_steps + 1):
        began = time.process_time()
        chain.method.advance(model, chain.state, chain.rng)
        spent += time.process_time() - began
        # With few steps, several looks fall on one.
        path += [(spent, -chain.method.score(model, chain.state))] * int((at == step).sum())
    return chain, spent, np.array(path)


def timed(make: Callable[[], Array]) -> tuple[Array, float]:
    """Its result, and the processor time that it took."""
    began = time.process_time()
    made = make()
    return made, time.process_time() - began


def made(rows: Sequence[int], seeds: Sequence[int], n_steps: int, tell: Tell) -> dict[int, Array]:
    """By N: Amari errors of gamma SGVB, NormSGVB, NSFA and sparse PCA, then the times of the four, (seeds, 8)."""
    out = {}
    for n in rows:
        found = []
        for seed in seeds:
            model = Factors(rows=n, prior="fixed", noise="known", n_factors=MADE_FACTORS, split_seed=seed)
            truth, errors, seconds = np.asarray(model.truth), [], []
            for key in MADE_METHODS:
                chain, took, _ = fit(model, key, n_steps, seed)
                errors.append(amari(chain.snapshot()["W"], truth))
                seconds.append(took)
            began = time.process_time()
            errors.append(sparse_pca(model, MADE_FACTORS)[1])
            found.append([*errors, *seconds, time.process_time() - began])
        out[n] = np.array(found)
        tell(f"made-up data, N = {n:,}")
    return out


def real(
    data: str, own: Rows | None, rows: Sequence[int], seeds: Sequence[int], n_steps: int, tell: Tell
) -> dict[int, Held]:
    """By N: how well each method foresees held-out rows."""
    out: dict[int, Held] = {}
    for most in rows:
        models = [Factors(own, data=data, rows=most, split_seed=seed) for seed in seeds]
        if models[0].n_data in out:
            continue
        scores, seconds, paths = [], [], []
        for seed, model in zip(seeds, models, strict=True):
            ours = [
                fit(model, "factors_sgvb", n_steps, seed, REAL_RHO, LOOKS),
                fit(model, "factors_gibbs", REAL_SWEEPS, seed, looks=LOOKS),
            ]
            others = [
                timed(partial(sparse_pca_covariance, model)),
                timed(partial(getattr, model, "shrunk")),
                timed(partial(empirical, model)),
            ]
            scores.append([*(path[-1, 1] for _, _, path in ours), *(-model.score(c) for c, _ in others)])
            seconds.append([took for _, took, *_ in ours] + [took for _, took in others])
            paths.append([path for _, _, path in ours])
        out[models[0].n_data] = Held(np.array(scores), np.array(seconds), np.array(paths))
        tell(f"{data}, N = {models[0].n_data:,}")
    return out


def covariances(data: str, own: Rows | None, seeds: Sequence[int], n_steps: int) -> tuple[Array, Array]:
    """Gamma SGVB, Ledoit–Wolf and the rows' covariance: the distance ‖Ĉ − C‖/‖C‖ from that of the held-out rows, and
    the size of the off-diagonal part, Σ|Ĉ| over that of the held-out rows, (seeds, 3, 2); and all four of the first
    seed, (SHOWN, D, D).
    """
    out, first = [], list[Array]()
    for seed in seeds:
        model = Factors(own, data=data, rows=COVARIANCE_ROWS, split_seed=seed)
        held = model.held_scatter / model.n_held
        beside = ~np.eye(len(held), dtype=bool)
        chain, *_ = fit(model, "factors_sgvb", n_steps, seed, REAL_RHO)
        each = chain.method.snapshot(model, chain.state)["covariance"], model.shrunk, empirical(model)
        first = first or [held, *each]
        sizes = np.abs(held[beside]).sum()
        out.append([[np.linalg.norm(c - held) / np.linalg.norm(held), np.abs(c[beside]).sum() / sizes] for c in each])
    return np.array(out), np.array(first)


def with_error(values: Array, digits: int) -> str:
    """The mean and the standard deviation over seeds."""
    if not np.isfinite(values).all() or np.abs(values).max() > 1e5:
        return "no density"
    spread = f" ± {values.std(ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{values.mean():.{digits}f}{spread}"


def as_text(title: str, names: Sequence[str], rows: dict[int, Array], digits: Sequence[int]) -> str:
    """One table, a row for each N."""
    lines = [title, f"{'N':>7}" + "".join(f"{name:>18}" for name in names)]
    for n, values in rows.items():
        cells = "".join(f"{with_error(column, d):>18}" for column, d in zip(values.T, digits, strict=True))
        lines.append(f"{n:7,}{cells}")
    return "\n".join(lines)


def measure(arguments: Sequence[str] | None = None) -> Found:
    """Measure and print what the command line asks for. Raises :class:`SpecError` and :class:`FileError`."""
    parser = Parser(prog="python -m sgmcmc_lab.lessons.papers.knowles_2015_figures_4_to_6", description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="a CSV file in place of wines and digits")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--steps", type=int, default=STEPS, help="of each method on made-up data")
    parser.add_argument("--real-steps", type=int, default=REAL_STEPS, help="of gamma SGVB on other data")
    parser.add_argument("--most-rows", type=int, default=MADE_ROWS[-1], help="leave out larger N")
    options = parser.parse_args(arguments)

    def tell(what: str) -> None:
        print(what, file=sys.stderr, flush=True)

    for name, low, most in (("seeds", 1, 100), ("steps", 1, 10**6), ("real_steps", 1, 10**6), ("most_rows", 10, 10**4)):
        if not low <= getattr(options, name) <= most:
            raise SpecError(name, getattr(options, name), f"allowed is a whole number from {low} to {most:,}")
    own = None
    if options.file is not None:
        try:
            own = read({options.file.name: read_file(options.file, MAX_BYTES)})
        except OSError as error:
            raise SpecError("FILE", options.file.name, (error.strerror or str(error)).lower()) from None
    seeds = range(1, options.seeds + 1)
    small = [n for n in MADE_ROWS if n <= options.most_rows]
    found = Found(made(small, seeds, options.steps, tell))
    names = *MADE_METHODS.values(), "sparse PCA"
    title = "Figure 4: Amari error and processor time, made-up data"
    print(as_text(title, (*names, *(["s"] * len(names))), found.made, (3, 3, 3, 3, 2, 2, 2, 2)))
    told = ", ".join(f"{error} at N = {n:,}" for n, error in PAPERS_CODE.items())
    print(f"one run of the paper's code: {told}; random loadings: {RANDOM_LOADINGS}\n")
    sources = [UPLOADED] if own is not None else list(BUILT_IN)
    for data in sources:
        few = [n for n in REAL_ROWS if n <= options.most_rows]
        found.real[data] = real(data, own, few, seeds, options.real_steps, tell)
        scores, seconds = (
            {n: getattr(held, what) for n, held in found.real[data].items()} for what in ("scores", "seconds")
        )
        print(as_text(f"Figure 5: −log density of a held-out row, {data}", REAL_METHODS, scores, (2,) * 5))
        print(as_text("its processor time, s", REAL_METHODS, seconds, (3,) * 5), "\n")
    for data in sources:
        beside, found.covariances[data] = covariances(data, own, seeds, options.real_steps)
        print(f"Figure 6: covariance of {data} from up to {COVARIANCE_ROWS} rows beside that of the held-out rows")
        for k, name in enumerate(SHOWN[1:]):
            print(
                f"{name:18}distance {with_error(beside[:, k, 0], 2)}, beside the diagonal {with_error(beside[:, k, 1], 2)}"
            )
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables. Exit code 2 for bad input, said in one sentence."""
    try:
        measure(arguments)
    except (FileError, SpecError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The paper's Figures 4 to 6 in numbers: ``python -m samplers.models.factors.compare``.

Figure 4: Amari errors of loadings and processor times on made-up data, by the rows N. Figure 5: −log density of a
held-out row by N, on wines and digits or on a CSV file of one's own, for the CyTOF cells of the paper cannot be had.
Figure 6: how far estimated covariances of digits are from that of the held-out rows. ± is a standard deviation over
seeds, each of which has rows of its own.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.random import SFC64, Generator

from samplers.files import read_file
from samplers.models import METHODS
from samplers.models.base import UPLOADED
from samplers.models.factors.amari import amari
from samplers.models.factors.baselines import empirical, sparse_pca
from samplers.models.factors.data import BUILT_IN, MADE_FACTORS, Rows, read
from samplers.models.factors.model import Factors
from samplers.models.run import ModelChain
from samplers.parameters import SpecError
from samplers.targets.base import Array
from samplers.targets.own import MAX_BYTES

SEEDS, STEPS = 5, 1000
MADE_ROWS = 10, 20, 100, 1000, 10_000
REAL_ROWS = 20, 50, 100, 200, 1000
REAL_STEPS, REAL_RHO, REAL_SWEEPS = 3000, 0.9, 500
"""Of gamma SGVB, as the paper has them for CyTOF, and of Gibbs."""
COVARIANCE_ROWS = 200
Tell = Callable[[str], None]


def fit(model: Factors, key: str, n_steps: int, seed: int, rho: float = 0.95) -> tuple[ModelChain, float]:
    """A run, and its processor time in seconds."""
    chosen = METHODS[key]() if key == "factors_gibbs" else METHODS[key](rho=rho)
    chain = ModelChain(model, chosen, Generator(SFC64(seed)))
    began = time.process_time()
    for _ in range(n_steps):
        chain.method.advance(model, chain.state, chain.rng)
    return chain, time.process_time() - began


def made(rows: Sequence[int], seeds: Sequence[int], n_steps: int, tell: Tell) -> dict[int, Array]:
    """By N: Amari errors of gamma SGVB, NSFA and sparse PCA, then the processor times of the three, (seeds, 6)."""
    out = {}
    for n in rows:
        found = []
        for seed in seeds:
            model = Factors(rows=n, prior="fixed", noise="known", n_factors=MADE_FACTORS, split_seed=seed)
            truth, errors, seconds = np.asarray(model.truth), [], []
            for key in ("factors_sgvb", "factors_gibbs"):
                chain, took = fit(model, key, n_steps, seed)
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
) -> dict[int, Array]:
    """By N: −log density of a held-out row by gamma SGVB, NSFA, Ledoit–Wolf and the rows' covariance, (seeds, 4)."""
    out: dict[int, Array] = {}
    for most in rows:
        models = [Factors(own, data=data, rows=most, split_seed=seed) for seed in seeds]
        if models[0].n_data in out:
            continue
        found = []
        for seed, model in zip(seeds, models, strict=True):
            ours = [
                fit(model, "factors_sgvb", n_steps, seed, REAL_RHO)[0],
                fit(model, "factors_gibbs", REAL_SWEEPS, seed)[0],
            ]
            scores = [chain.method.score(model, chain.state) for chain in ours]
            found.append([*scores, model.score(model.shrunk), model.score(empirical(model))])
        out[models[0].n_data] = -np.array(found)
        tell(f"{data}, N = {models[0].n_data:,}")
    return out


def covariances(data: str, own: Rows | None, seeds: Sequence[int], n_steps: int) -> Array:
    """Of gamma SGVB, Ledoit–Wolf and the rows' covariance: the distance ‖Ĉ − C‖/‖C‖ from that of the held-out rows, and
    the size of what is beside the diagonal, Σ|Ĉ| over that of the held-out rows, (seeds, 3, 2).
    """
    out = []
    for seed in seeds:
        model = Factors(own, data=data, rows=COVARIANCE_ROWS, split_seed=seed)
        held = model.held_scatter / model.n_held
        beside = ~np.eye(len(held), dtype=bool)
        chain, _ = fit(model, "factors_sgvb", n_steps, seed, REAL_RHO)
        each = chain.method.snapshot(model, chain.state)["covariance"], model.shrunk, empirical(model)
        sizes = np.abs(held[beside]).sum()
        out.append([[np.linalg.norm(c - held) / np.linalg.norm(held), np.abs(c[beside]).sum() / sizes] for c in each])
    return np.array(out)


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


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the three tables. Exit code 2 for bad input, said in one sentence."""
    parser = argparse.ArgumentParser(prog="python -m samplers.models.factors.compare", description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="a CSV file in place of wines and digits")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--steps", type=int, default=STEPS, help="of each method on made-up data")
    parser.add_argument("--real-steps", type=int, default=REAL_STEPS, help="of gamma SGVB on other data")
    parser.add_argument("--most-rows", type=int, default=MADE_ROWS[-1], help="leave out larger N")
    options = parser.parse_args(arguments)

    def tell(what: str) -> None:
        print(what, file=sys.stderr, flush=True)

    try:
        for name, low, most in (
            ("seeds", 1, 100),
            ("steps", 1, 10**6),
            ("real_steps", 1, 10**6),
            ("most_rows", 10, 10**4),
        ):
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
        errors = made(small, seeds, options.steps, tell)
        names = "gamma SGVB", "NSFA", "sparse PCA", "s", "s", "s"
        print(
            as_text("Figure 4: Amari error and processor time, made-up data", names, errors, (3, 3, 3, 2, 2, 2)), "\n"
        )
        sources = [UPLOADED] if own is not None else list(BUILT_IN)
        for data in sources:
            few = [n for n in REAL_ROWS if n <= options.most_rows]
            found = real(data, own, few, seeds, options.real_steps, tell)
            four = "gamma SGVB", "NSFA", "Ledoit–Wolf", "rows' covariance"
            print(as_text(f"Figure 5: −log density of a held-out row, {data}", four, found, (2, 2, 2, 2)), "\n")
        beside = covariances(sources[-1], own, seeds, options.real_steps)
        print(f"Figure 6: covariance of {sources[-1]} from {COVARIANCE_ROWS} rows beside that of the held-out rows")
        for k, name in enumerate(("gamma SGVB", "Ledoit–Wolf", "rows' covariance")):
            print(
                f"{name:18}distance {with_error(beside[:, k, 0], 2)}, beside the diagonal {with_error(beside[:, k, 1], 2)}"
            )
    except SpecError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

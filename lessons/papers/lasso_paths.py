"""Coefficients against λ as a table, beside the lasso's.

The command is ``python -m sgmcmc_lab.lessons.papers.lasso_paths``.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from sgmcmc_lab.lessons.papers.smolyakov_2018_figures_3_9_10 import of_path
from sgmcmc_lab.samplers.console import Parser
from sgmcmc_lab.samplers.files import FileError
from sgmcmc_lab.samplers.models.sparse.model import Sparse
from sgmcmc_lab.samplers.models.sparse.paths import LAMBDAS, SWEEPS, Point, Posterior
from sgmcmc_lab.samplers.parameters import SpecError


def path(model: Sparse, shrinkages: Sequence[float] = LAMBDAS, sweeps: int = SWEEPS, seed: int = 1) -> list[Point]:
    """The posterior of a lasso at each λ. Raises :class:`~samplers.parameters.SpecError` for a probit lasso."""
    out = []
    for shrinkage in shrinkages:
        posterior = Posterior(model, shrinkage, sweeps, seed)
        posterior.advance(posterior.left)
        out.append(posterior.point())
    return out


def as_text(model: Sparse, points: Sequence[Point]) -> str:
    """A table for each λ's coefficients: median, 5 to 95 %, and the lasso."""
    lines = ["median (5 %, 95 %) | lasso", f"{'':>12}" + "".join(f"{f'λ = {p.shrinkage:g}':>35}" for p in points)]
    for k, name in enumerate(model.names):
        cells = (
            f"{p.quantiles[1, k]:6.3f} ({p.quantiles[0, k]:6.3f}, {p.quantiles[2, k]:6.3f}) |{p.lasso[k]:7.3f}"
            for p in points
        )
        lines.append(f"{name[:12]:>12}" + "".join(f"{cell:>35}" for cell in cells))
    lines.append(
        f"{'at 0':>12}" + "".join(f"{f'lasso: {int((p.lasso == 0).sum())} of {len(p.lasso)}':>35}" for p in points)
    )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = Parser(prog="python -m sgmcmc_lab.lessons.papers.lasso_paths", description=__doc__)
    parser.add_argument("path", nargs="?", type=Path, help="a CSV file, or prostate.data; by default the diabetes data")
    parser.add_argument("--shrinkage", type=float, nargs="+", default=LAMBDAS, metavar="λ")
    options = parser.parse_args(arguments)
    try:
        model = of_path(options.path) if options.path else Sparse(data="diabetes")
        print(as_text(model, path(model, options.shrinkage)))
    except (SpecError, FileError, OSError) as error:
        parser.error(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())

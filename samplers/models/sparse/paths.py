"""Coefficients of a sparse regression against λ, with credible bands, beside the lasso's.

The posterior mode of w at a fixed σ minimises ‖y − Xw‖²/2σ² + λ‖w‖₁/σ, which is scikit-learn's lasso with
α = λσ/N. Beside each posterior, in which σ is not fixed, stands the lasso at the σ that the
residuals of the posterior mean have.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import SFC64, Generator

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.models.sparse.gibbs import BlockedGibbs
from sgmcmc_lab.samplers.models.sparse.model import Sparse
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.targets.base import Array
from sgmcmc_lab.samplers.targets.lasso import coordinate_descent

LAMBDAS = (0.1, 1.0, 3.0, 10.0, 30.0, 100.0)
SWEEPS, BURN_IN = 20_000, 500
BAND = (0.05, 0.5, 0.95)


@dataclass(frozen=True)
class Point:
    """The coefficients at one λ."""

    shrinkage: float
    sd: float
    """σ by the residuals of the posterior mean of w, ‖y − Xw‖/√N."""
    quantiles: Array
    """(BAND, d)."""
    lasso: Array
    """The mode at that σ, (d,)."""


class Posterior:
    """The posterior of a lasso at one λ, by blocked Gibbs, some sweeps at a time.

    Raises :class:`~samplers.parameters.SpecError` for a probit lasso.
    """

    def __init__(self, model: Sparse, shrinkage: float, sweeps: int = SWEEPS, seed: int = 1):
        if model.probit:
            raise SpecError("model.data", model.data, "paths are of a lasso: diabetes, or a file")
        self.model = Sparse(model.uploaded, data=model.data, shrinkage=shrinkage)
        self._method, self._rng = BlockedGibbs(), Generator(SFC64(seed))
        jit.prepare(self._method.compiled)
        self._state = self._method.start(self.model, self._rng)
        self._draws: list[Array] = []
        self.left = BURN_IN + sweeps
        """Sweeps that are still to be made."""

    def advance(self, n: int) -> None:
        """So many more sweeps, or those that are left."""
        n = min(n, self.left)
        self._draws.append(self._method.sweep(self.model, self._state, self.model.n_data, n, self._rng))
        self.left -= n

    def point(self) -> Point:
        """The estimates from the sweeps after the burn-in."""
        at, draws = self.model, np.concatenate(self._draws)[BURN_IN:]
        sd = float(np.sqrt(((at.y - at.x @ draws.mean(axis=0)) ** 2).mean()))
        lasso = coordinate_descent(at.gram / sd**2, at.x.T @ at.y / sd**2, at.shrinkage / sd)
        return Point(float(at.shrinkage), sd, np.quantile(draws, BAND, axis=0), lasso)

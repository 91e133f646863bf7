"""A Poisson regression on counts: a posterior that falls far more steeply on one side than on the other."""

from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from sgmcmc_lab.samplers.parameters import Option, Real
from sgmcmc_lab.samplers.targets.base import Array, FirstSteps, Fit
from sgmcmc_lab.samplers.targets.glm import LARGEST, POISSON, GeneralisedLinear
from sgmcmc_lab.samplers.targets.tables import table

MEASURES = ("weight", "waist", "pulse")
"""The measurements of each man, in the order of the file."""


class PoissonRegression(GeneralisedLinear):
    """y_i ~ Poisson(e^{η_i}), η_i = θ₁ + θ₂x_i, with the prior θ ~ N(0, τ²I): U(θ) = Σ(e^{η_i} − y_iη_i) + ‖θ‖²/2τ².

    The data are 20 men of a fitness club (Linnerud): how many chin-ups each did, and one measurement of his body with
    mean 0 and standard deviation 1. The distribution is log-concave. On one side U grows exponentially, and a step
    that is too long there is thrown back farther than it came.
    """

    key = "poisson_regression"
    title = "Poisson regression"
    tex = r"U(\theta) = \sum_{i=1}^{N}\bigl(e^{\eta_i} - y_i\,\eta_i\bigr) + \frac{\lVert\theta\rVert^2}{2\tau^2},\quad \eta_i = \theta_1 + \theta_2 x_i"
    source = "McCullagh & Nelder 1989, chapter 6; data of Linnerud, from scikit-learn"
    family = POISSON
    # U″ is Σy = 189 in the direction of θ₁, and a minibatch of ten of the 20 data points has V ≈ 1000.
    first_steps = FirstSteps(moving=0.02, batch=0.002, friction=20.0, other=2e-4)

    measure = Option(
        default="waist",
        objects=list(MEASURES),
        label="Measurement",
        doc="The measurement of each man with coefficient θ₂.",
    )
    prior_sd = Real(
        3.0,
        bounds=(0.1, 10.0),
        log=True,
        tex=r"\tau",
        label="Prior τ",
        doc="The standard deviation of each coefficient before there are data. A small one shrinks them.",
    )

    @cached_property
    def rows(self) -> Array:
        """(x_i, y_i), (N, 2)."""
        measured, counts = club()
        return np.column_stack([measured[:, MEASURES.index(self.measure)], counts])

    @property
    def names(self) -> tuple[str, str]:
        return "θ₁ intercept", f"θ₂ {self.measure}"

    def fit(self) -> Fit:
        """The counts, and their mean e^{θ₁ + θ₂x}."""
        return Fit.of(
            self.rows,
            (self.measure, "chin-ups"),
            lambda theta, x: np.exp(theta[..., 0] + theta[..., 1] * x),
            formula={"kind": "exponential"},
        )

    def _log_means(self, theta: Array) -> Array:
        return np.asarray(theta[..., :1] + theta[..., 1:] * self.rows[:, 0])

    def energies(self, theta: Array) -> Array:
        log_means = self._log_means(theta)
        likelihood = np.exp(np.minimum(log_means, LARGEST)) - self.rows[:, 1] * log_means
        return np.asarray(likelihood.sum(axis=-1) + (theta**2).sum(axis=-1) / (2 * self.prior_sd**2))

    @property
    def _design(self) -> Array:
        """(1, x_i), (N, 2)."""
        return np.column_stack([np.ones(len(self.rows)), self.rows[:, 0]])

    def slope(self, theta: Array) -> Array:
        above = np.exp(np.minimum(self._log_means(theta), LARGEST)) - self.rows[:, 1]
        return np.asarray(self._design.T @ above + theta / self.prior_sd**2)

    def curvature(self, theta: Array) -> Array:
        means = np.exp(np.minimum(self._log_means(theta), LARGEST))
        return np.asarray((self._design.T * means) @ self._design + np.eye(2) / self.prior_sd**2)

    def start(self) -> Array:
        return np.array([2.0, 0.0])

    tried_at = ({"measure": "weight", "prior_sd": 0.1}, {"measure": "pulse", "prior_sd": 10.0})
    drawn_at = {"measure": "pulse", "prior_sd": 1.0}

    def textbook_slope(self, theta: Array, datum: int) -> Array:
        x, y = self.rows[datum]
        above = np.exp(theta[0] + theta[1] * x) - y
        return np.asarray(theta / self.prior_sd**2 + len(self.rows) * above * np.array([1.0, x]))

    def textbook_energy(self, theta: Array, datum: int) -> float:
        x, y = self.rows[datum]
        eta = theta[0] + theta[1] * x
        return float(theta @ theta / (2 * self.prior_sd**2) + len(self.rows) * (np.exp(eta) - y * eta))

    def textbook_symbols(self, theta: Array) -> dict[str, Any]:
        return {"N": len(self.rows), "x": self.rows[:, 0], "y": self.rows[:, 1]}


@lru_cache(maxsize=1)
def club() -> tuple[Array, Array]:
    """The three measurements of each man, standardised, (20, 3), and how many chin-ups he did, (20,)."""
    measured = table("poisson_regression", "linnerud_physiological.csv")
    counts = table("poisson_regression", "linnerud_exercise.csv")[:, 0]
    return np.asarray((measured - measured.mean(axis=0)) / measured.std(axis=0)), counts

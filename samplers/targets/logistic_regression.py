"""A logistic regression on two measurements of a real data set: a posterior of data that is not Gaussian."""

from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy import special

from sgmcmc_lab.samplers.parameters import Count, Option, Real
from sgmcmc_lab.samplers.requirements import LIPSCHITZ
from sgmcmc_lab.samplers.targets import logistic
from sgmcmc_lab.samplers.targets.base import Array, FirstSteps, Fit
from sgmcmc_lab.samplers.targets.glm import LOGISTIC, GeneralisedLinear
from sgmcmc_lab.samplers.targets.tables import table

FEATURES = (
    "radius",
    "texture",
    "perimeter",
    "area",
    "smoothness",
    "compactness",
    "concavity",
    "concave points",
    "symmetry",
    "fractal dimension",
)
"""The measurements of the cells' nuclei, as means over a picture: the first ten columns of the file."""


class LogisticRegression(GeneralisedLinear):
    """P(s_i = 1) = 1/(1 + e^{−θ·x_i}) with the prior θ ~ N(0, τ²I): U(θ) = Σ log(1 + e^{−s_i θ·x_i}) + ‖θ‖²/2τ².

    The data are the first N of the 569 tumours of Street, Wolberg & Mangasarian 1993, malignant (s = 1) or benign
    (s = −1), by two measurements of their cells with mean 0 and standard deviation 1; there is no intercept, so that θ
    is the two coefficients. The distribution is log-concave; its skewness grows as N falls.
    """

    key = "logistic_regression"
    title = "Logistic regression"
    tex = r"U(\theta) = \sum_{i=1}^{N}\log\bigl(1 + e^{-s_i\,\theta\cdot x_i}\bigr) + \frac{\lVert\theta\rVert^2}{2\tau^2}"
    source = "Welling & Teh 2011, section 5.2; data of Street, Wolberg & Mangasarian 1993, from scikit-learn"
    provides = GeneralisedLinear.provides | {LIPSCHITZ}
    family = LOGISTIC
    # U″ at the mode is 6 with 100 data points, and V ≈ 50 for minibatches of ten; with all of them 47, and V ≈ 3000.
    first_steps = FirstSteps(moving=0.05, batch=0.01, friction=5.0, other=2e-3)

    first = Option(
        default="radius",
        objects=list(FEATURES),
        label="First measurement",
        doc="The measurement of the cells' nuclei with coefficient θ₁.",
    )
    second = Option(
        default="texture",
        objects=list(FEATURES),
        label="Second measurement",
        doc="The measurement with coefficient θ₂. Radius, perimeter and area are nearly the same: with two of them the distribution is a ridge.",
    )
    items = Count(
        100,
        bounds=(20, 569),
        log=True,
        tex="N",
        label="Data N",
        doc="The number of tumours, from the first of the 569 in the file.",
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
    def _all_rows(self) -> Array:
        """s_i x_i of all tumours in the file, (569, 2)."""
        measured, kind = tumours()
        # The means come first in the file.
        picked = measured[:, [FEATURES.index(self.first), FEATURES.index(self.second)]]
        return np.asarray(picked * kind[:, None])

    @cached_property
    def rows(self) -> Array:
        """s_i x_i, (N, 2)."""
        return self._all_rows[: self.items]

    def held_out(self, theta: Array) -> Array | None:
        """The log density of the tumours after the first N; None if there are no others."""
        rest = self._all_rows[self.items :]
        return -np.logaddexp(0, -theta @ rest.T) if len(rest) else None

    @property
    def names(self) -> tuple[str, str]:
        return f"θ₁ {self.first}", f"θ₂ {self.second}"

    def fit(self) -> Fit:
        """The plane of the two measurements, and the line θ·x = 0 between the two kinds."""
        kinds = tumours()[1][: self.items]
        axes = self.first, self.second
        return Fit.of(
            self.rows * kinds[:, None], axes, _boundary, kinds=(kinds > 0).astype(float), formula={"kind": "boundary"}
        )

    def energies(self, theta: Array) -> Array:
        squares = (theta**2).sum(axis=-1) / (2 * self.prior_sd**2)
        return np.asarray(np.logaddexp(0, -theta @ self.rows.T).sum(axis=-1) + squares)

    def slope(self, theta: Array) -> Array:
        return np.asarray(theta / self.prior_sd**2 - self.rows.T @ special.expit(-self.rows @ theta))

    def curvature(self, theta: Array) -> Array:
        right = special.expit(self.rows @ theta)
        return np.asarray((self.rows.T * (right * (1 - right))) @ self.rows + np.eye(2) / self.prior_sd**2)

    @property
    def lipschitz(self) -> Array:
        return logistic.lipschitz(self.rows, self.prior_sd)

    @property
    def lipschitz_of_each(self) -> Array:
        return logistic.lipschitz_of_each(self.rows, self.prior_sd)

    def start(self) -> Array:
        return np.zeros(2)

    tried_at = (
        {"first": "concave points", "second": "smoothness", "items": 20, "prior_sd": 0.1},
        {"first": "radius", "second": "concavity", "items": 50, "prior_sd": 10.0},
    )
    drawn_at = {"first": "concavity", "second": "symmetry", "items": 40, "prior_sd": 1.0}

    def textbook_slope(self, theta: Array, datum: int) -> Array:
        row = self.rows[datum]
        return np.asarray(theta / self.prior_sd**2 - len(self.rows) * row / (1 + np.exp(row @ theta)))

    def textbook_energy(self, theta: Array, datum: int) -> float:
        loss = np.log1p(np.exp(-self.rows[datum] @ theta))
        return float(theta @ theta / (2 * self.prior_sd**2) + len(self.rows) * loss)

    def textbook_symbols(self, theta: Array) -> dict[str, Any]:
        return {"N": len(self.rows), "s": np.ones(len(self.rows)), "x": self.rows}


def _boundary(theta: Array, x: Array) -> Array:
    """The x₂ with θ₁x₁ + θ₂x₂ = 0."""
    across = np.where(theta[..., 1] == 0, 1e-12, theta[..., 1])
    return np.asarray(-theta[..., 0] / across * x)


@lru_cache(maxsize=1)
def tumours() -> tuple[Array, Array]:
    """The means, standard errors and worst values of the ten measurements of each tumour, standardised, (569, 30), and
    whether it is malignant (1) or benign (−1).
    """
    read = table("logistic_regression", "breast_cancer.csv", ",")
    measured = read[:, :-1]
    # The file has 0 for malignant.
    return np.asarray((measured - measured.mean(axis=0)) / measured.std(axis=0)), 1.0 - 2.0 * read[:, -1]

"""A logistic regression on all measurements of a real data set: a posterior of 31 coefficients."""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.parameters import Count, Real
from sgmcmc_lab.samplers.targets import logistic
from sgmcmc_lab.samplers.targets.base import Array, FirstSteps, subscript
from sgmcmc_lab.samplers.targets.logistic import Logistic
from sgmcmc_lab.samplers.targets.logistic_regression import FEATURES, tumours
from sgmcmc_lab.samplers.targets.long_run import LongRun, draw_kept


@jit.draw
def draw(rng, out, params):
    draw_kept(rng, out, params, logistic.FIRST + int(params[1]) * out.shape[1])


class TumoursLogistic(Logistic, LongRun):
    """P(s_i = 1) = 1/(1 + e^{−θ·x_i}) with the prior θ ~ N(0, τ²I): U(θ) = Σ log(1 + e^{−s_i θ·x_i}) + ‖θ‖²/2τ².

    The data are the first N of the 569 tumours of Street, Wolberg & Mangasarian 1993, malignant (s = 1) or benign
    (s = −1). θ₁ is the intercept; the others belong to ten measurements of the cells, of each the mean,
    the standard error and the worst, standardised. A plane parts nearly all of them, so that the data say little of how
    long θ is and the prior a lot; many measurements are nearly the same, so that some directions are far wider.

    The answers are those of a long run of Hamiltonian Monte Carlo with the accept step.
    """

    key = "logistic_tumours"
    title = "Logistic regression, all measurements"
    tex = r"U(\theta) = \sum_{i=1}^{N}\log\bigl(1 + e^{-s_i\,\theta\cdot x_i}\bigr) + \frac{\lVert\theta\rVert^2}{2\tau^2},\quad \theta \in \mathbb{R}^{31}"
    source = "Welling & Teh 2011, section 5.2; data of Street, Wolberg & Mangasarian 1993, from scikit-learn"
    draw = draw
    tempers = True
    dim = 1 + 3 * len(FEATURES)

    items = Count(
        569,
        bounds=(50, 569),
        log=True,
        tex="N",
        label="Data N",
        doc="How many of the 569 tumours: the first of the file.",
    )
    prior_sd = Real(
        1.0,
        bounds=(0.1, 3.0),
        log=True,
        tex=r"\tau",
        label="Prior τ",
        doc="The standard deviation of each coefficient before there are data. A small one shrinks them.",
    )

    @cached_property
    def rows(self) -> Array:
        """s_i x_i, (N, 31)."""
        measured, kind = tumours()
        return np.column_stack([np.ones(len(kind)), measured])[: self.items] * kind[: self.items, None]

    @cached_property
    def _peak(self) -> tuple[Array, Array]:
        return logistic.newton(self.rows, self.prior_sd)

    @property
    def column_names(self) -> tuple[str, ...]:
        kinds = "{}", "{}, error", "{}, worst"
        words = ["intercept", *(kind.format(feature) for kind in kinds for feature in FEATURES)]
        return tuple(f"θ{subscript(k + 1)} {word}" for k, word in enumerate(words))

    def data(self) -> NDArray[np.int64]:
        return np.arange(self.items)

    def without_draws(self) -> Array:
        return logistic.packed(self.rows, self.prior_sd)

    first_steps = FirstSteps(moving=0.03, batch=0.005, friction=20.0, other=5e-4)

    tried_at = ({"items": 50, "prior_sd": 0.1}, {"items": 100, "prior_sd": 3.0})
    drawn_at = {"items": 60, "prior_sd": 0.3}

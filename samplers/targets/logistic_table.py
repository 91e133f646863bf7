"""A logistic regression on a table, which may be a person's own."""

from collections.abc import Mapping
from functools import cached_property

import numpy as np
from scipy import special

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.parameters import Flag, Real, Source
from sgmcmc_lab.samplers.targets import logistic
from sgmcmc_lab.samplers.targets.base import Array, FirstSteps
from sgmcmc_lab.samplers.targets.logistic import Logistic
from sgmcmc_lab.samplers.targets.long_run import LongRun, draw_kept
from sgmcmc_lab.samplers.targets.own import OfTable, Table
from sgmcmc_lab.samplers.targets.tables import table


def iris() -> Table:
    """Two of the three species of Anderson's irises, which no line parts."""
    read = table("logistic_table", "iris.csv", ",")
    two = read[read[:, 4] > 0]
    names = "sepal length", "sepal width", "petal length", "petal width"
    return Table(names, two[:, :4], "species", 2 * two[:, 4] - 3, ("versicolor", "virginica"))


@jit.draw
def draw(rng, out, params):
    draw_kept(rng, out, params, logistic.FIRST + int(params[1]) * out.shape[1])


class TableLogistic(OfTable, Logistic, LongRun):
    """P(s_i = 1) = 1/(1 + e^{−θ·x_i}) with the prior θ ~ N(0, τ²I): U(θ) = Σ log(1 + e^{−s_i θ·x_i}) + ‖θ‖²/2τ².

    The data are a table: two species of irises by the lengths and widths of their leaves (Anderson 1936), or a CSV file
    of your own, whose last column has two kinds. θ₁ is the intercept, the others belong to the columns.

    The answers are those of a long run of Hamiltonian Monte Carlo with the accept step.
    """

    key = "logistic_table"
    title = "Logistic regression, your data"
    tex = r"U(\theta) = \sum_{i=1}^{N}\log\bigl(1 + e^{-s_i\,\theta\cdot x_i}\bigr) + \frac{\lVert\theta\rVert^2}{2\tau^2}"
    source = "Welling & Teh 2011, section 5.2; data of Anderson 1936, from scikit-learn"
    two_kinds = True
    built_in = {"iris": iris}
    draw = draw
    tempers = True

    table = Source(
        default="iris",
        objects=list(built_in),
        label="Data",
        doc="Irises: 50 of the species virginica and 50 of versicolor. Or bring a CSV file of your own.",
    )
    standardise = Flag(
        True,
        label="Standardise",
        doc="Whether each column gets mean 0 and standard deviation 1 first, so that one prior fits all.",
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
        """s_i x_i, (N, d)."""
        return np.asarray(self.covariates * self.contents.y[:, None])

    @property
    def dim(self) -> int:
        return len(self.contents.names) + 1

    @cached_property
    def _peak(self) -> tuple[Array, Array]:
        return logistic.newton(self.rows, self.prior_sd)

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(self.names)

    def without_draws(self) -> Array:
        return logistic.packed(self.rows, self.prior_sd)

    def facts(self) -> Mapping[str, str]:
        no, yes = self.contents.kinds or ("", "")
        n, ones = len(self.rows), int((self.contents.y > 0).sum())
        data = f"{n:,} rows; {self.contents.answer} is {yes} in {ones:,} (s = 1) and {no} in {n - ones:,} (s = −1)"
        return {"Data": data, **super().facts()}

    @property
    def first_steps(self) -> FirstSteps:
        """By the largest U″ that there is anywhere, and the noise of a minibatch at the mode."""
        steepest = float(np.linalg.norm(self.rows, 2)) ** 2 / 4 + self.prior_sd**-2
        wrong = special.expit(-self.rows @ self.mode)
        return FirstSteps.of(steepest, len(wrong) / 10 * float(np.linalg.norm(self.rows * wrong[:, None], 2)) ** 2)

    tried_at = ({"prior_sd": 0.1}, {"standardise": False, "prior_sd": 1.0})
    drawn_at = {"prior_sd": 1.0}

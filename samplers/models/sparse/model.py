"""The lasso and the probit lasso with all their latent variables, as Gibbs samplers need them."""

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from sgmcmc_lab.samplers.file_format import GUESSED, Format
from sgmcmc_lab.samplers.files import FileError, Tell, untold
from sgmcmc_lab.samplers.models.base import Model
from sgmcmc_lab.samplers.models.sparse.reference import Reference, reference_of
from sgmcmc_lab.samplers.parameters import UPLOADED, Count, Option, Real, SpecError
from sgmcmc_lab.samplers.targets.base import Array, Column, subscript
from sgmcmc_lab.samplers.targets.lasso import NAMES, diabetes
from sgmcmc_lab.samplers.targets.long_run import column_of
from sgmcmc_lab.samplers.targets.own import Table, read
from sgmcmc_lab.samplers.targets.probit_lasso import MADE_WITH, MOST, made

MIN_ROWS = 10
FOLLOWED = 4
"""Coefficients whose means, R-hat and autocorrelation are on the page: the first ones."""
MADE_NAMES = tuple(f"made with {value:g} × strength" for value in MADE_WITH)


class Sparse(Model):
    """A regression whose coefficients have Laplace priors (Smolyakov, Liu & Fisher, section 3.1).

    Probit lasso: y_i = sign z_i, z_i ~ N(w·x_i, 1); a sweep's local half are the N latent z. Lasso: y_i is known,
    y_i ~ N(w·x_i, σ²), p(σ²) ∝ 1/σ²; its only latent variables are the d scales. Both: w_j ~ N(0, σ²τ_j²),
    τ_j² ~ Exp(λ²/2), which makes w_j ~ Laplace(λ/σ), with σ = 1 of a probit lasso. There is no intercept: columns of a
    table have mean 0 and standard deviation 1.

    Corrects the printed eqs (20) to (22), where D has τ_j² and not τ_j on its diagonal, a probit lasso has z for y and
    σ² = 1, and without an intercept σ² has the shape N/2 + d/2.

    Nothing is held out: the score is how far the means of the later draws are from the exact ones, log₁₀ of the squared
    distance in posterior variances, on average over the coefficients.
    """

    key = "sparse"
    title = "Sparse regression"
    tex = (
        r"\begin{aligned}w_j \mid \tau_j &\sim \mathcal N(0, \sigma^2\tau_j^2),\quad \tau_j^2 \sim \mathrm{Exp}(\lambda^2/2)\\"
        r"z_i \mid w &\sim \mathcal N(w\cdot x_i, \sigma^2),\quad y_i = \operatorname{sign} z_i \text{ (probit, } \sigma = 1)"
        r"\text{ or } z_i \text{ itself}\end{aligned}"
    )
    source = "Park & Casella 2008; Albert & Chib 1993; Smolyakov, Liu & Fisher, section 3.1"
    score_name = "log₁₀ squared error"
    higher_is_better = False
    data_name = "latents"
    data_parameter = "data"
    real_data = "diabetes"
    followed = ("w₁", "w₂", "w₃", "w₄", "‖w‖₁")

    data = Option(
        default="made",
        objects=["made", "diabetes", UPLOADED],
        label="Data",
        doc="Made-up data of a probit lasso with four coefficients; the diabetes data, a lasso with ten; or an uploaded CSV file, a lasso.",
    )
    items = Count(
        1200,
        bounds=(50, MOST),
        log=True,
        tex="N",
        label="Made-up data N",
        doc="The number of data points: the first of the synthetic ones.",
    )
    strength = Real(
        1.0,
        bounds=(0.02, 2.0),
        log=True,
        label="Strength of the effects",
        doc="The factor on the coefficients (1, −0.5, 0.2, 0) of the synthetic data. The weaker the effects, the less uncertain w is given the z.",
    )
    shrinkage = Real(
        1.0,
        bounds=(0.1, 100.0),
        log=True,
        tex=r"\lambda",
        label="Shrinkage λ",
        doc="The strength with which the prior pulls every coefficient to 0. Coefficients about which the data are uninformative shrink to 0.",
    )

    @classmethod
    def read(cls, files: Mapping[str, bytes], tell: Tell = untold, form: Format = GUESSED) -> Table:
        """A table of numbers; one column, the last unless another is chosen, is explained by the others."""
        found = read(files, False, form, least_rows=MIN_ROWS)
        if len(found.names) < FOLLOWED:
            columns = f"has {len(found.names)} columns beside the one that they explain"
            raise FileError("The data", columns, f"allowed are {FOLLOWED} to 98")
        return found

    def prepare(self) -> None:
        """Load the data."""
        self.noise_prior = np.zeros(2)
        """Shape and rate of the prior of 1/σ²."""
        if self.data == "made":
            self._take(True, MADE_NAMES, np.ascontiguousarray(made(self.strength)[: self.items]), np.zeros(self.items))
        elif self.data == "diabetes":
            rows = diabetes()
            self._take(False, NAMES, rows[:, :-1], rows[:, -1])
        elif isinstance(self.uploaded, Table):
            x = (self.uploaded.x - self.uploaded.x.mean(axis=0)) / self.uploaded.x.std(axis=0)
            y = self.uploaded.y
            if self.uploaded.kinds is not None:
                self._take(True, self.uploaded.names, y[:, None] * x, np.zeros(len(y)))
            else:
                self._take(False, self.uploaded.names, x, (y - y.mean()) / y.std())
        else:
            raise SpecError("model.data", UPLOADED, "no file has been uploaded; choose one, or built-in data")

    def _take(self, probit: bool, names: tuple[str, ...], x: Array, y: Array) -> None:
        self.probit, self.names = probit, names
        self.x, self.y = np.ascontiguousarray(x), y
        """For a probit lasso, x is multiplied by the sign of y, and y is not needed."""
        self.gram = np.ascontiguousarray(x.T @ x)

    @property
    def n_data(self) -> int:
        """The latent variables: of a probit lasso N, of a lasso d."""
        return self.x.shape[0] if self.probit else self.x.shape[1]

    def facts(self) -> Mapping[str, str]:
        """The description of the data."""
        kind = (
            "probit lasso: the z of the data are latent"
            if self.probit
            else "lasso: the scales of the coefficients are latent"
        )
        names = ", ".join(f"w{subscript(k + 1)} {name}" for k, name in enumerate(self.names[:10]))
        return {
            "data": f"{len(self.x):,} with {len(self.names)} columns; {kind}",
            "coefficients": names + ", …" * (len(self.names) > 10),
            "exact answers": self.reference.how,
        }

    @cached_property
    def reference(self) -> Reference:
        """The posterior of w."""
        return reference_of(self)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Those that are followed, with what the reference says of them."""
        values = np.array([self.followed_of(w) for w in self.reference.draws])
        return tuple(column_of(name, values[:, k]) for k, name in enumerate(self.followed))

    def ranges(self) -> tuple[tuple[float, float, bool], ...]:
        """The ranges of the columns."""
        return tuple((column.low, column.high, False) for column in self.columns)

    def followed_of(self, w: Array) -> Array:
        """The numbers that are followed."""
        return np.append(w[:FOLLOWED], np.abs(w).sum())

    def score(self, mean: Array) -> float:
        """log₁₀ of the mean over the coefficients of (mean − exact)²/Var."""
        if not np.isfinite(mean).all():
            raise FloatingPointError("A coefficient is no longer finite.")
        away = (mean - self.reference.mean) ** 2 / self.reference.variance
        return float(np.log10(max(away.mean(), 1e-12)))

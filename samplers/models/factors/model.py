"""Gamma process factor analysis, with a part of its rows held out."""

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.random import SFC64, Generator
from scipy import special

from sgmcmc_lab.samplers.file_format import GUESSED, Format
from sgmcmc_lab.samplers.files import Tell, untold
from sgmcmc_lab.samplers.models.base import Model
from sgmcmc_lab.samplers.models.factors.data import BUILT_IN, MADE_NOISE, Rows, made, read
from sgmcmc_lab.samplers.parameters import UPLOADED, Count, Option, Real, SpecError
from sgmcmc_lab.samplers.targets.base import Array

FIXED = 0.1, 1.0
"""Shape and rate of the fixed prior of a loading (Knowles 2015, section 4.2, leaves it open)."""
LOG_2PI = float(np.log(2 * np.pi))


class Unknowns(NamedTuple):
    """The parts of the vector of all unknowns, which are all positive."""

    w: Array
    """(D, K)."""
    r: Array
    """(K,); empty with the fixed prior."""
    top: Array
    """γ, γ₀ and c₀; empty with the fixed prior."""
    precision: Array
    """1/σ², (1,); empty where it is known."""


def log_likelihood(w: Array, precision: float, scatter: Array, n: int) -> tuple[float, Array, float]:
    """log p(Y | W, σ²) of n rows whose ΣyyT is ``scatter`` (D, D), and its gradients in W and in 1/σ².

    L = −(N/2) log|2πC| − ½ tr(YYᵀC⁻¹) with C = WWᵀ + σ²I, ∂L/∂W = −N C⁻¹W + C⁻¹YYᵀC⁻¹W (Knowles 2015, eqs 16–18, whose
    first terms are printed with a plus). By Woodbury only a K × K matrix is inverted: A = I + WᵀW/σ². A number that is
    not finite makes all of them NaN.
    """
    d = len(w)
    inner = np.eye(w.shape[1]) + precision * (w.T @ w)
    try:
        log_det, inverse = np.linalg.slogdet(inner)[1], np.linalg.inv(inner)
    except np.linalg.LinAlgError:
        return np.nan, np.full_like(w, np.nan), np.nan
    b = precision * (w @ inverse)
    """C⁻¹W."""
    sb = scatter @ b
    wsb, trace = w.T @ sb, np.trace(scatter)
    quadratic = precision * (trace - np.trace(wsb))
    value = -0.5 * (n * (d * (LOG_2PI - np.log(precision)) + log_det) + quadratic)
    by_w = -n * b + precision * (sb - b @ wsb)
    inverse_trace = precision * (d - (b * w).sum())
    squares = precision**2 * (trace - 2 * np.trace(wsb) + (wsb * (w.T @ b).T).sum())
    return float(value), by_w, float((n * inverse_trace - squares) / (2 * precision**2))


class Factors(Model):
    """Gamma process factor analysis (Knowles 2015, section 3.2), truncated at K factors.

    y_n ~ N(0, WWᵀ + σ²I), where the factors x_n ~ N(0, I) are integrated out. W_dk ~ Gamma(γ r_k, rate γ),
    r_k ~ Gamma(γ₀/K, rate c₀), and γ, γ₀, c₀ ~ Gamma(1, 1): small r_k switch their factors off. Or W_dk ~ Gamma(.1, 1).
    1/σ² ~ Gamma(.1, .1), or σ² is known. Columns have mean 0; those of different units have standard deviation 1.

    Held out are some rows; the score is the mean log density that they have under N(0, Ĉ), Ĉ the expected covariance,
    eq (20).
    """

    key = "factors"
    title = "Factors of columns"
    tex = (
        r"\begin{aligned}y_n &\sim \mathcal N(0, WW^\top + \sigma^2 I),\quad W_{dk}\sim\mathrm{Gamma}(\gamma r_k, \gamma),"
        r"\quad r_k\sim\mathrm{Gamma}(\gamma_0/K, c_0)\\ \gamma,\gamma_0,c_0&\sim\mathrm{Gamma}(1,1),\quad "
        r"1/\sigma^2\sim\mathrm{Gamma}(.1,.1)\end{aligned}"
    )
    source = "Knowles 2015, section 3.2"
    score_name = "held-out log density"
    higher_is_better = True
    data_name = "rows"
    data_parameter = "data"
    real_data = "wine"
    followed = ("factors in use", "largest factor", "explained variance", "noise variance")

    data = Option(
        default="made",
        objects=["made", *BUILT_IN, UPLOADED],
        label="Data",
        doc="Made-up rows of 50 columns with ten factors; wines, by thirteen measurements; written digits, by their pixels; or an uploaded CSV file.",
    )
    rows = Count(
        100,
        bounds=(10, 10_000),
        log=True,
        tex="N",
        label="Rows N",
        doc="The number of rows that the methods see; for a file at most those that are not held out. The time of a step of Gamma SGVB does not depend on it.",
    )
    n_factors = Count(
        20,
        bounds=(1, 50),
        tex="K",
        label="Factors K",
        doc="The most factors that the variational methods may use; the prior of r turns off those that are not needed.",
    )
    prior = Option(
        default="gamma process",
        objects=["gamma process", "fixed"],
        label="Prior of the loadings",
        doc="Each factor has a rate of its own, from a gamma process; or every loading is Gamma(0.1, 1), as of the paper's made-up data.",
    )
    noise = Option(
        default="learned",
        objects=["learned", "known"],
        label="Noise variance σ²",
        doc="Learned with the factors; or known, as only that of the made-up data is.",
    )
    held_out = Real(
        0.2,
        bounds=(0.05, 0.5),
        label="Held-out share",
        doc="The share of the rows that the methods do not see. For made-up data a thousand more rows are drawn.",
    )
    split_seed = Count(
        1, bounds=(0, 2**32 - 1), label="Split seed", doc="It selects the rows that are held out, or drawn."
    )

    @classmethod
    def read(cls, files: Mapping[str, bytes], tell: Tell = untold, form: Format = GUESSED) -> Rows:
        """One file."""
        return read(files, form)

    def prepare(self) -> None:
        """Load the rows and hold some out."""
        self.truth: Array | None = None
        """The loadings that the rows were made with, (D, 10)."""
        self.noise_prior = np.array([0.1, 0.1])
        """Shape and rate of the prior of 1/σ²."""
        self.known_noise = MADE_NOISE if self.noise == "known" else None
        if self.data == "made":
            found = made(self.rows, self.split_seed)
            self.truth = found.loadings
            self.names = tuple(f"column {k + 1}" for k in range(len(self.truth)))
            self._take(found.y, found.held)
            return
        if self.known_noise is not None:
            raise SpecError("model.noise", self.noise, "the noise of these data is not known; allowed is learned")
        if self.data in BUILT_IN:
            rows = BUILT_IN[self.data]()
        elif isinstance(self.uploaded, Rows):
            rows = self.uploaded
        else:
            raise SpecError("model.data", UPLOADED, "no file has been uploaded; choose one, or built-in data")
        self.names = rows.names
        order = Generator(SFC64(self.split_seed)).permutation(len(rows.y))
        n_held = max(1, round(self.held_out * len(order)))
        pool = rows.y[order[n_held:]]
        # A column that varies in the held-out rows alone keeps its unit.
        scale = np.full(pool.shape[1], np.sqrt(pool.var(axis=0).mean())) if rows.alike else pool.std(axis=0)
        scale[scale == 0] = 1.0
        held, seen = ((each - pool.mean(axis=0)) / scale for each in (rows.y[order[:n_held]], pool[: self.rows]))
        self._take(seen, held)

    def _take(self, y: Array, held: Array) -> None:
        self.y = np.ascontiguousarray(y)
        """The rows that the methods see, (N, D)."""
        self.scatter = self.y.T @ self.y
        """Σ yyᵀ, (D, D): all that the likelihood needs of them."""
        self.columns_of_y = np.ascontiguousarray(self.y.T)
        self.held_scatter, self.n_held = held.T @ held, len(held)

    @property
    def n_data(self) -> int:
        """The rows that the methods see."""
        return len(self.y)

    @property
    def n_columns(self) -> int:
        """D."""
        return self.y.shape[1]

    def facts(self) -> Mapping[str, str]:
        """The description of the data."""
        names = ", ".join(self.names[:6]) + ", …" * (len(self.names) > 6)
        known = {"made with": f"{self.truth.shape[1]} factors and σ² = {MADE_NOISE}"} if self.truth is not None else {}
        return {
            "rows": f"{self.n_data:,}, and {self.n_held:,} that are held out",
            "columns": f"{self.n_columns}: {names}",
            **known,
        }

    def ranges(self) -> tuple[tuple[float, float, bool], ...]:
        """The ranges: of the factors in use, from none to more than any method has; and of the other numbers."""
        return (-0.01, 101.0, False), (0.0, 1.0001, False), (1e-6, 1e6, True), (1e-9, 1e6, True)

    def followed_of(self, sizes: Array, noise: float) -> Array:
        """The numbers that are followed, from E‖w_k‖² of each factor and σ².

        In use are e^{entropy} factors: as many equal ones would have the entropy of the shares of Σ‖w_k‖². The
        explained variance is that sum over the rows' total variance.
        """
        total = float(sizes.sum())
        if not total > 0:
            return np.array([0.0, 0.0, 1e-5, noise])
        shares = sizes[sizes > 0] / total
        explained = max(total / self.total_variance, 1e-5)
        return np.array([np.exp(-(shares * np.log(shares)).sum()), shares.max(), explained, noise])

    @property
    def total_variance(self) -> float:
        """The total variance of the rows that the methods see, over all columns."""
        return float(np.trace(self.scatter)) / self.n_data

    @cached_property
    def shrunk(self) -> Array:
        """The covariance of the rows that the methods see, shrunk towards a multiple of I (Ledoit & Wolf 2004)."""
        from sklearn.covariance import LedoitWolf

        return np.asarray(LedoitWolf(assume_centered=True).fit(self.y).covariance_)

    @property
    def true_covariance(self) -> Array | None:
        """That which the rows were made with."""
        return None if self.truth is None else self.truth @ self.truth.T + MADE_NOISE * np.eye(len(self.truth))

    def score(self, covariance: Array) -> float:
        """The mean log density of the held-out rows under N(0, covariance)."""
        return mean_log_density(covariance, self.held_scatter, self.n_held)

    # The vector of all unknowns

    @property
    def n_unknowns(self) -> int:
        """D·K, K + 3 more with the gamma process, and 1 more where the noise is learned."""
        d, k = self.n_columns, self.n_factors
        return d * k + (k + 3 if self.prior != "fixed" else 0) + (self.known_noise is None)

    def parts(self, x: Array) -> Unknowns:
        """Its parts, as views."""
        d, k = self.n_columns, self.n_factors
        w, rest = x[: d * k].reshape(d, k), x[d * k :]
        n = k if self.prior != "fixed" else 0
        top = n + 3 if n else 0
        return Unknowns(w, rest[:n], rest[n:top], rest[top:])

    def noise_of(self, precision: Array) -> float:
        """σ²: the known one, or that of this precision."""
        return self.known_noise if self.known_noise is not None else float(1 / precision[0])

    def first_guess(self, rng: Generator) -> Array:
        """A random start of all unknowns, (n_unknowns,): loadings that explain half of the variance."""
        x = np.ones(self.n_unknowns)
        w, r, _, precision = self.parts(x)
        half = self.total_variance / self.n_columns / 2
        w[:] = np.sqrt(half / self.n_factors) * rng.standard_gamma(1.0, w.shape)
        r[:], precision[:] = w.mean(axis=0)[: len(r)], 1 / half
        return x

    def log_joint(self, log_x: Array, grad: Array) -> float:
        """The log of p(Y, x), a density in x; writes its gradient in log x. Both are (n_unknowns,)."""
        x = np.exp(log_x)
        w, r, top, precision = self.parts(x)
        log_w, log_r, log_top, log_precision = self.parts(log_x)
        by_w, by_r, by_top, by_precision = self.parts(grad)
        value, slope, precision_slope = log_likelihood(w, 1 / self.noise_of(precision), self.scatter, self.n_data)
        by_w[:] = slope * w
        if len(precision):
            shape, rate = self.noise_prior
            value += (
                shape * np.log(rate) - special.gammaln(shape) + (shape - 1) * log_precision[0] - rate * precision[0]
            )
            by_precision[:] = precision * precision_slope + shape - 1 - rate * precision
        d, k = w.shape
        if not len(top):
            shape, rate = FIXED
            by_w += shape - 1 - rate * w
            prior = d * k * (shape * np.log(rate) - special.gammaln(shape)) + (shape - 1) * log_w.sum() - rate * w.sum()
            return float(value + prior)
        (gamma, mass, rate), (log_gamma, log_mass, log_rate) = top, log_top
        # W given r and γ: s = γ r may be so small that 1/s is no number, but s ψ(s) = s ψ(1 + s) − 1 is.
        s, log_s = gamma * r, log_gamma + log_r
        sums, whole = log_w.sum(axis=0), w.sum(axis=0)
        value += (d * (s * log_gamma - special.gammaln(1 + s) + log_s) + (s - 1) * sums - gamma * whole).sum()
        by_w += s - 1 - gamma * w
        by_s = s * (d * log_gamma + sums) - d * (s * special.digamma(1 + s) - 1)
        # r given γ₀ and c₀.
        shape = mass / k
        value += (
            k * (shape * log_rate - special.gammaln(1 + shape) + log_mass - np.log(k))
            + (shape - 1) * log_r.sum()
            - rate * r.sum()
        )
        by_r[:] = by_s + shape - 1 - rate * r
        by_mass = shape * (k * log_rate + log_r.sum()) - k * (shape * special.digamma(1 + shape) - 1)
        # All three are Gamma(1, 1).
        value -= top.sum()
        by_top[:] = [by_s.sum() + d * s.sum() - gamma * whole.sum(), by_mass, mass - rate * r.sum()]
        by_top -= top
        return float(value)


def mean_log_density(covariance: Array, scatter: Array, n: int) -> float:
    """The mean log density of n rows whose Σyyᵀ is ``scatter`` under N(0, covariance); −∞ where that is singular."""
    sizes = np.linalg.eigvalsh(covariance) if np.isfinite(covariance).all() else np.zeros(1)
    # A rounding error of 0 is no variance.
    if not sizes[0] > 1e-12 * sizes[-1]:
        return -np.inf
    log_det = np.log(sizes).sum()
    quadratic = np.trace(np.linalg.solve(covariance, scatter)) / n
    return float(-(len(scatter) * LOG_2PI + log_det + quadratic) / 2)

"""A Dirichlet posterior on the simplex through its square root: a part of a sphere, with reflection at its walls."""

from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy import special

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.manifolds import Manifold, Simplex
from sgmcmc_lab.samplers.parameters import Count, CountVector, Real, SpecError
from sgmcmc_lab.samplers.targets.at_temperature import AtTemperature
from sgmcmc_lab.samplers.targets.base import MANIFOLD, Array, Column, Moment, Target
from sgmcmc_lab.samplers.targets.dirichlet import share
from sgmcmc_lab.samplers.targets.expectations import sum_products

# The packed parameters: a, the shapes of the Dirichlet distribution, one for each coordinate.


@jit.potential
def potential(theta, out, params):
    for c in range(theta.shape[0]):
        out[c] = 0.0
        for i in range(theta.shape[1]):
            # Without a force the wall itself is a point like others.
            if params[i] != 0.5:
                out[c] -= (2 * params[i] - 1) * np.log(abs(theta[c, i]))


@jit.gradient
def gradient(theta, out, params):
    for c in range(theta.shape[0]):
        for i in range(theta.shape[1]):
            out[c, i] = -(2 * params[i] - 1) / theta[c, i] if params[i] != 0.5 else 0.0


@jit.draw
def draw(rng, out, params):
    for c in range(out.shape[0]):
        total = 0.0
        for i in range(out.shape[1]):
            out[c, i] = rng.standard_gamma(params[i])
            total += out[c, i]
        for i in range(out.shape[1]):
            out[c, i] = np.sqrt(out[c, i] / total)


@jit.observe
def observe_squares(draws, n, out):
    """ω_i = θ_i²."""
    for k in range(draws.shape[2]):
        for c in range(draws.shape[1]):
            for t in range(n):
                out[k, c, t] = draws[t, c, k] ** 2


class SphereDirichlet(Target):
    """ω | z ~ Dir(α + N) for categorical data with N_i items in category i, in the coordinates θ = √ω.

    θ lies on the part of the unit sphere in ℝᵈ where all coordinates are positive, and a path is reflected at its
    walls: the way to the simplex of Liu, Zhu & Song 2016, section 4.3. With a = α + N the density with respect to the
    sphere's own area is ∝ Π θ_i^{2a_i − 1}: flat for a = ½, which is Jeffreys' prior, and there it is the walls alone
    that keep a chain on the simplex. α ≥ ½, for below it the density is infinite at the walls. The columns are ω.
    """

    key = "sphere_dirichlet"
    title = "Dirichlet (reflected sphere)"
    tex = (
        r"U(\theta) = -\sum_i (2\alpha + 2N_i - 1)\log\theta_i,\quad \omega_i = \theta_i^2,\ \lVert\theta\rVert = 1,\ "
        r"\theta \ge 0"
    )
    source = "Byrne & Girolami 2013, section 4.2; Liu, Zhu & Song 2016, section 4.3"
    support, geometry = MANIFOLD, Simplex
    potential, gradient, draw, observe = potential, gradient, draw, observe_squares

    dimension = Count(3, bounds=(3, 20), tex="d", label="Categories d", doc="How many categories the data may fall in.")
    alpha = Real(
        0.5,
        bounds=(0.5, 100.0),
        log=True,
        tex=r"\alpha",
        label="Prior α",
        doc="The parameter of the symmetric Dirichlet prior. One half is Jeffreys' prior, without a force at the walls.",
    )
    observed = CountVector(
        (5, 2),
        max_length=20,
        max_value=1000,
        tex="N",
        label="Counts N",
        doc="How many data fall in each category; the categories not named have none.",
    )

    def check(self) -> None:
        if len(self.observed) > self.dimension:
            raise SpecError("target.observed", self.observed, f"allowed are at most d = {self.dimension} counts")

    @property
    def dim(self) -> int:
        return self.dimension

    @cached_property
    def manifold(self) -> Manifold:
        return Simplex(self.dimension)

    def packed(self) -> Array:
        counts = np.zeros(self.dimension)
        counts[: len(self.observed)] = self.observed
        return np.asarray(self.alpha + counts)

    def family_at(self, temperature: float) -> "TemperedSphereDirichlet":
        return TemperedSphereDirichlet.made(self, temperature)

    def start(self) -> Array:
        return np.full(self.dimension, self.dimension**-0.5)

    def log_density(self, theta: Array) -> Array:
        """With respect to the area of the sphere: that of ω times 2^{d−1} Πθ_i, and 0 outside the positive part."""
        a = self.packed()
        log_scale = special.gammaln(a.sum()) - special.gammaln(a).sum() + (self.dimension - 1) * np.log(2)
        inside = special.xlogy(2 * a - 1, np.maximum(theta, 0.0)).sum(axis=-1)
        return np.where((theta >= 0).all(axis=-1), log_scale + inside, -np.inf)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        a = self.packed()
        return tuple(share(j, float(a[j]), float(a.sum() - a[j])) for j in range(self.dimension))

    @property
    def moments(self) -> tuple[Moment, ...]:
        a = self.packed()
        total = a.sum()
        root = np.exp(
            special.gammaln(a + 0.5) - special.gammaln(a) + special.gammaln(total) - special.gammaln(total + 0.5)
        )
        return (
            *super().moments,
            Moment.compiled("E ω₁ω₂", sum_products, (0.0, 0.0), a[0] * a[1] / (total * (total + 1))),
            Moment(f"E √ω{self.dimension}", partial(_root, of=self.dimension - 1), float(root[-1])),
        )

    tried_at = (
        {"dimension": 20, "alpha": 0.5, "observed": (20, 3)},
        {"alpha": 20.0, "observed": (1000,)},
    )
    drawn_at = {"dimension": 4, "alpha": 0.8, "observed": (3, 0, 1)}

    def textbook_draw(self, rng: np.random.Generator) -> Array:
        counts = [*self.observed, *[0] * (self.dimension - len(self.observed))]
        gammas = np.array([rng.standard_gamma(self.alpha + n) for n in counts])
        return np.asarray(np.sqrt(gammas / gammas.sum()))

    def textbook_symbols(self, theta: Array) -> dict[str, Any]:
        return {"N": [*self.observed, *[0] * (self.dimension - len(self.observed))]}


class TemperedSphereDirichlet(AtTemperature, SphereDirichlet):
    """e^{−U/T} of a Dirichlet posterior on the sphere: ∝ Π θ_i^{(2a_i − 1)/T}, so that ω ~ Dir(½ + (a − ½)/T)."""

    def packed(self) -> Array:
        return np.asarray(0.5 + (super().packed() - 0.5) / self.temperature)

    def textbook_draw(self, rng: np.random.Generator) -> Array:
        gammas = np.array([rng.standard_gamma(a) for a in self.packed()])
        return np.asarray(np.sqrt(gammas / gammas.sum()))


def _root(values: Array, of: int) -> Array:
    return np.asarray(np.sqrt(values[..., of]))

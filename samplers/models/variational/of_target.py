"""Gamma SGVB on a target of positive numbers whose distribution is known; the gap of its ELBO is known, too.

Two kinds of targets are such: the stationary distributions of the Cox–Ingersoll–Ross process, which are products
of gammas, so that the family of q has them; and positive targets of one coordinate, whose density may be any.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.random import SFC64, Generator
from scipy import special

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.models.variational.gamma import around, climb, draw
from sgmcmc_lab.samplers.models.variational.optimisers import Ascent
from sgmcmc_lab.samplers.models.variational.positive import softplus
from sgmcmc_lab.samplers.targets.base import POSITIVE, SIMPLEX, Array, Target
from sgmcmc_lab.samplers.targets.ranges import TINY

MOST_CATEGORIES = 20
"""The CDF of a share under q takes a term for each category at each frequency."""
OPTIMISER, STEP_SIZE, MOMENTUM, RHO = "adagrad", 10.0, 0.9, 0.95
"""AdaGrad's steps become short where draws of q disagree about the direction, so that q settles outside the family,
too; with AdaDelta it does not."""
NODES = np.linspace(-3.4, 3.4, 341)
"""The nodes of the quadrature over the quantiles of q: u = 1/(1 + e^{−π sinh s})."""
FREQUENCY_STEP = 0.03
"""The step in the logarithm of the frequency, at which a characteristic function is read."""
SMALLEST = 1e-11
"""The most that the ends of that integral may leave out."""


class Law(Protocol):
    """The distribution p of independent positive unknowns, as a model of :mod:`~samplers.models.variational`."""

    n_data: int

    def log_densities(self, log_x: Array) -> Array:
        """log p of each unknown, a normalised density in x; (…, unknowns), as log x is."""

    def log_joint(self, log_x: Array, grad: Array) -> float:
        """log p(x), with its gradient in log x."""


class Gammas:
    """x_j ~ Gamma(a_j, 1)."""

    n_data = 0

    def __init__(self, shapes: Array):
        self._shapes = shapes

    def log_densities(self, log_x: Array) -> Array:
        """(a − 1) log x − x − log Γ(a)."""
        return np.asarray((self._shapes - 1) * log_x - np.exp(log_x) - special.gammaln(self._shapes))

    def log_joint(self, log_x: Array, grad: Array) -> float:
        """Finite even where x itself has underflowed."""
        grad[:] = self._shapes - 1 - np.exp(log_x)
        return float(self.log_densities(log_x).sum())


class OneCoordinate:
    """A positive target of one coordinate, by its own density and gradient."""

    n_data = 0

    def __init__(self, target: Target):
        self._target = target

    def log_densities(self, log_x: Array) -> Array:
        """The target's; a number that a double cannot hold counts as the smallest one that the lab resolves."""
        return np.asarray(self._target.log_density(self._x(log_x)[..., None]))

    def log_joint(self, log_x: Array, grad: Array) -> float:
        """By the chain rule x ∂/∂x."""
        x = self._x(log_x)
        grad[:] = -x * self._target.gradient_at(x[None])[0]
        return float(self.log_densities(log_x)[0])

    @staticmethod
    def _x(log_x: Array) -> Array:
        return np.exp(np.clip(log_x, np.log(TINY), -np.log(TINY)))


def known(target: Target) -> bool:
    """Whether the distribution of the target's unknowns is one of the two kinds."""
    if target.support == SIMPLEX:
        return target.process == "cir" and target.dim <= MOST_CATEGORIES
    return target.support == POSITIVE and target.dim == 1


def law_of(target: Target) -> Law:
    """The distribution of θ; on the simplex that of the CIR samplers, θ_j ~ Gamma(α + N_j, 1)."""
    gammas = target.process == "cir" and target.process_scale == 1
    return Gammas(target.packed().reshape(2, -1).sum(axis=0)) if gammas else OneCoordinate(target)


class GammaFit:
    """A product of gammas q that climbs to a target by :func:`~samplers.models.variational.gamma.climb`.

    It starts with shape 1 around the point where the chains start.
    """

    def __init__(self, target: Target, seed: int):
        jit.prepare([draw])
        self.target, self.seed, self.steps = target, seed, 0
        self.law, self._state = law_of(target), around(target.start())
        self._rng = Generator(SFC64(seed))

    def advance(self, n: int) -> None:
        """Make steps. Raises FloatingPointError where a parameter is no longer finite."""
        for _ in range(n):
            climb(self.law, self._state, self._rng, _change)
            self.steps += 1

    @property
    def parameters(self) -> tuple[Array, Array]:
        """The shapes and the rates of q, each (unknowns,)."""
        shape, rate = softplus(self._state.theta)
        return shape, rate

    @property
    def divergence(self) -> float:
        """KL(q‖p): log evidence less ELBO."""
        return divergence(*self.parameters, self.law)

    def cdf(self, k: int, x: Array) -> Array:
        """The CDF under q of θ, or on the simplex of the share ω_k, at x (n,)."""
        shape, rate = self.parameters
        if self.target.support == SIMPLEX:
            return share_cdf(shape, rate, k, x)
        return np.asarray(special.gammainc(shape[k], rate[k] * x))


def _change(ascent: Ascent, g: Array) -> Array:
    return ascent.change(OPTIMISER, g, STEP_SIZE, MOMENTUM, RHO)


def log_quantiles(shape: Array, below: Array, above: Array) -> Array:
    """The logarithms of the quantiles of Gamma(shape, 1) (unknowns,) at levels u and 1 − u (n,), (n, unknowns)."""
    a, below, above = shape[None], below[:, None], above[:, None]
    x = np.where(below < 0.5, special.gammaincinv(a, below), special.gammainccinv(a, above))
    # Where x underflows F(x) → x^a/Γ(a + 1), which is exact there.
    tiny = (np.log(below) + special.gammaln(a + 1)) / a
    return np.where(x > 1e-250, np.log(np.maximum(x, 1e-300)), tiny)


def divergence(shape: Array, rate: Array, law: Law) -> float:
    """KL(q‖p) of q = Π Gamma(shape, rate) from independent unknowns: ∫₀¹ [log q − log p](x(u)) du of each, in nats.

    u = 1/(1 + e^{−π sinh s}), with the trapezoid rule in s.
    """
    below, above = special.expit(np.pi * np.sinh(NODES)), special.expit(-np.pi * np.sinh(NODES))
    weights = np.pi * np.cosh(NODES) * below * above * (NODES[1] - NODES[0])
    log_y = log_quantiles(shape, below, above)
    log_q = (shape - 1) * log_y - np.exp(log_y) - special.gammaln(shape) + np.log(rate)
    return float(weights @ (log_q - law.log_densities(log_y - np.log(rate))).sum(axis=1))


def share_cdf(shape: Array, rate: Array, k: int, share: Array | Sequence[float]) -> Array:
    """P(θ_k ≤ w Σθ) for independent θ_j ~ Gamma(shape_j, rate_j), at shares w (n,).

    It is P(Q ≤ 0) of Q = (1 − w)θ_k − w Σ_{j≠k} θ_j = Σ c_j γ_j, with γ_j ~ Gamma(a_j, 1), and by Gil-Pelaez
    ½ − (1/π) ∫ sin(Σ a_j arctan(c_j e^v)) Π (1 + c_j² e^{2v})^{−a_j/2} dv.
    """
    out = np.empty(len(share))
    for i, w in enumerate(share):
        if not 0 < w < 1:
            out[i] = float(w >= 1)
            continue
        c = -w / rate
        c[k] = (1 - w) / rate[k]
        size = np.abs(c)
        # Below it the integrand is less than u Σ a|c|; above it less than Π (|c|u)^{−a}.
        low = np.log(SMALLEST / (shape * size).sum())
        high = (shape @ -np.log(size) - np.log(SMALLEST)) / shape.sum()
        # A double ends at e^709.
        v = np.arange(low, min(max(high, low + 1), 700.0) + FREQUENCY_STEP, FREQUENCY_STEP)
        u = np.exp(v)[:, None] * c
        decay = np.exp(-np.log(np.hypot(1.0, u)) @ shape)
        out[i] = 0.5 - (np.sin(np.arctan(u) @ shape) * decay).sum() * FREQUENCY_STEP / np.pi
    return np.clip(out, 0.0, 1.0)

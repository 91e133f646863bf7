"""Mean-field variational inference for topics on a sphere, with all documents or with minibatches."""

from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.special import gammaln, polygamma, psi

from sgmcmc_lab.samplers.models.spherical import textbook
from sgmcmc_lab.samplers.models.spherical.bessel import mean_length
from sgmcmc_lab.samplers.models.spherical.method import SphericalMethod, State
from sgmcmc_lab.samplers.models.spherical.model import Spherical
from sgmcmc_lab.samplers.parameters import Count, Real
from sgmcmc_lab.samplers.targets.base import Array

MOST = 1.0
"""A sweep changes no log λ by more: next to a corner of the simplex the natural gradient is far too long."""


def spread(model: Spherical, beta: Array) -> tuple[float, Array]:
    """A(σ), and E[β_j·β_k] under the factors vMF(b_k, σ), (topics, topics)."""
    a = mean_length(model.n_words, model.s)
    gram = a * a * (beta @ beta.T)
    np.fill_diagonal(gram, 1.0)
    return a, gram


def moments(lam: Array, gram: Array) -> tuple[Array, Array]:
    """E θ (documents, topics), and (E‖βθ‖²)^{1/2} (documents,), θ ~ Dir(λ)."""
    total = lam.sum(axis=1)
    square = ((lam @ gram) * lam).sum(axis=1) + lam @ gram.diagonal()
    return lam / total[:, None], np.sqrt(square / (total * (total + 1)))


def bound(model: Spherical, beta: Array, lam: Array) -> float:
    """The approximate lower bound of log p(v), up to a constant, for all documents and their λ (documents, topics)."""
    a, gram = spread(model, beta)
    mean, lengths = moments(lam, gram)
    fit = model.k * a * ((mean * (model.training @ beta.T)).sum(axis=1) / lengths).sum()
    total = lam.sum(axis=1, keepdims=True)
    logs = psi(lam) - psi(total)
    entropy = gammaln(lam).sum() - gammaln(total).sum() + ((model.alpha - lam) * logs).sum()
    return float(fit + entropy - model.prior_energy(a * beta))


def slope_of_theta(model: Spherical, beta: Array, documents: Array, lam: Array) -> Array:
    """The derivative of the fit in λ, (documents, topics)."""
    a, gram = spread(model, beta)
    mean, lengths = moments(lam, gram)
    g = documents @ beta.T
    along, total = (mean * g).sum(axis=1), lam.sum(axis=1)
    square = (lengths**2 * total * (total + 1))[:, None]
    cross = (2 * lam @ gram + gram.diagonal()) / square - ((2 * total + 1) / (total * (total + 1)))[:, None]
    return model.k * a / lengths[:, None] * ((g - along[:, None]) / total[:, None] - along[:, None] / 2 * cross)


def natural(model: Spherical, lam: Array, slope: Array) -> Array:
    """The natural gradient of the bound in λ: F⁻¹ · slope + α − λ, with Fisher's matrix F = diag ψ′(λ) − ψ′(λ₀)11ᵀ."""
    d, c = polygamma(1, lam), polygamma(1, lam.sum(axis=1, keepdims=True))
    share = slope / d
    return (
        share
        + c * share.sum(axis=1, keepdims=True) / (1 - c * (1 / d).sum(axis=1, keepdims=True)) / d
        + model.alpha
        - lam
    )


def slope_of_topics(model: Spherical, beta: Array, documents: Array, lam: Array, factor: float) -> tuple[Array, Array]:
    """The derivative of the bound in b_k (topics, words), documents counted ``factor`` times; and of each topic the sum
    of its weights, (topics,), by which a step in it is scaled.
    """
    a, gram = spread(model, beta)
    mean, lengths = moments(lam, gram)
    total = lam.sum(axis=1)
    along = (mean * (documents @ beta.T)).sum(axis=1)
    weights = along / lengths**3 / (total * (total + 1))
    outer = (lam * weights[:, None]).T @ lam
    np.fill_diagonal(outer, 0.0)
    shares = mean / lengths[:, None]
    prior = -a * model.prior_gradient(a * beta)
    slope = factor * model.k * a * (shares.T @ documents - a * a * outer @ beta) + prior
    return slope, factor * model.k * a * shares.sum(axis=0) + float(np.linalg.norm(prior))


class SphericalVariational(SphericalMethod):
    """A method that fits q(β, θ) = Π vMF(β_k|b_k, σ) Π Dir(θ_d|λ_d). Its score is that of the point b."""

    sweeps: Any = Count(
        10,
        bounds=(1, 1000),
        log=True,
        tex="L",
        label="Sweeps of λ",
        doc="How many natural gradient steps the proportions of each document make in one step.",
    )
    step_size: Any = Real(
        0.5,
        bounds=(0.001, 2.0),
        log=True,
        tex=r"\rho",
        label="Step size ρ",
        doc="How far a step goes: at 1 a topic would go to the weighted mean of what its documents leave to it.",
    )

    def start(self, model, rng):
        state = super().start(model, rng)
        state.velocity[:] = 0.0
        state.extra["lam"] = np.full((model.n_data, model.n_topics), model.alpha)
        return state

    def theta(self, model, state):
        lam = state.extra["lam"]
        return lam / lam.sum(axis=1, keepdims=True)

    def scored(self, model: Spherical, state: State) -> Array:
        return model.log_density(state.beta)

    def batch(self, model: Spherical, rng: Generator) -> Any:
        """The documents of a step."""
        return np.arange(model.n_data)

    def rate(self, state: State) -> float:
        """ρ of this step."""
        return float(self.step_size)

    def advance(self, model: Spherical, state: State, rng: Generator) -> int:
        """λ of a batch, then all topics, each scaled to length 1 again."""
        state.batch = self.batch(model, rng)
        documents, lam = model.training[state.batch], state.extra["lam"][state.batch]
        for _ in range(self.sweeps):
            ascent = natural(model, lam, slope_of_theta(model, state.beta, documents, lam))
            lam *= np.exp(np.clip(self.step_size * ascent / lam, -MOST, MOST))
        state.extra["lam"][state.batch] = lam
        slope, weights = slope_of_topics(model, state.beta, documents, lam, model.n_data / len(documents))
        slope -= (slope * state.beta).sum(axis=1, keepdims=True) * state.beta
        state.beta += self.rate(state) * slope / weights[:, None]
        state.beta /= np.linalg.norm(state.beta, axis=1, keepdims=True)
        self.check_finite(state)
        state.steps += 1
        return len(documents)

    def textbook_step(self, rng, model, state):
        return textbook.variational(self, rng, model, state)


class SphericalVI(SphericalVariational):
    """Variational inference with all documents (Reisinger et al. 2010; the approximations are ours).

    Bound: E[v·v̄] is taken for A(σ) v·b E[θ]/(E‖βθ‖²)^{1/2}, and E log c_V(‖m̄‖) for log c_V(‖κ₀m + σA(σ)Σb_k‖). Step:
    log λ ← log λ + clip(ρ(F⁻¹∇S + α − λ)/λ, ±1), L times; b_k ← b_k + ρΛ∇_k/w_k, scaled to length 1.
    It climbs to a local maximum of the bound: an approximation of p(β, θ|v) that is not drawn from.
    """

    key = "spherical_vi"
    title = "VI"
    update = (
        r"\begin{aligned}\log\lambda_d &\leftarrow \log\lambda_d + \rho\,(F^{-1}\nabla_{\!\lambda} S_d + \alpha - \lambda_d)/\lambda_d,\quad L \text{ times}\\"
        r"b_k &\leftarrow \frac{b_k + \rho\,\Lambda\nabla_{\!b_k}\mathcal L/w_k}{\lVert\cdot\rVert},\quad "
        r"S_d = \kappa A(\sigma)\,\frac{v_d\cdot b\,\mathbb E\theta_d}{\sqrt{\mathbb E\lVert\beta\theta_d\rVert^2}}\end{aligned}"
    )
    source = "Reisinger et al. 2010; Knowles & Minka 2011 for the step of λ"

    tried_at = ({"sweeps": 3},)


class SphericalStoVI(SphericalVariational):
    """Stochastic variational inference: the same with minibatches and falling steps.

    A document's λ goes on from where it was left. It converges to a local maximum of the same bound.
    """

    key = "spherical_stovi"
    title = "Stochastic VI"
    update = (
        r"\begin{aligned}\log\lambda_d &\leftarrow \log\lambda_d + \rho\,(F^{-1}\nabla_{\!\lambda} S_d + \alpha - \lambda_d)/\lambda_d,\quad L \text{ times, for a minibatch}\\"
        r"b_k &\leftarrow \frac{b_k + \rho_t\,\Lambda\nabla_{\!b_k}\hat{\mathcal L}/w_k}{\lVert\cdot\rVert},\quad \rho_t = \rho\,(1 + t/t_0)^{-0.7}\end{aligned}"
    )
    source = "Hoffman, Blei, Wang & Paisley 2013"

    batch_size = Count(
        50,
        bounds=(1, 100_000),
        log=True,
        tex="S",
        label="Documents in a step",
        doc="How many documents one step looks at.",
    )
    delay = Real(
        10.0,
        bounds=(1.0, 1e5),
        log=True,
        tex="t_0",
        label="Delay t₀",
        doc="After so many steps the topics' steps begin to shrink.",
    )

    def batch(self, model, rng):
        return rng.choice(model.n_data, min(int(self.batch_size), model.n_data), replace=False, shuffle=False)

    def rate(self, state):
        return float(self.step_size * (1 + state.steps / self.delay) ** -0.7)

    tried_at = ({"sweeps": 3, "batch_size": 3, "delay": 2.0},)

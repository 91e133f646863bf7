"""The exact transition of the Cox–Ingersoll–Ross process."""

from math import expm1

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.base import Sampler
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.requirements import FULL
from sgmcmc_lab.samplers.targets.base import POSITIVE, SIMPLEX


@jit.helper
def scale_and_rate(h):
    """1 − e^{−h} and e^{−h}/(1 − e^{−h}), which all transitions over the time h share."""
    return -expm1(-h), 1 / expm1(h)


MANY = 1e15
"""A Poisson number with a larger mean, which may not fit into an integer, is taken for its mean: it is within 3e-8."""


@jit.inlined
def transition(rng, theta, shape, scale, rate):
    """θ_{t+h} given θ_t: scale·Gamma(a + N, 1), N ~ Poisson(rate·θ).

    The same distribution as (1 − e^{−h})/2 times a noncentral χ² with 2a degrees of freedom and noncentrality
    2θe^{−h}/(1 − e^{−h}), eq (2.2) of Baker et al.
    """
    mean = rate * theta
    # A NaN compares false, and stays one.
    number = float(rng.poisson(mean)) if mean < MANY else mean
    return scale * rng.standard_gamma(shape + number)


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    theta, target_params = state.position, model.params
    n_chains, dim = theta.shape
    # At a temperature θ/unit is the process with the rate 1, in time t/unit.
    unit = target_params[2 * dim] if target_params.size > 2 * dim else 1.0
    scale, rate = scale_and_rate(params[0] / unit)
    scale, rate = scale * unit, rate / unit
    for t in range(n):
        for c in range(n_chains):
            for j in range(dim):
                shape = target_params[j] + target_params[dim + j]
                theta[c, j] = transition(rng, theta[c, j], shape, scale, rate)
                out[t, c, j] = theta[c, j]


class CIR(Sampler):
    """The Cox–Ingersoll–Ross process, simulated without discretisation error (Baker et al. 2018, eq 2.2).

    SDE: dθ = (a − θ) dt + √(2θ) dW: the recipe with U = θ − (a − 1) log θ, D = θ, Q = 0.
    Exact transition over time h; Gamma(a, 1) is invariant for every h. On a Dirichlet posterior
    a_j = α + N_j, and ω = θ / Σθ has the posterior as its distribution.

    At temperature T the recipe has U/T in place of U. On the gamma distribution it is dθ = (a′ − θ/T) dt + √(2θ) dW
    with a′ = 1 + (a − 1)/T: θ/T is the process of shape a′ in time t/T. Exact transition over time h: θ' = T(1 −
    e^{−h/T})·Gamma(a′ + K, 1), K ~ Poisson((θ/T)e^{−h/T}/(1 − e^{−h/T})); the gamma distribution with shape a′ and
    scale T is invariant for every h, and its autocorrelation is e^{−t/T}. The state of a Dirichlet posterior is θ/T,
    for which the recipe with D = diag(θ/T) is the process of shape a_j = α′ + N_j/T in time t.
    """

    key = "cir"
    title = "CIR"
    update = r"\theta_{t+h} = (1 - e^{-h})\,\mathrm{Gamma}(a + K, 1),\quad K \sim \mathrm{Poisson}\Bigl(\theta_t\,\frac{e^{-h}}{1 - e^{-h}}\Bigr)"
    diffusion = r"D = \operatorname{diag}(\theta)"
    curl = "Q = 0"
    integrator = "Exact transition"
    source = "Cox, Ingersoll & Ross 1985; Baker et al. 2018, eq (2.2)"
    supports = frozenset({POSITIVE, SIMPLEX})
    accepts = frozenset({FULL})
    process = "cir"
    gradient_age = None
    advance = advance

    step_size = Real(
        0.5,
        bounds=(1e-4, 10.0),
        log=True,
        tex="h",
        label="Step size h",
        doc="The time that one step advances. The transition is exact for every h; larger steps only forget faster.",
    )

    bias_order = None
    steps_to_test = 100
    parts = {
        "mean": r"\theta_t\,\frac{e^{-h}}{1 - e^{-h}}",
        "Poisson": r"K \sim \mathrm{Poisson}",
        "gamma": r"\mathrm{Gamma}(a + K, 1)",
    }
    textbook_step = textbook.cir

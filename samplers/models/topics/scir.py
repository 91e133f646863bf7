"""The stochastic CIR process for topics."""

import numpy as np

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.cir import scale_and_rate, transition
from sgmcmc_lab.samplers.models.topics import textbook
from sgmcmc_lab.samplers.models.topics.stochastic_gradient import STEP, StochasticGradient
from sgmcmc_lab.samplers.parameters import Real


@jit.loop(STEP)
def step(rng, theta, momentum, totals, counts, pull, factor, prior, n_topics, params):
    scale, rate = scale_and_rate(params[0])
    totals[:] = 0
    for w in range(len(theta)):
        for k in range(n_topics):
            shape = prior + factor * counts[w, k]
            x = transition(rng, theta[w, k], shape, scale, rate)
            theta[w, k] = x
            totals[k] += x
    return totals.sum()


class SCIR(StochasticGradient):
    """The stochastic CIR process (Baker et al. 2018, Algorithm 1), one for each θ_kw.

    The exact transition of dθ = (â − θ) dt + √(2θ) dW over the time h, with â = β + (D/n) B from a fresh minibatch:
    θ ← (1 − e^{−h})·Gamma(â + K, 1), K ~ Poisson(θ e^{−h}/(1 − e^{−h})). Were the counts exact and fixed,
    θ_kw ~ Gamma(β + N_kw, 1) and φ_k ~ Dir(β + N_k) for every h; the minibatch's noise and the change of φ between
    two minibatches make the bias, which falls with h.
    """

    key = "lda_scir"
    title = "SCIR"
    update = (
        r"\theta_{kw} \leftarrow (1 - e^{-h})\,\mathrm{Gamma}(\hat a + K, 1),\quad "
        r"K \sim \mathrm{Poisson}\Bigl(\theta_{kw}\,\frac{e^{-h}}{1 - e^{-h}}\Bigr),\quad \hat a = \beta + \tfrac{D}{n} B_{kw}"
    )
    source = "Baker et al. 2018, Algorithm 1 and section 4.1"
    step = step

    step_size = Real(
        0.5,
        bounds=(1e-4, 10.0),
        log=True,
        tex="h",
        label="First step size h",
        doc="How much time passes between the first two minibatches. Small steps average over many minibatches; there is no discretisation error at any h.",
    )
    decay_steps = Real(
        10.0,
        bounds=(1.0, 1e6),
        log=True,
        tex=r"\tau",
        label="Steps before decay τ",
        doc="In the schedule h(1 + m/τ)^−κ of the step sizes: after how many steps they begin to fall.",
    )
    decay_power = Real(
        0.33,
        bounds=(0.0, 1.0),
        tex=r"\kappa",
        label="Decay κ",
        doc="In the schedule h(1 + m/τ)^−κ of the step sizes: how fast they fall; 0 keeps them constant.",
    )

    exact_at = ({**textbook.FULL, "step_size": 0.7}, 20_000, 0.0)
    tried_at = (textbook.FEW,)

    @textbook.over_minibatches
    def textbook_step(self, rng, theta, momentum, counts, h, beta):
        for w, k in np.ndindex(*theta.shape):
            jumps = rng.poisson(theta[w, k] * np.exp(-h) / (1 - np.exp(-h)))
            theta[w, k] = (1 - np.exp(-h)) * rng.standard_gamma(beta + counts[w, k] + jumps)

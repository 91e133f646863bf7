"""Mirrored Langevin dynamics on the simplex, by the entropic mirror map."""

from math import exp, log, sqrt

import numpy as np

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.base import Sampler
from sgmcmc_lab.samplers.kernels.minibatch import estimate_counts
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.requirements import BATCH, FULL
from sgmcmc_lab.samplers.targets.base import SIMPLEX

SMALLEST = 1e-300
"""Smaller shares are set to this value, so that they have a logarithm: y then stays above −691."""


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    step_size, target_params, theta = params[0], model.params, state.position
    n_chains, dim = theta.shape
    noise = sqrt(2 * step_size)
    y, counts = np.empty(dim), target_params[dim : 2 * dim].copy()
    n_data = counts.sum()
    for t in range(n):
        for c in range(n_chains):
            if source.batch_size > 0:
                estimate_counts(rng, state.data, n_data, source.batch_size, source.replacement, counts)
            scale = shapes = 0.0
            for j in range(dim):
                scale += theta[c, j]
                shapes += target_params[j] + counts[j]
            last, top = log(theta[c, dim - 1]), 0.0
            y[dim - 1] = 0.0
            for j in range(dim - 1):
                drift = target_params[j] + counts[j] - shapes * (theta[c, j] / scale)
                y[j] = log(theta[c, j]) - last + (step_size * drift + noise * rng.standard_normal())
                # A NaN does not enter the maximum, and stays a NaN.
                top = max(top, y[j])
            total = 0.0
            for j in range(dim):
                y[j] = exp(y[j] - top)
                total += y[j]
            for j in range(dim):
                theta[c, j] = max(y[j] / total, SMALLEST)
                out[t, c, j] = theta[c, j]


class MirroredLangevin(Sampler):
    """Mirrored Langevin dynamics with the entropic mirror map, and its minibatch version (Hsieh et al. 2018).

    The mirror map h(ω) = Σ_j ω_j log ω_j on the simplex has the dual coordinates y_j = log(ω_j/ω_d), j < d, and back
    ω_j = e^{y_j}/(1 + Σ_l e^{y_l}). With the Jacobian |∂ω/∂y| = Π_j ω_j over all d shares, Dir(a) has in y the density
    e^{−W}, W(y) = −Σ_{j<d} a_j y_j + A log(1 + Σ_l e^{y_l}), A = Σ_j a_j. It is strictly log-concave for all a > 0,
    even for a_j < 1, where the density of ω is infinite at 0. It is not strongly so: its tails are e^{−a_j|y|}.
    SDE: dy = −∇W dt + √2 dB. Euler–Maruyama: y ← y + ε(â − Aω) + N(0, 2ε), â_j = α + N̂_j by a minibatch.
    Invariant distribution of ω: Dir(α + N) as ε → 0. The drift has the mean 0 in every stationary distribution with
    moments, so E ω_j = a_j/A exactly for every ε, with minibatches too. The drift is bounded by A, so no ε blows up.
    The price of the flat tails: a share with a small a_j takes a time of about 4/a_j² to forget its start.
    Here θ = ω; a share below 1e−300 is set to 1e−300, which matters for α < 0.01 alone.
    """

    key = "mirrored_langevin"
    title = "Mirrored Langevin"
    update = (
        r"\begin{aligned}y_{t+1} &= \log\frac{\omega_t}{\omega_{t,d}} + \epsilon\bigl(\hat a - A\,\omega_t\bigr) + \mathcal N(0, 2\epsilon),\quad \hat a = \alpha + \hat N,\ A = \textstyle\sum_j \hat a_j\\"
        r"\omega_{t+1} &= \frac{e^{y_{t+1}}}{\sum_j e^{y_{t+1,j}}}\end{aligned}"
    )
    diffusion = r"D = I \text{ for } y"
    curl = "Q = 0"
    integrator = "Euler–Maruyama of the dual variable"
    source = "Hsieh, Kavis, Rolland & Cevher 2018, eq (3.2) and section 4"
    supports = frozenset({SIMPLEX})
    accepts = frozenset({FULL, BATCH})
    known_bias = "Large steps spread the shares too widely, and a share with a small aⱼ takes a time of about 4/aⱼ² to forget where it was."
    gradient_age = None
    advance = advance

    step_size = Real(
        0.001,
        bounds=(1e-6, 10.0),
        log=True,
        tex=r"\epsilon",
        label="Step size ε",
        doc="The time that one step of the dual variable advances. Large steps spread the shares too widely; their means stay exact.",
    )

    bias_order = 1
    steps_to_test = 500

    parts = {
        "drift": r"\epsilon\bigl(\hat a - A\,\omega_t\bigr)",
        "gradient noise": r"\hat a = \alpha + \hat N",
        "injected noise": r"\mathcal N(0, 2\epsilon)",
    }

    def textbook_step(self, rng, run, theta, r, data):
        eps = self.step_size
        for c in range(len(theta)):
            x = theta[c].copy()
            y = np.log(x) - np.log(x[-1])
            drifts = [a - a.sum() * x / x.sum() for a in textbook.shapes(rng, run, data, x)]
            noise = np.array([sqrt(2 * eps) * rng.standard_normal() for _ in x[:-1]] + [0.0])
            if not run.noisy:
                drifts = drifts[-1:]
            for drift in drifts:
                drift[-1] = 0.0
            for name, drift in zip(["drift", "gradient noise"], drifts, strict=False):
                with run.part(name, c):
                    theta[c] = textbook.softmax(y + eps * drift)
            with run.part("injected noise", c):
                theta[c] = textbook.softmax(y + (eps * drifts[-1] + noise))

"""The stochastic Cox–Ingersoll–Ross process: the exact transition with a minibatch estimate of the shape."""

import numpy as np

from samplers import jit, textbook
from samplers.kernels.base import Sampler
from samplers.kernels.cir import scale_and_rate, transition
from samplers.kernels.minibatch import estimate_counts
from samplers.needs import BATCH
from samplers.parameters import Real
from samplers.targets.base import SIMPLEX


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    scale, rate = scale_and_rate(params[0])
    theta, target_params = state.position, model.params
    n_chains, dim = theta.shape
    counts = np.empty(dim)
    for t in range(n):
        for c in range(n_chains):
            estimate_counts(rng, state.data, source.batch_size, source.replacement, counts)
            for j in range(dim):
                theta[c, j] = transition(rng, theta[c, j], target_params[j] + counts[j], scale, rate)
                out[t, c, j] = theta[c, j]


class SCIR(Sampler):
    """The stochastic CIR process (Baker et al. 2018, Algorithm 1).

    The transition of :class:`~samplers.kernels.cir.CIR` with â_j = α + N̂_j from a fresh minibatch at every step.
    No discretisation error for any h; the mean is that of the exact process, and the variance is larger
    by (1 − e^{−2Mh})·(1 − e^{−h})/(1 + e^{−h})·Var[â] after M steps (Corollary 3.2).
    """

    key = "scir"
    title = "SCIR"
    update = r"\theta_{t+h} = (1 - e^{-h})\,\mathrm{Gamma}(\hat a + K, 1),\quad K \sim \mathrm{Poisson}\Bigl(\theta_t\,\frac{e^{-h}}{1 - e^{-h}}\Bigr),\quad \hat a = \alpha + \hat N"
    diffusion = r"D = \operatorname{diag}(\theta)"
    curl = "Q = 0"
    integrator = "Exact transition"
    source = "Baker et al. 2018, Algorithm 1"
    supports = frozenset({SIMPLEX})
    takes = frozenset({BATCH})
    process = "cir"
    gradient_age = None
    advance = advance

    step_size = Real(0.1, bounds=(1e-4, 10.0), log=True, tex="h", label="Step size h",
                     doc="How much time passes between two minibatches. Small steps average over many minibatches; there is no discretisation error at any h.")  # fmt: skip

    bias_order = None
    steps_to_test = 100
    parts = {
        "mean": r"\theta_t\,\frac{e^{-h}}{1 - e^{-h}}",
        "gradient noise": r"\hat a = \alpha + \hat N",
        "Poisson": r"K \sim \mathrm{Poisson}",
        "gamma": r"\mathrm{Gamma}(\hat a + K, 1)",
    }
    textbook_step = textbook.cir

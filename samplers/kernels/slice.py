"""Slice sampling, one coordinate after the other."""

from math import inf, log1p

import numpy as np

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.base import Sampler
from sgmcmc_lab.samplers.parameters import Count, Real
from sgmcmc_lab.samplers.requirements import FULL

_SHRINKAGES = 100
"""An interval that was cut at random so often is shorter than rounding: each cut leaves ¾ of it on average at most."""


@jit.inlined
def _stretched(model, x, i, energy, info, level, end, width, times):
    """The end of the interval after at most so many steps outwards, as long as it is within the slice."""
    while times > 0:
        x[0, i] = end
        model.potential(x, energy, model.params)
        info.counts[jit.GRADIENTS] += 1
        if not energy[0] < level:
            break
        end += width
        times -= 1
    return end


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    width, most = params[0], int(params[1])
    theta = state.position
    n_chains, dim = theta.shape
    x, energy = np.empty((1, dim)), np.empty(1)
    for t in range(n):
        for c in range(n_chains):
            x[0] = theta[c]
            model.potential(x, energy, model.params)
            info.counts[jit.GRADIENTS] += 1
            current = energy[0]
            for i in range(dim):
                level = current - log1p(-rng.random())
                left = theta[c, i] - width * rng.random()
                right = left + width
                times = int(most * rng.random())
                left = _stretched(model, x, i, energy, info, level, left, -width, times)
                right = _stretched(model, x, i, energy, info, level, right, width, most - 1 - times)
                inside = False
                for _ in range(_SHRINKAGES):
                    x[0, i] = left + rng.random() * (right - left)
                    model.potential(x, energy, model.params)
                    info.counts[jit.GRADIENTS] += 1
                    inside = -inf < energy[0] < level
                    if inside:
                        break
                    if x[0, i] < theta[c, i]:
                        left = x[0, i]
                    else:
                        right = x[0, i]
                if inside:
                    theta[c, i], current = x[0, i], energy[0]
                x[0, i] = theta[c, i]
            for i in range(dim):
                out[t, c, i] = theta[c, i]


class Slice(Sampler):
    """Slice sampling by coordinates, with stepping out and shrinkage (Neal 2003, figures 3 and 5).

    For each coordinate in turn: a level y = U(θ) + Exp(1) defines the slice {U < y}. An interval of width w, placed at
    random around θ_i, steps out by w at either side while its end is in the slice, m − 1 times at most, which are
    divided between the sides at random. A uniform point of the interval is drawn until one is in the slice; each that
    is not becomes an end of the interval.
    Invariant distribution: e^{−U}, exactly, for every w and m. It needs energies alone, and about as many of them
    whatever the scale of θ is; each looks at all data and is counted as a gradient.
    Shapes: θ (chains, d); no auxiliary variables.
    """

    key = "slice"
    title = "Slice sampling"
    update = (
        r"\begin{aligned}y &= U(\theta) + \operatorname{Exp}(1),\quad I \ni \theta_i \text{ stepped out by } w \text{ until } U > y \text{ at its ends}\\"
        r"\theta_i' &\sim \operatorname{Unif}(I), \text{ shrunk towards } \theta_i \text{ until } U(\theta') < y\end{aligned}"
    )
    diffusion = r"\text{none}"
    curl = r"\text{none}"
    integrator = "None: a uniform draw from a slice of the density"
    source = "Neal 2003, figures 3 and 5"
    accepts = frozenset({FULL})
    gradient_age = None
    moving = True
    first_stride = 4.0
    advance = advance

    step_size = Real(
        1.0,
        bounds=(1e-4, 100.0),
        log=True,
        tex="w",
        label="Width w",
        doc="The width of the first interval. The draws are exact for every value; far from the slice's own width a step takes more energies.",
    )
    limit = Count(
        10,
        bounds=(1, 100),
        tex="m",
        label="Widths at most m",
        doc="An interval steps out to at most m widths. With 1 it does not step out.",
    )

    @property
    def gradients_per_step(self) -> int:
        """None besides the energies that the kernel counts."""
        return 0

    @property
    def time_per_step(self) -> float:
        return 0.0

    bias_order = None
    steps_to_test = 100

    parts = {
        "interval": r"\text{ stepped out by } w",
        "draw": r"\operatorname{Unif}(I)",
    }

    def textbook_step(self, rng, run, theta, r, data):
        width, most = self.step_size, self.limit

        for c in range(len(theta)):
            x = theta[c].copy()

            def energy(i, value, x=x):
                run.spend()
                point = x.copy()
                point[i] = value
                return -float(run.target.log_density(point))

            for i in range(len(x)):
                level = energy(i, x[i]) - np.log1p(-rng.random())
                left = x[i] - width * rng.random()
                ends = [left, left + width]
                outwards = int(most * rng.random())
                for side, times in ((0, outwards), (1, most - 1 - outwards)):
                    for _ in range(times):
                        if not energy(i, ends[side]) < level:
                            break
                        ends[side] += width if side else -width
                interval = np.array([x, x])
                interval[:, i] = ends
                run.aside("interval", c, interval, level=level)
                for _ in range(_SHRINKAGES):
                    value = ends[0] + rng.random() * (ends[1] - ends[0])
                    if -np.inf < energy(i, value) < level:
                        with run.part("draw", c):
                            theta[c, i] = value
                        x[i] = value
                        break
                    ends[int(value >= x[i])] = value

"""Elliptical slice sampling."""

from math import cos, inf, log1p, pi, sin

import numpy as np

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.base import Sampler
from sgmcmc_lab.samplers.parameters import Real, Value
from sgmcmc_lab.samplers.requirements import FULL
from sgmcmc_lab.samplers.targets.base import FirstSteps

_SHRINKAGES = 100
"""An arc that was cut at random so often is shorter than rounding."""


@jit.helper
def _rest(model, x, energy, scale):
    """−log of the factor beside N(0, s²I): U − ‖θ‖²/2s²."""
    model.potential(x, energy, model.params)
    square = 0.0
    for i in range(x.shape[1]):
        square += x[0, i] * x[0, i]
    return energy[0] - square / (2 * scale * scale)


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    scale, theta = params[0], state.position
    n_chains, dim = theta.shape
    x, energy, across = np.empty((1, dim)), np.empty(1), np.empty(dim)
    for t in range(n):
        for c in range(n_chains):
            x[0] = theta[c]
            for i in range(dim):
                across[i] = scale * rng.standard_normal()
            level = _rest(model, x, energy, scale) - log1p(-rng.random())
            angle = 2 * pi * rng.random()
            first, last = angle - 2 * pi, angle
            info.counts[jit.GRADIENTS] += 1
            for _ in range(_SHRINKAGES):
                for i in range(dim):
                    x[0, i] = theta[c, i] * cos(angle) + across[i] * sin(angle)
                info.counts[jit.GRADIENTS] += 1
                if -inf < _rest(model, x, energy, scale) < level:
                    theta[c] = x[0]
                    break
                if angle < 0:
                    first = angle
                else:
                    last = angle
                angle = first + rng.random() * (last - first)
            for i in range(dim):
                out[t, c, i] = theta[c, i]


class EllipticalSlice(Sampler):
    """Elliptical slice sampling (Murray, Adams & MacKay 2010), with a Gaussian that the user chooses for the prior.

    e^{−U} = N(θ; 0, s²I) L(θ). A draw ν ~ N(0, s²I) defines the ellipse θ cos φ + ν sin φ, which passes through θ at
    φ = 0, and on which N(0, s²I) ⊗ N(0, s²I) is constant; a level log L(θ) − Exp(1) defines a slice of it. The first φ
    is uniform, and the arc shrinks towards φ = 0 until a point is in the slice.
    Invariant distribution: e^{−U}, exactly, for every s: where the prior is N(0, s²I), L is the likelihood; any other s
    moves the rest of the prior into L. Each energy looks at all data and is counted as a gradient.
    Shapes: θ (chains, d); no auxiliary variables.
    """

    key = "elliptical_slice"
    title = "Elliptical slice sampling"
    update = (
        r"\begin{aligned}\nu &\sim \mathcal N(0, s^2 I),\quad y = \log L(\theta_t) - \operatorname{Exp}(1)\\"
        r"\theta_{t+1} &= \theta_t \cos\varphi + \nu \sin\varphi,\quad \varphi \text{ shrunk towards } 0 \text{ until } \log L(\theta_{t+1}) > y\end{aligned}"
    )
    diffusion = r"\text{none}"
    curl = r"\text{none}"
    integrator = "None: a draw from a slice of an ellipse"
    source = "Murray, Adams & MacKay 2010, figure 2"
    accepts = frozenset({FULL})
    gradient_age = None
    advance = advance

    step_size = Real(
        2.0,
        bounds=(1e-4, 1000.0),
        log=True,
        tex="s",
        label="Prior's scale s",
        doc="The standard deviation of the Gaussian of the ellipses. The draws are exact for every value; far below or above the target's width, moves are short.",
    )

    @classmethod
    def first_values(cls, first: FirstSteps | None, gradient: str) -> dict[str, float]:
        """A steep target needs no other prior: its slice of an ellipse is short, and found by shrinkage."""
        return {}

    @classmethod
    def params_to_test(cls, step_size: float) -> dict[str, Value]:
        return {}

    @property
    def gradients_per_step(self) -> int:
        """None besides the energies that the kernel counts."""
        return 0

    @property
    def time_per_step(self) -> float:
        return 0.0

    bias_order = None
    steps_to_test = 300

    parts = {
        "ellipse": r"\nu \sin\varphi",
        "draw": r"\varphi \text{ shrunk towards } 0",
    }

    def textbook_step(self, rng, run, theta, r, data):
        scale = self.step_size

        def log_likelihood(x):
            run.spend()
            return float(run.target.log_density(x)) + x @ x / (2 * scale**2)

        for c in range(len(theta)):
            x = theta[c].copy()
            nu = np.array([scale * rng.standard_normal() for _ in x])
            level = log_likelihood(x) + np.log1p(-rng.random())
            angle = 2 * pi * rng.random()
            arc = [angle - 2 * pi, angle]
            turns = np.linspace(0, 2 * pi, 73)[:, None]
            run.aside("ellipse", c, x * np.cos(turns) + nu * np.sin(turns), nu=nu, level=level)
            for _ in range(_SHRINKAGES):
                drawn = x * cos(angle) + nu * sin(angle)
                if np.inf > log_likelihood(drawn) > level:
                    with run.part("draw", c, angle=angle):
                        theta[c] = drawn
                    break
                arc[int(angle >= 0)] = angle
                angle = arc[0] + rng.random() * (arc[1] - arc[0])

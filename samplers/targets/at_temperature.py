"""The common part of the distributions e^{−U/T} of another target's energy U."""

from typing import Any, Self

import numpy as np

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.targets.base import Array, FirstSteps, Target


class AtTemperature(Target):
    """The distribution e^{−U/T} of another target's energy U, T ≠ 1; its class is also a subclass of that target's."""

    tempers = False
    base: Target

    @classmethod
    def made(cls, base: Target, temperature: float) -> Self:
        """That target at this temperature."""
        out = object.__new__(cls)
        # The parameters are those of the other target; no computed value of it is taken over.
        out.__dict__.update({name: value for name, value in base.__dict__.items() if name.startswith("_param")})
        out.__dict__.update(base=base, temperature=float(temperature))
        return out


class Divided(AtTemperature):
    """The same, of a target in whose coordinates energy, gradient and those of each data point are divided by T."""

    @property
    def first_steps(self) -> FirstSteps | None:
        """Those of the other target, scaled: T divides the curvature, and T² the variance of a minibatch."""
        first, heat = self.base.first_steps, self.temperature
        if first is None:
            return None
        cold = min(heat, 1.0)
        least = 1e-6
        return FirstSteps(
            moving=max(float(f"{first.moving * heat**0.5:.1g}"), least),
            batch=max(float(f"{first.batch * min(heat, heat**0.5):.1g}"), least),
            friction=min(float(f"{first.friction / cold:.1g}"), 100.0),
            other=max(float(f"{first.other * heat:.1g}"), least),
            heated=max(first.heated * min(heat, heat**2), least),
        )

    @property
    def lipschitz(self) -> Array:
        return self.base.lipschitz / self.temperature

    @property
    def lipschitz_of_each(self) -> Array:
        return self.base.lipschitz_of_each / self.temperature

    def textbook_slope(self, theta: Array, datum: int) -> Array:
        """∂(U/T)/∂θ with one data point in place of all."""
        return np.asarray(self.base.textbook_slope(theta, datum)) / self.temperature

    def textbook_energy(self, theta: Array, datum: int) -> float:
        """U/T with one data point in place of all."""
        return float(self.base.textbook_energy(theta, datum)) / self.temperature


@jit.helper
def _all(params):
    return params


def divided(kind: type[Target], own: Any = _all, module: str = "", name: str = "") -> tuple[Any, Any, Any]:
    """Energy, gradient and the gradients of data points of this kind of target, divided by T.

    Of the packed parameters ``own`` takes those that end with T; the others before it are read from the front. The
    functions belong to this ``module`` and ``name``, or to the tempered class beside the kind's.
    """
    energy, slopes, of_data = kind.potential, kind.gradient, kind.batch

    def potential(theta, out, params):
        found = own(params)
        last = found.size - 1
        energy(theta, out, found[:last])
        for c in range(theta.shape[0]):
            out[c] /= found[last]

    def gradient(theta, out, params):
        found = own(params)
        last = found.size - 1
        slopes(theta, out, found[:last])
        for c in range(theta.shape[0]):
            for i in range(theta.shape[1]):
                out[c, i] /= found[last]

    def batch(theta, data, each, params):
        found = own(params)
        last = found.size - 1
        of_data(theta, data, each, found[:last])
        for k in range(data.size):
            # An energy behind the gradient, too.
            for i in range(each.shape[1]):
                each[k, i] /= found[last]

    for function in (potential, gradient, batch):
        # Another process declares them where it imports the module.
        function.__module__ = module or kind.__module__
        function.__qualname__ = f"{name or f'Tempered{kind.__name__}'}.{function.__name__}"
    return jit.potential(potential), jit.gradient(gradient), jit.batch(batch)


def tempered_shape(target: Target, shape: float, name: str, temperature: float, high: float) -> float:
    """1 + (a − 1)/T: the exponent of θ plus 1 in (θ^{a−1})^{1/T}. Raises :class:`SpecError` where it is no shape."""
    out = 1 + (shape - 1) / temperature
    if out <= 0:
        raise SpecError(
            "temperature",
            temperature,
            f"e^(−U/T) of {target.title} has no finite integral at 0; allowed are temperatures above 1 − {name} = {1 - shape:g}",
        )
    if not 0.005 <= out <= high:
        raise SpecError(
            "temperature",
            temperature,
            f"{target.title} would have the shape {out:.4g} there; allowed are temperatures with a shape from 0.005 to {high:g}",
        )
    return out

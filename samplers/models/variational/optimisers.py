"""The steps of stochastic gradient ascent, with the conventions of Knowles 2015, section 2.4.

With momentum a running average v of the gradients goes everywhere in the place of the gradient g of the last draw, in
the squares as well: were they those of g alone, a small g after a large one would make AdaDelta's step unbounded.
"""

import numpy as np

from sgmcmc_lab.samplers.models.base import Method
from sgmcmc_lab.samplers.parameters import Option, Real, SpecError
from sgmcmc_lab.samplers.targets.base import Array

NAMES = ("adadelta", "adagrad", "rmsprop", "sgd")


class Ascent:
    """The memory of an optimiser: two running sums and the velocity, each of the parameters' shape."""

    def __init__(self, size: int):
        self.name = ""
        self.squares = np.zeros(size)
        self.changes = np.zeros(size)
        self.velocity = np.zeros(size)

    def change(self, name: str, g: Array, step_size: float, momentum: float, rho: float) -> Array:
        """The increment of the parameters.

        Momentum: v ← (1 − λ) g + λ v. SGD: 0.01 γ v. AdaGrad: 0.1 γ v / (1e-6 + √Σv²). RMSprop: m ← 0.1 v² + 0.9 m,
        0.01 γ v / (1e-6 + √m). AdaDelta: m_g ← ρ v² + (1 − ρ) m_g, Δ = γ v √(m_Δ + ε) / √(m_g + ε),
        m_Δ ← ρ Δ² + (1 − ρ) m_Δ with ε = 1e-4: here ρ weighs the *new* value, opposite to Zeiler 2012. With γ = 1 the
        last three are the paper's; it gives no step for SGD.
        """
        if name != self.name:
            # A sum of squares is no average of squares: another optimiser begins anew, with the velocity there is.
            self.name = name
            self.squares[:] = self.changes[:] = 0.0
        v = self.velocity
        v += (1 - momentum) * (g - v)
        if name == "sgd":
            return 0.01 * step_size * v
        if name == "adagrad":
            self.squares += v * v
            return 0.1 * step_size * v / (1e-6 + np.sqrt(self.squares))
        if name == "rmsprop":
            self.squares += 0.1 * (v * v - self.squares)
            return 0.01 * step_size * v / (1e-6 + np.sqrt(self.squares))
        if name == "adadelta":
            self.squares += rho * (v * v - self.squares)
            change = step_size * v * np.sqrt((self.changes + 1e-4) / (self.squares + 1e-4))
            self.changes += rho * (change * change - self.changes)
            return change
        raise SpecError("optimiser", name, f"allowed is one of {', '.join(NAMES)}")


class AscentMethod(Method):
    """A method that climbs by an optimiser: the parameters of that."""

    optimiser = Option(
        default="adadelta",
        objects=list(NAMES),
        label="Optimiser",
        doc="How long each parameter's step is. AdaDelta did best in the paper, RMSprop worst.",
    )
    step_size = Real(
        1.0,
        bounds=(1e-5, 10.0),
        log=True,
        tex=r"\gamma",
        label="Step size γ",
        doc="Multiplies the optimiser's own step, which for SGD is 0.01.",
    )
    momentum = Real(
        0.9,
        bounds=(0.0, 0.999),
        tex=r"\lambda",
        label="Momentum λ",
        doc="v ← (1 − λ) g + λ v goes in the place of g: an average over some 1/(1 − λ) draws. 0 is none.",
    )
    rho = Real(
        0.95,
        bounds=(0.01, 1.0),
        tex=r"\rho",
        label="AdaDelta's ρ",
        doc="The weight of the new value in AdaDelta's averages: in the paper the opposite of the usual ρ.",
    )

    def change(self, ascent: Ascent, g: Array) -> Array:
        """The increment of the parameters, given the gradient of the last draw."""
        return ascent.change(self.optimiser, g, self.step_size, self.momentum, self.rho)

    def textbook_change(self, ascent, g):
        """AdaDelta on a running mean of the gradients, in plain Python."""
        v = self.momentum * ascent.velocity + (1 - self.momentum) * g
        squares = self.rho * v**2 + (1 - self.rho) * ascent.squares
        change = self.step_size * v * np.sqrt(ascent.changes + 1e-4) / np.sqrt(squares + 1e-4)
        ascent.velocity, ascent.squares = v, squares
        ascent.changes = self.rho * change**2 + (1 - self.rho) * ascent.changes
        return change

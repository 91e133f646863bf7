"""The estimators of the gradient: the third factor of recipe × integrator × gradient."""

from typing import ClassVar

import param

from samplers import jit
from samplers.parameters import Count, Flag, Real, SpecError, Value, check_all
from samplers.registry import Registry
from samplers.targets.base import Target


class Estimator(param.Parameterized):
    """How a step gets its gradient."""

    key: ClassVar[str]
    title: ClassVar[str]
    tex: ClassVar[str]

    def __init__(self, **values: Value):
        super().__init__(**dict(check_all(type(self), "gradient", values)))

    def noise(self) -> jit.Noise:
        """What the kernels read."""
        return jit.Noise(0.0, 0.0, 0, True)

    def data_per_gradient(self, target: Target) -> int:
        """How many data one gradient touches; 1 where the target has no data."""
        return max(len(target.data()), 1)

    def check(self, target: Target) -> None:
        """Raise :class:`SpecError` where the estimator does not fit the target."""


class Full(Estimator):
    """The exact gradient, from all the data."""

    key = "full"
    title = "Full"
    tex = r"\nabla\tilde U = \nabla U"


class Gaussian(Estimator):
    """The exact gradient plus Gaussian noise N(0, V I), a stand-in for a minibatch of known variance."""

    key = "gaussian"
    title = "Noisy"
    tex = r"\nabla\tilde U = \nabla U + \mathcal N(0, V I)"

    variance = Real(4.0, bounds=(1e-3, 1e5), log=True, tex="V", label="Noise variance V",
                    doc="The variance of the noise added to each component of the gradient. A minibatch makes such noise; here its size is yours to choose.")  # fmt: skip

    def noise(self) -> jit.Noise:
        return jit.Noise(self.variance, 0.0, 0, True)


class GaussianCorrected(Gaussian):
    """Noise as in :class:`Gaussian`, and its variance B̂ = V subtracted from the noise that the sampler injects."""

    key = "gaussian_corrected"
    title = "Noisy, B̂ subtracted"
    tex = r"\nabla\tilde U = \nabla U + \mathcal N(0, V I),\quad \hat B = V"

    def noise(self) -> jit.Noise:
        return jit.Noise(self.variance, self.variance, 0, True)


class GaussianEstimated(Gaussian):
    """Noise as in :class:`Gaussian`, whose variance is estimated from the n draws that the gradient is the mean of.

    B̂ = V·χ²/(n − 1), with n − 1 degrees of freedom: new at every step, right on average.
    """

    key = "gaussian_estimated"
    title = "Noisy, B̂ estimated"
    tex = r"\nabla\tilde U = \nabla U + \mathcal N(0, V I),\quad \hat B = V \chi^2_{n-1}/(n-1)"

    sample_size = Count(10, bounds=(2, 10_000), log=True, tex="n", label="Draws n behind B̂",
                       doc="The gradient is the mean of so many draws, and B̂ comes from their spread. Few draws make a B̂ that jumps about.")  # fmt: skip

    def noise(self) -> jit.Noise:
        return jit.Noise(self.variance, self.variance, self.sample_size, True)


class Minibatch(Estimator):
    """The sum over the data is estimated by N/n times that over a minibatch of n data.

    For categorical data that is: the counts N_j by (N/n)·(how often category j is in the minibatch).
    """

    key = "minibatch"
    title = "Minibatch"
    tex = r"\hat N_j = \tfrac{N}{n} \textstyle\sum_{i\in S} z_{ij}"

    batch_size = Count(
        10,
        bounds=(1, 100_000),
        log=True,
        tex="n",
        label="Batch size n",
        doc="How many data a step looks at. Larger batches cost more and are less noisy.",
    )
    replacement = Flag(
        True,
        label="With replacement",
        doc="Whether one datum may be drawn twice into a minibatch. Without replacement the noise is smaller by (N−n)/(N−1).",
    )

    def noise(self) -> jit.Noise:
        return jit.Noise(0.0, 0.0, self.batch_size, self.replacement)

    def data_per_gradient(self, target: Target) -> int:
        return self.batch_size

    def check(self, target: Target) -> None:
        n_data = len(target.data())
        if self.batch_size > n_data:
            raise SpecError(
                "gradient.batch_size", self.batch_size, f"allowed is at most N = {n_data}, the number of data"
            )


class MinibatchKnown(Minibatch):
    """A minibatch as in :class:`Minibatch`, and V·I with a V that is known subtracted from what is injected.

    Known from a longer look at the data than a step takes: (N²/n)·Var(∇u_i) at usual θ, as a mean over directions. In
    each direction by itself the noise may be more or less: see :class:`MinibatchFisher`.
    """

    key = "minibatch_known"
    title = "Minibatch, V known"
    tex = r"\nabla\tilde U = \nabla U_0 + \tfrac{N}{n}\textstyle\sum_{i\in S}\nabla u_i,\quad \hat B = V I"

    variance = Real(5700.0, bounds=(1e-3, 1e7), log=True, tex="V", label="Known variance V",
                    doc="What the sampler takes the variance of the minibatch's noise for, in each direction. Too small, and the chain is too hot; too large, and it is too cold.")  # fmt: skip

    def noise(self) -> jit.Noise:
        return jit.Noise(0.0, self.variance, self.batch_size, self.replacement)


class MinibatchFisher(Minibatch):
    """A minibatch as in :class:`Minibatch`, whose noise V is estimated from it and subtracted from what is injected.

    V = (N²/n)·Cov_S(∇ log p(x_i | θ)), the minibatch's empirical Fisher information (Ahn, Korattikara & Welling 2012).
    """

    key = "minibatch_fisher"
    title = "Minibatch, V estimated"
    tex = r"\nabla\tilde U = \nabla U_0 + \tfrac{N}{n}\textstyle\sum_{i\in S}\nabla u_i,\quad V = \tfrac{N^2}{n}\operatorname{Cov}_S(\nabla u_i)"

    def noise(self) -> jit.Noise:
        # The kernels find V from the data.
        return jit.Noise(0.0, float("inf"), self.batch_size, self.replacement)

    def check(self, target: Target) -> None:
        super().check(target)
        if self.batch_size < 2:
            raise SpecError("gradient.batch_size", self.batch_size, "allowed is at least 2: one datum has no spread")


GRADIENTS: Registry[type[Estimator]] = Registry(
    "gradient", Full, Gaussian, GaussianCorrected, GaussianEstimated, Minibatch, MinibatchKnown, MinibatchFisher
)

"""The declarations of every estimator of the gradient.

The estimator defines the gradient's source and its noise; a sampler only uses the gradient. A new one is one
file and one line in ``samplers/gradients/__init__.py``.
"""

from typing import Any, ClassVar

import numpy as np
import param
from numpy.typing import NDArray

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.parameters import Value, check_all
from sgmcmc_lab.samplers.targets.base import Target


@jit.estimate
def exact(rng, theta, out, each, model, data, params, memory):
    """The gradient itself."""
    model.gradient(theta, out, model.params)


class Estimator(param.Parameterized):
    """The source of a step's gradient."""

    key: ClassVar[str]
    title: ClassVar[str]
    tex: ClassVar[str]
    tex_of_categories: ClassVar[str] = ""
    """The formula for categorical data, of which samplers use only the counts; empty if it is the same."""
    requires: ClassVar[frozenset[str]]
    """The words of :mod:`samplers.requirements` that a target must provide and a sampler accept."""

    estimate: ClassVar[Any] = staticmethod(exact)
    """The compiled function that kernels call for a gradient where :meth:`noise` has a batch size."""

    # Declarations for the tests: every estimator declares it at the end of its class, and a test names what is missing.
    textbook_gradients: ClassVar[Any]
    """``textbook_gradients(rng, target, theta (dim,), data, memory)``: gradients (n, dim) whose mean is the estimate,
    in plain Python, from the random numbers that the kernels take. ``memory`` is the chain's, changed in place."""

    def __init_subclass__(cls, **kw: Any) -> None:
        super().__init_subclass__(**kw)
        jit.keep_plain(cls, "estimate")

    def __init__(self, **values: Value):
        super().__init__(**dict(check_all(type(self), "gradient", values)))

    def noise(self) -> jit.Noise:
        """The numbers that the kernels read."""
        return jit.Noise()

    def packed(self, target: Target) -> NDArray[np.float64]:
        """The parameters as :attr:`estimate` reads them, with what they need to know of the target."""
        return np.zeros(0)

    def first_memory(self, target: Target) -> NDArray[np.float64]:
        """The initial memory of :attr:`estimate` for one chain, (numbers,); a gradient reads and updates it."""
        return np.zeros(0)

    def data_per_gradient(self, target: Target) -> float:
        """The mean number of data points of one gradient; 1 for a target without data."""
        return max(len(target.data()), 1)

    def check(self, target: Target) -> None:
        """Raise :class:`SpecError` where the estimator does not fit the target."""

    def textbook_subtracted(
        self, rng: np.random.Generator, each: NDArray[np.float64], n_data: int
    ) -> NDArray[np.float64]:
        """B̂ in plain Python, (dim, dim): what samplers subtract from the noise that they inject.

        ``each`` (n, dim) are the gradients that were averaged, projected where θ moves on a manifold.
        """
        return np.zeros((each.shape[1], each.shape[1]))

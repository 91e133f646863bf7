"""The declarations of a sampler.

A sampler is a recipe (D, Q) × an integrator × a gradient. Each file has the same order: the compiled
``advance``, which reads like the textbook's algorithm, and the declaration: equations, source,
parameters, and what its tests need. A new sampler is one file and one line in ``samplers/kernels/__init__.py``.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
import param
from numpy.typing import NDArray

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.expressions.native import Loop
from sgmcmc_lab.samplers.gradients import GRADIENTS, Estimator
from sgmcmc_lab.samplers.kernels.adaptation import Tuning
from sgmcmc_lab.samplers.manifolds import Manifold
from sgmcmc_lab.samplers.parameters import Value, check_all, declared
from sgmcmc_lab.samplers.requirements import BATCH, FULL
from sgmcmc_lab.samplers.targets.base import LINE, FirstSteps, Target

NO_MOMENTUM, KEPT, AFRESH = "", "kept", "afresh"
"""The ways in which a step treats a chain's momentum."""


@jit.start
def same_for_all(rng, position, auxiliary, model, params):
    """Start every chain at the same place, with the same auxiliary variables."""


def in_batches(gradient: str) -> bool:
    """Whether the estimator of that key takes minibatches; it may be the key of none."""
    return gradient in GRADIENTS and BATCH in GRADIENTS[gradient].requires


class Sampler(param.Parameterized):
    """A transition kernel. Instances are never changed after they are made."""

    key: ClassVar[str]
    title: ClassVar[str]
    update: ClassVar[str]
    """One step, in LaTeX; each displayed equation is a line."""
    optional: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """For a flag, the terms of :attr:`update` that a step without it does not have."""
    diffusion: ClassVar[str]
    """The recipe's D, in LaTeX."""
    curl: ClassVar[str]
    """The recipe's Q, in LaTeX."""
    integrator: ClassVar[str]
    """How the SDE is turned into steps."""
    source: ClassVar[str]
    supports: ClassVar[frozenset[str]] = frozenset({LINE})
    """The state spaces it can move in."""
    geometries: ClassVar[tuple[type[Manifold], ...]] = (Manifold,)
    """The manifolds it can move on: all, where it only follows geodesics."""
    accepts: ClassVar[frozenset[str]] = frozenset({FULL})
    """The requirements of the gradient estimators that it can be combined with."""
    requires: ClassVar[frozenset[str]] = frozenset()
    """The words of :mod:`samplers.requirements` that a target must provide beside those of the estimator."""
    least_coordinates: ClassVar[int] = 1
    """The smallest allowed dimension of θ."""
    most_coordinates: ClassVar[int | None] = None
    """The largest allowed dimension of θ; None for any."""
    process: ClassVar[str | None] = None
    """The process whose exact transition the sampler is; it needs a target with the distribution of this process."""
    gradient_age: ClassVar[int | None] = 1
    """The number of steps between the point of the last gradient and the last draw; None if that point is no draw."""
    moving: ClassVar[bool] = False
    """Whether the stable step size scales as a period of the motion, as with a velocity, not as its square."""
    first_stride: ClassVar[float] = 1.0
    """The initial step size on a steep target with the full gradient, as a multiple of that in :class:`FirstSteps`:
    above 1 if an accept step, or the absence of noise, removes the bias."""
    momentum: ClassVar[str] = NO_MOMENTUM
    """Whether the first auxiliary variables of a chain are a momentum, one number for each coordinate: :data:`KEPT` if
    a step continues with it, :data:`AFRESH` if each step draws a new one."""
    adaptation: ClassVar[Tuning | None] = None
    """The declaration of the adaptation, for a sampler with the parameter ``adapt_steps``."""
    diverges: ClassVar[bool] = False
    """Whether its kernel marks divergent transitions: trajectories with an energy error that is too large."""
    stationary_start: ClassVar[bool] = True
    """Whether chains that start at an exact draw of θ are stationary from their first step on. They are not if the
    rungs of other distributions also start at θ, or if a chain adapts to its own draws."""
    weighs: ClassVar[bool] = False
    """Whether each draw of a chain has an importance weight, from 0 to 1: the kernel writes the weight of the last draw
    into the chain's last auxiliary variable, and the statistics are weighted."""
    interacting: ClassVar[bool] = False
    """Whether chains interact: a step uses all pairs of them, and their draws are not independent."""
    counts_data: ClassVar[bool] = False
    """Whether its kernel counts data points in place of gradients, because their number differs between steps."""
    first_chains: ClassVar[int] = 1
    """The least number of chains of a run whose number of chains is not given."""
    known_bias: ClassVar[str] = ""
    """A sentence on a known bias of the sampler, which the page shows if the draws disagree with the target."""
    why_it_stops: ClassVar[str] = "a step overshot, and the next ones overshot further"
    """The reason why a chain leaves its target for good, for the message."""
    advance: ClassVar[Any]
    """The compiled kernel."""
    start: ClassVar[Any] = staticmethod(same_for_all)
    """The compiled function that makes each chain's first state, with the run's generator, before the first step: the
    kernels then need no mark of whether a step is the first, and a chain has the right distribution of momenta from its
    first step on."""

    # The tests' declarations: every sampler has them at the end of its class, and a test names the missing ones.
    bias_order: ClassVar[int | None]
    """The order p of the bias O(ε^p) of the stationary distribution; None if it has no bias at any step size. Not
    needed if chains interact, since a single chain then has no stationary distribution."""
    steps_to_test: ClassVar[int]
    """How many steps chains from exact draws make while tests compare their distribution with the target's: enough for
    a wrong drift to show. Not needed where it moves on curved manifolds only, where chains are interacting, or without
    a stationary start."""
    textbook_step: ClassVar[Any]
    """``textbook_step(rng, run, theta, r, data)``: a step in plain Python, as in :mod:`samplers.textbook`, which names
    its parts as it makes them; None where it is the target's own draw."""
    parts: ClassVar[Mapping[str, str]]
    """The parts of a step, in words, each with the term of :attr:`update` that it belongs to."""

    def __init_subclass__(cls, **kw: Any) -> None:
        super().__init_subclass__(**kw)
        jit.keep_plain(cls, "advance", "start")

    def __init__(self, **values: Value):
        """Raises :class:`~samplers.parameters.SpecError` for a value that is not allowed."""
        super().__init__(**dict(check_all(type(self), "sampler", values)))

    def check(self, target: Target) -> None:
        """Raise :class:`~samplers.parameters.SpecError` where the parameters do not fit each other or the target."""

    def refusal(self, target: Target) -> str:
        """Why a run cannot start, in a sentence; empty where it can."""
        return ""

    def bias_at(self, target: Target, draws: NDArray[np.float64]) -> str:
        """A sentence on the bias of these parameters, measured at draws (n, dim); empty where it is small or unknown.

        The page shows it at any KS distance.
        """
        return ""

    def auxiliary(self, target: Target) -> NDArray[np.float64]:
        """The first values of the auxiliary variables, momenta and thermostats, where :attr:`start` leaves them."""
        return np.zeros(target.dim)

    @property
    def steps_that_adapt(self) -> int:
        """The number of first steps in which the kernel adapts; their draws are not from the target."""
        return int(getattr(self, "adapt_steps", 0))

    def thermostats(self, target: Target) -> int:
        """The number of thermostats ξ of a chain, its last auxiliary variables."""
        return 0

    @property
    def least_chains(self) -> int:
        """The least number of chains of a run: more than one if a step adapts across chains."""
        return 1

    @classmethod
    def fits(cls, target: type[Target]) -> bool:
        """Whether the sampler can have this target, with some of its settings."""
        dim: Any = target.dim
        return (
            target.support in cls.supports
            and (not isinstance(dim, int) or cls.takes(dim))
            and issubclass(target.geometry, cls.geometries)
            and cls.process in (None, target.process)
            and cls.requires <= target.provides
            and bool(cls.gradients_for(target))
        )

    @classmethod
    def update_by(cls, gradient: type[Estimator], values: Mapping[str, Value]) -> str:
        """:attr:`update` with this estimator of the gradient and these parameters."""
        out = cls.update
        for term in (term for flag, terms in cls.optional.items() if not values[flag] for term in terms):
            out = out.replace(term, "")
        return out

    @classmethod
    def typed_formulas(cls, values: Mapping[str, Value], target: Target) -> tuple[str, ...]:
        """LaTeX of the parameters that were typed as formulas, and of what follows from them on a target."""
        return ()

    @classmethod
    def takes(cls, dim: int) -> bool:
        """Whether the sampler can have a θ of so many coordinates."""
        return cls.least_coordinates <= dim and (cls.most_coordinates is None or dim <= cls.most_coordinates)

    @classmethod
    def gradients_for(cls, target: type[Target]) -> frozenset[str]:
        """The gradient estimators that fit both."""
        both = cls.accepts & target.provides
        return frozenset(key for key, estimator in GRADIENTS.items() if estimator.requires <= both)

    @classmethod
    def stride_with(cls, gradient: str) -> float:
        """:attr:`first_stride`, or 1 where the gradient, by its key, takes minibatches, which heat the chain."""
        return 1.0 if in_batches(gradient) else cls.first_stride

    @classmethod
    def first_entries(cls, target: Target) -> dict[str, Value]:
        """The parameters whose initial values differ on this target, if none are given."""
        return {}

    @classmethod
    def first_values(cls, first: FirstSteps | None, gradient: str) -> dict[str, float]:
        """The parameters whose initial values differ from the declared ones, on a target with these first steps."""
        known = dict(declared(cls))
        if first is None or "step_size" not in known:
            return {}
        batch = in_batches(gradient)
        largest = first.largest(cls.moving, batch) * cls.stride_with(gradient)
        lowest = known["step_size"].bounds[0]
        out = {"step_size": max(min(known["step_size"].default, largest), lowest)}
        if cls.moving and batch and "friction" in known:
            out["friction"] = max(known["friction"].default, first.friction)
        return out

    def packed(self, target: Target) -> NDArray[np.float64]:
        """The parameters as the kernel reads them, in order of declaration."""
        return np.array([getattr(self, name) for name, _ in declared(type(self))], dtype=float)

    native: ClassVar[Callable[[Any, Target, jit.Noise], dict[int, Loop]] | None] = None
    """``native(target, noise)`` of samplers that run formulas: their native code for a gradient with this noise, by the
    index of the packed parameter that takes its address."""

    @classmethod
    def params_to_test(cls, step_size: float) -> dict[str, Value]:
        """Parameters, beside the defaults, at which its distribution is the target's up to the bias that it declares.

        ``step_size`` is one at which the bias of Euler's Langevin dynamics is small.
        """
        return {"step_size": step_size}

    @property
    def gradients_per_step(self) -> int:
        """Gradient evaluations in one step, for the common axis of cost, without those that the kernel counts."""
        return 0 if self.counts_data else 1

    @property
    def full_gradients_per_step(self) -> int:
        """Gradients in one step that take all data with every estimator, in addition to the others.

        Each counts as the number of evaluations of the estimator that use all data on average.
        """
        return 0

    def most_gradients(self, batch_size: int = 0) -> int:
        """The most evaluations of the estimator in one step, with this batch size or with all data (0)."""
        return self.gradients_per_step

    def data_beside(self, target: Target) -> int:
        """The data points that a step reads in addition to those of its gradients, for the axis of data."""
        return 0

    @property
    def time_per_step(self) -> float:
        """The time of the common scale, D = 1 or D = θ, that one step advances; 0 where there is none."""
        return float(getattr(self, "step_size", 0.0))

"""One step of a sampler, taken apart: what moved the chain, term by term.

A sampler says its step once, as ``textbook_step`` in plain Python; there it names each part as it makes it, with
:meth:`Play.part`. Tests compare the same step with the compiled kernel, which knows nothing of this and pays nothing.
The parts of a step add up to its move: each begins where the one before ended, and the last ends in the new state.
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.targets.base import Array

Numbers = dict[str, Array]
"""Facts about a part besides its move, by symbol: a gradient, a Poisson number, a probability."""

MOST_MICROSECONDS = 50_000.0
"""The time that the gradients of a played step may take, by the estimates below."""
_A_CALL, _A_DATUM, _A_NUMBER = 8.0, 12.0, 0.004
"""Microseconds of a call of a compiled gradient, of one data point's gradient in plain Python, and of one number of the
data in a compiled one."""
MOST_MEMORY = 64_000_000
"""Bytes of what estimators keep of the chains that are copied for it."""


class TooLongError(Exception):
    """A step that cannot be taken apart while somebody waits; says why in a sentence."""


class Part(NamedTuple):
    """A part of one chain's step."""

    name: str
    """One of the sampler's :attr:`~samplers.kernels.base.Sampler.parts`."""
    path: Array
    """Its path, (points, numbers of a chain): θ, and behind it the auxiliary variables, such as a momentum."""
    numbers: Numbers
    aside: bool = False
    """Whether it only shows something, such as a trajectory that a point will be drawn from, and moves nothing."""

    @property
    def start(self) -> Array:
        """Its beginning."""
        return self.path[0]

    @property
    def end(self) -> Array:
        """Its end."""
        return self.path[-1]


class ChainStep(NamedTuple):
    """One step of one chain."""

    parts: tuple[Part, ...]
    start: Array
    """The chain before it, (numbers of a chain,)."""
    end: Array
    """The chain after it."""
    dim: int
    """How many of the numbers are θ."""
    velocity: bool
    """Whether the numbers behind θ begin with a momentum r."""
    thermostats: int
    """How many of the last numbers are thermostats ξ; other numbers behind θ and r are what the sampler adapts."""

    def adds_up(self, tolerance: float = 0.0) -> bool:
        """Whether each part begins where the one before ended, and the last ends where the step does.

        The tolerance is relative to the largest number on the way.
        """
        moves = [part for part in self.parts if not part.aside]
        ends = [self.start, *(part.end for part in moves)]
        starts = [*(part.start for part in moves), self.end]
        largest = max(1.0, *(float(np.abs(part.path).max()) for part in moves)) if moves else 1.0
        return bool(
            all(np.array_equal(a, b) for a, b in zip(ends[:-1], starts[:-1], strict=True))
            and np.abs(ends[-1] - starts[-1]).max() <= tolerance * largest
        )


class Play:
    """The state on which a plain-Python step is played: copies of a run's state and random numbers, and one chain that
    is shown.

    It stands in for the run. The chains share the random numbers, and so all of them are played.
    """

    def __init__(self, run: Any, chain: int = 0):
        if run.memory.nbytes > MOST_MEMORY:
            raise TooLongError(
                f"A step is not shown in its parts if the estimator stores {run.memory.nbytes:,} bytes of the chains; {MOST_MEMORY:,} are allowed."
            )
        self.sampler, self.target, self.gradient = run.next_sampler, run.sampled, run.gradient
        self._whitening = run.whitening
        self.manifold, self.shape = run.manifold, run.shape
        # First momenta have been drawn from it.
        self.rng = copy.deepcopy(run.rng)
        self.theta, self.momentum = run.coordinates.copy(), run.momentum.copy()
        self.data, self.memory = run.data.copy(), run.memory.copy()
        self.chain = chain
        noise = run.gradient.noise()
        self.noisy = noise.variance > 0 or noise.batch_size > 0
        """Whether the gradient is not ∇U."""
        self._parts: list[Part] = []
        self._spent = 0.0

    def step(self) -> ChainStep:
        """Make a step of every chain."""
        self._parts, self._spent = [], 0.0
        start = self._now()
        if self.sampler.textbook_step is None:
            with self.part("draw"):
                jit.prepare([self.target.draw])
                self.target.draw(self.rng, self.theta, self.target.packed())
        else:
            # A step that blows up is shown as it is.
            with np.errstate(all="ignore"):
                self.sampler.textbook_step(self.rng, self, self.theta, self.momentum, self.data)
        velocity, thermostats = bool(self.sampler.momentum), self.sampler.thermostats(self.target)
        return ChainStep(tuple(self._parts), start, self._now(), self.theta.shape[1], velocity, thermostats)

    def shows(self, chain: int) -> bool:
        """Whether this is the chain that is shown."""
        return chain == self.chain

    @contextmanager
    def part(self, name: str, chain: int | None = None, **numbers: Any) -> Iterator[Callable[[], None]]:
        """Moves made inside are a part of the step of this chain, or of all chains.

        It yields a function that puts the place where the chain is then on the part's path.
        """
        if chain is not None and not self.shows(chain):
            yield _nothing
            return
        path = [self._now()]
        yield lambda: path.append(self._now())
        path.append(self._now())
        said = {symbol: np.array(value, dtype=float) for symbol, value in numbers.items()}
        self._parts.append(Part(name, np.array(path), said))

    def aside(self, name: str, chain: int, thetas: Any, **numbers: Any) -> None:
        """Show a path of θ beside the chain, which does not move."""
        if self.shows(chain):
            thetas = np.array(thetas, dtype=float)
            beside = np.tile(self.momentum[chain], (len(thetas), 1))
            said = {symbol: np.array(value, dtype=float) for symbol, value in numbers.items()}
            self._parts.append(Part(name, np.hstack([self._restored(thetas), beside]), said, aside=True))

    def spend(self, gradients: int = 1) -> None:
        """Count the cost of one chain's gradient, or of several. Raises :class:`TooLongError`."""
        batch = self.gradient.noise().batch_size
        numbers = 0 if batch else max(len(self.data), 1) * self.theta.shape[1]
        self._spent += gradients * (_A_CALL + batch * _A_DATUM + numbers * _A_NUMBER)
        if self._spent > MOST_MICROSECONDS:
            what = f"{self.theta.shape[0]:,} chains, {batch or len(self.data):,} data points per gradient"
            raise TooLongError(f"A step with so many gradients takes too long to be shown in its parts ({what}).")

    def _now(self) -> Array:
        return np.concatenate([self._restored(self.theta[self.chain]), self.momentum[self.chain]])

    def _restored(self, coordinates: Array) -> Array:
        """θ of the coordinates that the sampler moves in (..., dim)."""
        return coordinates if self._whitening is None else self._whitening.theta(coordinates)


def _nothing() -> None:
    """Keep no path of a chain that is not shown."""


def take_apart(run: Any, chain: int = 0) -> ChainStep:
    """The next step of one chain of a run, which is not touched.

    Raises :class:`TooLongError` where it would take longer than somebody waits.
    """
    return Play(run, chain).step()

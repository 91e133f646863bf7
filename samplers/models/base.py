"""The declarations of every model of real data, and the interface of its methods.

A model (topics of documents, communities of a network) is to these pages what a target is to the others, and a
method what a sampler is. Mostly there is no exact answer here: a converged exact sampler and held-out scores take its
place.
"""

from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import param
from numpy.random import Generator
from numpy.typing import NDArray

from sgmcmc_lab.samplers.file_format import GUESSED, Format
from sgmcmc_lab.samplers.files import Tell, untold
from sgmcmc_lab.samplers.parameters import Value, check_all
from sgmcmc_lab.samplers.targets.base import Array, Column, unknown

Snapshot = dict[str, NDArray[Any]]
"""The data of a view: named arrays, copied, so that the method may go on meanwhile."""


class Model(param.ParameterizedABC):
    """A likelihood with its priors and its data, part of them held out. Instances never change after they are made.

    The data come from a built-in set that a parameter names, or from a file of the session's own, which is an argument:
    ``Subclass(uploaded, **values)``.
    """

    key: ClassVar[str]
    """The name in specs and links."""
    title: ClassVar[str]
    tex: ClassVar[str]
    """The model in LaTeX."""
    source: ClassVar[str]
    score_name: ClassVar[str]
    """The name of the number that :meth:`Method.score` returns, for axes: ``held-out perplexity``."""
    higher_is_better: ClassVar[bool]
    data_name: ClassVar[str]
    """The name of the data that :attr:`Run.data_seen` counts, for axes: ``documents``."""
    data_parameter: ClassVar[str]
    """The parameter that names the data; ``UPLOADED`` where they are somebody's own."""
    real_data: ClassVar[str] = ""
    """The built-in set that a page opens the model on, where the parameter's default is a made-up one. A link that
    leaves the parameter out means its default.
    """
    followed: ClassVar[tuple[str, ...]]
    """Names of numbers that mean the same in every chain, whatever its labels are: their means and R-hat make sense."""

    def __init__(self, uploaded: Any = None, **values: Value):
        """Raises :class:`~samplers.parameters.SpecError` for a value that is not allowed and for missing data."""
        super().__init__(**dict(check_all(type(self), "model", values)))
        self.uploaded = uploaded
        self.prepare()

    @classmethod
    @abstractmethod
    def read(cls, files: Mapping[str, bytes], tell: Tell = untold, form: Format = GUESSED) -> Any:
        """Somebody's own data, from files by name: what the model takes as ``uploaded``. Its ``taken`` says how the
        files were read.

        ``tell`` hears how far it is. Choices that ``form`` leaves open are guessed. Raises
        :class:`~samplers.files.FileError`.
        """

    @abstractmethod
    def prepare(self) -> None:
        """Load the data and hold some of them out. Raises :class:`~samplers.parameters.SpecError`."""

    @property
    @abstractmethod
    def n_data(self) -> int:
        """The most data that a step touches, in the unit of :attr:`data_name`."""

    def facts(self) -> Mapping[str, str]:
        """The description of the data, for their card: documents, words, edges, …, as text."""
        return {}

    @abstractmethod
    def ranges(self) -> tuple[tuple[float, float, bool], ...]:
        """The range of each of the :attr:`followed` numbers, and whether its axis is logarithmic."""

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns of running statistics of the :attr:`followed` numbers, whose distributions are unknown."""
        out = []
        for name, (low, high, log) in zip(self.followed, self.ranges(), strict=True):
            middle = (low * high) ** 0.5 if log else (low + high) / 2
            out.append(Column(name, low, high, unknown, middle, (middle / 2) ** 2, log=log))
        return tuple(out)


class Method(param.ParameterizedABC):
    """An algorithm that draws from a model's posterior, or approximates it. Instances are never changed after they are
    made.

    The state is any object that :meth:`start` makes. A method with other values of its parameters goes on from the
    same state.
    """

    key: ClassVar[str]
    title: ClassVar[str]
    model: ClassVar[str]
    """The key of the model that it is for."""
    update: ClassVar[str]
    """One step, in LaTeX; each displayed equation is a line."""
    source: ClassVar[str]
    chooses_batch_size: ClassVar[bool] = False
    """Whether it chooses its batch size itself where ``batch_size`` is 0; its snapshots say what its trials found."""
    has_elbo: ClassVar[bool] = False
    """Whether its snapshots hold the course of the evidence lower bound."""
    compiled: ClassVar[tuple[Any, ...]] = ()
    """The compiled functions that it needs, for :func:`samplers.compile.jit.prepare`."""

    # Declarations for the tests: every method declares it at the end of its class, and a test names what is missing.
    tried_at: ClassVar[tuple[dict[str, Value], ...]]
    """Settings for the tests."""
    textbook_step: ClassVar[Any]
    """``textbook_step(rng, model, state)``: the whole step in plain Python; it returns what :meth:`advance` does."""
    textbook_unknowns: ClassVar[Any]
    """``textbook_unknowns(model, state)``: the unknowns that a snapshot shows: θ (words, topics), or x of a network."""

    def __init__(self, **values: Value):
        """Raises :class:`~samplers.parameters.SpecError` for a value that is not allowed."""
        super().__init__(**dict(check_all(type(self), "method", values)))

    @classmethod
    def fits(cls, values: Mapping[str, Value]) -> bool:
        """Whether it can be used with a built-in model whose parameters have these values."""
        return True

    def check(self, model: Model) -> None:
        """Raise :class:`~samplers.parameters.SpecError` where the parameters do not fit each other or the model."""

    @abstractmethod
    def start(self, model: Any, rng: Generator) -> Any:
        """The first state."""

    @abstractmethod
    def advance(self, model: Any, state: Any, rng: Generator) -> int:
        """Make one step, in place; the data that it touched. Long work releases the interpreter's lock.

        Raises FloatingPointError with a sentence for a person where the state is no longer finite.
        """

    @abstractmethod
    def score(self, model: Any, state: Any) -> float:
        """The held-out score of the running average over the draws so far; it may move that average on."""

    @abstractmethod
    def snapshot(self, model: Any, state: Any) -> Snapshot:
        """The state as the views show it."""

    @abstractmethod
    def follow(self, model: Any, state: Any) -> Array:
        """The numbers that the model's ``followed`` names, after each step; next to nothing beside the step."""

"""Documents that come one minibatch after another: made up from known topics, or read from a file that is not held."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.random import SFC64, Generator

from sgmcmc_lab.samplers.files import FileError, short_name
from sgmcmc_lab.samplers.models.topics.corpus import (
    MAX_VOCABULARY,
    Array,
    Corpus,
    bar_topics,
    drawn,
    from_bags,
    words_of,
)
from sgmcmc_lab.samplers.parameters import SpecError

MAX_TEST = 1000
"""Test documents: with more of them a score would take longer than many steps."""
SAMPLE = 50
"""Documents that a run begins with, before its first step."""
MAX_LINE = 100_000
"""Bytes of a line of a file."""
SEED = 20_130_612


class Source(ABC):
    """The position of a run in a stream; part of its state."""

    @abstractmethod
    def next(self, n: int) -> Corpus:
        """The next documents; fewer than ``n`` never come."""


class Stream(ABC):
    """Documents without an end, of a fixed vocabulary."""

    vocabulary: tuple[str, ...]
    n_documents: int
    """How many documents the posterior is of: what is counted in a minibatch is scaled to so many."""
    topics: Array | None
    """The topics that the documents are drawn from, (topics, words), where they are known."""

    @property
    def n_words(self) -> int:
        """The size of the vocabulary."""
        return len(self.vocabulary)

    def trimmed(self, min_documents: int, max_share: float, max_words: int) -> "Stream":
        """As a corpus is. A made-up stream has the words that it was made with."""
        return self

    @abstractmethod
    def split(self, test_share: float) -> tuple["Stream", Corpus, Corpus]:
        """The stream without its test documents, a few other documents, and the test documents."""

    @abstractmethod
    def begin(self, rng: Generator) -> Source:
        """The beginning of the stream; only a made-up one draws from ``rng``."""


def n_held(test_share: float, n_documents: int) -> int:
    """How many documents are held out."""
    return min(max(1, round(test_share * n_documents)), MAX_TEST)


# --- made up -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class MadeUp(Stream):
    """Documents of ``length`` words, drawn anew at every step: none is ever seen again."""

    topics: Array
    vocabulary: tuple[str, ...]
    length: int = 100
    concentration: float = 0.2
    """The concentration of the documents' proportions."""
    n_documents: int = 100_000

    def split(self, test_share: float) -> tuple["MadeUp", Corpus, Corpus]:
        """The test documents are the same for all runs."""
        test = MadeUpSource(self, Generator(SFC64(SEED))).next(n_held(test_share, self.n_documents))
        return self, MadeUpSource(self, Generator(SFC64(SEED + 1))).next(SAMPLE), test

    def begin(self, rng: Generator) -> "MadeUpSource":
        return MadeUpSource(self, Generator(SFC64(rng.integers(2**63))))


@dataclass(eq=False)
class MadeUpSource(Source):
    """The random numbers of a run's documents are its own: they are the same for every method."""

    stream: MadeUp
    rng: Generator

    def next(self, n: int) -> Corpus:
        of = self.stream
        return drawn(self.rng, of.topics, of.vocabulary, n, of.length, of.concentration)


def bars_stream(side: int = 10) -> MadeUp:
    """Bars of a larger square than the corpus of bars has: ten rows and ten columns."""
    return MadeUp(*bar_topics(side))


# --- a file --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FileStream(Stream):
    """A text file with a document on each line, read from its beginning to its end and then again.

    Neither the text nor the documents are held, but for those of the test and of a minibatch. A minibatch is of
    neighbouring lines, which should be in no order.
    """

    path: Path
    vocabulary: tuple[str, ...]
    spread: tuple[int, ...]
    """In how many documents each word is."""
    n_lines: int
    n_documents: int
    """Lines with words."""
    every: int = 2
    """The lines whose number is a multiple of this are held out."""
    topics: None = None

    @classmethod
    def of(cls, path: Path) -> "FileStream":
        """A first pass, which counts in how many documents each word is. Raises :class:`~samplers.files.FileError`.

        Beyond :data:`MAX_VOCABULARY` words, those in the fewest documents so far are forgotten.
        """
        spread: Counter[str] = Counter()
        n_lines = n_documents = least = 0
        for line in _lines(path):
            n_lines = line.number
            words = set(words_of(line.text))
            spread.update(words)
            n_documents += bool(words)
            while len(spread) > MAX_VOCABULARY:
                least += 1
                spread = Counter({word: n for word, n in spread.items() if n > least})
        if n_documents < 2:
            raise FileError(
                short_name(path.name), "has fewer than two lines with words", "allowed is a document a line"
            )
        return cls(path, tuple(spread), tuple(spread.values()), n_lines, n_documents)

    def trimmed(self, min_documents: int, max_share: float, max_words: int) -> "FileStream":
        """Raises :class:`~samplers.parameters.SpecError` where fewer than two words stay."""
        fitting = [w for w, n in enumerate(self.spread) if min_documents <= n <= max_share * self.n_documents]
        kept = sorted(fitting, key=lambda w: -self.spread[w])[:max_words]
        if len(kept) < 2:
            raise SpecError(
                "model.max_share",
                max_share,
                f"the cut-offs leave {len(kept)} words of {self.n_words:,}; lower min_documents or raise max_share",
            )
        return replace(
            self, vocabulary=tuple(self.vocabulary[w] for w in kept), spread=tuple(self.spread[w] for w in kept)
        )

    def split(self, test_share: float) -> tuple["FileStream", Corpus, Corpus]:
        """A pass that takes out the lines that are held out."""
        every = max(2, self.n_lines // n_held(test_share, self.n_lines))
        rest = replace(self, every=every)
        held = (line.text for line in _lines(self.path) if line.number % every == 0)
        bags = [bag for bag in map(rest.bag, held) if len(bag) > 1][:MAX_TEST]
        sample = FileSource(rest).next(min(SAMPLE, self.n_documents))
        if not bags:
            raise FileError(
                short_name(self.path.name),
                "has no line to hold out with two words that stay",
                "allowed are longer documents",
            )
        return rest, sample, from_bags(bags, self.vocabulary)

    def begin(self, rng: Generator) -> "FileSource":
        return FileSource(self)

    def bag(self, line: str) -> np.ndarray:
        """The words of a line that are in the vocabulary, equal ones together."""
        ids = self.ids
        return np.sort(np.array([ids[word] for word in words_of(line) if word in ids], dtype=np.int32))

    @cached_property
    def ids(self) -> dict[str, int]:
        """The number of each word."""
        return {word: w for w, word in enumerate(self.vocabulary)}


@dataclass(eq=False)
class FileSource(Source):
    """The position in the file; it is open only while a minibatch is read."""

    stream: FileStream
    position: int = 0
    line: int = 0

    def next(self, n: int) -> Corpus:
        """Raises :class:`~samplers.files.FileError` where a whole pass finds no document."""
        stream, bags, passes = self.stream, list[np.ndarray](), 0
        while len(bags) < n:
            if passes > len(bags) + 1:
                raise FileError(
                    short_name(stream.path.name),
                    "has no more documents",
                    "it was changed meanwhile, or the cut-offs leave too few words",
                )
            for line in _lines(stream.path, self.position, self.line):
                self.position, self.line = self.position + line.size, line.number
                if line.number % stream.every and len(bag := stream.bag(line.text)):
                    bags.append(bag)
                if len(bags) == n:
                    break
            else:
                self.position = self.line = 0
                passes += 1
        return from_bags(bags, stream.vocabulary)


class Line(NamedTuple):
    """One line of a file."""

    number: int
    """From 1."""
    size: int
    """In bytes."""
    text: str


def _lines(path: Path, position: int = 0, number: int = 0) -> Iterator[Line]:
    """The lines from that byte on, of which so many are before it. Raises :class:`~samplers.files.FileError`."""
    name = short_name(path.name)
    try:
        if path.exists() and not path.is_file():
            raise FileError(name, "is no file", "allowed is a text file")
        with path.open("rb") as file:
            file.seek(position)
            while content := file.readline(MAX_LINE + 1):
                number += 1
                if len(content) > MAX_LINE:
                    raise FileError(
                        f"{name}, line {number}",
                        f"has more than {MAX_LINE:,} bytes",
                        f"allowed are at most {MAX_LINE:,}",
                    )
                try:
                    yield Line(number, len(content), content.decode("utf-8"))
                except UnicodeDecodeError:
                    raise FileError(
                        f"{name}, line {number}", "is no text in UTF-8", "allowed is text in UTF-8"
                    ) from None
    except OSError as error:
        raise FileError(name, "cannot be read", (error.strerror or str(error)).lower()) from None

"""Documents whose clusters are looked for: synthetic ones, the corpora of the topics, and visits of web pages.

In a web server's log, a visitor is a document, and the pages are its words: the format of the anonymous Microsoft web
data (Breese, Heckerman & Kadie 1998). A file is untrusted, as a corpus is.
"""

import csv
import gzip
import io
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers.file_format import GUESSED, Format, Taken, counted, taken_text
from sgmcmc_lab.samplers.files import FileError, Tell, decode, lines_of, quoted, reading, short_name, untold
from sgmcmc_lab.samplers.models.topics.corpus import (
    MAX_BYTES,
    MAX_DOCUMENTS,
    MAX_TOKENS,
    MAX_VOCABULARY,
    TOLD_EVERY,
    Corpus,
    read_uploads,
)

VISITS = (".data", ".test")
"""The ends of the names of files of visits; those of the second kind are held out."""
MAX_ID = 10**9
MAX_PAGE = 80
"""Characters of the name of a page."""


@dataclass(frozen=True, eq=False)
class Documents:
    """Documents, and what is known beside their words."""

    corpus: Corpus
    groups: NDArray[np.int64] | None = None
    """The cluster that each is known to be from, (documents,), counted from 0."""
    n_test: int = 0
    """The last so many are to be held out; 0 where none are set apart."""
    of_text: bool = True
    """Whether they are texts, whose rare and common words may be left out."""
    taken: Taken | None = None
    """The format of the files, if they are read from files."""


def known_clusters(
    n_documents: int, length: int = 20, n_clusters: int = 6, n_words: int = 60, seed: int = 4
) -> Documents:
    """Documents of known clusters, whose words are drawn from Dir(0.15); the largest has a third of them."""
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.full(n_words, 0.15), size=n_clusters)
    shares = 0.7 ** np.arange(n_clusters)
    # Cluster after cluster each document is drawn by itself, so that fewer documents are the first of more.
    groups, words = np.empty(n_documents, dtype=np.int64), np.empty((n_documents, length), dtype=np.int32)
    ends, share_ends = theta.cumsum(axis=1), (shares / shares.sum()).cumsum()
    for d, draws in enumerate(rng.random((n_documents, 1 + length))):
        groups[d] = min(np.searchsorted(share_ends, draws[0], side="right"), n_clusters - 1)
        found = np.searchsorted(ends[groups[d]], draws[1:], side="right")
        words[d] = np.sort(np.minimum(found, n_words - 1))
    offsets = np.arange(n_documents + 1, dtype=np.int64) * length
    vocabulary = tuple(f"word{w + 1}" for w in range(n_words))
    titles = tuple(f"document {d + 1}" for d in range(n_documents))
    return Documents(Corpus(offsets, words.ravel(), vocabulary, titles, theta), groups)


def read(files: Mapping[str, bytes], tell: Tell = untold, form: Format = GUESSED) -> Documents:
    """Visits, from a file ``.data`` or ``.test`` or one of each, also packed by gzip; or a corpus, as topics have it.

    Raises :class:`~samplers.files.FileError`.
    """
    files = {short_name(name): content for name, content in files.items()}
    visits = {name: content for name, content in files.items() if _kind(name) in VISITS}
    if not visits:
        corpus = read_uploads(files, tell=tell, form=form)
        return Documents(corpus, taken=corpus.taken)
    other = next((name for name in files if name not in visits), None)
    if other is not None:
        raise FileError(
            other, "came with visits", f"files of visits end in {' or '.join(VISITS)}, and come without others"
        )
    kinds = [_kind(name) for name in visits]
    if len(set(kinds)) < len(kinds):
        raise FileError(list(visits)[-1], f"is another {kinds[-1]} file", "allowed is one of each kind")
    # The held-out documents come last.
    ordered = sorted(visits.items(), key=lambda item: _kind(item[0]))
    with reading(ordered[0][0]):
        decoded = [(name, *decode(name, _unpacked(name, content), form.encoding)) for name, content in ordered]
        found = _read_visits([(name, text) for name, text, _ in decoded], tell)
    what = f"visits of web pages: {counted(found.corpus.n_documents, 'visitor')} and {counted(found.corpus.n_words, 'page')}"
    return replace(
        found,
        taken=taken_text(what, decoded[0][2], f"held out: {counted(found.n_test, 'visitor')}" if found.n_test else ""),
    )


def _kind(name: str) -> str:
    return PurePath(name.removesuffix(".gz")).suffix.lower()


def _unpacked(name: str, content: bytes) -> bytes:
    """The content, unpacked no further than its size is allowed."""
    if name.endswith(".gz"):
        try:
            with gzip.open(io.BytesIO(content)) as file:
                content = file.read(MAX_BYTES + 1)
        except (OSError, EOFError, zlib.error):
            raise FileError(name, "is not packed by gzip", "allowed is a .gz file that gzip unpacks") from None
    if len(content) > MAX_BYTES:
        raise FileError(name, f"has more than {MAX_BYTES:,} bytes", "so many are not allowed")
    return content


def _read_visits(files: list[tuple[str, str]], tell: Tell) -> Documents:
    pages: dict[int, int] = {}
    names: list[str] = []
    words: list[NDArray[np.int32]] = []
    titles: list[str] = []
    n_first = n_tokens = 0
    for k, (name, text) in enumerate(files):
        n_first = len(words)
        mine: list[int] | None = None
        lines = lines_of(name, text)
        for number, line in enumerate(lines, 1):
            place = f"{name}, line {number}"
            if number % TOLD_EVERY == 1:
                tell((k + number / len(lines)) / len(files))
            kind = line[:2]
            if kind == "A,":
                page, title = _page(place, line)
                if page not in pages:
                    pages[page] = len(names)
                    names.append(title)
                    _check(place, len(names), MAX_VOCABULARY, "pages")
            elif kind == "C,":
                _close(words, mine)
                mine = []
                titles.append(_title(line))
                _check(place, len(titles), MAX_DOCUMENTS, "visitors")
            elif kind == "V,":
                page = _number(place, line.split(",")[1])
                if page not in pages:
                    raise FileError(place, f"has the page {page}", "allowed is a page that a line A above has named")
                if mine is None:
                    raise FileError(place, "has a visit", "a line C with the visitor comes before it")
                mine.append(pages[page])
                n_tokens += 1
                _check(place, n_tokens, MAX_TOKENS, "visits")
            elif line.strip() and kind not in ("I,", "T,", "N,"):
                raise FileError(
                    place,
                    f"has {quoted(line)}",
                    "allowed are lines that begin with A, C or V, and I, T or N at the top",
                )
        _close(words, mine)
    there = np.array([len(each) > 0 for each in words], dtype=bool)
    n_test = int(there[n_first:].sum()) if len(files) > 1 else 0
    kept = [each for each in words if len(each)]
    if len(kept) - n_test < 2 or len(names) < 2:
        raise FileError(
            files[0][0], f"has {len(kept) - n_test} visitors of {len(names)} pages", "allowed are two of each, or more"
        )
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in kept])]).astype(np.int64)
    known = tuple(title for title, here in zip(titles, there, strict=True) if here)
    return Documents(Corpus(offsets, np.concatenate(kept), tuple(names), known), n_test=n_test, of_text=False)


def _close(words: list[NDArray[np.int32]], mine: list[int] | None) -> None:
    """A visitor has come to an end."""
    if mine is not None:
        words.append(np.sort(np.array(mine, dtype=np.int32)))


def _page(place: str, line: str) -> tuple[int, str]:
    """A line ``A,1287,1,"title","/path"``."""
    try:
        fields = next(csv.reader([line], strict=True))
    except csv.Error as error:
        raise FileError(place, "is not CSV", str(error)) from None
    if len(fields) < 4 or not fields[3].strip():
        raise FileError(place, "names no page", 'allowed is A,number,1,"title","/path"')
    return _number(place, fields[1]), fields[3].strip()[:MAX_PAGE]


def _title(line: str) -> str:
    return f"visitor {line.split(',')[1].strip().strip(chr(34))[:MAX_PAGE]}"


def _number(place: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < len(str(MAX_ID))):
        raise FileError(place, f"has the page {quoted(text)}", "allowed is a whole number of up to nine digits")
    return int(text)


def _check(place: str, count: int, limit: int, what: str) -> None:
    if count > limit:
        raise FileError(place, f"is of more than {limit:,} {what}", "so many are not allowed")

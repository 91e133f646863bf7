"""A corpus as a bag of words: built-in sets, synthetic ones with known topics, and readers of files.

Files are untrusted. Their size, encoding and shape are checked before anything is built from them, and what is wrong
is named with its line.
"""

import importlib.util
import re
import sys
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, compress, filterfalse
from pathlib import Path, PurePath
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers.file_format import (
    GUESSED,
    MAX_TITLE_WORDS,
    Format,
    Sheet,
    Taken,
    counted,
    taken_text,
    titles_of_numbers,
)
from sgmcmc_lab.samplers.files import (
    ENCODINGS,
    FileError,
    Tell,
    decode,
    lines_of,
    quoted,
    read_file,
    reading,
    short_name,
    untold,
)
from sgmcmc_lab.samplers.parameters import SpecError

Array = NDArray[np.float64]
Ids = NDArray[np.int32]

MAX_BYTES = 30_000_000
"""The largest size of all files of one corpus together."""
MAX_DOCUMENTS, MAX_TOKENS, MAX_VOCABULARY = 100_000, 10_000_000, 500_000
MAX_TITLE = 80
MAX_WORD = 100
"""Characters of a word: a longer one is several, for pages show words."""
PIECE = 100_000
"""Characters of a text that are looked at in one go; a longer one would hold the interpreter."""
_ASCII_WORD = re.compile(f"[a-z]{{2,{MAX_WORD}}}")
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
_JOINERS = "\u200c\u200d"
"""The zero-width non-joiner and joiner, which stand inside words of Persian and of Indic scripts."""
_IGNORED = re.compile("[\u00ad\u0640\u061c\u180e\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")
"""Soft hyphens, the tatweel, which only stretches a word, and marks of direction."""
_PRESENTED = re.compile("[\ufb00-\ufdff\ufe70-\ufefc\uff00-\uffef]+")
"""Ligatures, presentation forms of Arabic and Hebrew, and full-width and half-width forms."""
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
"""Thai, Lao, Burmese, Khmer, Japanese and Chinese, which put no spaces between words."""
TOLD_EVERY = 100
"""After so many documents the reader says how far it is, and may be told to end."""
TEXTS, TABLES, BAGS = (".txt", ".text", ".md", ""), (".csv", ".tsv"), ".ldac"
"""The ends of the names of files."""
TEXT_COLUMNS = ("text", "document", "body", "content", "abstract")
"""The names of a CSV's column of texts, where none is given."""


@dataclass(frozen=True, eq=False)
class Corpus:
    """Documents as flat arrays: document d has the words ``words[offsets[d]:offsets[d + 1]]``, equal ones together."""

    offsets: NDArray[np.int64]
    """(documents + 1,)."""
    words: Ids
    """(tokens,), ids of the vocabulary."""
    vocabulary: tuple[str, ...]
    titles: tuple[str, ...]
    topics: Array | None = None
    """The topics that the documents were drawn from, (topics, words), where they are known."""
    labels: tuple[str, ...] | None = None
    """The known group of each document, if there are groups."""
    taken: Taken | None = None
    """The format of the files, if it is read from files."""

    @property
    def n_documents(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_tokens(self) -> int:
        return len(self.words)

    @property
    def n_words(self) -> int:
        """The size of the vocabulary."""
        return len(self.vocabulary)

    def document_of(self) -> NDArray[np.int64]:
        """The document of every token, (tokens,)."""
        return np.repeat(np.arange(self.n_documents), np.diff(self.offsets))

    def matrix(self) -> NDArray[np.int64]:
        """How often each document has each word, (documents, words)."""
        cells = self.document_of() * self.n_words + self.words
        return np.bincount(cells, minlength=self.n_documents * self.n_words).reshape(self.n_documents, self.n_words)

    def spread(self) -> NDArray[np.int64]:
        """In how many documents each word is, (words,)."""
        # Equal words of a document lie together; np.unique of all pairs would hold the interpreter for half a second.
        first = np.ones(self.n_tokens, dtype=bool)
        first[1:] = self.words[1:] != self.words[:-1]
        first[self.offsets[:-1][np.diff(self.offsets) > 0]] = True
        return np.bincount(self.words[first], minlength=self.n_words)

    def part(self, documents: NDArray[np.int64]) -> "Corpus":
        """Some of the documents, with the whole vocabulary."""
        pieces = [self.words[self.offsets[d] : self.offsets[d + 1]] for d in documents]
        return replace(
            self,
            offsets=_offsets([len(piece) for piece in pieces]),
            words=np.concatenate(pieces) if pieces else self.words[:0],
            titles=tuple(self.titles[d] for d in documents),
            labels=None if self.labels is None else tuple(self.labels[d] for d in documents),
        )

    def trimmed(self, min_documents: int, max_share: float, max_words: int) -> "Corpus":
        """Without the words that are in fewer than ``min_documents`` documents or in more than that share of them.

        Among the others, the ``max_words`` words in the most documents stay. Documents without words are left out.
        Raises :class:`SpecError` where fewer than two words stay.
        """
        spread = self.spread()
        fitting = np.flatnonzero((spread >= min_documents) & (spread <= max_share * self.n_documents))
        kept = np.sort(fitting[np.argsort(-spread[fitting], kind="stable")][:max_words])
        if len(kept) < 2:
            raise SpecError(
                "model.max_share",
                max_share,
                f"the cut-offs leave {len(kept)} words of {self.n_words:,}; lower min_documents or raise max_share",
            )
        renamed = np.full(self.n_words, -1, dtype=np.int32)
        renamed[kept] = np.arange(len(kept))
        ids = renamed[self.words]
        lengths = np.bincount(self.document_of()[ids >= 0], minlength=self.n_documents)
        topics = None if self.topics is None else self.topics[:, kept] / self.topics[:, kept].sum(axis=1, keepdims=True)
        return Corpus(
            _offsets(lengths[lengths > 0]),
            ids[ids >= 0],
            tuple(self.vocabulary[w] for w in kept),
            tuple(compress(self.titles, lengths > 0)),
            topics,
            None if self.labels is None else tuple(compress(self.labels, lengths > 0)),
            self.taken,
        )


def _offsets(lengths: Iterable[int]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(np.fromiter(lengths, dtype=np.int64))]).astype(np.int64)


# --- built-in and synthetic ----------------------------------------------------------------------------------------


def reuters() -> Corpus:
    """395 Reuters articles of 4,258 different words, from the files of the package ``lda``."""
    # The package's own loaders leave the files open.
    folder = reuters_folder()
    titles = tuple(line.partition(" ")[2] for line in (folder / "reuters.titles").read_text("utf-8").splitlines())
    corpus = _from_ldac(
        "reuters.ldac", (folder / "reuters.ldac").read_bytes(), (folder / "reuters.tokens").read_bytes()
    )
    return Corpus(corpus.offsets, corpus.words, corpus.vocabulary, titles)


def reuters_folder() -> Path:
    """The folder of the articles' files. Raises :class:`SpecError` where their package is not installed."""
    spec = importlib.util.find_spec("lda")
    if spec is None or not spec.submodule_search_locations:
        raise SpecError("model.corpus", "reuters", "the package lda, which has it, is not installed")
    return Path(spec.submodule_search_locations[0]) / "tests"


def bar_topics(side: int) -> tuple[Array, tuple[str, ...]]:
    """The topics (2·side, words), and the words: the rows and columns of a square, and its pixels."""
    squares = np.zeros((2 * side, side, side))
    for i in range(side):
        squares[i, i] = squares[side + i, :, i] = 1 / side
    vocabulary = tuple(f"{row + 1},{column + 1}" for row in range(side) for column in range(side))
    return squares.reshape(2 * side, -1), vocabulary


def bars(n_documents: int = 500, length: int = 100, side: int = 5, concentration: float = 0.2, seed: int = 1) -> Corpus:
    """Words are the pixels of a square, topics its rows and columns (Griffiths & Steyvers 2004, figure 1)."""
    return drawn(np.random.default_rng(seed), *bar_topics(side), n_documents, length, concentration)


def sparse_topics(n_words: int, n_topics: int, seed: int = 1) -> tuple[Array, tuple[str, ...]]:
    """Topics (topics, words) that are drawn from Dir(0.05), and the words."""
    topics = np.random.default_rng(seed).dirichlet(np.full(n_words, 0.05), size=n_topics)
    return topics, tuple(f"word{w}" for w in range(n_words))


def synthetic(n_documents: int, n_words: int, n_topics: int, length: int = 100, seed: int = 1) -> Corpus:
    """Documents of :func:`sparse_topics`: a large corpus, to see how long something takes."""
    return drawn(np.random.default_rng(seed + 1), *sparse_topics(n_words, n_topics, seed), n_documents, length, 0.1)


def drawn(
    rng: np.random.Generator,
    topics: Array,
    vocabulary: tuple[str, ...],
    n_documents: int,
    length: int,
    concentration: float,
) -> Corpus:
    """Documents of ``length`` words whose proportions are drawn from Dir(concentration)."""
    shares = rng.dirichlet(np.full(len(topics), concentration), size=n_documents)
    counts = rng.multinomial(length, shares)
    words = np.empty(n_documents * length, dtype=np.int32)
    topic_of = np.repeat(np.tile(np.arange(len(topics)), n_documents), counts.ravel())
    for k, topic in enumerate(topics):
        ends = topic.cumsum()
        words[topic_of == k] = np.searchsorted(ends, rng.random(counts[:, k].sum()) * ends[-1], side="right")
    words = np.sort(words.reshape(n_documents, length), axis=1)
    return replace(from_bags(list(words), vocabulary), topics=topics)


def from_bags(bags: Sequence[Ids], vocabulary: tuple[str, ...]) -> Corpus:
    """A corpus from the words of each document, equal ones together."""
    titles = tuple(f"document {d + 1}" for d in range(len(bags)))
    return Corpus(_offsets(map(len, bags)), np.concatenate(bags), vocabulary, titles)


# --- words ---------------------------------------------------------------------------------------------------------


class _Patterns(NamedTuple):
    word: re.Pattern[str]
    end: re.Pattern[str]
    """The characters that may continue a word at its end."""


@cache
def _patterns(most: int = sys.maxunicode) -> _Patterns:
    """The patterns of words of letters with their marks (Unicode's Mn and Mc), up to a code point: fewer are faster."""
    letters, marks = list[int](), list[int]()
    for code in chain(range(0x80, min(most, 0x323FF) + 1), range(0xE0100, min(most, 0xE01EF) + 1)):
        character = chr(code)
        if character.isalnum() and not character.isdecimal():
            letters.append(code)
        elif unicodedata.category(character) in ("Mn", "Mc"):
            marks.append(code)
    of_letters, of_marks = ("".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in _runs(x)) for x in (letters, marks))
    inside = f"[a-zA-Z{of_letters}{of_marks}{_JOINERS}]"
    word = re.compile(f"[a-zA-Z{of_letters}]{inside}{{1,{MAX_WORD - 1}}}")
    return _Patterns(word, re.compile(f"{inside}*+"))


def _runs(codes: list[int]) -> Iterator[tuple[int, int]]:
    """The first and the last of each run of neighbours."""
    breaks = [k for k in range(1, len(codes)) if codes[k] != codes[k - 1] + 1]
    for low, high in zip([0, *breaks], [*breaks, len(codes)], strict=True):
        yield codes[low], codes[high - 1]


def words_of(text: str) -> list[str]:
    """The words of a text: a letter and one letter or mark more, at least, of any script, in small letters.

    Text is in the composed form (NFC), with ligatures, presentation forms and full-width letters in their usual ones;
    soft hyphens, the tatweel and marks of direction are none of a word's. A joiner between letters is. A hyphen, a
    digit and an apostrophe, straight or typographic, part words: of ``l'école`` the word is ``école``. The Turkish İ
    becomes i, and ß stays. Where a script has no spaces between words, a run of letters is one word.
    """
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    text = _PRESENTED.sub(lambda match: unicodedata.normalize("NFKC", match[0]), _IGNORED.sub("", text))
    text = unicodedata.normalize("NFC", text).lower().replace("i\u0307", "i")
    found = _patterns(*() if _ASTRAL.search(text) else (0xFFFF,)).word.findall(text)
    if any(joiner in text for joiner in _JOINERS):
        found = [each for each in (each.rstrip(_JOINERS) for each in found) if len(each) > 1]
    return found


# --- files ---------------------------------------------------------------------------------------------------------


def read_upload(name: str, content: bytes, *, form: Format = GUESSED, vocabulary: bytes | None = None) -> Corpus:
    """The corpus of one file: ``.txt``, a document a line; ``.csv``; ``.ldac``, with its vocabulary, a word a line.

    Raises :class:`FileError` that names the file, the line and what is allowed there.
    """
    files = {name: content} if vocabulary is None else {name: content, "vocabulary": vocabulary}
    return read_uploads(files, form=form)


def read_uploads(files: Mapping[str, bytes], *, tell: Tell = untold, form: Format = GUESSED) -> Corpus:
    """The corpus of one file or several.

    One text file has a document on each line, several are a document each. A table, ``.csv`` or ``.tsv``, has a column
    of texts: the one that is chosen, or the one called text, document, body, content or abstract, or the longest. An
    ``.ldac`` file has the bags of words, a document a line as ``n word:count word:count …`` with words numbered from 0;
    with it comes another file with the vocabulary, a word a line. ``tell`` is called every :data:`TOLD_EVERY`
    documents.

    Raises :class:`FileError`.
    """
    if not files:
        raise FileError("The corpus", "has no file", "a file is needed: .txt, .csv, or .ldac with its vocabulary")
    files = {short_name(name): content for name, content in files.items()}
    with reading(next(iter(files)) if len(files) == 1 else f"The corpus of {len(files)} files"):
        return _read(files, tell, form)


def _read(files: Mapping[str, bytes], tell: Tell, form: Format) -> Corpus:
    total = sum(map(len, files.values()))
    _check_bytes(files, total)
    kinds = {name: PurePath(name).suffix.lower() for name in files}
    bags = [name for name, kind in kinds.items() if kind == BAGS]
    if bags:
        others = [name for name in files if name not in bags]
        if len(bags) != 1 or len(others) != 1:
            raise FileError(
                bags[0], _company(files), "an .ldac file comes with one other file, its vocabulary, a word a line"
            )
        corpus = _from_ldac(bags[0], files[bags[0]], files[others[0]], others[0], tell, form.encoding)
        what = f"bags of words: {counted(corpus.n_documents, 'document')}"
        return replace(corpus, taken=taken_text(what, form.encoding or "utf-8"))
    tables = [name for name, kind in kinds.items() if kind in TABLES]
    if tables:
        if len(files) != 1:
            raise FileError(tables[0], _company(files), f"a {kinds[tables[0]]} file comes alone")
        return _from_table(tables[0], files[tables[0]], tell, form)
    for name, kind in kinds.items():
        if kind not in TEXTS:
            raise FileError(name, "is of another kind", "allowed are .txt, .csv, .tsv, and .ldac with its vocabulary")
    decoded = {name: decode(name, content, form.encoding) for name, content in files.items()}
    encodings = dict.fromkeys(encoding for _, encoding in decoded.values())
    if len(files) == 1:
        ((name, (text, encoding)),) = decoded.items()
        lines = lines_of(name, text)
        corpus = from_texts(name, ((line.strip()[:MAX_TITLE], line) for line in lines), total, tell)
        what = f"text with a document on each line: {counted(corpus.n_documents, 'document')}"
        return replace(corpus, taken=taken_text(what, encoding, _unspaced(text)))
    texts = ((PurePath(name).stem, text) for name, (text, _) in decoded.items())
    corpus = from_texts(f"The corpus of {len(files)} files", texts, total, tell)
    more = f"others: {', '.join(ENCODINGS[each] for each in list(encodings)[1:])}" if len(encodings) > 1 else ""
    what = f"{len(files)} texts of one document each: {counted(corpus.n_documents, 'document')} with words"
    text = next(iter(decoded.values()))[0]
    return replace(corpus, taken=taken_text(what, next(iter(encodings)), more, _unspaced(text)))


def _unspaced(text: str) -> str:
    """The treatment of a script without spaces between words, if the beginning of the text is in one."""
    part = text[:PIECE]
    if 5 * len(_UNSPACED.findall(part)) < len(part):
        return ""
    return "its script has no spaces between words, so a run of letters is one word: separate the words first"


def _company(files: Mapping[str, bytes]) -> str:
    """With how many others a file came."""
    return {0: "came alone", 1: "came with another file"}.get(len(files) - 1, f"came with {len(files) - 1} other files")


def _check_bytes(names: Collection[str], total: int) -> None:
    if total > MAX_BYTES:
        place = next(iter(names)) if len(names) == 1 else f"The corpus of {len(names)} files"
        raise FileError(place, f"has {total:,} bytes", f"allowed are at most {MAX_BYTES:,}")


def read_path(path: Path, form: Format = GUESSED) -> Corpus:
    """The corpus of a file, or of a folder: its ``.txt`` files, or its ``.ldac`` file and its vocabulary.

    Raises :class:`FileError`.
    """
    paths = sorted(p for p in path.iterdir() if p.is_file() and not p.name.startswith(".")) if path.is_dir() else [path]
    if path.suffix.lower() == BAGS:
        paths += [other for suffix in (".tokens", ".vocab") if (other := path.with_suffix(suffix)).is_file()][:1]
    try:
        total = sum(p.stat().st_size for p in paths)
        _check_bytes([p.name for p in paths], total)
        return read_uploads({p.name: read_file(p, MAX_BYTES) for p in paths}, form=form)
    except OSError as error:
        raise FileError(str(path), "cannot be read", (error.strerror or str(error)).lower()) from None


def from_texts(
    name: str, texts: Iterable[tuple[str, str]], size: int, tell: Tell, left_out: Collection[str] = ()
) -> Corpus:
    """A corpus of (title, text) pairs of at least ``size`` characters; pairs without words are left out. ``left_out``
    are words in small letters.
    """
    ids: defaultdict[str, int] = defaultdict()
    ids.default_factory = ids.__len__  # a new word has the next number
    words: list[Ids] = []
    titles: list[str] = []
    n_tokens = done = 0
    for number, (title, text) in enumerate(texts):
        if number % TOLD_EVERY == 0:
            tell(done / max(size, 1))
        found: list[Ids] = []
        for i, piece in enumerate(_pieces(text)):
            if i:
                tell(min(done / max(size, 1), 1.0))
            done += len(piece)
            several = words_of(piece)
            if left_out:
                several = [word for word in several if word not in left_out]
            if several:
                found.append(np.fromiter(map(ids.__getitem__, several), np.int32, len(several)))
                n_tokens += len(several)
                _check_size(name, len(words) + 1, n_tokens, len(ids))
        if found:
            words.append(np.sort(np.concatenate(found)))
            titles.append(title[:MAX_TITLE])
    _check_count(name, len(words))
    return Corpus(_offsets(map(len, words)), np.concatenate(words), tuple(ids), tuple(titles))


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces of a bounded length, which begin and end between words."""
    start = 0
    while len(text) - start > PIECE:
        end = start + PIECE
        match = _patterns().end.match(text, end, end + PIECE)
        end = match.end() if match else end
        yield text[start:end]
        start = end
    yield text[start:]


def _check_count(name: str, n_documents: int) -> None:
    if n_documents < 2:
        found = f"has {('no document', 'one document')[n_documents]} with words"
        raise FileError(name, found, "allowed are at least two documents with words")


def _check_size(name: str, n_documents: int, n_tokens: int, n_words: int) -> None:
    for count, limit, what in (
        (n_documents, MAX_DOCUMENTS, "documents"),
        (n_tokens, MAX_TOKENS, "words in all"),
        (n_words, MAX_VOCABULARY, "different words"),
    ):
        if count > limit:
            raise FileError(name, f"has more than {limit:,} {what}", f"allowed are at most {limit:,}")


def titles_of_texts(first: list[str], rest: list[list[str]]) -> bool:
    """A title row calls a column of texts so, or has words above numbers, or nothing that is as long as a text."""
    lower = [cell.strip().lower() for cell in first]
    if any(each in TEXT_COLUMNS or each == "title" for each in lower):
        return True
    if len(first) > 1 and not titles_of_numbers(first, rest):
        return False
    return all(lower) and all(len(cell.split()) <= MAX_TITLE_WORDS for cell in first)


def _from_table(name: str, content: bytes, tell: Tell, form: Format) -> Corpus:
    sheet = Sheet(
        name, content, form, titles=titles_of_texts, comments=False, spaces=False, named=TEXT_COLUMNS, row_names=False
    )
    if not sheet.n_columns:
        raise FileError(f"{name}, line 1", "is empty", "allowed is a table with a column of texts")
    lower = [title.lower() for title in sheet.titles]
    named = next((lower.index(each) for each in TEXT_COLUMNS if each in lower), None)
    at = sheet.column("column", sheet.longest if named is None else named)
    assert at is not None
    title_at = next((k for k, each in enumerate(lower) if each == "title" and k != at), at)
    n_rows = lacking = 0

    def texts() -> Iterator[tuple[str, str]]:
        nonlocal n_rows, lacking
        for _, row in sheet.rows():
            n_rows += 1
            if sheet.lacks(row, (at,)):
                lacking += 1
            else:
                yield row[title_at].strip(), row[at]

    corpus = from_texts(name, texts(), len(content), tell)
    without = n_rows - lacking - corpus.n_documents
    taken = sheet.taken(
        n_rows,
        [("column", "text", at)],
        f"{counted(lacking, 'row')} with a missing text left out" if lacking else "",
        f"{counted(without, 'row')} without words left out" if without else "",
        _unspaced(sheet.text),
    )
    return replace(corpus, taken=taken)


def _from_ldac(
    name: str,
    content: bytes,
    vocabulary: bytes,
    vocabulary_name: str = "vocabulary",
    tell: Tell = untold,
    encoding: str = "",
) -> Corpus:
    listed = [line.strip() for line in lines_of(vocabulary_name, decode(vocabulary_name, vocabulary, encoding)[0])]
    while listed and not listed[-1]:
        listed.pop()
    _check_size(vocabulary_name, 0, 0, len(listed))
    seen: dict[str, int] = {}
    for number, word in enumerate(listed, 1):
        place = f"{vocabulary_name}, line {number}"
        if not word:
            raise FileError(place, "is empty", "allowed is a word")
        if len(word) > MAX_WORD:
            raise FileError(place, f"has {quoted(word)}", f"allowed is a word of up to {MAX_WORD} characters")
        if word in seen:
            raise FileError(place, f"has {quoted(word)}", f"it is the word of line {seen[word]} again")
        seen[word] = number
    if len(listed) < 2:
        raise FileError(
            vocabulary_name, f"has {('no word', 'one word')[len(listed)]}", "allowed are at least two, a word a line"
        )
    words: list[Ids] = []
    n_tokens = done = 0
    for number, line in enumerate(lines_of(name, decode(name, content)[0]), 1):
        if number % TOLD_EVERY == 1:
            tell(done / len(content))
        done += len(line)
        if not line.strip():
            continue
        ids, counts = _ldac_line(f"{name}, line {number}", line, len(listed))
        n_tokens += int(counts.sum())
        _check_size(name, len(words) + 1, n_tokens, len(listed))
        if len(ids):
            words.append(np.repeat(ids.astype(np.int32), counts))
    _check_count(name, len(words))
    return from_bags(words, tuple(listed))


_PAIR, _FITS = re.compile(r"\d+:\d+", re.ASCII), re.compile(r"\d{1,9}:\d{1,8}", re.ASCII)


def _ldac_line(place: str, line: str, n_words: int) -> NDArray[np.int64]:
    """The words of a document and how often each comes, (2, words)."""
    stated, *parts = line.split()
    if not (stated.isascii() and stated.isdigit()) or int(stated[:10]) != len(parts):
        found = f"begins with {quoted(stated)}"
        raise FileError(place, found, f"allowed is the number of pairs that follow, here {len(parts)}")
    if len(parts) > n_words:
        raise FileError(place, f"has {len(parts):,} pairs", f"allowed is each of the {n_words:,} words once")
    bad = next(filterfalse(_FITS.fullmatch, parts), None)
    if bad is not None:
        raise FileError(place, f"has {quoted(bad)}", _allowed(bad, n_words))
    numbers = " ".join(parts).replace(":", " ").split()
    ids, counts = pairs = np.fromiter(map(int, numbers), np.int64, len(numbers)).reshape(-1, 2).T
    wrong = np.flatnonzero((ids >= n_words) | (counts < 1) | (counts > MAX_TOKENS))
    if len(wrong):
        raise FileError(place, f"has {quoted(parts[wrong[0]])}", _allowed(parts[wrong[0]], n_words))
    ordered = np.sort(ids)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(twice):
        raise FileError(place, f"has the word {twice[0]} twice", "allowed is each word once")
    return pairs


def _allowed(part: str, n_words: int) -> str:
    """The expected text in the place of a wrong pair."""
    word = part.partition(":")[0]
    if not _PAIR.fullmatch(part):
        return "allowed is word:count, two whole numbers"
    if len(word) > 9 or int(word) >= n_words:
        return f"allowed is a word from 0 to {n_words - 1:,}, as the vocabulary has {n_words:,}"
    return f"allowed is a count from 1 to {MAX_TOKENS:,}"

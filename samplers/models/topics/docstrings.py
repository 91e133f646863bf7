"""A real corpus that every machine has: what SciPy says of its own functions."""

import inspect
import re
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from itertools import chain, zip_longest

from sgmcmc_lab.samplers.files import untold
from sgmcmc_lab.samplers.models.topics.corpus import Corpus, from_texts

PARTS = (
    "cluster.hierarchy", "cluster.vq", "fft", "integrate", "interpolate", "io", "linalg", "ndimage", "optimize", "signal",
    "sparse", "sparse.csgraph", "sparse.linalg", "spatial", "spatial.distance", "special", "stats",
)  # fmt: skip
"""The modules that are read; up to the first dot their names are the labels."""
MAX_FUNCTIONS, MAX_CHARACTERS = 500, 20_000
"""The most functions of a module, and characters of a docstring: what a later version may have."""
CUT_OFFS = (3, 0.2, 10_000)
"""A word is in three documents or more, and in at most a fifth: so the headings of all docstrings are left out."""
_NO_PROSE = re.compile(
    r"""^(?:Examples|References)\n-{3,}\n.*?(?=^\S[^\n]*\n-{3,}\n|\Z)  # to the next heading
    |^\*\*Array\ API.*?(?:dev-arrayapi[^\n]*|\Z)""",
    re.MULTILINE | re.DOTALL | re.VERBOSE,
)
"""Code, and a table that many functions have."""


def scipy_docstrings() -> Corpus:
    """The docstrings of SciPy's public functions, without examples, references and stop words.

    They are read from the installed package, and so another version has other documents. A document's title is the
    function, its label the subpackage. Neighbours are of different subpackages, if possible.
    """
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    by_label: dict[str, list[tuple[str, str]]] = {}
    for part in PARTS:
        by_label.setdefault(part.partition(".")[0], []).extend(_functions(part))
    texts = [text for text in chain.from_iterable(zip_longest(*by_label.values())) if text]
    corpus = from_texts("SciPy", texts, 1, untold, frozenset(ENGLISH_STOP_WORDS)).trimmed(*CUT_OFFS)
    return replace(corpus, labels=tuple(title.split(".")[1] for title in corpus.titles))


def _functions(part: str) -> Iterator[tuple[str, str]]:
    """Name and prose of each function of a module; distributions, whose docstrings are made from a form, are none."""
    module = import_module(f"scipy.{part}")
    for name in list(dict.fromkeys(module.__all__))[:MAX_FUNCTIONS]:
        found = getattr(module, name, None)
        if callable(found) and not isinstance(found, type) and not hasattr(found, "rvs") and found.__doc__:
            yield f"scipy.{part}.{name}", prose(found.__doc__[:MAX_CHARACTERS])


def prose(docstring: str) -> str:
    """A docstring without examples, references and the table of array libraries."""
    return _NO_PROSE.sub("", inspect.cleandoc(docstring))

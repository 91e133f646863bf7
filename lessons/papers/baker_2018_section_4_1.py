"""SCIR beside SGRLD on streams, at equal documents and at equal time.

The command is ``python -m sgmcmc_lab.lessons.papers.baker_2018_section_4_1``.

Baker et al. 2018 (section 4.1) say that SCIR's gain is essentially for free. The cost of a step is processor time: the
two draw the same minibatch's topics alike, and then θ for every word and topic, SCIR by a Poisson and a gamma number
and SGRLD by a normal one. So the price depends on V·K beside the words of a minibatch.
"""

import io
import re
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.random import SFC64, Generator, SeedSequence

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.console import Parser
from sgmcmc_lab.samplers.models import METHODS
from sgmcmc_lab.samplers.models.run import functions
from sgmcmc_lab.samplers.models.topics.corpus import sparse_topics
from sgmcmc_lab.samplers.models.topics.model import Topics
from sgmcmc_lab.samplers.models.topics.stream import FileStream, MadeUp
from sgmcmc_lab.samplers.parameters import UPLOADED, SpecError, Value

POINTS: dict[str, Sequence[dict[str, Value]]] = {
    "lda_scir": [{"step_size": h} for h in (0.01, 0.03, 0.1, 0.3, 1.0)],
    "lda_sgrld": [{"step_size": h} for h in (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1)],
}
"""The settings tried for each, with a seed of its own."""
TUNING_SEED = 1000
SCORES = 8
"""The scores of one run, evenly spaced over its documents."""
PIECE = 300
"""Words of a document that is cut from a longer text."""


@dataclass(frozen=True)
class Curve:
    """One run: perplexity by documents and by processor seconds in its steps."""

    documents: tuple[int, ...]
    seconds: tuple[float, ...]
    values: tuple[float, ...]

    def at(self, seconds: float) -> float:
        """The perplexity at that time, between two scores by a line."""
        return float(np.interp(seconds, self.seconds, self.values))


def run(model: Topics, key: str, params: dict[str, Value], documents: int, seed: int) -> Curve:
    """The curve of one method; infinite where it diverges. Only the steps are timed."""
    method, rng = METHODS[key](**params), Generator(SFC64(SeedSequence(seed)))
    method.check(model)
    jit.prepare(functions(method))
    state = method.start(model, rng)
    seen, seconds = 0, 0.0
    marks, curve = list(np.linspace(0, documents, SCORES + 1)[1:]), [(0, 0.0, method.score(model, state))]
    try:
        while marks:
            began = time.process_time()
            seen += method.advance(model, state, rng)
            seconds += time.process_time() - began
            if seen >= marks[0]:
                marks.pop(0)
                curve.append((seen, seconds, method.score(model, state)))
    except FloatingPointError:
        curve.append((documents, seconds, float("inf")))
    return Curve(*zip(*curve, strict=True))


def made_up(n_words: int, n_topics: int, batch: int) -> tuple[Topics, int]:
    """A stream of sparse topics, whose number is known; and the documents in a step."""
    stream = MadeUp(*sparse_topics(n_words, n_topics), concentration=0.1)
    return Topics(stream, corpus=UPLOADED, n_topics=n_topics, test_share=0.01), batch


STREAMS: dict[str, Callable[[], tuple[Topics, int]]] = {
    "V = 2,000, K = 50, n = 50": lambda: made_up(2000, 50, 50),
    "V = 500, K = 20, n = 200": lambda: made_up(500, 20, 200),
}


def texts(path: Path) -> Iterator[str]:
    """The texts of a zip file of Brown's or of the State of the Union, in pieces; without Brown's tags."""
    with zipfile.ZipFile(path) as file:
        for name in file.namelist():
            if not re.search(r"/c[a-r]\d\d$|/\d{4}.*\.txt$", name):
                continue
            with io.TextIOWrapper(file.open(name), "utf-8", errors="replace") as text:
                words = re.sub(r"/[^\s/]+(?=\s)", "", text.read()).split()
            for i in range(0, len(words), PIECE):
                yield " ".join(words[i : i + PIECE])


def from_zip(path: Path, folder: Path, n_topics: int) -> Topics:
    """The stream of its pieces, in random order, with the priors of the paper's Figure 3a."""
    lines = list(texts(path))
    np.random.default_rng(1).shuffle(lines)
    target = folder / f"{path.stem}.txt"
    target.write_text("\n".join(lines), encoding="utf-8")
    return Topics(
        FileStream.of(target), corpus=UPLOADED, n_topics=n_topics, alpha=0.1, beta=0.1, max_share=0.2, min_documents=5
    )


@dataclass(frozen=True)
class Comparison:
    """Both methods on one stream, with the seeds that are reported."""

    best: dict[str, dict[str, Value]]
    curves: dict[str, list[Curve]]

    def milliseconds(self, key: str) -> float:
        """The mean processor time per document, in milliseconds."""
        return 1e3 * float(np.mean([c.seconds[-1] / c.documents[-1] for c in self.curves[key]]))

    def equal_time(self, key: str) -> np.ndarray:
        """The perplexity of each seed when the faster method is at its end."""
        end = min(float(np.mean([c.seconds[-1] for c in curves])) for curves in self.curves.values())
        return np.array([c.at(end) for c in self.curves[key]])

    def equal_documents(self, key: str) -> np.ndarray:
        """The perplexity of each seed at the end."""
        return np.array([c.values[-1] for c in self.curves[key]])


def compare(model: Topics, batch: int, documents: int, seeds: int, progress: Callable[[str], None]) -> Comparison:
    """Each at the best of its points, found at equal documents."""
    best, curves = {}, {}
    for key, points in POINTS.items():
        own = [{**point, "batch_size": batch} for point in points]
        tried = [run(model, key, point, documents, TUNING_SEED).values[-1] for point in own]
        progress(f"{key}: {', '.join(f'{x:.0f}' for x in tried)}")
        best[key] = own[int(np.argmin(tried))]
        curves[key] = [run(model, key, best[key], documents, seed) for seed in range(1, seeds + 1)]
        progress(f"{key} at {best[key]}")
    return Comparison(best, curves)


def as_text(name: str, found: Comparison) -> str:
    """The table of one stream."""
    lines = [f"{name}", f"{'':8} {'ms a document':>14} {'at equal documents':>20} {'at equal time':>16}  best"]
    for key in found.curves:
        cells = []
        for values in (found.equal_documents(key), found.equal_time(key)):
            error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
            cells.append(f"{values.mean():.1f} ± {error:.1f}")
        lines.append(
            f"{METHODS[key].title:8} {found.milliseconds(key):14.3f} {cells[0]:>20} {cells[1]:>16}  {found.best[key]}"
        )
    ratio = found.milliseconds("lda_scir") / found.milliseconds("lda_sgrld")
    return "\n".join([*lines, f"SCIR takes {ratio:.1f} times SGRLD's time a document; ± is a standard error."])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparisons and print their tables."""
    parser = Parser(prog="python -m sgmcmc_lab.lessons.papers.baker_2018_section_4_1", description=__doc__)
    parser.add_argument(
        "--zip", nargs="*", type=Path, default=[], help="brown.zip, state_union.zip: real text, K = 100"
    )
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args(arguments)

    def tell(what: str) -> None:
        print(what, file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory() as folder:
        for name, make in STREAMS.items() if not options.zip else ():
            print(as_text(name, compare(*make(), options.documents, options.seeds, tell)), flush=True)
        for path in options.zip:
            if not path.is_file():
                print(f"{path.name} is skipped: there is no such file.")
                continue
            try:
                model = from_zip(path, Path(folder), 100)
            except (SpecError, zipfile.BadZipFile) as error:
                parser.error(str(error))
            name = f"{path.name}: {model.n_data:,} documents, V = {model.n_words:,}, K = {model.n_topics}"
            print(as_text(name, compare(model, 50, options.documents, options.seeds, tell)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

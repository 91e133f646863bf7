"""Figure 5 of Liu, Zhu & Song 2016.

The command is ``python -m sgmcmc_lab.lessons.papers.liu_2016_figure_5``.

Held-out log-perplexity of every method for the spherical admixture model in equal time and for equal documents, on
the Reuters articles, or on a file of texts with ``--texts``, one document a line (a tab ends its text), also as .gz.
The time is the processor's, in the methods' steps; the hyper-parameters are the paper's for each word, κ/V = 6,
σ/V = κ₀/V = 2, α = 10, K = 20. Each method runs at its best of a stated grid, which is tried with a seed of its own.
``--methods`` leaves some out. The picture is drawn by :mod:`lessons.papers.pictures`.
"""

import gzip
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.random import SFC64, Generator
from scipy import stats

from sgmcmc_lab.samplers.console import Parser
from sgmcmc_lab.samplers.files import FileError
from sgmcmc_lab.samplers.models import METHODS
from sgmcmc_lab.samplers.models.run import ModelChain
from sgmcmc_lab.samplers.models.spherical.model import Spherical
from sgmcmc_lab.samplers.models.topics.corpus import MAX_BYTES, Corpus, from_texts
from sgmcmc_lab.samplers.parameters import SpecError, Value
from sgmcmc_lab.samplers.targets.base import Array

Params = dict[str, Value]
TUNING_SEED = 1000
SECONDS, SEEDS, WORDS, TOPICS, ALPHA = 3.0, 5, 500, 20, 10.0
SCORED = 24
"""Scores in a run, evenly spaced in time."""
MOST_SEEDS, MOST_SECONDS = 100, 86_400
ALL: Params = {"batch_size": 100_000}


@dataclass(frozen=True)
class Case:
    """One method, with the values that are tried."""

    title: str
    method: str
    grid: Sequence[Params]
    place: int
    """The position in the paper's figure 5(a): 1 is the lowest."""


def _steps(*values: float, **fixed: Value) -> list[Params]:
    return [{"step_size": value, **fixed} for value in values]


CASES = (
    Case("gSGNHT", "spherical_gsgnht", _steps(0.1, 0.3), 1),
    Case("SGGMC", "spherical_sggmc", _steps(0.1, 0.3), 2),
    Case("SGGMC, all documents", "spherical_sggmc", _steps(0.3, 0.6, **ALL), 3),
    Case("GMC, blocked Gibbs", "spherical_gibbs", _steps(0.1, 0.2, n_leapfrog=10), 4),
    Case("GMC, approximate accept step", "spherical_gmc", _steps(0.01, 0.03), 4),
    Case("VI", "spherical_vi", _steps(0.5, 1.0, sweeps=3), 6),
    Case("stochastic VI", "spherical_stovi", _steps(0.5, 1.0, sweeps=3), 6),
)


@dataclass(frozen=True)
class Row:
    """A method's scores, at its best values: at a quarter of the time, at its end, and after the documents."""

    case: Case
    params: Params
    scores: Array
    """(seeds, 3); nan where so many documents are more than it got to."""
    curves: Array
    """(seeds, SCORED): at equal parts of the time; nan where a step is longer than a part."""
    documents: float
    """That it touched, on average."""


class SphericalRun(NamedTuple):
    """One run, infinite from where it left the numbers."""

    scores: Array
    """As in :class:`Row`, (3,)."""
    curve: Array
    """(SCORED,)."""
    documents: int
    """That it touched."""


def run(
    model: Spherical, method: str, params: Mapping[str, Value], seconds: float, documents: float, seed: int
) -> SphericalRun:
    """One run of so many seconds."""
    chain = ModelChain(model, METHODS[method](**params), Generator(SFC64(seed)))
    spent, out, curve, due = 0.0, np.full(3, np.nan), np.full(SCORED, np.nan), 1
    while spent < seconds:
        began = time.process_time()
        try:
            chain.data_seen += chain.method.advance(model, chain.state, chain.rng)
        except FloatingPointError:
            return SphericalRun(np.full(3, np.inf), np.full(SCORED, np.inf), chain.data_seen)
        spent += time.process_time() - began
        passed = chain.data_seen >= documents and np.isnan(out[2])
        if spent >= due * seconds / SCORED or passed:
            score = chain.method.score(model, chain.state)
            if spent >= due * seconds / SCORED:
                due = min(int(spent / seconds * SCORED), SCORED)
                curve[due - 1] = score
                due += 1
            if passed:
                out[2] = score
            if spent >= seconds / 4 and np.isnan(out[0]):
                out[0] = score
            out[1] = score
    return SphericalRun(out, curve, chain.data_seen)


def compare(
    model: Spherical,
    seconds: float,
    seeds: Sequence[int],
    documents: float,
    cases: Sequence[Case],
    progress: Callable[[str], None] = lambda what: None,
) -> list[Row]:
    """A row for each case, in the order of the cases."""
    rows = []
    for case in cases:
        tried = []
        for params in case.grid if len(case.grid) > 1 else []:
            tried.append(run(model, case.method, params, seconds / 2, documents, TUNING_SEED).scores[1])
            progress(f"{case.title} {params}: {tried[-1]:.1f}")
        best = case.grid[int(np.nanargmin(tried))] if tried else case.grid[0]
        found = [run(model, case.method, best, seconds, documents, seed) for seed in seeds]
        scores, curves = (np.array([getattr(one, name) for one in found]) for name in ("scores", "curve"))
        rows.append(Row(case, best, scores, curves, float(np.mean([one.documents for one in found]))))
        progress(f"{case.title} at {best}: {rows[-1].scores[:, 1].mean():.1f}")
    return rows


def with_error(values: Array) -> str:
    """Mean ± standard error over the seeds."""
    if not np.isfinite(values).all():
        return "–"
    return (
        f"{values.mean():.1f} ± {values.std(ddof=1) / np.sqrt(len(values)):.1f}"
        if len(values) > 1
        else f"{values.mean():.1f}"
    )


def as_text(model: Spherical, rows: Sequence[Row], seconds: float, documents: float) -> str:
    """The table, and what becomes of the paper's order: the difference between neighbours in it, seed by seed."""
    heads = (f"{seconds / 4:g} s", f"{seconds:g} s", f"{documents:,.0f} documents")
    lines = [
        "; ".join(
            f"{name}: {text}"
            for name, text in (*model.facts().items(), ("K", model.n_topics), ("α", f"{model.alpha:g}"))
        ),
        f"{'':30} {heads[0]:>15} {heads[1]:>15} {heads[2]:>17} {'touched':>10}  best of the grid",
    ]
    for row in rows:
        texts = [with_error(column) for column in row.scores.T]
        lines.append(
            f"{row.case.title:30} {texts[0]:>15} {texts[1]:>15} {texts[2]:>17} {row.documents:10,.0f}  h = {row.params['step_size']:g}"
        )
    lines.append("the paper's order, a minus where it holds, seed by seed:")
    lines += [
        f"{one.case.title} − {two.case.title}: {difference(one.scores[:, 1] - two.scores[:, 1])}"
        for one in rows
        for two in rows
        if one.case.place < two.case.place
    ]
    return "\n".join(lines)


def difference(values: Array) -> str:
    """The mean of paired differences, its 95 % interval, and the smallest difference that so many pairs would tell
    from zero four times out of five: (t₀.₉₇₅ + t₀.₈) standard errors.
    """
    n = len(values)
    if n < 2 or not np.isfinite(values).all():
        return with_error(values)
    error, end = values.std(ddof=1) / np.sqrt(n), stats.t.ppf(0.975, n - 1)
    least = (end + stats.t.ppf(0.8, n - 1)) * error
    return f"{with_error(values)}, within ± {end * error:.1f}, a power of .8 from {least:.1f} on"


def read_texts(path: Path) -> Corpus:
    """A corpus of a document a line, its text up to the first tab. Raises :class:`~samplers.files.FileError`."""
    opened: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rb") as file:
            content = file.read(MAX_BYTES + 1)
    except (OSError, EOFError) as error:
        raise FileError(str(path), "cannot be read", str(error)) from None
    if len(content) > MAX_BYTES:
        raise FileError(path.name, f"has more than {MAX_BYTES:,} bytes", "so many are not allowed")
    lines = content.decode("utf-8", errors="replace").splitlines()
    texts = ((f"document {d + 1}", line.partition("\t")[0]) for d, line in enumerate(lines))
    return from_texts(path.name, texts, len(content), lambda share: None)


@dataclass(frozen=True)
class Found:
    """The data of Figure 5(a)."""

    name: str
    """The name of the texts."""
    seconds: float
    rows: Sequence[Row]


def measure(arguments: Sequence[str] | None = None) -> Found:
    """Run the comparison that the command line asks for and print its table.

    Raises :class:`~samplers.files.FileError` and :class:`SpecError`.
    """
    parser = Parser(prog="python -m sgmcmc_lab.lessons.papers.liu_2016_figure_5", description=__doc__)
    parser.add_argument("--texts", type=Path, help="a file with a document a line")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--words", type=int, default=WORDS, help="the largest vocabulary")
    parser.add_argument("--topics", type=int, default=TOPICS)
    parser.add_argument("--alpha", type=float, default=ALPHA)
    keys = list(dict.fromkeys(case.method for case in CASES))
    parser.add_argument("--methods", nargs="+", default=keys, choices=keys)
    options = parser.parse_args(arguments)
    if not 1 <= options.seeds <= MOST_SEEDS:
        raise SpecError("seeds", options.seeds, f"allowed is a whole number from 1 to {MOST_SEEDS}")
    if not 0 < options.seconds <= MOST_SECONDS:
        raise SpecError("seconds", options.seconds, f"allowed is more than 0 and at most {MOST_SECONDS:,}")
    uploaded = read_texts(options.texts) if options.texts else None
    corpus = "uploaded" if options.texts else "reuters"
    model = Spherical(uploaded, corpus=corpus, n_topics=options.topics, alpha=options.alpha, max_words=options.words)
    documents = 100.0 * model.n_data
    rows = compare(
        model,
        options.seconds,
        range(1, options.seeds + 1),
        documents,
        [case for case in CASES if case.method in options.methods],
        lambda what: print(what, file=sys.stderr, flush=True),
    )
    print(as_text(model, rows, options.seconds, documents))
    return Found(options.texts.name if options.texts else "Reuters", options.seconds, rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table. Exit code 2 for bad input, said in one sentence."""
    try:
        measure(arguments)
    except (FileError, SpecError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

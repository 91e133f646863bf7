"""The papers' comparison on the Reuters articles.

The command is ``python -m sgmcmc_lab.lessons.papers.ma_2015_figure_3``.

Held-out perplexity after the same number of documents, for every method at its best on a stated grid. The grid is
tried with a seed of its own; the best values then run with the seeds that are reported.
"""

import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sgmcmc_lab.samplers.console import Parser
from sgmcmc_lab.samplers.experiment import Experiment
from sgmcmc_lab.samplers.models import METHODS
from sgmcmc_lab.samplers.models.run import start
from sgmcmc_lab.samplers.models.topics.model import Topics
from sgmcmc_lab.samplers.parameters import Value

Params = dict[str, Value]
TUNING_SEED = 1000
DOCUMENTS, SEEDS, TOPICS = 10_000, 5, 50
ORIGINAL = {"parameterisation": "original"}


def _grid(**values: Sequence[Value]) -> list[Params]:
    return [dict(zip(values, point, strict=True)) for point in itertools.product(*values.values())]


GRIDS: dict[tuple[str, str], list[Params]] = {
    ("collapsed_gibbs", ""): [{}],
    ("minibatch_gibbs", ""): [{"batch_size": 50}],
    ("lda_scir", ""): _grid(step_size=[0.2, 0.5, 1.0, 2.0]),
    ("lda_sgrhmc", ""): _grid(step_size=[0.2, 0.5, 1.0], friction=[1.0, 10.0, 100.0]),
    ("lda_sgrld", ""): _grid(step_size=[0.02, 0.05, 0.1, 0.2]),
    ("lda_sghmc", "expanded mean"): _grid(step_size=[1e-3, 3e-3, 1e-2, 3e-2, 0.1], friction=[1.0, 10.0, 100.0]),
    ("lda_sghmc", "original"): [
        x | ORIGINAL for x in _grid(step_size=[1e-4, 3e-4, 1e-3, 3e-3], friction=[100.0, 300.0, 1000.0, 10_000.0])
    ],
    ("lda_sgld", "expanded mean"): _grid(step_size=[1e-5, 1e-4, 1e-3, 1e-2, 3e-2, 0.1]),
    ("lda_sgld", "original"): [x | ORIGINAL for x in _grid(step_size=[1e-9, 1e-8, 1e-7, 3e-7, 1e-6, 3e-6, 1e-5])],
}
"""The settings tried for every method, by its key and variant; all else is at its default."""


@dataclass(frozen=True)
class Row:
    """One method's perplexities, at its best values."""

    method: str
    variant: str
    params: Params
    values: tuple[float, ...]
    """One for every seed; not finite where the method left the numbers."""
    seconds: float
    """In its steps, for one seed, on average."""

    @property
    def mean(self) -> float:
        """The mean over the seeds."""
        return float(np.mean(self.values))

    @property
    def spread(self) -> float:
        """The standard deviation over seeds."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else float("nan")


def perplexity(
    model: Topics, method: str, params: Mapping[str, Value], documents: int, seed: int
) -> tuple[float, float]:
    """The perplexity after so many documents, infinity where the method left the numbers; and the seconds it took."""
    run = start(Experiment.of("topics", {method: params}, seed=seed), model)[0].chains[0]
    while run.data_seen < documents and run.divergence is None:
        run.advance()
    if run.divergence is not None:
        return float("inf"), run.seconds
    return run.scored(), run.seconds


def compare(
    model: Topics,
    grids: Mapping[tuple[str, str], Sequence[Params]] = GRIDS,
    documents: int = DOCUMENTS,
    seeds: Sequence[int] = tuple(range(1, SEEDS + 1)),
    progress: Callable[[str], None] = lambda what: None,
) -> list[Row]:
    """A row for each method, in rising order of the mean perplexity."""
    rows = []
    for (method, variant), points in grids.items():
        tried: list[float] = []
        for params in points if len(points) > 1 else []:
            tried.append(perplexity(model, method, params, documents, TUNING_SEED)[0])
            progress(f"{method} {params}: {tried[-1]:.0f}")
        best = points[int(np.argmin(tried))] if tried else points[0]
        results = [perplexity(model, method, best, documents, seed) for seed in seeds]
        values, seconds = zip(*results, strict=True)
        rows.append(Row(method, variant, dict(best), values, float(np.mean(seconds))))
        progress(f"{method} {variant} at {best}: {rows[-1].mean:.0f} ± {rows[-1].spread:.0f}")
    return sorted(rows, key=lambda row: row.mean)


def unigram(model: Topics) -> float:
    """The perplexity of the training documents' word frequencies, with β added: no topics at all."""
    counts = np.bincount(model.training.words, minlength=model.n_words) + model.beta
    return float(np.exp(-np.log(counts[model.scored.words] / counts.sum()).mean()))


def as_text(model: Topics, rows: Sequence[Row], documents: int) -> str:
    """The table."""
    lines = [
        f"{model.corpus}, K = {model.n_topics}, α = {model.alpha:g}, β = {model.beta:g}, after {documents:,} documents; "
        f"word frequencies alone: {unigram(model):.0f}",
        f"{'':34} {'mean':>6} {'sd':>5} {'range':>11} {'seconds':>8}  best of the grid",
    ]
    for row in rows:
        name = METHODS[row.method].title + (f", {row.variant}" if row.variant else "")
        bounds = f"{min(row.values):.0f}–{max(row.values):.0f}"
        params = ", ".join(f"{key} {value}" for key, value in row.params.items() if key != "parameterisation")
        lines.append(f"{name:34} {row.mean:6.0f} {row.spread:5.0f} {bounds:>11} {row.seconds:8.1f}  {params}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison and print its table."""
    parser = Parser(prog="python -m sgmcmc_lab.lessons.papers.ma_2015_figure_3", description=__doc__)
    parser.add_argument("--documents", type=int, default=DOCUMENTS)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--topics", type=int, default=TOPICS)
    parser.add_argument("--beta", type=float, default=0.1, help="the topics' prior")
    options = parser.parse_args(arguments)
    model = Topics(corpus="reuters", n_topics=options.topics, beta=options.beta)
    rows = compare(
        model,
        documents=options.documents,
        seeds=range(1, options.seeds + 1),
        progress=lambda what: print(what, file=sys.stderr, flush=True),
    )
    print(as_text(model, rows, options.documents))
    return 0


if __name__ == "__main__":
    sys.exit(main())

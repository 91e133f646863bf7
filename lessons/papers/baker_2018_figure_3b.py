"""The paper's comparison on visits of web pages.

The command is ``python -m sgmcmc_lab.lessons.papers.baker_2018_figure_3b msweb.data msweb.test``.

Scores of the held-out visitors, −log p of one in the mean, by steps, visits and seconds, as Baker et al. 2018,
Figure 3(b), has them; beside them word frequencies, and EM for mixtures of K clusters. The step sizes are tried with a
seed of their own; the best then run with the seeds that are reported.
"""

import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import SFC64, Generator
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import logsumexp

from sgmcmc_lab.samplers.console import Parser
from sgmcmc_lab.samplers.experiment import Experiment
from sgmcmc_lab.samplers.files import read_file
from sgmcmc_lab.samplers.models import METHODS
from sgmcmc_lab.samplers.models.mixture.data import Documents, read
from sgmcmc_lab.samplers.models.mixture.method import StochasticMixture
from sgmcmc_lab.samplers.models.mixture.model import Mixture
from sgmcmc_lab.samplers.models.mixture.scir import MixtureSCIR
from sgmcmc_lab.samplers.models.mixture.sgrld import MixtureSGRLD
from sgmcmc_lab.samplers.models.run import ModelChain, start
from sgmcmc_lab.samplers.models.topics.corpus import MAX_BYTES, Corpus
from sgmcmc_lab.samplers.parameters import SpecError, Value

Array = NDArray[np.float64]
Params = dict[str, Value]
TUNING_SEED = 1000
STEPS, SEEDS, BATCH = 1000, 5, 1000
SWEEPS = 100
"""The sweeps of full Gibbs; a sweep uses as many documents as thirty-odd minibatches."""
EM_CLUSTERS, EM_ROUNDS, EM_STARTS, SMOOTHING = (2, 5, 10, 20), 200, 3, 0.5
SMALL = 1e-3
"""A cluster with a smaller share of the documents is small."""


def _grid(**values: Sequence[Value]) -> list[Params]:
    return [dict(zip(values, point, strict=True)) for point in itertools.product(*values.values())]


@dataclass(frozen=True)
class Case:
    """A method, its words' prior, and what is tried of it."""

    key: str
    prior: float
    grid: list[Params]
    note: str = ""

    @property
    def title(self) -> str:
        """The method with its prior."""
        return f"{METHODS[self.key].title}, a = {self.prior:g}{self.note}"


def cases() -> list[Case]:
    """The paper's settings, and each method at its best step sizes."""
    scir: Params = {"batch_size": BATCH, "start_clusters": 20}
    sgrld: Params = {"batch_size": BATCH, "start_clusters": 30}
    steps = _grid(step_size=[3e-3, 1e-2, 3e-2, 1e-1], stick_step=[5e-3, 5e-2])
    return [
        Case("mixture_gibbs", 0.5, [{"start_clusters": 20}]),
        Case("mixture_scir", 0.5, [scir | {"step_size": 0.1}], ", the paper's h"),
        Case("mixture_scir", 0.5, [scir | x for x in _grid(step_size=[0.03, 0.1, 0.2, 0.3])]),
        Case("mixture_sgrld", 1e-3, [sgrld | {"step_size": 1e-3, "stick_step": 5e-3}], ", the paper's steps"),
        Case("mixture_sgrld", 1e-3, [sgrld | x for x in steps]),
        Case("mixture_sgrld", 0.5, [sgrld | x for x in steps]),
    ]


@dataclass(frozen=True)
class Row:
    """One method's runs."""

    case: Case
    params: Params
    scores: Array
    """(seeds, points): after a tenth, a third and all of the steps; infinite where the run ended before."""
    last: Array
    """(seeds,): of the last draw alone."""
    clusters: Array
    """(seeds,): with documents."""
    small: Array
    """(seeds,): those of them with fewer than :data:`SMALL` of the documents."""
    breadth: Array
    """(seeds,): as many equally likely words have the entropy of a small cluster's, in the mean; nan without one."""
    documents: int
    """Touched by a run."""
    seconds: float
    """In the steps of a run, in the mean."""


def points_of(n_steps: int) -> tuple[int, int, int]:
    """The steps at which a run is looked at."""
    return max(n_steps // 10, 1), max(n_steps // 3, 1), n_steps


def run(model: Mixture, key: str, params: Params, n_steps: int, seed: int) -> tuple[ModelChain, list[float]]:
    """A run, and its scores; infinite from where it ended."""
    of_model = {"corpus": "uploaded", "prior": model.prior}
    chain = start(Experiment.of("mixture", {key: params}, target_params=of_model, seed=seed), model)[0].chains[0]
    scores = []
    for point in points_of(n_steps):
        while chain.steps < point and chain.divergence is None:
            chain.advance()
        scores.append(chain.scored() if chain.divergence is None else np.inf)
    return chain, scores


def small_clusters(chain: ModelChain) -> tuple[int, float]:
    """How many small clusters there are, and how many words they spread over."""
    sizes, theta = chain.state.sizes, chain.state.theta
    small = np.flatnonzero((sizes > 0) & (sizes < SMALL * chain.model.n_data))
    if not len(small):
        return 0, float("nan")
    p = theta[:, small] / theta[:, small].sum(axis=0)
    return len(small), float(np.exp(-(p * np.log(np.maximum(p, 1e-300))).sum(axis=0)).mean())


def known_mean(values: Array) -> float:
    """The mean of those that are numbers; nan where none is."""
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")


def compare(
    data: Documents,
    seeds: Sequence[int],
    n_steps: int = STEPS,
    sweeps: int = SWEEPS,
    of: Sequence[Case] | None = None,
    progress: Callable[[str], None] = lambda what: None,
) -> list[Row]:
    """A row for each case."""
    rows = []
    for case in cases() if of is None else of:
        model = Mixture(data, corpus="uploaded", prior=case.prior)
        n = sweeps if case.key == "mixture_gibbs" else n_steps
        tried = [run(model, case.key, x, n, TUNING_SEED)[1][-1] for x in case.grid] if len(case.grid) > 1 else [0.0]
        best = case.grid[int(np.argmin(tried))]
        runs = [run(model, case.key, best, n, seed) for seed in seeds]
        small = np.array([small_clusters(chain) for chain, _ in runs])
        rows.append(
            Row(
                case,
                best,
                np.array([scores for _, scores in runs]),
                np.array([-chain.method.log_density(model, chain.state).mean() for chain, _ in runs]),
                np.array([np.count_nonzero(chain.state.sizes) for chain, _ in runs]),
                small[:, 0],
                small[:, 1],
                runs[0][0].data_seen,
                float(np.mean([chain.seconds for chain, _ in runs])),
            )
        )
        progress(f"{case.title}: {rows[-1].scores[:, -1].mean():.3f}")
    return rows


class Crossed(MixtureSCIR):
    """The slice sampler with words and sticks moved by a process each, SCIR or SGRLD: which of them makes clusters."""

    compiled = (*MixtureSCIR.compiled, MixtureSGRLD.move)

    def __init__(self, words: StochasticMixture, sticks: StochasticMixture):
        super().__init__(batch_size=words.batch_size, start_clusters=words.start_clusters)
        self._words, self._sticks = words, sticks

    def move(self, rng: Generator, x: Array, *given: Any) -> None:
        """The words' or the sticks' own; a stick has two rows."""
        of_sticks = len(x) == 2
        method = self._sticks if of_sticks else self._words
        method.move(rng, x, *given[:-1], method.packed(of_sticks))


def crossed(data: Documents, seeds: Sequence[int], n_steps: int = STEPS) -> dict[tuple[str, str], Array]:
    """By what moves words and sticks: score, clusters and small ones, averaged over the later half, of each seed, and
    how many words the small ones spread over, (seeds, 4).
    """
    model = Mixture(data, corpus="uploaded", prior=0.5)
    common: Params = {"batch_size": BATCH, "start_clusters": 20}
    made: list[StochasticMixture] = [MixtureSCIR(**common), MixtureSGRLD(**common, step_size=0.03, stick_step=0.05)]
    out: dict[tuple[str, str], Array] = {}
    for words, sticks in itertools.product(made, repeat=2):
        found = []
        for seed in seeds:
            chain, counts = ModelChain(model, Crossed(words, sticks), Generator(SFC64(seed))), []
            for step in range(n_steps):
                chain.advance()
                if step >= n_steps // 2:
                    counts.append((np.count_nonzero(chain.state.sizes), *small_clusters(chain)))
            found.append([chain.scored(), *map(known_mean, np.array(counts).T)])
        out[words.title, sticks.title] = np.array(found)
    return out


def unigram(model: Mixture) -> float:
    """The score of the training documents' word frequencies, smoothed: no clusters at all."""
    counts = np.bincount(model.training.words, minlength=model.n_words) + SMOOTHING
    return score_of(model, np.log(counts / counts.sum())[None], np.zeros(1))


def score_of(model: Mixture, log_theta: Array, log_w: Array) -> float:
    """−log p of a held-out document in the mean, of a mixture."""
    return -float(logsumexp(_bags(model.held) @ log_theta.T + log_w, axis=1).mean())


def _bags(corpus: Corpus) -> sparse.csr_array:
    shape = corpus.n_documents, corpus.n_words
    return sparse.csr_array((np.ones(corpus.n_tokens), corpus.words, corpus.offsets), shape=shape)


def em(model: Mixture, n_clusters: int, seed: int, rounds: int = EM_ROUNDS) -> float:
    """The score of a mixture by EM from random clusters, its words' frequencies smoothed."""
    x, rng = _bags(model.training), np.random.default_rng(seed)
    share = rng.dirichlet(np.ones(n_clusters), size=model.n_data)
    log_theta, log_w = np.zeros((n_clusters, model.n_words)), np.zeros(n_clusters)
    for _ in range(rounds if n_clusters > 1 else 1):
        counts = (x.T @ share).T + SMOOTHING
        log_theta = np.log(counts / counts.sum(axis=1, keepdims=True))
        log_w = np.log((share.sum(axis=0) + 1) / (model.n_data + n_clusters))
        joint = x @ log_theta.T + log_w
        share = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    return score_of(model, log_theta, log_w)


def crossed_as_text(found: Mapping[tuple[str, str], Array]) -> str:
    """The second table."""
    lines = [f"{'words by':10}{'sticks by':10}{'score':>16}{'K':>7}{'small':>7}{'words':>7}"]
    for (words, sticks), values in found.items():
        score, clusters, small, breadth = values.T
        lines.append(
            f"{words:10}{sticks:10}{_with_error(score):>16}{clusters.mean():7.1f}{small.mean():7.1f}{known_mean(breadth):7.0f}"
        )
    return "\n".join(lines)


def as_text(data: Documents, rows: Sequence[Row], baselines: Mapping[str, Array]) -> str:
    """The table."""
    held = f"{data.n_test:,}" if data.n_test else "a fifth"
    lines = [
        f"{data.corpus.n_documents:,} documents, of which {held} are held out; {data.corpus.n_words:,} words",
        f"{'':32}{'score at a tenth':>18}{'a third':>16}{'the end':>16}{'one draw':>10}{'K':>7}{'small':>7}"
        f"{'words':>7}{'documents':>11}{'s':>7}  best of the grid",
    ]
    for name, values in baselines.items():
        lines.append(f"{name:32}{'':34}{_with_error(values):>16}")
    for row in rows:
        params = ", ".join(f"{k} {v:g}" for k, v in row.params.items() if "step" in k) or "–"
        cells = "".join(f"{_with_error(row.scores[:, j]):>{width}}" for j, width in enumerate((18, 16, 16)))
        breadth = f"{known_mean(row.breadth):.0f}"
        lines.append(
            f"{row.case.title:32}{cells}{row.last.mean():10.3f}{row.clusters.mean():7.1f}{row.small.mean():7.1f}"
            f"{breadth:>7}{row.documents:11,}{row.seconds:7.1f}  {params}"
        )
    lines.append(
        f"± is a standard deviation over seeds. Small: clusters with fewer than {SMALL:.1%} of the documents; words: how many these spread over."
    )
    return "\n".join(lines)


def _with_error(values: Array) -> str:
    spread = f" ± {values.std(ddof=1):.3f}" if len(values) > 1 else ""
    return f"{values.mean():.3f}{spread}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison and print its table. Exit code 2 for bad input, said in one sentence."""
    parser = Parser(prog="python -m sgmcmc_lab.lessons.papers.baker_2018_figure_3b", description=__doc__)
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="a .data and a .test file of visits, or the files of a corpus",
    )
    parser.add_argument("--steps", type=int, default=STEPS, help="steps of the stochastic methods")
    parser.add_argument("--sweeps", type=int, default=SWEEPS, help="of full Gibbs")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    options = parser.parse_args(arguments)
    try:
        for name in ("steps", "sweeps", "seeds"):
            if getattr(options, name) < 1:
                raise SpecError(name, getattr(options, name), "allowed is a whole number from 1 on")
        try:
            data = read({path.name: read_file(path, MAX_BYTES) for path in options.files})
        except OSError as error:
            raise SpecError("FILE", Path(error.filename).name, (error.strerror or str(error)).lower()) from None
        model = Mixture(data, corpus="uploaded")
        seeds = range(1, options.seeds + 1)
        baselines = {"word frequencies": np.array([unigram(model)])}
        for k in EM_CLUSTERS:
            baselines[f"EM, K = {k}"] = np.array([em(model, k, seed) for seed in range(1, EM_STARTS + 1)])
        rows = compare(
            data, seeds, options.steps, options.sweeps, progress=lambda what: print(what, file=sys.stderr, flush=True)
        )
    except SpecError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(as_text(data, rows, baselines))
    print("", crossed_as_text(crossed(data, seeds, options.steps)), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Whether the batch size that is chosen is the best.

The command is ``python -m sgmcmc_lab.lessons.papers.smolyakov_2018_topics``.

The weights w_z and w_θ are measured, the sizes are tried (Smolyakov, Liu & Fisher, Algorithm 1), and then chains with
the chosen size, with one document and with all are compared at equal cost, m w_z + w_θ a step: the error of their
averages, from draws of the posterior, and their perplexity, from random topics. That is equal time up to other work on
the machine; the seconds are in the table beside it.
"""

import copy
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import SFC64, Generator, SeedSequence
from numpy.typing import NDArray
from scipy.special import xlogy

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.console import Parser
from sgmcmc_lab.samplers.models.batch_size import Adaptation, objective
from sgmcmc_lab.samplers.models.run import ModelChain
from sgmcmc_lab.samplers.models.topics.corpus import synthetic
from sgmcmc_lab.samplers.models.topics.method import State
from sgmcmc_lab.samplers.models.topics.minibatch_gibbs import MinibatchGibbs, measure_weights
from sgmcmc_lab.samplers.models.topics.model import Topics
from sgmcmc_lab.samplers.parameters import UPLOADED

Array = NDArray[np.float64]
Progress = Callable[[str], None]

CASES: dict[str, Callable[[], Topics]] = {
    "synthetic": lambda: Topics(synthetic(2500, 1000, 4, 100), corpus=UPLOADED, n_topics=4, max_share=1.0),
    "reuters": lambda: Topics(corpus="reuters", n_topics=4),
    "bars": lambda: Topics(corpus="bars", n_topics=10),
}
"""By name. Four topics are the paper's number, with its 250 documents of the Brown corpus. The more documents there
are, the dearer are all of them beside one φ."""
TRIAL, SWEEPS, CHAINS = 2000, 60, 40
REFERENCE = 40
"""The reference costs as much as so many chains: so it adds 1/40 to the error of a chain of the same size."""
GAP = 0.2
"""The starts of the chains are this part of a chain apart."""
EARLY = 0.1
"""The first perplexity is taken after this part of the cost."""
STATISTICS = ("Σ φ²", "φ", "log p(x | z, φ)")


def statistics(model: Topics, state: State) -> tuple[float, Array, float]:
    """Σ φ², by which the size is chosen; φ itself (words, K); and the log-likelihood of the words given z and φ."""
    n_topics = model.n_topics
    phi = state.weights[:, :n_topics] / state.totals[:n_topics]
    return float((phi * phi).sum()), phi, float(xlogy(state.extra["counts"][:, :n_topics], phi).sum())


@dataclass
class Averages:
    """The averages of one chain, and what its steps took."""

    squares: float
    phi: Array
    log_likelihood: float
    seconds: float

    def errors(self, exact: "Averages") -> Array:
        """The squared distances to ``exact``, by STATISTICS."""
        away = self.phi - exact.phi
        return np.array(
            [
                (self.squares - exact.squares) ** 2,
                (away * away).sum(),
                (self.log_likelihood - exact.log_likelihood) ** 2,
            ]
        )


def averages(model: Topics, state: State, size: int, n_steps: int, seed: SeedSequence) -> Averages:
    """Averages of a chain from a copy of ``state``. Topics do not change places within a chain, so φ has an average."""
    method, rng, state = MinibatchGibbs(batch_size=size), Generator(SFC64(seed)), copy.deepcopy(state)
    out = Averages(0.0, np.zeros((model.n_words, model.n_topics)), 0.0, 0.0)
    for _ in range(n_steps):
        began = time.perf_counter()
        method.advance(model, state, rng)
        out.seconds += time.perf_counter() - began
        squares, phi, log_likelihood = statistics(model, state)
        out.squares += squares / n_steps
        out.phi += phi / n_steps
        out.log_likelihood += log_likelihood / n_steps
    return out


def tried(model: Topics, ratio: float, trial: int, seed: SeedSequence) -> tuple[Adaptation, State]:
    """The trials of all sizes in one run, and the state it is then in."""
    method, rng = MinibatchGibbs(cost_ratio=ratio, trial=trial), Generator(SFC64(seed))
    jit.prepare(method.compiled)
    state = method.start(model, rng)
    while not method.adaptation(model, state).chosen:
        method.advance(model, state, rng)
    return method.adaptation(model, state), state


@dataclass(frozen=True)
class Row:
    """One batch size."""

    size: int
    steps: int
    """At the common cost."""
    seconds: float
    """In the steps of one chain, on average."""
    errors: Array
    """The squared distances of each chain to the reference, (chains, statistics)."""
    early: Array
    """The perplexity of each chain from random topics after :data:`EARLY` of the cost, (chains,)."""
    late: Array
    """After all of it."""


@dataclass(frozen=True)
class Comparison:
    """The trials, and what came of it."""

    model: Topics
    ratio: float
    adaptation: Adaptation
    sweeps: int
    rows: tuple[Row, ...]
    """The chosen size first."""

    def ratios(self, row: Row) -> tuple[Array, Array]:
        """The logarithms of the mean squared errors over those of the chosen size, and their standard errors."""
        return log_ratio(row.errors, self.rows[0].errors)


def log_ratio(first: Array, second: Array) -> tuple[Array, Array]:
    """log of mean ``first``/mean ``second``, both (chains, …) of independent chains, and its standard error."""
    means, variances = zip(*((x.mean(axis=0), x.var(axis=0, ddof=1) / len(x)) for x in (first, second)), strict=True)
    spread = sum(variance / mean**2 for mean, variance in zip(means, variances, strict=True))
    return np.log(means[0] / means[1]), np.sqrt(spread)


def compare(
    model: Topics,
    ratio: float,
    trial: int = TRIAL,
    sweeps: int = SWEEPS,
    chains: int = CHAINS,
    seed: int = 1,
    scored: bool = True,
    progress: Progress = lambda what: None,
) -> Comparison:
    """The chosen size, one document and all, with ``ratio`` = w_θ/w_z; each chain costs as much as ``sweeps`` with all.

    The chains begin at draws of a run that the reference, another one, knows nothing of. So what is compared is what
    the size was chosen for, the error when the start is forgotten; ``scored`` adds the perplexity from random topics.
    """
    n = model.training.n_documents
    cost = sweeps * (n + ratio)
    trials, spacing, long, *seeds = SeedSequence(seed).spawn(3 + chains)
    adaptation, state = tried(model, ratio, trial, trials)
    progress(f"chosen: m = {adaptation.chosen}")
    whole, rng = MinibatchGibbs(batch_size=n), Generator(SFC64(spacing))
    starts = []
    for _ in range(chains + 1):
        for _ in range(max(round(GAP * sweeps), 1)):
            whole.advance(model, state, rng)
        starts.append(copy.deepcopy(state))
    exact = averages(
        model, starts.pop(), adaptation.chosen, round(REFERENCE * cost / (adaptation.chosen + ratio)), long
    )
    progress("the reference is there")
    rows = []
    for size in dict.fromkeys((adaptation.chosen, 1, n)):
        n_steps = round(cost / (size + ratio))
        own = [own_seed.spawn(1)[0] for own_seed in seeds]
        results = [averages(model, start, size, n_steps, one) for start, one in zip(starts, own, strict=True)]
        perplexities = np.array([perplexity(model, size, n_steps, one) for one in own if scored]).reshape(-1, 2)
        rows.append(
            Row(
                size,
                n_steps,
                float(np.mean([x.seconds for x in results])),
                np.array([x.errors(exact) for x in results]),
                *perplexities.T,
            )
        )
        progress(f"m = {size} is there")
    return Comparison(model, ratio, adaptation, sweeps, tuple(rows))


def perplexity(model: Topics, size: int, n_steps: int, seed: SeedSequence) -> tuple[float, float]:
    """Held-out perplexity from random topics, after :data:`EARLY` of the steps and after all."""
    run = ModelChain(model, MinibatchGibbs(batch_size=size), Generator(SFC64(seed)))
    out = []
    for stop in (max(round(EARLY * n_steps), 1), n_steps):
        while run.steps < stop:
            run.advance()
        out.append(run.scored())
    return out[0], out[1]


def as_text(name: str, found: Comparison) -> str:
    """The trials and the table."""
    model, adaptation = found.model, found.adaptation
    n = model.training.n_documents
    costs = objective(adaptation.sizes, adaptation.taus, 1.0, found.ratio)
    with np.errstate(invalid="ignore"):
        predicted = dict(
            zip(adaptation.sizes, costs / costs[list(adaptation.sizes).index(adaptation.chosen)], strict=True)
        )
    lines = [
        f"{name}: N = {n} documents, {model.n_words:,} words, K = {model.n_topics}, w_θ/w_z = {found.ratio:.0f}",
        "  trials: "
        + "; ".join(
            f"m = {m}: τ {tau:.3g}, f {cost:.3g}"
            for m, tau, cost in zip(adaptation.sizes, adaptation.taus, costs, strict=True)
        ),
        f"  chosen: m = {adaptation.chosen}; {len(found.rows[0].errors)} chains for each size, cost of {found.sweeps} sweeps:",
        f"  {'m':>5} {'steps':>6} {'seconds':>8} {'f':>6}  "
        + "".join(f"{what:>18}" for what in STATISTICS)
        + f"{f'perplexity at {EARLY:.0%}':>18}{'at the end':>14}",
    ]
    for row in found.rows:
        logs, errors = found.ratios(row)
        if row is found.rows[0]:
            cells = [f"{1:>18}" for _ in STATISTICS]
        else:
            cells = [f"{f'{np.exp(x):.2f} ± {np.exp(x) * e:.2f}':>18}" for x, e in zip(logs, errors, strict=True)]
        for values, width in ((row.early, 18), (row.late, 14)):
            cells.append(f"{f'{values.mean():.1f} ± {values.std(ddof=1) / np.sqrt(len(values)):.1f}':>{width}}")
        lines.append(f"  {row.size:5} {row.steps:6} {row.seconds:8.3f} {predicted[row.size]:6.2f}  " + "".join(cells))
    lines.append("  f and the mean squared errors are over those of the chosen size; ± is a standard error.")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison and print its tables."""
    parser = Parser(prog="python -m sgmcmc_lab.lessons.papers.smolyakov_2018_topics", description=__doc__)
    parser.add_argument("cases", nargs="*", default=["synthetic"], metavar="case", help=", ".join(CASES))
    parser.add_argument("--trial", type=int, default=TRIAL, help="sweeps that the trial of a size costs as much as")
    parser.add_argument("--sweeps", type=int, default=SWEEPS, help="sweeps that a chain costs as much as")
    parser.add_argument("--chains", type=int, default=CHAINS)
    options = parser.parse_args(arguments)
    for name in options.cases:
        if name not in CASES:
            parser.error(f"case = {name!r}: allowed are {', '.join(CASES)}")
    for name in options.cases:
        model = CASES[name]()
        local, overall = measure_weights(model)
        found = compare(
            model,
            overall / local,
            options.trial,
            options.sweeps,
            options.chains,
            progress=lambda what: print(what, file=sys.stderr, flush=True),
        )
        print(as_text(name, found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

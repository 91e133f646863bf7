"""Clusters against the clock.

The command is ``python -m sgmcmc_lab.lessons.papers.smolyakov_2018_figures_5_and_6``.

Minibatch Gibbs with batches of several sizes, collapsed Gibbs and the slice sampler, from one and from 30 clusters, on
made-up points whose groups are known (Smolyakov, Liu & Fisher, Figures 5 and 6): how well the clusters agree with the
groups in the time of 200 sweeps of collapsed Gibbs, R̂ of the chains, and f(m) = (m w_z + w_θ) τ_int(m). All without
splits and merges, as in the paper, and with them. Times are of this process's own work, and no draw depends on them
but by how many there are.
"""

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import SFC64, Generator, SeedSequence
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from sgmcmc_lab.lessons.papers.trials import Trials, rhat
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.console import Parser
from sgmcmc_lab.samplers.models.agreement import Labels, adjusted_rand, purity
from sgmcmc_lab.samplers.models.batch_size import block_length, sizes_to_try, tau_int
from sgmcmc_lab.samplers.models.clusters.collapsed_gibbs import CollapsedGibbs
from sgmcmc_lab.samplers.models.clusters.method import ClusterMethod
from sgmcmc_lab.samplers.models.clusters.minibatch_gibbs import MinibatchGibbs
from sgmcmc_lab.samplers.models.clusters.model import Clusters
from sgmcmc_lab.samplers.models.clusters.slice_gibbs import SliceGibbs
from sgmcmc_lab.samplers.models.run import ModelChain
from sgmcmc_lab.samplers.targets.base import Array

SEEDS, SWEEPS, TRIAL = 5, 200, 4000
"""Chains of each method, sweeps of collapsed Gibbs that they take as long as, and sweeps with all points that the trial
of a batch size takes as long as."""
STARTS = (1, 30)
PARTS = (0.1, 0.25, 0.5, 1.0)
"""Where in the time, and for R̂ where in the sweeps, they are looked at."""
SCORES = ("adjusted Rand", "purity", "K", "squared error")


@dataclass(frozen=True)
class Curve:
    """One chain."""

    seconds: Array
    """The time of its work up to each look, (looks,), taken when the number of drawn z had reached a multiple of the
    number of points."""
    scores: Array
    """(looks, SCORES)."""
    followed: Array
    """The numbers that the model follows, (looks, columns)."""

    def at(self, seconds: float) -> Array:
        """The scores that it had by then, (SCORES,)."""
        return self.scores[max(int(np.searchsorted(self.seconds, seconds, side="right")) - 1, 0)]


def squared_error(means: Array, truth: Array) -> float:
    """The mean squared distance of the groups' means (groups, 2) from those of the clusters that they are matched with
    (Hungarian algorithm); a group that is left without one counts by its distance from the centre of all.
    """
    apart = cdist(truth, means, "sqeuclidean")
    groups, clusters = linear_sum_assignment(apart)
    alone = np.setdiff1d(np.arange(len(truth)), groups)
    return float((apart[groups, clusters].sum() + (truth[alone] ** 2).sum()) / len(truth))


def present_scores(chain: ModelChain, groups: Labels, truth: Array) -> tuple[float, ...]:
    """The present scores."""
    seen = chain.snapshot()
    agreed = adjusted_rand(seen["z"], groups), purity(seen["z"], groups)
    return *agreed, float(len(seen["sizes"])), squared_error(seen["means"], truth)


def curve(model: Clusters, method: ClusterMethod, seed: int, sweeps: int, budget: float = 0.0) -> Curve:
    """A chain of at least so many sweeps over all points and so many seconds."""
    groups: Labels = np.asarray(model.groups)
    truth = np.array([model.x[groups == k].mean(axis=0) for k in range(groups.max() + 1)])
    chain = ModelChain(model, method, Generator(SFC64(seed)))
    spent, drawn, seconds, scores, followed = 0.0, 0, [], [], []
    while drawn < sweeps * model.n_data or spent < budget:
        began, goal = time.process_time(), drawn + model.n_data
        while drawn < goal:
            drawn += method.advance(model, chain.state, chain.rng)
        spent += time.process_time() - began
        seconds.append(spent)
        scores.append(present_scores(chain, groups, truth))
        followed.append(method.follow(model, chain.state))
    return Curve(np.array(seconds), np.array(scores), np.array(followed))


def draws_of(model: Clusters, size: int, splits: int, n: int, seed: SeedSequence) -> tuple[list[float], float]:
    """Σ_k N_k tr Σ_k / N of ``n`` steps with ``size`` points, the start forgotten, and the seconds that they took."""
    method, rng = MinibatchGibbs(split_merge=splits, start_clusters=10), Generator(SFC64(seed))
    jit.prepare(method.compiled)
    state = method.start(model, rng)
    for _ in range(2 * SWEEPS):
        method.sweep(model, state, model.n_data, rng)
    began = time.process_time()
    values = [method.sweep(model, state, size, rng) for _ in range(n)]
    return values, time.process_time() - began


def seconds_of(model: Clusters, size: int, splits: int) -> float:
    """The time of a step: the fastest of three runs, for other work on the machine only adds to it."""
    n = 100 * model.n_data // (size + 100)
    return min(draws_of(model, size, splits, n, SeedSequence(0))[1] for _ in range(3)) / n


def try_sizes(model: Clusters, splits: int, trial: int = TRIAL, seed: int = 1) -> Trials:
    """τ of Σ_k N_k tr Σ_k / N with each batch size, in the time of ``trial`` sweeps with all points."""
    sizes = sizes_to_try(model.n_data)
    seconds = np.array([seconds_of(model, int(m), splits) for m in sizes])
    taus = []
    for size, each, own in zip(map(int, sizes), seconds, SeedSequence(seed).spawn(len(sizes)), strict=True):
        values, _ = draws_of(model, size, splits, int(trial * seconds[0] / each), own)
        taus.append(tau_int(values, block_length(size, model.n_data)))
    return Trials(sizes, np.array(taus), seconds)


def methods(sizes: Sequence[int], splits: int, start: int) -> Mapping[str, ClusterMethod]:
    """Those that are compared, collapsed Gibbs first."""
    both = {"split_merge": splits, "start_clusters": start}
    some = {f"minibatch, m = {m}": MinibatchGibbs(batch_size=m, **both) for m in sizes}
    return {"collapsed": CollapsedGibbs(**both), **some, "slice": SliceGibbs(**both)}


def compare(
    model: Clusters, sizes: Sequence[int], splits: int, start: int, sweeps: int = SWEEPS, seeds: int = SEEDS
) -> tuple[float, dict[str, list[Curve]]]:
    """The chains of each method, and the seconds that those of collapsed Gibbs took."""
    budget, out = 0.0, {}
    for title, method in methods(sizes, splits, start).items():
        out[title] = [curve(model, method, seed, sweeps, budget) for seed in range(seeds)]
        budget = budget or float(np.mean([each.seconds[sweeps - 1] for each in out[title]]))
    return budget, out


def with_error(values: Array, digits: int = 3) -> str:
    """Mean ± standard error."""
    return f"{values.mean():.{digits}f} ± {values.std(ddof=1) / np.sqrt(len(values)):.{digits}f}"


def as_text(budget: float, found: Mapping[str, Sequence[Curve]], sweeps: int) -> str:
    """The adjusted Rand index against seconds, the other scores at the end, and R̂ against sweeps."""
    stops = [max(round(part * sweeps), 4) for part in PARTS]
    heads = [f"{f'{1e3 * part * budget:.3g} ms':>15}" for part in PARTS]
    lines = [
        f"  {'':20}{'adjusted Rand index after':<60}  at the end{'':38} R̂ after sweeps",
        f"  {'':20}{''.join(heads)}{'purity':>17}{'K':>12}{'squared error':>19} {''.join(f'{stop:7}' for stop in stops)}",
    ]
    for title, curves in found.items():
        scores = np.array([[each.at(part * budget) for each in curves] for part in PARTS])
        _, pure, k, error = scores[-1].T
        cells = [f"{with_error(row[:, 0]):>15}" for row in scores]
        cells += [f"{with_error(pure):>17}", f"{with_error(k, 1):>12}", f"{with_error(error, 4):>19} "]
        followed = [[each.followed[stop // 2 : stop] for each in curves] for stop in stops]
        lines.append(f"  {title:20}" + "".join(cells) + "".join(f"{rhat(np.array(x)):7.2f}" for x in followed))
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison and print its tables."""
    parser = Parser(prog="python -m sgmcmc_lab.lessons.papers.smolyakov_2018_figures_5_and_6", description=__doc__)
    parser.add_argument("--split-merge", type=int, nargs="+", default=[0, 10], metavar="N", help="proposals in a sweep")
    parser.add_argument(
        "--sizes",
        type=int,
        nargs="+",
        default=[1000, 250, 62, 15],
        metavar="M",
        help="batch sizes beside the one that f(m) chooses",
    )
    parser.add_argument(
        "--trial", type=int, default=TRIAL, help="sweeps with all that the trial of a size takes as long as"
    )
    parser.add_argument(
        "--sweeps", type=int, default=SWEEPS, help="of collapsed Gibbs that every chain takes as long as"
    )
    parser.add_argument("--seeds", type=int, default=SEEDS)
    options = parser.parse_args(arguments)
    model = Clusters()
    for splits in options.split_merge:
        print(f"{model.n_data:,} points of five clusters, {splits} splits and merges proposed in a sweep", flush=True)
        trials = try_sizes(model, splits, options.trial)
        print(trials, flush=True)
        sizes = sorted({*options.sizes, trials.chosen}, reverse=True)
        for start in STARTS:
            budget, found = compare(model, sizes, splits, start, options.sweeps, options.seeds)
            print(f"  from {start} cluster{'s' * (start > 1)}\n{as_text(budget, found, options.sweeps)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""All methods for networks side by side.

The command is ``python -m sgmcmc_lab.lessons.papers.knowles_2015_networks FILE``.

FILE is an edge list or GraphML, a MATLAB file with one square sparse matrix, or the name of a built-in graph. Each
method runs on the same splits; the table has the mean AUC of the held-out pairs and its standard deviation over the
splits, as in Knowles 2015, Figure 3.
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat
from scipy.io.matlab import MatReadError
from scipy.sparse import issparse

from sgmcmc_lab.samplers import file_format
from sgmcmc_lab.samplers.console import Parser
from sgmcmc_lab.samplers.experiment import Experiment
from sgmcmc_lab.samplers.file_format import GUESSED, Format
from sgmcmc_lab.samplers.files import read_file
from sgmcmc_lab.samplers.lanes import samplers_of
from sgmcmc_lab.samplers.models.network.graph import BUILT_IN, MAX_BYTES, MAX_NODES, Graph, make_graph, read_upload
from sgmcmc_lab.samplers.models.run import ModelChain, start
from sgmcmc_lab.samplers.parameters import SpecError

STEPS = {"network_gibbs": 1500, "network_hmc": 200, "network_irm": 1500}
"""Steps of a run; of the methods by gradient ascent 1000. The paper gave HMC 200 trajectories."""

SGVB = ("network_sgvb", "network_norm_sgvb")


class Row(NamedTuple):
    """A method's results over the splits."""

    method: str
    steps: int
    auc: NDArray[np.float64]
    elbo: NDArray[np.float64]
    """The mean over the last tenth of the steps; NaN of a method that has none."""
    seconds: float
    """The mean processor time of a run's steps."""


def steps_of(key: str) -> int:
    """How many steps a method makes here."""
    return STEPS.get(key, 1000)


def run_method(
    key: str, graph: Graph, split_seed: int, n_communities: int = 10, steps: int | None = None, **params: Any
) -> tuple[ModelChain, float]:
    """A run of one method on one split, and the processor time of its steps in seconds.

    Nothing is scored on the way: of a large graph that would cost more than the steps do. Raises FloatingPointError
    where it diverged.
    """
    of_model = {"graph": "uploaded", "n_communities": n_communities, "split_seed": split_seed}
    experiment = Experiment.of("network", {key: params}, target_params=of_model, seed=split_seed)
    run = start(experiment, experiment.make_model(graph))[0].chains[0]
    began = time.process_time()
    for _ in range(steps_of(key) if steps is None else steps):
        run.method.advance(run.model, run.state, run.rng)
    return run, time.process_time() - began


def row(
    key: str, graph: Graph, splits: Sequence[int], n_communities: int = 10, steps: int | None = None, **params: Any
) -> Row:
    """One line of the table."""
    steps = steps_of(key) if steps is None else steps
    scores, elbos, seconds = [], [], []
    for split in splits:
        run, took = run_method(key, graph, split, n_communities, steps, **params)
        scores.append(run.method.score(run.model, run.state))
        seconds.append(took)
        elbos.append(np.mean(run.state.elbo[-max(steps // 10, 1) :]) if key in SGVB else np.nan)
    return Row(key, steps, np.array(scores), np.array(elbos), float(np.mean(seconds)))


def agreement(a: NDArray[np.int64], b: NDArray[np.int64]) -> float:
    """The adjusted Rand index of two groupings: 1 where they are the same, 0 on average where they are unrelated."""
    counts = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(counts, (a, b), 1)

    def pairs(n: Any) -> float:
        return float((n * (n - 1) / 2).sum())

    both, in_a, in_b = pairs(counts), pairs(counts.sum(axis=1)), pairs(counts.sum(axis=0))
    chance = in_a * in_b / pairs(np.array(len(a)))
    return (both - chance) / ((in_a + in_b) / 2 - chance)


def group_agreement(graph: Graph, n_communities: int, seed: int, sweeps: int = 2000) -> tuple[float, float, float]:
    """The Gibbs sampler's communities beside the known groups, over the last half of the sweeps.

    The mean adjusted Rand index, its standard deviation, and the mean number of communities that nodes belong to. A
    twentieth of the pairs is held out, the least there may be.
    """
    assert graph.groups is not None
    of_model = {"graph": "uploaded", "n_communities": n_communities, "held_out": 0.05}
    experiment = Experiment.of("network", {"network_gibbs": {}}, target_params=of_model, seed=seed)
    run = start(experiment, experiment.make_model(graph))[0].chains[0]
    indices, used = [], []
    for sweep in range(sweeps):
        run.advance()
        if sweep >= sweeps // 2 and sweep % 5 == 0:
            community = run.snapshot()["community"]
            indices.append(agreement(community, graph.groups))
            used.append(len(np.unique(community)))
    return float(np.mean(indices)), float(np.std(indices)), float(np.mean(used))


def open_graph(name: str, form: Format = GUESSED) -> Graph:
    """The graph that the command line names. Raises :class:`SpecError`."""
    path = Path(name)
    if name in BUILT_IN:
        return BUILT_IN[name]()
    if not path.is_file():
        raise SpecError("FILE", name, f"there is no such file, and it is none of {', '.join(BUILT_IN)}")
    return of_matlab(path) if path.suffix == ".mat" else read_upload(path.name, read_file(path, MAX_BYTES), form=form)


def of_matlab(path: Path) -> Graph:
    """The graph whose adjacency matrix is the one square sparse matrix in a MATLAB file of one's own, without loops.

    It may be half of the symmetric matrix, and may stand in a structure. Raises :class:`SpecError`.
    """

    def matrices(value: Any) -> Any:
        if issparse(value):
            yield value.tocoo()
        elif isinstance(value, np.ndarray) and value.dtype.names:
            for name in value.dtype.names:
                yield from matrices(value[name].item())

    try:
        found = [one for value in loadmat(path).values() for one in matrices(value) if one.shape[0] == one.shape[1]]
    except (ValueError, NotImplementedError, MatReadError) as error:
        raise SpecError("FILE", path.name, f"it is no file of MATLAB 5 to 7.2: {error}") from None
    if len(found) != 1 or found[0].shape[0] > MAX_NODES:
        raise SpecError("FILE", path.name, f"allowed is one square sparse matrix, of at most {MAX_NODES:,} nodes")
    pairs = np.column_stack([found[0].row, found[0].col])
    return make_graph(tuple(map(str, range(found[0].shape[0]))), pairs[pairs[:, 0] != pairs[:, 1]])


def _line(row: Row) -> str:
    spread = f"± {row.auc.std(ddof=1):.3f}" if len(row.auc) > 1 else ""
    elbo = "" if np.isnan(row.elbo).all() else f"{row.elbo.mean():,.0f}"
    return f"{row.method:<20} {row.steps:>6,} {row.auc.mean():8.3f} {spread:<8} {elbo:>10} {row.seconds:8.2f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table. Exit code 2 for bad input, said in one sentence."""
    parser = Parser(prog="python -m sgmcmc_lab.lessons.papers.knowles_2015_networks", description=__doc__)
    parser.add_argument("file", metavar="FILE", help=f"a .csv, .graphml or .mat file, or {', '.join(BUILT_IN)}")
    parser.add_argument("--splits", type=int, default=10, help="how many, 10 unless told")
    parser.add_argument("--communities", type=int, default=10, help="K, 10 unless told")
    parser.add_argument("--methods", nargs="+", default=samplers_of("network"), choices=samplers_of("network"))
    file_format.add_options(parser, leave_out=("decimal", "column"))
    options = parser.parse_args(arguments)
    began = time.perf_counter()
    try:
        if options.splits < 1:
            raise SpecError("splits", options.splits, "allowed is a whole number from 1 on")
        graph = open_graph(options.file, file_format.of_options(options))
        if graph.taken is not None:
            print(graph.taken.sentence, file=sys.stderr)
        print(
            f"{Path(options.file).name}: {graph.n_nodes} nodes, {len(graph.edges)} edges; K = {options.communities}, held out 20 %"
        )
        print(f"{'method':<20} {'steps':>6} {'AUC':>8} {'sd':<8} {'ELBO':>10} {'s a run':>8}")
        for key in options.methods:
            print(_line(row(key, graph, range(options.splits), options.communities)), flush=True)
        if graph.groups is not None:
            mean, spread, used = group_agreement(graph, options.communities, 1)
            print(
                f"Gibbs communities beside the known groups ({graph.groups.max() + 1}: {graph.group_source}): "
                f"adjusted Rand index {mean:.2f} ± {spread:.2f}, {used:.1f} communities in use"
            )
    except SpecError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{time.perf_counter() - began:.0f} s in all")
    return 0


if __name__ == "__main__":
    sys.exit(main())

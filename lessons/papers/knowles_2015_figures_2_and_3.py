"""Figures 2 and 3 of Knowles 2015 as tables.

The command is ``python -m sgmcmc_lab.lessons.papers.knowles_2015_figures_2_and_3 FILE``.

FILE is as in :mod:`~lessons.papers.knowles_2015_networks`. Figure 3 is the AUC of the held-out pairs of each method
against the number of communities K; the IRM has no K, and one line for all. Figure 2 is the ELBO of gamma SGVB after
1000 steps of AdaDelta, against its ρ and the momentum λ. A seed is a split of the pairs, and the draws. The pictures
are drawn by :mod:`lessons.papers.pictures`.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from sgmcmc_lab.lessons.papers.knowles_2015_networks import open_graph, row
from sgmcmc_lab.samplers.console import Parser
from sgmcmc_lab.samplers.models.network.graph import Graph
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.targets.base import Array

COMMUNITIES = (10, 20, 30, 50, 70, 100)
METHODS = ("network_gibbs", "network_sgvb", "network_norm_sgvb", "network_map")
IRM = "network_irm"
KEPT = (1.0, 0.3, 0.1, 0.03)
"""1 − λ: the weight of the newest gradient in the velocity."""
RHOS = (0.684, 0.9, 0.968, 0.99)
"""Four of the paper's values of ρ, from the ends of its axis."""
MOST_SEEDS = 100


@dataclass
class Found:
    """The data of the two figures."""

    name: str
    """The graph's name."""
    n_seeds: int
    communities: Sequence[int]
    auc: dict[str, Array] = field(default_factory=dict)
    """By method (communities, seeds); of the IRM (1, seeds). Figure 3; empty where it was not asked for."""
    elbo: Array | None = None
    """(KEPT, RHOS, seeds). Figure 2."""


def mean_and_spread(values: Array) -> str:
    """The mean, and the standard deviation over the seeds where there are several."""
    spread = f" ± {values.std(ddof=1):.3f}" if len(values) > 1 else ""
    return f"{values.mean():.3f}{spread}"


def against_communities(graph: Graph, seeds: Sequence[int], communities: Sequence[int]) -> dict[str, Array]:
    """Measure and print Figure 3."""
    print("AUC of the held-out pairs\n" + "".join(f"{name:>20}" for name in ("K", *METHODS)))
    rows: list[list[Array]] = []
    for k in communities:
        print(f"{k:>20}", end="")
        rows.append([])
        for key in METHODS:
            rows[-1].append(row(key, graph, seeds, k).auc)
            print(f"{mean_and_spread(rows[-1][-1]):>20}", end="", flush=True)
        print()
    irm = row(IRM, graph, seeds).auc
    print(f"{IRM}, which has no K: {mean_and_spread(irm)}")
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    return {**dict(zip(METHODS, columns, strict=True)), IRM: irm[None]}


def against_momentum(graph: Graph, seeds: Sequence[int], n_communities: int) -> Array:
    """Measure and print Figure 2."""
    print(f"ELBO/1000 of gamma SGVB, K = {n_communities}\n{'1 - lambda':>20}", end="")
    print("".join(f"{f'rho = {rho:g}':>20}" for rho in RHOS))
    out = np.empty((len(KEPT), len(RHOS), len(seeds)))
    for a, kept in enumerate(KEPT):
        print(f"{kept:>20g}", end="")
        for b, rho in enumerate(RHOS):
            out[a, b] = row("network_sgvb", graph, seeds, n_communities, momentum=1 - kept, rho=rho).elbo
            print(f"{mean_and_spread(out[a, b] / 1000):>20}", end="", flush=True)
        print()
    return out


def measure(arguments: Sequence[str] | None = None) -> Found:
    """Measure and print what the command line asks for. Raises :class:`SpecError`."""
    parser = Parser(prog="python -m sgmcmc_lab.lessons.papers.knowles_2015_figures_2_and_3", description=__doc__)
    parser.add_argument("file", metavar="FILE", help="a .csv, .graphml or .mat file, or a built-in graph")
    parser.add_argument("--figure", type=int, nargs="+", default=[2, 3], choices=[2, 3], help="both unless told")
    parser.add_argument("--seeds", type=int, default=5, help="how many, 5 unless told")
    parser.add_argument(
        "--communities", type=int, nargs="+", default=COMMUNITIES, help="K of Figure 3; Figure 2 has the first"
    )
    options = parser.parse_args(arguments)
    if not 1 <= options.seeds <= MOST_SEEDS:
        raise SpecError("seeds", options.seeds, f"allowed is a whole number from 1 to {MOST_SEEDS}")
    graph, seeds = open_graph(options.file), range(options.seeds)
    print(f"{graph.n_nodes} nodes, {len(graph.edges)} edges; {options.seeds} seeds, ± is their standard deviation")
    found = Found(Path(options.file).name, options.seeds, options.communities)
    if 2 in options.figure:
        found.elbo = against_momentum(graph, seeds, options.communities[0])
    if 3 in options.figure:
        found.auc = against_communities(graph, seeds, options.communities)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables. Exit code 2 for bad input, said in one sentence."""
    try:
        measure(arguments)
    except SpecError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Benchmarks: every sampler's speed, beside the cost of its random numbers alone and beside other programs.

All rates are chain-steps a second: one step of one chain counts once. Compared programs are measured alternately
within one process, and the medians are given, so that a busy machine slows all of them alike. ``page`` has those of the
live page in a browser.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.machine import machine
from tests.benchmarks.kernels import (
    PeerRate,
    SamplerRate,
    default_spec,
    peer_rates,
    requirements,
    sampler_rate,
)
from tests.benchmarks.minibatches import minibatch_requirements
from tests.benchmarks.piecewise import piecewise_requirements
from tests.benchmarks.posterior import posterior_requirements
from tests.benchmarks.recipes import recipe_requirements
from tests.benchmarks.timing import CHAINS, FULL, QUICK, Requirement
from tests.benchmarks.topics import TokenRate, runtime_requirements, token_rates, token_requirements
from tests.benchmarks.trajectories import trajectory_requirements


@dataclass(frozen=True)
class Report:
    """All figures, and the machine they are from."""

    machine: dict[str, Any]
    samplers: list[SamplerRate]
    peers: list[PeerRate]
    tokens: list[TokenRate]
    requirements: list[Requirement]

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "requirements": [{**asdict(x), "met": x.met} for x in self.requirements]}


def measure(quick: bool = False, progress: Callable[[str], None] = lambda what: None) -> Report:
    """Run all benchmarks; ``progress`` is told what comes next."""
    effort = QUICK if quick else FULL
    rates: list[SamplerRate] = []
    for key in SAMPLERS:
        for n_chains in CHAINS:
            spec = default_spec(key, n_chains)
            if spec is not None:
                progress(f"{key}, {n_chains} {'chains' if n_chains > 1 else 'chain'}")
                rates.append(sampler_rate(spec, effort))
    progress("other programs")
    peers, ratio = peer_rates(effort)
    progress("recipes")
    needs = [*requirements(rates, ratio), *recipe_requirements(effort)]
    progress("typed posteriors")
    needs += posterior_requirements(effort)
    progress("minibatches of many data points")
    needs += minibatch_requirements(effort)
    progress("zig-zag's events")
    needs += piecewise_requirements(effort)
    progress("NUTS and MCLMC")
    needs += trajectory_requirements(effort, progress)
    progress("topics")
    tokens = token_rates(effort)
    return Report(machine(), rates, peers, tokens, [*needs, *token_requirements(tokens), *runtime_requirements(effort)])


def as_text(report: Report) -> str:
    """The report as tables, in millions of chain-steps a second."""
    head = ("sampler", "target", "gradient", "chains", "draws only", "with statistics", "random numbers")
    rows = [(*head, "draws/random", "statistics/draws"), *map(_rate_row, report.samplers)]
    peers: list[tuple[str, ...]] = [("the same by", "", "chains", "rate", "")]
    peers += [(x.method, x.program, str(x.n_chains), _millions(x.rate), x.note) for x in report.peers]
    tokens: list[tuple[str, ...]] = [("collapsed Gibbs on Reuters by", "topics", "millions of tokens/s", "engine/it")]
    tokens += [(x.program, str(x.n_topics), _millions(x.rate), _ratio(x.ratio)) for x in report.tokens]
    needs: list[tuple[str, ...]] = [("required", "measured", "needed", "")]
    for need in report.requirements:
        verdict = {True: "met", False: "NOT MET", None: "not measured"}[need.met]
        bound = f"{'at most ' if need.at_most else ''}{need.needed:g}"
        needs.append((need.name, _ratio(need.measured), bound, verdict))
    facts = report.machine
    versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items())
    title = f"{facts['processor']}, {facts['cpu_count']} cores, Python {facts['python']}, {versions}"
    title += "\nMillions of chain-steps a second, median."
    return "\n\n".join([title, *(_columns(table) for table in (rows, peers, tokens, needs))])


def _rate_row(x: SamplerRate) -> tuple[str, ...]:
    alone = x.kernel / x.random_numbers if x.random_numbers else None
    rates = (_millions(x.kernel), _millions(x.counted), _millions(x.random_numbers))
    names = (x.sampler, x.target, x.gradient, str(x.n_chains))
    return (*names, *rates, _ratio(alone), _ratio(x.counted / x.kernel))


def _millions(rate: float | None) -> str:
    return "–" if rate is None else f"{rate / 1e6:.3g}"


def _ratio(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _columns(rows: list[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows)

"""``python -m tests.parity``: every sampler, target and gradient that fit, in Python's host and in WebAssembly's.

Each pair makes 200 steps of 4 chains in both, in a browser. Where its functions call nothing of libm, whose last digit
is not the same in two libraries, all that the runs hold must be the same to the bit, but for sums that Python's host
adds in another order; else the first 50 steps must agree to a relative 1e-12. Of a run that is chaotic so soon Python's
own run from a rounded start says how far apart the two may be. Later growth is shown.
The statistics of later steps are compared with those that Python makes of the page's own draws. The command prints a
table, and exits 1 where a pair fails.
"""

import argparse
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from sgmcmc_lab.samplers.cli import catalogue
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.live import description
from tests.browser.hosts import (
    ALLOWED,
    CHROMIUM,
    FIREFOX,
    GENERATOR,
    GROWTH,
    HELD,
    WEBKIT,
    Difference,
    Host,
    Job,
    apart,
    compare,
    libm,
    module_of,
    open_page,
    serve,
)

STEPS, CHAINS, EARLY = 200, 4, 50
NUMBERS = 2 * 10**9
"""The most numbers of data that a run may look at: fewer steps where it would look at more."""
TOGETHER = 24
"""Runs that a page makes at a time."""


@dataclass(frozen=True)
class Pair:
    """A target, a sampler and a gradient that fit."""

    target: str
    sampler: str
    gradient: str

    def spec(self) -> RunSpec:
        """The run, of fewer steps where they are many numbers' work."""
        found = RunSpec.of(self.target, self.sampler, self.gradient, n_steps=STEPS, n_chains=CHAINS)
        n_steps = min(STEPS, max(EARLY, NUMBERS // max(found.numbers_per_step(), 1)))
        return RunSpec.of(self.target, self.sampler, self.gradient, n_steps=n_steps, n_chains=CHAINS)

    def job(self) -> Job:
        """The run, looked at after its early steps and at its end."""
        spec = self.spec()
        return Job(spec, [EARLY, HELD, spec.n_steps - EARLY, HELD])

    def __str__(self) -> str:
        return f"{self.sampler} × {self.target} × {self.gradient}"


def pairs(sampler: str = "", target: str = "", gradient: str = "") -> list[Pair]:
    """All that fit, or those with these keys, target by target."""
    return [
        Pair(x["target"], x["sampler"], x["gradient"])
        for x in catalogue()["combinations"]
        if sampler in ("", x["sampler"]) and target in ("", x["target"]) and gradient in ("", x["gradient"])
    ]


WITH_EXP = frozenset(
    {
        "baoab",
        "gsgnht",
        "msgnht",
        "svgd",
        "cyclical_sgld",
        "gmc",
        "chmc",
        "cir",
        "geometric_ou",
        "nuts",
        "barker",
        "sg_barker",
        "resgld",
        "parallel_tempering",
        "mirrored_langevin",
    }
)
"""Samplers whose steps call libm beside their random numbers and an accept step."""
EXP_OF_NORMALS = frozenset({"funnel", "lognormal"})
"""Targets whose own draws are exponentials of normal random numbers."""


def calls(spec: RunSpec) -> set[str]:
    """The functions of libm on which the draws of a run depend; random numbers aside, of which the tails alone call it.

    An accept step compares, and so is the potential's, and a logarithm in a kernel without another use.
    """
    target, sampler = spec.make_target(), spec.make_sampler()
    estimate = spec.make_gradient().estimate
    if sampler.key == "exact":
        return set(libm(target.draw) - (frozenset() if target.key in EXP_OF_NORMALS else GENERATOR))
    out = set(libm(sampler.advance) | libm(sampler.start) | libm(estimate)) - GENERATOR - {"log"}
    if sampler.key in WITH_EXP:
        out |= {"exp"}
    for function in (target.gradient, target.batch, target.manifold.project, target.manifold.flow):
        out |= libm(function)
    return out


@dataclass
class Found:
    """The result of the comparison of a pair, early and at the end."""

    pair: Pair
    early: Difference
    late: Difference
    error: str = ""
    own: float = 0.0
    """How far apart Python's own runs from a start and from a rounded one are, where that was asked."""

    @property
    def problems(self) -> list[str]:
        """Why the pair fails; empty where it does not."""
        out = [self.error] if self.error else []
        out += [f"first {EARLY} steps: {each}" for each in self.early.problems]
        out += [f"all steps: {each}" for each in self.late.problems]
        if not self.late.equal and not self.error and not calls(self.pair.spec()):
            out.append(f"not the same to the bit, {self.late.worst:.1e} apart, without a call of libm")
        return out


def compared(host: Host, chosen: list[Pair]) -> Iterator[Found]:
    """Each of these pairs in both hosts."""
    for first in range(0, len(chosen), TOGETHER):
        some = chosen[first : first + TOGETHER]
        jobs = [pair.job() for pair in some]
        for pair, job, made in zip(some, jobs, host.made(jobs), strict=True):
            if made.error:
                yield Found(pair, Difference(), Difference(), made.error)
                continue
            early, late = job.here()
            target = job.target()
            found = Found(pair, compare(early, made.held[0], target), compare(late, made.held[1], target, chaotic=True))
            if found.early.problems:
                found.own = compare(early, job.here(rounded=True)[0], target).worst
                # No rounding has grown yet in the first draw.
                at_once = apart(early.arrays["kept"][:, :1], made.held[0].arrays["kept"][:, :1])
                if found.early.worst <= GROWTH * found.own and at_once <= ALLOWED:
                    found.early = compare(early, made.held[0], target, chaotic=True)
            yield found


def table(found: list[Found]) -> str:
    """A row for each sampler, the failures, and the sums."""
    by: dict[str, list[Found]] = defaultdict(list)
    for each in found:
        by[each.pair.sampler].append(each)
    lines = [
        f"{'sampler':<18}{'pairs':>6}{'equal':>7}{'within':>8}{'chaotic':>9}{'failed':>8}{'worst early':>13}{'worst late':>12}  at"
    ]
    for name, rows in {**by, "all": found}.items():
        kinds = Counter(
            "failed" if x.problems else "equal" if x.late.equal else "chaotic" if x.own else "within" for x in rows
        )
        worst = max(rows, key=lambda x: x.late.worst)
        lines.append(
            f"{name:<18}{len(rows):>6}{kinds['equal']:>7}{kinds['within']:>8}{kinds['chaotic']:>9}{kinds['failed']:>8}"
            f"{max(x.early.worst for x in rows):>13.1e}{worst.late.worst:>12.1e}"
            f"  {f'{worst.pair.target} × {worst.pair.gradient}' if worst.late.worst else ''}"
        )
    lines += [
        f"chaotic: {each.pair}: {each.early.worst:.1e}, from a rounded start {each.own:.1e}"
        for each in found
        if each.own and not each.problems
    ]
    lines += [f"failed: {each.pair}: {'; '.join(each.problems)}" for each in found if each.problems]
    return "\n".join(lines)


def main() -> int:
    """Compare, print the table, and say whether all is well."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity", description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--browser", choices=(CHROMIUM, FIREFOX, WEBKIT), default=CHROMIUM)
    for name in ("sampler", "target", "gradient"):
        parser.add_argument(f"--{name}", default="", help="one alone")
    given = parser.parse_args()
    chosen = pairs(given.sampler, given.target, given.gradient)
    if not chosen:
        parser.error("no pair fits")
    jit.prepare([function for pair in chosen for function in description.functions(pair.spec())])
    began = time.perf_counter()
    module = module_of(pair.spec() for pair in chosen)
    print(f"{len(chosen)} pairs, a module of {len(module) / 1e6:.2f} MB, linked in {time.perf_counter() - began:.1f} s")
    began, found = time.perf_counter(), []
    # An interruption ends the comparison, and the table is of those that were compared.
    with suppress(KeyboardInterrupt), serve(module) as site, open_page(given.browser) as page:
        for each in compared(Host(page, site), chosen):
            found.append(each)
            print(f"\r\x1b[K{len(found)} of {len(chosen)}: {each.pair}", end="", file=sys.stderr, flush=True)
            if each.problems:
                print(f"\r\x1b[Kfailed: {each.pair}: {each.problems[0]}", file=sys.stderr)
    print(f"\r\x1b[K{given.browser}, {time.perf_counter() - began:.0f} s\n{table(found)}")
    return any(each.problems for each in found)


if __name__ == "__main__":
    sys.exit(main())

"""``python -m tests.draws``: the first draws of all that ``list`` calls fitting, for a comparison across commits.

Each sampler with each target and gradient, and each method of a model, makes 50 steps of three chains with its defaults
and one seed. The command keeps their draws in ``tests/draws.json``: a digest of all bits, or three numbers.

A digest depends on the random numbers and the order in which a step takes them, on the arithmetic of each step to its
last bit, and on the parameters that a target makes of its data. Sums, products, quotients and roots are rounded alike
on every processor, and Numba contracts none of them. The functions of libm and of linear algebra are others on another
processor, and end in another digit. The command therefore makes all draws a second time, in a process whose libraries
believe that they are on an older processor. A digest is kept where no step calls libm and both processes drew the
same; else one number of each chain is kept, and compared by value. Where a last digit grows so fast that the numbers of
the two differ, as where an optimiser finds the mode, their tolerance is beside them. Normal random numbers call libm in
their tails, once in 4,000: a digest takes that for the same.
"""

import hashlib
import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.engine import Run
from sgmcmc_lab.samplers.experiment import Experiment, RunSpec
from sgmcmc_lab.samplers.models import METHODS
from sgmcmc_lab.samplers.models.run import ModelChain, make_method
from tests.parity import calls, pairs

STEPS, CHAINS = 50, 3
KEPT = Path(__file__).with_name("draws.json")
COMMAND = ".venv/bin/python -m tests.draws"
BETWEEN = " × "
SMALL = {"topics": {"corpus": "bars", "n_topics": 5}}
"""The data of a model, where its default takes long, and needs a package that not every Python has."""
OLDER = {
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4",
    "OPENBLAS_CORETYPE": "Nehalem",
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
}
"""Variables that libm, linear algebra and NumPy read as a process starts: they leave out what newer processors have."""
TOLERANCE = 1e-9
"""How far a number may be off, in relation to the mean size of the draws."""
GROWTH = 100
"""How many times further apart than the two processes other processors may be."""
DIGITS = 11

Entry = str | list[float]
"""A digest, or a number of each chain, and behind them a tolerance that is not the usual one."""


class Drawn(NamedTuple):
    """The draws of a combination."""

    digest: str
    """That of all bits."""
    numbers: tuple[float, ...]
    """The mean of each chain's draws, with weights that rise from 1 to 2: each draw and each coordinate has its own."""
    size: float
    """The mean of their absolute values."""

    @classmethod
    def of(cls, draws: NDArray[np.float64]) -> "Drawn":
        """The digest and the numbers of the draws (chains, …)."""
        flat = np.ascontiguousarray(draws).reshape(len(draws), -1)
        # A chain that blew up is at no number, which equals none.
        weighted = np.nan_to_num(flat, nan=0.0, posinf=0.0, neginf=0.0) * np.linspace(1, 2, flat.shape[1])
        means = tuple(float(x) for x in weighted.mean(axis=1))
        return cls(hashlib.sha256(flat.tobytes()).hexdigest()[:12], means, float(np.abs(weighted).mean()))

    def apart(self, numbers: Iterable[float]) -> float:
        """How far its numbers are from these, in relation to the draws' size."""
        most = max(abs(a - b) for a, b in zip(self.numbers, numbers, strict=True))
        return most / max(self.size, sys.float_info.min)

    def differs(self, entry: Entry) -> str:
        """The difference from what was kept; empty where there is none."""
        if isinstance(entry, str):
            return "" if self.digest == entry else f"the digest is {self.digest}, was {entry}"
        numbers, allowed = entry[:CHAINS], (*entry[CHAINS:], TOLERANCE)[0]
        far = self.apart(numbers)
        return "" if far <= allowed else f"{far:.1e} apart, allowed are {allowed:.0e}"

    def entry(self, other: "Drawn", exact: bool) -> Entry:
        """The entry to keep, where a process with other libraries drew the ``other``."""
        if exact and self.digest == other.digest:
            return self.digest
        allowed = GROWTH * self.apart(other.numbers)
        behind = [float(f"{allowed:.0e}")] if allowed > TOLERANCE else []
        return [float(f"{x:.{DIGITS}g}") for x in self.numbers] + behind


@cache
def names() -> tuple[str, ...]:
    """The names of all combinations that ``list`` calls fitting, those of models last."""
    return (*map(str, pairs()), *(f"{key}{BETWEEN}{method.model}" for key, method in METHODS.items()))


def of_sampler(sampler: str, target: str, gradient: str) -> NDArray[np.float64]:
    """The draws of a sampler, (chains, steps + 1, dim). The last stands twice, for those that adapt keep no others."""
    spec = RunSpec.of(target, sampler, gradient, n_steps=STEPS, n_chains=CHAINS)
    # A rough answer is enough, since a step reads none: exact ones take a long run.
    run = Run(spec, keep_draws=True, early=spec.make_target().early())
    run.advance(STEPS)
    return np.concatenate([run.kept[:, : run.kept_clock[0]], run.position[:, None]], axis=1)


def of_method(method: str, model: str) -> NDArray[np.float64]:
    """The numbers that a model follows, (chains, steps, numbers): of its unknowns, whatever their labels are."""
    experiment = Experiment.of(model, {method: {}}, target_params=SMALL.get(model), n_steps=STEPS, n_chains=CHAINS)
    (spec,), data = experiment.runs(), experiment.make_model()
    out = []
    for chain in (ModelChain(data, make_method(spec.sampler), spec.generator(i)) for i in range(CHAINS)):
        for _ in range(STEPS):
            chain.method.advance(data, chain.state, chain.rng)
            out.append(np.array(chain.method.follow(data, chain.state), dtype=float))
    return np.array(out).reshape(CHAINS, -1)


def drawn(name: str) -> Drawn:
    """The draws of a combination, given by its name."""
    parts = name.split(BETWEEN)
    return Drawn.of(of_method(*parts) if parts[0] in METHODS else of_sampler(*parts))


def all_drawn(chosen: Iterable[str]) -> dict[str, Drawn]:
    """The draws of these combinations."""
    return {name: drawn(name) for name in chosen}


def read() -> dict[str, Entry]:
    """The kept entry of each combination, by name."""
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    return {BETWEEN.join(filter(None, (row, last))): x for row, found in kept.items() for last, x in found.items()}


def write(entries: Mapping[str, Entry]) -> None:
    """Keep these, a line for each sampler and target, so that a change shows in the lines of its parts."""
    rows: dict[str, dict[str, Entry]] = defaultdict(dict)
    for name, entry in entries.items():
        sampler, target, *gradient = name.split(BETWEEN)
        rows[f"{sampler}{BETWEEN}{target}"]["".join(gradient)] = entry
    lines = [json.dumps({row: found}, ensure_ascii=False, separators=(",", ":"))[1:-1] for row, found in rows.items()]
    KEPT.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def main() -> int:
    """Make all draws in two processes, and keep them."""
    chosen = names()
    jit.prepare(jit.declared())
    # A process reads these where it starts: they are the other one's.
    os.environ.update(OLDER)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        elsewhere = pool.submit(all_drawn, chosen)
        here, other = all_drawn(chosen), elsewhere.result()
    free = {str(pair) for pair in pairs() if not calls(pair.spec())}
    entries = {name: here[name].entry(other[name], name in free) for name in chosen}
    write(entries)
    digests = sum(isinstance(entry, str) for entry in entries.values())
    print(
        f"{len(entries)} combinations, {digests} by a digest; commit {KEPT.name}, {KEPT.stat().st_size / 1000:.0f} kB"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""``python -m tests.sights``: every page as it opens, after 20 s: do its draws agree with the target?

A page is a target with one of its samplers, each with its defaults; a preset of the workbench; or a table of the typed
posterior. Its first lane makes the steps that an idle machine makes in 20 s, fewer where they look at many data points.
Its draws agree where their mean KS distance is below .1; else the page says a sentence, which is kept beside the
distance. The command measures all pages in two processes, keeps them in ``tests/sights.json``, and writes the table
into ``tests/README.md``. It exits 1 where fewer than 95 % of the pairs agree.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from sgmcmc_lab.app.live.loop import FRAME_SECONDS
from sgmcmc_lab.app.state import DEFAULT, FIRST_SPEED, AppState
from sgmcmc_lab.lessons import record
from sgmcmc_lab.samplers import Experiment, Run
from sgmcmc_lab.samplers.diagnostics import agreement, ks
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.lanes import samplers_of
from sgmcmc_lab.samplers.machine import machine
from sgmcmc_lab.samplers.recipe.presets import PRESETS
from sgmcmc_lab.samplers.targets import TARGETS
from sgmcmc_lab.samplers.targets.posterior_data import PRESETS as TABLES

STEPS = round(20 / FRAME_SECONDS) * FIRST_SPEED
CHUNK = STEPS // 120
NUMBERS = 4 * 10**9
"""About the numbers of data that an idle core looks at in 20 s, at 5 ns each."""
ASKED = 0.95
"""The share of the pairs that shall agree."""
MIDDLE = 0.25
KEPT, README = Path(__file__).with_name("sights.json"), Path(__file__).with_name("README.md")


class Sight(NamedTuple):
    """A page after 20 s."""

    ks: float
    """The mean KS distance of the first lane's draws."""
    steps: int
    """The steps of each chain."""
    said: str
    """Why the draws do not agree with the target, as the page says it; empty where they do."""

    @property
    def agrees(self) -> bool:
        return self.ks < agreement.FAR

    @property
    def honest(self) -> bool:
        """Whether the draws agree, or the page says why not."""
        return self.agrees or bool(self.said)


def opened(pair: str) -> Experiment:
    """The experiment that the link to ``target × sampler`` opens."""
    target, sampler = pair.split(" × ")
    return Experiment.from_query(f"target={target}&lane={sampler}", DEFAULT)[0]


def pairs() -> list[str]:
    """Every target with every sampler that fits it."""
    return [f"{target} × {sampler}" for target in TARGETS for sampler in samplers_of(target, TARGETS[target]())]


def defaults() -> list[str]:
    """The pairs of each target with its first sampler, and of each sampler with its first target."""
    fitting = {target: samplers_of(target) for target in TARGETS}
    both = [(target, samplers[0]) for target, samplers in fitting.items()]
    both += [(next(target for target in TARGETS if sampler in fitting[target]), sampler) for sampler in SAMPLERS]
    return [f"{target} × {sampler}" for target, sampler in dict.fromkeys(both)]


def workbench() -> dict[str, Experiment]:
    """The workbench as it opens, and with each preset; those of positive numbers are on a gamma distribution."""
    out = {}
    for key, preset in PRESETS.items():
        state = AppState()
        if preset.positive:
            state.set_target("gamma")
        elif 1 not in preset.dims:
            state.set_target("correlated_gaussian")
        if preset.positive or 1 not in preset.dims:
            state.set_sampler(0, "recipe")
        else:
            state.open_workbench()
            out.setdefault("workbench", state.experiment)
        state.set_preset(0, key)
        out[f"workbench, {key}"] = state.experiment
    return out


def tables() -> dict[str, Experiment]:
    """The typed posterior with each of its tables."""
    out = {}
    for name in TABLES:
        state = AppState()
        state.set_target("posterior")
        state.set_target_param("table", name)
        out[f"posterior of {name}"] = state.experiment
    return out


def names() -> list[str]:
    """The names of all pages that are measured."""
    return [*pairs(), *workbench(), *(f"posterior of {name}" for name in TABLES)]


def pages() -> dict[str, Experiment]:
    """All that are measured, by name."""
    return {**{pair: opened(pair) for pair in pairs()}, **workbench(), **tables()}


def see(experiment: Experiment) -> Sight:
    """The page of this experiment after 20 s."""
    run = Run(experiment.runs()[0])
    while run.steps < STEPS and run.divergence is None and run.data_seen * run.target.dim < NUMBERS:
        run.advance(CHUNK)
    said = run.divergence.message if run.divergence is not None else agreement.doubt(run)
    return Sight(round(ks.mean_distance(run.statistics, run.target), 3), run.steps, said)


def problems(found: Mapping[str, Sight], kept: Mapping[str, Sight]) -> list[str]:
    """Differences from the stored pages: a page that agreed and does not, or one that does not and says nothing."""
    out = [f"{name}: KS {one.ks}, and the page says nothing" for name, one in found.items() if not one.honest]
    for name, one in found.items():
        if name not in kept:
            out.append(f"{name}: it is not in {KEPT.name}")
        elif kept[name].agrees and not one.agrees:
            out.append(f"{name}: KS {one.ks}, was {kept[name].ks}: {one.said}")
    return out


def read() -> dict[str, Sight]:
    """The stored results of all pages."""
    return {name: Sight(*one) for name, one in json.loads(KEPT.read_text(encoding="utf-8"))["pages"].items()}


def counts(found: Sequence[Sight]) -> tuple[int, int, int]:
    """How many agree, how many are at a distance of .1 to .25, and how many are further."""
    far = [one.ks for one in found if not one.agrees]
    near = sum(x < MIDDLE for x in far)
    return len(found) - len(far), near, len(far) - near


def table(found: Mapping[str, Sight], when: str) -> str:
    """The counts, and each page whose draws do not agree, with its sentence."""
    of_pairs = {name: one for name, one in found.items() if " × " in name}
    of_defaults = {name: of_pairs[name] for name in defaults() if name in of_pairs}
    others = {name: one for name, one in found.items() if name not in of_pairs}
    rows = ["| pages | all | KS below .1 | .1 to .25 | above |", "|---|---|---|---|---|"]
    for title, some in (
        ("target × sampler", of_pairs),
        ("of these, defaults of the target or the sampler", of_defaults),
        ("workbench, typed posterior", others),
    ):
        rows.append(f"| {title} | {len(some)} | {' | '.join(map(str, counts(list(some.values()))))} |")
    far = sorted((item for item in found.items() if not item[1].agrees), key=lambda item: item[1].ks)
    rows += ["", "The pages whose draws do not agree say:", "", "| page | sentence |", "|---|---|"]
    rows += [f"| {name} | {one.said or f'**nothing**, at KS {one.ks}'} |" for name, one in far]
    return "\n".join([when, "", *rows])


def main() -> int:
    """Measure the pages, keep them, print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.sights", description=__doc__.split("\n\n", maxsplit=1)[0])
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--page", default="", help="only pages with this text in their names; nothing is kept")
    only.add_argument("--new", action="store_true", help="only pages that are not kept yet, as those of a new sampler")
    given = parser.parse_args()
    kept = read() if given.new else {}
    chosen = {name: one for name, one in pages().items() if given.page in name and name not in kept}
    found = {}
    with ProcessPoolExecutor(2) as pool:
        for name, one in zip(chosen, pool.map(see, chosen.values(), chunksize=4), strict=True):
            found[name] = one
            print(f"{one.ks:6.3f} {one.steps:7,}  {name}  {one.said}", flush=True)
    when = record.in_words(record.conditions(machine()))
    if given.new:
        when = json.loads(KEPT.read_text(encoding="utf-8"))["measured"]
        found = {name: {**kept, **found}[name] for name in names()}
    if not given.page:
        KEPT.write_text(
            json.dumps({"measured": when, "pages": found}, ensure_ascii=False, indent=0) + "\n", encoding="utf-8"
        )
        record.put(README, table(found, when))
    print(table(found, when))
    of_pairs = [one for name, one in found.items() if " × " in name]
    agree = counts(of_pairs)[0]
    return int(agree < ASKED * len(of_pairs) or not all(one.honest for one in found.values()))


if __name__ == "__main__":
    sys.exit(main())

"""The cost of one person's heaviest experiment for the others: frames of two light pages, alone and beside it.

One light page makes its steps within a frame, the other hands them to the engine's threads, where it meets the heavy
one. The heavy page is asked for, compiles, prepares and moves within the time that is measured. The connections are
raw ones, as in ``page``. Needs the extra ``bench``.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any
from urllib.parse import quote

from sgmcmc_lab.app.server.light_page import LightPage
from sgmcmc_lab.app.server.serving import served, warm
from tests.benchmarks.page import FIVE_VIEWS

SECONDS, QUICK_SECONDS = 20.0, 8.0
"""For so long the light pages are watched alone, and beside each heavy one from its request on."""
SETTLED = 4.0
"""A page that was opened has begun after so many seconds, and one that was closed has ended."""
LIGHT = {
    "steps in the frame": f"n_chains=4&speed=10&{FIVE_VIEWS}",
    "steps in a thread": f"target=quartic&lane=hmc&lane=sghmc&n_chains=100&speed=200&{FIVE_VIEWS}",
}
ALLOWED = 0.2
"""The part of its frames that another page may lose."""


def _formula(k: int) -> str:
    """The ``k``-th entry of the upper half of D on (θ, r, ξ), row by row; D is positive definite."""
    text = f"cos(theta1*r{1 + k % 2})*exp(-theta2^2/9)*tanh(xi-r2)"
    return f"2+{text}/9" if k in (0, 5, 9, 12, 14) else f"{text}/{20 + k}"


FORMULAS = ",".join(_formula(k) for k in range(15))
HEAVY: dict[str, tuple[str, ...]] = {
    "10,000 chains, d = 100, four lanes": (
        "target=sparse_dirichlet(dimension:100)&lane=scir&lane=sgrld&lane=root_sgld"
        "&lane=exact&n_chains=10000&speed=1000000&views=state,components,ks,trace",
    ),
    "15 formulas in each of four lanes": (
        "target=correlated_gaussian"
        + 4 * f"&lane=recipe(layout:theta_r_xi;diffusion_entries:{FORMULAS})"
        + "&n_chains=10000&speed=1000000&views=state,marginal,ks,trace,autocorrelation",
    ),
    "the longest step of four lanes, opened three times": 3
    * (
        "target=logistic_large(items:100000;features:100)"
        + 4 * "&lane=hmc(n_leapfrog:1000)"
        + "&n_chains=1&speed=1000000&views=marginal,ks,trace",
    ),
    "500 topics, six lanes of five seeds": (
        "target=topics(n_topics:500)&lane=lda_scir&lane=lda_sgrld&lane=lda_scir"
        "&lane=collapsed_gibbs&lane=minibatch_gibbs&lane=lda_sgrld&n_chains=5&speed=1000000",
    ),
}
"""The experiments that are opened at the same time."""


@dataclass(frozen=True)
class Beside:
    """The light pages beside one heavy one."""

    kept: dict[str, float]
    """Frames of each, as a part of those that it had alone."""
    standstill: dict[str, float]
    """The longest time without a frame, in seconds."""
    heavy_frames: int
    """The frames of the heavy page itself."""


@dataclass(frozen=True)
class FairnessReport:
    """The measurements."""

    alone: dict[str, float]
    """Frames a second of each light page, the heavy ones away: before the first and after each of them."""
    beside: dict[str, Beside]

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def as_text(report: FairnessReport) -> str:
    """The report as lines to read."""
    lines = [f"{'alone, ' + light:46}{rate:6.1f} frames/s" for light, rate in report.alone.items()]
    for heavy, found in report.beside.items():
        lines.append(f"beside {heavy} (itself {found.heavy_frames} frames)")
        lines += [
            f"  {light:44}{100 * kept:6.0f} %  (asked: at least {100 * (1 - ALLOWED):.0f}), "
            f"longest standstill {found.standstill[light]:.2f} s"
            for light, kept in found.kept.items()
        ]
    return "\n".join(lines)


def measure(quick: bool, say: Callable[[str], None]) -> FairnessReport:
    """Serve the app and measure. Raises :class:`SpecError` where the server does not start."""
    warm(say)
    with served("--fair") as server:
        return asyncio.run(_beside_all(server.url, QUICK_SECONDS if quick else SECONDS, say))


async def _beside_all(url: str, seconds: float, say: Callable[[str], None]) -> FairnessReport:
    frames: dict[str, list[float]] = {name: [] for name in LIGHT}
    tasks = []
    for name, query in LIGHT.items():
        tasks.append(await _opened(f"{url}?{query}", frames[name]))
    await asyncio.sleep(2 * SETTLED)
    alone: dict[str, list[float]] = {name: [] for name in LIGHT}
    counted: dict[str, tuple[dict[str, list[float]], int]] = {}
    for what, queries in HEAVY.items():
        say("alone")
        for name, times in (await _watched(frames, seconds)).items():
            alone[name].append((len(times) - 2) / seconds)
        say(f"beside {what}")
        heavy: list[float] = []
        addresses = [f"{url}?{quote(query, safe='=&(),:;~')}" for query in queries]
        opening = [asyncio.create_task(_opened(address, heavy)) for address in addresses]
        during = await _watched(frames, seconds)
        counted[what] = during, len(heavy)
        for page in await asyncio.gather(*opening):
            page.cancel()
        await asyncio.sleep(SETTLED)
    for task in tasks:
        task.cancel()
    rates = {name: sum(found) / len(found) for name, found in alone.items()}
    return FairnessReport(
        rates,
        {
            what: Beside(
                {name: (len(times) - 2) / seconds / rates[name] for name, times in during.items()},
                {name: max(b - a for a, b in pairwise(times)) for name, times in during.items()},
                own,
            )
            for what, (during, own) in counted.items()
        },
    )


async def _opened(url: str, frames: list[float]) -> asyncio.Task[None]:
    """A page that notes when its frames come; it is closed when the task is cancelled."""
    page = LightPage()
    page.on_frame = lambda: frames.append(time.perf_counter())
    await page.open(url)

    async def take() -> None:
        try:
            await page.take()
        finally:
            page.close()

    return asyncio.create_task(take())


async def _watched(frames: dict[str, list[float]], seconds: float) -> dict[str, list[float]]:
    """When each page had a frame in the coming seconds, with the begin and the end."""
    began = time.perf_counter()
    await asyncio.sleep(seconds)
    ended = time.perf_counter()
    return {name: [began, *(t for t in times if began < t < ended), ended] for name, times in frames.items()}

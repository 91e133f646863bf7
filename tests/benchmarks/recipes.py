"""The speed of typed recipes, beside the compiled samplers, and the time that their pictures take."""

import statistics
import time
from dataclasses import replace

from sgmcmc_lab.samplers.engine import Run
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.expressions import compiler
from sgmcmc_lab.samplers.recipe.flow import Flow
from sgmcmc_lab.samplers.recipe.fokker_planck import Evolution
from sgmcmc_lab.samplers.recipe.presets import PRESETS
from sgmcmc_lab.samplers.targets import TARGETS
from tests.benchmarks.timing import CHAINS, UNCOUNTED, Effort, Requirement, Work, in_turns, ratio_of

TYPED_QUARTIC = {"energy": "theta1^4/10 + (4*(theta2 + 1.2) - theta1^2)^2/2", "extent": 5.0}
TYPED_WELL = {"energy": "theta^4 - 2*theta^2", "extent": 3.5}
TYPED_SGHMC = {
    "layout": "theta_r",
    "diffusion_entries": ("0", "0", "1"),
    "curl_entries": ("-1",),
    "scheme": "semi_implicit",
    "step_size": 0.1,
}


def recipe_requirements(effort: Effort) -> list[Requirement]:
    """The promises of typed recipes: their speed over the compiled samplers', and the time that their pictures take."""
    out = []
    for n, needed in zip((*CHAINS, 64), (0.75, 0.8, 0.9), strict=True):
        chains = f"{n} chain{'s' if n > 1 else ''}"
        for name, target, typed, params in (
            ("SGLD", "quartic", TYPED_QUARTIC, {}),
            ("SGHMC", "double_well", TYPED_WELL, TYPED_SGHMC),
        ):
            specs = {
                "compiled": RunSpec.of(target, name.lower(), n_chains=n),
                "recipe": RunSpec.of(target, "recipe", sampler_params=params, n_chains=n),
                "both": RunSpec.of("typed", "recipe", target_params=typed, sampler_params=params, n_chains=n),
            }
            works: dict[str, tuple[Work, int]] = {
                key: (warm(Run(replace(spec, burn_in=UNCOUNTED))), n) for key, spec in specs.items()
            }
            rates = in_turns(works, effort, time.thread_time)
            for key, what in (("recipe", "recipe typed"), ("both", "recipe and energy typed")):
                title = f"{name} on the {target.replace('_', ' ')}, {what}, over the compiled one, {chains}"
                out.append(Requirement(title, ratio_of(rates, key, "compiled"), needed))
    times = statistics.median(_grid_seconds() for _ in range(effort.rounds))
    out.append(
        Requirement("generator, first step of p(z, t) and spectrum on 120 × 120 cells, seconds", times, 0.5, True)
    )
    return out


def warm(run: Run) -> Work:
    """A run whose formulas are native code."""
    while run.seconds < compiler.HOT:
        run.advance(10_000)
    run.advance(1)
    compiler.wait()
    return run.advance


def _grid_seconds() -> float:
    target = TARGETS["double_well"]()
    flow = Flow(PRESETS["sghmc"].recipe(target.dim, target.formula()), target)
    began = time.perf_counter()
    Evolution(flow.matrix, flow.wanted, 0.05).advance()
    _ = flow.spectrum
    return time.perf_counter() - began

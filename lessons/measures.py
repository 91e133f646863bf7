"""What a claim can measure; each is registered by one line.

A measure of an experiment's lane reads its :class:`Evidence`: the trace, and what else the measure says it ``needs``. A
measure of a study's method reads its run. All are functions of numbers that the run gives, so that the same measure
serves the headless run and the live check mark; those that need more than the running statistics are for the headless
run only.

Standard errors are those of the spread between chains, divided by the root of their number, where nothing else is said;
they are given from :data:`FEWEST` chains on.
"""

from abc import abstractmethod
from dataclasses import dataclass, replace
from math import comb
from typing import Any, ClassVar

import numpy as np
import param

from samplers import Run, jit
from samplers.diagnostics import convergence, divergence, ks
from samplers.diagnostics import moments as ensembles
from samplers.diagnostics.autocorrelation import integrated_time
from samplers.kernels import SAMPLERS
from samplers.kernels.kicks import Moving
from samplers.kernels.recipe import RecipeSampler
from samplers.models.study import StudyRun
from samplers.models.topics.batch_size import exact_tau, gaussian_scan, tau_int
from samplers.parameters import Count, Option, Real, SpecError, Value, check_all
from samplers.recipe.flow import Flow
from samplers.recipe.recipe import Recipe
from samplers.registry import Registry
from samplers.spec import RunSpec
from samplers.targets import TARGETS
from samplers.targets.base import Array, Column, Target
from samplers.trace import Trace

FEWEST = 8
"""Chains that a standard error from their spread needs."""
STATISTICS, DRAWS, MOMENTA, OWN_RUN = "statistics", "draws", "momenta", "a run of its own"
"""What a measure needs: the running statistics alone, all draws, snapshots of the momenta, or a run that it makes."""
NAN = float("nan")


@dataclass(frozen=True)
class Estimate:
    """A measured number."""

    value: float
    error: float | None = None
    """Its standard error, where it is known."""
    exact: float | None = None
    """What it would be under the exact law, where that is known."""


@dataclass(frozen=True)
class Evidence:
    """What the run of one lane gave."""

    trace: Trace
    momenta: Array | None = None
    """Snapshots of what chains have beside θ, evenly spaced after the burn-in, (snapshots, chains, …)."""


class Measure(param.Parameterized):
    """A number of a run. Instances are never changed after they are made."""

    key: ClassVar[str]
    title: ClassVar[str]
    needs: ClassVar[str] = STATISTICS
    has_error: ClassVar[bool] = True
    """Whether a standard error comes with it."""
    of_study: ClassVar[bool] = False

    def __init__(self, **values: Value):
        """Raises :class:`~samplers.parameters.SpecError` for a value that is not allowed."""
        super().__init__(**dict(check_all(type(self), "measure", values)))

    def check(self, spec: Any) -> None:
        """Raise :class:`SpecError` where the experiment has no such number. ``spec`` is a RunSpec or a Study."""

    @abstractmethod
    def of(self, lane: Any) -> Estimate:
        """The number of a lane by its :class:`Evidence`, or of a :class:`~samplers.models.study.StudyRun`."""


class OfColumn(Measure):
    """A number of one column: of θ, or of ω on the simplex, counted from 1."""

    column = Count(1, bounds=(1, 400), label="Column", doc="Which coordinate, counted from 1.")

    @property
    def k(self) -> int:
        """The column, counted from 0."""
        return int(self.column) - 1

    def check(self, spec: RunSpec) -> None:
        target = spec.make_target()
        if self.column > len(target.columns):
            raise SpecError("measure.column", self.column, f"{target.title} has the columns 1 to {len(target.columns)}")


def spread(values: Array) -> float | None:
    """The standard error of the mean of independent values, from FEWEST values on."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) >= FEWEST else None


def central_powers(lane: Evidence, k: int, centre: float) -> Array:
    """The mean of (x − centre)ᵖ, p = 0…4, in every chain: (5, chains)."""
    statistics = lane.trace.statistics
    column = statistics.columns[k]
    scale = np.sqrt(column.variance)
    z = np.vstack([np.ones(statistics.n_chains), statistics.sums.powers[k].T / max(statistics.n_steps, 1)])
    shift = (column.mean - centre) / scale
    return np.array([scale**p * sum(comb(p, q) * shift ** (p - q) * z[q] for q in range(p + 1)) for p in range(5)])


def known(target: Target, *names: str) -> float | None:
    """An expectation that the target knows under one of these names."""
    exact = {moment.name: moment.exact for moment in target.moments}
    return next((float(exact[name]) for name in names if name in exact), None)


class Mean(OfColumn):
    """E x."""

    key = "mean"
    title = "Mean"

    def of(self, lane: Evidence) -> Estimate:
        values = lane.trace.statistics.chain_means(self.k)
        return Estimate(float(values.mean()), spread(values), lane.trace.statistics.columns[self.k].mean)


class Variance(OfColumn):
    """Var x, of all chains together about their common mean."""

    key = "variance"
    title = "Variance"

    def of(self, lane: Evidence) -> Estimate:
        values = central_powers(lane, self.k, lane.trace.statistics.mean(self.k))[2]
        return Estimate(float(values.mean()), spread(values), lane.trace.statistics.columns[self.k].variance)


class Power(OfColumn):
    """E xᵖ. The exact value is known for p = 1 and 2, and for more where the target names it."""

    key = "power"
    title = "Moment"
    order = Count(2, bounds=(1, 4), label="Power", doc="The power p of E xᵖ.")

    def of(self, lane: Evidence) -> Estimate:
        values = central_powers(lane, self.k, 0.0)[int(self.order)]
        column = lane.trace.statistics.columns[self.k]
        name = f"E {column.name}{'⁰¹²³⁴'[int(self.order)]}"
        exact = {1: column.mean, 2: column.variance + column.mean**2}.get(int(self.order), known(lane.trace.target, name))  # fmt: skip
        return Estimate(float(values.mean()), spread(values), exact)


class Expectation(Measure):
    """An expectation that the target knows, by its number in the target's list of moments; of all draws."""

    key = "expectation"
    title = "Expectation"
    needs = DRAWS
    number = Count(1, bounds=(1, 400), label="Number", doc="Which of the target's moments, counted from 1.")

    def check(self, spec: RunSpec) -> None:
        names = [moment.name for moment in spec.make_target().moments]
        if self.number > len(names):
            raise SpecError("measure.number", self.number, f"the moments are 1 to {len(names)}: {', '.join(names)}")

    def of(self, lane: Evidence) -> Estimate:
        target = lane.trace.target
        moment = target.moments[int(self.number) - 1]
        assert lane.trace.draws is not None
        values = moment.function(target.values(lane.trace.draws)).mean(axis=1)
        return Estimate(float(values.mean()), spread(values), moment.exact)


class Probability(OfColumn):
    """P(low < x < high), from the histogram; the standard error is √(p(1 − p)τ/n) with the τ of x itself.

    A bin that a bound divides counts in proportion; on a log axis, in proportion of the logarithm.
    """

    key = "probability"
    title = "Probability"
    low = Real(-1e300, bounds=(-1e300, 1e300), label="From", doc="The lower end.")
    high = Real(1e300, bounds=(-1e300, 1e300), label="To", doc="The upper end.")

    def check(self, spec: RunSpec) -> None:
        super().check(spec)
        if not self.low < self.high:
            raise SpecError("measure.low", self.low, f"allowed is less than high = {self.high:g}")

    def of(self, lane: Evidence) -> Estimate:
        statistics = lane.trace.statistics
        column = statistics.columns[self.k]
        low, high = empirical(lane, self.k, self.low), empirical(lane, self.k, self.high)
        p = high - low
        exact_low, exact_high = np.asarray(column.cdf(np.array([self.low, self.high])))
        # All draws on one side say that p is below about one effective draw.
        tau = integrated_time(statistics, self.k).tau
        n = statistics.n_draws / max(tau, 1.0)
        error = float(np.sqrt(max(p * (1 - p), 1 / n) / n)) if np.isfinite(n) and n > 0 else None
        return Estimate(p, error, float(exact_high - exact_low))


def empirical(lane: Evidence, k: int, x: float) -> float:
    """The empirical CDF of column ``k`` at x, linear within a bin (of the logarithm, on a log axis)."""
    statistics = lane.trace.statistics
    edges, _ = ks.edges_and_cdf(statistics.columns[k])
    if x < edges[0] or x > edges[-1]:
        return 0.0 if x < edges[0] else 1.0
    below = ks.empirical_cdf(statistics, k)
    if statistics.columns[k].log:
        return float(np.interp(np.log(x), np.log(edges), below))
    return float(np.interp(x, edges, below))


class Quantile(OfColumn):
    """The quantile at p, from the histogram; exact from the target's CDF."""

    key = "quantile"
    title = "Quantile"
    has_error = False
    p = Real(0.5, bounds=(1e-6, 1 - 1e-6), label="Probability", doc="The share of draws that are below.")

    def of(self, lane: Evidence) -> Estimate:
        statistics = lane.trace.statistics
        column = statistics.columns[self.k]
        edges, cdf = ks.edges_and_cdf(column)
        return Estimate(_inverse(column, edges, ks.empirical_cdf(statistics, self.k), self.p), None, _inverse(column, edges, cdf, self.p))  # fmt: skip


def _inverse(column: Column, edges: Array, cdf: Array, p: float) -> float:
    if not cdf[0] <= p <= cdf[-1]:
        return float(edges[0] if p < cdf[0] else edges[-1])
    after = int(np.searchsorted(cdf, p))
    at = np.log(edges) if column.log else edges
    low, high = max(after - 1, 0), after
    share = 0.0 if cdf[high] == cdf[low] else (p - cdf[low]) / (cdf[high] - cdf[low])
    x = at[low] + share * (at[high] - at[low])
    return float(np.exp(x) if column.log else x)


class KS(Measure):
    """The mean KS distance to the exact law (Baker et al. 2018), of all chains together; or of one column.

    ``exact`` is what as many independent exact draws would have, .8687/√n.
    """

    key = "ks"
    title = "KS distance"
    has_error = False
    column = Count(0, bounds=(0, 400), label="Column", doc="Which column, counted from 1; 0 for the mean of the target's own.")  # fmt: skip

    def check(self, spec: RunSpec) -> None:
        n = len(spec.make_target().columns)
        if self.column > n:
            raise SpecError("measure.column", self.column, f"allowed are 0 to {n}")

    def of(self, lane: Evidence) -> Estimate:
        statistics = lane.trace.statistics
        n = statistics.n_draws
        if n == 0:
            return Estimate(NAN)
        value = ks.distance(statistics, int(self.column) - 1) if int(self.column) else ks.mean_distance(statistics, lane.trace.target)  # fmt: skip
        return Estimate(value, None, ks.baseline(n))


class ChainKS(Measure):
    """The mean over chains of the KS distance of each chain's own draws: the score of Baker et al. 2018, Fig 2."""

    key = "chain_ks"
    title = "KS distance of a chain"
    needs = DRAWS

    def of(self, lane: Evidence) -> Estimate:
        draws = lane.trace.draws
        if draws is None or draws.shape[1] == 0:
            return Estimate(NAN)
        values = np.array([ks.of_draws(lane.trace.target, chain) for chain in draws])
        return Estimate(float(values.mean()), spread(values), ks.baseline(draws.shape[1]))


class KL(OfColumn):
    """KL(sample ‖ exact law) of one column, its bias for as many independent draws subtracted."""

    key = "kl"
    title = "KL divergence"
    has_error = False

    def of(self, lane: Evidence) -> Estimate:
        found = divergence.kl_1d(lane.trace.statistics, self.k)
        return Estimate(found.value - found.bias, None, 0.0)


class JointKL(Measure):
    """KL(sample ‖ exact law) of both coordinates of a two-dimensional target, its bias subtracted."""

    key = "joint_kl"
    title = "Joint KL divergence"
    has_error = False

    def check(self, spec: RunSpec) -> None:
        if not spec.make_target().planar:
            raise SpecError("measure", self.key, "it needs a target of two dimensions")

    def of(self, lane: Evidence) -> Estimate:
        found = divergence.kl_2d(lane.trace.statistics, lane.trace.target)
        return Estimate(found.value - found.bias, None, 0.0)


class Tau(OfColumn):
    """The integrated autocorrelation time, in steps or in units of time (steps × ε)."""

    key = "tau"
    title = "Autocorrelation time"
    unit = Option(default="steps", objects=["steps", "time"], label="Unit", doc="Steps, or the time that they advance.")

    def of(self, lane: Evidence) -> Estimate:
        found = integrated_time(lane.trace.statistics, self.k)
        scale = lane.trace.spec.make_sampler().time_per_step if self.unit == "time" else 1.0
        error = found.standard_error * scale
        return Estimate(found.tau * scale, error if np.isfinite(error) else None)


class Cost(Tau):
    """What an independent draw costs, (n w_z + w_θ) τ: n data a gradient, τ the autocorrelation time in steps.

    Smolyakov, Liu & Fisher, eq (13); where the target has no data, n is 1.
    """

    key = "cost"
    title = "Cost of an independent draw"
    per_datum = Real(1.0, bounds=(0.0, 1e9), label="Cost of a datum", doc="w_z: what it costs to look at one datum.")
    per_step = Real(1.0, bounds=(0.0, 1e9), label="Cost of a step", doc="w_θ: what a step costs beside its data.")

    def of(self, lane: Evidence) -> Estimate:
        found, spec = super().of(lane), lane.trace.spec
        n = spec.make_gradient().data_per_gradient(lane.trace.target)
        scale = n * self.per_datum + self.per_step
        return Estimate(found.value * scale, None if found.error is None else found.error * scale)


class ScanTau(Measure):
    """The autocorrelation time of θ in minibatch Gibbs where it is known: 1 + 2s²N/m.

    θ flat, z_i | θ ~ N(θ, 1), x_i | z_i ~ N(z_i, s²), i = 1…N; a step draws m of the z_i anew, chosen at random, and
    then θ given all of them. It is a run of its own, with the lane's seed and as many steps and chains; no other number
    of the lane is in it.
    """

    key = "scan_tau"
    title = "Autocorrelation time of a scan"
    needs = OWN_RUN
    n_data = Count(64, bounds=(1, 10_000), label="Data N", doc="How many data there are.")
    batch_size = Count(8, bounds=(1, 10_000), label="Batch size m", doc="How many z_i a step draws.")
    sd = Real(
        1.0, bounds=(0.01, 10.0), label="Standard deviation s", doc="The standard deviation of the data about their z."
    )

    def check(self, spec: RunSpec) -> None:
        if self.batch_size > self.n_data:
            raise SpecError("measure.batch_size", self.batch_size, f"allowed is at most the n_data of {self.n_data}")

    def of(self, lane: Evidence) -> Estimate:
        spec, n, variance = lane.trace.spec, int(self.n_data), float(self.sd) ** 2
        jit.prepare([gaussian_scan])
        values = []
        for chain in np.random.SeedSequence(spec.seed).spawn(spec.n_chains):
            rng = np.random.Generator(np.random.SFC64(chain))
            x = rng.standard_normal(n) * np.sqrt(1 + variance)
            theta = x.mean() + np.sqrt((1 + variance) / n) * rng.standard_normal()
            z = (variance * theta + x) / (1 + variance) + np.sqrt(variance / (1 + variance)) * rng.standard_normal(n)
            out = np.empty(spec.n_steps)
            gaussian_scan(rng, x, z, variance, int(self.batch_size), out)
            values.append(tau_int(out))
        exact = float(exact_tau(int(self.batch_size), n, variance))
        return Estimate(float(np.mean(values)), spread(np.array(values)), exact)


class ScanCost(ScanTau):
    """What an independent draw of that scan costs, (m w_z + w_θ) τ, smallest at m* = √(2s²N w_θ/w_z)."""

    key = "scan_cost"
    title = "Cost of an independent draw of a scan"
    local = Real(1.0, bounds=(0.0, 1e9), label="Cost of a z", doc="w_z: what it costs to draw one z.")
    overall = Real(1.0, bounds=(0.0, 1e9), label="Cost of θ", doc="w_θ: what it costs to draw θ.")

    def of(self, lane: Evidence) -> Estimate:
        found = super().of(lane)
        scale = int(self.batch_size) * self.local + self.overall
        error = None if found.error is None else found.error * scale
        return Estimate(found.value * scale, error, None if found.exact is None else found.exact * scale)


class Gap(Measure):
    """The spectral gap of a typed recipe: the slowest rate at which its process forgets, from its law on a grid."""

    key = "gap"
    title = "Spectral gap"
    needs = OWN_RUN
    has_error = False

    def check(self, spec: RunSpec) -> None:
        if spec.sampler.key != RecipeSampler.key:
            raise SpecError("measure", self.key, f"it needs a recipe, which {spec.sampler.key} is not")
        n = len(self._recipe(spec).layout.names)
        if n > 2:
            raise SpecError("measure", self.key, f"it needs a state of one or two numbers, and this one has {n}")
        if spec.gradient.key != "full":
            raise SpecError("measure", self.key, "it needs the full gradient")
        if n == 2 and self._recipe(spec).refresh:
            raise SpecError("measure", self.key, "it needs a momentum that is not redrawn")

    @staticmethod
    def _recipe(spec: RunSpec) -> Recipe:
        sampler = spec.make_sampler()
        assert isinstance(sampler, RecipeSampler)
        return sampler.recipe(spec.make_target())

    def of(self, lane: Evidence) -> Estimate:
        spec = lane.trace.spec
        return Estimate(Flow(self._recipe(spec), spec.make_target()).spectrum.gap)


class RHat(OfColumn):
    """Rank-normalised split R-hat of the thinned history of up to eight chains."""

    key = "rhat"
    title = "R-hat"
    has_error = False

    def of(self, lane: Evidence) -> Estimate:
        found = convergence.summary(lane.trace.statistics.history(), self.k)
        return Estimate(found.rhat, None, 1.0)


class Acceptance(Measure):
    """The share of accepted proposals."""

    key = "acceptance"
    title = "Acceptance"
    has_error = False

    def of(self, lane: Evidence) -> Estimate:
        return Estimate(lane.trace.acceptance)


class Clipped(Measure):
    """The share of steps in which the noise of the gradient was more than the noise to be injected."""

    key = "clipped"
    title = "Clipped steps"
    has_error = False

    def of(self, lane: Evidence) -> Estimate:
        return Estimate(lane.trace.clipped / max(lane.trace.statistics.n_draws, 1))


class Diverged(Measure):
    """1 where a chain left its target for good or the sampler was refused, else 0."""

    key = "diverged"
    title = "Diverged"
    has_error = False

    def of(self, lane: Evidence) -> Estimate:
        return Estimate(float(lane.trace.divergence is not None))


class Temperature(Measure):
    """E ‖v‖²/m, with m the dimension of the manifold: 1 where all noise is accounted for."""

    key = "temperature"
    title = "Temperature"
    needs = MOMENTA

    def check(self, spec: RunSpec) -> None:
        if not issubclass(SAMPLERS[spec.sampler.key], Moving):
            raise SpecError("measure", self.key, f"it needs a sampler with a velocity, which {spec.sampler.key} has not")  # fmt: skip

    def of(self, lane: Evidence) -> Estimate:
        if lane.momenta is None or not len(lane.momenta):
            return Estimate(NAN)
        target = lane.trace.target
        values = (lane.momenta[:, :, : target.dim] ** 2).sum(axis=2).mean(axis=0) / target.manifold.dim
        return Estimate(float(values.mean()), spread(values), 1.0)


class Auxiliary(Measure):
    """E aᵖ of what a chain has beside θ: a momentum r or, after the momenta, a thermostat ξ."""

    key = "auxiliary"
    title = "Moment of a momentum"
    needs = MOMENTA
    component = Count(1, bounds=(1, 100), label="Component", doc="Which of what a chain has beside θ, counted from 1.")
    order = Count(2, bounds=(1, 2), label="Power", doc="The power p of E aᵖ.")

    def check(self, spec: RunSpec) -> None:
        n = len(spec.make_sampler().auxiliary(spec.make_target()))
        if self.component > n:
            raise SpecError("measure.component", self.component, f"{spec.sampler.key} has {n} numbers beside θ")

    def of(self, lane: Evidence) -> Estimate:
        if lane.momenta is None or not len(lane.momenta):
            return Estimate(NAN)
        values = (lane.momenta[:, :, int(self.component) - 1] ** int(self.order)).mean(axis=0)
        return Estimate(float(values.mean()), spread(values))


class OfEnsemble(Measure):
    """Of many chains from one start, after so many steps; exact by Theorem 3.1 and Corollary 3.2 where they apply."""

    needs = OWN_RUN
    component = Count(1, bounds=(1, 100), label="Component", doc="Which θ, counted from 1.")
    steps = Count(6, bounds=(1, 10_000), label="Steps", doc="After how many steps.")
    start = Real(3.0, bounds=(1e-6, 1e6), label="Start", doc="Where every θ starts.")

    def check(self, spec: RunSpec) -> None:
        if not TARGETS[spec.target.key].process == "cir":
            raise SpecError("measure", self.key, "it needs a target whose process is CIR")
        if self.component > spec.make_target().dim:
            raise SpecError("measure.component", self.component, f"allowed are 1 to {spec.make_target().dim}")

    def ensemble(self, lane: Evidence) -> ensembles.Ensemble:
        """The ensemble of the lane's own spec."""
        return ensembles.ensemble(lane.trace.spec, int(self.steps), float(self.start))

    def law(self, spec: RunSpec) -> tuple[float, float] | None:
        """The mean and the variance by theory."""
        target, h = spec.make_target(), spec.sampler.values().get("step_size")
        j = int(self.component) - 1
        shapes = getattr(target, "shapes", None)
        if spec.sampler.key not in ("cir", "scir") or shapes is None:
            return None
        a, t = float(shapes[j]), float(h) * int(self.steps)  # type: ignore[arg-type]
        mean = float(ensembles.cir_mean(a, self.start, t))
        gradient = spec.gradient.values()
        if "batch_size" not in gradient:
            return mean, float(ensembles.cir_variance(a, self.start, t))
        noise = ensembles.var_a_hat(
            target.n_data, int(target.counts()[j]), int(gradient["batch_size"]), bool(gradient["replacement"])  # type: ignore[arg-type]
        )  # fmt: skip
        return mean, float(ensembles.scir_variance(a, self.start, float(h), int(self.steps), noise))  # type: ignore[arg-type]


class EnsembleMean(OfEnsemble):
    """E θ_j after M steps, over the chains."""

    key = "ensemble_mean"
    title = "Mean of an ensemble"

    def of(self, lane: Evidence) -> Estimate:
        found, law, j = self.ensemble(lane), self.law(lane.trace.spec), int(self.component) - 1
        if len(found.step) < self.steps:
            return Estimate(NAN)
        return Estimate(float(found.mean[-1, j]), float(found.mean_error[-1, j]), law and law[0])


class EnsembleVariance(OfEnsemble):
    """Var θ_j after M steps, over the chains."""

    key = "ensemble_variance"
    title = "Variance of an ensemble"

    def of(self, lane: Evidence) -> Estimate:
        found, law, j = self.ensemble(lane), self.law(lane.trace.spec), int(self.component) - 1
        if len(found.step) < self.steps:
            return Estimate(NAN)
        return Estimate(float(found.variance[-1, j]), float(found.variance_error[-1, j]), law and law[1])


class EnsembleMGF(OfEnsemble):
    """E e^{sθ_j} after M steps, over the chains, for s < 0, where it is at most 1; exact by Theorem 3.1."""

    key = "ensemble_mgf"
    title = "MGF of an ensemble"
    s = Real(-0.1, bounds=(-100.0, -1e-6), label="s", doc="The s of E e^{sθ}; negative, so that no chain outweighs the others.")  # fmt: skip

    def of(self, lane: Evidence) -> Estimate:
        spec, steps, j = lane.trace.spec, int(self.steps), int(self.component) - 1
        run = Run(replace(spec, burn_in=steps))
        run.position[:] = self.start
        run.advance(steps)
        if run.divergence is not None:
            return Estimate(NAN)
        values = np.exp(self.s * run.position[:, j])
        return Estimate(float(values.mean()), spread(values), self._law(spec))

    def _law(self, spec: RunSpec) -> float | None:
        """The expectation by theory, over the minibatches too."""
        target, j, steps = spec.make_target(), int(self.component) - 1, int(self.steps)
        shapes = getattr(target, "shapes", None)
        if spec.sampler.key not in ("cir", "scir") or shapes is None:
            return None
        h, gradient = float(spec.sampler.values()["step_size"]), spec.gradient.values()  # type: ignore[arg-type]
        if "batch_size" not in gradient:
            return ensembles.cir_mgf(self.s, float(shapes[j]), self.start, h * steps)
        count = int(target.counts()[j])
        return ensembles.scir_mgf_expected(
            self.s, float(shapes[j]) - count, self.start, h, steps, target.n_data, count,
            int(gradient["batch_size"]), bool(gradient["replacement"]),  # type: ignore[arg-type]
        )  # fmt: skip


# --- studies ---------------------------------------------------------------------------------------------------------


class Score(Measure):
    """A study's held-out score: the last one, or the last one up to a step."""

    key = "score"
    title = "Held-out score"
    of_study = True
    has_error = False
    step = Count(0, bounds=(0, 1_000_000_000), label="Step", doc="The score at this step; 0 for the last.")

    def of(self, lane: StudyRun) -> Estimate:
        scores = [score.value for score in lane.scores if self.step == 0 or score.step <= self.step]
        return Estimate(scores[-1] if scores and lane.divergence is None else NAN)


class DataToReach(Measure):
    """How many data a method had touched when its score first was as good as ``threshold``; infinite if never."""

    key = "data_to_reach"
    title = "Data to reach a score"
    of_study = True
    has_error = False
    threshold = Real(0.0, bounds=(-1e12, 1e12), label="Score", doc="The held-out score to reach.")

    def of(self, lane: StudyRun) -> Estimate:
        sign = 1 if lane.model.higher_is_better else -1
        reached = (score.data_seen for score in lane.scores if sign * score.value >= sign * self.threshold)
        return Estimate(float(next(reached, np.inf)))


class Elbo(Measure):
    """The evidence lower bound of a method that has one: the mean of its last tenth of steps, each one noisy draw."""

    key = "elbo"
    title = "Evidence lower bound"
    of_study = True
    has_error = False

    def of(self, lane: StudyRun) -> Estimate:
        values = getattr(lane.state, "elbo", ())
        if not len(values) or lane.divergence is not None:
            return Estimate(NAN)
        return Estimate(float(np.mean(values[-max(len(values) // 10, 1) :])))


MEASURES: Registry[type[Measure]] = Registry(
    "measure",
    Mean,
    Variance,
    Power,
    Expectation,
    Probability,
    Quantile,
    KS,
    ChainKS,
    KL,
    JointKL,
    Tau,
    Cost,
    ScanTau,
    ScanCost,
    Gap,
    RHat,
    Acceptance,
    Clipped,
    Diverged,
    Temperature,
    Auxiliary,
    EnsembleMean,
    EnsembleVariance,
    EnsembleMGF,
    Score,
    DataToReach,
    Elbo,
)

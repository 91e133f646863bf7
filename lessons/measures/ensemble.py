"""Many chains from one start after so many steps, held against the theorems on SCIR."""

from dataclasses import replace

import numpy as np

from sgmcmc_lab.lessons.measures.base import NAN, OWN_RUN, Estimate, Evidence, Measure, spread
from sgmcmc_lab.samplers import Run
from sgmcmc_lab.samplers.diagnostics import moments as ensembles
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.parameters import Count, Real, SpecError
from sgmcmc_lab.samplers.targets import TARGETS


class OfEnsemble(Measure):
    """A number of many chains from one start after some steps; exact where Theorem 3.1 and Corollary 3.2 apply."""

    requires = OWN_RUN
    constant_steps = True
    component = Count(1, bounds=(1, 100), label="Component", doc="The number of the θ, counted from 1.")
    steps = Count(6, bounds=(1, 10_000), label="Steps", doc="After how many steps.")
    start = Real(3.0, bounds=(1e-6, 1e6), label="Start", doc="The start of every θ.")

    def check(self, spec: RunSpec) -> None:
        if not TARGETS[spec.target.key].process == "cir":
            raise SpecError("measure", self.key, "it needs a target whose process is CIR")
        if self.component > spec.make_target().dim:
            raise SpecError("measure.component", self.component, f"allowed are 1 to {spec.make_target().dim}")

    def ensemble(self, lane: Evidence) -> ensembles.Ensemble:
        """The ensemble of the lane's own spec."""
        return ensembles.ensemble(lane.trace.spec, int(self.steps), float(self.start))

    def theory(self, spec: RunSpec) -> tuple[float, float] | None:
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
            target.n_data,
            int(target.counts()[j]),
            int(gradient["batch_size"]),  # type: ignore[arg-type]
            bool(gradient["replacement"]),
        )
        # Each data point counts for 1/T.
        noise /= target.temperature**2
        return mean, float(ensembles.scir_variance(a, self.start, float(h), int(self.steps), noise))  # type: ignore[arg-type]


class EnsembleMean(OfEnsemble):
    """E θ_j after M steps, over the chains."""

    key = "ensemble_mean"
    title = "Mean of an ensemble"

    def of(self, lane: Evidence) -> Estimate:
        found, known, j = self.ensemble(lane), self.theory(lane.trace.spec), int(self.component) - 1
        if len(found.step) < self.steps:
            return Estimate(NAN)
        return Estimate(float(found.mean[-1, j]), float(found.mean_error[-1, j]), known and known[0])


class EnsembleVariance(OfEnsemble):
    """Var θ_j after M steps, over the chains."""

    key = "ensemble_variance"
    title = "Variance of an ensemble"

    def of(self, lane: Evidence) -> Estimate:
        found, known, j = self.ensemble(lane), self.theory(lane.trace.spec), int(self.component) - 1
        if len(found.step) < self.steps:
            return Estimate(NAN)
        return Estimate(float(found.variance[-1, j]), float(found.variance_error[-1, j]), known and known[1])


class EnsembleMGF(OfEnsemble):
    """E e^{sθ_j} after M steps, over the chains, for s < 0, where it is at most 1; exact by Theorem 3.1."""

    key = "ensemble_mgf"
    title = "MGF of an ensemble"
    s = Real(
        -0.1,
        bounds=(-100.0, -1e-6),
        label="s",
        doc="The s of E e^{sθ}; negative, so that no chain outweighs the others.",
    )

    def of(self, lane: Evidence) -> Estimate:
        spec, steps, j = lane.trace.spec, int(self.steps), int(self.component) - 1
        run = Run(replace(spec, burn_in=steps))
        run.position = self.start
        run.advance(steps)
        if run.divergence is not None:
            return Estimate(NAN)
        values = np.exp(self.s * run.position[:, j])
        return Estimate(float(values.mean()), spread(values), self._theory(spec))

    def _theory(self, spec: RunSpec) -> float | None:
        """The expectation by theory, over the minibatches too."""
        target, j, steps = spec.make_target(), int(self.component) - 1, int(self.steps)
        shapes = getattr(target, "shapes", None)
        if spec.sampler.key not in ("cir", "scir") or shapes is None:
            return None
        h, gradient = float(spec.sampler.values()["step_size"]), spec.gradient.values()  # type: ignore[arg-type]
        if "batch_size" not in gradient:
            return ensembles.cir_mgf(self.s, float(shapes[j]), self.start, h * steps)
        count = int(target.counts()[j])
        found = ensembles.scir_mgf_expected_curve(
            np.array([self.s]),
            float(shapes[j]) - count / target.temperature,
            self.start,
            h,
            steps,
            target.n_data,
            count,
            int(gradient["batch_size"]),  # type: ignore[arg-type]
            bool(gradient["replacement"]),
            target.temperature,
        )
        return float(found[0])

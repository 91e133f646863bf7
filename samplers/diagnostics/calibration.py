"""Simulation-based calibration of typed posteriors: ``python -m sgmcmc_lab.samplers.diagnostics.calibration``.

Parameters θ̃ are drawn from the prior and data from the model at θ̃, so that θ̃ is one draw from the posterior of these
data. Among ``DRAWS`` independent draws of a right sampler its rank is uniform on 0, …, ``DRAWS`` (Talts, Betancourt,
Simpson, Vehtari & Gelman 2018, Theorem 1). Many repetitions make a histogram for each parameter, and χ² says whether
it is flat.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import stats

from sgmcmc_lab.samplers.choices import Choice
from sgmcmc_lab.samplers.console import Parser
from sgmcmc_lab.samplers.diagnostics.autocorrelation import tau_int
from sgmcmc_lab.samplers.engine import Run
from sgmcmc_lab.samplers.experiment import Experiment, RunSpec
from sgmcmc_lab.samplers.expressions import evaluate
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.targets.base import Array, Column, Tell
from sgmcmc_lab.samplers.targets.boxed import FEW
from sgmcmc_lab.samplers.targets.generative import Generative, coordinates, log_stretch, value_of
from sgmcmc_lab.samplers.targets.own import Table, keep
from sgmcmc_lab.samplers.targets.posterior import TypedPosterior
from sgmcmc_lab.samplers.targets.posterior_data import PRESETS

DRAWS, BINS = 63, 16
"""Draws of a posterior, so that there are 64 ranks, four in each bin of a histogram."""
CHAINS = 7
"""The chains of a posterior; each gives a seventh of the draws: nine."""
MAX_RUNS = 5_000
MAX_THIN = 5_000
"""The most steps between two draws of a chain; a chain with a longer autocorrelation says little of its
distribution."""
_FORGET = 5
"""The steps before a chain's first draw, in autocorrelation times."""
_APART = 2
"""The steps between two draws, in autocorrelation times: an exponential autocorrelation falls to e⁻⁴."""
_AT_ONCE = 400_000
"""The most rows of all chains that are processed at once."""

Ranks = NDArray[np.int64]


@dataclass(frozen=True)
class Calibration:
    """Ranks of parameters among draws of their posteriors."""

    names: tuple[str, ...]
    ranks: Ranks
    """From 0 to ``DRAWS``, (runs, parameters)."""
    failed: int = 0
    """Runs that have no ranks, for a chain diverged."""

    def counts(self, k: int) -> NDArray[np.int64]:
        """The histogram of a parameter's ranks, (BINS,)."""
        return np.bincount(self.ranks[:, k] * BINS // (DRAWS + 1), minlength=BINS)

    def p_value(self, k: int) -> float:
        """The probability of a larger χ² where the ranks of the parameter are uniform."""
        return chi_square(self.counts(k))


def chi_square(counts: NDArray[np.int64]) -> float:
    """p of the χ² of counts that are expected to be the same; nan where fewer than five a bin are expected."""
    expected = counts.sum() / len(counts)
    if expected < 5:
        return float("nan")
    return float(stats.chi2.sf(((counts - expected) ** 2).sum() / expected, len(counts) - 1))


def generative(target: TypedPosterior) -> Generative:
    """The model as a program that makes data."""
    return Generative(target.bounded, target.titles, target.prior, target.row)


def with_rows(target: TypedPosterior, n: int) -> TypedPosterior:
    """The model with fewer rows, evenly spread over the table."""
    if n >= target.n_data:
        return target
    some = np.linspace(0, target.n_data - 1, n).round().astype(int)
    return Replica.of(target, {title: x[some] for title, x in target.titles.items()})


_FIELDS = ("table", "parameters", "prior", "row", "curve", "coordinates")


class Replica(TypedPosterior):
    """The posterior of a model with other data. Its statistics have the bins of the model's with its own data."""

    original: TypedPosterior
    choice: Choice
    """Its name in a spec."""

    @classmethod
    def of(cls, target: TypedPosterior, columns: Mapping[str, Array], start: Array | None = None) -> "Replica":
        """With these columns (N,). The climb to its mode begins at ``start`` (dim,)."""
        *names, answer = columns
        x = np.column_stack([columns[each] for each in names]) if names else np.empty((len(columns[answer]), 0))
        table = keep(Table(tuple(names), x, answer, columns[answer]))
        made = cls(
            table=table.key,
            parameters=target.parameters,
            prior=target.prior,
            row=target.row,
            curve="",
            coordinates=target.coordinates,
        )
        made.original = target
        made.choice = Choice("posterior", tuple((field, getattr(made, field)) for field in _FIELDS))
        # Every caller gets the same choice, and with it the table, as long as one is held.
        made.contents.target(made.choice, 1.0, lambda: made)
        if start is not None:
            made.__dict__["start_at"] = start
        return made

    def check(self) -> None:
        """Its formulas were checked with the data of the model; of others there may be no mode."""

    def exact_draws(self) -> Array:
        """None: exact answers are not looked for."""
        return np.zeros((0, self.dim))

    @property
    def ready(self) -> bool:
        """There is nothing to wait for."""
        return True

    def prepare(self, tell: Tell) -> None:
        """Nothing: exact answers are not looked for."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those of the model with its own data."""
        return self.original.columns


# --- an exact sampler ----------------------------------------------------------------------------------------------


class _Joint:
    """The log densities of the posteriors of many data sets at once.

    Where the prior is a chain of densities with inverses F⁻¹ of their distribution functions, the coordinate of a
    parameter x is z with x = F⁻¹(Φ(z)), in which the prior is N(0, I) and no neck is narrow; else it is θ. The
    density is that of θ, as samplers see it, times |∂θ/∂z|.
    """

    def __init__(self, target: TypedPosterior, model: Generative, data: Mapping[str, Array]):
        self.target, self.model, self.data = target, model, data
        self.mapped = model.mapped

    def parameters(self, z: Array) -> dict[str, Array]:
        """The parameters (...) at z (..., dim)."""
        assert self.mapped is not None
        out: dict[str, Array] = {}
        order = [each.name for each in self.model.bounded]
        with np.errstate(all="ignore"):
            for part in self.mapped:
                out[part.variable] = self.model.within(part, out).at(z[..., order.index(part.variable)])
        return out

    def at(self, parameters: Mapping[str, Array]) -> Array:
        """z (..., dim) where the parameters are these (...)."""
        if self.mapped is None:
            return coordinates(self.model.bounded, parameters)
        found = {}
        for part in self.mapped:
            found[part.variable] = self.model.within(part, parameters).score(parameters[part.variable])
        return np.stack([found[each.name] for each in self.model.bounded], axis=-1)

    def theta(self, z: Array) -> Array:
        """The coordinates of the posterior."""
        return z if self.mapped is None else coordinates(self.model.bounded, self.parameters(z))

    def log_density(self, z: Array, of: NDArray[np.int64]) -> Array:
        """At z (n, dim), of the posterior with these numbers (n,); −∞ where there is no value."""
        out = np.empty(len(z))
        size = max(1, _AT_ONCE // max(len(x) for x in self.target.titles.values()))
        for first in range(0, len(z), size):
            some = slice(first, first + size)
            out[some] = self._log_density(z[some], of[some])
        return np.where(np.isnan(out), -np.inf, out)

    def _log_density(self, z: Array, of: NDArray[np.int64]) -> Array:
        theta, values, stretch = z, {}, np.zeros(len(z))
        if self.mapped is not None:
            values = self.parameters(z)
            theta = coordinates(self.model.bounded, values)
            stretch = log_stretch(self.model.bounded, values) - (z**2).sum(axis=-1) / 2
            for part in self.mapped:
                stretch = stretch + np.log(self.model.within(part, values).mass)
        labels = {label: theta[:, k] for k, label in enumerate(self.target.labels)}
        # In one call, for most of a call's time is its own.
        typed, *priors = evaluate(
            [self.target.log_prior, *(part.log_density for part in self.mapped or ())], **labels, **values
        )
        columns = {
            title: self.data[title][of] if title in self.data else self.target.titles[title]
            for title in self.target.used
        }
        rows = value_of(self.target.log_row, {label: x[:, None] for label, x in labels.items()} | columns)
        rows = np.broadcast_to(rows, (len(z), self.target.n_data))
        with np.errstate(all="ignore"):
            return np.asarray(typed - sum(priors) + stretch + rows.sum(axis=1))


_CLIMB = 40
"""Newton steps, at most: from a draw of the posterior it takes about ten."""
_DIFFERENCE = 1e-4
"""Steps of differences: of second ones they lose 8 of 16 digits, and the curvature is only a scale here."""
_WIDER = 1.3
"""The factor on the standard deviations of the Gaussian at the mode, since the posterior has longer tails."""


def _peaks(joint: _Joint, z: Array) -> tuple[Array, Array]:
    """A point near the mode of each posterior (n, dim), uphill from z, and L of a Gaussian there, (n, dim, dim)."""
    n, dim = z.shape
    number, unit = np.arange(n), _DIFFERENCE * np.eye(dim)
    pairs = [(i, j) for i in range(dim) for j in range(i)]
    around = np.concatenate([np.zeros((1, dim)), unit, -unit, *[(unit[i] + unit[j])[None] for i, j in pairs]])
    scales = np.array([0.0, 1.0, 0.5, 0.2, 0.05, 0.01])
    factor = np.tile(np.eye(dim), (n, 1, 1))
    for _ in range(_CLIMB):
        f = joint.log_density((z[:, None] + around).reshape(-1, dim), np.repeat(number, len(around))).reshape(n, -1)
        up, down = f[:, 1 : dim + 1], f[:, dim + 1 : 2 * dim + 1]
        with np.errstate(invalid="ignore"):
            slope = np.nan_to_num((up - down) / (2 * _DIFFERENCE), posinf=0.0, neginf=0.0)
            curvature = np.zeros((n, dim, dim))
            curvature[:, range(dim), range(dim)] = 2 * f[:, :1] - up - down
            for m, (i, j) in enumerate(pairs):
                cross = f[:, 1 + i] + f[:, 1 + j] - f[:, 0] - f[:, 2 * dim + 1 + m]
                curvature[:, i, j] = curvature[:, j, i] = cross
        curvature = np.nan_to_num(curvature / _DIFFERENCE**2, posinf=0.0, neginf=0.0)
        size, axes = np.linalg.eigh(curvature)
        size = np.maximum(np.abs(size), 0.3)
        step = np.einsum("nij,nj,nkj,nk->ni", axes, 1 / size, axes, slope)
        step /= np.maximum(np.linalg.norm(step, axis=1, keepdims=True) / 2, 1.0)
        factor = axes / np.sqrt(size)[:, None, :] * _WIDER
        tried = z[:, None] + scales[:, None] * step[:, None]
        height = joint.log_density(tried.reshape(-1, dim), np.repeat(number, len(scales))).reshape(n, -1)
        best = height.argmax(axis=1)
        z = tried[number, best]
        if (np.linalg.norm(scales[best, None] * step, axis=1) < 1e-3).all():
            break
    return z, factor


def _slice(rng: Generator, joint: _Joint, z: Array, of: NDArray[np.int64], centre: Array, factor: Array) -> Array:
    """A step of elliptical slice sampling (Murray, Adams & MacKay 2010), with N(centre, LLᵀ) for the prior.

    With log g = log density − log N it leaves the density invariant (Nishihara, Murray & Adams 2014, section 2).
    """
    inverse = np.linalg.inv(factor)

    def log_g(x: Array, of: NDArray[np.int64]) -> Array:
        return joint.log_density(x, of) + (np.einsum("nij,nj->ni", inverse[of], x - centre[of]) ** 2).sum(axis=1) / 2

    away = z - centre[of]
    other = np.einsum("nij,nj->ni", factor[of], rng.standard_normal(z.shape))
    level = log_g(z, of) + np.log(rng.random(len(z)))
    angle = 2 * np.pi * rng.random(len(z))
    low, high = angle - 2 * np.pi, angle.copy()
    out, left = z.copy(), np.arange(len(z))
    while len(left):
        a = angle[left, None]
        tried = centre[of[left]] + away[left] * np.cos(a) + other[left] * np.sin(a)
        good = log_g(tried, of[left]) > level[left]
        out[left[good]] = tried[good]
        left = left[~good]
        low[left] = np.where(angle[left] < 0, angle[left], low[left])
        high[left] = np.where(angle[left] < 0, high[left], angle[left])
        # If the bracket has shrunk to rounding, the chain stays.
        left = left[high[left] - low[left] > 1e-12]
        angle[left] = low[left] + (high[left] - low[left]) * rng.random(len(left))
    return out


def exact(target: TypedPosterior, runs: int, seed: int = 1) -> Calibration:
    """Ranks by elliptical slice sampling, all runs at once: a sampler that is exact and has no step size.

    A step goes along an ellipse of the prior, in whose coordinates no hierarchical model has a neck, and then along one
    of the Gaussian at the mode, as data that say much need it. Chains start at θ̃, a draw of the very posterior, and so
    need no burn-in but to forget it; a mode that they never go to shows in no rank. Raises :class:`SpecError`.
    """
    _check_runs(runs)
    rng, model = np.random.default_rng(seed), generative(target)
    true = model.parameters(rng, runs)
    data = model.data(rng, true)
    good = np.all([np.isfinite(x).all(axis=1) for x in data.values()], axis=0)
    joint = _Joint(target, model, {title: x[good] for title, x in data.items()})
    n = int(good.sum())
    z = joint.at({each: x[good] for each, x in true.items()})
    theta = joint.theta(z)
    centre, factor = _peaks(joint, z)
    none = np.zeros_like(centre), np.tile(np.eye(target.dim), (n, 1, 1))
    of = np.repeat(np.arange(n), _SLICED)
    z = np.repeat(z, _SLICED, axis=0)

    def go_on(z: Array) -> Array:
        if joint.mapped is not None:
            z = _slice(rng, joint, z, of, *none)
        return _slice(rng, joint, z, of, centre, factor)

    history = []
    for _ in range(_PILOT):
        z = go_on(z)
        history.append(joint.theta(z))
    thin = int(np.ceil(_time(np.array(history).reshape(_PILOT, n, _SLICED, -1))))
    below = np.zeros((n, target.dim), dtype=np.int64)
    for _ in range(_FORGET * thin - _PILOT):
        z = go_on(z)
    for _ in range(DRAWS // _SLICED):
        for _ in range(_APART * thin):
            z = go_on(z)
        drawn = joint.theta(z).reshape(n, _SLICED, -1)
        below += (drawn < theta[:, None]).sum(axis=1)
    return Calibration(target.column_names, below, runs - n)


_SLICED = 21
"""Chains of a posterior here: more chains of fewer steps cost less where all are moved at once."""
_PILOT = 24
"""The steps from which the autocorrelation is measured; they are part of the burn-in."""


def _time(history: Array) -> float:
    """τ of θ (steps, runs, chains, dim), the largest of any coordinate: by Sokal's window, of all runs together.

    Differences of chains of one run have its autocorrelation, whatever the mean is that they have not found yet.
    """
    # A chain that goes off to infinity, because its density cannot be normalised, has no correct time.
    history = np.clip(np.nan_to_num(history[len(history) // 4 :]), -1e100, 1e100)
    apart = history - history.mean(axis=(0, 2), keepdims=True)
    variance = (apart**2).mean(axis=(0, 2))
    largest = 1.0
    for k in range(history.shape[-1]):
        tau = 1.0
        for lag in range(1, len(history) // 2):
            rho = (apart[lag:, ..., k] * apart[:-lag, ..., k]).mean(axis=(0, 2)) / np.maximum(variance[:, k], 1e-300)
            tau += 2 * float(np.mean(rho))
            if lag > 5 * tau:
                break
        largest = max(largest, tau)
    return min(largest, 20.0)


def by_quadrature(target: TypedPosterior, runs: int, seed: int = 1) -> Calibration:
    """Ranks by the exact marginal distribution functions of up to three parameters: no chain at all.

    A posterior that no box resolves is left out. That depends on its data alone, and changes no rank of the others.

    Raises :class:`SpecError`.
    """
    _check_runs(runs)
    if target.dim > FEW:
        raise SpecError("target.parameters", target.parameters, f"quadrature takes up to {FEW} parameters")
    rng, model = np.random.default_rng(seed), generative(target)
    ranks, failed = [], 0
    for _ in range(runs):
        replica, theta = _replica(target, model, rng)
        grid = None if replica is None else _quiet(partial(replica.quadrature, lambda what, share: None))
        if grid is None:
            failed += 1
            continue
        shares = [grid.marginals[k].cdf(theta[k]) for k in range(target.dim)]
        ranks.append(np.minimum(np.array(shares) * (DRAWS + 1), DRAWS).astype(np.int64))
    return Calibration(target.column_names, np.array(ranks, dtype=np.int64).reshape(-1, target.dim), failed)


def _quiet(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except (SpecError, np.linalg.LinAlgError):
        return None


def _replica(target: TypedPosterior, model: Generative, rng: Generator) -> tuple[Replica | None, Array]:
    """New data, with the θ̃ that they are of; None where they are not finite."""
    true = model.parameters(rng, 1)
    data = {title: x[0] for title, x in model.data(rng, true).items()}
    theta = coordinates(target.bounded, true)[0]
    if not all(np.isfinite(x).all() for x in (*data.values(), theta)):
        return None, theta
    return Replica.of(target, {**target.titles, **data}, theta), theta


# --- any sampler ---------------------------------------------------------------------------------------------------


def refusal(target: Any, spec: RunSpec) -> str:
    """Why there is no calibration of this; empty where there is one."""
    if not isinstance(target, TypedPosterior):
        return "calibration needs a typed posterior"
    if spec.temperature != 1:
        return "ranks are uniform at temperature 1 alone: the parameters are draws of the prior"
    if spec.sampler.key == "exact":
        return "exact draws belong to the given data; for simulated data no exact answers are known"
    if spec.make_sampler().interacting:
        return "interacting particles are not independent draws"
    if spec.make_sampler().weighs:
        return "ranks count all draws alike, and those of this sampler have weights"
    return unmade(target)


def unmade(target: TypedPosterior) -> str:
    """Why no parameters and data can be drawn of this model; empty where they can."""
    try:
        model = generative(target)
        model.prior, model.rows  # noqa: B018
    except SpecError as error:
        return error.allowed
    return ""


@dataclass
class Replicas:
    """Runs of one sampler on made data, some steps at a time.

    Chains start at θ̃, where one that draws from the posterior is at rest from the first step on. A region that no
    chain visits, such as another mode, therefore shows in no rank; what draws from another distribution does.
    """

    target: TypedPosterior
    spec: RunSpec
    """The sampler, its parameters and its gradient."""
    thin: int
    """Steps of an autocorrelation time."""
    seed: int = 1
    ranks: list[Ranks] = field(default_factory=list)
    failed: int = 0

    def __post_init__(self) -> None:
        self.model = generative(self.target)
        self._run: Run | None = None
        self._theta: Array = np.empty(0)
        self._below: Ranks = np.empty(0, dtype=np.int64)
        self._left = 0

    @property
    def done(self) -> int:
        """Runs that are over."""
        return len(self.ranks) + self.failed

    def advance(self, steps: int) -> bool:
        """Some steps of each chain, at most so many, of the run that is going on; whether it is over then."""
        if self._run is None:
            self._begin()
            return self._run is None
        run = self._run
        first, apart = _FORGET * self.thin, _APART * self.thin
        goal = first + (DRAWS // CHAINS - self._left + 1) * apart
        run.advance(min(steps, goal - run.steps))
        if run.divergence is not None:
            self.failed, self._run = self.failed + 1, None
        elif run.steps >= goal:
            self._below += (run.position < self._theta).sum(axis=0)
            self._left -= 1
            if not self._left:
                self.ranks.append(self._below)
                self._run = None
        return self._run is None

    def _begin(self) -> None:
        rng = np.random.default_rng([self.seed, self.done])
        replica, self._theta = _replica(self.target, self.model, rng)
        if replica is None:
            self.failed += 1
            return
        seed = int(rng.integers(2**32))
        self._replica = replica
        spec = replace(
            self.spec,
            target=replica.choice,
            n_chains=CHAINS,
            seed=seed,
            burn_in=0,
            thin=1,
            n_steps=1,
            start=tuple(map(float, self._theta)),
            momentum=(),
            changes=(),
        )
        self._run = _quiet(lambda: Run(spec))
        self._below, self._left = np.zeros(self.target.dim, dtype=np.int64), DRAWS // CHAINS
        if self._run is None or self._run.divergence is not None:
            self.failed, self._run = self.failed + 1, None

    def found(self) -> Calibration:
        """The ranks so far."""
        ranks = np.array(self.ranks, dtype=np.int64).reshape(-1, self.target.dim)
        return Calibration(self.target.column_names, ranks, self.failed)


def thinning(run: Run) -> int | None:
    """The largest autocorrelation time of a run, in steps; None where it is not known yet."""
    times = [tau_int(run.statistics, k) for k in range(run.target.dim)]
    return max(1, int(np.ceil(max(times)))) if np.isfinite(times).all() else None


def of_sampler(target: TypedPosterior, spec: RunSpec, runs: int, seed: int = 1, thin: int | None = None) -> Calibration:
    """Ranks of any sampler, with the autocorrelation time of a run on the table itself. Raises :class:`SpecError`."""
    _check_runs(runs)
    why = refusal(target, spec)
    if why:
        raise SpecError("sampler", spec.sampler.key, why)
    if thin is None:
        pilot = Run(replace(spec, n_chains=CHAINS, burn_in=0, changes=()))
        while thin is None and pilot.steps < 100 * MAX_THIN and pilot.divergence is None:
            pilot.advance(max(pilot.steps, 1000))
            thin = thinning(pilot)
    if thin is None or thin > MAX_THIN:
        raise SpecError(
            "sampler",
            spec.sampler.key,
            f"its chains diverge, or are correlated over more than {MAX_THIN:,} steps; another step size is needed",
        )
    replicas = Replicas(target, spec, thin, seed)
    while replicas.done < runs:
        replicas.advance(10**9)
    return replicas.found()


def _check_runs(runs: int) -> None:
    if not 1 <= runs <= MAX_RUNS:
        raise SpecError("runs", runs, f"allowed are 1 to {MAX_RUNS:,}")


def as_text(found: Calibration) -> str:
    """A line for each parameter: p and the histogram of its ranks."""
    lines = [f"{len(found.ranks):,} runs" + (f", and {found.failed:,} that diverged" if found.failed else "")]
    lines += [
        f"{name:<16} p = {found.p_value(k):<8.2g} {' '.join(f'{n:3d}' for n in found.counts(k))}"
        for k, name in enumerate(found.names)
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the ranks of a preset of the typed posterior."""
    parser = Parser(prog="python -m sgmcmc_lab.samplers.diagnostics.calibration", description=__doc__)
    parser.add_argument("preset", choices=PRESETS, help="a model of the typed posterior")
    parser.add_argument("--runs", type=int, default=320, help="simulated data sets")
    parser.add_argument("--rows", type=int, default=20, help="of each, evenly spread over the table")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--by",
        default="slice",
        metavar="HOW",
        help="slice, an exact sampler; quadrature, to three parameters; or a sampler as in a link, sgld(step_size:0.001)",
    )
    options = parser.parse_args(arguments)
    try:
        if options.rows < 1:
            raise SpecError("rows", options.rows, "allowed are 1 or more")
        print(as_text(calibrate(options.preset, options.runs, options.rows, options.seed, options.by)))
    except SpecError as error:
        parser.error(str(error))
    return 0


def calibrate(preset: str, runs: int, rows: int, seed: int = 1, by: str = "slice") -> Calibration:
    """Ranks of a preset's parameters. Raises :class:`SpecError`."""
    spec = RunSpec.of("posterior", "sgld")
    values = TypedPosterior.completed(spec.target.values(), {"table": preset})
    target = TypedPosterior(**values)
    if by in ("slice", "quadrature"):
        return (exact if by == "slice" else by_quadrature)(with_rows(target, rows), runs, seed)
    choice = {"key": "posterior", "params": values}
    experiment, messages = Experiment.from_query(f"lane={by}", Experiment.from_dict({"target": choice}))
    if messages:
        raise SpecError("by", by, messages[0])
    return of_sampler(with_rows(target, rows), experiment.runs()[0], runs, seed)


if __name__ == "__main__":
    sys.exit(main())

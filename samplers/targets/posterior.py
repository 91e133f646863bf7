"""A posterior that a person types: names, a prior, and the log density of one row of a table."""

import itertools
import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.expressions import ZERO, Expression, apply, displayed, name, parse, work_limit
from sgmcmc_lab.samplers.expressions.densities import DENSITIES
from sgmcmc_lab.samplers.expressions.functions import FUNCTIONS
from sgmcmc_lab.samplers.expressions.grammar import tokens
from sgmcmc_lab.samplers.expressions.machine import program
from sgmcmc_lab.samplers.expressions.native import Loop
from sgmcmc_lab.samplers.expressions.program import postfix
from sgmcmc_lab.samplers.parameters import Formula, Option, Source, SpecError, Value
from sgmcmc_lab.samplers.requirements import DATA, MODE
from sgmcmc_lab.samplers.targets import newton, slices
from sgmcmc_lab.samplers.targets.at_temperature import AtTemperature
from sgmcmc_lab.samplers.targets.base import Array, Column, FirstSteps, Fit, Target, Tell, Whitening, subscript, unknown
from sgmcmc_lab.samplers.targets.bounded import MAX_BOUND, Bounded, declarations
from sgmcmc_lab.samplers.targets.boxed import FEW, Boxed, NoAgreementError, NoPeakError, Quadrature
from sgmcmc_lab.samplers.targets.cells import Cells, Marginal
from sgmcmc_lab.samplers.targets.long_run import CHAINS, Reference, hmc
from sgmcmc_lab.samplers.targets.own import OfTable, Table, held, keep
from sgmcmc_lab.samplers.targets.posterior_data import PRESETS, of_table
from sgmcmc_lab.samplers.targets.posterior_rows import Programs, batch, gradient, potential
from sgmcmc_lab.samplers.targets.stan import program as stan_program

MAX_ENERGY_WORK = 5_000_000
"""Instructions that an energy of all rows and its gradient may take, some 6 ms; a function counts as several."""
MAX_FIRST_WORK = 200_000
"""Where they take more the climb to the mode begins at the mode of some of the rows, of which they take as much."""


def as_name(title: str) -> str:
    """A column's title as it stands in a formula: letters, digits and underscores, and no function or coordinate."""
    plain = re.sub(r"[^A-Za-z0-9]+", "_", title).strip("_")
    taken = plain in FUNCTIONS or plain in DENSITIES or plain == "pi" or re.fullmatch(r"theta[0-9]+", plain)
    return plain if plain[:1].isalpha() and not taken else f"x_{plain}"


def as_names(titles: Sequence[str]) -> tuple[str, ...]:
    """The names of columns in formulas, with a number after a name that an earlier column has."""
    out: list[str] = []
    for title in titles:
        plain = called = as_name(title)
        number = 1
        while called in out:
            number += 1
            called = f"{plain}_{number}"
        out.append(called)
    return tuple(out)


MAX_SHORT_RUN_WORK = 5_000
"""Instructions of all rows at which there is a short run."""
MAX_TRIES_WORK = 25 * 10**7
"""Instructions of all step sizes that a short run tries: some .3 seconds, for which a page waits."""
_LEAPS = 8
_WINDOWS, _WINDOW = 3, 100
"""Windows of a short run, each with the covariance of the one before; and draws of a chain in each."""
STANDARDISED, TYPED = "standardised", "typed"
_AFAR, _SWEEPS = 64, 10
"""Draws of the prior from which modes are climbed to, and sweeps of the chains that make them."""
_OUTWARD, _BISECTIONS = 60, 80
"""An edge is looked for up to 2⁶⁰ standard deviations from a place inside, and its place halved so often."""
_NEAR_EDGE, _STEEP = 1e-6, 50.0
"""So near to an edge, in standard deviations, U is not higher by more; where numbers overflow it is."""
MAX_SPREAD = 1e3
"""The largest standard deviation of a coordinate that a short run may find, in units of that at the mode or 1."""


class TypedPosterior(OfTable, Boxed):
    """log p(θ | data) = log prior(θ) + Σ log p(row i | θ) + constant, both typed, with a table of one's own.

    The names of the parameters may have bounds: θ = log s gives s > 0, θ = log p/(1 − p) gives 0 < p < 1, and the log
    of the Jacobian is added, so that the prior is one of s and p. The columns of the table go by their titles.
    Derivatives are symbolic.

    Samplers move in z with θ = θ̂ + Lz, where θ̂ is the mode and LLᵀ the inverse curvature there: a step is in units of
    the posterior's spread, whatever those of the data are. Draws, starts and answers are θ.

    With up to three parameters the exact answers come from quadrature in a box that holds the posterior; beyond, and
    where the box does not resolve it, from a long run of Hamiltonian Monte Carlo.
    """

    key = "posterior"
    title = "Typed posterior"
    source = "Typed by you"
    provides = DATA | {MODE}
    two_kinds = False
    least_columns = 1
    every_level = True
    watched = True
    built_in = {name: preset.table for name, preset in PRESETS.items()}
    potential, gradient, batch = potential, gradient, batch

    table = Source(
        default="doses",
        objects=list(built_in),
        label="Data",
        doc="A table, whose columns go into the formulas by their titles, and a model of it to begin with. Or bring a CSV file of your own.",
    )
    parameters = Formula(
        PRESETS["doses"].parameters,
        tex="\\theta",
        label="Parameters",
        doc="Names with commas between them, at most 10, each with bounds or without: a, s > 0, 0 < p < 1.",
    )
    prior = Formula(
        PRESETS["doses"].prior,
        tex=r"\log p(\theta)",
        label="Prior",
        doc="The log density of the parameters before there are data: a formula of them, with densities as in normal_lpdf(a, 0, 5).",
    )
    row = Formula(
        PRESETS["doses"].row,
        tex=r"\log p(y_i \mid \theta)",
        label="Each row",
        doc="The log density of one row of the table: a formula of the parameters and of columns by their titles.",
    )
    curve = Formula(
        PRESETS["doses"].curve,
        tex="f(x)",
        label="Curve",
        doc="The curve over the data: a formula of the parameters and of one column. Empty: nothing is drawn.",
    )

    coordinates = Option(
        default=STANDARDISED,
        objects=[STANDARDISED, TYPED],
        label="Samplers move in",
        doc="Standardised: z with θ = θ̂ + Lz, where θ̂ is the mode and LLᵀ the inverse curvature there, so that step sizes, friction and momenta are in units of the posterior's spread. Typed: θ itself, in the units of the table.",
    )

    @classmethod
    def completed(cls, values: Mapping[str, Value], changed: Mapping[str, Value]) -> dict[str, Value]:
        """Another table brings the formulas of its preset; to one's own go those that are there, or those of a line."""
        made = super().completed(values, changed)
        if set(changed) != {"table"}:
            return made
        preset = PRESETS.get(str(changed["table"]))
        if preset is not None:
            return made | preset._replace(table=made["table"])._asdict()  # type: ignore[arg-type]
        try:
            cls(**made)
        except SpecError:
            data = held(made["table"])
            return made if data is None else made | of_table(as_names((*data.names, data.answer)))
        return made

    def family_at(self, temperature: float) -> "TemperedPosterior":
        found = TemperedPosterior.made(self, temperature)
        try:
            found.check()
        except SpecError as error:
            raise SpecError("temperature", temperature, f"{self.title} there: {error.allowed.rstrip('.')}") from None
        return found

    @cached_property
    def bounded(self) -> tuple[Bounded, ...]:
        """The parameters of the model. Raises :class:`SpecError`."""
        return declarations(self.parameters, "target.parameters")

    @cached_property
    def titles(self) -> dict[str, Array]:
        """The columns of the table (N,), by their names in formulas. Raises :class:`SpecError`."""
        data = self.contents
        out: dict[str, Array] = {}
        for called, values in zip(as_names((*data.names, data.answer)), (*data.x.T, data.y), strict=True):
            out[called] = np.asarray(values)
        for each in self.bounded:
            if each.name in out:
                raise SpecError(
                    "target.parameters", each.name, "a column of the table has this name; allowed is another one"
                )
        return out

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the coordinates in expressions."""
        return tuple(f"theta{k + 1}" for k in range(len(self.bounded)))

    @cached_property
    def _values(self) -> dict[str, Expression]:
        """The parameters of the model, of the coordinates."""
        return {each.name: each.value(name(label)) for each, label in zip(self.bounded, self.labels, strict=True)}

    def _parsed(self, text: str, names: tuple[str, ...], field: str) -> Expression:
        """The formula, of the coordinates and of columns. Raises :class:`SpecError`."""
        typed = parse(text, names, f"target.{field}")
        try:
            return typed.substitute(self._values)
        except SpecError as error:
            raise SpecError(f"target.{field}", text, error.allowed) from None

    @cached_property
    def log_prior(self) -> Expression:
        """The log density of the coordinates before there are data: the prior's, and the Jacobian's."""
        total = self._parsed(self.prior, tuple(self._values), "prior")
        try:
            return total + sum(
                (each.log_jacobian(name(label)) for each, label in zip(self.bounded, self.labels, strict=True)), ZERO
            )
        except SpecError as error:
            raise SpecError("target.prior", self.prior, error.allowed) from None

    @cached_property
    def log_row(self) -> Expression:
        """The log density of one row, of the coordinates and of columns."""
        return self._parsed(self.row, (*self._values, *self.titles), "row")

    @cached_property
    def used(self) -> tuple[str, ...]:
        """The columns that the log density of a row has in it."""
        return tuple(title for title in self.titles if title in self.log_row.names)

    @property
    def tex(self) -> str:  # type: ignore[override]
        r"""U(θ) in LaTeX."""
        plain = {each.name: each.name for each in self.bounded}
        prior = displayed(self.prior, tuple(plain), "target.prior")
        row = displayed(self.row, (*plain, *self.titles), "target.row")
        jacobian = r" - \log\lvert J\rvert" if any(each.jacobian for each in self.bounded) else ""
        return rf"U(\theta) = -\Bigl({prior}\Bigr) - \sum_{{i=1}}^{{N}}\Bigl({row}\Bigr){jacobian}"

    def check(self) -> None:
        self.titles  # noqa: B018  of the table and the parameters no two have one name
        with work_limit():
            self._check_formulas()
        at_start = self._at(self.start_at)
        if not (np.isfinite(at_start[0]) and np.isfinite(at_start[1]).all()):
            where = ", ".join(
                f"{each.name} = {value:.3g}"
                for each, value in zip(self.bounded, self.constrained(self.start_at), strict=True)
            )
            field, what = self._not_finite(self.start_at)
            raise SpecError(
                f"target.{field}",
                getattr(self, field),
                f"{what} has no finite value at {where}; allowed is one that has",
            )
        self.curvature  # noqa: B018  the posterior has a mode, or is refused here

    def _not_finite(self, theta: Array) -> tuple[str, str]:
        """The field of the formula that is not finite at θ (dim,), or has a slope that is not, and what of it is."""
        given = {label: theta[k] for k, label in enumerate(self.labels)}
        rows = given | {title: self.titles[title] for title in self.used}
        with np.errstate(all="ignore"):
            value = np.isfinite(self.log_likelihood(theta))
            slopes = np.isfinite([np.broadcast_to(one.evaluate(**rows), value.shape) for one in self._row_slopes])
            prior = np.isfinite(self.log_prior.evaluate(**given))
        if not value.all():
            return "row", f"in row {int(np.argmin(value)) + 1} of the table it"
        if not prior:
            return "prior", "it"
        if not slopes.all():
            each, row = np.unravel_index(np.argmin(slopes), slopes.shape)
            return "row", f"in row {row + 1} of the table its derivative by {self.bounded[each].name}"
        return "prior", "its derivative"

    def _check_formulas(self) -> None:
        """Read all that is typed, and work out what is run of it. Raises :class:`SpecError`."""
        log_prior, log_row = self.log_prior, self.log_row
        missing = [
            each.name
            for each, label in zip(self.bounded, self.labels, strict=True)
            if label not in log_prior.names | log_row.names
        ]
        if missing:
            raise SpecError(
                "target.parameters",
                missing[0],
                "neither the prior nor the row has it in it; allowed are parameters that are used",
            )
        if not self.used:
            raise SpecError(
                "target.row", self.row, f"it has no column of the table in it; the columns are {', '.join(self.titles)}"
            )
        if self.curve != "":
            self._drawn()
        try:
            self._prior_slopes  # noqa: B018  they are few enough
        except SpecError as error:
            raise SpecError("target.prior", self.prior, error.allowed) from None
        try:
            work = self.gradient_work
            self.params  # noqa: B018  the programs
        except SpecError as error:
            raise SpecError("target.row", self.row, error.allowed) from None
        if work > MAX_ENERGY_WORK:
            raise SpecError(
                "target.row",
                self.row,
                f"it takes {work:,} instructions for all {self.n_data:,} rows; allowed are {MAX_ENERGY_WORK:,}: a shorter formula, or fewer rows, are needed",
            )

    @cached_property
    def gradient_work(self) -> int:
        """Instructions of a gradient of all rows."""
        names = (*self.labels, *self.used)
        return (postfix([self.log_row], names).cost + postfix(self._row_slopes, names).cost) * self.n_data

    @cached_property
    def _prior_slopes(self) -> list[Expression]:
        return [-self.log_prior.diff(label) for label in self.labels]

    @cached_property
    def _row_slopes(self) -> list[Expression]:
        return [-self.log_row.diff(label) for label in self.labels]

    @cached_property
    def hierarchy(self) -> dict[str, tuple[Expression, Expression]]:
        """m and t of each coordinate whose prior has normal_lpdf(θ, m, t), where t is not a number.

        None is in the m or t of another.
        """
        words = [word for _, word in tokens(self.prior)]
        found: dict[str, tuple[Expression, Expression]] = {}
        within: set[str] = set()
        free = {
            each.name: label
            for each, label in zip(self.bounded, self.labels, strict=True)
            if self._values[each.name] == name(label)
        }
        for at, word in enumerate(words):
            if word != "normal_lpdf" or words[at + 2] not in free or words[at + 3] != ",":
                continue
            label, arguments, depth = free[words[at + 2]], [""], 1
            for each in words[at + 4 :]:
                depth += (each == "(") - (each == ")")
                if depth == 0:
                    break
                if each == "," and depth == 1:
                    arguments.append("")
                else:
                    arguments[-1] += f" {each}"
            m, t = (self._parsed(text, tuple(self._values), "prior") for text in arguments)
            if t.constant is None and not (m.names | t.names) & {label, *found} and label not in within:
                found[label] = m, t
                within |= m.names | t.names
        return found

    @cached_property
    def edges(self) -> dict[str, Bounded]:
        """Parameters with bounds that nobody declared, beyond which the density is 0, by their coordinates."""
        return self._edges(np.array([self.start_at, self.mode]), np.sqrt(np.diag(np.linalg.inv(self.curvature))))

    def _edges(self, inner: Array, spreads: Array) -> dict[str, Bounded]:
        """The edges that are seen from each of these places (n, dim), at distances of so many ``spreads`` (dim,).

        The density has to end at the same value from all of them, and not only where numbers overflow.
        """
        found: dict[str, Bounded] = {}
        inner = inner[np.isfinite(super()._energies(inner))]
        for i, (each, label) in enumerate(zip(self.bounded, self.labels, strict=True)):
            if self._values[each.name] != name(label) or not len(inner):
                continue
            low, high = (self._edge(inner, i, sign * float(spreads[i])) for sign in (-1, 1))
            if low is not None or high is not None:
                found[label] = Bounded(each.name, -np.inf if low is None else low, np.inf if high is None else high)
        return found

    def _declared(self, edges: Mapping[str, Bounded]) -> str:
        """The parameters with these bounds, as they are typed."""
        return ", ".join(
            edges.get(label, each).declaration for each, label in zip(self.bounded, self.labels, strict=True)
        )

    def _edge(self, inner: Array, i: int, step: float) -> float | None:
        """Where the density ends in the direction of ``step`` along coordinate i from each of these places (n, dim)."""
        heights = super()._energies(inner)

        def beyond(distance: Array) -> Array:
            """Whether the density has ended at these distances (n,) from the places."""
            there = inner.copy()
            there[:, i] += distance
            return np.isinf(super(TypedPosterior, self)._energies(there))

        out = step * 2.0 ** np.arange(_OUTWARD)
        ended = np.array([beyond(np.full(len(inner), distance)) for distance in out])
        if not ended[-1].all():
            return None
        # From the farthest place that has a density: before it there may be a hole.
        last = _OUTWARD - 1 - np.argmin(ended[::-1], axis=0)
        first = ended.all(axis=0)
        inside, outside = (
            np.where(first, 0.0, out[last]),
            np.where(first, out[0], out[np.minimum(last + 1, _OUTWARD - 1)]),
        )
        for _ in range(_BISECTIONS):
            middle = (inside + outside) / 2
            ended = beyond(middle)
            inside, outside = np.where(ended, inside, middle), np.where(ended, middle, outside)
        ends = inner[:, i] + (inside + outside) / 2
        within = inner.copy()
        within[:, i] = ends - _NEAR_EDGE * step
        overflows = super()._energies(within) > heights + _STEEP
        near = 1e-9 * max(abs(step), float(np.abs(ends).max()))
        if overflows.any() or np.ptp(ends) > near or abs(ends[0]) > MAX_BOUND:
            return None
        return next(
            (short for digits in range(16) if abs((short := round(float(ends[0]), digits) + 0.0) - ends[0]) <= near),
            float(ends[0]),
        )

    def _elsewhere(self) -> "Moved | None":
        """The same posterior in coordinates that suit a run or quadrature better; None where there are none."""
        if self.edges:
            return self._within()
        # A posterior whose mass is not around a highest point.
        return self._not_centred() if not self._has_mode and self.hierarchy and self.dim > FEW else None

    def _found_in(self, other: "Moved", tell: Tell, rough: bool) -> Reference:
        draws = other.theta(other._found(tell, rough).draws)
        self._run_in, self._quadrature, self._search = other, None, other._search
        if other._quadrature is not None:
            self._quadrature = other._quadrature
            return Reference(draws, 1.0, float(draws.shape[1]))
        return Reference.of(draws, self.values(draws))

    def _not_centred(self) -> "NotCentred":
        return NotCentred(**self._formulas(), curve="", coordinates=TYPED)

    def _within(self) -> "Within":
        return Within.of(self)

    def _formulas(self) -> dict[str, Value]:
        return {field: getattr(self, field) for field in ("table", "parameters", "prior", "row")}

    _run_in: "Moved | None" = None
    """The target that supplies the exact answers, if they are not found in these coordinates."""

    def _starts(self) -> list[tuple[Array, Array | None]]:
        every = -(-self.gradient_work // MAX_FIRST_WORK)
        if every == 1:
            return super()._starts()
        data = self.contents
        some = keep(Table(data.names, data.x[::every], data.answer, data.y[::every]))
        given = {field: getattr(self, field) for field in ("parameters", "prior", "row")}
        try:
            found = type(self)(table=some.key, curve="", coordinates=TYPED, **given)
        except SpecError:
            return super()._starts()
        inverse = np.linalg.inv(found.curvature) / every
        return [(mode, (inverse + inverse.T) / 2) for mode in found._modes]

    def _energies(self, theta: Array) -> Array:
        out = super()._energies(theta)
        if np.isneginf(out).any():
            at = theta[np.argmax(np.isneginf(out))]
            of_prior = bool(np.isposinf(self.log_prior.evaluate(**dict(zip(self.labels, at, strict=True)))))
            field, text = ("prior", self.prior) if of_prior else ("row", self.row)
            raise SpecError(f"target.{field}", text, self.unbounded_at(at))
        return out

    def _found(self, tell: Tell, rough: bool = False) -> Reference:
        found, other = None, self._elsewhere()
        if other is not None:
            try:
                found = self._found_in(other, tell, rough)
            except NoAgreementError:
                raise
            except SpecError:
                # Too large there, or without a value at its start: in these coordinates, then.
                pass
        if found is None:
            self._run_in = None
            found = super()._found(tell, rough)
        # A chain that has come to an infinite density stays there.
        self._energies(np.ascontiguousarray(found.draws[:, -1]))
        return found

    def unbounded_at(self, theta: Array) -> str:
        where = ", ".join(
            f"{each.name} = {value:.6g}" for each, value in zip(self.bounded, self.constrained(theta), strict=True)
        )
        return f"its log density is +∞ at {where}; a density that is finite everywhere is needed"

    def constrained(self, theta: Array) -> list[Array]:
        """The values of the model's parameters at θ (..., dim), each (...)."""
        given = {label: theta[..., k] for k, label in enumerate(self.labels)}
        return [self._values[each.name].evaluate(**given) for each in self.bounded]

    def log_likelihood(self, theta: Array) -> Array:
        """log p(row i | θ) at θ (..., dim), (..., N)."""
        given = {label: theta[..., k, None] for k, label in enumerate(self.labels)} | {
            title: self.titles[title] for title in self.used
        }
        return self.log_row.evaluate(**given)

    def stan(self) -> str:
        """The model as a program in Stan, whose posterior is that of the parameters within their bounds."""
        return stan_program(self.bounded, self.titles, self.prior, self.row)

    @property
    def n_data(self) -> int:  # type: ignore[override]
        return len(self.contents.y)

    @cached_property
    def start_at(self) -> Array:  # type: ignore[override]
        return np.zeros(len(self.bounded))

    def start(self) -> Array:
        # In the tail, and in the picture: 0 may be further away than a chain goes in a lesson.
        if self.whitening is not None:
            return self.whitening.theta(np.full(self.dim, 2.0))
        return np.asarray(self.mode + 2 * np.sqrt(np.diag(np.linalg.inv(self.curvature))))

    def starts(self) -> Array:
        lowest, away = self._at(self.mode)[0], self.start() - self.mode
        modes: list[Array] = [self.mode]
        for place in self._modes if self._has_mode else []:
            # The region in which U is higher by 10 has nearly no mass. Climbs to one mode end at places that are close.
            near = min(float((place - mode) @ self.curvature @ (place - mode)) for mode in modes) < 1
            if not near and self._at(place)[0] < lowest + 10 and newton.positive(self._curvature_at(place)):
                modes.append(place)
        return np.array(modes) + away

    @cached_property
    def whitening(self) -> Whitening | None:
        return Whitening(self.mode, newton.inverse_factor(self.curvature)) if self.coordinates == STANDARDISED else None

    @cached_property
    def sampled(self) -> Target:
        return self if self.whitening is None else Standardised(self, self.whitening)

    @property
    def first_steps(self) -> FirstSteps:
        """Those of the coordinates that samplers move in."""
        found = super().first_steps if self.whitening is None else self.sampled.first_steps
        assert found is not None, "every density that is typed has a mode"
        return found

    looked_from = "draws of the prior"

    def afar(self) -> Array:
        given = self.log_prior

        def log_prior(theta: Array) -> Array:
            return given.evaluate(**{label: theta[:, k] for k, label in enumerate(self.labels)})

        return slices.draws(log_prior, self.start_at, _AFAR, _SWEEPS, np.random.default_rng(3))

    @cached_property
    def _peak(self) -> tuple[Array, Array]:
        try:
            mode, curvature = super()._peak
        except NoPeakError:
            if self.gradient_work > MAX_SHORT_RUN_WORK:
                edges = self._edges(self.start_at[None], np.ones(self.dim))
                if edges:
                    raise SpecError(
                        "target.parameters",
                        self.parameters,
                        f"the density ends at a bound that is not declared, and is highest there; type {self._declared(edges)}",
                    ) from None
                raise
            self._has_mode = False
            mean, precision, _ = self._short_run(np.ones(self.dim))
            self._modes = [mean]
            return mean, precision
        # Of few coordinates the quadrature sees what is far from the mode.
        if self.dim <= FEW or self.gradient_work > MAX_SHORT_RUN_WORK:
            return mode, curvature
        mean, precision, energy = self._short_run(np.sqrt(np.diag(np.linalg.inv(curvature))))
        # Of a Gaussian U is dim/2 above its least, with the standard deviation √(dim/2).
        self._has_mode = bool(energy - self._at(mode)[0] < self.dim / 2 + 6 * np.sqrt(self.dim / 2))
        return (mode, curvature) if self._has_mode else (mean, precision)

    _has_mode = True
    """Whether the mass is around a highest point."""

    def _short_run(self, spreads: Array) -> tuple[Array, Array, float]:
        """Mean and inverse covariance of a short run, and its mean energy; ``spreads`` (dim,) are those at a mode.

        They stand for the mode and the curvature of a posterior that is proper and has no highest point, or one far
        from where its mass is: the density of means around one of them, whose spread is unknown, has none where that
        spread goes to 0.
        """
        jit.prepare([hmc, self.potential, self.gradient])
        rng, params = np.random.Generator(np.random.SFC64(2)), self.without_draws()
        # Around a mode that holds little of the mass they may be far too small.
        units = np.maximum(spreads, 1.0)
        mean, factor, kept = self.start_at, np.diag(units), np.empty((_WINDOW, CHAINS, self.dim))
        draws, spread = kept.reshape(-1, self.dim), factor
        position = 0.3 * rng.standard_normal((CHAINS, self.dim))
        left = MAX_TRIES_WORK // (_WINDOW * CHAINS * (_LEAPS + 1) * self.gradient_work)
        for _ in range(_WINDOWS):
            step_size, share = 0.5, 0.0
            while share < 0.7 and step_size > 1e-4 and left > 0:
                step_size, left = step_size / 1.6, left - 1
                share = hmc(
                    rng, position, self.potential, self.gradient, params, mean, factor, step_size, _LEAPS, kept
                ) / (_WINDOW * CHAINS)
            spread = np.atleast_2d(np.cov(draws.T))
            if not np.isfinite(spread).all() or (np.sqrt(np.diag(spread)) / units).max() > MAX_SPREAD:
                raise SpecError(
                    "target.prior",
                    self.prior,
                    "no highest point of the posterior is found, and a short run leaves every bound: perhaps it cannot be normalised; a prior that falls off is needed",
                )
            # A little of the unit matrix, for so few draws may lie in a plane.
            spread = 0.95 * spread + 0.05 * np.diag(np.diag(spread)) + 1e-6 * np.diag(units**2)
            mean, factor = draws.mean(axis=0), np.ascontiguousarray(np.linalg.cholesky(spread))
            position = np.ascontiguousarray(np.linalg.solve(factor, (kept[-1] - mean).T).T)
        return mean, np.asarray(np.linalg.inv(spread)), float(self._energies(draws).mean())

    @cached_property
    def _programs(self) -> Programs:
        both = (*self.labels, *self.used)
        return Programs(
            program([-self.log_prior], self.labels),
            program([-self.log_row], both),
            program(self._prior_slopes, self.labels),
            program(self._row_slopes, both),
        )

    @cached_property
    def _rows(self) -> Array:
        """The columns that are used, (N, columns)."""
        return np.column_stack([self.titles[title] for title in self.used])

    @cached_property
    def params(self) -> Array:  # type: ignore[override]
        return self._programs.packed(self._rows)

    def whitened_params(self, whitening: Whitening) -> Array:
        """The numbers that the compiled functions read in coordinates z, with the exact draws of z."""
        params, draws = self.whitened_without_draws(whitening), whitening.z(self.exact_draws())
        return np.concatenate([params[:-1], [len(draws)], draws.ravel(), params[-1:]])

    def whitened_without_draws(self, whitening: Whitening) -> Array:
        """The numbers that the compiled functions read in coordinates z, without exact draws."""
        params = self._programs.packed(self._rows, whitening)
        return np.append(params, len(params))

    def packed(self) -> Array:
        # The machine's memory, and the addresses of native code, are a run's own.
        return self._packed.copy()

    def native(self) -> dict[int, Loop]:
        return self._programs.native(self.n_data)

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        return tuple(each.coordinate for each in self.bounded)

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(f"θ{subscript(k + 1)} {each.coordinate}" for k, each in enumerate(self.bounded))

    def _drawn(self) -> tuple[Expression, str]:
        """The curve over the data, and the column against which it is drawn. Raises :class:`SpecError`."""
        drawn = self._parsed(self.curve, (*self._values, *self.titles), "curve")
        columns = [title for title in self.titles if title in drawn.names]
        if len(columns) != 1:
            raise SpecError(
                "target.curve",
                self.curve,
                f"it has {len(columns)} columns of the table in it; allowed is one of {', '.join(self.titles)}",
            )
        return drawn, columns[0]

    def fit(self) -> Fit | None:
        if self.curve == "":
            return None
        drawn, column = self._drawn()
        data = self.contents

        def curves(theta: Array, x: Array) -> Array:
            return drawn.evaluate(**{label: theta[..., k] for k, label in enumerate(self.labels)}, **{column: x})

        return Fit.of(np.column_stack([self.titles[column], data.y]), (column, data.answer), curves)

    def facts(self) -> Mapping[str, str]:
        jacobians = [
            f"θ{subscript(k + 1)} = {each.coordinate}, whose Jacobian adds {each.jacobian} to the log density"
            for k, each in enumerate(self.bounded)
            if each.jacobian
        ]
        said = {"Data": f"{self.n_data:,} rows; columns {', '.join(itertools.islice(self.titles, 12))}"}
        if self.whitening is not None:
            said["Samplers"] = (
                "they move in z with θ = θ̂ + Lz, of which one unit is one standard deviation near the mode: step sizes, friction and momenta are those of z, draws and starts are θ"
            )
        if jacobians:
            said["Bounds"] = "; ".join(jacobians)
        exact = dict(super().facts())
        if self._run_in is not None:
            exact["Exact answers"] += f"; found {self._run_in.in_words}"
        if self.edges:
            said["Edges"] = "the density ends at a bound that is not declared; samplers need it: type "
            said["Edges"] += self._declared(self.edges)
        if self.by_quadrature is None and not (self._run_in or self)._has_mode:
            said["Caution"] = (
                "the mass is not around a highest point: the run may miss a narrow part of it, and be further off than it says"
            )
        return {**said, **exact}

    tried_at = (
        {
            "table": "outliers",
            "parameters": "a, b, s > 0",
            "prior": "normal_lpdf(a, 0, 3) + normal_lpdf(b, 0, 3) + exponential_lpdf(s, 1)",
            "row": "student_t_lpdf(y, 4, a + b*x, s)",
            "curve": "a + b*x",
        },
        {
            "table": "counts",
            "parameters": "a, 0 < p < 1",
            "prior": "normal_lpdf(a, 0, 3) + beta_lpdf(p, 2, 2)",
            "row": "log_mix(p, poisson_log_lpmf(y, a), poisson_log_lpmf(y, a + x))",
            "curve": "",
        },
    )
    drawn_at = {"prior": "normal_lpdf(a, 0, 1) + normal_lpdf(b, 0, 1)"}

    def textbook_slope(self, theta: Array, datum: int) -> Array:
        given = {label: theta[k] for k, label in enumerate(self.labels)}
        row = {title: self.titles[title][datum] for title in self.used}
        prior = [float(self.log_prior.diff(label).evaluate(**given)) for label in self.labels]
        one = [float(self.log_row.diff(label).evaluate(**given, **row)) for label in self.labels]
        return -np.array(prior) - self.n_data * np.array(one)


class Standardised(Target):
    """The distribution of z where θ = θ̂ + Lz has a typed posterior; near its mode, 0, it is like N(0, I)."""

    title = TypedPosterior.title
    provides = TypedPosterior.provides
    potential, gradient, batch, draw = (
        TypedPosterior.potential,
        TypedPosterior.gradient,
        TypedPosterior.batch,
        TypedPosterior.draw,
    )

    def __init__(self, of: TypedPosterior, whitening: Whitening):
        super().__init__()
        self.of, self.by = of, whitening

    @property
    def dim(self) -> int:
        return self.of.dim

    def data(self) -> NDArray[np.int64]:
        return self.of.data()

    @cached_property
    def mode(self) -> Array:
        return np.zeros(self.dim)

    @cached_property
    def _packed(self) -> Array:
        return self.of.whitened_params(self.by)

    def packed(self) -> Array:
        return self._packed.copy()

    def without_draws(self) -> Array:
        return self.of.whitened_without_draws(self.by)

    def native(self) -> dict[int, Loop]:
        return self.of.native()

    def start(self) -> Array:
        return self.by.z(self.of.start())

    @cached_property
    def first_steps(self) -> FirstSteps:
        """For curvatures near 1, and the noise at the mode of ten data points."""
        slopes = self.of.slopes_at(self.by.centre) @ self.by.factor
        return FirstSteps.of(1.0, float(slopes.var(axis=0).max()) / 10)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return tuple(
            Column(f"z{subscript(k + 1)}", -7.5, 7.5, unknown, 0.0, 1.0, shown=(-3.6, 3.6)) for k in range(self.dim)
        )

    def log_density(self, theta: Array) -> Array:
        return self.of.log_density(self.by.theta(theta)) + float(np.log(np.diag(self.by.factor)).sum())

    def textbook_slope(self, theta: Array, datum: int) -> Array:
        return np.asarray(self.of.textbook_slope(self.by.theta(theta), datum) @ self.by.factor)


class Moved(TypedPosterior):
    """A typed posterior in coordinates z that suit a run or quadrature better, for its exact answers alone.

    The logarithm of |dθ/dz| is added to the log density.
    """

    @property
    @abstractmethod
    def in_words(self) -> str:
        """These coordinates, after "found"."""

    @property
    @abstractmethod
    def moved(self) -> Mapping[str, Expression]:
        """θ of the coordinates here, by their names, where it is another one."""

    @property
    @abstractmethod
    def log_volume(self) -> Expression:
        """log |dθ/dz|."""

    @cached_property
    def log_prior(self) -> Expression:
        return super().log_prior.substitute(self.moved) + self.log_volume

    @cached_property
    def log_row(self) -> Expression:
        return super().log_row.substitute(self.moved)

    def _elsewhere(self) -> None:
        """None: these are the others."""

    def theta(self, z: Array) -> Array:
        """θ (..., dim) of the coordinates here."""
        given = {label: z[..., k] for k, label in enumerate(self.labels)}
        return np.stack(
            [
                self.moved[label].evaluate(**given) if label in self.moved else z[..., k]
                for k, label in enumerate(self.labels)
            ],
            axis=-1,
        )


class NotCentred(Moved):
    """In coordinates that no spread narrows: z = (θ − m)/t where the prior has normal_lpdf(θ, m, t).

    As t → 0 the θ's are confined to a neck that no step size suits; their z's are not.
    """

    @cached_property
    def moved(self) -> Mapping[str, Expression]:
        return {label: m + t * name(label) for label, (m, t) in self.hierarchy.items()}

    @cached_property
    def log_volume(self) -> Expression:
        return sum((apply("log", t) for _, t in self.hierarchy.values()), ZERO)

    @property
    def in_words(self) -> str:
        names = ", ".join(
            each.name for each, label in zip(self.bounded, self.labels, strict=True) if label in self.hierarchy
        )
        return f"in (θ − mean)/sd of the prior, where θ is {names}"


class Within(Moved):
    """In coordinates that may be any numbers, where the density ends at a bound that nobody declared."""

    edges: dict[str, Bounded] = {}

    @classmethod
    def of(cls, other: TypedPosterior) -> Self:
        """That posterior within its edges. Raises :class:`SpecError` where it has no value at its start."""
        out = object.__new__(cls)
        kept = {name: value for name, value in other.__dict__.items() if name.startswith("_param")}
        out.__dict__.update(kept, edges=other.edges)
        if isinstance(other, AtTemperature):
            out.__dict__.update(base=other.base, temperature=other.temperature)
        out.check()
        return out

    @cached_property
    def moved(self) -> Mapping[str, Expression]:
        return {label: each.value(name(label)) for label, each in self.edges.items()}

    @cached_property
    def log_volume(self) -> Expression:
        return sum((each.log_jacobian(name(label)) for label, each in self.edges.items()), ZERO)

    @property
    def in_words(self) -> str:
        return "between the edges of the density"

    def _marginal(self, i: int, cells: Cells, axis: int, centre: float, unit: float) -> Marginal:
        edge = self.edges.get(self.labels[i])
        if edge is None:
            return super()._marginal(i, cells, axis, centre, unit)
        return cells.marginal(
            axis, lambda u: edge.constrained(centre + unit * u), lambda x: (edge.coordinates(x) - centre) / unit
        )


class TemperedPosterior(AtTemperature, TypedPosterior):
    """e^{−U/T} of a typed posterior: its log density in θ, with the prior, the rows and the Jacobian, divided by T.

    The exact answers are found as those of T = 1 are; what samplers move in has the spread of this distribution.
    """

    @cached_property
    def log_prior(self) -> Expression:
        return (1 / self.temperature) * super().log_prior

    @cached_property
    def log_row(self) -> Expression:
        return (1 / self.temperature) * super().log_row

    def _not_centred(self) -> "NotCentred":
        return TemperedNotCentred.made(super()._not_centred(), self.temperature)

    def _within(self) -> "Within":
        return TemperedWithin.of(self)

    def quadrature(self, tell: Tell) -> Quadrature | None:
        found = super().quadrature(tell)
        if found is None:
            raise SpecError(
                "temperature",
                self.temperature,
                f"no quadrature resolves {self.title} there: perhaps it cannot be normalised; allowed are temperatures nearer to 1",
            )
        return found

    def stan(self) -> str:
        heat = self.temperature
        # Stan's density is one of the parameters, and has the Jacobian once.
        terms = [f"({1 / heat - 1!r})*({text})" for each in self.bounded if (text := each.log_slope)]
        return stan_program(
            self.bounded, self.titles, " + ".join([f"({self.prior})/{heat!r}", *terms]), f"({self.row})/{heat!r}"
        )


class TemperedNotCentred(NotCentred, TemperedPosterior):
    """The same of a typed posterior in the coordinates of :class:`NotCentred`, whose own Jacobian T does not divide."""


class TemperedWithin(Within, TemperedPosterior):
    """The same of a typed posterior in the coordinates of :class:`Within`, whose own Jacobian T does not divide."""

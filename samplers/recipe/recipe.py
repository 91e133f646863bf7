"""The recipe of Ma, Chen & Fox (2015): what follows from H(z), D(z) and Q(z).

The process dz = f dt + √(2D) dW with

    f(z) = −[D(z) + Q(z)] ∇H(z) + Γ(z),    Γ_i = Σ_j ∂_j (D_ij + Q_ij),

keeps the distribution e^{−H} for every symmetric positive semidefinite D and every skew-symmetric Q (eqs (2) and (3),
Theorem 1). Here all entries are expressions of the state's names, and Γ, f and the residual of the Fokker–Planck
equation are derived from them symbolically.

One step of size ε with a noisy gradient of variance V is z ← z + ε f̃ + N(0, ε(2D − ε B̂)), with Γ added: it corrects
the printed eqs (6), (9) and (14), which subtract Γ.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sgmcmc_lab.samplers import expressions
from sgmcmc_lab.samplers.expressions import ONE, ZERO, Array, Expression, constant, evaluate, parse, postfix, work_limit
from sgmcmc_lab.samplers.parameters import SpecError

Vector = tuple[Expression, ...]
Matrix = tuple[tuple[Expression, ...], ...]

RECIPE_WORK = 20_000
"""Terms and factors that all derivatives of one recipe may come to: about a twentieth of a second."""
ENERGY = "U"
"""The name of the target's energy in the entries of D and Q, and what a target says whose energy is no formula."""
MAX_DIM = 12
"""Coordinates of θ."""
GRID = 5
"""With up to so many coordinates of z each entry of D and Q is typed; with more, one coordinate of θ stands for all."""
MAX_FRICTION = 1e3
MAX_REFRESH = 10.0

THETA, THETA_R, THETA_R_XI = "theta", "theta_r", "theta_r_xi"
KINDS = (THETA, THETA_R, THETA_R_XI)
"""θ alone; θ with momentum; θ with momentum and thermostat."""


@dataclass(frozen=True)
class Layout:
    """The coordinates of the state z = (θ, r, ξ): d of θ, d of r or none, one thermostat or none."""

    kind: str = THETA
    dim: int = 1
    """d, the dimension of θ."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise SpecError("recipe.layout", self.kind, f"there is no such layout; there are: {', '.join(KINDS)}")
        if type(self.dim) is not int or not 1 <= self.dim <= MAX_DIM:
            raise SpecError("recipe.dim", self.dim, f"θ has 1 to {MAX_DIM} coordinates in a recipe")

    def _block(self, letters: str) -> tuple[str, ...]:
        return (letters,) if self.dim == 1 else tuple(f"{letters}{i + 1}" for i in range(self.dim))

    @property
    def thetas(self) -> tuple[str, ...]:
        """The names of θ."""
        return self._block("theta")

    @property
    def momenta(self) -> tuple[str, ...]:
        """The names of the momentum, none without one."""
        return self._block("r") if self.kind != THETA else ()

    @property
    def thermostats(self) -> tuple[str, ...]:
        """The name of the thermostat, none without one."""
        return ("xi",) if self.kind == THETA_R_XI else ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of z, in the order of the rows of D and Q."""
        return self.thetas + self.momenta + self.thermostats

    @property
    def slopes(self) -> tuple[str, ...]:
        """The names of ∂U/∂θ_i, where U is the target's compiled energy; nobody types them."""
        return tuple(f"{ENERGY}{i + 1}" for i in range(self.dim))

    @property
    def alike(self) -> bool:
        """Whether the entries are typed for one coordinate of θ, and are every coordinate's."""
        return len(self.names) > GRID

    @property
    def rows(self) -> tuple[str, ...]:
        """The names of the rows that are typed: all of z, or those of one coordinate, ``theta``, ``r``, and ``xi``."""
        return ("theta", "r", "xi")[: KINDS.index(self.kind) + 1] if self.alike else self.names

    def copies(self, *rows: int) -> list[tuple[tuple[int, ...], dict[str, Expression]]]:
        """Where in z what is typed at these rows stands, and what ``theta`` and ``r`` are there: once, or for each
        coordinate.
        """
        if not self.alike:
            return [(rows, {})]
        own = ("theta", "r")[: len(self.rows)]
        every = range(self.dim if any(self.rows[row] != "xi" for row in rows) else 1)
        return [
            (
                tuple(2 * self.dim if self.rows[row] == "xi" else row * self.dim + i for row in rows),
                {label: expressions.name(f"{label}{i + 1}") for label in own},
            )
            for i in every
        ]

    def first(self, row: int) -> int:
        """Where in z a row that is typed stands, of the first coordinate where all are alike."""
        return self.copies(row)[0][0][0]

    def text(self, entry: Expression) -> str:
        """An entry of the first coordinate as it would be typed."""
        own = {f"{label}1": expressions.name(label) for label in ("theta", "r")} if self.alike else {}
        return str(entry.substitute(own))

    def typed_names(self, *rows: int) -> tuple[str, ...]:
        """The names that an entry at these rows may have; ``theta`` and ``r`` where they say of which coordinate."""
        own = ("theta", "r")[: len(self.rows)] if self.alike and any(self.rows[row] != "xi" for row in rows) else ()
        return (*own, *self.names, ENERGY)

    def index(self, label: str) -> int:
        """The row of D and Q that belongs to a name."""
        return self.names.index(label)


@dataclass(frozen=True)
class Recipe:
    """A process given by its H, D and Q, and what follows from them.

    H = U(θ) + |r|²/2 + (d/2)(ξ − A)². The thermostat's term corrects the paper's (1/2d)(ξ − A)², with which the
    printed update of ξ would not leave e^{−H} invariant.

    The momentum may be redrawn at the times of a Poisson process: a jump, which leaves e^{−H} invariant and is in none
    of the expressions below.

    Two switches and hand-edited components make drifts that the recipe does *not* write, to see what goes wrong:
    ``gamma_dropped`` leaves out Γ, ``dissipation_dropped`` leaves out −D∇H while the noise √(2D) dW stays.
    """

    layout: Layout
    potential: Expression
    """U(θ), an expression of θ's names; the name ``U`` itself where it is the target's compiled energy."""
    diffusion: Matrix
    """D as it is typed: symmetric, its entries expressions of z's names and of ``U``."""
    curl: Matrix
    """Q as it is typed: skew-symmetric, its entries as D's."""
    friction: float = 1.0
    """A, the mean of the thermostat; it has no meaning without one."""
    gamma_dropped: bool = False
    dissipation_dropped: bool = False
    refresh: float = 0.0
    """λ, how often in a unit of time the momentum is drawn afresh from N(0, I); it has no meaning without one."""
    edited: tuple[Expression | None, ...] = ()
    """Components of the drift that were typed by hand, None for those that follow from D and Q; empty for none."""
    typed: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)
    """The typed texts, by field, so that a saved recipe shows them unchanged."""

    def __post_init__(self) -> None:
        n = len(self.layout.names)
        for what, matrix, sign in (("D", self.diffusion, 1.0), ("Q", self.curl, -1.0)):
            if len(matrix) != n or any(len(row) != n for row in matrix):
                raise SpecError(f"recipe.{what}", f"{len(matrix)} rows", f"a matrix of {n} by {n} is needed")
            for i in range(n):
                for j in range(i + 1):
                    if matrix[i][j] != sign * matrix[j][i]:
                        kind = "symmetric" if sign > 0 else "skew-symmetric"
                        raise SpecError(f"recipe.{what}[{i + 1},{j + 1}]", str(matrix[i][j]), f"{what} must be {kind}")
        if self.edited and len(self.edited) != n:
            raise SpecError("recipe.drift", f"{len(self.edited)} components", f"{n} components are needed")

    # ------------------------------------------------------------ H, D, Q and what follows

    @cached_property
    def hamiltonian(self) -> Expression:
        """H(z)."""
        total = self.potential
        for label in self.layout.momenta:
            total = total + 0.5 * expressions.name(label) ** 2
        for label in self.layout.thermostats:
            total = total + (self.layout.dim / 2) * (expressions.name(label) - self.friction) ** 2
        return total

    @property
    def compiled(self) -> bool:
        """Whether U is no formula: its values and slopes are those of the target's compiled functions."""
        return self.potential == expressions.name(ENERGY)

    def slope(self, entry: Expression, label: str) -> Expression:
        """∂/∂label of an entry, where U is a name by the chain rule. Raises :class:`SpecError` where that needs U″."""
        out = entry.diff(label)
        if self.compiled and label in self.layout.thetas:
            if entry.names & set(self.layout.slopes):
                raise SpecError(
                    "recipe.U", ENERGY, "the second derivatives of an energy that is no formula are not known"
                )
            out = out + entry.diff(ENERGY) * expressions.name(self.layout.slopes[self.layout.index(label)])
        return out

    @cached_property
    def gradient(self) -> Vector:
        """∇H."""
        return tuple(self.slope(self.hamiltonian, label) for label in self.layout.names)

    @cached_property
    def D(self) -> Matrix:  # noqa: N802
        """The diffusion matrix, with the energy in place of ``U``."""
        return self._with_energy(self.diffusion)

    @cached_property
    def Q(self) -> Matrix:  # noqa: N802
        """The curl matrix, with the energy in place of ``U``."""
        return self._with_energy(self.curl)

    def _with_energy(self, matrix: Matrix) -> Matrix:
        return tuple(tuple(entry.substitute({ENERGY: self.potential}) for entry in row) for row in matrix)

    @cached_property
    def gamma(self) -> Vector:
        """Γ_i = Σ_j ∂_j (D_ij + Q_ij), whether or not the drift leaves it out."""
        return tuple(
            _total(self.slope(d + q, label) for d, q, label in zip(d_row, q_row, self.layout.names, strict=True))
            for d_row, q_row in zip(self.D, self.Q, strict=True)
        )

    @cached_property
    def dissipation(self) -> Vector:
        """−D∇H, whether or not the drift leaves it out."""
        return tuple(-entry for entry in _apply(self.D, self.gradient))

    @cached_property
    def circulation(self) -> Vector:
        """−Q∇H."""
        return tuple(-entry for entry in _apply(self.Q, self.gradient))

    @cached_property
    def derived_drift(self) -> Vector:
        """−[D + Q]∇H + Γ, less what is dropped."""
        drift = self.circulation
        if not self.dissipation_dropped:
            drift = _add(drift, self.dissipation)
        if not self.gamma_dropped:
            drift = _add(drift, self.gamma)
        return tuple(map(_shorter, drift))

    @cached_property
    def drift(self) -> Vector:
        """f(z), with what was typed by hand in place of what follows."""
        if not self.edited:
            return self.derived_drift
        return tuple(
            derived if own is None else own for derived, own in zip(self.derived_drift, self.edited, strict=True)
        )

    @cached_property
    def due(self) -> Vector:
        """The drift that D and Q write, with nothing left out or typed by hand."""
        return replace(self, gamma_dropped=False, dissipation_dropped=False, edited=()).drift

    @cached_property
    def residual(self) -> Expression:
        """How the distribution e^{−H} changes under this process, over e^{−H}: 0 exactly where it is stationary.

        With p = e^{−H}, H_i = ∂_i H: (1/p)[−Σ ∂_i(f_i p) + Σ ∂_i∂_j(D_ij p)]
        = Σ_i (f_i H_i − ∂_i f_i) + Σ_ij [∂_i∂_j D_ij − 2 H_i ∂_j D_ij + D_ij (H_i H_j − ∂_i∂_j H)], from eq (4).
        Terms that cancel only after a division, or by an identity of functions, stay: their values are then 0 to
        rounding. Raises :class:`SpecError` where it grows too large.
        """
        names, H = self.layout.names, self.gradient
        with work_limit(RECIPE_WORK):
            if self.compiled:
                # The recipe's own drift keeps e^{−H} by the theorem, which needs no U″: what is beside it may not.
                beside = [f - due for f, due in zip(self.drift, self.due, strict=True)]
                return _total(f * h - self.slope(f, label) for f, h, label in zip(beside, H, names, strict=True))
            terms = [f * h - f.diff(label) for f, h, label in zip(self.drift, H, names, strict=True)]
            for i, row in enumerate(self.D):
                for j, d in enumerate(row):
                    if not d.is_zero:
                        slope = d.diff(names[j])
                        terms.append(slope.diff(names[i]) - 2 * H[i] * slope + d * (H[i] * H[j] - H[i].diff(names[j])))
            total = _total(terms)
        try:
            with work_limit(RECIPE_WORK // 2):
                return _shorter(total)
        except SpecError:
            # Too large to be multiplied out: its values are still right, to rounding.
            return total

    @cached_property
    def energy_rate(self) -> Expression:
        """(LH)(z) = Σ f_i H_i + Σ D_ij ∂_i∂_j H: the mean rate at which H changes at z.

        For naive SGHMC, with its gradient's noise in D, it is the constant Σ D_ii: H grows in the mean without
        bound, so there is no stationary distribution. Redraws of the momentum are not in it.
        """
        names, H = self.layout.names, self.gradient
        with work_limit(RECIPE_WORK):
            terms = [f * h for f, h in zip(self.drift, H, strict=True)]
            for i, row in enumerate(self.D):
                terms += [d * self.slope(H[i], names[j]) for j, d in enumerate(row) if not d.is_zero]
            return _total(terms).expanded()

    def correction(self, variance: float | Sequence[Sequence[float | Expression]]) -> Matrix:
        """B̂ = (D+Q) diag(V, 0) (D+Q)ᵀ, what a gradient of U with noise N(0, V) adds to the noise of a step, over ε².

        A component of the drift that was typed by hand has no noisy gradient: its row of D + Q is 0 here.

        ``variance`` is V, a number (times the identity) or a matrix of d by d. It is V in the block of r for SGHMC
        and SGNHT, G^{−1/2} V G^{−1/2} for SGRHMC, and D V D for SGLD and SGFS.
        """
        d, n = self.layout.dim, len(self.layout.names)
        if isinstance(variance, (int, float)):
            variance = [[float(variance) if i == j else 0.0 for j in range(d)] for i in range(d)]
        columns = [[self.D[i][a] + self.Q[i][a] for a in range(d)] for i in range(n)]
        if self.dissipation_dropped:
            columns = [[self.Q[i][a] for a in range(d)] for i in range(n)]
        columns = [
            [ZERO] * d if own is not None else row for row, own in zip(columns, self.edited or [None] * n, strict=True)
        ]
        reached = [[a for a in range(d) if not columns[i][a].is_zero] for i in range(n)]
        with work_limit(RECIPE_WORK):
            return tuple(
                tuple(
                    _total(columns[i][a] * variance[a][b] * columns[j][b] for a in reached[i] for b in reached[j])
                    for j in range(n)
                )
                for i in range(n)
            )

    # ------------------------------------------------------------ on points

    def smallest_eigenvalue(self, **points: ArrayLike) -> Array:
        """The smallest eigenvalue of D at every point; nan where D is not finite, 0 where it is 0 to rounding."""
        n = len(self.layout.names)
        entries = evaluate([entry for row in self.D for entry in row], **points)
        matrices = np.stack(entries, axis=-1).reshape(*entries[0].shape, n, n)
        finite = np.asarray(np.isfinite(matrices).all(axis=(-2, -1)))
        eigenvalues = np.linalg.eigvalsh(np.where(finite[..., None, None], matrices, 0.0))
        smallest, largest = eigenvalues[..., 0], np.abs(eigenvalues).max(axis=-1)
        smallest = np.where(np.abs(smallest) <= 1e-13 * largest, 0.0, smallest)
        return np.where(finite, smallest, np.nan)

    def check_on(self, **points: ArrayLike) -> Array:
        """The smallest eigenvalue of D at every point, after a check that D is positive semidefinite at all of them.

        Raises :class:`SpecError` with the worst point and its eigenvalue.
        """
        smallest = self.smallest_eigenvalue(**points)
        if smallest.size == 0:
            return smallest
        worst = int(np.argmin(np.where(np.isnan(smallest), -np.inf, smallest)))
        value = float(smallest.flat[worst])
        if not value >= 0:
            at = np.broadcast_arrays(*(np.asarray(points[label], dtype=float) for label in points))
            where = ", ".join(f"{label} = {x.flat[worst]:.4g}" for label, x in zip(points, at, strict=True))
            what = "it is not finite" if math.isnan(value) else f"its smallest eigenvalue is {value:.4g}"
            raise SpecError(
                "recipe.D", _matrix_text(self.diffusion), f"D must be positive semidefinite; at {where} {what}"
            )
        return smallest

    # ------------------------------------------------------------ texts

    @classmethod
    def from_text(
        cls,
        layout: Layout,
        potential: str,
        diffusion: Mapping[str, str],
        curl: Mapping[str, str],
        *,
        friction: float = 1.0,
        gamma_dropped: bool = False,
        dissipation_dropped: bool = False,
        refresh: float = 0.0,
        edited: Mapping[str, str] | None = None,
    ) -> "Recipe":
        """A recipe from what is typed.

        ``diffusion`` and ``curl`` map "i,j" (of the layout's rows, counted from 1, i ≤ j for D and i < j for Q) to
        texts; what is left out is 0. ``edited`` maps "i" to a hand-typed component of the drift. The ``potential`` may
        be ``U``, for the target's compiled energy. Everything that the recipe needs is derived at once, so that what
        would grow too large is refused here.

        Raises :class:`SpecError` with the entry, such as ``recipe.D[1,2]``, and the place in its text.
        """
        typed: dict[str, str] = {}
        n, rows = len(layout.names), len(layout.rows)

        def read(text: Any, names: Iterable[str], what: str) -> Expression:
            expression = parse(text, names, what)
            typed[what] = text
            return expression

        def square(entries: Mapping[str, str], what: str, sign: float) -> Matrix:
            if not isinstance(entries, Mapping):
                raise SpecError(f"recipe.{what}", entries, "expected entries by their row and column")
            matrix = [[ZERO] * n for _ in range(n)]
            for position, text in entries.items():
                i, j = _position(position, what, rows)
                if i > j or (sign < 0 and i == j):
                    part = "upper triangle with the diagonal" if sign > 0 else "upper triangle without the diagonal"
                    raise SpecError(f"recipe.{what}[{i + 1},{j + 1}]", text, f"{what} is given by its {part}")
                entry = read(text, layout.typed_names(i, j), f"recipe.{what}[{i + 1},{j + 1}]")
                for (row, column), own in layout.copies(i, j):
                    matrix[row][column] = entry.substitute(own)
                    if row != column:
                        matrix[column][row] = sign * matrix[row][column]
            return tuple(map(tuple, matrix))

        numbers: list[float] = []
        for label, value, low, high in (
            ("friction", friction, -MAX_FRICTION, MAX_FRICTION),
            ("refresh", refresh, 0.0, MAX_REFRESH),
        ):
            number: Any = math.nan if isinstance(value, (bool, str)) else value
            if not (isinstance(number, (int, float)) and low <= number <= high):
                raise SpecError(f"recipe.{label}", value, f"allowed is a number from {low:g} to {high:g}")
            numbers.append(float(number))
        for label, switch in (("gamma_dropped", gamma_dropped), ("dissipation_dropped", dissipation_dropped)):
            if not isinstance(switch, bool):
                raise SpecError(f"recipe.{label}", switch, "allowed is true or false")
        with work_limit(RECIPE_WORK):
            own: list[Expression | None] = [None] * n
            for position, text in (edited or {}).items():
                i = _component(position, rows)
                component = read(text, layout.typed_names(i), f"recipe.drift[{i + 1}]")
                for (row,), names in layout.copies(i):
                    own[row] = component.substitute(names)
            energy = read(potential, (ENERGY,) if potential == ENERGY else layout.thetas, "recipe.U")
            own = [None if e is None else e.substitute({ENERGY: energy}) for e in own]
            try:
                recipe = cls(
                    layout,
                    energy,
                    square(diffusion, "D", 1.0),
                    square(curl, "Q", -1.0),
                    numbers[0],
                    gamma_dropped,
                    dissipation_dropped,
                    numbers[1],
                    tuple(own) if edited else (),
                    tuple(typed.items()),
                )
                # All that a step and a picture need is worked out here, inside the bound, and kept.
                entries = [entry for matrix in (recipe.D, recipe.Q) for row in matrix for entry in row]
                parts = [*recipe.drift, *recipe.dissipation, *recipe.circulation, *recipe.gamma, *recipe.gradient]
                postfix([e for e in (*entries, *parts) if not e.is_zero], (*layout.names, ENERGY, *layout.slopes))
            except SpecError as error:
                if error.field != "expression":
                    raise
                raise SpecError("recipe", str(energy)[:80], error.allowed) from None
        return recipe

    def to_dict(self) -> dict[str, Any]:
        """Plain texts, numbers and switches, for JSON; :meth:`from_dict` reads them back."""
        typed, layout = dict(self.typed), self.layout
        rows = range(len(layout.rows))

        def entries(matrix: Matrix, what: str, diagonal: int) -> dict[str, str]:
            out = {}
            for i in rows:
                for j in rows[i + diagonal :]:
                    entry = matrix[layout.first(i)][layout.first(j)]
                    if not entry.is_zero:
                        out[f"{i + 1},{j + 1}"] = typed.get(f"recipe.{what}[{i + 1},{j + 1}]", layout.text(entry))
            return out

        return {
            "layout": self.layout.kind,
            "dim": self.layout.dim,
            "U": typed.get("recipe.U", str(self.potential)),
            "D": entries(self.diffusion, "D", 0),
            "Q": entries(self.curl, "Q", 1),
            "friction": self.friction,
            "gamma_dropped": self.gamma_dropped,
            "dissipation_dropped": self.dissipation_dropped,
            "refresh": self.refresh,
            "drift": {
                str(i + 1): typed.get(f"recipe.drift[{i + 1}]", layout.text(own))
                for i in rows
                if self.edited and (own := self.edited[layout.first(i)]) is not None
            },
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Recipe":
        """The recipe that :meth:`to_dict` wrote, or one that a person wrote by hand; raises :class:`SpecError`."""
        known = {"layout", "dim", "U", "D", "Q", "friction", "gamma_dropped", "dissipation_dropped", "refresh", "drift"}
        if not isinstance(values, Mapping):
            raise SpecError("recipe", values, "expected fields with values")
        for label in values:
            if label not in known:
                raise SpecError(f"recipe.{label}", values[label], f"there is no such field; there are: {sorted(known)}")
        if "U" not in values:
            raise SpecError("recipe.U", None, "a recipe needs an energy")
        drift = values.get("drift", {})
        if not isinstance(drift, Mapping):
            raise SpecError("recipe.drift", drift, "expected components by their number")
        return cls.from_text(
            Layout(values.get("layout", THETA), values.get("dim", 1)),
            values["U"],
            values.get("D", {}),
            values.get("Q", {}),
            friction=values.get("friction", 1.0),
            gamma_dropped=values.get("gamma_dropped", False),
            dissipation_dropped=values.get("dissipation_dropped", False),
            refresh=values.get("refresh", 0.0),
            edited=drift,
        )

    # ------------------------------------------------------------ LaTeX

    def tex(self, what: str) -> str:
        """LaTeX of ``H``, ``D``, ``Q`` (with U for the energy, as typed), ``gamma`` or ``drift`` (worked out).

        Where all coordinates of θ are alike D, Q and the vectors are those of the first, and so is its part of H.
        """
        layout = self.layout
        shown = [layout.first(i) for i in range(len(layout.rows))]
        if what == "H":
            total = self.hamiltonian.tex()
            if layout.alike:
                rest = r"\tfrac12\lVert r\rVert^2" if layout.momenta else ""
                rest += rf" + \tfrac{{{layout.dim}}}{{2}}(\xi - {self.friction:g})^2" if layout.thermostats else ""
                total = rf"U(\theta){' + ' if rest else ''}{rest}"
            return f"H = {total}"
        first = "_1" if layout.alike else ""
        if what in {"D", "Q"}:
            matrix = self.diffusion if what == "D" else self.curl
            return f"{what}{first} = {_matrix_tex([[matrix[i][j] for j in shown] for i in shown])}"
        symbol, vector = {"gamma": (r"\Gamma", self.gamma), "drift": ("f", self.drift)}[what]
        return f"{symbol}{first} = {_matrix_tex([[vector[i]] for i in shown])}"


def _position(position: Any, what: str, n: int) -> tuple[int, int]:
    match = re.fullmatch(r"([1-9]),([1-9])", position) if isinstance(position, str) else None
    if match is None or max(map(int, match.groups())) > n:
        raise SpecError(f"recipe.{what}", position, f"expected a row and a column from 1 to {n}, such as 1,2")
    return int(match[1]) - 1, int(match[2]) - 1


def _component(position: Any, n: int) -> int:
    if position not in {str(i + 1) for i in range(n)}:
        raise SpecError("recipe.drift", position, f"expected the number of a component, from 1 to {n}")
    return int(position) - 1


def _total(terms: Iterable[Expression]) -> Expression:
    total = ZERO
    for term in terms:
        total = total + term
    return total


def _add(a: Vector, b: Vector) -> Vector:
    return tuple(x + y for x, y in zip(a, b, strict=True))


def _shorter(expression: Expression) -> Expression:
    """The expression, multiplied out where that makes it shorter: −ξr for −(ξ − A)r − Ar."""
    expanded = expression.expanded()
    return expanded if expanded.size < expression.size else expression


def _apply(matrix: Matrix, vector: Vector) -> Vector:
    return tuple(_total(a * x for a, x in zip(row, vector, strict=True) if not a.is_zero) for row in matrix)


def _matrix_text(matrix: Matrix) -> str:
    return "; ".join(", ".join(map(str, row)) for row in matrix)


def _matrix_tex(rows: Sequence[Sequence[Expression]]) -> str:
    slopes = {f"{ENERGY}{i}": rf"\partial_{{{i}}}{ENERGY}" for i in range(1, MAX_DIM + 1)}
    lines = r" \\ ".join(" & ".join(entry.tex(slopes) for entry in row) for row in rows)
    return rf"\begin{{pmatrix}}{lines}\end{{pmatrix}}"


def diagonal(entries: Sequence[Expression | float]) -> Matrix:
    """A diagonal matrix, for recipes built in Python."""
    values = [entry if isinstance(entry, Expression) else constant(entry) for entry in entries]
    return tuple(tuple(value if i == j else ZERO for j in range(len(values))) for i, value in enumerate(values))


def canonical_curl(dim: int, strength: Expression = ONE) -> Matrix:
    """Q = [[0, −gI], [gI, 0]] of θ with momentum, for recipes built in Python."""
    n = 2 * dim
    return tuple(
        tuple(-strength if j == i + dim else strength if i == j + dim else ZERO for j in range(n)) for i in range(n)
    )

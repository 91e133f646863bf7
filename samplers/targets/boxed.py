"""Distributions of up to three coordinates whose exact answers are those of quadrature, and their modes."""

from abc import abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.random import SFC64, Generator

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.targets import newton
from sgmcmc_lab.samplers.targets.base import Array, Column, Tell
from sgmcmc_lab.samplers.targets.bfgs import bfgs
from sgmcmc_lab.samplers.targets.cells import Cells, Marginal, integrate
from sgmcmc_lab.samplers.targets.climbed import Climbed
from sgmcmc_lab.samplers.targets.jumps import CHAINS, Jumps
from sgmcmc_lab.samplers.targets.long_run import ESS, MAX_DRAWS, MAX_NUMBERS, RHAT, TIME, Reference, hmc
from sgmcmc_lab.samplers.targets.mixture import Mixture
from sgmcmc_lab.samplers.targets.modes import Landscape, Mode, Search, among, search

MAX_CLIMB_WORK = 15 * 10**7
"""Instructions of all climbs to the mode: less than .3 seconds, for which a page waits."""
_CALL = 100_000
"""The further cost of an energy besides its own, in the same unit."""
MAX_GRID_WORK = 4 * 10**10
"""Instructions of a quadrature, were each of its energies to cost as much as one and its gradient, which is more than
twice of it: some 10 to 30 seconds in the background. A target that costs more has a long run instead."""
MAX_ENERGIES = 10_000_000
"""Energies of a quadrature in all its bases, some seconds where each is cheap."""
_FIRST_ENERGIES = 300_000
"""Energies by which the coordinates of the quadrature are chosen."""


class Basis(NamedTuple):
    """Coordinates u of a box, with θ = centre + matrix u."""

    centre: Array
    """(dim,)."""
    matrix: Array
    """(dim, dim)."""
    axes: Mapping[int, int]
    """The u that is θ_i itself, up to its unit, by i."""

    def theta(self, u: Array) -> Array:
        """θ at u (n, dim)."""
        return np.ascontiguousarray(self.centre + u @ self.matrix.T)

    def u(self, theta: Array) -> Array:
        """u at θ (n, dim)."""
        return np.asarray(np.linalg.solve(self.matrix, (theta - self.centre).T).T, dtype=np.float64)

    def spreads(self, curvature: Array) -> Array:
        """The standard deviation of each u where θ has this curvature, (dim,)."""
        return np.sqrt(np.diag(np.linalg.inv(self.matrix.T @ curvature @ self.matrix)))


class Quadrature(NamedTuple):
    """The density in cells, and the marginals of all θ_i, by i."""

    basis: Basis
    cells: Cells
    marginals: Mapping[int, Marginal]
    log_normaliser: float
    """log ∫e^{−U} over θ."""
    error: float
    """The largest of any basis."""


FEW = 3
"""The most coordinates of a quadrature."""
_TOLERANCE = {1: 1e-8, 2: 1e-6, 3: 1e-4}
"""The error that is aimed at, by dimension."""
_ROUGH = 0.1
"""The error that is aimed at while the box is looked for."""
_RESOLVED = 1e-3
"""The largest error of a quadrature that is used."""
_ROUNDING = 1e-9
"""The smallest error that is said: below it are the sums of the quadrature themselves."""
_EDGE = 1e-9
"""The largest share of the cells at a side of the box."""
_WIDENINGS = 50
"""Times that a side of the box is moved away at most: each time the box is twice as wide."""
_REACH = 8.0
"""Standard deviations around the modes that the box holds at first."""
_STARTS = 8
"""Places from which the mode is climbed to, so that of several the highest is found, and the box holds all."""
_PROPOSALS, _MORE = 4 * MAX_DRAWS, 1.1
"""The most draws of the cells, and how many more than are needed are made at first."""
_FITTED, MAX_FIT_WORK = 20_000, 2 * 10**9
"""Energies of a round in which a mixture is fitted to the modes, and instructions of all of them."""
_AGREE = 1.05
"""The largest R-hat of chains from different modes whose answers are used."""


class _SpentError(Exception):
    """A climb has taken all that climbs may take."""


class NoPeakError(SpecError):
    """No climb arrived at a highest point; there may be a distribution all the same."""


class NoAgreementError(SpecError):
    """Chains from different modes do not agree about their weights, in whatever coordinates they move."""


class Boxed(Climbed):
    """A distribution whose exact answers are those of quadrature in a box that holds it, where one resolves it.

    With more than three coordinates, and where none does, they are those of a long run.
    """

    @property
    @abstractmethod
    def gradient_work(self) -> int:
        """How much an energy and its gradient cost, in instructions."""

    def _starts(self) -> list[tuple[Array, Array | None]]:
        """Where climbs begin, each with an inverse curvature where one is known."""
        rng = np.random.default_rng(0)
        return [(self.start_at, None), *((start, None) for start in 2 * rng.standard_normal((_STARTS - 1, self.dim)))]

    def _counted(self) -> newton.At:
        """U and its gradient; raises :class:`_SpentError` when they have cost what all climbs may."""
        left = MAX_CLIMB_WORK // (self.gradient_work + _CALL)

        def at(theta: Array) -> tuple[float, Array]:
            nonlocal left
            left -= 1
            if left < 0:
                raise _SpentError
            return self._at(theta)

        return at

    @cached_property
    def _modes(self) -> list[Array]:
        """Ends of climbs from several places, the highest first."""
        at, ends = self._counted(), []
        with suppress(_SpentError), np.errstate(all="ignore"):
            for start, inverse in self._starts():
                # Closer than a share of a standard deviation the rounding of U of many data hides which way is down.
                near = 1e-8 if inverse is None else 1e-4 / np.sqrt(np.diag(inverse).max())
                ends.append(bfgs(at, start, jac=True, gtol=near, maxiter=100, hess_inv0=inverse))
        good = [end for end in ends if np.isfinite(end.fun) and np.isfinite(end.x).all() and np.abs(end.x).max() < 1e4]
        return [np.asarray(end.x) for end in sorted(good, key=lambda end: float(end.fun))]

    @cached_property
    def _peak(self) -> tuple[Array, Array]:
        end, curvature = None, None
        if self._modes:
            curvature = self._curvature_at(self._modes[0])
            if newton.positive(curvature):
                end = newton.climb(self._at, self._modes[0], newton.inverse_factor(curvature))
        if end is None or not end.arrived or end.steps:
            # BFGS knows one unit for all coordinates, and stops short where theirs are too different.
            ends = self._newton_ends()
            end, curvature = ends[0], None
            self._modes = [each.place for each in ends]
        towards = newton.open_direction(self._energies, end, self._modes)
        if towards is not None:
            raise SpecError(
                "target",
                self.key,
                f"it has no highest point, and cannot be normalised: the density does not fall off in the direction {self._named(towards)}, in units of its curvature; a prior that does is needed",
            )
        if not end.arrived:
            raise NoPeakError(
                "target",
                self.key,
                "no highest point of the density is found: it may be highest where it has no bound; other coordinates or another prior are needed",
            )
        if curvature is None:
            inverse = np.linalg.inv(newton.triangular(end.factor))
            curvature = inverse.T @ inverse
        return end.place, curvature

    def _newton_ends(self) -> list[newton.End]:
        """Ends of Newton climbs, those that arrived, the highest first; where none did the last one."""
        at, rng, ends = self._counted(), np.random.default_rng(0), list[newton.End]()
        try:
            for start, inverse in self._starts():
                ends.append(
                    newton.climb(
                        at,
                        start,
                        None if inverse is None else np.asarray(np.linalg.cholesky(inverse), dtype=np.float64),
                    )
                )
                if ends[-1].arrived:
                    break
            # From there on distances are known in units of the spread.
            found = [each for each in ends if each.arrived]
            for start in 3 * rng.standard_normal((_STARTS - len(ends), self.dim)) if found else ():
                ends.append(newton.climb(at, found[0].place + found[0].factor @ start))
        except _SpentError:
            if not ends:
                raise NoPeakError(
                    "target",
                    self.key,
                    f"no highest point of the density is found with {MAX_CLIMB_WORK // (self.gradient_work + _CALL):,} values of it; a simpler formula, or fewer rows, are needed",
                ) from None
        return sorted((each for each in ends if each.arrived), key=lambda end: end.height) or ends[-1:]

    def _named(self, direction: Array) -> str:
        """A direction in words: its parts as shares of the largest, without those that are far smaller."""
        shares = direction / np.abs(direction).max()
        return " ".join(
            f"{share:+.2g} {name}"
            for share, name in zip(shares, self.coordinate_names, strict=True)
            if abs(share) > 0.01
        )

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """The names of the coordinates in sentences."""
        return self.column_names

    def _found(self, tell: Tell, rough: bool = False) -> Reference:
        self._quadrature = None
        if rough:
            return super()._found(tell, rough)
        if self.dim <= FEW:
            self._quadrature = self.quadrature(tell)
            if self._quadrature is not None:
                return self._drawn_from(self._quadrature)
        found = self.searched(tell)
        return self._jumped(found, tell) if len(found.modes) + len(found.edges) > 1 else super()._found(tell, rough)

    _quadrature: Quadrature | None = None
    _search: Search | None = None

    looked_from = "where nothing is known of its range"
    """The places of :meth:`afar`, in words."""

    def afar(self) -> Array:
        """Places all over the range of the distribution from which other modes are climbed to, (n, dim)."""
        return np.empty((0, self.dim))

    def searched(self, tell: Tell) -> Search:
        """The search for modes, which is made once."""
        if self._search is None:
            factor = newton.inverse_factor(self.curvature)
            known = [self.mode, *self._modes]
            land = Landscape(self._energies, self._at, self._curvature_at, self.gradient_work, known, factor)
            self._search = search(land, self.afar(), tell)
        return self._search

    def _jumped(self, found: Search, tell: Tell) -> Reference:
        """Draws of chains that begin at every mode and jump between them."""
        jit.prepare([hmc, self.potential, self.gradient])
        rng, params = Generator(SFC64(1)), self.without_draws()
        modes = [*found.modes, *found.edges]
        if not among(self.mode, modes):
            modes.append(Mode(self.mode, self._at(self.mode)[0], self.curvature))
        tell("The exact answer: weighing the modes", None)
        each = max(min(_FITTED, MAX_FIT_WORK // self.gradient_work), CHAINS)
        mixture = Mixture.around(modes).fitted(self._energies, each, rng)

        def paths(rng: Generator, theta: Array, centre: Array, factor: Array, step_size: float) -> tuple[Array, int]:
            q = np.ascontiguousarray(np.linalg.solve(factor, (theta - centre).T).T)
            ends, leaps = np.empty((1, *theta.shape)), max(round(TIME / step_size), 1)
            accepted = hmc(rng, q, self.potential, self.gradient, params, centre, factor, step_size, leaps, ends)
            return ends[0], int(accepted)

        jumps = Jumps(self._energies, paths, mixture, rng)
        work = CHAINS * (TIME / jumps.step_size + 3) * self.gradient_work
        most = int(min(MAX_DRAWS // CHAINS, max(MAX_NUMBERS / work, 4000 // CHAINS)))
        kept, result, n = np.empty((most, CHAINS, self.dim)), None, 250
        for t in range(most):
            if t % 10 == 0:
                tell(f"The exact answer by chains from {len(found.modes)} modes: {t * CHAINS:,} draws", t / most)
            jumps.step()
            kept[t] = jumps.theta
            if t + 1 in (n, most):
                draws, n = kept[: t + 1].transpose(1, 0, 2), 2 * n
                result = Reference.of(draws, self.values(draws))
                if result.ess > ESS and result.rhat < RHAT:
                    break
        assert result is not None
        if not result.rhat < _AGREE:
            raise NoAgreementError(
                "target",
                self.key,
                f"there is no exact answer: chains from its {len(found.modes):,} modes do not agree about their weights, R̂ {result.rhat:.3g}; data or a prior that leave fewer of them are needed",
            )
        return result

    def _bases(self) -> list[list[Basis]]:
        """Coordinates in which quadrature is tried: θ itself, and those in which the distribution is like N(0, I) at
        its mode, each θ_i once an axis of them.
        """
        own = [Basis(np.zeros(self.dim), np.eye(self.dim), {i: i for i in range(self.dim)})]
        if self.dim == 1:
            return [own]
        factor, whitened = newton.inverse_factor(self.curvature), []
        for first in range(self.dim):
            order = [first, *(k for k in range(self.dim) if k != first)]
            matrix = np.empty_like(factor)
            matrix[order] = newton.triangular(factor[order])
            whitened.append(Basis(self.mode, matrix, {first: 0}))
        return [own, whitened]

    def _energies(self, theta: Array) -> Array:
        out = self._potentials(np.ascontiguousarray(theta))
        return np.where(np.isnan(out), np.inf, out)

    def quadrature(self, tell: Tell) -> Quadrature | None:
        """The density in cells; None where as many energies as it may take do not resolve it."""
        found = self.searched(tell)
        modes = [*found.modes, *found.edges] or [Mode(self.mode, self._at(self.mode)[0], self.curvature)]
        allowed = min(MAX_ENERGIES, MAX_GRID_WORK // self.gradient_work)
        first, left, tried = min(_FIRST_ENERGIES, allowed), self._bases(), list[Cells | None]()
        tell("The exact answer by quadrature", None)
        errors = list[float]()
        for bases in left:
            tried.append(self._in_cells(bases[0], modes, first))
            errors.append(np.inf if (cells := tried[-1]) is None else cells.error)
            if errors[-1] <= _TOLERANCE[self.dim]:
                break
        # θ itself is one basis, so that it may be less right at first than one of several.
        best = 0 if len(errors) > 1 and errors[0] < 10 * errors[1] else len(errors) - 1
        made = []
        for basis in left[best]:
            tell("The exact answer by quadrature", None)
            cells = tried[best] if basis is left[best][0] and errors[best] <= _TOLERANCE[self.dim] else None
            cells = cells or self._in_cells(basis, modes, allowed // len(left[best]))
            if cells is None or not cells.error <= _RESOLVED:
                return None
            made.append((basis, cells))
        return self._of_cells(made)

    def _of_cells(self, made: list[tuple[Basis, Cells]]) -> Quadrature:
        marginals = {}
        for basis, cells in made:
            for i, axis in basis.axes.items():
                centre, unit = basis.centre[i], basis.matrix[i, axis]
                marginals[i] = self._marginal(i, cells, axis, float(centre), float(unit))
        basis, cells = made[0]
        stretch = float(np.linalg.slogdet(basis.matrix)[1])
        return Quadrature(basis, cells, marginals, cells.log_mass + stretch, max(cells.error for _, cells in made))

    def _marginal(self, i: int, cells: Cells, axis: int, centre: float, unit: float) -> Marginal:
        """The distribution of θ_i, which is centre + unit·u, of the cells' coordinate u."""
        return cells.marginal(axis, lambda u: centre + unit * u, lambda x: (x - centre) / unit)

    def _in_cells(self, basis: Basis, modes: list[Mode], most: int) -> Cells | None:
        """The density in a box that is widened until next to nothing is at its sides; None where so many energies, or
        moves of a side, do not find one.
        """
        left = most

        def energies(u: Array) -> Array:
            nonlocal left
            left -= len(u)
            with np.errstate(over="ignore"):
                return self._energies(basis.theta(u))

        places = basis.u(np.array([mode.place for mode in modes]))
        spreads = np.array([basis.spreads(mode.curvature) for mode in modes])
        lows, highs = (places - _REACH * spreads).min(axis=0), (places + _REACH * spreads).max(axis=0)
        rough = True
        for _ in range(_WIDENINGS):
            # Rough cells say well enough whether anything is at the sides.
            tolerance, share = (_ROUGH, most // 4) if rough else (_TOLERANCE[self.dim], most)
            cells = integrate(energies, lows, highs, places, spreads, tolerance, min(share, left))
            if cells is None:
                return None
            at_low, at_high = (share > _EDGE for share in cells.at_sides())
            if not (at_low | at_high).any():
                if not rough:
                    return cells
                rough = False
            widths = highs - lows
            lows, highs = np.where(at_low, lows - widths, lows), np.where(at_high, highs + widths, highs)
        return None

    def _drawn_from(self, found: Quadrature) -> Reference:
        """Draws: of the cells, with rejection by the density over that of the cells' marginals.

        The cells are stratified, so that the draws as a whole are closer to the distribution than independent ones.
        Where few would be left, for a few weights are far larger than all others, they are a weighted choice among
        all proposals.
        """
        rng = np.random.default_rng(1)
        theta, log_weight, height = np.empty((0, self.dim)), np.empty(0), np.empty(0)
        weight, n = log_weight, int(_MORE * MAX_DRAWS)
        while n > 0:
            u, log_proposed = found.cells.draw(rng, n)
            theta = np.concatenate([theta, found.basis.theta(u)])
            log_weight = np.append(log_weight, -self._energies(theta[-n:]) - log_proposed)
            height = np.append(height, rng.random(n))
            weight = np.exp(log_weight - log_weight.max())
            kept = np.flatnonzero(height < weight)
            if len(kept) >= MAX_DRAWS:
                return Reference(theta[rng.permutation(kept)[:MAX_DRAWS]][None], 1.0, float(MAX_DRAWS))
            n = min(
                _PROPOSALS - len(theta), int(_MORE * MAX_DRAWS * len(theta) / max(len(kept), 1)) - len(theta) + 1000
            )
        chosen = rng.choice(len(weight), MAX_DRAWS, p=weight / weight.sum())
        return Reference(theta[chosen][None], 1.0, float(MAX_DRAWS))

    @property
    def by_quadrature(self) -> Quadrature | None:
        """The quadrature, where the answers are of it."""
        self.reference  # noqa: B018  made where it is not there
        return self._quadrature

    @property
    def uncertainty(self) -> float:
        return super().uncertainty if self.by_quadrature is None else self.by_quadrature.error

    def facts(self) -> Mapping[str, str]:
        found = self.by_quadrature
        said = (
            super().facts()
            if found is None
            else {"Exact answers": f"quadrature, whose error is below {max(found.error, _ROUNDING):.0e}"}
        )
        return {**said, "Modes": self._of_search()} if self._search is not None else said

    def _of_search(self) -> str:
        """The search in words, and the modes that may be missing."""
        assert self._search is not None
        modes, edges, climbs, scanned, _, _, ended = self._search
        ends = f" and {len(edges):,} places along an edge" if edges else ""
        told = f"{len(modes):,}{ends} found by {climbs:,} climbs: from {self.looked_from}, from the twins of each mode with other signs or exchanged coordinates, and from lines through it"
        if scanned:
            told += f", and from a scan of {scanned:,} points in their range"
        if not ended:
            told += "; the search ended at its limit before every climb was made"
        return told + ". A mode may be missing that is far narrower than the distances of these places"

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        if self.by_quadrature is None:
            return super().columns
        return tuple(map(self._column, range(self.dim)))

    def _column(self, i: int) -> Column:
        assert self.by_quadrature is not None
        low, high, cdf, mean, variance = self.by_quadrature.marginals[i]
        sd = variance**0.5
        shown = max(low, mean - 3.6 * sd), min(high, mean + 3.6 * sd)
        return Column(self.column_names[i], low, high, cdf, mean, variance, shown=shown)

    def log_density(self, theta: Array) -> Array:
        if self.by_quadrature is None:
            return super().log_density(theta)
        flat = np.ascontiguousarray(theta.reshape(-1, self.dim))
        return np.asarray(-self._energies(flat) - self.by_quadrature.log_normaliser).reshape(theta.shape[:-1])

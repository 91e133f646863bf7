"""The Fokker–Planck equation of a one- or two-dimensional recipe on a grid: density, spectrum, autocorrelation.

For dz = f dt + √(2D) dW the density p(z, t) obeys

    ∂p/∂t = −∇·(f p) + Σ_ij ∂_i∂_j (D_ij p).

The recipe's drift is f = −(D + Q)∇H + Γ, Γ_i = Σ_j ∂_j(D_ij + Q_ij), with Q = [[0, −q], [q, 0]]; q = 1 and
H = U(θ) + r²/2 give Hamilton's equations, dθ = r dt. With π = e^{−H} and u = p/π the current is

    J = f p − ∇·(D p) = −π D ∇u + u·(−∂_2(qπ), ∂_1(qπ)):

a diffusion of u, and a transport along the level lines of the stream function qπ. Both parts vanish, or have no
divergence, for u = 1. The finite volumes below keep that, so e^{−H} is stationary on the grid whatever H, D, Q are.

Everything that takes long (sparse LU, its solves, the Arnoldi products) is in compiled code that releases the GIL.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, sparse, special
from scipy.sparse import linalg as sparse_linalg

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]
Field = Callable[..., ArrayLike] | ArrayLike
"""A function of the state: a callable f(x) or f(x, y) of arrays that broadcast, values at the cells' centres, or a
number. A callable is evaluated at faces and corners too; values are averaged onto them, which has the same order."""

LOG_TINY = -640.0
"""log π is raised to this far below its maximum where its square root or its inverse is needed."""
STEEPEST = 3.0
"""At a face or corner π is at most e³ times that of each cell around it, see :func:`generator`."""
ROUGH = 1 / 12
"""Strength of the fourth difference along a flow, that of the third-order upwind scheme."""
ENOUGH = 30.0
"""It is left out where D itself damps what alternates from cell to cell this much faster than the flow turns."""


@dataclass(frozen=True)
class Grid:
    """Equal cells on an interval or a box with reflecting walls.

    ``low``, ``high`` and ``cells`` have one entry for each of the one or two coordinates. Arrays over cells have the
    shape ``cells``, first coordinate first (``indexing="ij"``). Raises ValueError for another number of coordinates,
    fewer than three cells, or limits that are not finite and in order.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    cells: tuple[int, ...]

    def __post_init__(self) -> None:
        if not len(self.low) == len(self.high) == len(self.cells) or len(self.cells) not in {1, 2}:
            raise ValueError("A grid has one or two coordinates, each with a low, a high and a number of cells.")
        if min(self.cells) < 3:
            raise ValueError(f"A grid needs three cells or more in each coordinate, not {min(self.cells)}.")
        if not np.isfinite([*self.low, *self.high]).all() or not all(
            a < b for a, b in zip(self.low, self.high, strict=True)
        ):
            raise ValueError(f"The grid's limits must be finite and in order, not {self.low} and {self.high}.")

    @property
    def ndim(self) -> int:
        """1 or 2."""
        return len(self.cells)

    @property
    def size(self) -> int:
        """The number of cells."""
        return int(np.prod(self.cells))

    @property
    def steps(self) -> tuple[float, ...]:
        """The width of a cell in each coordinate."""
        return tuple((b - a) / n for a, b, n in zip(self.low, self.high, self.cells, strict=True))

    @property
    def volume(self) -> float:
        """The volume of a cell."""
        return float(np.prod(self.steps))

    @property
    def edges(self) -> tuple[Array, ...]:
        """The cells' edges, (n + 1,) in each coordinate."""
        return tuple(np.linspace(a, b, n + 1) for a, b, n in zip(self.low, self.high, self.cells, strict=True))

    @property
    def centres(self) -> tuple[Array, ...]:
        """The cells' centres, (n,) in each coordinate."""
        return tuple((edge[1:] + edge[:-1]) / 2 for edge in self.edges)

    def mesh(self, between: Sequence[int] = ()) -> tuple[Array, ...]:
        """Coordinates of the centres, or of the inner faces or corners.

        In the coordinates named by ``between`` the inner edges stand in place of the centres: () is the centres,
        (0,) the faces between neighbours in the first coordinate, (0, 1) the corners of four cells.
        """
        axes = [e[1:-1] if k in between else c for k, (e, c) in enumerate(zip(self.edges, self.centres, strict=True))]
        return tuple(np.meshgrid(*axes, indexing="ij"))

    def evaluate(self, field: Field, between: Sequence[int] = ()) -> Array:
        """``field`` on :meth:`mesh`. Raises ValueError where it is not a number, or an array has another shape."""
        points = self.mesh(between)
        if callable(field):
            with np.errstate(all="ignore"):
                out = np.broadcast_to(np.asarray(field(*points), dtype=float), points[0].shape)
        else:
            out = np.asarray(field, dtype=float)
            if out.ndim == 0:
                out = np.broadcast_to(out, points[0].shape)
            else:
                if out.shape != self.cells:
                    raise ValueError(f"Values on the grid have shape {self.cells}, not {out.shape}.")
                for axis in between:
                    out = (_left(out, axis) + _right(out, axis)) / 2
        if np.isnan(out).any():
            raise ValueError(f"Not a number at z = {_point(points, np.isnan(out))}.")
        return out

    def energy(self, energy: Field) -> Array:
        """The energy at the centres less its minimum, ``cells``. Raises ValueError where it is not finite."""
        out = self.evaluate(energy)
        if not np.isfinite(out).all():
            raise ValueError(f"The energy is not finite at z = {_point(self.mesh(), ~np.isfinite(out))}.")
        return out - out.min()

    def stationary(self, energy: Field) -> Array:
        """The density e^{−H}/Z at the centres, ``cells``; its sum over cells times :attr:`volume` is 1."""
        pi = np.exp(-self.energy(energy))
        return pi / (pi.sum() * self.volume)

    def point(self, z: Sequence[float]) -> Array:
        """The density of a start at one point: mass one on the two or four nearest cells, with mean ``z`` exactly.

        A point nearer to a wall than the first centre starts at that centre. Raises ValueError outside of the box.
        """
        parts = []
        for x, a, b, h, n in zip(z, self.low, self.high, self.steps, self.cells, strict=True):
            if not a <= x <= b:
                raise ValueError(f"The start {tuple(z)} is outside of the grid.")
            place = min(max((x - a) / h - 0.5, 0.0), n - 1.0)
            i = min(int(place), n - 2)
            part = np.zeros(n)
            part[i : i + 2] = 1 - (place - i), place - i
            parts.append(part)
        return _product(parts) / self.volume

    def blob(self, mean: Sequence[float], sd: Sequence[float]) -> Array:
        """The density of independent normals: exact masses of the cells, scaled to one inside of the box."""
        parts = [np.diff(special.ndtr((edge - m) / s)) for edge, m, s in zip(self.edges, mean, sd, strict=True)]
        out = _product(parts)
        if not out.sum() > 0:
            raise ValueError("The start has no mass on the grid.")
        return out / (out.sum() * self.volume)


def generator(
    grid: Grid,
    energy: Field,
    d11: Field,
    d12: Field = 0.0,
    d22: Field = 0.0,
    q: Field = 0.0,
    drift: Sequence[Field] | None = None,
    *,
    upwind: bool = False,
) -> sparse.csc_array:
    """The matrix L of dp/dt = L p, (size, size), for densities over the flattened cells of ``grid``.

    Finite volumes, second order in the width of a cell. L_ij is the rate of jumps from cell j to cell i.

    - Diagonal of D: the rate from cell a to b is D_ii/h²·e^{H_a − H_f}, with D and H in the face's middle. Only
      differences of H occur. For a Gaussian the gap is then of fourth order.
    - D12: at every corner the two triangles that D12's sign selects, with weights in proportion to √(w_a w_b) of the
      two faces that are the triangle's sides, adding up to 2 D12 π at the corner, and at most √(w_a w_b) each. The
      Dirichlet form ∫ π ∇u·D∇u stays non-negative for every D ≥ 0, of rank one too.
    - Q: the flow through a face is the difference of qπ between its corners, and carries the mean of the two u.
      This part is skew in L²(π): it adds no numerical diffusion. On the walls qπ = 0, which is the natural condition
      n·π(D + Q)∇u = 0.
    - Where a flow runs in a direction without diffusion, centred differences carry what alternates from cell to cell
      *backwards*: an underdamped Langevin grid then has modes of a system with the force's sign turned, which converge
      with refinement, decay more slowly than the true ones and make the gap wrong (−.189 for −.300 in the double well
      with C = 1). There a fourth difference of u damps them, of the strength |v|h³/12 of the third-order upwind
      scheme. It is symmetric in L²(π), so that it keeps mass, π and the decay; it is left out where D damps enough. It
      is all the decay that Hamiltonian flow without friction has here, 6e-4 in the double well on 120 × 120 cells. With
      frictions of 1, .2, .1, .05 the gap is .08, .26, .95 and 2.3 % off there: for less friction take more cells.
    - ``drift``: what a typed drift has beyond the recipe's, f − (−(D + Q)∇H + Γ), such as −Γ where Γ was dropped. Its
      flux is centred, (g p_a + g p_b)/2, or first-order upwind if ``upwind``.

    At faces and corners π is at most e³ times that of the cells around; this only acts where H changes by about 6
    from cell to cell, where nothing is resolved.

    Kept to rounding: columns sum to zero (mass); without ``drift`` Le^{−H} = 0, and ‖p/π‖ in L²(π) never grows.
    Negative rates between cells (then p may become slightly negative where it is not smooth) can occur from a curl
    or drift with more than about 2D/h, and from |D12|/h1h2 above D11/h1² or D22/h2². Upwinding would cure that at
    the price of an artificial diffusion of the size |drift| h/2, so it is never used for Q: implicit steps, the
    spectrum and the autocorrelation need no positive rates.

    In one dimension d12, d22 and q must be zero. Raises ValueError for values that are not finite and for D that is
    not positive semidefinite, with the worst point.
    """
    H = grid.energy(energy)
    lowest = float(grid.evaluate(energy).min())
    rates = _Rates(grid)
    weakest = 1.0
    if grid.ndim == 1:
        if any(callable(field) or np.any(field) for field in (d12, d22, q)):
            raise ValueError("In one dimension there is neither D12, D22 nor Q.")
        faces = [_non_negative(grid, d11, (0,), "D11")]
        _add_diffusion(rates, H, 0, faces[0], _between(grid, energy, lowest, H, (0,)))
    else:
        levels = [_between(grid, energy, lowest, H, (axis,)) for axis in range(2)]
        faces = [_non_negative(grid, d11, (0,), "D11"), _non_negative(grid, d22, (1,), "D22")]
        for axis in range(2):
            _add_diffusion(rates, H, axis, faces[axis], levels[axis])
        middle = _between(grid, energy, lowest, H, (0, 1))
        corner = _finite(grid, d12, (0, 1), "D12")
        if corner.any():
            rho = _correlation(grid, d11, corner, d22)
            _add_mixed(rates, H, faces, levels, middle, rho)
            weight = np.exp(-H[1:, 1:])
            weakest = 1 - float((rho**2 * weight).sum() / weight.sum())
        stream = _finite(grid, q, (0, 1), "Q")
        if stream.any():
            _add_curl(rates, H, stream, middle)
    if drift is not None:
        if len(drift) != grid.ndim:
            raise ValueError(f"The drift has {len(drift)} entries, the grid {grid.ndim} coordinates.")
        for axis, component in enumerate(drift):
            flow = _finite(grid, component, (axis,), "The drift") / grid.steps[axis]
            if upwind:
                rates.add(axis, np.maximum(flow, 0), np.maximum(-flow, 0))
            else:
                rates.add(axis, flow / 2, -flow / 2)
                around = _pad(flow, axis)
                rates.speed[axis] += (_left(around, axis) + _right(around, axis)) / 2
    for axis in range(grid.ndim):
        _damp_rough(rates, H, axis, weakest * faces[axis])
    return rates.matrix()


class Factor:
    """The sparse LU of a matrix, and solves with it.

    Unpivoted, in the minimum degree order of M + Mᵀ: for the matrices of this module, whose symmetric part is definite
    in L²(π), pivots on the diagonal are safe, and a solve takes half the time of one with COLAMD. A matrix where they
    were not (the first solve is checked) is factored again with partial pivoting.
    """

    def __init__(self, matrix: sparse.csc_array) -> None:
        matrix = sparse.csc_array(matrix)
        probe = np.cos(np.arange(matrix.shape[0]))
        try:
            self._lu = sparse_linalg.splu(
                matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
            )
            x = self._lu.solve(probe)
            size = abs(matrix) @ np.abs(x) + np.abs(probe)
            self.pivoted = not bool((np.abs(matrix @ x - probe) <= 1e-9 * size.max()).all())
        except RuntimeError:  # a pivot was exactly zero
            self.pivoted = True
        if self.pivoted:
            self._lu = sparse_linalg.splu(matrix, permc_spec="COLAMD")

    @property
    def fill(self) -> int:
        """The number of entries of both factors."""
        return int(self._lu.nnz)

    def solve(self, b: Array, transposed: bool = False) -> Array:
        """M⁻¹b, or M⁻ᵀb; ``b`` is (size,)."""
        return self._lu.solve(b, "T" if transposed else "N")


class Evolution:
    """The density p(z, t) from a start, in steps of ``dt``: dp/dt = L p by Crank–Nicolson.

    The first ``startup`` steps are two backward-Euler steps of dt/2 each (Rannacher), which damp what a rough start
    has in modes that Crank–Nicolson would only flip in sign; both use the one LU of 1 − (dt/2)L. Second order in
    dt. Mass is kept to rounding. Not strictly positive: right after a point start, and where the rates of L are not,
    values of the order of the time error can be below zero.

    ``start`` is a density over cells (any mass). Raises ValueError for a dt that is not positive or another shape.
    """

    def __init__(self, matrix: sparse.csc_array, start: Array, dt: float, startup: int = 2) -> None:
        if not (dt > 0 and np.isfinite(dt)):
            raise ValueError(f"The time step must be positive, not {dt}.")
        if start.size != matrix.shape[0]:
            raise ValueError(f"The start has {start.size} cells, the generator {matrix.shape[0]}.")
        self.dt = dt
        self.n_steps = 0
        self.startup = startup
        self._shape = start.shape
        self._p = np.array(start, dtype=float).ravel()
        self._factor = Factor(sparse.eye_array(start.size, format="csc") - (dt / 2) * matrix)

    @property
    def time(self) -> float:
        """t of :attr:`density`."""
        return self.n_steps * self.dt

    @property
    def density(self) -> Array:
        """p(z, t), in the shape of the start; a copy."""
        return self._p.reshape(self._shape).copy()

    def restart(self, start: Array) -> None:
        """Begin again at t = 0 from another density, with the same factors."""
        self._p = np.array(start, dtype=float).ravel()
        self.n_steps = 0

    def advance(self, n: int = 1) -> Array:
        """The density after ``n`` more steps."""
        for _ in range(n):
            half = self._factor.solve(self._p)
            # (1 − aL)⁻¹(1 + aL) = 2(1 − aL)⁻¹ − 1: no product with L is needed.
            self._p = self._factor.solve(half) if self.n_steps < self.startup else 2 * half - self._p
            self.n_steps += 1
        return self.density


class Resolvent:
    """The inverse of the generator on what has no part in its stationary distribution, and the scaled matrix A.

    A = Π^{−1/2} L Π^{1/2}: the generator in L²(π), with √π as right and left null vector. For a recipe its symmetric
    part is the diffusion, its skew part the curl. In the complement of √π, A⁻¹ is the inverse of A − c e_k e_kᵀ with
    k the likeliest cell (multiply (A − c e_k e_kᵀ)x = b by √πᵀ: x_k = 0); so one LU, without a shift, serves the
    spectrum, the autocorrelations and the integrated times.

    ``pi`` is the stationary density of L, ``cells``: ``grid.stationary(energy)`` for a recipe, :func:`stationary` for
    a generator with an extra drift. Raises ValueError if L pi is not small.
    """

    def __init__(self, matrix: sparse.csc_array, grid: Grid, pi: Array) -> None:
        self.grid = grid
        p = np.maximum(np.asarray(pi, dtype=float).ravel(), 0.0)
        drive = abs(matrix) @ p
        if not np.abs(matrix @ p).max() <= 1e-7 * drive.max():
            raise ValueError("The density is not stationary for this generator.")
        log_root = np.maximum(np.log(np.maximum(p, np.finfo(float).tiny)), np.log(p.max()) + LOG_TINY) / 2
        root = np.exp(log_root - log_root.max())
        self.root: Array = root / np.linalg.norm(root)
        """√π as a unit vector, (size,)."""
        columns = np.repeat(np.arange(grid.size), np.diff(matrix.indptr))
        scale = np.exp(log_root[columns] - log_root[matrix.indices])
        self.matrix = sparse.csc_array((matrix.data * scale, matrix.indices, matrix.indptr), shape=matrix.shape)
        k = int(np.argmax(root))
        pin = sparse.csc_array(([-abs(self.matrix[k, k]) or -1.0], ([k], [k])), shape=matrix.shape)
        self._factor = Factor(self.matrix + pin)

    def solve(self, b: Array, transposed: bool = False) -> Array:
        """A⁻¹b, or A⁻ᵀb, in the complement of √π; what b has along √π is left out. (size,)."""
        x = self._factor.solve(self.project(b), transposed)
        return self.project(x)

    def project(self, b: Array) -> Array:
        """``b`` without its part along √π."""
        return b - self.root * (self.root @ b)

    def vector(self, values: Array) -> Array:
        """√π(g − E g), scaled to length one, of an observable's values at the centres.

        Raises ValueError for a constant.
        """
        b = self.project(np.asarray(values, dtype=float).ravel() * self.root)
        size = float(np.linalg.norm(b))
        if not size > 1e-12 * float(np.linalg.norm(np.ravel(values) * self.root)):
            raise ValueError("The observable is constant under the stationary distribution.")
        return b / size


class Spectrum(NamedTuple):
    """The slowest modes of a generator, slowest decay first; the stationary distribution is not among them."""

    values: Complex
    """λ with L φ = λ φ, (k,), by −Re λ; k + 1 of them where the k-th was one of a complex pair."""
    right: Complex
    """φ, (k, *cells): how p deviates from the stationary distribution in the mode; largest modulus of φ/√π scaled to
    1."""
    left: Complex | None
    """ψ with Lᵀψ = λψ, (k, *cells): the observable that decays as e^{λt}; Σ ψφ·volume = 1. None unless asked for."""
    radius: float
    """All eigenvalues with |λ| below this were found. A slower mode with a faster rotation can lie beyond."""

    @property
    def gap(self) -> float:
        """min −Re λ: the slowest rate of decay."""
        return float(-self.values[0].real)


def spectrum(
    matrix: sparse.csc_array,
    grid: Grid,
    pi: Array,
    k: int = 6,
    *,
    left: bool = False,
    resolvent: Resolvent | None = None,
) -> Spectrum:
    """The ``k`` eigenvalues of L nearest to zero (zero itself left out), sorted by −Re, with their eigenfunctions.

    Arnoldi (ARPACK) on the inverse of L in the complement of its null space, to a relative 1e-8. Nearest to zero is
    not slowest where modes rotate: see :attr:`Spectrum.radius`, and ask for more. ``left`` takes a second Arnoldi run
    on the transpose; without curl the left functions are φ/π and cost nothing. Arguments as for :class:`Resolvent`;
    one made before is used again if given.
    """
    found = Resolvent(matrix, grid, pi) if resolvent is None else resolvent
    values, vectors = _modes(found, k, False)
    order = np.lexsort((-values.imag, -values.real))
    radius = float(np.abs(values).max())
    values, vectors = values[order], vectors[:, order]
    # A phase that makes the entry of largest modulus real and positive, so that pictures do not flip between edits.
    vectors = vectors / vectors[np.abs(vectors).argmax(axis=0), np.arange(len(values))]
    functions = None
    if left:
        dual_values, duals = _modes(found, k, True)
        nearest = np.abs(dual_values - values[:, None]).argmin(axis=1)
        duals = duals[:, nearest]
        overlap = (duals * vectors).sum(axis=0)
        functions = (duals / overlap / found.root[:, None]).T.reshape(-1, *grid.cells)
    right = (vectors * found.root[:, None]).T.reshape(-1, *grid.cells)
    if functions is not None:
        functions = functions / grid.volume
    return Spectrum(values, right, functions, radius)


def _modes(resolvent: Resolvent, k: int, transposed: bool) -> tuple[Complex, Complex]:
    n = resolvent.grid.size
    operator = sparse_linalg.LinearOperator((n, n), lambda b: resolvent.solve(np.ravel(b), transposed), dtype=float)
    start = resolvent.project(resolvent.root * np.cos(np.arange(n)))
    inverse, vectors = sparse_linalg.eigs(operator, k=k, v0=start, ncv=min(max(2 * k + 6, 18), n), tol=1e-8)
    values = 1 / inverse
    # The last of them may be one half of a pair.
    apart = np.abs(values.conj()[:, None] - values).min(axis=1)
    odd = apart > 1e-6 * np.abs(values)
    return np.append(values, values[odd].conj()), np.hstack([vectors, vectors[:, odd].conj()])


def predicted_autocorrelation(
    matrix: sparse.csc_array,
    grid: Grid,
    pi: Array,
    values: Array,
    times: ArrayLike,
    *,
    tolerance: float = 1e-6,
    resolvent: Resolvent | None = None,
) -> Array:
    """ρ(t) = Cov(g(z_0), g(z_t))/Var g under the stationary distribution, at each of ``times`` (≥ 0); their shape.

    ρ(t) = bᵀe^{At}b with b = √π(g − E g), by Galerkin projection onto the Krylov space of A⁻¹ and b: the modal sum
    with the best few dozen modes for this observable, stable for every t as the projection is dissipative too. The
    space grows until ρ changes by less than ``tolerance`` at all times, to 150 dimensions at most; the grid's own
    error, of second order, comes on top. ``values`` are g at the centres, ``cells``. Raises ValueError for a constant
    observable.
    """
    found = Resolvent(matrix, grid, pi) if resolvent is None else resolvent
    at = np.asarray(times, dtype=float)
    b = found.vector(values)
    basis = b[None, :]
    previous = np.full(at.shape, np.inf)
    while True:
        new = min(len(basis) + 10, 150) - len(basis)
        basis = _extend(found, basis, new)
        small = basis @ (found.matrix @ basis.T)
        rho = _decay(small, at)
        if len(basis) >= 150 or new == 0 or np.abs(rho - previous).max(initial=0.0) < tolerance:
            return rho
        previous = rho


def _extend(resolvent: Resolvent, basis: Array, new: int) -> Array:
    rows = list(basis)
    for _ in range(new):
        x = resolvent.solve(rows[-1])
        size = np.linalg.norm(x)
        stack = np.array(rows)
        for _ in range(2):  # twice is enough
            x = x - stack.T @ (stack @ x)
        if np.linalg.norm(x) < 1e-13 * size:
            break
        rows.append(x / np.linalg.norm(x))
    return np.array(rows)


def _decay(small: Array, times: Array) -> Array:
    """e_1ᵀ exp(small·t) e_1 for every t."""
    values, vectors = np.linalg.eig(small)
    weights = vectors[0] * np.linalg.solve(vectors, np.eye(len(small))[:, 0])
    if np.abs(weights).sum() < 1e4:
        return (np.exp(times[..., None] * values) @ weights).real
    # Nearly defective: eigenvectors lose what the exponential itself does not.
    out = [linalg.expm(small * t)[0, 0] for t in times.ravel()]
    return np.reshape(out, times.shape)


def integrated_time(
    matrix: sparse.csc_array, grid: Grid, pi: Array, values: Array, *, resolvent: Resolvent | None = None
) -> float:
    """The integrated autocorrelation time 2∫₀^∞ρ(t)dt = −2 bᵀA⁻¹b of an observable, from one linear system.

    In units of the SDE's time; a chain of step ε has about this over ε steps to an independent draw. Arguments as for
    :func:`predicted_autocorrelation`.
    """
    found = Resolvent(matrix, grid, pi) if resolvent is None else resolvent
    b = found.vector(values)
    return float(-2 * (b @ found.solve(b)))


def stationary(matrix: sparse.csc_array, grid: Grid, start: Array) -> Array:
    """The density that L keeps, mass one, ``cells``: for a generator with an extra drift, whose distribution is not
    e^{−H}.

    Solves L p = 0 with p = 1 in the likeliest cell of ``start``, a density that is not too far from it. Raises
    ValueError if that cell's density is not positive in the solution, or the solution takes more than 1e-6 of its mass
    below zero.
    """
    k = int(np.argmax(start))
    n = grid.size
    # L − c e_k e_kᵀ is regular, and (L − c e_k e_kᵀ)p = −c e_k gives 1ᵀ: p_k = 1, and so L p = 0.
    size = abs(float(matrix[k, k])) or 1.0
    pin = sparse.csc_array(([-size], ([k], [k])), shape=(n, n))
    right = np.zeros(n)
    right[k] = -size
    p = Factor(matrix + pin).solve(right)
    if not np.isfinite(p).all() or np.maximum(-p, 0).sum() > 1e-6 * np.abs(p).sum():
        raise ValueError("On this grid the dynamics have no stationary density that is positive.")
    p = np.maximum(p, 0)
    return (p / (p.sum() * grid.volume)).reshape(grid.cells)


# --- Gaussian cases in closed form


def gaussian_rates(covariance: ArrayLike, D: ArrayLike, Q: ArrayLike = 0.0) -> Complex:
    """The rates, eigenvalues of (D + Q)Σ⁻¹, of dz = −(D + Q)Σ⁻¹z dt + √(2D) dW, slowest first, (d,).

    The generator's spectrum is −Σ n_i·rate_i over all counts n_i ≥ 0.
    """
    values = np.linalg.eigvals(_drift_matrix(covariance, D, Q)).astype(complex)
    return values[np.lexsort((values.imag, values.real))]


def gaussian_gap(covariance: ArrayLike, D: ArrayLike, Q: ArrayLike = 0.0) -> float:
    """The spectral gap of the linear recipe: the least real part of :func:`gaussian_rates`."""
    return float(gaussian_rates(covariance, D, Q)[0].real)


def optimal_curl_gap(covariance: ArrayLike) -> float:
    """The largest gap that any constant Q gives for D = 1: tr(Σ⁻¹)/d (Lelièvre, Nier and Pavliotis 2013)."""
    sigma = np.atleast_2d(np.asarray(covariance, dtype=float))
    return float(np.trace(np.linalg.inv(sigma)) / len(sigma))


def optimal_curl(covariance: ArrayLike) -> float:
    """The least |q| that reaches :func:`optimal_curl_gap` in two dimensions, |s₁ − s₂|/(2√(s₁s₂)).

    s are the eigenvalues of Σ⁻¹. The rates of (1 + qJ)Σ⁻¹ have sum s₁ + s₂ and product (1 + q²)s₁s₂, so from this q
    on they are a complex pair with real part (s₁ + s₂)/2.
    """
    s = 1 / np.linalg.eigvalsh(np.asarray(covariance, dtype=float))
    if len(s) != 2:
        raise ValueError(f"The covariance must be 2 × 2, not {len(s)} × {len(s)}.")
    return float(abs(s[0] - s[1]) / (2 * np.sqrt(s[0] * s[1])))


def gaussian_autocorrelation(
    covariance: ArrayLike, D: ArrayLike, Q: ArrayLike, times: ArrayLike, direction: ArrayLike
) -> Array:
    """ρ(t) of cᵀz for the linear recipe, cᵀe^{−Bt}Σc / cᵀΣc with B = (D + Q)Σ⁻¹; the shape of ``times``."""
    sigma = np.atleast_2d(np.asarray(covariance, dtype=float))
    B = _drift_matrix(covariance, D, Q)
    c = np.atleast_1d(np.asarray(direction, dtype=float))
    at = np.asarray(times, dtype=float)
    out = [c @ linalg.expm(-B * t) @ sigma @ c for t in at.ravel()]
    return np.reshape(out, at.shape) / float(c @ sigma @ c)


def gaussian_law(
    covariance: ArrayLike, D: ArrayLike, Q: ArrayLike, mean: ArrayLike, spread: ArrayLike, time: float
) -> tuple[Array, Array]:
    """Mean and covariance at ``time`` from N(mean, spread): e^{−Bt}m and Σ + e^{−Bt}(S − Σ)e^{−Bᵀt}; (d,), (d, d)."""
    sigma = np.atleast_2d(np.asarray(covariance, dtype=float))
    flow = linalg.expm(-_drift_matrix(covariance, D, Q) * time)
    start = np.atleast_2d(np.asarray(spread, dtype=float))
    return flow @ np.atleast_1d(np.asarray(mean, dtype=float)), sigma + flow @ (start - sigma) @ flow.T


def _drift_matrix(covariance: ArrayLike, D: ArrayLike, Q: ArrayLike) -> Array:
    sigma = np.atleast_2d(np.asarray(covariance, dtype=float))
    both = np.broadcast_to(np.asarray(D, dtype=float) + np.asarray(Q, dtype=float), sigma.shape)
    return both @ np.linalg.inv(sigma)


# --- Assembly


class _Rates:
    """Rates of jumps out of every cell, by the neighbour they go to."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.out: dict[tuple[int, ...], Array] = {}
        # The part that is carried along, not diffused: velocity over the cell's width, in each coordinate.
        self.speed = [np.zeros(grid.cells) for _ in grid.cells]

    def add(self, axis: int, forth: Array, back: Array) -> None:
        """The flow forth·p_a − back·p_b from each cell a to the next one, b, in coordinate ``axis``."""
        step = tuple(int(k == axis) for k in range(self.grid.ndim))
        here, there = ([slice(None)] * self.grid.ndim for _ in range(2))
        here[axis], there[axis] = slice(None, -1), slice(1, None)
        self.leave(step, tuple(here), forth)
        self.leave(tuple(-s for s in step), tuple(there), back)

    def leave(self, step: tuple[int, ...], cells: tuple[slice, ...], rate: Array) -> None:
        """Add ``rate`` for jumps from ``cells`` to those that are ``step`` away."""
        out = self.out.get(step)
        if out is None:
            out = self.out[step] = np.zeros(self.grid.cells)
        out[cells] += rate

    def matrix(self) -> sparse.csc_array:
        """L: the rates, and on the diagonal what makes the columns sum to zero."""
        n = self.grid.size
        strides = (1,) if self.grid.ndim == 1 else (self.grid.cells[1], 1)
        # In the diagonal format data[k, j] is the entry of column j: the rate out of cell j.
        offsets = [-sum(s * d for s, d in zip(step, strides, strict=True)) for step in self.out]
        rates = [rate.ravel() for rate in self.out.values()]
        data = np.array([*rates, -np.sum(rates, axis=0)])
        out = sparse.csc_array(sparse.dia_array((data, [*offsets, 0]), shape=(n, n)))
        out.eliminate_zeros()
        return out


def _between(grid: Grid, energy: Field, lowest: float, H: Array, between: Sequence[int]) -> Array:
    """The energy at inner faces or corners, at least the highest of the cells around less STEEPEST."""
    around = H
    for axis in between:
        around = np.maximum(_left(around, axis), _right(around, axis))
    values = grid.evaluate(energy, between) - lowest
    return np.maximum(values, around - STEEPEST)


def _add_diffusion(rates: _Rates, H: Array, axis: int, d: Array, level: Array) -> None:
    scaled = d / rates.grid.steps[axis] ** 2
    rates.add(axis, scaled * np.exp(_left(H, axis) - level), scaled * np.exp(_right(H, axis) - level))


def _add_mixed(rates: _Rates, H: Array, faces: list[Array], levels: list[Array], corner: Array, rho: Array) -> None:
    # A product of differences along two sides of a triangle is half of (square along the third − squares along the
    # two). So a triangle moves weight from its two sides to the diagonal.
    h1, h2 = rates.grid.steps
    size = [np.sqrt(d) for d in faces]
    low, high = slice(None, -1), slice(1, None)
    for sign in (1, -1):
        correlation = np.maximum(sign * rho, 0)
        if not correlation.any():
            continue
        # (x, y): the end of the corner's cells at which the triangle's right angle is. Its ends on the diagonal are the
        # same for both triangles.
        ends = ((low, low), (high, high)) if sign == 1 else ((low, high), (high, low))
        triangles = ((high, low), (low, high)) if sign == 1 else ((low, low), (high, high))
        step = (1, sign)
        middles = []
        for x, y in triangles:
            level = (levels[0][:, y] + levels[1][x]) / 2
            for cells in (*ends, (x, y)):
                level = np.maximum(level, H[cells] - STEEPEST)
            middles.append(level)
        # The two weights together are to be 2 D12 π at the corner; each at most the mean of its sides' in the geometric
        # sense, so that the form stays non-negative.
        with np.errstate(over="ignore", divide="ignore"):
            share = 2 / (np.exp(corner - middles[0]) + np.exp(corner - middles[1]))
            share = np.minimum(share * correlation, 1.0) / (2 * h1 * h2)
        for (x, y), level in zip(triangles, middles, strict=True):
            value = share * size[0][:, y] * size[1][x]
            for pair, direction, part in (
                (((low, y), (high, y)), (1, 0), -value),
                (((x, low), (x, high)), (0, 1), -value),
                (ends, step, value),
            ):
                rates.leave(direction, pair[0], part * np.exp(H[pair[0]] - level))
                rates.leave((-direction[0], -direction[1]), pair[1], part * np.exp(H[pair[1]] - level))


def _add_curl(rates: _Rates, H: Array, q: Array, corner: Array) -> None:
    for axis, sign in ((0, -1.0), (1, 1.0)):
        across = 1 - axis
        for cells, back in ((_left(H, axis), False), (_right(H, axis), True)):
            # qπ at the two ends of the face, over π of the cell that the rate leaves. On the walls it is zero.
            ends = []
            for side in (_left, _right):
                part = side(cells, across)
                ends.append(_wall(q * np.exp(part - corner), across, side is _left))
            flow = sign * (ends[0] - ends[1]) / (2 * rates.grid.volume)
            step = [0, 0]
            step[axis] = -1 if back else 1
            place = [slice(None), slice(None)]
            place[axis] = slice(1, None) if back else slice(None, -1)
            flow = -flow if back else flow
            rates.leave(tuple(step), tuple(place), flow)
            # Rates ± v/2h to the two sides.
            rates.speed[axis][tuple(place)] += -flow if back else flow


def _damp_rough(rates: _Rates, H: Array, axis: int, d: Array) -> None:
    grid = rates.grid
    speed = np.abs(rates.speed[axis])
    if not speed.any():
        return
    weight = np.exp(-H)
    mean = float((speed * weight).sum() / weight.sum())
    x = grid.mesh()[axis]
    centre = (x * weight).sum() / weight.sum()
    sd = np.sqrt(((x - centre) ** 2 * weight).sum() / weight.sum())
    inner = (_left(weight, axis) + _right(weight, axis)) / 2
    damping = 4 * float((d * inner).sum() / inner.sum()) / grid.steps[axis] ** 2
    if damping >= ENOUGH * mean * grid.steps[axis] / sd:
        return
    before, after = _left(_left(H, axis), axis), _right(_right(H, axis), axis)
    here = _left(_right(H, axis), axis)
    highest = np.maximum(np.maximum(before, after), here)
    strength = ROUGH * _left(_right(speed, axis), axis)
    # −κ s sᵀ with s = (1, −2, 1) on each three cells in a row, as flows between its three pairs.
    coefficients = (1.0, -2.0, 1.0)
    energies = (before, here, after)
    n = grid.cells[axis]
    for i in range(3):
        for j in range(i + 1, 3):
            step = [0] * grid.ndim
            step[axis] = j - i
            product = -coefficients[i] * coefficients[j] * strength
            for a, sign in ((i, 1), (j, -1)):
                place = [slice(None)] * grid.ndim
                place[axis] = slice(a, n - 2 + a)
                rate = product * np.exp(energies[a] - highest)
                rates.leave((sign * step[0], sign * step[1]), tuple(place), rate)


def _wall(values: Array, axis: int, at_end: bool) -> Array:
    """``values`` with a zero after the last, or before the first, along ``axis``."""
    return np.pad(values, [((0, 1) if at_end else (1, 0)) if k == axis else (0, 0) for k in range(2)])


def _correlation(grid: Grid, d11: Field, d12: Array, d22: Field) -> Array:
    """D12/√(D11 D22) at the corners. Raises ValueError where it is beyond ±1."""
    size = np.sqrt(_non_negative(grid, d11, (0, 1), "D11")) * np.sqrt(_non_negative(grid, d22, (0, 1), "D22"))
    excess = np.abs(d12) - size
    worst = int(excess.argmax())
    if excess.flat[worst] > 1e-9 * (np.abs(d12).flat[worst] + size.flat[worst]):
        where = tuple(float(x.flat[worst]) for x in grid.mesh((0, 1)))
        raise ValueError(f"D is not positive semidefinite at z = {where}: D12² exceeds D11·D22.")
    return np.clip(np.divide(d12, size, out=np.zeros_like(size), where=size > 0), -1.0, 1.0)


def _finite(grid: Grid, field: Field, between: Sequence[int], name: str) -> Array:
    out = grid.evaluate(field, between)
    if not np.isfinite(out).all():
        raise ValueError(f"{name} is not finite at z = {_point(grid.mesh(between), ~np.isfinite(out))}.")
    return out


def _non_negative(grid: Grid, field: Field, between: Sequence[int], name: str) -> Array:
    out = _finite(grid, field, between, name)
    if out.min() < 0:
        points = grid.mesh(between)
        raise ValueError(f"{name} is {out.min():.3g}, below zero, at z = {_point(points, out == out.min())}.")
    return out


def _point(points: tuple[Array, ...], where: NDArray[np.bool_]) -> tuple[float, ...]:
    first = int(np.argmax(where))
    return tuple(float(x.flat[first]) for x in points)


def _left(values: Array, axis: int) -> Array:
    return values[:-1] if axis == 0 else values[:, :-1]


def _right(values: Array, axis: int) -> Array:
    return values[1:] if axis == 0 else values[:, 1:]


def _pad(values: Array, axis: int) -> Array:
    return np.pad(values, [(1, 1) if k == axis else (0, 0) for k in range(values.ndim)])


def _product(parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else np.outer(*parts)

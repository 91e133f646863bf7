"""Running statistics, updated for every step, at a cost and in a memory that do not grow with the run.

For every column of the target: a histogram, four power sums for each chain, and autocovariances at
lags 0…15 of every 4th, 16th, 64th… step. A frame therefore costs the same at step 10⁹ as at step 10³.
Of the draws themselves only a tail and a thinned history are kept.

With a step-size schedule a draw counts with the weight ε_t, in whole units of a :data:`UNIT`-th of the first step; the
rest is carried to the next draw, so that the total has no rounding error. A sampler can give each draw of each chain a
weight of its own, up to 1, which is counted in the same units. Histograms and power sums are then weighted, and the
history has each draw's weight behind it; autocovariances and the tail are not weighted.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.targets.base import Array, Column

N_BINS = 2048
"""Bins of a column's histogram, and one more at each end for what falls outside."""
N_JOINT = 120
"""Bins a side of the joint histogram of a two-dimensional target."""
N_LAGS = 16
"""Lags at each level; level k looks at every 4ᵏ-th step, so lags reach 15·4ᵏ."""
LAG_RATIO = 4
N_LEVELS = 12
WATCHED = 8
"""Chains whose draws and autocovariances are kept; an ensemble of 10,000 chains has the rest pooled."""
HISTORY = 1024
"""Draws a chain in the thinned history. When it is full, every second one is dropped."""
TAIL = 1024
"""The latest draws, all of them, for the path."""
BLOCK = 4096
"""Chain-steps between two updates: the draws of a block stay in the processor's second-level cache."""

UNIT = 2**20
"""The weight of a draw whose step has the size ε; without a schedule each draw has the weight 1."""

# Indices in the clock.
STEPS, KEPT, STRIDE, WRITTEN, WEIGHT = range(5)
# Indices in the weights. Where draws have weights of their own, these two are of all chains, and no part is carried in
# the second; behind them are the total of each chain, and the part that it carries.
SQUARES, CARRY, CHAINS = range(3)


class Sums(NamedTuple):
    """The arrays as the compiled loop sees them."""

    clock: Any
    """[steps counted, draws in the history, its stride, steps written to the tail, sum of the steps' weights, or of all
    draws' weights where each has its own]."""
    scales: Any
    """(columns, 5): whether binned by logarithm, lowest edge, bins a unit, centre, 1/scale."""
    bins: Any
    """(columns, N_BINS + 2)."""
    joint_scales: Any
    """[x low, bins a unit, y low, bins a unit]."""
    joint: Any
    """(N_JOINT, N_JOINT), or (0, 0) where the target is not two-dimensional."""
    powers: Any
    """(columns, chains, 4): Σ zᵖ of z = (value − centre)/scale."""
    lag_sums: Any
    """(columns, watched, N_LEVELS·N_LAGS): Σ z_t z_{t−lag}."""
    lag_recent: Any
    """(columns, watched, N_LEVELS·N_LAGS): the last N_LAGS values of z at each level, oldest first."""
    lag_first: Any
    """(columns, watched, N_LEVELS·N_LAGS): the first N_LAGS values of z at each level."""
    level_sums: Any
    """(columns, watched, N_LEVELS): Σ z of the steps that a level looks at."""
    history: Any
    """(watched, HISTORY, columns + 1): values of the columns, and the weight of the draw."""
    tail: Any
    """(TAIL, watched, dim): a ring of θ."""
    weights: Any
    """[sum of the squares of the weights, part of a unit that is carried to the next weight]; where draws have weights
    of their own, also the total of each chain and the part that each carries, (2 + 2·chains,)."""


sums_type = types.NamedTuple(
    [
        jit.integers,
        jit.matrix,
        jit.integer_matrix,
        jit.vector,
        jit.integer_matrix,
        jit.cube,
        jit.cube,
        jit.cube,
        jit.cube,
        jit.cube,
        jit.cube,
        jit.cube,
        jit.vector,
    ],
    Sums,
)

# The bit pattern of a positive double, read as an integer and scaled by 2⁻⁵², is its binary logarithm
# with the curve between powers of two replaced by a chord, plus 1023: increasing, exactly invertible,
# and free of charge. It bins values from 1e-290 to 1 evenly in the logarithm.
_BITS = 2.0**-52


@jit.helper
def bin_values(scales, values, bits, n, bins):
    """Count (chains, n) values of one column."""
    low, per_unit = scales[1], scales[2]
    for c in range(values.shape[0]):
        for t in range(n):
            x = bits[c, t] * _BITS if scales[0] > 0 else values[c, t]
            position = (x - low) * per_unit
            bins[0 if position < 0 else N_BINS + 1 if position >= N_BINS else int(position) + 1] += 1


@jit.helper
def bin_pairs(scales, x, y, n, joint):
    """Count (chains, n) pairs; what falls outside the grid is left out of it."""
    for c in range(x.shape[0]):
        for t in range(n):
            i, j = (x[c, t] - scales[0]) * scales[1], (y[c, t] - scales[2]) * scales[3]
            if 0 <= i < N_JOINT and 0 <= j < N_JOINT:
                joint[int(i), int(j)] += 1


@jit.helper
def bin_weights(scales, values, bits, n, weights, bins):
    """Count (chains, n) values of one column with their weights, (1, n) of all chains or (chains, n)."""
    low, per_unit = scales[1], scales[2]
    for c in range(values.shape[0]):
        row = weights[min(c, weights.shape[0] - 1)]
        for t in range(n):
            x = bits[c, t] * _BITS if scales[0] > 0 else values[c, t]
            place = (x - low) * per_unit
            bins[0 if place < 0 else N_BINS + 1 if place >= N_BINS else int(place) + 1] += row[t]


@jit.helper
def bin_weights_of_pairs(scales, x, y, n, weights, joint):
    """Count (chains, n) pairs with their weights, (1, n) of all chains or (chains, n)."""
    for c in range(x.shape[0]):
        row = weights[min(c, weights.shape[0] - 1)]
        for t in range(n):
            i, j = (x[c, t] - scales[0]) * scales[1], (y[c, t] - scales[2]) * scales[3]
            if 0 <= i < N_JOINT and 0 <= j < N_JOINT:
                joint[int(i), int(j)] += row[t]


@jit.helper
def add_weighted_powers(values, n, weights, powers):
    """Add Σwz, Σwz², Σwz³, Σwz⁴ of ``n`` values."""
    for t in range(n):
        z, term = values[t], float(weights[t])
        for p in range(4):
            term *= z
            powers[p] += term


@jit.helper
def weigh(sums, shares, n, weights):
    """Make the weights of ``n`` steps of their sizes ε_t/ε."""
    for t in range(n):
        exact = shares[t] * UNIT
        sums.weights[SQUARES] += exact * exact
        exact += sums.weights[CARRY]
        weights[t] = int(exact)
        sums.weights[CARRY] = exact - weights[t]
        sums.clock[WEIGHT] += weights[t]


@jit.helper
def weigh_each(sums, own, n, weights):
    """Make the weights (chains, n) of ``n`` steps of the draws' own (≥ n, chains); each chain carries its part."""
    n_chains = weights.shape[0]
    totals, carry = sums.weights[CHAINS : CHAINS + n_chains], sums.weights[CHAINS + n_chains :]
    # Step by step, so that the sum of the squares is the same in pieces.
    for t in range(n):
        for c in range(n_chains):
            exact = own[t, c] * UNIT
            sums.weights[SQUARES] += exact * exact
            exact += carry[c]
            weights[c, t] = int(exact)
            carry[c] = exact - weights[c, t]
            totals[c] += weights[c, t]
            sums.clock[WEIGHT] += weights[c, t]


@jit.reduction
def add_powers(values, n, powers):
    """Add Σz, Σz², Σz³, Σz⁴ of ``n`` values."""
    s1 = s2 = s3 = s4 = 0.0
    for t in range(n):
        z = values[t]
        z2 = z * z
        s1 += z
        s2 += z2
        s3 += z2 * z
        s4 += z2 * z2
    powers[0] += s1
    powers[1] += s2
    powers[2] += s3
    powers[3] += s4


@jit.reduction
def add_lags(line, n, sums):
    """Add Σ z_t z_{t−lag} over the ``n`` values that follow the N_LAGS earlier ones in ``line``."""
    # Each factor is a slice from its own first element: an index t − lag might be negative for all that the compiler
    # knows, and it would not use vector instructions.
    z = line[N_LAGS:]
    for lag in range(0, N_LAGS, 4):
        first = N_LAGS - lag
        z0, z1 = line[first:], line[first - 1 :]
        z2, z3 = line[first - 2 :], line[first - 3 :]
        s0 = s1 = s2 = s3 = 0.0
        for t in range(n):
            s0 += z[t] * z0[t]
            s1 += z[t] * z1[t]
            s2 += z[t] * z2[t]
            s3 += z[t] * z3[t]
        sums[lag] += s0
        sums[lag + 1] += s1
        sums[lag + 2] += s2
        sums[lag + 3] += s3


@jit.helper
def add_all_lags(z, start, n, sums, recent, earliest, totals, line):
    """The autocovariance sums of one chain's values ``z`` (n,), of which the first has the number ``start``."""
    stride = 1
    for level in range(N_LEVELS):
        first = -start % stride
        if first >= n:
            break
        m = (n - 1 - first) // stride + 1
        at = level * N_LAGS
        for i in range(N_LAGS):
            line[i] = recent[at + i]
        total = 0.0
        for i in range(m):
            line[N_LAGS + i] = z[first + i * stride]
            total += line[N_LAGS + i]
        totals[level] += total
        seen = (start + stride - 1) // stride
        for i in range(min(m, N_LAGS - seen)):
            earliest[at + seen + i] = line[N_LAGS + i]
        add_lags(line, m, sums[at : at + N_LAGS])
        for i in range(N_LAGS):
            recent[at + i] = line[m + i]
        stride *= LAG_RATIO


@jit.helper
def accumulate(sums, draws, values, n, scratch, shares, own):
    """Count ``n`` steps: draws (steps, chains, dim), values (columns, chains, steps).

    ``shares``: the sizes ε_t/ε of the steps, (≥ n,), which weight the draws; empty where all weights are 1.
    ``own``: the weight of each draw, (≥ n, chains), its step's share included; empty where draws have none of their
    own.
    """
    n_columns, n_chains = values.shape[0], values.shape[1]
    watched = sums.history.shape[0]
    bits = values.view(np.int64)
    rows = n_chains if own.shape[0] > 0 else 1 if shares.shape[0] > 0 else 0
    weights, weighted = np.empty((rows, n), dtype=np.int64), rows > 0
    if weighted:
        if own.shape[0] > 0:
            weigh_each(sums, own, n, weights)
        else:
            weigh(sums, shares, n, weights[0])
        for k in range(n_columns):
            bin_weights(sums.scales[k], values[k], bits[k], n, weights, sums.bins[k])
        if sums.joint.shape[0] > 0:
            bin_weights_of_pairs(sums.joint_scales, values[0], values[1], n, weights, sums.joint)
    else:
        sums.weights[SQUARES] += n
        sums.clock[WEIGHT] += n
        for k in range(n_columns):
            bin_values(sums.scales[k], values[k], bits[k], n, sums.bins[k])
        if sums.joint.shape[0] > 0:
            bin_pairs(sums.joint_scales, values[0], values[1], n, sums.joint)
    steps = sums.clock[STEPS]
    z, line = scratch[0], scratch[1]
    for k in range(n_columns):
        centre, per_scale = sums.scales[k, 3], sums.scales[k, 4]
        for c in range(n_chains):
            for t in range(n):
                z[t] = (values[k, c, t] - centre) * per_scale
            if weighted:
                add_weighted_powers(z, n, weights[min(c, rows - 1)], sums.powers[k, c])
            else:
                add_powers(z, n, sums.powers[k, c])
            if c < watched:
                add_all_lags(
                    z,
                    steps,
                    n,
                    sums.lag_sums[k, c],
                    sums.lag_recent[k, c],
                    sums.lag_first[k, c],
                    sums.level_sums[k, c],
                    line,
                )
    for t in range(max(0, n - TAIL), n):
        index = (sums.clock[WRITTEN] + t) % TAIL
        for c in range(watched):
            for i in range(draws.shape[2]):
                sums.tail[index, c, i] = draws[t, c, i]
    stride = sums.clock[STRIDE]
    t = -steps % stride
    while t < n:
        if sums.clock[KEPT] == HISTORY:
            for c in range(watched):
                # By value: to assign a row compiles the text of an error.
                for i in range(HISTORY // 2):
                    for k in range(n_columns + 1):
                        sums.history[c, i, k] = sums.history[c, 2 * i, k]
            sums.clock[KEPT] = HISTORY // 2
            stride *= 2
            # The history is full after HISTORY·stride steps, a multiple of the new stride: t stays.
        kept = sums.clock[KEPT]
        for c in range(watched):
            for k in range(n_columns):
                sums.history[c, kept, k] = values[k, c, t]
            weight = own[t, c] if own.shape[0] > 0 else shares[t] if shares.shape[0] > 0 else 1.0
            sums.history[c, kept, n_columns] = weight
        sums.clock[KEPT] += 1
        t += stride
    sums.clock[STRIDE] = stride
    sums.clock[WRITTEN] += n
    sums.clock[STEPS] += n


@jit.loop(types.void(sums_type, jit.cube, jit.cube, jit.matrix))
def count_row(sums, draws, values, scratch):
    """Count one step: draws (1, chains, dim), values (columns, chains, 1), scratch (2, 1 + N_LAGS)."""
    accumulate(sums, draws, values, 1, scratch, np.empty(0), np.empty((0, 0)))


# --- readings --------------------------------------------------------------------------------------------------------

PART = 64
"""Terms that are summed by themselves, so that rounding errors do not add up over 10,000 chains."""


@jit.reading(jit.float64(jit.cube, jit.int64, jit.int64, jit.int64))
def raw_moment(powers, total, k, power):
    """E zᵖ of column ``k`` over all draws, which have the weight ``total``; 0 before the first."""
    n_chains, found = powers.shape[1], 0.0
    for first in range(0, n_chains, PART):
        part = 0.0
        for c in range(first, min(first + PART, n_chains)):
            part += powers[k, c, power - 1]
        found += part
    return found / max(total, 1)


@jit.reading(types.void(jit.cube, jit.matrix, jit.vector, jit.int64, jit.vector))
def chain_means(powers, scales, chain_weights, k, out):
    """The mean of column ``k`` in each chain, out (chains,); chain_weights (chains,) are the weights of its draws."""
    scale = 1.0 / scales[k, 4]
    for c in range(powers.shape[1]):
        out[c] = scales[k, 3] + scale * powers[k, c, 0] / max(chain_weights[c], 1.0)


@jit.reading(jit.float64(jit.cube, jit.matrix, jit.int64, jit.int64))
def mean(powers, scales, total, k):
    """The mean of column ``k`` over all draws, which have the weight ``total``."""
    return scales[k, 3] + raw_moment(powers, total, k, 1) / scales[k, 4]


@jit.reading(jit.float64(jit.cube, jit.matrix, jit.int64, jit.int64))
def variance(powers, scales, total, k):
    """The variance of column ``k`` over all draws, about their own mean."""
    first, second = raw_moment(powers, total, k, 1), raw_moment(powers, total, k, 2)
    return (second - first**2) / scales[k, 4] ** 2


@jit.reading(jit.int64(jit.cube, jit.int64, jit.int64, jit.int64, jit.integer_matrix))
def pick(tail, written, seen, most, out):
    """Pick the newest draw and others evenly spaced before it, at most ``most``, oldest first, from those that were
    written to the ring ``tail`` after the first ``seen``. Returns their number.

    out (2, ≥ most): their rows in the ring, and how many steps before the newest they are.
    """
    size = tail.shape[0]
    fresh = max(min(written - seen, written, size), 0)
    step = max((fresh + most - 1) // most, 1)
    n = (fresh + step - 1) // step
    for i in range(n):
        age = (n - 1 - i) * step
        out[0, i], out[1, i] = (written - 1 - age) % size, age
    return n


def _log_scale(x: float) -> float:
    return float(np.float64(x).view(np.int64)) * _BITS


def bin_edges(column: Column) -> Array:
    """The N_BINS + 1 edges of a column's histogram."""
    if not column.log:
        return np.linspace(column.low, column.high, N_BINS + 1)
    places = np.linspace(_log_scale(column.low), _log_scale(column.high), N_BINS + 1) / _BITS
    edges = np.round(places).astype(np.int64).view(np.float64)
    edges[0], edges[-1] = column.low, column.high
    return edges


@dataclass
class Statistics:
    """The running statistics of one lane."""

    columns: tuple[Column, ...]
    sums: Sums

    @classmethod
    def empty(
        cls, columns: tuple[Column, ...], n_chains: int, dim: int, planar: bool = False, own_weights: bool = False
    ) -> "Statistics":
        """Nothing counted yet of these columns of draws (dim,); of two columns with a joint histogram if ``planar``.

        ``own_weights``: whether each draw has a weight of its own.
        """
        n_columns, watched = len(columns), min(n_chains, WATCHED)
        scales = np.empty((n_columns, 5))
        for k, column in enumerate(columns):
            low, high = (_log_scale(column.low), _log_scale(column.high)) if column.log else (column.low, column.high)
            scales[k] = column.log, low, N_BINS / (high - low), column.mean, 1 / np.sqrt(column.variance)
        joint = np.zeros(4)
        if planar:
            (x0, x1), (y0, y1) = columns[0].axis, columns[1].axis
            joint[:] = x0, N_JOINT / (x1 - x0), y0, N_JOINT / (y1 - y0)
        side = N_JOINT if planar else 0
        sums = Sums(
            clock=np.array([0, 0, 1, 0, 0], dtype=np.int64),
            scales=scales,
            bins=np.zeros((n_columns, N_BINS + 2), dtype=np.int64),
            joint_scales=joint,
            joint=np.zeros((side, side), dtype=np.int64),
            powers=np.zeros((n_columns, n_chains, 4)),
            lag_sums=np.zeros((n_columns, watched, N_LEVELS * N_LAGS)),
            lag_recent=np.zeros((n_columns, watched, N_LEVELS * N_LAGS)),
            lag_first=np.zeros((n_columns, watched, N_LEVELS * N_LAGS)),
            level_sums=np.zeros((n_columns, watched, N_LEVELS)),
            history=np.zeros((watched, HISTORY, n_columns + 1)),
            tail=np.zeros((TAIL, watched, dim)),
            weights=np.zeros(CHAINS + 2 * n_chains if own_weights else CHAINS),
        )
        return cls(columns, sums)

    def copy(self) -> "Statistics":
        """The same numbers, which stay where these go on."""
        return Statistics(self.columns, Sums(*(array.copy() for array in self.sums)))

    def restart(self) -> None:
        """Forget what was counted; the scales and the tail of draws stay."""
        for name, array in self.sums._asdict().items():
            if name not in ("scales", "joint_scales", "tail"):
                array[:] = [0, 0, 1, array[WRITTEN], 0] if name == "clock" else 0

    @property
    def n_steps(self) -> int:
        """Steps counted, for each chain."""
        return int(self.sums.clock[STEPS])

    @property
    def n_chains(self) -> int:
        """How many chains there are."""
        return self.sums.powers.shape[1]

    @property
    def n_draws(self) -> int:
        """Draws counted, of all chains."""
        return self.n_steps * self.n_chains

    @property
    def own_weights(self) -> bool:
        """Whether each draw of each chain has a weight of its own."""
        return self.sums.weights.size > CHAINS

    @property
    def chain_weights(self) -> Array:
        """The weight of all counted steps of each chain, (chains,): their number where draws have no weights."""
        if self.own_weights:
            return self.sums.weights[CHAINS : CHAINS + self.n_chains]
        return np.full(self.n_chains, float(self.sums.clock[WEIGHT]))

    @property
    def weight(self) -> float:
        """The weight of all counted steps of a chain, or its mean over the chains where they differ: a whole number
        where they do not, and that of the steps where no draw has a weight.
        """
        weight = int(self.sums.clock[WEIGHT])
        return weight / self.n_chains if self.own_weights else weight

    @property
    def total(self) -> int:
        """The weight of all draws: what the histogram adds up to."""
        weight = int(self.sums.clock[WEIGHT])
        return weight if self.own_weights else weight * self.n_chains

    @property
    def weighted(self) -> bool:
        """Whether draws have weights, by a schedule or of their own."""
        return self.own_weights or self.weight != self.n_steps

    @property
    def why_weighted(self) -> str:
        """Why the draws have weights, which have no autocorrelation time; empty where they have none."""
        if self.own_weights:
            return "its draws have weights"
        return "the step size falls" if self.weighted else ""

    @property
    def n_effective(self) -> float:
        """How many draws of equal weight have the same variance of a mean, were the draws independent: (Σw)²/Σw²."""
        return self.total / self.mean_weight

    @property
    def mean_weight(self) -> float:
        """Σw²/Σw of the weights w of the draws; 1 where they have none."""
        if self.own_weights:
            # In whole units a draw's weight may be 0.
            return float(self.sums.weights[SQUARES]) / self.total if self.total else 1.0
        return float(self.sums.weights[SQUARES]) / self.weight if self.weighted else 1.0

    def counts(self, k: int) -> NDArray[np.int64]:
        """The histogram of column ``k``, of draws or of their weights: (N_BINS + 2,), the outer two are what fell
        outside.
        """
        return self.sums.bins[k]

    def chain_means(self, k: int) -> Array:
        """The mean of column ``k`` in each chain, (chains,)."""
        jit.prepare([chain_means])
        out = np.empty(self.n_chains)
        chain_means(self.sums.powers, self.sums.scales, self.chain_weights, k, out)
        return out

    def raw_moment(self, k: int, power: int) -> float:
        """E zᵖ of z = (value − centre)/scale, of its scales, over all draws."""
        jit.prepare([raw_moment])
        return raw_moment(self.sums.powers, self.total, k, power)

    def mean(self, k: int) -> float:
        """The mean of column ``k`` over all draws."""
        jit.prepare([mean])
        return mean(self.sums.powers, self.sums.scales, self.total, k)

    def variance(self, k: int) -> float:
        """The variance of column ``k`` over all draws, about their own mean."""
        jit.prepare([variance])
        return variance(self.sums.powers, self.sums.scales, self.total, k)

    def history(self) -> Array:
        """The thinned draws (watched, kept, columns), oldest first."""
        return self.sums.history[:, : self.sums.clock[KEPT], :-1]

    def history_weights(self) -> Array:
        """The weights of the thinned draws, (watched, kept): 1 where draws have none."""
        return self.sums.history[:, : self.sums.clock[KEPT], -1]

    def equal_draws(self, most: int) -> Array:
        """Draws of equal weight, at most ``most``, (n, columns), of the thinned draws of all its chains: evenly spaced
        in the sum of their weights, so that a draw of more weight stands for itself more than once.
        """
        history, sums = self.history(), np.cumsum(self.history_weights().ravel())
        draws = history.reshape(-1, history.shape[-1])
        if not (len(sums) and sums[-1] > 0):
            return draws[:0]
        n = min(most, len(draws))
        return np.asarray(draws[np.searchsorted(sums, (np.arange(n) + 0.5) * sums[-1] / n, side="right")])

    @property
    def history_stride(self) -> int:
        """Steps between two draws of the history."""
        return int(self.sums.clock[STRIDE])

    def fresh(self, unseen: int, most: int) -> tuple[Array, NDArray[np.int64]]:
        """The newest of the last ``unseen`` draws of θ and others evenly spaced before it, oldest first, at most
        ``most``, (m, watched, dim); and how many steps before the newest they are, (m,).
        """
        jit.prepare([pick])
        written, out = int(self.sums.clock[WRITTEN]), np.empty((2, most), dtype=np.int64)
        n = pick(self.sums.tail, written, written - unseen, most, out)
        return self.sums.tail[out[0, :n]], out[1, :n]

    def tail(self, n: int) -> Array:
        """The last draws of θ, at most ``n`` of them, oldest first, (m, watched, dim)."""
        written = int(self.sums.clock[WRITTEN])
        n = min(n, written, TAIL)
        return self.sums.tail[np.arange(written - n, written) % TAIL]

"""R-hat and effective sample sizes, as ArviZ has them (Vehtari et al. 2021)."""

from math import erfc, exp, log, log10, pi, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers.compile import jit

Array = NDArray[np.float64]

FEWEST = 4
"""Draws of a chain."""
STILL = 1e-6
"""Chains stand still where the later half of their draws varies by no more than this share of all of them."""
TAIL_PROBABILITY = 0.05
"""The tail ESS is the smaller one of the 5 % and the 95 % quantile's."""
REASONS = (
    "",
    "no draws yet",
    "too few draws yet",
    "draws are not finite",
    "the chains stand still",
    "all chains are the same",
)
"""Why there are no diagnostics, by the number that :func:`refused` returns."""
ENOUGH = 50.0
"""Effective draws that a τ needs: then it is known to about a third."""
WORK = 5
"""Rows of numbers as long as all draws that :func:`summarise` works in."""

_SAME = 1e-15
"""Draws that vary by less count as equal, as in ArviZ."""
_RUN = 16


@jit.reading(jit.int64(jit.cube, jit.int64, jit.int64))
def refused(history, kept, k):
    """The one of ``REASONS`` that column ``k`` of the first ``kept`` draws (chains, draws, columns) gives."""
    n_chains = history.shape[0]
    if kept < FEWEST:
        return 2 if kept > 0 else 1
    late_range, whole_range, same = 0.0, 0.0, n_chains > 1
    for c in range(n_chains):
        low = high = late_low = late_high = history[c, kept - 1, k]
        for t in range(kept):
            x = history[c, t, k]
            if not abs(x) < np.inf:
                return 3
            low, high = min(low, x), max(high, x)
            if t >= kept // 2:
                late_low, late_high = min(late_low, x), max(late_high, x)
            same = same and x == history[0, t, k]
        late_range, whole_range = max(late_range, late_high - late_low), max(whole_range, high - low)
    if late_range <= STILL * whole_range:
        return 4
    return 5 if same else 0


@jit.helper
def merged(values, places, start, middle, end, out, out_places):
    """Merge two runs that are sorted, [start, middle) and [middle, end)."""
    i, j = start, middle
    for at in range(start, end):
        if i < middle and (j >= end or not values[j] < values[i]):
            out[at], out_places[at] = values[i], places[i]
            i += 1
        else:
            out[at], out_places[at] = values[j], places[j]
            j += 1


@jit.helper
def sort(values, places, n, spare, spare_places):
    """Sort the first ``n`` values, and what belongs to them, in place."""
    for start in range(0, n, _RUN):
        for i in range(start + 1, min(start + _RUN, n)):
            x, place, j = values[i], places[i], i
            while j > start and x < values[j - 1]:
                values[j], places[j] = values[j - 1], places[j - 1]
                j -= 1
            values[j], places[j] = x, place
    width = _RUN
    while width < n:
        for start in range(0, n, 2 * width):
            middle, end = min(start + width, n), min(start + 2 * width, n)
            if middle < end and values[middle] < values[middle - 1]:
                merged(values, places, start, middle, end, spare, spare_places)
                for i in range(start, end):
                    values[i], places[i] = spare[i], spare_places[i]
        width *= 2


@jit.helper
def normal_quantile(p, start):
    """z with Φ(z) = p ≤ ½, by Halley's method."""
    z = start
    for _ in range(100):
        excess = (0.5 * erfc(-z / sqrt(2.0)) - p) * sqrt(2 * pi) * exp(z * z / 2)
        step = excess / (1 + z * excess / 2)
        z -= step
        # The remainder is of the order of the step's cube.
        if abs(step) < 1e-6:
            break
    return z


@jit.helper
def normal_scores(values, places, n, table, out):
    """The normal quantiles of the ranks of ``n`` sorted values, equal ones of their mean rank, each at its place.

    ``table``: those of the first n/2 ranks.
    """
    i = 0
    while i < n:
        j = i
        while j + 1 < n and values[j + 1] == values[i]:
            j += 1
        # Twice the rank, so that it is whole, and twice that from the nearer end.
        rank = i + j + 2
        low = min(rank, 2 * n + 2 - rank)
        if low == n + 1:
            z = 0.0
        elif low % 2 == 0:
            z = table[low // 2 - 1]
        else:
            z = normal_quantile((low / 2 - 0.375) / (n + 0.25), table[low // 2 - 1])
        for at in range(i, j + 1):
            out[places[at]] = z if low == rank else -z
        i = j + 1


@jit.helper
def split_rhat(x, chains, n):
    """√((B/W + n − 1)/n) of ``chains`` chains of ``n`` draws, one after the other."""
    within = centre = spread = 0.0
    for c in range(chains):
        mean = square = 0.0
        for t in range(c * n, (c + 1) * n):
            mean += x[t]
        mean /= n
        for t in range(c * n, (c + 1) * n):
            square += (x[t] - mean) ** 2
        within += square / (n - 1) / chains
        # The running mean of the means, and the sum of squares about it.
        apart = mean - centre
        centre += apart / (c + 1)
        spread += apart * (mean - centre)
    between = n * spread / (chains - 1)
    return sqrt((between / within + n - 1) / n)


@jit.reduction
def lagged_sum(x, y, n):
    """Σ x_t y_t."""
    total = 0.0
    for t in range(n):
        total += x[t] * y[t]
    return total


@jit.helper
def mean_autocovariance(x, chains, n, lag):
    """The chains' mean of Σ_t x_t x_{t+lag}/n, of draws about the mean of their chain."""
    total = 0.0
    for c in range(chains):
        total += lagged_sum(x[c * n :], x[c * n + lag :], n - lag)
    return total / n / chains


@jit.helper
def effective_size(x, chains, n, rho):
    """The effective size of ``chains`` chains of ``n`` draws, one after the other, which are moved to mean 0.

    1 + 2 Σρ ends as Geyer's initial monotone sequence does. Each ρ costs a sum over all draws, and few are asked for.
    """
    low = high = x[0]
    centre = spread = square = 0.0
    for c in range(chains):
        mean = 0.0
        for t in range(c * n, (c + 1) * n):
            mean += x[t]
            low, high = min(low, x[t]), max(high, x[t])
        mean /= n
        for t in range(c * n, (c + 1) * n):
            x[t] -= mean
            square += x[t] * x[t]
        apart = mean - centre
        centre += apart / (c + 1)
        spread += apart * (mean - centre)
    if high - low < _SAME:
        return float(chains * n)
    within = square / chains / (n - 1.0)
    total = within * (n - 1.0) / n + (spread / (chains - 1) if chains > 1 else 0.0)
    for t in range(n):
        rho[t] = 0.0
    t, even, odd = -1, 1.0, 0.0
    while t < 0 or (t < n - 3 and even + odd > 0.0):
        for side in range(2):
            value = 1.0 - (within - mean_autocovariance(x, chains, n, t + 1 + side)) / total
            if side == 1:
                odd = value
            elif t >= 0:
                even = value
        if t < 0 or even + odd >= 0:
            rho[t + 1], rho[t + 2] = even, odd
        t += 2
    last = t - 2
    if even > 0:
        rho[last + 1] = even
    for t in range(1, last - 1, 2):
        if rho[t + 1] + rho[t + 2] > rho[t - 1] + rho[t]:
            rho[t + 1] = rho[t + 2] = (rho[t - 1] + rho[t]) / 2
    tau = -1.0 + rho[last + 1]
    for t in range(last + 1):
        tau += 2 * rho[t]
    return chains * n / max(tau, 1 / log10(float(chains * n)))


@jit.helper
def quantile(values, n, p):
    """The quantile of ``n`` sorted values, linear between them."""
    place = (n - 1) * p
    i = int(place)
    low, high, share = values[i], values[min(i + 1, n - 1)], place - int(place)
    return high - (high - low) * (1 - share) if share >= 0.5 else low + (high - low) * share


@jit.helper
def below(history, kept, k, limit, out):
    """Whether each draw of the halves of all chains is at most ``limit``, 1 or 0."""
    chains, half = history.shape[0], kept // 2
    for c in range(chains):
        for t in range(half):
            out[c * half + t] = 1.0 if history[c, t, k] <= limit else 0.0
            out[(chains + c) * half + t] = 1.0 if history[c, kept - half + t, k] <= limit else 0.0


@jit.reading(jit.int64(jit.cube, jit.int64, jit.int64, jit.matrix, jit.integer_matrix, jit.vector))
def summarise(history, kept, k, work, order, out):
    """R-hat, bulk and tail ESS, out (3,), of column ``k`` of the first ``kept`` draws (chains, draws, columns).

    work (WORK, ≥ chains·kept) and order (2, ≥ chains·kept) are overwritten. Returns what :func:`refused` does; where
    that is not 0 all are nan.
    """
    out[:] = np.nan
    why = refused(history, kept, k)
    if why != 0:
        return why
    chains, half = history.shape[0], kept // 2
    values, spare, scores, table, rho = work[0], work[1], work[2], work[3], work[4]
    places, spare_places = order[0], order[1]
    for c in range(chains):
        for t in range(kept):
            i = c * kept + t
            values[i], places[i] = history[c, t, k], i
    sort(values, places, chains * kept, spare, spare_places)
    lower = quantile(values, chains * kept, TAIL_PROBABILITY)
    upper = quantile(values, chains * kept, 1 - TAIL_PROBABILITY)
    # If the number of draws is odd, the middle one is in neither half.
    n = 0
    for i in range(chains * kept):
        c, t = places[i] // kept, places[i] % kept
        if t < half or t >= kept - half:
            values[n] = values[i]
            places[n] = c * half + t if t < half else (chains + c) * half + t - (kept - half)
            n += 1
    z = -sqrt(-2 * log(0.625 / (n + 0.25)))
    for i in range(n // 2):
        z = normal_quantile((i + 0.625) / (n + 0.25), z)
        table[i] = z
    # Each helper is called in one place, for the compiler writes it into its callers.
    for part in range(4):
        if part == 1:
            # Distances from the median are sorted, too, from it to either side.
            middle, i, j = (values[n // 2 - 1] + values[n // 2]) / 2, n // 2 - 1, n // 2
            for at in range(n):
                lower_next = j >= n or (i >= 0 and abs(values[i] - middle) <= abs(values[j] - middle))
                this = i if lower_next else j
                spare[at], spare_places[at] = abs(values[this] - middle), places[this]
                i, j = (i - 1, j) if lower_next else (i, j + 1)
            values, places = spare, spare_places
        if part < 2:
            normal_scores(values, places, n, table, scores)
            if chains > 1:
                found = split_rhat(scores, 2 * chains, half)
                out[0] = found if part == 0 or found > out[0] else out[0]
        else:
            below(history, kept, k, lower if part == 2 else upper, scores)
        if part != 1:
            found = effective_size(scores, 2 * chains, half, rho)
            to = 1 if part == 0 else 2
            out[to] = found if part != 3 or found < out[to] else out[to]
    return 0


@jit.reading(jit.float64(jit.vector, jit.vector, jit.vector))
def mean_tau(draws, work, rho):
    """τ of one chain's draws (n,), n over the ESS of its mean and at least 1; infinity below ENOUGH effective draws.

    The halves of the chain count as two. work and rho (n,) are overwritten.
    """
    n = draws.shape[0]
    half = n // 2
    for t in range(half):
        work[t] = draws[t]
        work[half + t] = draws[n - half + t]
    size = effective_size(work, 2, half, rho) if half > 1 else 0.0
    return max(n / size, 1.0) if size >= ENOUGH else np.inf


class Convergence(NamedTuple):
    """How well the chains agree. A value that the draws cannot give is nan."""

    rhat: float
    """Rank-normalised split R-hat, the larger one of bulk and folded; needs two chains."""
    ess_bulk: float
    """Effective draws for the centre, of those in the history."""
    ess_tail: float
    """Effective draws for the tails, of those in the history."""


def refusal(history: Array, column: int) -> str:
    """Why one column of draws (chains, draws, columns) has no diagnostics, in a few words; empty where it has them.

    Gradient descent ends in chains that stand still, and until then all its chains are one: nothing in them is random.
    """
    jit.prepare([refused])
    draws = _of_column(history, column)
    return REASONS[refused(draws, draws.shape[1], 0)]


def summary(history: Array, column: int) -> Convergence:
    """R-hat, bulk and tail ESS of one column of draws (chains, draws, columns).

    nan where :func:`refusal` has a reason.
    """
    jit.prepare([summarise])
    draws = _of_column(history, column)
    out = np.empty(3)
    summarise(draws, draws.shape[1], 0, np.empty((WORK, draws.size)), np.empty((2, draws.size), dtype=np.int64), out)
    return Convergence(*out.tolist())


def tau_of_mean(draws: Array) -> float:
    """:func:`mean_tau` of one chain's draws (n,)."""
    jit.prepare([mean_tau])
    return mean_tau(np.ascontiguousarray(draws, dtype=np.float64), np.empty(len(draws)), np.empty(len(draws)))


def _of_column(history: Array, column: int) -> Array:
    """A copy of one column, (chains, draws, 1), in C order."""
    return np.array(history[..., [column]], dtype=np.float64, order="C")

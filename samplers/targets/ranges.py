"""The ranges of histograms on a log scale."""

# The smallest value that a histogram resolves; doubles end at 2e-308 and their reciprocals at 4e-309.
TINY = 1e-290


def log_range(low: float, centre: float, high: float) -> tuple[float, float]:
    """A range around the quantiles ``low`` < ``centre`` < ``high`` with room for a biased sampler.

    It reaches half as far again from the centre, in the logarithm, but not beyond a factor of 1.5: the logarithm
    of a distribution with a small shape parameter already spans hundreds.
    """
    low, high = max(low, TINY), min(high, 1 / TINY)
    wider_low = max(low / 1.5, low * (low / centre) ** 0.5)
    wider_high = min(high * 1.5, high * (high / centre) ** 0.5)
    return max(wider_low, TINY), min(wider_high, 1 / TINY)

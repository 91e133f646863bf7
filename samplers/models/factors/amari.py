"""How far loadings are from those that are known, whatever their order, sign and scale."""

import numpy as np

from sgmcmc_lab.samplers.targets.base import Array


def amari(found: Array, known: Array) -> float:
    """The Amari error (Amari et al. 1996) of loadings found (D, ·) beside known ones (D, K): 0 where they are the same.

    With P = found⁺ known, (1/2K(K−1)) [Σ_i (Σ_j |p_ij|/max_j |p_ij| − 1) + Σ_j (Σ_i |p_ij|/max_i |p_ij| − 1)]. If more
    than K factors are found, the K largest count; one that is missing counts as one that is spread over all known ones.
    """
    n = known.shape[1]
    largest = np.argsort(-(found**2).sum(axis=0), kind="stable")[:n]
    kept = np.zeros((len(known), n))
    kept[:, : len(largest)] = found[:, largest]
    p = np.abs(np.linalg.pinv(kept) @ known)

    def spread(sums: Array, most: Array) -> float:
        return float((np.divide(sums, most, out=np.full_like(sums, n), where=most > 1e-12) - 1).sum())

    return (spread(p.sum(axis=1), p.max(axis=1)) + spread(p.sum(axis=0), p.max(axis=0))) / (2 * n * (n - 1))

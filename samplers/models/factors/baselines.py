"""The baselines of factor analysis: the rows' own covariance, that of Ledoit and Wolf, and sparse PCA."""

from collections.abc import Iterator

import numpy as np

from sgmcmc_lab.samplers.models.factors.amari import amari
from sgmcmc_lab.samplers.models.factors.model import Factors
from sgmcmc_lab.samplers.targets.base import Array

PENALTIES = 0.03, 0.1, 0.3, 1.0
"""The penalties of sparse PCA that are tried, times √N."""
MOST_ITERATIONS = 100


def empirical(model: Factors) -> Array:
    """The covariance of the rows that the methods see, which is singular where they are fewer than the columns."""
    return model.scatter / model.n_data


def _fits(model: Factors, n_factors: int) -> Iterator[tuple[Array, Array, Array]]:
    """Rᵀ of Y = QR, and loadings (D, K) and what they are multiplied with to give it, at each penalty.

    The problem is the same of R as of Y, so that it costs the same at every N beyond D.
    """
    from sklearn.decomposition import dict_learning

    upper = np.asarray(np.linalg.qr(model.y, mode="r")).T
    for penalty in PENALTIES:
        loadings, others, _ = dict_learning(
            upper, n_factors, alpha=penalty * model.n_data**0.5, max_iter=MOST_ITERATIONS, random_state=0
        )
        yield upper, np.asarray(loadings), np.asarray(others)


def sparse_pca(model: Factors, n_factors: int) -> tuple[Array, float]:
    """Loadings by sparse PCA (Zou et al. 2006; scikit-learn's routine), and their Amari error, at the best penalty.

    It cheats, as in Knowles 2015: the penalty is the one with the smallest error beside the known loadings.
    """
    truth = model.truth
    if truth is None:
        raise ValueError("sparse PCA needs the known loadings: it chooses its penalty by them")
    return min(((w, amari(w, truth)) for _, w, _ in _fits(model, n_factors)), key=lambda each: each[1])


def sparse_pca_covariance(model: Factors) -> Array:
    """A X Xᵀ Aᵀ/N + σ²I of sparse PCA's Rᵀ ≈ A X, σ² the mean square that it leaves, at the best penalty: with no
    loadings to know, that of the highest log density of the held-out rows, which flatters it.
    """
    found = []
    for upper, loadings, others in _fits(model, model.n_factors):
        fitted = loadings @ others
        noise = ((upper - fitted) ** 2).sum() / (model.n_data * model.n_columns)
        found.append(fitted @ fitted.T / model.n_data + noise * np.eye(model.n_columns))
    return max(found, key=model.score)

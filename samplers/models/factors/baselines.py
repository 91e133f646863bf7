"""What factor analysis is compared with: the rows' own covariance, that of Ledoit and Wolf, and sparse PCA."""

import numpy as np

from samplers.models.factors.amari import amari
from samplers.models.factors.model import Factors
from samplers.targets.base import Array

PENALTIES = 0.03, 0.1, 0.3, 1.0
"""What sparse PCA's penalty is tried at, times √N."""


def empirical(model: Factors) -> Array:
    """The covariance of the rows that the methods see, which is singular where they are fewer than the columns."""
    return model.scatter / model.n_data


def sparse_pca(model: Factors, n_factors: int) -> tuple[Array, float]:
    """Loadings by sparse PCA (Zou et al. 2006; scikit-learn's routine), and their Amari error, at the best penalty.

    It cheats, as in Knowles 2015: the penalty is the one with the smallest error beside the known loadings. The
    problem is the same of R, Y = QR, as of Y, so that it costs the same at every N beyond D.
    """
    from sklearn.decomposition import dict_learning

    if model.truth is None:
        raise ValueError("sparse PCA needs the known loadings: it chooses its penalty by them")
    upper = np.asarray(np.linalg.qr(model.y, mode="r"))
    found = []
    for penalty in PENALTIES:
        code = dict_learning(upper.T, n_factors, alpha=penalty * model.n_data**0.5, max_iter=100, random_state=0)[0]
        found.append((np.asarray(code), amari(np.asarray(code), model.truth)))
    return min(found, key=lambda each: each[1])

"""Sparse regression: the lasso and the probit lasso, by Gibbs sampling."""

from samplers.models.sparse.gibbs import BlockedGibbs, SparseGibbs
from samplers.models.sparse.minibatch_gibbs import MinibatchGibbs
from samplers.models.sparse.model import Sparse

SPARSE_METHODS = (SparseGibbs, MinibatchGibbs, BlockedGibbs)

__all__ = ["SPARSE_METHODS", "Sparse"]

"""Sparse regression: the lasso and the probit lasso, by Gibbs sampling."""

from sgmcmc_lab.samplers.models.sparse.gibbs import BlockedGibbs, SparseGibbs
from sgmcmc_lab.samplers.models.sparse.minibatch_gibbs import MinibatchGibbs
from sgmcmc_lab.samplers.models.sparse.model import Sparse

SPARSE_METHODS = (SparseGibbs, MinibatchGibbs, BlockedGibbs)

__all__ = ["SPARSE_METHODS", "Sparse"]

"""Latent Dirichlet allocation: the topics of documents."""

from sgmcmc_lab.samplers.models.topics.collapsed_gibbs import CollapsedGibbs
from sgmcmc_lab.samplers.models.topics.minibatch_gibbs import MinibatchGibbs
from sgmcmc_lab.samplers.models.topics.model import Topics
from sgmcmc_lab.samplers.models.topics.scir import SCIR
from sgmcmc_lab.samplers.models.topics.sghmc import SGHMC
from sgmcmc_lab.samplers.models.topics.sgld import SGLD
from sgmcmc_lab.samplers.models.topics.sgrhmc import SGRHMC
from sgmcmc_lab.samplers.models.topics.sgrld import SGRLD

TOPIC_METHODS = (CollapsedGibbs, SCIR, SGRLD, SGRHMC, SGHMC, SGLD, MinibatchGibbs)

__all__ = ["TOPIC_METHODS", "Topics"]

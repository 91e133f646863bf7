"""Latent Dirichlet allocation: the topics of documents."""

from samplers.models.topics.collapsed_gibbs import CollapsedGibbs
from samplers.models.topics.minibatch_gibbs import MinibatchGibbs
from samplers.models.topics.model import Topics
from samplers.models.topics.scir import SCIR
from samplers.models.topics.sghmc import SGHMC
from samplers.models.topics.sgld import SGLD
from samplers.models.topics.sgrhmc import SGRHMC
from samplers.models.topics.sgrld import SGRLD

TOPIC_METHODS = (CollapsedGibbs, SCIR, SGRLD, SGRHMC, SGHMC, SGLD, MinibatchGibbs)

__all__ = ["TOPIC_METHODS", "Topics"]

"""Latent Dirichlet allocation: the topics of documents."""

from samplers.models.topics.collapsed_gibbs import CollapsedGibbs
from samplers.models.topics.model import Topics
from samplers.models.topics.scir import SCIR
from samplers.models.topics.sgrld import SGRLD

TOPIC_METHODS = (CollapsedGibbs, SCIR, SGRLD)

__all__ = ["TOPIC_METHODS", "Topics"]

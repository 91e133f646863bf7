"""The models of real data and their methods; each is registered by one line."""

from samplers.models.base import Method, Model, Snapshot
from samplers.models.topics import TOPIC_METHODS, Topics
from samplers.registry import Registry

MODELS: Registry[type[Model]] = Registry("model", Topics)
METHODS: Registry[type[Method]] = Registry("method", *TOPIC_METHODS)

__all__ = ["METHODS", "MODELS", "Method", "Model", "Snapshot"]

"""The models of real data and their methods; each is registered by one line."""

from samplers.models.base import Method, Model, Snapshot
from samplers.registry import Registry

MODELS: Registry[type[Model]] = Registry("model")
METHODS: Registry[type[Method]] = Registry("method")

__all__ = ["METHODS", "MODELS", "Method", "Model", "Snapshot"]

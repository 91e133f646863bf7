"""The gradient itself."""

from samplers.gradients.base import Estimator


class Full(Estimator):
    """The exact gradient, from all the data."""

    key = "full"
    title = "Full"
    tex = r"\nabla\tilde U = \nabla U"

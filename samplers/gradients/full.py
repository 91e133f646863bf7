"""The gradient itself."""

from samplers.gradients.base import Estimator


class Full(Estimator):
    """The exact gradient, from all the data."""

    key = "full"
    title = "Full"
    tex = r"\nabla\tilde U = \nabla U"

    def textbook_gradients(self, rng, target, theta, data):
        return target.gradient_at(theta[None])

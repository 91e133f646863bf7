"""The estimators of the gradient: the third factor of recipe × integrator × gradient. One file an estimator."""

from samplers.gradients.base import Estimator
from samplers.gradients.full import Full
from samplers.gradients.gaussian import Gaussian
from samplers.gradients.gaussian_corrected import GaussianCorrected
from samplers.gradients.gaussian_estimated import GaussianEstimated
from samplers.gradients.minibatch import Minibatch
from samplers.gradients.minibatch_cv import MinibatchCV
from samplers.gradients.minibatch_cv_fisher import MinibatchCVFisher
from samplers.gradients.minibatch_fisher import MinibatchFisher
from samplers.gradients.minibatch_known import MinibatchKnown
from samplers.registry import Registry

GRADIENTS: Registry[type[Estimator]] = Registry(
    "gradient",
    Full,
    Gaussian,
    GaussianCorrected,
    GaussianEstimated,
    Minibatch,
    MinibatchKnown,
    MinibatchFisher,
    MinibatchCV,
    MinibatchCVFisher,
)

"""The estimators of the gradient: the third factor of recipe × integrator × gradient. One file an estimator."""

from samplers.gradients.base import Estimator
from samplers.gradients.full import Full
from samplers.gradients.gaussian import Gaussian
from samplers.gradients.gaussian_corrected import GaussianCorrected
from samplers.gradients.gaussian_estimated import GaussianEstimated
from samplers.gradients.minibatch import Minibatch
from samplers.gradients.minibatch_cv import MinibatchCV
from samplers.gradients.minibatch_cv_fisher import MinibatchCVFisher
from samplers.gradients.minibatch_epochs import MinibatchEpochs
from samplers.gradients.minibatch_fisher import MinibatchFisher
from samplers.gradients.minibatch_known import MinibatchKnown
from samplers.gradients.minibatch_saga import MinibatchSAGA
from samplers.gradients.minibatch_saga_fisher import MinibatchSAGAFisher
from samplers.gradients.minibatch_svrg import MinibatchSVRG
from samplers.gradients.minibatch_svrg_fisher import MinibatchSVRGFisher
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
    MinibatchEpochs,
    MinibatchSVRG,
    MinibatchSVRGFisher,
    MinibatchSAGA,
    MinibatchSAGAFisher,
)
GRADIENTS.add_installed("sgmcmc_lab.gradients", Estimator)

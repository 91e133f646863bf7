"""The estimators of the gradient: the third factor of recipe × integrator × gradient. One file an estimator."""

from sgmcmc_lab.samplers.gradients.base import Estimator
from sgmcmc_lab.samplers.gradients.full import Full
from sgmcmc_lab.samplers.gradients.gaussian import Gaussian
from sgmcmc_lab.samplers.gradients.gaussian_corrected import GaussianCorrected
from sgmcmc_lab.samplers.gradients.gaussian_estimated import GaussianEstimated
from sgmcmc_lab.samplers.gradients.minibatch import Minibatch
from sgmcmc_lab.samplers.gradients.minibatch_cv import MinibatchCV
from sgmcmc_lab.samplers.gradients.minibatch_cv_fisher import MinibatchCVFisher
from sgmcmc_lab.samplers.gradients.minibatch_epochs import MinibatchEpochs
from sgmcmc_lab.samplers.gradients.minibatch_fisher import MinibatchFisher
from sgmcmc_lab.samplers.gradients.minibatch_known import MinibatchKnown
from sgmcmc_lab.samplers.gradients.minibatch_saga import MinibatchSAGA
from sgmcmc_lab.samplers.gradients.minibatch_saga_fisher import MinibatchSAGAFisher
from sgmcmc_lab.samplers.gradients.minibatch_svrg import MinibatchSVRG
from sgmcmc_lab.samplers.gradients.minibatch_svrg_fisher import MinibatchSVRGFisher
from sgmcmc_lab.samplers.registry import Registry

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

"""The views of models, one a file, in the order of the page."""

from app.study.views.adjacency import Adjacency
from app.study.views.base import StudyView
from app.study.views.batch import Batch
from app.study.views.documents import Documents
from app.study.views.elbo import Elbo
from app.study.views.graph import GraphView
from app.study.views.pictures import Pictures
from app.study.views.rates import Rates
from app.study.views.scores import Scores
from app.study.views.sparsity import Sparsity
from app.study.views.weights import Weights
from app.study.views.words import Words
from samplers import Experiment
from samplers.registry import Registry

STUDY_VIEWS: Registry[type[StudyView]] = Registry(
    "view",
    Words,
    Pictures,
    GraphView,
    Scores,
    Sparsity,
    Batch,
    Documents,
    Adjacency,
    Rates,
    Elbo,
    Weights,
)


def default_views(experiment: Experiment) -> list[str]:
    """The views that the page of a model begins with."""
    return [key for key, view in STUDY_VIEWS.items() if view.fits(experiment) and view.first]

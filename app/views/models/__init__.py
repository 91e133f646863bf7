"""The views of models, one a file, in the order of the page."""

from app.views.models.adjacency import Adjacency
from app.views.models.base import ModelView
from app.views.models.batch import Batch
from app.views.models.documents import Documents
from app.views.models.elbo import Elbo
from app.views.models.graph import GraphView
from app.views.models.pictures import Pictures
from app.views.models.rates import Rates
from app.views.models.scores import Scores
from app.views.models.sparsity import Sparsity
from app.views.models.weights import Weights
from app.views.models.words import Words
from samplers.registry import Registry

MODEL_VIEWS: Registry[type[ModelView]] = Registry(
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

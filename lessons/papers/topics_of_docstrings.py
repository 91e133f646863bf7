"""How much topics of docstrings say of their subpackages.

The command is ``python -m sgmcmc_lab.lessons.papers.topics_of_docstrings``.
"""

import sys
from collections.abc import Sequence

import numpy as np

from sgmcmc_lab.samplers.console import Parser
from sgmcmc_lab.samplers.experiment import Experiment
from sgmcmc_lab.samplers.models import METHODS
from sgmcmc_lab.samplers.models.run import start
from sgmcmc_lab.samplers.models.topics.model import Topics
from sgmcmc_lab.samplers.parameters import Value

POINTS: dict[str, dict[str, Value]] = {
    "collapsed_gibbs": {},
    "lda_scir": {"step_size": 1.0},
    "lda_sgrld": {"step_size": 0.05},
}
"""The methods, at their best on the Reuters articles."""


def agreement(model: Topics, method: str, documents: int, seed: int) -> tuple[float, float]:
    """The normalised mutual information of labels and each document's commonest topic; and the perplexity."""
    from sklearn.metrics import normalized_mutual_info_score

    run = start(Experiment.of("topics", {method: POINTS[method]}, seed=seed), model)[0].chains[0]
    while run.data_seen < documents:
        run.advance()
    found = run.snapshot()["document_topics"]
    return float(normalized_mutual_info_score(model.training.labels, found)), run.scored()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the methods and print their table."""
    parser = Parser(prog="python -m sgmcmc_lab.lessons.papers.topics_of_docstrings", description=__doc__)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--topics", type=int, default=20)
    options = parser.parse_args(arguments)
    model = Topics(corpus="docstrings", n_topics=options.topics)
    print(", ".join(f"{text} {label}" for label, text in model.facts().items()))
    for method in POINTS:
        values = np.array([agreement(model, method, options.documents, seed + 1) for seed in range(options.seeds)])
        means, spreads = values.mean(axis=0), values.std(axis=0, ddof=1)
        print(
            f"{METHODS[method].title:16} NMI {means[0]:.3f}, sd {spreads[0]:.3f}; perplexity {means[1]:.0f}, sd {spreads[1]:.0f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Learn the topics of a corpus of one's own, without a screen, and print them."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sgmcmc_lab.samplers import file_format
from sgmcmc_lab.samplers.console import Parser
from sgmcmc_lab.samplers.experiment import Experiment
from sgmcmc_lab.samplers.lanes import samplers_of
from sgmcmc_lab.samplers.models.run import ModelChain, start
from sgmcmc_lab.samplers.models.topics.corpus import Corpus, read_path
from sgmcmc_lab.samplers.models.topics.model import Topics
from sgmcmc_lab.samplers.models.topics.stream import FileStream
from sgmcmc_lab.samplers.parameters import SpecError, declared

DEFAULTS = "collapsed_gibbs", "lda_scir"
"""The method for a corpus, and for a stream."""
CUT_OFFS = ("min_documents", "max_share", "max_words")
SHOWN = 6
"""Words of each topic."""


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="python -m sgmcmc_lab.samplers.models.topics", description=__doc__)
    parser.add_argument(
        "path",
        type=Path,
        help="a text file with a document on each line, a folder of text files, a .csv or .tsv, or an .ldac beside its .tokens or .vocab",
    )
    parser.add_argument(
        "--method",
        action="append",
        choices=samplers_of("topics"),
        help=f"several may be given; by default {' or, with --stream, '.join(DEFAULTS)}",
    )
    parser.add_argument(
        "--stream",
        action="store_true",
        help="a text file with a document on each line, in no order, is read minibatch after minibatch and never held",
    )
    parser.add_argument("--documents", type=int, default=20_000, help="how many documents each method looks at")
    parser.add_argument("--seed", type=int, default=1)
    of_model = dict(declared(Topics))
    for name in ("n_topics", "alpha", "beta", *CUT_OFFS):
        parameter = of_model[name]
        help_ = f"{parameter.doc} Default: %(default)s."
        parser.add_argument(f"--{name.replace('_', '-')}", default=parameter.default, help=help_)
    file_format.add_options(parser, leave_out=("decimal", "source", "target"))
    return parser


def topics_of(run: ModelChain) -> list[str]:
    """A line for each topic, the largest first: its share of the words, its coherence, and its most likely words."""
    seen: dict[str, Any] = run.snapshot()
    order = np.argsort(-seen["topic_shares"], kind="stable")
    vocabulary = run.model.vocabulary
    return [
        f"{seen['topic_shares'][k]:6.1%}  {seen['npmi'][k]:5.2f}  {' '.join(vocabulary[w] for w in seen['top_words'][k][:SHOWN])}"
        for k in order
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the corpus, run the methods, print their held-out perplexity, and their topics with the coherence."""
    parser = _parser()
    options = parser.parse_args(arguments)
    params = {name: getattr(options, name) for name in ("n_topics", "alpha", "beta", *CUT_OFFS)}
    methods: dict[str, dict[str, Any]] = {key: {} for key in options.method or [DEFAULTS[options.stream]]}
    try:
        of_model = {"corpus": "uploaded", **params}
        experiment = Experiment.of("topics", methods, target_params=of_model, seed=options.seed)
        form = file_format.of_options(options)
        if options.stream and form != file_format.GUESSED:
            parser.error(
                "--stream takes UTF-8 text with a document on each line: other choices of a format are not allowed with it"
            )
        own: Corpus | FileStream = FileStream.of(options.path) if options.stream else read_path(options.path, form)
        model = experiment.make_model(own)
        runs = [run.chains[0] for run in start(experiment, model)]
    except SpecError as error:
        parser.error(str(error))
    if isinstance(own, Corpus) and own.taken is not None:
        print(own.taken.sentence, file=sys.stderr)
    print(", ".join(f"{text} {label}" for label, text in model.facts().items()))
    for run in runs:
        while run.data_seen < options.documents and run.divergence is None:
            run.advance()
        if run.divergence is not None:
            print(f"\n{run.method.title}: {run.divergence.message}")
            continue
        print(f"\n{run.method.title}: held-out perplexity {run.scored():,.1f} after {run.data_seen:,} documents")
        print(f"mean coherence of its topics: {run.state.coherence[-1]:.3f} (NPMI over {model.coherence.documents})")
        print("\n".join(["share   NPMI  words", *topics_of(run)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())

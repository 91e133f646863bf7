"""SciPy's docstrings as a corpus: prose of functions, with their subpackages as labels."""

from dataclasses import replace

import numpy as np
from scipy import stats
from sklearn.metrics import normalized_mutual_info_score

from sgmcmc_lab.samplers.models.run import ModelChain
from sgmcmc_lab.samplers.models.topics import docstrings
from sgmcmc_lab.samplers.models.topics.collapsed_gibbs import CollapsedGibbs
from sgmcmc_lab.samplers.models.topics.corpus import read_upload, words_of
from sgmcmc_lab.samplers.models.topics.model import Topics


def texts(*documents):
    return read_upload("x.txt", "\n".join(documents).encode())


def test_the_docstrings_are_those_of_scipys_functions():
    corpus = docstrings.scipy_docstrings()
    assert corpus.n_documents > 700 and corpus.n_tokens > 50_000
    assert len(set(corpus.titles)) == corpus.n_documents
    assert [title.split(".")[1] for title in corpus.titles] == list(corpus.labels)
    assert len(set(corpus.labels[:8])) == 8, "neighbours are of different subpackages"
    d = corpus.titles.index("scipy.stats.pearsonr")
    own = {corpus.vocabulary[w] for w in corpus.words[corpus.offsets[d] : corpus.offsets[d + 1]]}
    assert "correlation" in own
    assert own <= set(words_of(stats.pearsonr.__doc__))
    assert not {"the", "parameters", "returns", "pytorch"} & set(corpus.vocabulary)
    assert not any("norm.cdf" in title or (title.endswith(".norm") and ".stats." in title) for title in corpus.titles)


def test_code_is_no_prose():
    text = "Sum.\n\n    Notes\n    -----\n    Long.\n\n    Examples\n    --------\n    >>> code\n\n    See Also\n    --------\n    other\n\n    References\n    ----------\n    Knuth\n"
    assert docstrings.prose(text).split() == ["Sum.", "Notes", "-----", "Long.", "See", "Also", "--------", "other"]
    support = "Sum.\n\n**Array API Standard Support**\n\nNumPy\n See :ref:`dev-arrayapi` for more.\n\nThe rest."
    assert docstrings.prose(support).split() == ["Sum.", "The", "rest."]


def test_labels_stay_with_their_documents():
    corpus = replace(texts("red", "blue", "red blue", "blue red"), labels=("none", "b", "rb", "br"))
    trimmed = corpus.trimmed(1, 1.0, 2)
    assert trimmed.labels == corpus.labels
    without = replace(texts("green", "blue", "red blue", "blue red"), labels=("none", "b", "rb", "br")).trimmed(
        2, 1.0, 9
    )
    assert (without.labels, without.n_documents) == (("b", "rb", "br"), 3)
    assert without.part(np.array([2, 0])).labels == ("br", "b")


def test_topics_of_the_docstrings_follow_the_subpackages():
    model = Topics(corpus="docstrings", n_topics=20)
    run = ModelChain(model, CollapsedGibbs(), np.random.Generator(np.random.SFC64(1)))
    while run.data_seen < 9000:
        run.advance()
    found = run.snapshot()["document_topics"]
    assert len(found) == model.training.n_documents
    known = np.array(model.training.labels)
    assert normalized_mutual_info_score(known, found) > 0.5
    assert normalized_mutual_info_score(np.random.default_rng(1).permutation(known), found) < 0.15

"""The mixture of categoricals: enumeration, Geweke's joint test, its moves against exact ones, and files of visits."""

import gzip
from math import lgamma

import numpy as np
import pytest
from numpy.random import SFC64, Generator
from scipy import integrate, stats

from sgmcmc_lab.lessons.papers import baker_2018_figure_3b as papers
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.files import FileError
from sgmcmc_lab.samplers.lanes import samplers_of
from sgmcmc_lab.samplers.models import METHODS
from sgmcmc_lab.samplers.models.average import LaterLogAverage
from sgmcmc_lab.samplers.models.mixture.data import Documents, known_clusters, read
from sgmcmc_lab.samplers.models.mixture.model import Mixture, log_predictive
from sgmcmc_lab.samplers.models.mixture.scir import move as scir_move
from sgmcmc_lab.samplers.models.mixture.sgrld import move as sgrld_move
from sgmcmc_lab.samplers.models.run import ModelChain
from sgmcmc_lab.samplers.models.topics.corpus import MAX_BYTES, Corpus
from sgmcmc_lab.samplers.parameters import SpecError
from tests.helpers.cases import for_each

BAGS = [[0, 0, 1], [0, 0, 0], [2, 2, 1], [2, 2], [0, 1, 2], [0, 2], [2, 2, 0]]
EXACT = {"mixture_gibbs": {}, "mixture_scir": {"batch_size": 100, "step_size": 1.0}}
"""Methods whose invariant distribution is the posterior, and how: SCIR with all documents."""


def few_documents(bags=BAGS, **params):
    """Five documents of three words, and two held out."""
    offsets = np.concatenate([[0], np.cumsum([len(bag) for bag in bags])]).astype(np.int64)
    words = np.concatenate([sorted(bag) for bag in bags]).astype(np.int32)
    corpus = Corpus(offsets, words, tuple("abc"), tuple(map(str, range(len(bags)))))
    model = Mixture(Documents(corpus, n_test=2, of_text=False), corpus="uploaded", alpha_mean=1.5, prior=0.7, **params)
    model.n_slots = 300  # so that steps are fast; the prior needs more than so many sticks next to never
    return model


def bags_of(corpus):
    return [corpus.words[a:b] for a, b in zip(corpus.offsets[:-1], corpus.offsets[1:], strict=True)]


def partitions(n):
    """All partitions of n things, as labels in the order of first appearance."""
    out = [[0]]
    for _ in range(n - 1):
        out = [[*labels, k] for labels in out for k in range(max(labels) + 2)]
    return np.array(out)


def statistics(z, alpha, density):
    """Seven numbers of each draw, (draws, 7): how many clusters, who is together with whom, α, and two densities."""
    n_clusters = 1 + (np.diff(np.sort(z, axis=1), axis=1) > 0).sum(axis=1)
    pairs = [z[:, i] == z[:, j] for i, j in ((0, 1), (0, 4), (2, 3))]
    return np.column_stack([n_clusters, *pairs, alpha / (1 + alpha), density])


def evidence(counts, a):
    """log p of words with these counts, θ ~ Dir(a) integrated out."""
    whole = len(counts) * a
    return lgamma(whole) - lgamma(whole + counts.sum()) + sum(lgamma(a + n) - lgamma(a) for n in counts)


def enumerated(model):
    """The posterior means of the statistics: a sum over all 52 partitions, and a quadrature over α."""
    bags, held = ([np.bincount(bag, minlength=3) for bag in bags_of(c)] for c in (model.training, model.held))
    n, a = len(bags), model.prior

    def over_alpha(n_clusters, weight):
        def density(alpha):
            log = n_clusters * np.log(alpha) + lgamma(alpha) - lgamma(alpha + n) - alpha / model.alpha_mean
            return np.exp(log) * weight(alpha)

        return integrate.quad(density, 0, np.inf, epsabs=0, epsrel=1e-9)[0]

    whole, total = 0.0, 0.0
    for z in partitions(n):
        groups = [np.sum([bags[i] for i in np.flatnonzero(z == k)], axis=0) for k in range(z.max() + 1)]
        sizes = np.bincount(z)
        p = np.exp(sum(lgamma(size) + evidence(counts, a) for size, counts in zip(sizes, groups, strict=True)))
        one, share, new, old = (
            over_alpha(len(groups), f)
            for f in (lambda x: 1.0, lambda x: x / (1 + x), lambda x: x / (x + n), lambda x: 1 / (x + n))
        )
        (row,) = one * statistics(z[None], np.zeros(1), np.zeros((1, 2)))
        row[4] = share
        for j, document in enumerate(held):
            known = sum(
                size * np.exp(evidence(c + document, a) - evidence(c, a)) for size, c in zip(sizes, groups, strict=True)
            )
            row[5 + j] = old * known + new * np.exp(evidence(document, a))
        whole, total = whole + p * row, total + p * one
    return whole / total


def worst_z(model, method, exact, n_steps=10_000):
    """The largest |mean − exact| in standard errors, of 40 batches of steps, for seven statistics."""
    chain = ModelChain(model, method, Generator(SFC64(8)))
    z, alpha, density = np.empty((n_steps, model.n_data), int), np.empty(n_steps), np.zeros((n_steps, 2))
    for t in range(n_steps):
        method.advance(model, chain.state, chain.rng)
        density[t] = np.exp(method.log_density(model, chain.state))
        z[t], alpha[t] = chain.state.z, chain.state.alpha[0]
    means = statistics(z, alpha, density).reshape(40, -1, 7).mean(axis=1)
    return float(np.abs((means.mean(axis=0) - exact) / (means.std(axis=0, ddof=1) / np.sqrt(40))).max())


@pytest.fixture(scope="module")
def exact():
    return enumerated(few_documents())


@pytest.mark.slow
@pytest.mark.parametrize("key", EXACT)
def test_the_exact_posterior(key, exact):
    """Seven means against enumeration; |t| of 39 degrees of freedom above 5 is a false alarm of 1.2e-5 each, 2e-4 for
    all. Faults: the words' prior is another; that of α is.
    """
    method = METHODS[key](**EXACT[key])
    assert worst_z(few_documents(), method, exact) < 5
    if key == "mixture_gibbs":
        wrong = few_documents()
        wrong.prior = 1.0
        assert worst_z(wrong, method, exact) > 5
        wrong = few_documents()
        wrong.alpha_mean = 3.0
        assert worst_z(wrong, method, exact) > 5


# Geweke's joint test


def joint(model, z, alpha):
    """Five numbers of the parameters and the data together."""
    words = model.training.words.reshape(model.n_data, -1)
    counts = np.bincount(model.training.words, minlength=model.n_words) / model.training.n_tokens
    same = words[0, 0] == words[1, -1]
    return len(np.unique(z)), z[0] == z[1], alpha / (1 + alpha), (counts**2).sum(), same * (z[0] == z[1])


def drawn_words(rng, theta, shape):
    """Words of documents whose clusters have the probabilities theta (documents, words); equal ones together."""
    return np.sort((rng.random(shape)[:, :, None] > theta.cumsum(axis=1)[:, None, :-1]).sum(axis=2), axis=1).ravel()


def from_the_prior(model, rng):
    """α, z by the Chinese restaurant, θ and words."""
    alpha = rng.exponential(model.alpha_mean)
    z = [0]
    for i in range(1, model.n_data):
        sizes = np.bincount(z).astype(float)
        z.append(int((rng.random() * (i + alpha) > sizes.cumsum()).sum()))
    theta = rng.dirichlet(np.full(model.n_words, model.prior), size=max(z) + 1)
    model.training.words[:] = drawn_words(rng, theta[z], (model.n_data, 3))
    return joint(model, np.array(z), alpha)


def geweke(given, n_prior=12_000, n_steps=10_000):
    """The largest |z| of the joint numbers: straight from the prior, and by Gibbs steps and new words in turn.

    ``given`` is the model whose prior the steps believe in; the words are always made in the same way.
    """
    model, rng = few_documents([[0, 1, 2]] * 7), np.random.default_rng(3)
    first = np.array([from_the_prior(model, rng) for _ in range(n_prior)], dtype=float)
    chain, method = ModelChain(given, METHODS["mixture_gibbs"](), Generator(SFC64(5))), METHODS["mixture_gibbs"]()
    second = np.empty((n_steps, first.shape[1]))
    for t in range(n_steps):
        method.advance(given, chain.state, chain.rng)
        theta = chain.state.theta[:, chain.state.z]
        given.training.words[:] = drawn_words(rng, (theta / theta.sum(axis=0)).T, (given.n_data, 3))
        second[t] = joint(given, chain.state.z, chain.state.alpha[0])
    means = second.reshape(40, -1, first.shape[1]).mean(axis=1)
    error = np.sqrt(first.var(axis=0) / n_prior + means.var(axis=0, ddof=1) / 40)
    return float(np.abs((first.mean(axis=0) - means.mean(axis=0)) / error).max())


@pytest.mark.slow
def test_gewekes_joint_test():
    """Five numbers; |z| above 4 by chance once in 3,000 seeds. Fault: the steps believe in another prior of θ."""
    assert geweke(few_documents([[0, 1, 2]] * 7)) < 4
    wrong = few_documents([[0, 1, 2]] * 7)
    wrong.prior = 1.0
    assert geweke(wrong) > 4


# The moves


def moved(move, start, prior, counts, factor, params, n=1, columns=20_000, sizes=1.0):
    """Columns that all begin in ``start`` (rows,), after n moves."""
    jit.prepare([move])
    x = np.repeat(np.array(start, dtype=float)[:, None], columns, axis=1)
    seen = np.repeat(np.array(counts, dtype=float)[:, None], columns, axis=1)
    rng, prior = Generator(SFC64(6)), np.array(prior, dtype=float)
    for _ in range(n):
        move(rng, x, prior, seen, factor, np.full(columns, sizes), columns, np.array(params))
    return x


def test_scir_moves_by_the_exact_transition():
    """KS against the noncentral χ² of eq (2.2); a p below 1e-4 is a false alarm. Fault: h longer by a tenth."""
    shape, h, start = 0.4 + 3 * 0.5, 0.3, 0.8
    (x,) = moved(scir_move, [start], [0.4], [0.5], 3.0, [h])

    def p(step):
        scale = -np.expm1(-step)
        law = stats.ncx2(2 * shape, 2 * start * np.exp(-step) / scale, scale=scale / 2)
        return stats.kstest(x, law.cdf).pvalue

    assert p(h) > 1e-4
    assert p(1.1 * h) < 1e-4


@pytest.mark.parametrize("move", [scir_move, sgrld_move], ids=["SCIR", "SGRLD"])
def test_an_empty_cluster_is_drawn_anew(move):
    """From the prior, whatever it was before. Fault: with documents it is not."""
    law = stats.gamma(0.7)
    assert stats.kstest(moved(move, [5.0], [0.7], [0.0], 3.0, [0.01], sizes=0.0)[0], law.cdf).pvalue > 1e-4
    assert stats.kstest(moved(move, [5.0], [0.7], [0.0], 3.0, [0.01])[0], law.cdf).pvalue < 1e-9


def test_sgrlds_sticks_have_their_beta_distribution():
    """E v of Beta(1 + m, α + M), up to 0.006 for the step. Fault: without the factor 1 − v in the drift of γ₁."""
    x = moved(sgrld_move, [3.0, 8.0], [1.0, 2.0], [2.0, 6.0], 1.0, [0.01], n=400, columns=4000)
    v = x[0] / x.sum(axis=0)
    assert abs(v.mean() - 3 / 11) < 0.006 + 4 * v.std() / np.sqrt(4000)
    rng, one, two = np.random.default_rng(1), np.full(4000, 3.0), np.full(4000, 8.0)
    for _ in range(400):
        v = one / (one + two)
        one, two = (
            abs(y + 0.01 * drift + np.sqrt(0.02 * y) * rng.standard_normal(4000))
            for y, drift in ((one, 3 - one - 8 * v), (two, 8 - two - 8))
        )
    v = one / (one + two)
    assert abs(v.mean() - 3 / 11) > 0.1


def test_a_step_with_too_many_clusters_ends_in_a_sentence():
    model = few_documents()
    model.n_slots = 8
    chain = ModelChain(model, METHODS["mixture_gibbs"](start_clusters=3), Generator(SFC64(1)))
    model.alpha_mean = 1e3
    for _ in range(300):
        chain.advance()
    assert "more than 8 clusters" in str(chain.divergence)


# Scores


def test_the_prior_predictive_is_the_evidence():
    model = few_documents()
    by_hand = [evidence(np.bincount(bag, minlength=3), 0.7) for bag in bags_of(model.training)]
    np.testing.assert_allclose(log_predictive(model.training, 0.7), by_hand)


def test_a_log_average_is_the_average_of_the_later_draws():
    """The average of numbers that are 0 in floating point. Fault: all draws counted."""
    kept, logs = LaterLogAverage(1), -2000 - np.arange(11.0) % 3
    for value in logs:
        kept.add(np.array([value]))
    assert kept.counted() == 7
    assert kept.mean()[0] == pytest.approx(np.log(np.exp(logs[4:] + 2000).mean()) - 2000)
    assert abs(kept.mean()[0] - np.log(np.exp(logs + 2000).mean()) + 2000) > 1e-3


@pytest.mark.slow
def test_planted_clusters_are_found():
    """By every method, at the settings of the page, after 300 steps: an adjusted Rand index of .9, and a score below
    that of word frequencies. Fault: a start that has not moved.
    """
    from sgmcmc_lab.samplers.models.agreement import adjusted_rand

    model = Mixture()
    unigram = papers.unigram(model)
    for key in samplers_of("mixture"):
        method = METHODS[key]()
        chain = ModelChain(model, method, Generator(SFC64(1)))
        assert adjusted_rand(chain.snapshot()["z"], model.groups) < 0.1
        for _ in range(300):
            chain.advance()
        assert adjusted_rand(chain.snapshot()["z"], model.groups) > 0.9, key
        assert chain.scored() < unigram - 3, key


@pytest.mark.slow
def test_the_comparison_makes_its_tables(monkeypatch, tmp_path, capsys):
    """At toy length, on a file: every case has its row with the numbers of its runs, and each seed its own."""
    rng = np.random.default_rng(1)
    pages = "".join(f'A,{k},1,"page {k}","/{k}"\n' for k in range(12))
    for name, n in (("w.data", 150), ("w.test", 40)):
        visits = (
            f'C,"{i}",{i}\n' + "".join(f"V,{6 * (i % 2) + k},1\n" for k in rng.choice(6, 3, False)) for i in range(n)
        )
        (tmp_path / name).write_text(pages + "".join(visits), encoding="utf-8")
    scir, two = {"batch_size": 50, "step_size": 0.1}, [{"batch_size": 50, "step_size": h} for h in (0.01, 0.1)]
    few = [papers.Case("mixture_scir", 0.5, [scir], ", one"), papers.Case("mixture_sgrld", 0.01, two)]
    monkeypatch.setattr(papers, "cases", lambda: few)
    monkeypatch.setattr(papers, "EM_CLUSTERS", (2,))
    files = [str(tmp_path / name) for name in ("w.data", "w.test")]
    assert papers.main([*files, "--steps", "6", "--seeds", "2"]) == 0
    said = capsys.readouterr().out
    assert "190 documents, of which 40 are held out; 12 words" in said
    assert all(case.title in said for case in few) and "EM, K = 2" in said
    assert len([line for line in said.split("\n") if line.startswith(("SCIR  ", "SGRLD  "))]) == 4
    (row,) = papers.compare(
        read({name: (tmp_path / name).read_bytes() for name in ("w.data", "w.test")}), [1, 2], 6, of=few[:1]
    )
    assert row.scores.shape == (2, 3) and np.isfinite(row.scores).all()
    assert f"{row.scores[:, -1].mean():.3f}" in said
    assert row.scores[0, -1] != row.scores[1, -1]
    assert papers.main([str(tmp_path / "none.data")]) == 2
    assert "none.data" in capsys.readouterr().err


def test_em_climbs():
    """Its score is that of a mixture: with one cluster that of word frequencies, with six far better."""
    model = Mixture()
    assert papers.em(model, 1, seed=1) == pytest.approx(papers.unigram(model), abs=1e-6)
    assert papers.em(model, 6, seed=1) < papers.unigram(model) - 3


def test_planted_documents_are_the_first_of_more():
    few, many = known_clusters(50), known_clusters(400)
    np.testing.assert_array_equal(few.corpus.words, many.corpus.words[: len(few.corpus.words)])
    np.testing.assert_array_equal(few.groups, many.groups[:50])
    assert set(many.groups) == set(range(6))


# Files

TOP = b'I,4,"www.microsoft.com","created by getlog.pl"\nT,1,"VRoot",0,0,"VRoot"\nN,0,"0"\n'
PAGES = b'A,1287,1,"International AutoRoute","/autoroute"\nA,1288,1,"library","/library"\nA,9,1,"one, two","/x"\n'
WEB = (
    TOP + PAGES + b'C,"10001",10001\nV,9,1\nV,1287,1\nC,"10002",10002\nV,1288,1\nC,"10003",10003\nC,"10004",4\nV,9,1\n'
)
TEST = TOP + PAGES + b'A,7,1,"new","/n"\nC,"20001",1\nV,7,1\n'


def test_visits_are_read():
    found = read({"web.data": WEB})
    assert found.corpus.vocabulary == ("International AutoRoute", "library", "one, two")
    assert [list(bag) for bag in bags_of(found.corpus)] == [[0, 2], [1], [2]]
    assert found.corpus.titles == ("visitor 10001", "visitor 10002", "visitor 10004")
    assert found.n_test == 0 and not found.of_text


def test_visits_with_a_test_file_hold_it_out():
    both = read({"b.test.gz": gzip.compress(TEST), "a.data": WEB})
    assert both.n_test == 1 and both.corpus.vocabulary[-1] == "new"
    model = Mixture(both, corpus="uploaded")
    assert model.n_data == 3
    assert [list(bag) for bag in bags_of(model.held)] == [[3]]


def test_texts_and_their_cut_offs():
    found = read({"t.txt": b"red green blue\nred green\nred yellow\nblue green\n"})
    assert found.of_text
    assert Mixture(found, corpus="uploaded", max_share=1.0).vocabulary == ("red", "green", "blue")


BAD = {
    "a page without a name": ({"w.data": WEB + b"V,5,1\n"}, ["w.data, line 15", "page 5", "line A"]),
    "no number": ({"w.data": WEB + b"V,x1,1\n"}, ["line 15", "'x1'", "nine digits"]),
    "a visit of nobody": ({"w.data": PAGES + b"V,9,1\n"}, ["line 4", "a line C"]),
    "another line": ({"w.data": WEB + b"Q,9\n"}, ["line 15", "'Q,9'", "A, C or V"]),
    "an open quote": ({"w.data": b'A,1,1,"x\n' + WEB}, ["line 1", "CSV"]),
    "a page of four fields": ({"w.data": b"A,1,1\n" + WEB}, ["line 1", "names no page"]),
    "nobody": ({"w.data": PAGES}, ["0 visitors of 3 pages", "two"]),
    "two of a kind": ({"w.data": WEB, "v.data": WEB}, ["v.data", "another .data"]),
    "company": ({"w.data": WEB, "v.txt": b"a"}, ["v.txt", "came with visits"]),
    "no gzip": ({"w.data.gz": WEB}, ["w.data.gz", "gzip"]),
    "a broken gzip": ({"w.data.gz": gzip.compress(WEB)[:-9]}, ["w.data.gz", "gzip"]),
    "large once unpacked": ({"w.data.gz": gzip.compress(b"N" * (MAX_BYTES + 9))}, ["30,000,000 bytes"]),
}


@for_each(("files", "said"), BAD.values(), ids=BAD)
def test_bad_visits_are_named_by_file_and_line(files, said):
    with pytest.raises(FileError) as caught:
        read(files)
    assert all(part in str(caught.value) for part in said), caught.value


@pytest.mark.parametrize(
    ("what", "limit"), [("pages", "MAX_VOCABULARY"), ("visitors", "MAX_DOCUMENTS"), ("visits", "MAX_TOKENS")]
)
def test_large_files_of_visits_are_refused(what, limit, monkeypatch):
    monkeypatch.setattr(f"sgmcmc_lab.samplers.models.mixture.data.{limit}", 2)
    with pytest.raises(FileError, match=f"more than 2 {what}"):
        read({"w.data": WEB})


def test_visits_of_too_many_pages_are_refused_in_a_sentence(monkeypatch):
    found = read({"w.data": WEB})
    monkeypatch.setattr("sgmcmc_lab.samplers.models.mixture.model.MAX_CELLS", 200)
    with pytest.raises(SpecError, match=r"model\.corpus.*3 pages.*allowed are 2"):
        Mixture(found, corpus="uploaded")
    with pytest.raises(SpecError, match="no file has been uploaded"):
        Mixture(corpus="uploaded")

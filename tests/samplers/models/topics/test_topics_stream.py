"""Streams of documents: each comes once, from known topics or from a file that is not held."""

import itertools
import pickle

import numpy as np
import pytest
from numpy.random import SFC64, Generator, SeedSequence

from sgmcmc_lab.lessons.papers import baker_2018_section_4_1 as equal_time
from sgmcmc_lab.samplers.models import METHODS
from sgmcmc_lab.samplers.models.run import ModelChain
from sgmcmc_lab.samplers.models.topics import stochastic_gradient, stream
from sgmcmc_lab.samplers.models.topics.__main__ import main
from sgmcmc_lab.samplers.models.topics.corpus import bar_topics
from sgmcmc_lab.samplers.models.topics.local import columns
from sgmcmc_lab.samplers.models.topics.method import random_topics
from sgmcmc_lab.samplers.models.topics.model import Topics
from sgmcmc_lab.samplers.models.topics.stream import FileSource, FileStream, MadeUp
from sgmcmc_lab.samplers.parameters import SpecError
from tests.helpers.cases import for_each
from tests.helpers.statistics import mean_verdict

TAKING = [key for key, cls in METHODS.items() if cls.model == "topics" and cls.takes_streams]
WORDS = ("oak", "elm", "cat", "dog", "fox")


def rng(seed=1):
    return Generator(SFC64(SeedSequence(seed)))


def small_stream(**values):
    return Topics(MadeUp(*bar_topics(3), length=20), corpus="uploaded", n_topics=6, test_share=0.01, **values)


def bags(corpus):
    return [
        sorted(corpus.vocabulary[w] for w in corpus.words[begin:end])
        for begin, end in itertools.pairwise(corpus.offsets)
    ]


# --- made up -------------------------------------------------------------------------------------------------------


def test_a_seed_fixes_the_documents_and_no_two_minibatches_are_alike():
    model = small_stream()
    one, two, other = (model.stream.begin(rng(seed)) for seed in (1, 1, 2))
    first = one.next(5)
    assert np.array_equal(first.words, two.next(5).words)
    assert not np.array_equal(first.words, other.next(5).words)
    assert not np.array_equal(first.words, one.next(5).words)


def test_all_methods_of_a_seed_see_the_same_documents():
    model, seen = small_stream(), {}
    for key in ("lda_scir", "lda_sgrld"):
        run = ModelChain(model, METHODS[key](batch_size=7), rng(3))
        for _ in range(3):
            run.advance()
        assert run.state.data.n_documents == len(run.state.counts) == run.data_seen / 3 == 7
        assert run.state.counts.sum() == len(run.state.topics) == 140
        seen[key] = run.state.data.words
    assert np.array_equal(*seen.values())


def test_the_documents_are_from_the_known_topics():
    """Two words of a document share a bar more often than those of two documents, by a share that is known."""
    length, concentration = 40, 0.5
    made = MadeUp(*bar_topics(3), length=length, concentration=concentration)
    counts = made.begin(rng()).next(4000).matrix()
    # E of Σ_w C(n_w, 2)/C(length, 2) is Σ_w E p_w², with p = π Φ and E π_j π_k of a symmetric Dirichlet.
    k = 6
    moments = (concentration**2 + concentration * np.eye(k)) / (k * concentration * (k * concentration + 1))
    exact = np.einsum("jw,jk,kw->", made.topics, moments, made.topics)
    found = (counts * (counts - 1)).sum(axis=1) / (length * (length - 1))
    assert mean_verdict("pairs", found.reshape(40, 100), exact).ok
    assert not mean_verdict("pairs of unmixed documents", found.reshape(40, 100), (made.topics**2).sum() / k).ok


@for_each("key", TAKING)
def test_the_counts_are_scaled_to_the_documents_of_the_posterior(key):
    """All documents have 20 words, so (D/n)ΣB is 20 D at every step, whatever n is."""
    model, seen = small_stream(), []

    class Watched(METHODS[key]):
        def compiled_step(self):
            def step(rng, theta, momentum, totals, counts, pull, factor, *rest):
                seen.append(factor * counts.sum())
                return 1.0

            return step

    run = ModelChain(model, Watched(batch_size=4), rng())
    for _ in range(3):
        run.method.advance(model, run.state, run.rng)
    assert seen == pytest.approx([20 * 100_000] * 3)


def fresh_counts(n_first, n_visits=4000):
    """B of one document of three words, whose topics begin at random, at each of many visits: (visits, words, K)."""
    phi = np.zeros((3, columns(2)))
    phi[:, :2] = [[0.9, 0.05], [0.05, 0.9], [0.05, 0.05]]
    data = MadeUp(np.eye(3), ("a", "b", "c"), length=3).begin(rng()).next(1)
    data.words[:] = [0, 1, 2]
    own, out, out_totals = rng(5), np.zeros((n_visits, 3, columns(2))), np.zeros(columns(2))
    scale = np.zeros(columns(2))
    scale[:2] = 1
    for one in out:
        topics, counts = random_topics(data, 2, own)
        stochastic_gradient.count_topics(
            own, np.arange(1), data.offsets, data.words, topics, counts, phi, scale, 0.2, 2, n_first, 1, one, out_totals
        )
    return out[:, :, :2], phi[:, :2]


@pytest.mark.slow
def test_the_topics_of_a_fresh_document_have_forgotten_their_random_start():
    """E B against the sum over all z; without the sweeps that are not counted the start shows."""
    seen, phi = fresh_counts(5)
    exact = np.zeros((3, 2))
    total = 0.0
    for z in itertools.product(range(2), repeat=3):
        counts = np.bincount(z, minlength=2)
        p = phi[np.arange(3), z].prod() * np.prod([np.prod(0.2 + np.arange(n)) for n in counts])
        total += p
        exact[np.arange(3), z] += p
    exact /= total
    verdicts = [mean_verdict(f"word {w}", seen[:, w, 0].reshape(40, 100), exact[w, 0]) for w in range(3)]
    assert all(verdict.ok for verdict in verdicts)
    early, _ = fresh_counts(0)
    wrong = [mean_verdict(f"word {w}", early[:, w, 0].reshape(40, 100), exact[w, 0]) for w in range(3)]
    assert not all(verdict.ok for verdict in wrong)


@pytest.mark.slow
def test_the_topics_of_a_stream_are_found():
    model = small_stream()
    run = ModelChain(model, METHODS["lda_scir"](), rng())
    while run.data_seen < 3000:
        run.advance()
    phi = run.snapshot()["phi"]

    def furthest(true):
        return (np.abs(true[:, None] - phi).sum(axis=2) / 2).min(axis=1).max()

    assert furthest(model.true_topics) < 0.15
    assert furthest(np.roll(model.true_topics, 1, axis=1)) > 0.3, "others are not"


def test_methods_that_come_back_to_documents_are_refused():
    model = small_stream()
    for key in set(METHODS) - set(TAKING):
        if METHODS[key].model == "topics":
            with pytest.raises(SpecError, match=f"sampler = '{key}': it comes back to every document"):
                ModelChain(model, METHODS[key](), rng())
    with pytest.raises(SpecError, match=r"batch_size = 2001: on a stream allowed are at most 2,000"):
        ModelChain(model, METHODS["lda_scir"](batch_size=2001), rng())


# --- a file --------------------------------------------------------------------------------------------------------


def lines(n):
    """Documents that can be told apart: number i has i + 1 times the word oak, and another."""
    return ["oak " * (i + 1) + WORDS[1 + i % 4] for i in range(n)]


def file_of(folder, texts, name="x.txt"):
    path = folder / name
    path.write_text("\n".join(texts), encoding="utf-8")
    return path


def test_a_file_is_read_line_by_line_and_again_from_its_beginning(tmp_path):
    texts = [*lines(12), "", "1 2 3"]
    whole = FileStream.of(file_of(tmp_path, texts)).trimmed(1, 1.0, 100)
    assert (whole.n_lines, whole.n_documents) == (14, 12)
    rest, sample, test = whole.split(0.25)
    held = [i for i in range(12) if (i + 1) % rest.every == 0]
    assert bags(test) == [sorted(texts[i].split()) for i in held]
    wanted = [sorted(texts[i].split()) for i in range(12) if i not in held]
    source = rest.begin(rng())
    assert bags(source.next(3)) + bags(source.next(len(wanted))) == wanted + wanted[:3]
    assert bags(sample)[: len(wanted)] == wanted


def test_a_run_holds_nothing_of_a_long_file(tmp_path):
    sizes = []
    for n in (200, 4000):
        made = Topics(
            FileStream.of(file_of(tmp_path, ["oak elm", "cat dog"] * (n // 2))),
            corpus="uploaded",
            n_topics=2,
            test_share=0.01,
            max_share=1.0,
        )
        run = ModelChain(made, METHODS["lda_scir"](batch_size=5), rng())
        run.advance()
        assert made.n_data == n
        sizes.append(len(pickle.dumps((made.stream, run.state.data, run.state.source))))
    assert sizes[1] < sizes[0] + 50


def test_the_words_in_most_documents_stay(tmp_path, monkeypatch):
    path = file_of(tmp_path, ["the oak", "the elm", "the oak cat", "the elm"])
    whole = FileStream.of(path)
    assert set(whole.trimmed(2, 0.5, 100).vocabulary) == {"oak", "elm"}
    assert whole.trimmed(1, 1.0, 2).vocabulary[0] == "the"
    with pytest.raises(SpecError, match="leave 1 words of 4"):
        whole.trimmed(4, 1.0, 100)
    monkeypatch.setattr(stream, "MAX_VOCABULARY", 3)
    assert "the" in FileStream.of(path).vocabulary
    assert len(FileStream.of(path).vocabulary) <= 3


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"one two\n" + b"a" * (stream.MAX_LINE + 1), "x.txt, line 2, has more than 100,000 bytes: "),
        (b"one two\nthree\n\xff\xfe\n", "x.txt, line 3, is no text in UTF-8"),
        (b"one two\n", "fewer than two lines with words"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(content, named, tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes(content)
    with pytest.raises(SpecError, match=named):
        FileStream.of(path)


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(SpecError, match="is no file"):
        FileStream.of(tmp_path)
    with pytest.raises(SpecError, match=r"none.txt cannot be read"):
        FileStream.of(tmp_path / "none.txt")


def test_a_file_that_lost_its_documents_is_refused(tmp_path):
    path = file_of(tmp_path, lines(9))
    rest, _, _ = FileStream.of(path).trimmed(1, 1.0, 100).split(0.2)
    path.write_text("1\n2\n")
    with pytest.raises(SpecError, match="has no more documents"):
        FileSource(rest).next(2)


def test_a_file_is_a_stream_on_the_command_line(tmp_path, capsys):
    path = file_of(tmp_path, ["cat dog mouse purr", "oak elm leaf root"] * 100)
    command = [str(path), "--stream", "--n-topics", "2", "--documents", "3000", "--max-share", "1"]
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert "SCIR: held-out perplexity" in shown and "after 3,000 documents" in shown
    assert "NPMI over 40 test documents" in shown
    topics = [set(line.split()[2:6]) for line in shown.strip().splitlines()[-2:]]
    assert sorted(map(sorted, topics)) == [["cat", "dog", "mouse", "purr"], ["elm", "leaf", "oak", "root"]]
    with pytest.raises(SystemExit):
        main([*command, "--method", "collapsed_gibbs"])
    assert "it comes back to every document" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([*command, "--encoding", "windows-1252"])
    assert "--stream takes UTF-8 text" in capsys.readouterr().err


# --- SCIR beside SGRLD ---------------------------------------------------------------------------------------------


def test_equal_time_is_where_the_faster_method_ends():
    fast = [equal_time.Curve((0, 10, 20), (0.0, 1.0, 2.0), (9.0, 5.0, 4.0))]
    slow = [equal_time.Curve((0, 10, 20), (0.0, 3.0, 6.0), (9.0, 3.0, 2.0))]
    found = equal_time.Comparison({"lda_scir": {}, "lda_sgrld": {}}, {"lda_scir": slow, "lda_sgrld": fast})
    assert (found.equal_documents("lda_scir"), found.equal_time("lda_scir")) == (2.0, 5.0)
    assert (found.equal_documents("lda_sgrld"), found.equal_time("lda_sgrld")) == (4.0, 4.0)
    assert found.milliseconds("lda_scir") == pytest.approx(300)
    assert "SCIR takes 3.0 times" in equal_time.as_text("x", found)


def test_tags_and_other_files_of_a_zip_are_left_out(tmp_path):
    import zipfile

    path = tmp_path / "some.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("brown/ca01", "The/at oak/nn ./.\n" + "elm/nn " * 400)
        file.writestr("brown/README", "nothing of this")
        file.writestr("state_union/1945-Truman.txt", "Mr. Speaker, either/or")
    assert [len(text.split()) for text in equal_time.texts(path)] == [300, 103, 3]
    assert next(equal_time.texts(path)).startswith("The oak . elm elm")

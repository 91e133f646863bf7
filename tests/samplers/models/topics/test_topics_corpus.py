"""Corpora: what is read is what was written, and what is wrong with a file is named with its line."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sgmcmc_lab.samplers.file_format import Format
from sgmcmc_lab.samplers.files import EndedError
from sgmcmc_lab.samplers.models.topics import corpus as corpora
from sgmcmc_lab.samplers.models.topics.__main__ import main
from sgmcmc_lab.samplers.models.topics.corpus import Corpus, read_path, read_upload, read_uploads
from sgmcmc_lab.samplers.models.topics.model import Topics
from sgmcmc_lab.samplers.parameters import SpecError
from tests.helpers.cases import for_each

LDAC = b"2 0:3 2:1\n1 1:2\n\n3 0:1 1:1 2:1\n"
WORDS = b"apple\npear\nplum\n"


def bags(corpus):
    """Each document as counts by word."""
    return [{corpus.vocabulary[w]: int(n) for w, n in enumerate(row) if n} for row in corpus.matrix()]


# Reading


def test_an_ldac_file_is_read():
    corpus = read_upload("x.ldac", LDAC, vocabulary=WORDS)
    assert bags(corpus) == [{"apple": 3, "plum": 1}, {"pear": 2}, {"apple": 1, "pear": 1, "plum": 1}]
    assert corpus.words.dtype == np.int32
    assert corpus.offsets.tolist() == [0, 4, 6, 9]


def test_a_text_file_has_a_document_on_each_line():
    corpus = read_upload("x.txt", "\ufeffPear, apple; PEAR!\r\n\r\nÄpfel und naïve 12 a\n...\n".encode())
    assert bags(corpus) == [{"pear": 2, "apple": 1}, {"äpfel": 1, "und": 1, "naïve": 1}]
    assert corpus.titles[0] == "Pear, apple; PEAR!"


def test_several_text_files_are_a_document_each():
    corpus = read_uploads({"one.txt": b"red red\nblue", "two.txt": b"blue\n"})
    assert bags(corpus) == [{"red": 2, "blue": 1}, {"blue": 1}]
    assert corpus.titles == ("one", "two")


@pytest.mark.parametrize(
    ("content", "column"),
    [
        (b'id,Text,title\n1,"red, ""red""\nblue",first\n2,blue,second\n', ""),
        (b"title,id,words\nfirst,1,red red blue\nsecond,2,blue\n", "words"),
    ],
)
def test_a_csv_has_a_column_of_texts(content, column):
    corpus = read_upload("x.csv", content, form=Format(column=column))
    assert bags(corpus) == [{"red": 2, "blue": 1}, {"blue": 1}]
    assert corpus.titles == ("first", "second")


def test_a_csv_of_one_column_needs_no_name():
    assert read_upload("x.csv", b"words\nred blue\nblue\n").n_documents == 2


def test_files_and_folders_are_read_from_paths(tmp_path):
    (tmp_path / "x.ldac").write_bytes(LDAC)
    (tmp_path / "x.tokens").write_bytes(WORDS)
    wanted = bags(read_upload("x.ldac", LDAC, vocabulary=WORDS))
    assert bags(read_path(tmp_path / "x.ldac")) == bags(read_path(tmp_path)) == wanted
    texts = tmp_path / "texts"
    texts.mkdir()
    (texts / "b.txt").write_bytes(b"blue")
    (texts / "a.txt").write_bytes(b"red red")
    (texts / ".hidden").write_bytes(b"\0")
    assert read_path(texts).titles == ("a", "b")
    with pytest.raises(SpecError, match="cannot be read"):
        read_path(tmp_path / "none.txt")


@pytest.mark.slow
@given(st.lists(st.dictionaries(st.integers(0, 9), st.integers(1, 5), min_size=1), min_size=2, max_size=8))
def test_every_bag_of_words_survives_the_ldac_format(documents):
    lines = [f"{len(d)} " + " ".join(f"{w}:{n}" for w, n in d.items()) for d in documents]
    words = "\n".join(f"w{w}" for w in range(10))
    corpus = read_upload("x.ldac", "\n".join(lines).encode(), vocabulary=words.encode())
    assert bags(corpus) == [{f"w{w}": n for w, n in sorted(d.items())} for d in documents]


@pytest.mark.slow
def test_reuters_is_the_known_corpus():
    pytest.importorskip("lda")
    corpus = corpora.reuters()
    assert (corpus.n_documents, corpus.n_words, corpus.n_tokens) == (395, 4258, 84010)
    assert corpus.titles[0].startswith("UK: Prince Charles")
    from lda import utils

    with open(corpora.reuters_folder() / "reuters.ldac", encoding="utf-8") as file:
        assert np.array_equal(corpus.matrix(), utils.ldac2dtm(file, offset=0))


def test_bars_are_rows_and_columns():
    corpus = corpora.bars()
    assert corpus.topics.shape == (10, 25)
    assert np.allclose(corpus.topics.sum(axis=1), 1)
    assert (np.count_nonzero(corpus.topics, axis=1) == 5).all()
    assert np.count_nonzero(corpus.topics[:5] * corpus.topics[5:].sum(axis=0)) == 25
    assert np.array_equal(corpus.words, corpora.bars().words)
    assert not np.array_equal(corpus.words, corpora.bars(seed=2).words)


def test_documents_are_drawn_from_their_topics():
    """The share of each word, over all documents: the error of a share is that of its documents' proportions."""
    corpus = corpora.bars(n_documents=4000, length=50, concentration=0.5)
    assert np.allclose(np.bincount(corpus.words, minlength=25) / corpus.n_tokens, 1 / 25, rtol=0.1)
    # A document is mostly of few bars: its words lie closer together than words of different documents.
    counts = corpus.matrix()
    same = (counts * (counts - 1)).sum() / (4000 * 50 * 49)
    assert same > 1.5 / 25


def test_a_large_corpus_can_be_made():
    corpus = corpora.synthetic(2000, n_words=5000, n_topics=20)
    assert corpus.n_documents == 2000
    assert corpus.n_tokens == 200_000
    assert corpus.words.max() < corpus.n_words == 5000
    assert corpus.topics.shape == (20, 5000)


# Errors

BAD = {
    "no file": ({}, "a file is needed"),
    "an unknown kind": ({"x.pdf": b"%PDF"}, "x.pdf"),
    "a zero byte": ({"x.txt": b"one\ntwo\0three"}, "line 2"),
    "half of UTF-16": ({"x.txt": "one\ntwo".encode("utf-16")[:-1]}, "allowed is text in UTF-16; choose another"),
    "a wrong byte in UTF-8": (
        {"x.txt": "öne\nfine\nnaïve caf".encode() + b"\xe9\n\xc3\xb1"},
        "x.txt, line 3, has the byte 0xE9 after ",
    ),
    "a byte of no text": ({"x.txt": b"one\nfine\ncaf\xe9\x02\n"}, "x.txt, line 3, has the byte 0x02: it is not a text"),
    "a workbook": (
        {"x.csv": b"PK\x03\x04" + bytes(40)},
        "x.csv is a zip archive, as workbooks of Excel are: allowed is text",
    ),
    "no words": ({"x.txt": b"1 2 3\n4\n"}, "two documents"),
    "one document": ({"x.txt": b"only this one\n"}, "two documents"),
    "an empty file": ({"x.txt": b""}, "two documents"),
    "an ldac without its words": ({"x.ldac": LDAC}, "comes with one other file"),
    "an ldac with two others": ({"x.ldac": LDAC, "a": WORDS, "b": WORDS}, "comes with one other file"),
    "no number first": ({"x.ldac": b"2 0:1 1:1\nx 0:1", "v": WORDS}, "x.ldac, line 2"),
    "a wrong number first": ({"x.ldac": b"2 0:1 1:1\n3 0:1 1:1", "v": WORDS}, "here 2"),
    "a long number first": ({"x.ldac": b"9" * 5000 + b" 0:1\n", "v": WORDS}, "line 1"),
    "no colon": ({"x.ldac": b"1 0:1\n2 0:1 11", "v": WORDS}, "x.ldac, line 2, has '11': allowed is word:count"),
    "a negative count": ({"x.ldac": b"1 0:1\n1 0:-1", "v": WORDS}, "two whole numbers"),
    "a fraction": ({"x.ldac": b"1 0:1.5\n1 0:1", "v": WORDS}, "two whole numbers"),
    "a superscript": ({"x.ldac": "1 0:²\n1 0:1".encode(), "v": WORDS}, "two whole numbers"),
    "no such word": ({"x.ldac": b"1 0:1\n1 3:1", "v": WORDS}, "from 0 to 2"),
    "a count of zero": ({"x.ldac": b"1 0:0\n1 0:1", "v": WORDS}, "count from 1"),
    "a huge count": ({"x.ldac": b"1 0:99999999\n1 0:1", "v": WORDS}, "count from 1"),
    "huge counts together": ({"x.ldac": b"1 0:9999999\n" * 3, "v": WORDS}, "10,000,000 words in all"),
    "a word twice in a line": ({"x.ldac": b"2 0:1 0:1\n1 0:1", "v": WORDS}, "each word once"),
    "a word twice in the vocabulary": ({"x.ldac": LDAC, "v": b"a\nb\na\n"}, "v, line 3"),
    "an empty word": ({"x.ldac": LDAC, "v": b"a\n\nb\n"}, "v, line 2"),
    "no vocabulary": ({"x.ldac": LDAC, "v": b"\n"}, "at least two"),
    "a vocabulary that is no text": ({"x.ldac": LDAC, "v": b"a\nb\x02\xff\n"}, "v, line 2"),
    "two csv files": ({"a.csv": b"text\na b\n", "b.csv": b"text\na b\n"}, "comes alone"),
    "an empty csv": ({"x.csv": b""}, "line 1"),
    "only titles": ({"x.csv": b"id,words\n"}, "no document with words"),
    "too many fields": ({"x.csv": b"id,text\n1,aa\n2,bb,cc\n"}, "line 3, has 3 fields: line 1 has 2 names"),
    "too few fields": ({"x.csv": b"id,text\n1,aa\n2\n"}, "line 3"),
    "an open quote": ({"x.csv": b'id,text\n1,"aa\n2,bb\n'}, "is not CSV: unexpected end"),
    "a quote inside": ({"x.csv": b'id,text\n1,"aa"b\n'}, "line 2"),
}


@for_each(("files", "named"), BAD.values(), ids=BAD)
def test_what_is_wrong_with_a_file_is_named(files, named):
    with pytest.raises(SpecError) as caught:
        read_uploads(files)
    assert named in str(caught.value)
    sentence = r"(The corpus( of \d+ files)?|\S+(, line \d+,)?) (has|is|came|begins|names) .*: .*\."
    assert re.fullmatch(sentence, str(caught.value)), "a sentence: where, what is there, what is allowed"


def test_a_long_value_is_cut_and_names_its_line():
    with pytest.raises(SpecError) as caught:
        read_uploads({"x.ldac": b"1 0:1\n1 " + b"7" * 1000, "v": WORDS})
    assert str(caught.value).startswith("x.ldac, line 2, has '777")
    assert len(str(caught.value)) < 200


def test_a_field_of_a_csv_may_be_long():
    text = "some words " * 20_000
    assert read_upload("x.csv", f"text\n{text}\n{text}\n".encode()).n_tokens == 80_000


def test_a_missing_column_is_named():
    with pytest.raises(SpecError, match="line 1, names no column body: there are id, text"):
        read_upload("x.csv", b"id,text\n1,aa\n", form=Format(column="body"))


def test_the_size_is_checked_before_anything_else(monkeypatch):
    monkeypatch.setattr(corpora, "MAX_BYTES", 10)
    with pytest.raises(SpecError, match="11 bytes"):
        read_uploads({"a.txt": b"\0" * 6, "b.txt": b"\0" * 5})


@pytest.mark.parametrize(
    ("limit", "value", "named"),
    [("MAX_DOCUMENTS", 2, "2 documents"), ("MAX_TOKENS", 5, "5 words in all"), ("MAX_VOCABULARY", 2, "2 different")],
)
def test_too_much_is_refused(monkeypatch, limit, value, named):
    content = b"aa bb\naa bb\ncc aa\n"
    assert read_upload("x.txt", content).n_documents == 3
    monkeypatch.setattr(corpora, limit, value)
    with pytest.raises(SpecError, match=f"more than {named}"):
        read_upload("x.txt", content)


LINES = [f"word{chr(97 + d % 26)} and others" for d in range(10 * corpora.TOLD_EVERY - 7)]
LARGE = {
    "lines": {"x.txt": "\n".join(LINES).encode()},
    "csv": {"x.csv": "\n".join(["text", *LINES]).encode()},
    "ldac": {"x.ldac": b"2 0:1 1:1\n" * len(LINES), "v": WORDS},
    "files": {f"{d}.txt": line.encode() for d, line in enumerate(LINES)},
}


@pytest.mark.parametrize("files", LARGE.values(), ids=LARGE)
def test_the_reader_says_how_far_it_is_and_ends_when_told(files, monkeypatch):
    shares = []
    assert read_uploads(files, tell=shares.append).n_documents == len(LINES)
    assert len(shares) == 10, "once for so many documents"
    assert shares[0] == 0 and shares == sorted(set(shares)) and shares[-1] < 1
    assert np.diff(shares) == pytest.approx(0.1, abs=0.02), "the bar moves evenly"

    read = []
    real = corpora._check_size
    monkeypatch.setattr(corpora, "_check_size", lambda *args: (read.append(1), real(*args)))

    def end(share):
        if share > 0.25:
            raise EndedError

    with pytest.raises(EndedError):
        read_uploads(files, tell=end)
    assert 0 <= len(read) - 3 * corpora.TOLD_EVERY <= ("v" in files), "no document is read after it was told to end"


@pytest.mark.slow
@given(st.binary(max_size=60), st.sampled_from(["x.txt", "x.csv", "x.ldac"]))
def test_no_file_crashes(content, name):
    try:
        corpus = read_upload(name, content, vocabulary=WORDS if name == "x.ldac" else None)
    except SpecError:
        pass
    else:
        assert corpus.offsets[-1] == corpus.n_tokens
        assert len(corpus.titles) == corpus.n_documents


# Cut-offs and the split


def texts(*documents):
    return read_upload("x.txt", "\n".join(documents).encode())


def test_the_cut_offs_take_out_rare_and_common_words():
    corpus = texts("the red", "the red blue", "the blue blue", "the green")
    assert corpus.trimmed(1, 1.0, 10).vocabulary == ("the", "red", "blue", "green")
    assert corpus.trimmed(2, 1.0, 10).vocabulary == ("the", "red", "blue")
    trimmed = corpus.trimmed(2, 0.5, 10)
    assert bags(trimmed) == [{"red": 1}, {"red": 1, "blue": 1}, {"blue": 2}]
    assert trimmed.titles == ("the red", "the red blue", "the blue blue")
    assert corpus.trimmed(1, 1.0, 2).vocabulary == ("the", "red")
    with pytest.raises(SpecError, match="leave 1 words of 4"):
        corpus.trimmed(3, 1.0, 10)


@pytest.mark.slow
@given(st.lists(st.lists(st.integers(0, 6), max_size=6).map(sorted), min_size=2, max_size=8))
def test_the_spread_of_a_word_is_in_how_many_documents_it_is(documents):
    offsets = np.cumsum([0, *map(len, documents)])
    corpus = Corpus(offsets, np.concatenate(documents).astype(np.int32), tuple("abcdefg"), ("",) * len(documents))
    assert corpus.spread().tolist() == [sum(w in document for document in documents) for w in range(7)]


def test_an_upload_is_needed_where_the_study_says_so():
    with pytest.raises(SpecError, match="no corpus was uploaded"):
        Topics(corpus="uploaded")


def test_an_upload_takes_the_place_of_the_built_in():
    documents = ["red green", "red blue", "green blue", "blue red red", "green green red"]
    model = Topics(texts(*documents), corpus="uploaded", n_topics=2, max_share=1.0)
    assert set(model.vocabulary) == {"red", "green", "blue"}
    assert model.training.n_documents == 4


def test_too_many_topics_for_the_words_are_refused():
    corpus = Corpus(
        np.array([0, 2, 4, 6]),
        np.array([0, 1, 2, 3, 0, 19_999], dtype=np.int32),
        tuple(f"w{w}" for w in range(20_000)),
        ("a", "b", "c"),
    )
    with pytest.raises(SpecError, match="at most 250 topics with 20,000 words"):
        # 50,000 words are the most that a model can keep.
        Topics(_untrimmed(corpus), corpus="uploaded", n_topics=300)


def _untrimmed(corpus):
    class Untrimmed(Corpus):
        def trimmed(self, *cut_offs):
            return self

    return Untrimmed(corpus.offsets, corpus.words, corpus.vocabulary, corpus.titles)


def test_the_split_parts_the_documents_and_the_words_of_the_test_documents():
    whole = corpora.bars()
    model = Topics(corpus="bars", n_topics=5, test_share=0.3, observed=0.7)
    assert model.folded.n_documents == model.scored.n_documents == 150
    assert model.training.n_documents == 350
    assert not set(model.training.titles) & set(model.folded.titles)
    matrix = whole.matrix()
    at = [whole.titles.index(title) for title in model.folded.titles]
    assert np.array_equal(model.folded.matrix() + model.scored.matrix(), matrix[at])
    assert (model.folded.matrix().sum(axis=1) == 70).all()
    again = Topics(corpus="bars", n_topics=7, test_share=0.3, observed=0.7)
    assert np.array_equal(again.scored.words, model.scored.words)


# The command line


def test_a_corpus_is_named_on_the_command_line(tmp_path, capsys):
    animals, trees = "cat dog mouse purr", "oak elm leaf root"
    rows = [f"{i},{(animals, trees)[i % 2]} the" for i in range(60)]
    path = tmp_path / "letters.csv"
    path.write_text("\n".join(["id,words", *rows]))
    command = [str(path), "--column", "words", "--n-topics", "2", "--documents", "3000"]
    assert main([*command, "--method", "collapsed_gibbs", "--method", "lda_scir"]) == 0
    shown = capsys.readouterr().out.split("\n\n")
    # A common word is cut off, and either method finds the two topics.
    assert "8 different words" in shown[0]
    assert [text.partition(":")[0] for text in shown[1:]] == ["Collapsed Gibbs", "SCIR"]
    for text in shown[1:]:
        assert float(re.search(r"perplexity ([\d.]+)", text)[1]) < 6
        coherence, head, *lines = text.strip().splitlines()[1:]
        topics = [set(line.split()[2:6]) for line in lines]
        assert sorted(map(sorted, topics)) == [sorted(animals.split()), sorted(trees.split())]
        assert head.split() == ["share", "NPMI", "words"]
        npmi = [float(line.split()[1]) for line in lines]
        assert float(re.search(r"topics: (-?[\d.]+)", coherence)[1]) == pytest.approx(np.mean(npmi), abs=0.01)
        assert re.search(r"NPMI over \d+ training documents", coherence)
    main([*command, "--max-share", "1"])
    assert "9 different words" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["x.csv"], "x.csv cannot be read"),
        (["letters.csv", "--column", "body"], "letters.csv, line 1, names no column body: there are"),
        (["letters.csv", "--separator", "x"], "separator = 'x': allowed is one of tab, semicolon"),
        (["letters.csv", "--column", "words", "--n-topics", "1_0"], "n_topics = '1_0'"),
        (["letters.csv", "--column", "words", "--n-topics", "1"], "n_topics"),
        (["letters.csv", "--column", "words", "--max-share", "0.01"], "max_share"),
    ],
)
def test_what_is_wrong_on_the_command_line_is_said(options, named, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "letters.csv").write_text("id,words\n1,cat dog\n2,dog mouse\n")
    with pytest.raises(SystemExit) as ended:
        main(options)
    assert ended.value.code == 2
    assert named in capsys.readouterr().err


def test_at_most_a_thousand_documents_are_held_out():
    large = corpora.synthetic(6000, n_words=50, n_topics=20, length=5)
    model = Topics(large, corpus="uploaded", n_topics=2, max_share=1.0)
    assert model.folded.n_documents == 1000
    assert model.training.n_documents == 5000


def test_documents_too_short_to_split_are_not_held_out():
    model = Topics(texts("aa bb", "aa", "bb", "aa bb cc", "cc"), corpus="uploaded", min_documents=1, max_share=1.0)
    assert set(model.folded.titles) <= {"aa bb", "aa bb cc"}
    assert model.folded.n_tokens >= 1
    assert model.scored.n_tokens >= 1
    with pytest.raises(SpecError, match="too few"):
        Topics(texts("aa", "bb", "cc"), corpus="uploaded", min_documents=1, max_share=1.0)


def test_the_facts_add_up():
    facts = Topics(corpus="bars").facts()
    assert facts["documents"] == "500"
    assert facts["words in all"] == "50,000"

"""Every reader of a file that a person brings: what is wrong is a sentence, and what is large costs no more than it."""

import json
import logging
import random
import sys

import numpy as np
import pytest

from sgmcmc_lab.lessons.document import LessonError
from sgmcmc_lab.lessons.lesson import read as read_lesson
from sgmcmc_lab.samplers import file_format, files
from sgmcmc_lab.samplers.experiment import Experiment
from sgmcmc_lab.samplers.files import FileError
from sgmcmc_lab.samplers.models.factors import data as rows
from sgmcmc_lab.samplers.models.mixture import data as visits
from sgmcmc_lab.samplers.models.network import graph as graphs
from sgmcmc_lab.samplers.models.network.graph import read_upload
from sgmcmc_lab.samplers.models.topics import corpus as corpora
from sgmcmc_lab.samplers.models.topics.corpus import read_uploads
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.targets import own

# ---------------------------------------------------------------- any bytes

GRAPHML = """<?xml version='1.0' encoding='utf-8'?>
<graphml xmlns='http://graphml.graphdrawing.org/xmlns' xmlns:y='http://www.yworks.com/xml/graphml'>
<key id='d0' for='node' attr.name='group' attr.type='string'><default>one</default></key>
<graph edgedefault='undirected'><node id='a'><data key='d0'>two</data></node><node id='b'/><node id='c'/><node id='é'>
<data key='d1'><y:ShapeNode><y:Fill color='#fff'/></y:ShapeNode></data></node>
<edge source='a' target='b'/><edge source='b' target='c'/><edge source='c' target='é'/></graph></graphml>
"""
VISITS = b'I,4,"x"\nA,1,1,"one","/a"\nA,2,1,"two","/b"\nC,"10",10\nV,1,1\nC,"11",11\nV,2,1\nV,1,1\nC,"12",12\nV,2,1\n'
LESSON = """+++
title = "One"
minutes = 5
summary = "A short one."
+++

## First
Some text with $$x^2$$ and a [link](https://example.org).

```toml
experiment = "target=gaussian&lane=sgld(step_size:0.1)&n=100&chains=4"
views = ["state"]
watch = "What moves."
[question]
ask = "Which?"
options = ["One", "Two"]
answer = 1
why = "So."
[[claim]]
says = "It is about 1."
measure = "mean"
equals = 1.0
tolerance = 0.5
```
"""


def lesson_of(content, folder):
    path = folder / "01-one.md"
    path.write_bytes(content)
    return read_lesson(path)


def experiment_of(content, _folder):
    return Experiment.from_json(content.decode("utf-8", "replace"))


EXPERIMENT = Experiment.from_dict({"target": "gaussian", "lanes": [{"sampler": "sgld"}, {"sampler": "sghmc"}]})
READERS = {
    "graph.csv": (lambda content, _: read_upload("x.csv", content), b"source,target\nann,bob\nbob,cid\n\"dan, e\",ann\n1,bob\n", FileError),
    "graphml": (lambda content, _: read_upload("x.graphml", content), GRAPHML.encode(), FileError),
    "text": (lambda content, _: read_uploads({"x.txt": content}), "One of thé texts\nand two\n\nAnother text\n".encode(), FileError),
    "corpus.csv": (lambda content, _: read_uploads({"x.csv": content}), b'title,text\nOne,"some, words\nhere"\nTwo,others\n', FileError),
    "ldac": (lambda content, _: read_uploads({"x.ldac": content, "v": b"red\ngreen\nblue\n"}), b"2 0:2 2:1\n1 1:3\n\n3 0:1 1:1 2:1\n", FileError),
    "visits": (lambda content, _: visits.read({"x.data": content}), VISITS, FileError),
    "vocabulary": (lambda content, _: read_uploads({"x.ldac": b"2 0:2 2:1\n1 1:3\n", "v": content}), "red\ngrün\nblue\n".encode(), FileError),
    "table": (lambda content, _: own.read({"x.csv": content}, False), b"a,b,y\n" + b"".join(b"%d,%d.5,-%de0\n" % (k, k * k % 7, k) for k in range(11)), FileError),
    "table of kinds": (lambda content, _: own.read({"x.csv": content}, True), b"a;b;\"which one\"\n" + b"".join(b"%d;-%d;%s\n" % (k, k * k % 7, b"yes" if k % 3 else b"no") for k in range(14)), FileError),
    "rows": (lambda content, _: rows.read({"x.csv": content}), b"a,b,kind\n" + b"".join(b"%d,%d.5,%s\n" % (k, k * k % 7, b"yes" if k % 3 else b"no") for k in range(14)), FileError),
    "lesson": (lesson_of, LESSON.encode(), LessonError),
    "experiment": (experiment_of, EXPERIMENT.to_json().encode(), SpecError),
    "experiment on a model": (experiment_of, Experiment.of("topics", {"lda_scir": {}}).to_json().encode(), SpecError),
    "study": (experiment_of, b'{"version": 1, "model": "topics", "methods": ["lda_scir", {"key": "lda_sgrld", "params": {}}], "seed": 1, "seeds": 2, "n_steps": [3, 4], "changes": [{"method": 1, "step": 2, "params": {"step_size": 0.5}}]}', SpecError),
}  # fmt: skip
"""A reader, a good file, and the only error that may come of another one."""
N_MUTATED = {"lesson": 150, "experiment": 150, "experiment on a model": 150, "study": 150}
WORDS = [
    b"\0", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", "\u2028".encode(), "²".encode(), "１".encode(), b"\r", b"\n", b'"', b"'", b"<", b">", b"&", b"&#0;", b"&x;", b"]]>", b"<!--",
    b"<![CDATA[", b"<?xml version='1.1'?>", b"<!DOCTYPE x>", b"xmlns:y='u'", b"y:", b"{", b"}", b"[", b"]", b"null", b"NaN", b"Infinity", b"1e999", b"-1", b"9" * 40, b"true", b":", b",", b";", b"\\u0000",
    b"\\ud800", b"\\", b"+++", b"```", b"## ", b"=", b"inf", b"nan", b"0x10", b"1979-05-27", b"$$", b"%", b"..", b"a" * 200,
]  # fmt: skip


def mutated(content, rng):
    """The bytes with a few changes: slices gone, doubled or exchanged, bytes flipped, words of the formats put in."""
    out = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 3, 8])):
        at, end = sorted(rng.randrange(len(out) + 1) for _ in range(2))
        end = min(end, at + rng.choice([1, 4, 40]))
        kind = rng.randrange(6)
        if kind == 0:
            del out[at:end]
        elif kind == 1:
            out[at:at] = out[at:end]
        elif kind == 2 and out:
            out[min(at, len(out) - 1)] = rng.randrange(256)
        elif kind == 3:
            out[at:end] = rng.choice(WORDS)
        elif kind == 4:
            out[at:at] = rng.choice(WORDS)
        else:
            del out[end + rng.randrange(len(out) + 1) :]
        out = out or bytearray(b"x")
    return bytes(out)


@pytest.mark.slow
@pytest.mark.parametrize("kind", READERS)
def test_no_file_brings_another_error_than_the_readers_own(kind, tmp_path, caplog):
    """A thousand mutations of a good file: each is read or refused in a sentence, and no reader is surprised."""
    read, good, allowed = READERS[kind]
    read(good, tmp_path)
    rng = random.Random(kind)
    said = []
    n = N_MUTATED.get(kind, 1000)
    for _ in range(n):
        content = mutated(good, rng)
        try:
            read(content, tmp_path)
        except allowed as error:
            said.append(str(error))
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR], "a reader was surprised"
    assert all("\n" not in sentence and len(sentence) < 1000 for sentence in said)
    assert 0.1 * n < len(said) < n, "some are good, some are not"


@pytest.mark.parametrize("kind", ["graph.csv", "graphml", "text", "corpus.csv", "ldac", "table"])
def test_fault_an_error_inside_a_reader_is_a_sentence_and_in_the_log(kind, tmp_path, caplog, monkeypatch):
    def broken(*_):
        raise KeyError("é")

    module = file_format if kind.endswith(".csv") or kind == "table" else graphs if kind == "graphml" else corpora
    monkeypatch.setattr(module, "decode", broken)
    read, good, _ = READERS[kind]
    with pytest.raises(
        FileError,
        match=r"cannot be read: its contents are not as the reader expects; the server's log has the details\.$",
    ):
        read(good, tmp_path)
    assert "KeyError: 'é'" in caplog.text, "the log has what the page has not"


# ---------------------------------------------------------------- any length


def lines_run(work):
    """How many lines of the readers' Python run: what a file costs beyond what is done to it as a whole."""
    names = {files.__file__, file_format.__file__, graphs.__file__, corpora.__file__}
    count = 0

    def local(_frame, event, _arg):
        nonlocal count
        count += event == "line"
        return local

    def trace(frame, _event, _arg):
        return local if frame.f_code.co_filename in names else None

    # The patterns of words are made once in a process, from the table of all characters.
    for text in ("é", "\u2028", "𐍈"):
        corpora.words_of(text)
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    except FileError:
        pass
    finally:
        sys.settrace(before)
    return count


N = 200_000
LONG = {
    "newlines": {"x.txt": b"\n" * N},
    "returns": {"x.txt": b"\r" * N},
    "U+2028": {"x.txt": "\u2028".encode() * N},
    "next line": {"x.txt": "\x85".encode() * N},
    "a word": {"x.txt": b"a" * N},
    "words": {"x.txt": b"aa " * N},
    "letters": {"x.txt": b"a " * N},
    "commas": {"x.csv": b"text\n" + b"," * N},
    "columns": {"x.csv": b"," * N},
    "quotes": {"x.csv": b"text\n" + b'"' * N},
    "newlines in quotes": {"x.csv": b'text\n"' + b"\n" * N + b'"'},
    "pairs": {"x.ldac": b"1" + b" 0:1" * N, "v": b"a\nb\n"},
    "counted pairs": {"x.ldac": f"{N}".encode() + b" 0:1" * N, "v": b"a\nb\n"},
    "empty documents": {"x.ldac": b"0\n" * N, "v": b"a\nb\n"},
    "vocabulary": {"x.ldac": b"1 0:1\n", "v": b"\n".join(b"%d" % i for i in range(N))},
}


@pytest.mark.parametrize("kind", LONG)
def test_what_is_hostile_costs_no_line_of_python_for_each_byte(kind, monkeypatch):
    """Two hundred thousand of anything are refused, or read, in a hundredth as many lines of Python."""
    monkeypatch.setattr(files, "MAX_LINES", 1000)
    monkeypatch.setattr(files, "MAX_SEPARATORS", 1000)
    monkeypatch.setattr(corpora, "MAX_VOCABULARY", 1000)
    monkeypatch.setattr(corpora, "MAX_DOCUMENTS", 1000)
    assert lines_run(lambda: read_uploads(LONG[kind])) < N / 100


def test_fault_a_line_of_python_for_each_line_of_the_file():
    assert lines_run(lambda: read_uploads({"x.txt": b"\n" * 20_000})) > 20_000


@pytest.mark.parametrize("content", [b"\n" * N, b"\r" * N, b"," * N, b'"' * N, b'"' + b"\n" * N])
def test_hostile_edge_lists(content, monkeypatch):
    monkeypatch.setattr(files, "MAX_LINES", 1000)
    monkeypatch.setattr(files, "MAX_SEPARATORS", 1000)
    assert lines_run(lambda: read_upload("x.csv", content)) < 1000


def test_hostile_graphml(monkeypatch):
    monkeypatch.setattr(graphs, "MAX_ELEMENTS", 20)
    assert lines_run(lambda: read_upload("x.graphml", b"<graphml>" + b"<a/>" * N + b"</graphml>")) < 1000
    with pytest.raises(FileError, match=r"line 1, has 'a': allowed are at most 20 elements, and this is one more\.$"):
        read_upload("x.graphml", b"<graphml>" + b"<a/>" * N + b"</graphml>")


def test_the_bounds_are_said():
    with pytest.raises(FileError, match=r"^x.txt has 1,000,001 lines: allowed are at most 1,000,000\.$"):
        read_uploads({"x.txt": b"\n" * 1_000_000})
    with pytest.raises(FileError, match=r"^x.csv, line 2, has a row of more than 100,000 separators: so many"):
        read_uploads({"x.csv": b"text,year\n" + b"," * 100_001})
    with pytest.raises(FileError, match=r"^v has more than 500,000 different words: "):
        read_uploads({"x.ldac": b"1 0:1\n", "v": b"\n".join(b"%d" % i for i in range(500_001))})
    with pytest.raises(FileError, match=r"^v, line 2, has 'wwww.*: allowed is a word of up to 100 characters\.$"):
        read_uploads({"x.ldac": b"1 0:1\n", "v": b"a\n" + b"w" * 101})
    with pytest.raises(FileError, match=r"line 1, has 3 pairs: allowed is each of the 2 words once\.$"):
        read_uploads({"x.ldac": b"3 0:1 1:1 0:1\n", "v": b"a\nb\n"})


def test_lines_are_those_of_an_editor():
    """A separator of paragraphs inside a document does not end it, and no line number counts it."""
    corpus = read_uploads({"x.txt": "red\u2028green\x85blue\x0cred\r\ngreen\rblue\n".encode()})
    assert np.diff(corpus.offsets).tolist() == [4, 1, 1]
    with pytest.raises(FileError, match=r"x\.ldac, line 3, has 'x'"):
        read_uploads({"x.ldac": b"1 0:1\n\r\n1 x", "v": b"a\nb\n"})


def test_a_long_document_is_read_in_pieces_between_words(monkeypatch):
    text = " ".join(f"wörd{chr(97 + i % 26)}x{chr(97 + i // 26)}" for i in range(500))
    whole = read_uploads({"x.txt": f"{text}\nother words\n".encode()})
    monkeypatch.setattr(corpora, "PIECE", 37)
    shares = []
    pieces = read_uploads({"x.txt": f"{text}\nother words\n".encode()}, tell=shares.append)
    assert pieces.vocabulary == whole.vocabulary and (pieces.words == whole.words).all()
    assert len(shares) > len(text) / 50 and shares == sorted(shares), "it can be told to end inside a document"
    assert max(map(len, read_uploads({"x.txt": b"a" * 1000 + b"\nother words\n"}).vocabulary)) <= corpora.MAX_WORD


def test_a_file_with_a_strange_name_is_named_in_one_line():
    for name in ("a\nb.txt", "x" * 5000 + ".txt", "../../etc/passwd.txt", "\x1b[31m.txt"):
        with pytest.raises(FileError) as caught:
            read_uploads({name: b""})
        assert str(caught.value).isprintable() and len(str(caught.value)) < 200
        assert "/" not in str(caught.value)


def test_json_that_is_no_text_of_a_number_a_reader_knows():
    for text in (
        "[" * 100_000,
        "9" * 5000,
        json.dumps({"target": {"key": "gaussian", "params": {"dim": 10**400}}}),
        '"\\ud800"',
    ):
        with pytest.raises(SpecError):
            Experiment.from_json(text)

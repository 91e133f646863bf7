"""Files in unusual formats: what each is taken for, in a sentence, and the values that are read from it."""

import gzip
import tracemalloc

import numpy as np
import pytest

from sgmcmc_lab.samplers.file_format import Format, is_missing, to_number
from sgmcmc_lab.samplers.files import FileError
from sgmcmc_lab.samplers.models.clusters import points
from sgmcmc_lab.samplers.models.mixture import data as visits
from sgmcmc_lab.samplers.models.network.graph import read_upload as graph_of
from sgmcmc_lab.samplers.models.topics.corpus import read_uploads, words_of
from sgmcmc_lab.samplers.parameters import SpecError, check, declared
from sgmcmc_lab.samplers.targets import own
from sgmcmc_lab.samplers.targets.linear_table import TableLinear
from tests.helpers.cases import for_each

N = 12
X = np.column_stack([np.arange(N) + 0.5, np.arange(N) ** 2 % 7 - 2.0])
"""The numbers of most tables here."""


def table(rows=None, titles="x,y", separator=",", end="\n", more=""):
    """A table of X as text, with a title row, or without one where ``titles`` is empty."""
    rows = [[f"{a:g}", f"{b:g}"] for a, b in X] if rows is None else rows
    lines = [titles.replace(",", separator)] * bool(titles) + [separator.join(row) for row in rows]
    return end.join(lines) + end + more


def cells(write, n=N):
    return [[write(a), write(b)] for a, b in X[:n]]


def comma(x):
    return f"{x:g}".replace(".", ",")


def grouped(mark, decimal):
    """1234.5 with a mark between groups of three."""
    return lambda x: f"{1000 * (x + 3):,.1f}".replace(",", "_").replace(".", decimal).replace("_", mark)


THOUSANDS = 1000 * (X + 3)
UTF8 = "encoding: UTF-8"
NUMBERS = {
    "commas": (table(), "separator: comma; title row: yes; decimal point; encoding: UTF-8; known groups: none.", X),
    "semicolons": (table(separator=";"), "separator: semicolon; title row: yes; decimal point", X),
    "tabs": (table(separator="\t"), "separator: tab; title row: yes", X),
    "vertical bars": (table(separator="|"), "separator: vertical bar; title row: yes", X),
    "spaces": (table(separator=" "), "separator: space; title row: yes", X),
    "runs of spaces and tabs": (table(separator="  \t "), "separator: ", X),
    "quoted cells": (table([[f'"{a:g}"', f'"{b:g}"'] for a, b in X], '"x","y"'), "separator: comma", X),
    "a separator in a quoted title": (table(titles='"x; in m; or so",y'), "separator: comma; title row: yes", X),
    "a newline in a quoted title": (table(titles='"x\nin m",y'), "separator: comma; title row: yes", X),
    "a doubled quote in a title": (table(titles='"x ""raw""",y'), "separator: comma; title row: yes", X),
    "sep=": ("sep=;\r\n" + table(separator=";", end="\r\n"), "2 columns and 12 rows; separator: semicolon", X),
    "sep= and decimal commas": ("sep=;\n" + table(cells(comma), separator=";"), "separator: semicolon; title row: yes; decimal comma", X),
    "UTF-8 with a mark": ("\ufeff" + table(), UTF8, X),
    "UTF-16 of Windows": (("\ufeff" + table()).encode("utf-16-le"), "encoding: UTF-16", X),
    "UTF-16, big end first": (("\ufeff" + table()).encode("utf-16-be"), "encoding: UTF-16", X),
    "UTF-16 without a mark": (table().encode("utf-16-le"), "encoding: UTF-16", X),
    "windows-1252": (table(titles="größe,länge").encode("cp1252"), "encoding: windows-1252 (western Europe)", X),
    "Mac Roman": (table(titles="größe,élève très âgé").encode("mac-roman"), "encoding: Mac Roman", X),
    "comments with #": ("# made by hand\n#\n" + table(), "2 comment lines left out.", X),
    "comments with %": ("% one\n" + table(more="% the end\n"), "2 comment lines left out.", X),
    "titles in a comment": ("# x,y\n" + table(titles=""), "separator: comma; title row: yes", X),
    "no title row": (table(titles=""), "2 columns and 12 rows; separator: comma; title row: no", X),
    "empty cells": (table(more="3,\n,4\n,\n"), "12 rows; separator: comma; title row: yes; decimal point; encoding: UTF-8; known groups: none; 3 rows with a missing value left out.", X),
    **{f"missing as {word}": (table(more=f"3,{word}\n"), "1 row with a missing value left out", X) for word in ("NA", "n/a", "NaN", "null", "-", ".", "?", "#N/A")},
    "decimal commas": (table(cells(comma), separator=";"), "separator: semicolon; title row: yes; decimal comma", X),
    "decimal commas in quotes": (table([[f'"{comma(a)}"', f'"{comma(b)}"'] for a, b in X]), "separator: comma; title row: yes; decimal comma", X),
    "decimal commas and tabs": (table(cells(comma), separator="\t"), "separator: tab; title row: yes; decimal comma", X),
    "1.234,5": (table(cells(grouped(".", ",")), separator=";"), "decimal comma", THOUSANDS),
    "1,234.5": (table(cells(grouped(",", ".")), separator=";"), "decimal point", THOUSANDS),
    "1 234,5 with no-break spaces": (table(cells(grouped("\u00a0", ",")), separator=";"), "decimal comma", THOUSANDS),
    "1 234,5 with narrow ones": (table(cells(grouped("\u202f", ",")), separator=";"), "decimal comma", THOUSANDS),
    "1'234.5": (table(cells(grouped("'", "."))), "decimal point", THOUSANDS),
    "a real minus": (table(cells(lambda x: f"{x:g}".replace("-", "−"))), "decimal point", X),
    "1e3": (table(cells(lambda x: f"{x:e}")), "decimal point", X),
    ".5 and 5.": (table(cells(lambda x: f"{x:g}".removeprefix("0") if 0 < x < 1 else f"{x:g}" + "." * bool(x % 1 == 0))), "decimal point", X),
    "percent": (table([[f"{a:g} %", f"{b:g}"] for a, b in X]), "decimal point", X / [100, 1]),
    "separators at the ends": (table([[f"{a:g}", f"{b:g}", ""] for a, b in X], "x,y,"), "2 columns and 12 rows", X),
    "separators at the ends of rows": (table([[f"{a:g}", f"{b:g}", ""] for a, b in X]), "2 columns and 12 rows", X),
    "empty lines": (table(end="\n\n"), "2 columns and 12 rows", X),
    "carriage returns": (table(end="\r"), "2 columns and 12 rows", X),
}  # fmt: skip


@for_each("kind", NUMBERS)
def test_points(kind):
    content, said, x = NUMBERS[kind]
    found = points.read({"p.csv": content if isinstance(content, bytes) else content.encode()})
    np.testing.assert_allclose(found.x, x, rtol=1e-12)
    assert found.groups is None
    assert said in found.taken.sentence, found.taken.sentence
    assert found.taken.sentence.startswith("Read as a table of 2 columns and 12 rows; ")


def test_the_titles_of_points():
    def titles(content, form=Format()):  # noqa: B008
        return points.read({"p.csv": content}, form).names

    assert titles(table(titles="größe,élève très âgé").encode("mac-roman")) == ("größe", "élève très âgé")
    assert titles(table(titles="größe,länge").encode("cp1252")) == ("größe", "länge")
    assert titles(b"# x,y\n" + table(titles="").encode()) == ("x", "y")
    assert titles(table(titles="").encode()) == ("column 1", "column 2")
    # A title row of numbers is told from data by a person alone, but for years above what are none.
    numbers = table(titles="7,9").encode()
    assert len(points.read({"p.csv": numbers}).x) == 13
    assert titles(numbers, Format(title_row="yes")) == ("7", "9")
    assert titles(table(titles="1990,1995").encode()) == ("1990", "1995")
    for no_years in ("1990,1993", "1990,1990", "199,200", "2300,2301"):
        assert titles(table(titles=no_years).encode()) == ("column 1", "column 2")
    assert len(points.read({"p.csv": b"".join(b"%d,%d\n" % (k, k + 1) for k in range(1990, 2002))}).x) == 12


def test_the_line_of_counts_of_scikit_learn_is_left_out():
    """Fails where the counts and the names of the kinds are taken for titles, or a first row of data for counts."""
    rows = "".join(f"{k}.5,{k * k % 7},{k % 2}\n" for k in range(12))
    found = own.read({"iris.csv": f"12,2,setosa,versicolor\n{rows}".encode()}, True)
    assert found.names == ("column 1", "column 2") and found.x.shape == (12, 2) and found.kinds == ("0", "1")
    assert "first line with the numbers of rows and columns left out" in found.taken.sentence
    assert own.read({"t.csv": f"12,3,1\n{rows}".encode()}, True).x.shape == (13, 2)
    assert own.read({"t.csv": f"11,2,1\n{rows}".encode()}, True).x.shape == (13, 2)


GROUPS = [[f"{a:g}", f"{b:g}", "ab"[k % 2]] for k, (a, b) in enumerate(X)]


def test_groups_are_words_and_no_numbers_with_a_gap():
    found = points.read({"p.csv": table(GROUPS, "x,y,kind").encode()})
    assert found.group_names == ("a", "b") and "known groups: column 3 (kind)" in found.taken.sentence
    with_gap = points.read(
        {"p.csv": table([[*row[:2], f"{k}"] for k, row in enumerate(GROUPS)], "x,y,z", more="1,2,n/a\n").encode()}
    )
    assert with_gap.groups is None and with_gap.names == ("x", "y", "z") and len(with_gap.x) == N
    first = points.read({"p.csv": table([row[::-1] for row in GROUPS], "kind,y,x").encode()}, Format(column="kind"))
    assert first.names == ("y", "x") and first.group_names == ("a", "b")
    numbered = table([[*row[:2], f"{k % 3}"] for k, row in enumerate(GROUPS)], "x,y,k").encode()
    assert points.read({"p.csv": numbered}).groups is None
    assert points.read({"p.csv": numbered}, Format(column="3")).group_names == ("0", "1", "2")


def test_a_missing_answer_is_no_kind_unless_a_person_says_so():
    rows = [[f"{a:g}", f"{b:g}", "yes" if k % 3 else "no"] for k, (a, b) in enumerate(X)]
    content = {"t.csv": table(rows, "a,b,y", more="1,2,NA\n3,4,\n").encode()}
    found = own.read(content, True)
    assert found.kinds == ("no", "yes") and len(found.y) == N
    assert found.taken.sentence.endswith("answer: column 3 (y); 2 rows with a missing value left out.")
    with pytest.raises(FileError, match="4 different values in the column 'y'"):
        own.read(content, True, Format(missing="kept"))
    signs = own.read({"t.csv": table([[*row[:2], "+-"[k % 2]] for k, row in enumerate(rows)], "a,b,y").encode()}, True)
    assert signs.kinds == ("+", "-"), "among words a minus is a kind"


def test_the_answer_is_the_column_that_is_chosen():
    content = {"t.csv": table([[f"{a:g}", f"{b:g}", f"{a - b:g}"] for a, b in X], "a,b,c").encode()}
    assert (own.read(content, False).answer, own.read(content, False).names) == ("c", ("a", "b"))
    for column in ("a", "1", "A"):
        found = own.read(content, False, Format(column=column))
        assert (found.answer, found.names) == ("a", ("b", "c"))
        np.testing.assert_array_equal(found.y, X[:, 0])
    with pytest.raises(FileError, match="names no column d: there are a, b, c"):
        own.read(content, False, Format(column="d"))


REFUSED = {
    "1_000": (table(more="1_000,2\n"), "line 14, has '1_000' in the column 'x': allowed is a number"),
    "Arabic digits": (table(more="٣,2\n"), "line 14, has '٣' in the column 'x'"),
    "full-width digits": (table(more="１２,2\n"), "line 14, has '１２' in the column 'x'"),
    "hexadecimal": (table(more="0x10,2\n"), "'0x10'"),
    "infinite": (table(more="inf,2\n"), "'inf'"),
    "groups of two": (table(more='"1,23,45",2\n'), "'1,23,45'"),
    "both marks": (table(more='"1,5",2\n'), "'1,5' in the column 'x'"),
    "percent in some rows": (
        table(more="12%,2\n"),
        "'12%' in the column 'x': allowed are numbers all with % or all without",
    ),
    "a row too long": (table(more="1,2,3\n"), "line 14, has 3 fields: line 1 has 2 names"),
    "a row too short": (table(more="1\n"), "line 14, has one field: line 1 has 2 names"),
    "an open quote": (table(more='"1,2\n'), "line 14, is not CSV: unexpected end of data"),
    "one column": (table([[f"{a:g}"] for a, _ in X], "x"), "line 1, has 1 column: allowed are 2 to 99"),
    "no rows": ("x,y\n", "has 0 rows of data: allowed are 10 or more"),
    "a title twice": (table(titles="x,x"), "line 1, has the name 'x' twice"),
    "a title missing": (table(titles="x,"), "line 1, has no name for column 2"),
    "nothing": ("", "line 1, has 0 columns"),
    "a workbook": (
        b"PK\x03\x04\0\0",
        "is a zip archive, as workbooks of Excel are: allowed is text; save a table as CSV",
    ),
}


@for_each("kind", REFUSED)
def test_points_that_are_refused(kind):
    content, said = REFUSED[kind]
    with pytest.raises(FileError) as raised:
        points.read({"p.csv": content if isinstance(content, bytes) else content.encode()})
    assert said in str(raised.value)


def test_every_choice_can_be_changed():
    """In 1,234 the mark is ambiguous: the guess is told, and another choice reads other values."""
    content = {"p.csv": table(cells(lambda x: f"{abs(x) * 10:.0f},{k_of(x)}"), separator=";").encode("cp1252")}
    guessed = points.read(content)
    assert guessed.taken.format.decimal == "," and "decimal comma" in guessed.taken.sentence
    changed = points.read(content, Format(decimal="."))
    assert "decimal point" in changed.taken.sentence
    np.testing.assert_allclose(changed.x, 1000 * guessed.x)
    assert {choice.field for choice in changed.taken.choices} == {
        "encoding",
        "separator",
        "title_row",
        "decimal",
        "missing",
        "column",
    }
    for choice in changed.taken.choices:
        assert getattr(changed.taken.format, choice.field) in choice.options.values(), "a menu shows what was taken"
    with pytest.raises(FileError, match="1 column"):
        points.read(content, Format(separator="\t"))
    with pytest.raises(SpecError, match="encoding = 'x': allowed is one of utf-8, utf-16"):
        Format(encoding="x")
    greek = table(titles="ύψος,y").encode("cp1253")
    assert points.read({"p.csv": greek}, Format(encoding="windows-1253")).names == ("ύψος", "y")


def k_of(x):
    """Three digits that differ."""
    return f"{int(abs(x) * 37 + 101) % 900 + 100}"


# ---------------------------------------------------------------- edges

PATH = [[0, 1], [1, 2], [2, 3]]
EDGES = {
    "id_1,id_2": ("id_1,id_2\n0,1\n1,2\n2,3\n", "title row: yes; encoding: UTF-8; source: column 1 (id_1); target: column 2 (id_2).", "0123"),
    "node_a,node_b of words": ("node_a,node_b\na,b\nb,c\nc,d\n", "title row: yes", "abcd"),
    "Source;Target;Weight": ("Source;Target;Weight\na;b;1\nb;c;0.5\nc;d;2\n", "separator: semicolon; title row: yes; encoding: UTF-8; source: column 1 (Source); target: column 2 (Target); column 3 (Weight) not used.", "abcd"),
    "from to": ("from to\na b\nb c\nc d\n", "separator: space; title row: yes", "abcd"),
    "FromNodeId in a comment": ("# Directed graph\n# Nodes: 4 Edges: 3\n# FromNodeId\tToNodeId\n0\t1\n1\t2\n2\t3\n", "separator: tab; title row: yes; encoding: UTF-8; source: column 1 (FromNodeId); target: column 2 (ToNodeId); 2 comment lines left out.", "0123"),
    "u v": ("u v\n0 1\n1 2\n2 3\n", "title row: yes", "0123"),
    "quoted": ('"source","target"\n"a","b"\n"b","c"\n"c","d"\n', "separator: comma; title row: yes", "abcd"),
    "columns in another order": ("weight\ttarget\tsource\n1\tb\ta\n1\tc\tb\n1\td\tc\n", "source: column 3 (source); target: column 2 (target); column 1 (weight) not used.", "abcd"),
    "no title row": ("a,b\nb,c\nc,d\n", "title row: no; encoding: UTF-8; source: column 1; target: column 2.", "abcd"),
    "weights without titles": ("0 1 0.5\n1 2 0.25\n2 3 1\n", "separator: space; title row: no; encoding: UTF-8; source: column 1; target: column 2; column 3 not used.", "0123"),
    "runs of spaces and tabs": ("0  1\n1\t2 \n2   3\n", "separator: space; title row: no", "0123"),
    "names of one stem": ("n1,n2\nn2,n3\nn3,n4\n", "title row: no", ("n1", "n2", "n3", "n4")),
    "names of one stem, each once": ("n1,n2\nn5,n6\n", "2 rows; separator: comma; title row: no", ("n1", "n2", "n5", "n6")),
    "ids with spaces": ("New York,Los Angeles\nLos Angeles,Rome\nRome,San José\n", "separator: comma; title row: no", ("New York", "Los Angeles", "Rome", "San José")),
    "ids with separators in quotes": ('"a; b",c\nc,"d; e"\n"d; e",f\n', "separator: comma", ("a; b", "c", "d; e", "f")),
    "hashtags": ("#a,#b\n#b,#c\n#c,#d\n", "2 columns and 3 rows; separator: comma; title row: no", ("#a", "#b", "#c", "#d")),
    "loops": ("a,b\nb,b\nb,c\nc,d\nd,d\n", "2 edges from a node to itself left out.", "abcd"),
    "an end missing": ("a,b\nb,\nb,c\n,c\nc,d\n", "5 rows; separator: comma; title row: no; encoding: UTF-8; source: column 1; target: column 2; 2 rows with a missing end left out.", "abcd"),
    "separators at the ends": ("a,b,\nb,c,\nc,d,\n", "2 columns and 3 rows", "abcd"),
    "numbers between": ("1,2\n2,3\n3,6\n", "2 numbers between that have no edge are nodes, too.", "123456"),
    "numbers that are names": ("source,target\n1001,1003\n1003,4710\n4710,2222\n", "2 columns and 3 rows", ("1001", "1003", "2222", "4710")),
    "edges of R": ('"","from","to"\n"1","a","b"\n"2","b","c"\n"3","c","d"\n', "source: column 2 (from); target: column 3 (to)", "abcd"),
    "edges of R without known titles": ('"","x","z"\n"1","a","b"\n"2","b","c"\n"3","c","d"\n', "source: column 2 (x); target: column 3 (z)", "abcd"),
    "a matrix": (",a,b,c,d\na,0,1,0,0\nb,1,0,1,0\nc,0,1,0,2.5\nd,0,0,1,0\n", "the matrix of a graph", "abcd"),
    "a matrix of one direction": (",a,b,c,d\na,1,1,0,0\nb,0,0,1,0\nc,0,0,0,1\nd,0,0,0,0\n", "1 edge from a node to itself left out", "abcd"),
    "sep=": ("sep=|\na|b\nb|c\nc|d\n", "2 columns and 3 rows; separator: vertical bar; title row: no", "abcd"),
    "UTF-16": ("\ufeffa\tb\nb\tc\nc\td\n".encode("utf-16-le"), "separator: tab; title row: no; encoding: UTF-16", "abcd"),
    "latin-1": ("é;ü\nü;ö\nö;ñandú\n".encode("latin-1"), "encoding: windows-1252", ("é", "ü", "ö", "ñandú")),
}  # fmt: skip


@for_each("kind", EDGES)
def test_edges(kind):
    content, said, names = EDGES[kind]
    graph = graph_of("g.csv", content if isinstance(content, bytes) else content.encode())
    assert graph.names == tuple(names)
    assert said in graph.taken.sentence, graph.taken.sentence
    if kind not in ("numbers between", "names of one stem, each once", "numbers that are names"):
        assert graph.edges.tolist() == PATH


@for_each(
    ("content", "says"),
    [
        (",a,b,c,d\na,0,1,0,0\nb,1,0,x,0\nc,0,1,0,1\nd,0,0,1,0\n", "line 3, has 'x': allowed are numbers"),
        (",a,a,c,d\na,0,1,0,0\na,1,0,1,0\nc,0,1,0,1\nd,0,0,1,0\n", "line 1, has a name twice"),
    ],
)
def test_a_matrix_that_is_none_is_refused(content, says):
    with pytest.raises(FileError, match=says):
        graph_of("g.csv", content.encode())


def test_the_ends_of_edges_can_be_chosen():
    content = b"year,person,friend\n1990,a,b\n1991,b,c\n1990,c,d\n1991,d,a\n"
    graph = graph_of("g.csv", content, form=Format(source="person", target="3"))
    assert graph.names == ("a", "b", "c", "d") and "column 1 (year) not used" in graph.taken.sentence
    with pytest.raises(FileError, match=r"has both ends of its edges in column 2 \(person\)"):
        graph_of("g.csv", content, form=Format(source="2", target="2"))
    titles = graph_of("g.csv", b"cats,dogs\na,b\nb,c\n", form=Format(title_row="no"))
    assert titles.names == ("cats", "dogs", "a", "b", "c")
    assert graph_of("g.csv", b"cats,dogs\na,b\nb,c\nc,d\n", form=Format(title_row="yes")).names == ("a", "b", "c", "d")


NODES = "".join(f"<node id='{each}'/>" for each in "abcd")
LINKS = "".join(f"<edge source='{a}' target='{b}'/>" for a, b in ("ab", "bc", "cd", "dd"))


@for_each("body", [NODES + LINKS, LINKS + NODES, NODES[: 2 * 14] + LINKS + NODES[2 * 14 :]])
def test_graphml_in_any_order(body):
    graph = graph_of("g.graphml", f"<graphml><graph>{body}</graph></graphml>".encode())
    assert sorted(graph.names) == list("abcd") and len(graph.edges) == 3
    assert (
        graph.taken.sentence
        == "Read as GraphML of 4 nodes and 3 edges; encoding: UTF-8; known groups: none; 1 edge from a node to itself left out."
    )


LAUGHS = (
    "<!DOCTYPE l [<!ENTITY a 'ha'>"
    + "".join(f"<!ENTITY {b} '{f'&{a};' * 10}'>" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    + "]>"
)


@for_each(
    "head",
    [LAUGHS, "<!DOCTYPE g SYSTEM 'file:///etc/hostname'>", "<!DOCTYPE g [<!ENTITY x SYSTEM 'file:///etc/hostname'>]>"],
)
def test_entities_are_refused(head):
    with pytest.raises(FileError, match="line 1, has '<!DOCTYPE': a document type and entities are not allowed"):
        graph_of("g.graphml", f"{head}<graphml><graph>{NODES}<node id='&i;'/></graph></graphml>".encode())


@pytest.mark.slow
def test_what_gzip_unpacks_is_bounded(monkeypatch):
    monkeypatch.setattr(visits, "MAX_BYTES", 1_000_000)
    bomb = gzip.compress(b"\n" * 50_000_000)
    assert len(bomb) < 100_000
    tracemalloc.start()
    try:
        with pytest.raises(FileError, match=r"x\.data\.gz has more than 1,000,000 bytes"):
            visits.read({"x.data.gz": bomb})
        assert tracemalloc.get_traced_memory()[1] < 10_000_000, "no more is unpacked than is allowed"
    finally:
        tracemalloc.stop()


# ---------------------------------------------------------------- texts

TEXTS = ["red green, red", "green; blue"]
BAGS = [["red", "red", "green"], ["green", "blue"]]


def documents(corpus):
    return [
        sorted(corpus.vocabulary[w] for w in corpus.words[a:b])
        for a, b in zip(corpus.offsets[:-1], corpus.offsets[1:], strict=True)
    ]


def quoted(*rows, separator=","):
    return "\n".join(separator.join(f'"{cell}"' for cell in row) for row in rows) + "\n"


CORPORA = {
    "semicolons": ("x.csv", "id;text\n1;red green, red\n2;green, blue\n", "separator: semicolon; title row: yes; encoding: UTF-8; text: column 2 (text)."),
    "tabs": ("x.csv", "id\ttext\n1\tred green, red\n2\tgreen; blue\n", "separator: tab; title row: yes; encoding: UTF-8; text: column 2 (text)."),
    ".tsv": ("x.tsv", "text\tid\nred green, red\t1\ngreen; blue\t2\n", "separator: tab; title row: yes; encoding: UTF-8; text: column 1 (text)."),
    "vertical bars": ("x.csv", "id|abstract\n1|red green, red\n2|green; blue\n", "separator: vertical bar; title row: yes; encoding: UTF-8; text: column 2 (abstract)."),
    "separators in quotes": ("x.csv", quoted(("id", "text"), ("1", TEXTS[0]), ("2", TEXTS[1])), "2 columns and 2 rows; separator: comma; title row: yes"),
    "newlines in quotes": ("x.csv", quoted(("id", "text"), ("1", "red\ngreen\n\nred"), ("2", "green\nblue")), "2 columns and 2 rows; separator: comma"),
    "another title": ("x.csv", "id,letter\n1,red green red\n2,green blue\n", "text: column 2 (letter)."),
    "no title row": ("x.csv", "1;red green, red\n2;green blue\n", "separator: semicolon; title row: no; encoding: UTF-8; text: column 2."),
    "one column": ("x.csv", "words\nred green, red\ngreen blue\n", "1 column and 2 rows; separator: none; title row: yes; encoding: UTF-8; text: column 1 (words)."),
    "missing texts": ("x.csv", "id,text\n1,red green red\n2,NA\n3,\n4,green blue\n5,...\n", "5 rows; separator: comma; title row: yes; encoding: UTF-8; text: column 2 (text); 2 rows with a missing text left out; 1 row without words left out."),
    "a hashtag": ("x.csv", "id,text\n1,#red green red\n#2,green blue\n", "2 columns and 2 rows"),
    "lines": ("x.txt", "red green red\n\ngreen blue\n", "Read as text with a document on each line: 2 documents; encoding: UTF-8."),
    "carriage returns": ("x.txt", "red green red\rgreen blue\r", "a document on each line: 2 documents"),
    "UTF-16": ("x.txt", "\ufeffred green red\ngreen blue\n".encode("utf-16-le"), "encoding: UTF-16."),
    "sep=": ("x.csv", "sep=;\nid;text\n1;red green, red\n2;green, blue\n", "separator: semicolon; title row: yes"),
}  # fmt: skip


@for_each("kind", CORPORA)
def test_texts(kind):
    name, content, said = CORPORA[kind]
    corpus = read_uploads({name: content if isinstance(content, bytes) else content.encode()})
    assert documents(corpus) == [sorted(bag) for bag in BAGS]
    assert said in corpus.taken.sentence, corpus.taken.sentence


def test_the_column_of_texts_can_be_chosen():
    content = {"x.csv": b"text,summary\none two three,red red green\nfour five six,green blue\n"}
    assert documents(read_uploads(content, form=Format(column="summary"))) == [sorted(bag) for bag in BAGS]
    whole = read_uploads(content, form=Format(column="2", title_row="no"))
    assert whole.n_documents == 3 and "title row: no" in whole.taken.sentence


WORDS = {
    "Hindi": ("हिन्दी भाषा में लिखा", ["हिन्दी", "भाषा", "में", "लिखा"]),
    "decomposed": ("e\u0301cole nai\u0308ve", ["école", "naïve"]),
    "no composed form": ("x\u030cq\u0323z", ["x\u030cq\u0323z"]),
    "a joiner in Persian": ("می\u200cخواهم بروم", ["می\u200cخواهم", "بروم"]),
    "a joiner in Hindi": ("क्\u200dष\u200d क", ["क्\u200dष"]),
    "Hebrew with points": ("שָׁלוֹם עוֹלָם", ["שָׁלוֹם", "עוֹלָם"]),
    "Arabic with vowels and a tatweel": ("كَتَبَ كـــتاب", ["كَتَبَ", "كتاب"]),
    "Arabic presentation forms": ("\ufedb\ufe98\ufe8e\ufe8f", ["كتاب"]),
    "Thai": ("น้ำตก ภูเขา", ["น้ำตก", "ภูเขา"]),
    "marks of direction": ("\u200fשלום\u200f \u2067abc\u2069", ["שלום", "abc"]),
    "soft hyphens": ("exam\u00adple", ["example"]),
    "apostrophes": ("l'école l’école don't don’t", ["école", "école", "don", "don"]),
    "Turkish": ("İSTANBUL ılık", ["istanbul", "ılık"]),
    "sharp s": ("Straße GROẞ", ["straße", "groß"]),
    "Greek": ("ΣΟΦΟΣ", ["σοφος"]),
    "full width": ("ＦＵＬＬ ｗｉｄｔｈ", ["full", "width"]),
    "half-width kana": ("ｶﾞｷﾞ", ["ガギ"]),
    "ligatures": ("ﬁne oﬀer", ["fine", "offer"]),
    "beyond the first plane": ("𐐀𐐁 𑀅𑀓\U00011038", ["𐐨𐐩", "𑀅𑀓\U00011038"]),
    "digits and signs": ("a1b ab2cd 12 x_y ab_cd", ["ab", "cd", "ab", "cd"]),
    "a long word": ("a" * 150, ["a" * 100, "a" * 50]),
}


@for_each("kind", WORDS)
def test_words(kind):
    text, words = WORDS[kind]
    assert words_of(text) == words
    corpus = read_uploads({"x.txt": f"{text}\nother {text}\n".encode()})
    assert set(corpus.vocabulary) == {*words, "other"}


def test_what_is_done_without_spaces_is_said():
    thai = read_uploads({"x.txt": "ภาษาไทยไม่มีช่องว่าง น้ำ\nน้ำ ภาษา\n".encode()})
    assert "a run of letters is one word" in thai.taken.sentence
    assert (
        "run of letters" not in read_uploads({"x.txt": "red น้ำ\ngreen blue and more words\n".encode()}).taken.sentence
    )


# ---------------------------------------------------------------- numbers


@for_each(
    ("text", "point", "comma"),
    [
        ("1,234", 1234, 1.234), ("1.234", 1.234, 1234), ("1.234,5", None, 1234.5), ("1,234.5", 1234.5, None), ("−3", -3, -3), (" 5. ", 5, None),
        (".5", 0.5, None), (",5", None, 0.5), ("1e3", 1000, 1000), ("1E−2", 0.01, 0.01), ("+7", 7, 7), ("12 %", 0.12, 0.12), ("1’234’567", 1234567, 1234567),
        ("1_000", None, None), ("٣", None, None), ("12,34,567", None, None), ("1 23", None, None), ("1,234 567", None, None), ("", None, None), (".", None, None),
        ("0x1", None, None), ("1-2", None, None), ("--1", None, None), ("1,2345", None, 1.2345),
    ],
)  # fmt: skip
def test_a_number_in_a_cell(text, point, comma):
    assert to_number(text, ".") == point and to_number(text, ",") == comma


def test_missing_values_among_numbers_and_among_words():
    assert all(map(is_missing, ("", "  ", "NA", "N/A", "nan", "NULL", "-", ".", "?")))
    assert not is_missing("-", among_numbers=False) and is_missing("na", among_numbers=False)
    assert not any(map(is_missing, ("0", "no", "nab", "--")))


@for_each("text", ["1_0", "٣", "１", "1_0.5", "1__0", "0b1"])
def test_a_field_takes_the_digits_0_to_9(text):
    parameters = dict(declared(TableLinear))
    with pytest.raises(SpecError, match=r"x = .*: allowed is a number from"):
        check(parameters["prior_sd"], "x", text)
    assert check(parameters["prior_sd"], "x", " 1.5e0 ") == 1.5


@pytest.mark.parametrize("n", [1000, 4000])
def test_the_work_grows_with_the_size(n, monkeypatch):
    """Cells that are looked at: each of the numbers once or twice, whatever their number."""
    calls = []
    real = to_number
    monkeypatch.setattr("sgmcmc_lab.samplers.file_format.to_number", lambda *args: calls.append(1) or real(*args))
    rows = [[f"{k}", f"{k * k % 7}.5", f"{k % 5}"] for k in range(n)]
    points.read({"p.csv": table(rows, "a,b,c").encode()})
    assert 3 * n < len(calls) < 9 * n + 3000

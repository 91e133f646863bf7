"""Graphs: the built-in ones, one with known communities, and readers for uploaded files.

An uploaded file is untrusted: its size, its encoding and its shape are checked before anything is built
of it, and what is wrong is named with its line.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import PurePath
from typing import Any
from xml.parsers import expat

import numpy as np
from numpy.random import SFC64, Generator
from numpy.typing import NDArray

from sgmcmc_lab.samplers.file_format import GUESSED, YES, Format, Sheet, Taken, counted, taken_text, to_number
from sgmcmc_lab.samplers.files import FileError, Tell, count_lines, decode, quoted, reading, short_name, untold

MAX_BYTES = 5_000_000
MAX_NODES = 5_000
MAX_EDGES = 100_000
MAX_NAME = 100
"""Characters of a node's name."""
MAX_DEPTH = 20
"""How deep the elements of a GraphML file may lie in each other."""
MAX_ELEMENTS = 300_000
"""The most elements of a GraphML file of any kind: each is examined."""
MAX_TAG, MAX_NAMESPACE = 20_000, 500
"""Characters. The parser writes its whole namespace before every element, and before each attribute with a prefix."""
PIECE = 65_536
"""Characters that the parser is given at once."""
MIN_NODES = 4
TOLD_EVERY = 1000
"""After so many rows or elements the reader says how far it is, and may be told to end."""
GRAPHML = ".graphml"
SUFFIXES = (".csv", ".tsv", ".txt", ".edges", GRAPHML)


@dataclass(frozen=True, eq=False)
class Graph:
    """An undirected graph without loops: y_ij = y_ji is 0 or 1."""

    names: tuple[str, ...]
    edges: NDArray[np.int64]
    """(edges, 2), each edge once, the smaller node first, sorted."""
    groups: NDArray[np.int64] | None = None
    """The known group of each node (nodes,), where one is known."""
    group_source: str = ""
    """The description of the known groups."""
    taken: Taken | None = None
    """The format of the file, if it is read from one."""

    @property
    def n_nodes(self) -> int:
        """N."""
        return len(self.names)

    @property
    def n_pairs(self) -> int:
        """N(N−1)/2."""
        return self.n_nodes * (self.n_nodes - 1) // 2

    def adjacency(self) -> NDArray[np.bool_]:
        """The symmetric matrix (nodes, nodes)."""
        y = np.zeros((self.n_nodes, self.n_nodes), dtype=bool)
        y[self.edges[:, 0], self.edges[:, 1]] = y[self.edges[:, 1], self.edges[:, 0]] = True
        return y


def make_graph(
    names: tuple[str, ...],
    pairs: Any,
    groups: NDArray[np.int64] | None = None,
    group_source: str = "",
    taken: Taken | None = None,
) -> Graph:
    """A graph of pairs of node numbers in any order, where a pair may come twice."""
    edges = np.sort(np.asarray(pairs, dtype=np.int64).reshape(-1, 2), axis=1)
    return Graph(names, np.unique(edges, axis=0), groups, group_source, taken)


# Built-in graphs


def _numbered(labels: list[Any]) -> NDArray[np.int64]:
    """The labels as numbers, in the order in which they first come."""
    order = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    return np.array([order[label] for label in labels], dtype=np.int64)


def _of_networkx(graph: Any, labels: list[Any] | None = None, group_source: str = "") -> Graph:
    index = {node: number for number, node in enumerate(graph)}
    pairs = [(index[a], index[b]) for a, b in graph.edges()]
    groups = None if labels is None else _numbered(labels)
    return make_graph(tuple(str(node) for node in graph), pairs, groups, group_source)


@cache
def karate() -> Graph:
    """Zachary's karate club, 34 members; the groups are the two clubs that it split into."""
    import networkx as nx

    graph = nx.karate_club_graph()
    return _of_networkx(graph, [club for _, club in graph.nodes(data="club")], "the clubs after the split")


@cache
def les_miserables() -> Graph:
    """Characters of Les Misérables who meet in a chapter, 77.

    NetworkX has no groups for them. Those here are the eleven communities of Newman & Girvan 2004: the partition of
    largest modularity (0.54) on the path of edge removals by betweenness, found anew from the graph.
    """
    import networkx as nx

    graph = nx.les_miserables_graph()
    best: tuple[float, Any] = (-1.0, ())
    for partition in nx.community.girvan_newman(graph):
        if len(partition) > 15:
            break
        best = max(best, (nx.community.modularity(graph, partition, weight=None), partition), key=lambda pair: pair[0])
    group_of = {node: number for number, group in enumerate(best[1]) for node in group}
    return _of_networkx(graph, [group_of[node] for node in graph], "Newman & Girvan 2004, by edge betweenness")


@cache
def davis() -> Graph:
    """Southern women and the social events they went to, 18 + 14; the groups are these two kinds."""
    import networkx as nx

    graph = nx.davis_southern_women_graph()
    return _of_networkx(graph, [kind for _, kind in graph.nodes(data="bipartite")], "women and events")


@cache
def florentine() -> Graph:
    """Marriages among 15 families of Florence about 1430."""
    import networkx as nx

    return _of_networkx(nx.florentine_families_graph())


def block_graph(
    n_nodes: int = 60, n_groups: int = 4, inside: float = 0.5, between: float = 0.02, seed: int = 1
) -> Graph:
    """A block graph with known communities of equal size; pairs are edges independently."""
    rng = Generator(SFC64(seed))
    groups = np.arange(n_nodes) * n_groups // n_nodes
    i, j = np.triu_indices(n_nodes, 1)
    edge = rng.random(len(i)) < np.where(groups[i] == groups[j], inside, between)
    names = tuple(f"{chr(ord('A') + group)}{node}" for node, group in enumerate(groups))
    return make_graph(names, np.column_stack([i[edge], j[edge]]), groups, "the blocks it was drawn from")


@cache
def blocks() -> Graph:
    """A graph drawn from four blocks of fifteen nodes."""
    return block_graph()


BUILT_IN: Mapping[str, Callable[[], Graph]] = {
    "karate": karate,
    "les_miserables": les_miserables,
    "davis": davis,
    "florentine": florentine,
    "blocks": blocks,
}


# Uploaded files


def read_upload(name: str, content: bytes, tell: Tell = untold, form: Format = GUESSED) -> Graph:
    """The graph in an edge list, a row for each edge, or in GraphML (``.graphml``).

    An edge list has a title row or none, and two columns with the ends of the edges: those whose titles say so, or
    the first two. Rows that lack an end and edges from a node to itself are left out. Where all names are whole
    numbers, the numbers between that have no edge are nodes too. ``tell`` is called every :data:`TOLD_EVERY` rows or
    elements. Raises :class:`FileError`, which names the line of what is wrong.
    """
    file = short_name(name)
    with reading(file):
        return _read(file, content, tell, form)


def _read(file: str, content: bytes, tell: Tell, form: Format) -> Graph:
    suffix = PurePath(file).suffix.lower()
    if suffix not in SUFFIXES:
        allowed = f"allowed are files whose names end with {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
        raise FileError(file, "is of another kind", allowed)
    if len(content) > MAX_BYTES:
        raise FileError(file, f"has {len(content):,} bytes", f"allowed are at most {MAX_BYTES:,}")
    if not content.strip():
        raise FileError(file, "is empty", "allowed is an edge on each line, its two ends with a comma between them")
    graph = (_read_graphml if suffix == GRAPHML else _read_edges)(file, content, tell, form)
    if graph.n_nodes < MIN_NODES:
        raise FileError(file, f"has {counted(graph.n_nodes, 'node')}", f"a graph needs {MIN_NODES} nodes at least")
    if len(graph.edges) == 0:
        raise FileError(file, "has no edge", "a graph needs an edge at least")
    if len(graph.edges) == graph.n_pairs:
        raise FileError(
            file, f"has an edge between all {graph.n_nodes} nodes", "a graph needs a pair without one at least"
        )
    return graph


class _Shape:
    """Counts nodes and edges while a file is read, and stops at the first line with too many or with a bad one."""

    def __init__(self, file: str, n_lines: int, tell: Tell):
        self.file = file
        self._n_lines, self._tell = n_lines, tell
        self.lines: dict[str, int] = {}
        """The place at which each node is first named."""
        self.edges: list[tuple[str, str]] = []
        self.n_loops = 0
        """Edges from a node to itself, which are left out."""

    def tell(self, number: int, line: int) -> None:
        """Say how far the reader is, at every so many rows or elements."""
        if number % TOLD_EVERY == 0:
            self._tell(min(line / self._n_lines, 1.0))

    def node(self, line: int, name: str) -> None:
        if not name or len(name) > MAX_NAME or not name.isprintable():
            raise self.error(line, name, f"allowed are names of 1 to {MAX_NAME} printable characters")
        if name not in self.lines and len(self.lines) == MAX_NODES:
            raise self.error(line, name, f"allowed are at most {MAX_NODES:,} nodes, and this is one more")
        self.lines.setdefault(name, line)

    def edge(self, line: int, a: str, b: str) -> None:
        self.node(line, a)
        self.node(line, b)
        if a == b:
            self.n_loops += 1
            return
        if len(self.edges) == MAX_EDGES:
            raise self.error(line, f"{a},{b}", f"allowed are at most {MAX_EDGES:,} edges, and this is one more")
        self.edges.append((a, b))

    def loops(self) -> str:
        """How many edges from a node to itself were left out, in words."""
        return f"{counted(self.n_loops, 'edge')} from a node to itself left out" if self.n_loops else ""

    def error(self, line: int, value: str, allowed: str) -> FileError:
        return self.wrong(line, f"has {quoted(value)}", allowed)

    def wrong(self, line: int, found: str, allowed: str) -> FileError:
        return FileError(f"{self.file}, line {line}", found, allowed)


SOURCES = ("source", "src", "from", "fromnode", "fromnodeid", "start", "head", "u", "i", "id1", "node1", "nodea", "ego", "sender")  # fmt: skip
TARGETS = ("target", "dst", "dest", "to", "tonode", "tonodeid", "end", "tail", "v", "j", "id2", "node2", "nodeb", "alter", "receiver")  # fmt: skip
"""The titles of the two ends of an edge, in small letters and without other characters."""
_STEM = re.compile(r"(\w*?[a-z])[ _.-]?(?:1|2|a|b|i|j|x|y)", re.IGNORECASE)


def _plain(title: str) -> str:
    return "".join(filter(str.isalnum, title.lower()))


def titles_of_edges(first: list[str], rest: list[list[str]]) -> bool:
    """A title row calls two columns the ends of edges, has words above numbers, or two names of a stem of its own."""
    plain = [_plain(title) for title in first]
    if any(each in SOURCES for each in plain) and any(each in TARGETS for each in plain):
        return True
    numeric = [k for k in range(len(first)) if rest and all(_is_number(row[k]) for row in rest)]
    if numeric and not any(_is_number(first[k]) for k in numeric):
        return True
    stems = {match[1].lower() if match else "" for match in map(_STEM.fullmatch, map(str.strip, first[:2]))}
    stem = stems.pop()
    return (
        bool(stem) and not stems and not any(cell.strip().lower().startswith(stem) for row in rest for cell in row[:2])
    )


def _is_number(cell: str) -> bool:
    return to_number(cell, ".") is not None


def _is_id(cell: str) -> bool:
    return cell.strip().isascii() and cell.strip().isdigit()


def _read_edges(file: str, content: bytes, tell: Tell, form: Format) -> Graph:
    sheet = Sheet(file, content, form, titles=titles_of_edges, row_names=False)
    if sheet.n_columns < 2:
        raise FileError(
            f"{file}, line {sheet.title_line}",
            "has one column",
            "allowed are two columns or more, two of which are the ends of the edges",
        )
    # As R and pandas write them, the first column has no title and holds the names of the rows.
    unnamed = sheet.format.title_row == YES and sheet.n_columns > 2 and not sheet.titles[0]
    rows: Iterable[tuple[int, list[str]]] = sheet.rows()
    if unnamed:
        rows = listed = list(rows)
        if [row[0].strip() for _, row in listed] == sheet.titles[1:]:
            return _of_matrix(sheet, listed, tell)
    plain = [_plain(title) for title in sheet.titles]
    named = [next((k for k, each in enumerate(plain) if each in ends), None) for ends in (SOURCES, TARGETS)]
    first, second = (unnamed, unnamed + 1) if None in named else named
    source, target = sheet.column("source", first), sheet.column("target", second)
    assert source is not None and target is not None
    if source == target:
        raise FileError(
            file, f"has both ends of its edges in {sheet.called(source)}", "allowed are two different columns"
        )
    shape = _Shape(file, sheet.n_lines, tell)
    n_rows = lacking = 0
    for n_rows, (line, row) in enumerate(rows, 1):
        shape.tell(n_rows - 1, line)
        if sheet.lacks(row, (source, target)):
            lacking += 1
        else:
            shape.edge(line, row[source].strip(), row[target].strip())
    names = list(shape.lines)
    if names and all(_is_id(name) and name == str(int(name)) for name in names):
        numbers = sorted(int(name) for name in names)
        first = min(numbers[0], 1)
        # Nodes that are numbered have few gaps; numbers with many are names.
        if numbers[-1] - first < min(MAX_NODES, 2 * len(numbers)):
            numbers = list(range(first, numbers[-1] + 1))
        names = [str(number) for number in numbers]
    index = {name: number for number, name in enumerate(names)}
    others = [sheet.called(k) for k in range(sheet.n_columns) if k not in (source, target)]
    between = len(names) - len(shape.lines)
    taken = sheet.taken(
        n_rows,
        [("source", "source", source), ("target", "target", target)],
        f"{', '.join(others[:5])}{', …' * (len(others) > 5)} not used" if others else "",
        f"{counted(lacking, 'row')} with a missing end left out" if lacking else "",
        shape.loops(),
        f"{between:,} numbers between that have no edge are nodes, too" if between else "",
    )
    return make_graph(tuple(names), [(index[a], index[b]) for a, b in shape.edges], taken=taken)


def _of_matrix(sheet: Sheet, rows: list[tuple[int, list[str]]], tell: Tell) -> Graph:
    """The graph of an adjacency matrix: an edge stands where the number of one of its two cells is not 0."""
    names = sheet.titles[1:]
    shape, seen = _Shape(sheet.name, sheet.n_lines, tell), set[tuple[int, int]]()
    for k, (line, row) in enumerate(rows):
        shape.tell(k, line)
        shape.node(sheet.title_line, names[k])
        for j, cell in enumerate(row[1:]):
            number = to_number(cell, ".")
            if number is None:
                raise shape.error(line, cell, "allowed are numbers, for the file is the matrix of a graph")
            if number and (j, k) not in seen:
                seen.add((k, j))
                shape.edge(line, names[k], names[j])
    if len(shape.lines) < len(names):
        raise shape.wrong(sheet.title_line, "has a name twice", "allowed are different names of the nodes")
    index = {name: number for number, name in enumerate(names)}
    taken = sheet.taken(len(rows), (), "the matrix of a graph", shape.loops())
    return make_graph(tuple(names), [(index[a], index[b]) for a, b in shape.edges], taken=taken)


LABELS = ("group", "community", "club")
"""The attributes of nodes that may tell their groups, the first one that every node has."""
_NEEDED = {"node": ("id",), "edge": ("source", "target"), "key": ("id",), "data": ("key",)}


class _GraphML:
    """Takes the elements of a GraphML file as they come. A document type, and with it any entity, is refused."""

    def __init__(self, shape: _Shape):
        self.shape = shape
        self.labels: dict[str, dict[str, str]] = {}
        """The values of the nodes' attributes, by attribute and node."""
        self.defaults: dict[str, str] = {}
        self._keys: dict[str, str] = {}
        self._open: list[tuple[str, str]] = []
        """The elements around the place, each with the id of its node or of its key."""
        self._namespace = ""
        self._text: list[str] | None = None
        self._graphs = self._elements = 0
        self._edges: list[tuple[int, str, str]] = []
        """The line and the ends of each edge: a node may come after it."""
        # With a separator expat knows namespaces: a prefix that is not declared is an error, and what is of another
        # namespace, as editors of graphs put their colours, is passed over.
        self._parser = expat.ParserCreate("utf-8", " ")
        self._parser.StartElementHandler, self._parser.EndElementHandler = self._start, self._end
        self._parser.CharacterDataHandler = self._data
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._parser.EntityDeclHandler = self._refuse
        self._parser.StartNamespaceDeclHandler = self._declare

    def read(self, text: str) -> None:
        """Read through the XML. Its declared encoding does not count: it has been decoded."""
        parts = text.split("<")
        longest = max(parts, key=len)
        if len(longest) > MAX_TAG:
            line = 1 + text[: text.index(longest)].count("\n")
            raise self.shape.error(
                line, longest[:40], f"allowed are at most {MAX_TAG:,} characters from one < to the next"
            )
        try:
            # In pieces, for expat goes on to the end of what it was given, whatever a handler raises.
            for start in range(0, len(text), PIECE):
                self._parser.Parse(text[start : start + PIECE], False)
            self._parser.Parse("", True)
        except expat.ExpatError as error:
            raise self.shape.wrong(error.lineno, "is not XML", expat.errors.messages[error.code]) from None
        for line, *ends in self._edges:
            for end in ends:
                if end not in self.shape.lines:
                    raise self.shape.error(line, end, "there is no node of this name")
            self.shape.edge(line, *ends)

    def groups(self) -> tuple[NDArray[np.int64] | None, str]:
        """The known group of each node, and where it is from; None where nothing tells it."""
        for attribute in LABELS:
            known, default = self.labels.get(attribute, {}), self.defaults.get(attribute)
            labels = [known.get(node, default) for node in self.shape.lines]
            if None not in labels and len(set(labels)) > 1:
                return _numbered(labels), f"the file's {attribute}"
        return None, ""

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        shape, line = self.shape, self._parser.CurrentLineNumber
        namespace, _, tag = name.rpartition(" ")
        if not self._open:
            if tag != "graphml":
                raise shape.error(line, tag, "the outermost element of GraphML is graphml")
            self._namespace = namespace
        if len(self._open) == MAX_DEPTH:
            raise shape.error(line, tag, f"elements may lie {MAX_DEPTH} deep in each other")
        shape.tell(self._elements, line)
        self._elements += 1
        if self._elements > MAX_ELEMENTS:
            raise shape.error(line, tag, f"allowed are at most {MAX_ELEMENTS:,} elements, and this is one more")
        if namespace != self._namespace:
            self._open.append(("", ""))
            return
        for needed in _NEEDED.get(tag, ()):
            if needed not in attributes:
                raise shape.error(line, tag, f"this element needs the attribute {needed}")
        self._open.append((tag, attributes.get("key" if tag == "data" else "id", "")))
        if tag == "graph":
            self._graphs += 1
            if self._graphs > 1:
                raise shape.error(line, tag, "allowed is one graph, and this is another")
        elif tag in ("hyperedge", "port"):
            raise shape.error(line, tag, "allowed are edges between two nodes")
        elif tag == "key" and attributes.get("for", "all") in ("node", "all"):
            self._keys[attributes["id"]] = attributes.get("attr.name", "")
        elif tag == "node":
            if attributes["id"] in shape.lines:
                raise shape.error(line, attributes["id"], "there is a node of this name above")
            shape.node(line, attributes["id"])
        elif tag == "edge":
            if len(self._edges) > MAX_EDGES:
                raise shape.error(line, tag, f"allowed are at most {MAX_EDGES:,} edges, and this is one more")
            self._edges.append((line, attributes["source"], attributes["target"]))
        elif tag in ("data", "default"):
            self._text = []

    def _data(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def _end(self, _name: str) -> None:
        tag, key = self._open.pop()
        if tag not in ("data", "default") or self._text is None:
            return
        text, self._text = "".join(self._text).strip(), None
        around, owner = self._open[-1]
        if around == "node" and tag == "data" and self._keys.get(key) in LABELS:
            self.labels.setdefault(self._keys[key], {})[owner] = text
        elif around == "key" and tag == "default" and self._keys.get(owner) in LABELS:
            self.defaults[self._keys[owner]] = text

    def _declare(self, _prefix: str | None, namespace: str | None) -> None:
        if namespace and len(namespace) > MAX_NAMESPACE:
            line = self._parser.CurrentLineNumber
            raise self.shape.error(line, namespace, f"a namespace has at most {MAX_NAMESPACE} characters")

    def _refuse(self, *_: Any) -> None:
        line = self._parser.CurrentLineNumber
        raise self.shape.error(line, "<!DOCTYPE", "a document type and entities are not allowed")


def _read_graphml(name: str, content: bytes, tell: Tell, form: Format) -> Graph:
    text, encoding = decode(name, content, form.encoding)
    shape = _Shape(name, count_lines(name, text), tell)
    file = _GraphML(shape)
    file.read(text)
    index = {node: number for number, node in enumerate(shape.lines)}
    groups, group_source = file.groups()
    what = f"GraphML of {counted(len(index), 'node')} and {counted(len(shape.edges), 'edge')}"
    of_groups = f"known groups: {group_source}" if group_source else "known groups: none"
    taken = taken_text(what, encoding, of_groups, shape.loops())
    return make_graph(tuple(index), [(index[a], index[b]) for a, b in shape.edges], groups, group_source, taken)

"""Graphs: what is built in, and what is read from files of unknown make."""

import itertools
import re

import networkx as nx
import numpy as np
import pytest

from sgmcmc_lab.samplers.files import EndedError
from sgmcmc_lab.samplers.models.network import graph as graphs
from sgmcmc_lab.samplers.models.network.graph import BUILT_IN, block_graph, read_upload
from sgmcmc_lab.samplers.models.network.model import hold_out
from sgmcmc_lab.samplers.parameters import SpecError
from tests.helpers.cases import for_each

SIZES = {
    "karate": (34, 78, 2),
    "les_miserables": (77, 254, 11),
    "davis": (32, 89, 2),
    "florentine": (15, 20, None),
}


@for_each("key", BUILT_IN)
def test_built_in_graphs(key):
    graph = BUILT_IN[key]()
    y = graph.adjacency()
    assert y.shape == (graph.n_nodes, graph.n_nodes) and (y == y.T).all() and not y.diagonal().any()
    assert y.sum() == 2 * len(graph.edges) and (graph.edges[:, 0] < graph.edges[:, 1]).all()
    assert len(set(graph.names)) == graph.n_nodes
    if graph.groups is not None:
        assert graph.groups.shape == (graph.n_nodes,) and graph.group_source
    if key in SIZES:
        groups = None if graph.groups is None else graph.groups.max() + 1
        assert (graph.n_nodes, len(graph.edges), groups) == SIZES[key]


@pytest.mark.slow
def test_les_miserables_groups_are_the_published_partition():
    """Newman & Girvan 2004: eleven communities of modularity 0.54."""
    graph = BUILT_IN["les_miserables"]()
    whole = nx.from_numpy_array(graph.adjacency())
    parts = [set(np.flatnonzero(graph.groups == k)) for k in range(11)]
    assert nx.community.modularity(whole, parts) == pytest.approx(0.54, abs=0.005)
    group = dict(zip(graph.names, graph.groups, strict=True))
    assert group["Enjolras"] == group["Gavroche"] != group["Myriel"] == group["Napoleon"]


def test_block_graph_is_seeded_and_has_its_densities():
    graph = block_graph(120, 3, 0.4, 0.05, seed=5)
    assert (graph.edges == block_graph(120, 3, 0.4, 0.05, seed=5).edges).all()
    assert len(graph.edges) != len(block_graph(120, 3, 0.4, 0.05, seed=6).edges)
    same = graph.groups[:, None] == graph.groups
    np.fill_diagonal(same, False)
    y = graph.adjacency()
    # Standard errors .010 and .003 of independent pairs.
    assert y[same].mean() == pytest.approx(0.4, abs=0.04)
    assert y[graph.groups[:, None] != graph.groups].mean() == pytest.approx(0.05, abs=0.012)


# Edge lists


def csv(text):
    return read_upload("graph.csv", text.encode())


SQUARE = "a,b\nb,c\nc,d\nd,a\n"


def test_edge_list():
    graph = csv("source,target\nann, bob\nbob,ann\n\ncid,dan\nbob,cid\n")
    assert graph.names == ("ann", "bob", "cid", "dan")
    assert graph.edges.tolist() == [[0, 1], [1, 2], [2, 3]]
    assert csv("\ufeff" + SQUARE).names == ("a", "b", "c", "d")
    assert csv(SQUARE.replace("\n", "\r\n")).n_nodes == csv(SQUARE.replace("\n", "\r")).n_nodes == 4
    quoted = csv('"Smith, Ann",b\nb,c\nc,d\n')
    assert quoted.names[0] == "Smith, Ann"


def test_numbers_without_an_edge_are_nodes():
    assert csv("0,1\n1,5\n3,0\n").names == tuple("012345")
    assert csv("1,2\n2,5\n4,1\n").names == tuple("12345")
    assert csv("70001,70002\n70002,90001\n70001,5\n").names == ("5", "70001", "70002", "90001")
    assert csv("01,2\n2,3\n3,4\n").names == ("01", "2", "3", "4")


BAD = [
    ("graph.csv", SQUARE + "a,b,c\n", "graph.csv, line 5", "has 3 fields: line 1 has 2 fields"),
    ("graph.csv", SQUARE + "lonely\n", "graph.csv, line 5", "has one field: line 1 has 2 fields"),
    ("graph.csv", "a,a\nb,b\nc,c\nd,d\n", "graph.csv", "has no edge"),
    ("graph.csv", SQUARE + "b," + "x" * 101, "graph.csv, line 5", "names of 1 to 100"),
    ("graph.csv", SQUARE + "b,x\x07y\n", "graph.csv, line 5", "printable"),
    ("graph.csv", SQUARE + "b,x\x00y\n", "graph.csv, line 5", "zero byte"),
    ("graph.csv", SQUARE + 'b,"x\n', "graph.csv, line 5", "line 5, is not CSV: "),
    ("graph.csv", SQUARE + 'b,"x\ny"\n', "graph.csv, line 6", "printable"),
    ("graph.csv", SQUARE.encode() + "é,ö\nñ,".encode() + b"caf\xe9\n", "graph.csv, line 6", "text in UTF-8"),
    ("graph.csv", "a,b\n", "graph.csv", "needs 4 nodes at least"),
    ("graph.csv", "a,b\na,c\na,d\nb,c\nb,d\nc,d\n", "graph.csv", "a pair without one"),
    ("graph.csv", "source,target\n", "graph.csv", "needs 4 nodes at least"),
    ("graph.csv", "", "graph.csv", "graph.csv is empty"),
    ("graph.xlsx", SQUARE, "graph.xlsx", "names end with .csv, .tsv, .txt, .edges or .graphml"),
    ("graph.csv", b"a" * (graphs.MAX_BYTES + 1), "graph.csv", "at most 5,000,000"),
    ("graph.csv", "\n".join(f"n{i},m{i}" for i in range(2501)), "graph.csv, line 2501", "at most 5,000 nodes"),
    ("../../etc/graph.csv", "x\n", "graph.csv, line 1", "has one column: allowed are two columns or more"),
]


@for_each(("name", "content", "field", "message"), BAD)
def test_bad_edge_list_is_named_with_its_line(name, content, field, message):
    with pytest.raises(SpecError, match=message) as caught:
        read_upload(name, content if isinstance(content, bytes) else content.encode())
    assert caught.value.field == field


def test_too_many_edges(monkeypatch):
    monkeypatch.setattr(graphs, "MAX_EDGES", 3)
    with pytest.raises(SpecError, match="at most 3 edges") as caught:
        csv(SQUARE)
    assert caught.value.field == "graph.csv, line 4"


@pytest.mark.parametrize("kind", ["csv", "graphml"])
def test_the_reader_says_how_far_it_is_and_ends_when_told(kind):
    graph = nx.gnm_random_graph(200, 5 * graphs.TOLD_EVERY - 300, seed=1)
    lines = nx.generate_graphml(graph) if kind == "graphml" else (f"{a},{b}" for a, b in graph.edges)
    content = "\n".join(lines).encode()
    shares = []
    assert len(read_upload(f"x.{kind}", content, shares.append).edges) == graph.number_of_edges()
    assert len(shares) == 5, "once for so many rows or elements"
    assert shares == sorted(shares) and shares[0] >= 0 and 0.7 < shares[-1] < 1

    def end(share):
        raise EndedError

    with pytest.raises(EndedError):
        read_upload(f"x.{kind}", content, end)


# GraphML


def graphml(body, head="<?xml version='1.0' encoding='utf-8'?>"):
    text = f"{head}\n<graphml xmlns='http://graphml.graphdrawing.org/xmlns'>\n{body}\n</graphml>"
    return read_upload("graph.graphml", text.encode())


NODES = "<node id='a'/><node id='b'/><node id='c'/><node id='d'/>"


def test_graphml_as_networkx_writes_it():
    original = nx.karate_club_graph()
    graph = read_upload("karate.graphml", "\n".join(nx.generate_graphml(original)).encode())
    karate = BUILT_IN["karate"]()
    assert graph.names == karate.names and (graph.edges == karate.edges).all()
    assert (graph.groups == karate.groups).all() and graph.group_source == "the file's club"


def test_graphml_of_a_directed_graph_and_isolated_nodes():
    graph = graphml(
        f"<graph edgedefault='directed'>{NODES}<edge source='b' target='a'/><edge source='a' target='b'/></graph>"
    )
    assert graph.n_nodes == 4 and graph.edges.tolist() == [[0, 1]] and graph.groups is None


def edge(a, b):
    return f"<graph edgedefault='undirected'>{NODES}\n<edge source='{a}' target='{b}'/></graph>"


BAD_GRAPHML = [
    (edge("a", "z"), 4, "there is no node of this name"),
    ("<graph edgedefault='undirected'>\n<node id='a'/>\n<node id='a'/></graph>", 5, "a node of this name above"),
    ("<graph edgedefault='undirected'>\n<node/></graph>", 4, "needs the attribute id"),
    ("<graph edgedefault='undirected'>\n<node id='a'></graph>", 4, "line 4, is not XML: mismatched tag"),
    (f"<graph edgedefault='undirected'>{NODES}\n<hyperedge/></graph>", 4, "edges between two nodes"),
    ("<graph edgedefault='undirected'>\n<node id='a'><graph/></node></graph>", 4, "one graph, and this is another"),
    ("<desc>" * 30 + "</desc>" * 30, 3, "20 deep"),
    (
        "<graph edgedefault='undirected'>\n" + "".join(f"<node id='{i}'/>\n" for i in range(5001)) + "</graph>",
        5004,
        "5,000 nodes",
    ),
]


@for_each(("body", "line", "message"), BAD_GRAPHML)
def test_bad_graphml_is_named_with_its_line(body, line, message):
    with pytest.raises(SpecError, match=message) as caught:
        graphml(body)
    assert caught.value.field == f"graph.graphml, line {line}"


BOMB = "<!DOCTYPE x [<!ENTITY a 'ha'><!ENTITY b '&a;&a;&a;&a;&a;&a;'>]>"


@pytest.mark.parametrize("kind", [BOMB, "<!DOCTYPE graphml SYSTEM 'file:///etc/hostname'>"])
def test_entities_are_refused_before_they_are_read(kind, monkeypatch):
    monkeypatch.setattr(nx, "read_graphml", lambda *_, **__: pytest.fail("the file was built"))
    with pytest.raises(SpecError, match="document type and entities are not allowed") as caught:
        graphml(edge("a", "b"), "<?xml version='1.0'?>\n" + kind)
    assert caught.value.field == "graph.graphml, line 2"


def test_other_xml_is_no_graph():
    with pytest.raises(SpecError, match="the outermost element of GraphML is graphml"):
        read_upload("x.graphml", b"<html><body/></html>")
    with pytest.raises(SpecError, match="an edge at least"):
        graphml(f"<graph edgedefault='undirected'>{NODES}</graph>")


def test_graphml_of_an_unknown_prefix_and_of_another_encoding():
    """Both ended the page's loop: the second reading, by another library, saw another file than the check."""
    with pytest.raises(SpecError, match="line 4, is not XML: unbound prefix"):
        graphml(f"<graph>{NODES}\n<y:ShapeNode/></graph>")
    nodes = NODES.replace("'a'", "'é'")
    head = "<?xml version='1.0' encoding='ISO-8859-1'?>"
    assert graphml(f"<graph>{nodes}<edge source='é' target='b'/></graph>", head).names[0] == "é"


def test_what_editors_of_graphs_add_is_passed_over():
    y = "xmlns:y='http://www.yworks.com/xml/graphml'"
    drawn = "<node id='a'><data key='d1'><y:node id='x'><y:edge/><y:hyperedge/></y:node></data><data key='g'>one</data></node>"
    nodes = drawn + NODES.replace("<node id='a'/>", "")
    keys = "<key id='d1' for='node' yfiles.type='x'/><key id='g' for='node' attr.name='group'><default> two </default></key>"
    graph = graphml(f"{keys}<graph {y}>{nodes}<edge source='a' target='b'><data key='no'>1</data></edge></graph>")
    assert graph.names == ("a", "b", "c", "d") and graph.edges.tolist() == [[0, 1]]
    assert graph.groups.tolist() == [0, 1, 1, 1] and graph.group_source == "the file's group"
    of_edges = graphml(
        f"{keys.replace(chr(39) + 'node' + chr(39), chr(39) + 'edge' + chr(39))}<graph {y}>{nodes}<edge source='a' target='b'/></graph>"
    )
    assert of_edges.groups is None


P = f'xmlns:p="{"a" * 15_000}" ' + " ".join(f'p:a{i}=""' for i in range(1000))


@for_each(
    ("content", "line", "says"),
    [
        (f"<graphml>\n<graph {P}/></graphml>", 2, "at most 20,000 characters from one < to the next"),
        (f'<graphml xmlns="{"a" * 501}">' + "<n/>" * 20_000, 1, "a namespace has at most 500 characters"),
        ("<graphml>\n\n<graph>" + "a" * 20_001, 3, "at most 20,000 characters from one < to the next"),
    ],
    ids=["tag", "namespace", "text"],
)
def test_a_long_name_in_graphml_is_refused_before_it_costs(content, line, says):
    """Each element's name has its whole namespace, and so has each attribute with a prefix: 1 MB took 1.6 GB."""
    with pytest.raises(SpecError, match=says) as caught:
        read_upload("x.graphml", content.encode())
    assert caught.value.field == f"x.graphml, line {line}"


def test_the_parser_is_given_a_file_in_pieces(monkeypatch):
    """It reads what it was given to the end, whatever is found wrong in it."""
    given = []

    class Parser:
        def Parse(self, text, final):
            given.append(len(text))

    monkeypatch.setattr(graphs.expat, "ParserCreate", lambda *_: Parser())
    with pytest.raises(SpecError):
        read_upload("x.graphml", b"<graphml>" + b"<n/>" * 100_000)
    assert sum(given) == 400_009 and max(given) == graphs.PIECE


# Held-out pairs


@for_each("key", BUILT_IN)
@for_each("share", [0.2, 0.5])
def test_every_node_with_an_edge_keeps_one(key, share):
    graph = BUILT_IN[key]()
    for seed in range(5):
        split = hold_out(graph, share, seed)
        assert (np.bincount(split.edges.ravel(), minlength=graph.n_nodes)[np.unique(graph.edges)] > 0).all()
        y = graph.adjacency()
        assert (y[split.held[:, 0], split.held[:, 1]] == split.truth).all()
        assert (split.held[:, 0] < split.held[:, 1]).all()
        held, seen = set(map(tuple, split.held.tolist())), set(map(tuple, split.edges.tolist()))
        assert not held & seen and len(seen) + split.truth.sum() == len(graph.edges)
        # Only edges that were given back are missing, a few.
        assert round(share * graph.n_pairs) - len(graph.names) <= len(held) <= round(share * graph.n_pairs)


def test_the_split_is_seeded():
    graph = BUILT_IN["karate"]()
    assert (hold_out(graph, 0.2, 3).held == hold_out(graph, 0.2, 3).held).all()
    assert set(map(tuple, hold_out(graph, 0.2, 3).held)) != set(map(tuple, hold_out(graph, 0.2, 4).held))


def test_a_split_needs_both_kinds_of_pairs():
    """A split that is given has both, one that is refused has not, and says so."""
    path = csv("a,b\nb,c\nc,d\n")
    all_but_one = csv("\n".join(f"{a},{b}" for a, b in list(itertools.combinations("abcdef", 2))[1:]))
    found = set()
    for graph, seed in itertools.product((path, all_but_one), range(20)):
        try:
            truth = hold_out(graph, 0.2, seed).truth
            found.add((len(truth), truth.sum()))
            assert 0 < truth.sum() < len(truth)
        except SpecError as error:
            (counts,) = re.findall(r"of (\d+) held-out pairs (\d+) are edges, and a score needs both kinds", str(error))
            n, edges = map(int, counts)
            found.add((n, edges))
            assert edges in {0, n}
    # Of the path one pair, or none: an end's only edge is given back. Of the other three, with its gap or without.
    assert found == {(1, 0), (1, 1), (0, 0), (3, 3), (3, 2)}

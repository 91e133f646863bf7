"""Methods for networks beside each other: on the co-authors of NIPS (where the file is), and beside known groups."""

from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat
from scipy.sparse import coo_matrix

from sgmcmc_lab.lessons.papers import knowles_2015_figures_2_and_3 as figures
from sgmcmc_lab.lessons.papers import knowles_2015_networks as compare
from sgmcmc_lab.lessons.papers.knowles_2015_networks import agreement, group_agreement, row, run_method
from sgmcmc_lab.samplers.models.network import model as module
from sgmcmc_lab.samplers.models.network.graph import BUILT_IN, block_graph, read_upload
from sgmcmc_lab.samplers.parameters import SpecError

NIPS = Path(__file__).parents[5] / "shared" / "data" / "nips234.csv"
needs_nips = pytest.mark.skipif(
    not NIPS.is_file(), reason="../shared/data/nips234.csv is not there; it is not ours to ship"
)


@pytest.fixture(scope="module")
def nips():
    return read_upload(NIPS.name, NIPS.read_bytes())


@needs_nips
def test_the_co_authors(nips):
    assert (nips.n_nodes, len(nips.edges)) == (234, 598)
    assert (np.bincount(nips.edges.ravel(), minlength=234) == 0).sum() == 9


@pytest.mark.slow
@needs_nips
def test_order_of_the_methods_on_nips(nips):
    """Two of the ten splits. The whole run: Gibbs .915 ± .013, gamma SGVB .874 ± .024, the others .78 to .81.

    Asked were .918 ± .012 and at least .77. The mean of two splits has a standard error of .009; four are allowed.
    """
    gibbs = row("network_gibbs", nips, (0, 1))
    assert gibbs.auc.mean() == pytest.approx(0.918, abs=4 * 0.012 / 2**0.5)
    gamma = row("network_sgvb", nips, (0, 1))
    assert gamma.auc.min() > 0.77
    others = [row(key, nips, (0, 1)) for key in ("network_norm_sgvb", "network_map")]
    for other in others:
        assert (gibbs.auc > gamma.auc).all() and gamma.auc.mean() > other.auc.mean()


@needs_nips
def test_a_faulty_gibbs_falls_short_on_nips(nips, monkeypatch):
    """One whose predictions are those of the next pair. Held-out pairs that count as no edges it would not see: only
    2 % of the pairs are edges, and the AUC is 0.910 then; ``test_gibbs_faults_are_caught`` sees them.
    """
    score = module.Network.score
    monkeypatch.setattr(module.Network, "score", lambda self, p: score(self, np.roll(p, 1)))
    assert row("network_gibbs", nips, (0, 1), steps=300).auc.mean() < 0.918 - 4 * 0.012 / 2**0.5


def test_agreement_is_the_adjusted_rand_index():
    groups = np.array([0, 0, 0, 1, 1, 1])
    assert agreement(groups, 1 - groups) == 1.0
    # Hubert & Arabie 1985's formula by hand: 2 joint pairs of 6, 6 and 15.
    assert agreement(np.array([0, 0, 1, 1, 2, 2]), groups) == pytest.approx(
        (2 - 3 * 6 / 15) / ((3 + 6) / 2 - 3 * 6 / 15)
    )
    rng = np.random.default_rng(0)
    chance = [agreement(rng.integers(0, 4, 60), rng.integers(0, 3, 60)) for _ in range(300)]
    assert abs(np.mean(chance)) < 4 * np.std(chance) / 300**0.5


@pytest.mark.slow
def test_gibbs_finds_the_blocks():
    graph = block_graph(60, 3, 0.6, 0.02, seed=2)
    index, _, _ = group_agreement(graph, 8, 1, sweeps=600)
    assert index > 0.9
    rng = np.random.default_rng(1)
    shuffled = type(graph)(graph.names, graph.edges, rng.permutation(graph.groups), "")
    assert group_agreement(shuffled, 8, 1, sweeps=600)[0] < 0.1


@pytest.mark.slow
def test_gibbs_beside_the_groups_of_les_miserables():
    """Newman & Girvan's partition is not the model's truth: Louvain's agree with it by 0.53 to 0.78.

    Measured: 0.57 to 0.64 with three seeds, and a standard deviation of 0.04 from draw to draw.
    """
    graph = BUILT_IN["les_miserables"]()
    index, _, used = group_agreement(graph, 10, 1, sweeps=1000)
    assert 0.5 < index < 0.8 and 6 <= used <= 10


def test_a_run_that_diverges_says_so():
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError, match="no longer finite"):
        run_method("network_sgvb", BUILT_IN["karate"](), 1, steps=200, optimiser="sgd", step_size=10.0, momentum=0.0)


@pytest.mark.slow
def test_command_line(capsys, tmp_path):
    assert compare.main(["karate", "--splits", "2", "--communities", "3", "--methods", "network_gibbs"]) == 0
    printed = capsys.readouterr().out
    assert "34 nodes, 78 edges" in printed and "network_gibbs" in printed and "adjusted Rand index" in printed
    bad = tmp_path / "bad.csv"
    bad.write_text("a,b\nc\n")
    (tmp_path / "bad.mat").write_bytes(bytes(200))
    savemat(tmp_path / "two.mat", {"a": coo_matrix(np.eye(5)), "b": coo_matrix(np.eye(5))})
    for arguments, message in (
        ([str(bad)], "bad.csv, line 1, has one column"),
        ([str(tmp_path / "none.csv")], "there is no such file"),
        (["karate", "--splits", "0"], "allowed is a whole number from 1 on"),
        ([str(tmp_path / "bad.mat")], "it is no file of MATLAB"),
        ([str(tmp_path / "two.mat")], "allowed is one square sparse matrix"),
    ):
        assert compare.main(arguments) == 2
        assert message in capsys.readouterr().err


def test_a_matlab_file_is_the_graph_of_its_matrix(tmp_path):
    """Half of the matrix, in a structure, with a loop; beside it a matrix that is not sparse."""
    half = np.zeros((6, 6))
    half[[0, 1, 4], [3, 2, 4]] = 1
    savemat(tmp_path / "g.mat", {"Problem": {"A": coo_matrix(half), "name": "g"}, "other": half})
    graph = compare.of_matlab(tmp_path / "g.mat")
    assert graph.n_nodes == 6 and graph.edges.tolist() == [[0, 3], [1, 2]]
    savemat(tmp_path / "large.mat", {"A": coo_matrix((5_001, 5_001))})
    with pytest.raises(SpecError, match="at most 5,000 nodes"):
        compare.of_matlab(tmp_path / "large.mat")


@pytest.mark.parametrize(("name", "shape"), [("Protein230.mat", (230, 695)), ("yeast.mat", (2361, 6646))])
def test_the_proteins(name, shape):
    file = NIPS.parent / name
    if not file.is_file():
        pytest.skip(f"../shared/data/{name} is not there; it is not ours to ship")
    graph = compare.of_matlab(file)
    assert (graph.n_nodes, len(graph.edges)) == shape


def test_figures_have_every_run_in_its_place(capsys, monkeypatch):
    """A run that says what it was asked for: K or the parameters, and the split, whose spread is that of the seeds."""

    def row_of(key, graph, splits, n_communities=10, steps=None, momentum=0.0, rho=0.0):
        number = compare.samplers_of("network").index(key) / 10 + n_communities / 1000
        of = number + np.array(splits) / 100
        return compare.Row(key, 1, of, 1000 * (of + round(100 * (1 - momentum)) + rho), 0.0)

    monkeypatch.setattr(figures, "row", row_of)
    assert figures.main(["karate", "--seeds", "3", "--communities", "10", "50"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[3][:4] == ["1", "100.804", "±", "0.010"] and lines[6][0] == "0.03" and lines[6][-3] == "4.110"
    table = {line[0]: [float(x) for x in line[1::3]] for line in lines[-3:-1]}
    places = [compare.samplers_of("network").index(key) / 10 for key in figures.METHODS]
    assert table == {str(k): pytest.approx([place + k / 1000 + 0.01 for place in places]) for k in (10, 50)}
    assert figures.main(["karate", "--seeds", "0"]) == 2 and "from 1 to 100" in capsys.readouterr().err

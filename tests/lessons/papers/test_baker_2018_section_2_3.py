"""Two constructions of a Dirichlet posterior by CIR processes have one stationary distribution."""

import numpy as np
import pytest

from sgmcmc_lab.lessons.papers import baker_2018_section_2_3 as constructions
from sgmcmc_lab.lessons.papers.baker_2018_section_2_3 import CONSTRUCTIONS, COUNTS, draws, score

EXACT = 0.8687 / constructions.N_STEPS**0.5
CHAINS = 6


def of_all_data(construction):
    """The score with all data and a step after which draws hardly depend on each other."""
    return score(draws(construction, COUNTS["sparse"], None, 6.0, CHAINS, np.random.default_rng(3)), COUNTS["sparse"])


@pytest.mark.slow
@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_with_all_data_every_construction_is_exact(construction, monkeypatch):
    """The score of exact draws is .027; its spread over chains 9 %. Faults: a shape that is too large; for sticks, the
    components in another order than the sticks."""
    assert of_all_data(construction).mean() == pytest.approx(EXACT, rel=0.2)
    move = constructions.transition
    monkeypatch.setattr(constructions, "transition", lambda rng, theta, a, h: move(rng, theta, a + 0.05, h))
    assert of_all_data(construction).mean() > 1.5 * EXACT
    monkeypatch.undo()
    if construction == CONSTRUCTIONS[2]:
        find = constructions.odds
        monkeypatch.setattr(constructions, "odds", lambda theta, order, sticks: find(theta, np.sort(order), sticks))
        assert of_all_data(construction).mean() > 0.2


@pytest.mark.slow
def test_minibatches_have_the_papers_score():
    """SCIR with batches of ten, sparse: .098 in the paper, ± .007 over five seeds. Fault: batches of one."""
    found = {
        n: score(draws("gammas", COUNTS["sparse"], n, 0.1, CHAINS, np.random.default_rng(4)), COUNTS["sparse"]).mean()
        for n in (1, 10)
    }
    assert found[10] == pytest.approx(0.098, abs=0.015) and found[1] > 0.12


def test_command_line(capsys, monkeypatch):
    monkeypatch.setattr(constructions, "N_STEPS", 20)
    monkeypatch.setattr(constructions, "STEPS", (0.5,))
    monkeypatch.setattr(constructions, "BATCHES", (10,))
    assert constructions.main(["--seeds", "2"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("sparse, n = 10") == printed.count("dense, n = 10") == 1 and "h = 0.5" in printed
    assert constructions.main(["--seeds", "1"]) == 2 and "from 2 to 100" in capsys.readouterr().err

"""The papers' figures as pictures: each number is where it belongs, and each picture says what it shows."""

import numpy as np
import pytest

from sgmcmc_lab.lessons.papers import knowles_2015_figures_2_and_3 as network
from sgmcmc_lab.lessons.papers import knowles_2015_figures_4_to_6 as factors
from sgmcmc_lab.lessons.papers import liu_2016_figure_5 as spherical
from sgmcmc_lab.lessons.papers import pictures as papers
from sgmcmc_lab.samplers import SpecError

RNG = np.random.default_rng(1)
N_SEEDS = 3


@pytest.fixture(scope="module", autouse=True)
def matplotlib():
    pytest.importorskip("matplotlib")
    papers.prepare("matplotlib")


def of_network():
    found = network.Found("g.csv", N_SEEDS, (10, 50))
    found.auc = {key: RNG.random((2, N_SEEDS)) for key in network.METHODS}
    found.auc[network.IRM] = RNG.random((1, N_SEEDS))
    found.elbo = -1000 * RNG.random((len(network.KEPT), len(network.RHOS), N_SEEDS))
    return found


def of_factors():
    found = factors.Found({10: 1 + RNG.random((N_SEEDS, 8)), 1000: 1 + RNG.random((N_SEEDS, 8))})
    for n in (20, 50):
        scores = 10 + RNG.random((N_SEEDS, 5))
        scores[0, 4] = np.inf if n == 20 else scores[0, 4]
        paths = np.sort(10 + RNG.random((N_SEEDS, 2, factors.LOOKS, 2)), axis=2)
        found.real.setdefault("wine", {})[n] = factors.Held(scores, 1 + RNG.random((N_SEEDS, 5)), paths)
    found.covariances["wine"] = RNG.standard_normal((len(factors.SHOWN), 6, 6))
    return found


def of_spherical():
    curves = 100 + RNG.random((N_SEEDS, spherical.SCORED))
    curves[1, 0] = np.nan
    rows = [spherical.Row(case, {}, curves[:, -3:], curves + i, 1.0) for i, case in enumerate(spherical.CASES)]
    return spherical.Found("texts", 12.0, rows)


MADE = {"network": of_network, "factors": of_factors, "spherical": of_spherical}


def faults(figure):
    """The faults of a picture: axes without names, a legend on the data, letters beyond its edge."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    out = [
        f"{panel.get_title()}: an axis without a name"
        for panel in figure.axes
        if not panel.get_ylabel() and not panel.get_title()
    ]
    out += [
        "an axis without a name"
        for panel in figure.axes
        if not panel.get_xlabel() and panel.get_label() != "<colorbar>"
    ]
    whole = figure.bbox
    for legend in figure.legends:
        box = legend.get_window_extent(renderer)
        out += ["a legend on the data" for panel in figure.axes if panel.get_window_extent(renderer).overlaps(box)]
    letters = [text for panel in figure.axes for text in (panel.title, panel.xaxis.label, panel.yaxis.label)]
    for text in (*letters, figure._suptitle, figure._supxlabel):
        box = text.get_window_extent(renderer)
        if text.get_text() and (box.x0 < whole.x0 - 1 or box.x1 > whole.x1 + 1 or box.y1 > whole.y1 + 1):
            out.append(f"cut: {text.get_text()}")
    return out


@pytest.mark.slow
@pytest.mark.parametrize("key", papers.OF)
def test_pictures_are_legible(key):
    """Faults: a name too long for its picture; a legend that is moved onto the panel; an axis without a name."""
    pictures = papers.OF[key][1](MADE[key]())
    assert len({name for name, _ in pictures}) == len(pictures)
    assert {name: faults(figure) for name, figure in pictures} == {name: [] for name, _ in pictures}
    figure = pictures[0][1]
    figure.suptitle("a long title " * 20)
    figure.axes[0].set_xlabel("")
    figure.axes[0].plot([], label="anything")
    figure.axes[0].legend()
    figure.legends.append(figure.axes[0].get_legend())
    assert len(faults(figure)) >= 3


def points(panel):
    """The lines of a panel by their names: x, y and half of the error bars."""
    out = {}
    for container in panel.containers:
        line, _, (bars,) = container
        ends = np.array([segment[:, 1] for segment in bars.get_segments()])
        out[container.get_label()] = (*line.get_data(), (ends[:, 1] - ends[:, 0]) / 2)
    return out


@pytest.mark.slow
def test_every_number_is_in_its_place():
    found = of_network()
    heat, curves = (figure for _, figure in papers.of_network(found))
    shown = np.asarray(heat.axes[0].images[0].get_array())
    assert shown == pytest.approx(found.elbo.mean(axis=2) / 1000)
    for key in network.METHODS:
        x, y, error = points(curves.axes[0])[papers.METHODS[key].title]
        assert list(x) == [10, 50] and y == pytest.approx(found.auc[key].mean(axis=1))
        assert error == pytest.approx(found.auc[key].std(axis=1, ddof=1))
    measured = of_factors()
    figures = dict(papers.of_factors(measured))
    errors, seconds = figures["knowles-2015-figure-4"].axes
    for i, name in enumerate((*factors.MADE_METHODS.values(), "sparse PCA")):
        for panel, column in ((errors, i), (seconds, 4 + i)):
            x, y, _ = points(panel)[name]
            assert list(x) == [10, 1000] and y == pytest.approx([v[:, column].mean() for v in measured.made.values()])
    likelihood, clock = figures["knowles-2015-figure-5-wine"].axes
    # A covariance that is singular has no density, and no point.
    assert [len(points(likelihood)[name][0]) for name in factors.REAL_METHODS] == [2, 2, 2, 2, 1]
    assert points(clock)["NSFA"][1] == pytest.approx(measured.real["wine"][50].paths[:, 1, :, 1].mean(axis=0))
    sphere = of_spherical()
    ((_, figure),) = papers.of_spherical(sphere)
    for line, row in zip(figure.axes[0].get_lines(), sphere.rows, strict=True):
        # The first point is not known of every seed.
        assert line.get_label() == row.case.title and line.get_ydata() == pytest.approx(row.curves.mean(axis=0)[1:])
        assert line.get_xdata()[0] == pytest.approx(1.0) and line.get_xdata()[-1] == 12


@pytest.mark.slow
def test_the_command_writes_its_pictures(tmp_path, capsys, monkeypatch):
    """The arguments after the folder are the measuring command's, and so are its refusals."""
    wanted = []

    def arguments_of(rest):
        wanted.append(rest)
        return of_network()

    monkeypatch.setitem(papers.OF, "network", (arguments_of, papers.of_network))
    assert papers.main(["network", str(tmp_path / "out"), "g.csv", "--seeds", "3"]) == 0
    assert wanted == [["g.csv", "--seeds", "3"]]
    files = [tmp_path / "out" / f"knowles-2015-figure-{k}.png" for k in (2, 3)]
    assert [path.read_bytes()[:4] for path in files] == [b"\x89PNG"] * 2
    assert capsys.readouterr().out.split() == list(map(str, files))
    assert papers.main(["factors", str(tmp_path), "--seeds", "0"]) == 2
    assert "seeds = 0: allowed is" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert papers.main(["network", str(tmp_path / "file"), "g.csv"]) == 2 and "FOLDER" in capsys.readouterr().err

    def refuse(rest):
        raise SpecError("FILE", "x", "there is no such file")

    monkeypatch.setitem(papers.OF, "network", (refuse, papers.of_network))
    assert papers.main(["network", str(tmp_path), "x"]) == 2 and "no such file" in capsys.readouterr().err

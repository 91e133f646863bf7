"""The arrays that the views of pages make of what a method shows of itself."""

import pkgutil
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from bokeh.models import Image, Quad
from scipy import stats

import sgmcmc_lab.app.views.models as package
from sgmcmc_lab.app.live.lanes.models import MethodRecord, load
from sgmcmc_lab.app.views import VIEWS
from sgmcmc_lab.app.views.base import COLUMNS, SCORES, Frame, Position, Scene
from sgmcmc_lab.app.views.models.adjacency import HELD, in_order, observed_matrix, shades
from sgmcmc_lab.app.views.models.batch import gain
from sgmcmc_lab.app.views.models.cluster_points import CORNERS, ellipses
from sgmcmc_lab.app.views.models.graph import agreement, held_edges, layout, matched, observed
from sgmcmc_lab.app.views.models.scores import curve, ends
from sgmcmc_lab.app.views.models.weights import LOWEST
from sgmcmc_lab.app.views.models.words import HUNDREDTHS, LARGER, OVERTAKES, PERCENTS, SHOWN, WORDS, in_lines
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.lanes import samplers_of
from sgmcmc_lab.samplers.models import METHODS, MODELS
from sgmcmc_lab.samplers.models.clusters.sphere import SphereClusters
from sgmcmc_lab.samplers.models.clusters.sphere_points import Directions
from sgmcmc_lab.samplers.models.network.model import explained
from sgmcmc_lab.samplers.models.run import Score, start
from tests.helpers.cases import for_each
from tests.helpers.checks_views import MODEL_VIEWS, build, lane_of, open_link

CHANGED = Position(steps=1.0, gradients=np.nan, data=2.0, seconds=0.5)
PAGES = {
    "bars": "?target=topics(corpus:bars;n_topics:10)",
    "network": "?target=network(graph:blocks;n_communities:6)",
    "clusters": "?target=clusters(points:iris)",
    "sphere_clusters": "?target=sphere_clusters(items:150)",
    "mixture": "?target=mixture(documents:80)",
    "sparse": "?target=sparse(items:100)",
    "lasso": "?target=sparse(data:diabetes)",
    "factors": "?target=factors(rows:30;n_factors:12)",
    "factors of wine": "?target=factors(data:wine)",
    "spherical": "?target=spherical",
    "no known groups": "?target=network(graph:florentine;n_communities:3)",
}
BATCHES = 6
"""Methods on one page."""


def frames_of(query, n_steps):
    """The scenes and frames of all methods of a model, six at a time."""
    methods = samplers_of(open_link(query)[0].experiment.target.key)
    for first in range(0, len(methods), BATCHES):
        state = open_link(query + "".join(f"&lane={name}" for name in methods[first : first + BATCHES]))[0]
        model = load(state.experiment)
        runs = start(state.experiment, model)
        for run in runs:
            run.advance(n_steps)
        yield state, model, Frame(MethodRecord(run).frame("steps") for run in runs)


@pytest.fixture(scope="module")
def pages():
    return {name: list(frames_of(query, 4)) for name, query in PAGES.items()}


def check_data(view, data):
    """Every array has a feed, every feed its columns; all values are finite."""
    for name, columns in data.items():
        feed = view.feeds[name]
        assert len(columns) == len(feed.columns), (view.key, name)
        assert len({len(column) for column in columns}) == 1, (view.key, name)
        for column in columns:
            assert np.isfinite(np.asarray(column, dtype=float)).all(), (view.key, name)


def test_every_view_file_is_registered():
    files = {info.name for info in pkgutil.iter_modules(package.__path__)} - {"marks"}
    modules = {view.__module__.rpartition(".")[2] for view in MODEL_VIEWS.values()}
    assert files == modules


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_view_shows_every_method(pages, page, dark):
    seen = set()
    for state, model, frame in pages[page]:
        for key in state.fitting_views():
            view = build(key, state, model, dark, "seconds" if dark else "steps")
            for place in range(len(frame)):
                data = view.compute(Frame(frame, place))
                check_data(view, data)
                *captions, (figure, description) = view.texts(frame)
                assert all(isinstance(text, str) for _, text in captions)
                assert figure == view.figure.id and description.startswith(view.title)
            seen.add(key)
            assert view.title
            assert view.hint
    assert {key for key, view in VIEWS.items() if view.requires in (COLUMNS, SCORES, model.key)} - seen <= {
        "pictures",
        "paths",
    }
    assert page != "lasso" or "paths" in seen


@pytest.mark.slow
def test_the_check_of_arrays_can_fail(pages):
    state, model, frame = pages["bars"][0]
    view = build("sparsity", state, model)
    data = view.compute(frame)
    with pytest.raises(AssertionError):
        check_data(view, {**data, "method 0": (data["method 0"][0], data["method 0"][1] * np.nan)})
    with pytest.raises(AssertionError):
        check_data(view, {**data, "method 0": data["method 0"][:1]})


# Scores


def scored(*values, pace=1.0):
    """The scores of a chain."""
    return [Score(step, 50 * step, pace * step, value) for step, value in enumerate(values)]


def test_a_curve_is_the_mean_and_the_spread_of_the_seeds_at_common_steps():
    seeds = scored(9.0, 4.0, 2.0), scored(9.0, 6.0, 8.0, 1.0, pace=3.0)
    x, mean, low, high = curve(seeds, "data")
    np.testing.assert_array_equal(x, [50, 100])
    np.testing.assert_array_equal(mean, [5, 5])
    np.testing.assert_array_equal(low, [4, 2])
    np.testing.assert_array_equal(high, [6, 8])
    np.testing.assert_array_equal(curve(seeds, "seconds")[0], [2, 4])
    # A log axis cannot show what is before the first step.
    assert not len(curve([scored(9.0)], "steps")[0])


@for_each(
    ("values", "up"),
    [([1523.0, 4012.0], False), ([0.51, 0.93], True), ([14.3, 25.1], False), ([0.7, 0.7], True), ([12.0], False)],
)
def test_the_scores_axis_holds_all_values_between_round_numbers(values, up):
    low, high = ends(values, up)
    assert low <= min(values)
    assert max(values) <= high
    assert low < high
    assert high - low < 40 * max(max(values) - min(values), 0.1 if up else 1.0)
    assert low == float(f"{low:.3g}")
    assert high == float(f"{high:.3g}")


@pytest.mark.slow
def test_the_score_view_has_the_axis_of_the_link(pages):
    state, model, frame = pages["bars"][0]
    run, marked = frame[0].run.chains[0], MethodRecord(frame[0].run)
    marked.marks.append(CHANGED)
    for axis, field in (("steps", "step"), ("data", "data_seen"), ("seconds", "seconds")):
        view = build("scores", state, model, axis=axis)
        data = view.compute([marked.frame(axis), *frame[1:]])
        np.testing.assert_allclose(data["method 0"][0], [x for score in run.scores if (x := getattr(score, field)) > 0])
        np.testing.assert_allclose(data["marks 0"][0], [CHANGED.on(axis)])
        (shown,) = data["x"]
        for i in range(len(frame)):
            assert (shown[0] <= data[f"method {i}"][0]).all()
            assert (data[f"method {i}"][0] <= shown[1]).all()
        assert "x" not in view.compute(frame), "a range is sent where it moves"


# Topics


class Shown(Frame):
    """A frame whose snapshot the test sets."""

    def __init__(self, moving=True, **snapshot):
        super().__init__([], moving=moving, seconds=0.04)
        self.snapshot = lambda place=None: snapshot


def topics(top, shares, npmi=0.0):
    words, probabilities = zip(*[zip(*row, strict=True) for row in top], strict=True)
    return {
        "top_words": np.array(words),
        "top_probabilities": np.array(probabilities),
        "topic_shares": np.array(shares),
        "npmi": np.broadcast_to(npmi, len(shares)),
    }


@pytest.fixture
def words(pages):
    state, model, _ = pages["bars"][0]
    return build("words", state, model)


@pytest.mark.slow
def test_words_stand_in_the_order_of_their_probabilities_and_glide(words):
    n = words.scene.target.n_topics
    first = [[(4, 0.5), (3, 0.3), (2, 0.2)]] * n
    bars = np.array(words.compute(Shown(**topics(first, [1 / n] * n)))["bars"]).T
    left, right, top, bottom, topic, word = bars[:3].T
    assert list(word) == [4, 3, 2]
    assert (np.diff(top) > 0).all()
    assert (bottom > top).all()
    np.testing.assert_allclose((right - left) / (right - left)[0], [1, 0.6, 0.4])
    assert (topic == 0).all()
    # Word 2 becomes the most likely one: it goes there in steps, and at once on a page at rest.
    second = [[(2, 0.8), (4, 0.15), (3, 0.05)]] * n
    for _ in range(4):
        bars = np.array(words.compute(Shown(**topics(second, [1 / n] * n)))["bars"]).T
    moving = bars[:3][bars[:3, 5] == 2][0]
    rank = (moving[2] * (WORDS + 1.4)) - 1.05
    assert 0 < rank <= 2
    bars = np.array(words.compute(Shown(moving=False, **topics(second, [1 / n] * n)))["bars"]).T
    assert sorted(bars[:3, 2]) == pytest.approx(sorted(top)), "at rest every word is in a line of its own"


def test_words_that_are_about_as_likely_keep_their_lines():
    places = {7: 0.0, 8: 1.0, 9: 2.2}
    means = {7: 0.20, 8: 0.20 * (OVERTAKES - 0.02), 9: 0.10, 5: 0.10 * (OVERTAKES - 0.02)}
    assert in_lines(means, places) == [7, 8, 9, 5], "a little more is not enough"
    assert in_lines(means, {}) == [8, 7, 5, 9], "without a place the order is exact"
    means[8] = 0.20 * (OVERTAKES + 0.02)
    means[5] = 0.5
    assert in_lines(means, places) == [5, 8, 7, 9]


@pytest.mark.slow
def test_a_small_topic_gives_way_only_to_a_clearly_larger_one(pages):
    _, model, _ = pages["bars"][0]

    class Many:
        n_topics, vocabulary = SHOWN + 2, model.vocabulary

    view = VIEWS["words"](Scene(Many(), ("one",), 0, "data", False))
    top = [[(1, 0.6), (2, 0.4)]] * Many.n_topics

    def shown(shares):
        return {int(k) for k in view.compute(Shown(**topics(top, shares)))["heads"][2]}

    shares = np.full(Many.n_topics, 0.05)
    shares[-2:] = 0.02
    assert shown(shares) == set(range(SHOWN))
    shares[-1] = 0.05 * (LARGER - 0.05)
    assert shown(shares) == set(range(SHOWN)), "a little larger is not enough"
    shares[-1] = 0.05 * (LARGER + 0.05)
    found = shown(shares)
    assert Many.n_topics - 1 in found
    assert len(found) == SHOWN


@pytest.mark.slow
def test_each_topic_has_its_coherence_beside_its_share(words):
    """Also where its place is not its number."""
    n = words.scene.target.n_topics
    assert n == 10
    npmi = np.array([-1, -0.996, -0.5, -0.054, -0.001, 0, 0.046, 0.314, 0.996, 1])
    texts = ["−1.00", "−1.00", "−.50", "−.05", ".00", ".00", ".05", ".31", "1.00", "1.00"]
    shares = np.roll(np.linspace(0.3, 0.01, n), 3)
    data = words.compute(Shown(**topics([[(1, 0.6), (2, 0.4)]] * n, shares, npmi)))
    topic, (right, y, place) = data["heads"][2].astype(int), data["coherences"]
    assert len(set(topic)) == n and (np.diff(topic) != 1).any()
    assert [HUNDREDTHS[int(k)].rstrip() for k in place] == [texts[k] for k in topic]
    np.testing.assert_array_equal([right, y], [data["heads"][3], data["heads"][1]])
    assert [PERCENTS[k] for k in (0, 7, 99, 100, 105, 106, 999, 1000)] == [
        "0.0 %", "0.7 %", "9.9 %", "10 %", "10 %", "11 %", "100 %", "100 %"
    ]  # fmt: skip


@pytest.mark.slow
def test_the_coherence_of_several_seeds_is_their_mean_with_a_band():
    state = open_link("?target=topics(corpus:bars;n_topics:10)&lane=lda_scir&n_chains=3")[0]
    model = load(state.experiment)
    (run,) = start(state.experiment, model)
    run.advance(3)
    data = build("coherence", state, model, axis="steps").compute(Frame([MethodRecord(run).frame("steps")]))
    kept = np.array([chain.state.coherence for chain in run.chains])
    assert kept.shape == (3, 4) and len(set(kept[:, -1])) == 3
    np.testing.assert_allclose(data["method 0"], [[1, 2, 3], kept.mean(axis=0)[1:]])
    np.testing.assert_allclose(data["band 0"][1:], [kept.min(axis=0)[1:], kept.max(axis=0)[1:]])
    low, high = data["y"][0]
    assert low <= kept[:, 1:].min() and kept[:, 1:].max() <= high


@pytest.mark.slow
def test_sparsity_is_a_histogram_of_shares(pages):
    state, model, frame = pages["bars"][0]
    view = build("sparsity", state, model)
    data, captions = view.compute(frame), view.captions(frame)
    for i in range(len(frame)):
        seen = frame.snapshot(i)
        middle, share = data[f"method {i}"]
        assert share.sum() == pytest.approx(1)
        np.testing.assert_allclose(share * seen["sparsity"].sum(), seen["sparsity"])
        below = share[middle < -10.0].sum()
        assert captions[view._labels[i].id] == f"{view.scene.lanes[i]}  {below:.1%} below 10⁻¹⁰"
        assert (seen["sparsity_edges"][:-1] < middle).all()
        assert (middle < seen["sparsity_edges"][1:]).all()


@pytest.mark.slow
def test_a_documents_bar_is_its_topics_from_the_largest_on(pages):
    state, model, _ = pages["bars"][0]
    view = build("documents", state, model)
    k = model.n_topics
    proportions = np.full((2, k), 0.001)
    proportions[0, [3, 1]] = 0.7, 0.292
    proportions[1] = 1 / k
    data = view.compute(Shown(documents=np.array([2, 10_000]), proportions=proportions))
    left, right, top, bottom, topic = data["parts"]
    assert list(topic) == [3, 1], "parts too small to be seen are left out, and a document that is not shown is not"
    np.testing.assert_allclose(right, [0.7, 0.992])
    np.testing.assert_allclose(left, [0, 0.7])
    assert ((top > 2) & (top < bottom) & (bottom < 3)).all()
    # A document that the next step does not touch keeps its bar.
    again = view.compute(Shown(documents=np.array([4]), proportions=proportions[1:]))
    assert {int(y) for y in again["parts"][2]} == {2, 4}


@pytest.mark.slow
def test_documents_with_labels_say_how_much_their_topics_tell_of_them(pages):
    state = open_link("?target=topics(corpus:docstrings)&lane=collapsed_gibbs")[0]
    model = load(state.experiment)
    view = build("documents", state, model)
    known = np.unique(model.training.labels, return_inverse=True)[1]
    for found, said in ((known, "NMI 1.00"), (1 - known, "NMI 1.00"), (0 * known, "NMI 0.00")):
        (text,) = view.captions(Shown(document_topics=found)).values()
        assert text.endswith(said)
    state, model, frame = pages["bars"][0]
    assert build("documents", state, model).captions(frame) == {}


@pytest.mark.slow
def test_of_a_stream_the_documents_and_pictures_are_those_of_the_last_step():
    state = open_link("?target=topics(corpus:stream)&lane=lda_scir")[0]
    model = load(state.experiment)
    (run,) = start(state.experiment, model)
    views = {key: build(key, state, model) for key in ("documents", "pictures")}
    assert set(views) <= set(state.fitting_views())
    parts = []
    for _ in range(2):
        run.advance(1)
        frame = Frame([MethodRecord(run).frame("steps")])
        for view in views.values():
            check_data(view, view.compute(frame))
        left, right, top, _, topic = views["documents"].compute(frame)["parts"]
        own = run.chains[0].state.counts[0, : model.n_topics] + model.alpha
        assert (right - left)[top < 1].max() == pytest.approx((own / own.sum()).max())
        parts.append(topic)
    assert not np.array_equal(*parts)
    assert next(iter(views["pictures"].captions(frame).values())).endswith("of 20")


def test_pictures_put_each_word_on_its_pixel(pages):
    state, model, _ = pages["bars"][0]
    view = build("pictures", state, model)
    side = 5
    phi = np.zeros((model.n_topics, model.n_words))
    for k in range(model.n_topics):
        phi[k, k] = 1.0
    sheet = view.sheet(phi)
    for k in range(model.n_topics):
        row, column = (int(number) - 1 for number in model.vocabulary[k].split(","))
        tile = sheet[(k % 5) * (side + 1) :, (k // 5) * (side + 1) :][:side, :side]
        assert np.argwhere(tile == 1.0).tolist() == [[column, row]]
    assert (sheet == -1).sum() == sheet.size - model.n_topics * side * side
    # The bars that documents were drawn from are rows and columns of pixels.
    truth = view.sheet(model.true_topics)
    tiles = [truth[i * 6 : i * 6 + 5, j * 6 : j * 6 + 5] for j in range(2) for i in range(5)]
    assert all(
        (tile.max(axis=0) == tile.min(axis=0)).all() or (tile.max(axis=1) == tile.min(axis=1)).all() for tile in tiles
    )


def test_true_topics_are_counted_where_they_are_found(pages):
    state, model, _ = pages["bars"][0]
    view = build("pictures", state, model)

    def said(phi):
        return view.captions(Shown(phi=phi))[view._label.id]

    true = model.true_topics
    assert said(true[::-1]) == "true topics found: 10 of 10"
    # Two rows mixed are neither of them; the same row twice is one.
    assert said(np.array([(true[0] + true[1]) / 2, *true[2:]])) == "true topics found: 8 of 10"
    assert said(true[[0] * 10]) == "true topics found: 1 of 10"
    blurred = 0.85 * true + 0.15 / model.n_words
    assert said(blurred) == "true topics found: 10 of 10"
    assert said(0.7 * true + 0.3 / model.n_words) == "true topics found: 0 of 10"


class Gibbs:
    """A minibatch Gibbs method, as the view finds it."""

    chooses_batch_size, batch_size = True, 0


@pytest.mark.slow
def test_the_cost_of_a_batch_size_has_its_minimum_marked(pages):
    state, model, _ = pages["bars"][0]
    state = open_link("?target=topics(corpus:bars)&lane=minibatch_gibbs")[0]
    view = build("batch", state, model)
    frame = Shown(
        batch_sizes=np.array([400, 100, 25, 6]),
        objective=np.array([900.0, 300.0, 500.0, np.inf]),
        chosen=np.array([25]),
        changes=np.array([1200]),
    )
    run = type("Run", (), {"method": Gibbs()})()
    frame.append(lane_of(run))
    data = view.compute(frame)
    check_data(view, data)
    np.testing.assert_array_equal(data["tried"], [[400, 100, 25], [900, 300, 500]])
    # A choice that goes on takes dearer sizes now and then; one that ended took the cheapest.
    np.testing.assert_array_equal(np.ravel(data["best"]), [25, 500])
    # From decade to decade.
    np.testing.assert_allclose(data["y"][0], [100, 1000])
    (text,) = view.captions(frame).values()
    assert text == "m changed 1,200 ×\n4 tried; 1 mixed too slowly to tell (△)"
    once = Shown(**{**frame.snapshot(), "chosen": np.array([100]), "changes": np.array([0])})
    once.append(lane_of(run))
    np.testing.assert_array_equal(np.ravel(view.compute(once)["best"]), [100, 300])
    assert list(view.captions(once).values()) == [
        "chosen: m = 100; using all costs 3 ×\n4 tried; 1 mixed too slowly to tell (△)"
    ]
    assert np.ravel(data["slow"])[0] == 6, "at the upper end"
    assert 900 < np.ravel(data["slow"])[1] < data["y"][0][1]
    for whole, words in ((340.0, "; using all costs hardly more"), (290.0, "; none smaller is cheaper"), (np.inf, "")):
        assert gain(frame.snapshot() | {"objective": np.array([whole, 300.0, 500.0, np.inf])}) == words
    # During the trials it says which size is tried, and for how long: here before the first has a point.
    empty = {"batch_sizes": np.zeros(0, int), "objective": np.zeros(0), "chosen": np.array([0])}
    first = Shown(**empty, trial=np.array([400, 6, 12_300]))
    first.append(lane_of(run))
    view.compute(first)
    assert list(view.captions(first).values()) == [
        "trying m = 400; 0 of 6 sizes tried\n12,300 steps until one is chosen"
    ]
    # With a size of the person's own there is nothing to choose, and nothing is drawn.
    run.method = type("Method", (), {"chooses_batch_size": True, "batch_size": 7})()
    assert view.compute(frame) == {}


# Clusters


def test_an_ellipse_holds_nine_tenths_of_its_gaussian():
    """Its corners are all as far from the mean as χ² of two degrees of freedom says, whatever way it lies."""
    covariances = np.array([[[2.0, 0.7], [0.7, 0.5]], [[0.1, -0.2], [-0.2, 1.0]]])
    x0, y0, x1, y1 = (each.reshape(2, CORNERS) for each in ellipses(np.array([[1.0, 2.0], [-3.0, 0.0]]), covariances))
    assert (np.roll(x0, -1, axis=1) == pytest.approx(x1)) and (np.roll(y0, -1, axis=1) == pytest.approx(y1))
    for x, y, covariance, mean in zip(x0, y0, covariances, ((1, 2), (-3, 0)), strict=True):
        apart = np.array([x - mean[0], y - mean[1]])
        squares = (apart * np.linalg.solve(covariance, apart)).sum(axis=0)
        assert stats.chi2(2).cdf(squares) == pytest.approx(0.9)


@pytest.mark.slow
@pytest.mark.parametrize("dim", [2, 3, 7])
def test_clusters_in_any_dimension_are_on_the_globe(dim):
    """Each point is there once, with length 1, where its parts along the three main directions are: in two dimensions
    on the equator, on S² itself, in more where the singular vectors of all points lie, but for their signs."""
    x = np.random.default_rng(4).standard_normal((40, dim)) + np.linspace(1.5, 0, dim)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    data = Directions(tuple("abcdefg"[:dim]), x, np.arange(40) % 2, ("one", "two"))
    model = SphereClusters(data, points="uploaded", kappa=8.0)
    state = open_link("?target=sphere_clusters&lane=sphere_collapsed(start_clusters:14)")[0]
    runs = start(state.experiment, model)
    view = build("sphere_points", state, model)
    found = view.compute(Frame(MethodRecord(run).frame("steps") for run in runs))
    shown = np.concatenate([np.array(found[name]).T for name in found if name not in ("means", "truth")])
    if dim <= 3:
        right = np.column_stack([model.x, np.zeros((len(model.x), 3 - dim))])
    else:
        right = model.x @ np.linalg.svd(x)[2][:3].T
        right /= np.linalg.norm(right, axis=1, keepdims=True)
        shown, right = np.abs(shown), np.abs(right)
    key = (1.0, 10.0, 100.0)
    np.testing.assert_allclose(shown[np.argsort(shown @ key)], right[np.argsort(right @ key)], atol=1e-9)
    assert len(found["others"][0]) > 0 and len(found["truth"][0]) == 2


# Networks


def test_agreement_of_partitions():
    one = np.array([0, 0, 1, 1, 2, 2])
    assert agreement(one, one) == pytest.approx(1)
    assert agreement(one, 2 - one) == pytest.approx(1), "names of groups do not count"
    assert agreement(np.array([0, 1] * 6), np.repeat([0, 1], 6)) == pytest.approx(0, abs=1e-12)
    assert agreement(np.zeros(6, dtype=int), one) == pytest.approx(0, abs=1e-12)
    # By hand: H(a) = log 2, H(b) = log 3, H(a, b) = log 6 − (1/3)·log 2 … for one pair that shares a cell.
    a, b = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 1, 1, 2, 2])
    joint = -(2 / 6 * np.log(2 / 6) * 2 + 1 / 6 * np.log(1 / 6) * 2)
    assert agreement(a, b) == pytest.approx(2 * (np.log(2) + np.log(3) - joint) / (np.log(2) + np.log(3)))


def test_a_known_group_has_the_colour_of_the_community_that_is_most_like_it():
    known = np.array([0, 0, 0, 1, 1, 1, 2, 2])
    assert matched((known + 1) % 3, known, 4).tolist() == [1, 2, 0]
    # One node is elsewhere: its ring tells.
    found = np.array([3, 3, 1, 1, 1, 1, 0, 0])
    assert matched(found, known, 4).tolist() == [3, 1, 0]
    # Two groups in one community: one of them has a colour that no community has.
    colours = matched(np.array([2, 2, 2, 2, 2, 2, 0, 0]), known, 4)
    assert sorted(colours)[:2] == [0, 2]
    assert max(colours) >= 4


@pytest.mark.slow
def test_the_rings_are_the_known_groups(pages):
    state, model, frame = pages["network"][0]
    community, known = build("graph", state, model).compute(frame)["nodes"]
    for group in range(4):
        assert len(set(known[model.data.groups == group])) == 1
    assert len(set(known)) == 4
    assert (known == community).mean() >= 0.25
    state, model, frame = pages["no known groups"][0]
    assert len(build("graph", state, model).compute(frame)["nodes"]) == 1


@pytest.mark.slow
def test_the_layout_is_that_of_the_observed_edges(pages):
    _, model, _ = pages["network"][0]
    places = layout(model)
    assert places.shape == (model.data.n_nodes, 2)
    np.testing.assert_allclose(places.min(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(places.max(axis=0), 1)
    assert layout(model) is places, "made once"
    graph = nx.Graph()
    graph.add_nodes_from(range(model.data.n_nodes))
    graph.add_edges_from(map(tuple, model.edges))
    distance = np.linalg.norm(places[:, None] - places[None], axis=2)
    joined = nx.to_numpy_array(graph, nodelist=range(model.data.n_nodes)) == 1
    assert distance[joined].mean() < 0.7 * distance.mean()


def test_a_large_graph_is_shown_in_part(pages):
    _, model, _ = pages["network"][0]

    class Part:
        edges, held, truth, data = model.edges, model.held, model.truth, model.data
        shown = np.arange(0, 40, 2)

    for pairs in (observed(Part), held_edges(Part)):
        assert len(pairs)
        assert np.isin(pairs, Part.shown).all()
    assert observed_matrix(Part).shape == (20, 20)


def test_edges_are_drawn_by_their_probabilities(pages):
    state, model, frame = pages["network"][0]
    view = build("graph", state, model)
    data, seen = view.compute(frame), frame.snapshot()
    strength = dict(zip(map(tuple, observed(model)), data["edges"][0], strict=True))
    (i, j), (a, b) = max(strength, key=strength.get), min(strength, key=strength.get)
    assert seen["P"][i, j] > seen["P"][a, b]
    assert len(data["held"][0]) == model.truth.sum()
    np.testing.assert_array_equal(data["nodes"][0], seen["community"])
    text = " ".join(view.captions(frame).values())
    assert f"{agreement(seen['community'], model.data.groups):.2f} of 1" in text
    state, model, frame = pages["no known groups"][0]
    assert "agreement" not in " ".join(build("graph", state, model).captions(frame).values())


@pytest.mark.parametrize(("page", "key", "framed"), [("network", "adjacency", True), ("bars", "pictures", False)])
def test_images_have_square_cells_in_their_frame(pages, page, key, framed):
    """A matrix has a box around it, of the same size; and nothing is beside the frame or over something else."""
    state, model, _ = pages[page][0]
    p = build(key, state, model).figure
    (around,) = (r.data_source.data for r in p.renderers if r in p.x_range.renderers)
    images = [r for r in p.renderers if isinstance(r.glyph, Image)]
    places = [(r.glyph.x, r.glyph.x + r.glyph.dw, r.glyph.y, r.glyph.y + r.glyph.dh) for r in images]
    for (x0, x1, y0, y1), image in zip(places, images, strict=True):
        down, across = image.data_source.data["image"][0].shape
        assert (x1 - x0) / across == pytest.approx((y1 - y0) / down) and x1 > x0
        assert min(around["x"]) <= x0 and x1 <= max(around["x"])
        assert min(around["y"]) <= y0 and y1 <= max(around["y"])
    assert all(right <= x0 for (_, right, *_), (x0, *_) in pairwise(sorted(places)))
    if framed:
        boxes = [r.glyph for r in p.renderers if isinstance(r.glyph, Quad)]
        assert [(b.left, b.right, b.bottom, b.top) for b in boxes] == places


def test_the_matrix_of_what_was_observed(pages):
    _, model, _ = pages["network"][0]
    matrix = observed_matrix(model)
    np.testing.assert_array_equal(matrix, matrix.T)
    assert (matrix == HELD).sum() == 2 * len(model.held)
    assert (matrix == 1).sum() == 2 * len(model.edges)
    i, j = model.held[0]
    assert matrix[i, j] == HELD


def test_nodes_stand_by_community_the_largest_first():
    community = np.array([2, 0, 2, 1, 2, 0])
    assert in_order(community).tolist() == [0, 2, 4, 1, 5, 3]


def test_both_squares_have_the_same_order(pages):
    state, model, frame = pages["network"][0]
    view = build("adjacency", state, model)
    data, seen = view.compute(frame), frame.snapshot()
    n = len(model.shown)
    order = in_order(seen["community"])
    # The first row of an image is its lowest: there stands the last node of the order.
    drawn = data["probability"][0].reshape(n, n)
    np.testing.assert_allclose(drawn[::-1], seen["P"][np.ix_(order, order)])
    np.testing.assert_allclose(data["observed"][0].reshape(n, n)[::-1], observed_matrix(model)[np.ix_(order, order)])


def test_shades_run_from_one_colour_to_the_other():
    found = shades("#ffffff", "#0072b2", 3)
    assert found == ["#ffffff", "#80b8d8", "#0072b2"]


def test_expected_edges_are_summed_over_pairs():
    rng = np.random.default_rng(1)
    w, r = rng.gamma(1.0, size=(7, 3)), rng.gamma(1.0, size=3)
    brute = [sum(r[k] * w[i, k] * w[j, k] for i in range(7) for j in range(i)) for k in range(3)]
    np.testing.assert_allclose(explained(w, r), brute)


@pytest.mark.slow
def test_communities_stand_in_falling_order(pages):
    for state, model, frame in pages["network"]:
        view = build("rates", state, model)
        data, captions = view.compute(frame), view.captions(frame)
        for i in range(len(frame)):
            place, height = data[f"method {i}"]
            np.testing.assert_array_equal(place, np.arange(1, model.n_communities + 1))
            assert all(a >= b for a, b in pairwise(height))
            assert (height >= LOWEST).all()
            used = (height >= np.log10(0.5)).sum()
            assert captions[view._labels[i].id].endswith(f" {used} of {model.n_communities} in use")
        points = build("weights", state, model).compute(frame)["points"]
        assert len(points[0]) == model.data.n_nodes * model.n_communities
        assert (np.abs(points[0] - np.round(points[0])) <= 0.35).all()


def test_the_elbo_is_of_the_methods_that_have_one(pages):
    found = set()
    for state, model, frame in pages["network"]:
        view = build("elbo", state, model)
        data, captions = view.compute(frame), view.captions(frame)
        for i, choice in enumerate(lane.sampler for lane in state.experiment.lanes):
            assert (f"method {i}" in data) == (view._labels[i].id in captions)
            assert (f"method {i}" in data) == bool(len(frame.snapshot(i).get("elbo", ())))
            if f"method {i}" in data:
                found.add(choice.key)
    assert found
    assert "network_gibbs" not in found
    assert found < set(METHODS)


def test_every_title_on_a_page_is_different():
    for key, model in MODELS.items():
        titles = [
            view.title_for(Experiment.of(key, {samplers_of(key)[0]: {}}))
            for view in VIEWS.values()
            if view.requires in (COLUMNS, SCORES, key)
        ]
        assert len(set(titles)) == len(titles)
        assert model.score_name in [title[:1].lower() + title[1:] for title in titles]

"""Views of laws on spheres: what rings, maps, globes and temperatures say, and that they notice what is wrong."""

import numpy as np
import pytest
from scipy.ndimage import maximum_filter

from sgmcmc_lab.app import link
from sgmcmc_lab.app.live.lanes.densities import LaneRecord
from sgmcmc_lab.app.page.equations import cards
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.app.views import VIEWS
from sgmcmc_lab.app.views.base import Frame, Scene
from sgmcmc_lab.app.views.circle import ARROW, HEIGHT, LONGEST, RING, Circle, arrows, ring
from sgmcmc_lab.app.views.frames import Frames
from sgmcmc_lab.app.views.globe import Globe, graticule, turned
from sgmcmc_lab.app.views.order import Order, slope
from sgmcmc_lab.app.views.recipes import layouts_of
from sgmcmc_lab.app.views.temperature import Means, Temperature, expected
from sgmcmc_lab.app.views.torus import Torus, tick_step
from sgmcmc_lab.samplers import Change, Experiment, Run
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.manifolds import Sphere, Spheres
from sgmcmc_lab.samplers.targets import TARGETS
from tests.helpers.cases import for_each

SPHERES = [key for key, target in TARGETS.items() if target.geometry in (Sphere, Spheres)]
OWN = {2: "circle", 3: "globe", 4: "torus"}


def noisy(variance, corrected=False):
    return {"key": "gaussian_corrected" if corrected else "gaussian", "params": {"variance": variance}}


class Page:
    """Lanes and a view of them. A lane is a sampler, or a sampler with parameters and a gradient."""

    def __init__(self, view, target, *lanes, n_chains=4, coordinate=0):
        dicts = []
        for lane in lanes:
            key, params, gradient = (lane, {}, None) if isinstance(lane, str) else lane
            dicts.append({"sampler": {"key": key, "params": params}} | ({"gradient": gradient} if gradient else {}))
        experiment = Experiment.from_dict({"target": target, "lanes": dicts, "n_chains": n_chains, "seed": 5})
        self.records = [LaneRecord(Run(spec)) for spec in experiment.runs()]
        self.runs = [record.run for record in self.records]
        self.target = self.runs[0].target
        titles = tuple(run.sampler.title for run in self.runs)
        self.view = view(Scene(self.target, titles, coordinate, "steps", False, layouts_of(experiment)))

    def compute(self, steps=0):
        for record in self.records:
            record.run.advance(steps)
            record.record()
        self.frames = Frame(record.frame("steps") for record in self.records)
        self.view.background(self.frames)
        data = self.view.compute(self.frames)
        for name, arrays in data.items():
            assert len(arrays) == len(self.view.feeds[name].columns), name
            assert len({len(array) for array in arrays}) == 1, name
            assert all(np.isfinite(array).all() for array in arrays), name
        return data

    def why(self):
        return "\n".join(self.view.captions(self.frames).values())


# The page


@for_each("target", SPHERES)
def test_choosing_a_sphere_shows_its_own_picture_and_a_sampler_that_fits(target):
    state = AppState()
    state.set_target(target)
    own = OWN[TARGETS[target].dim]
    assert state.experiment.lanes[0].sampler.key == "sggmc"
    assert state.views == [own, "marginal", "ks", "temperature"]
    assert state.shown_views() == state.views
    assert "state" not in state.fitting_views()
    assert set(OWN.values()) & set(state.fitting_views()) == {own}
    assert len(cards(state)) == 2
    # And back: the line has its own views again.
    state.set_target("gaussian")
    assert state.views == ["state", "marginal", "ks"]
    assert not set(OWN.values()) & set(state.fitting_views())


@pytest.mark.slow
def test_a_manifold_without_a_picture_has_the_other_views():
    state = AppState()
    state.set_target("matrix_langevin")
    assert state.views == state.shown_views() == ["frames", "marginal", "ks", "temperature"]
    assert not set(OWN.values()) & set(state.fitting_views())
    # Also one that is larger than any sphere that is drawn.
    state.set_target_param("rows", 6)
    assert state.shown_views() == ["marginal", "ks", "temperature"]


# Frames


@pytest.mark.slow
@pytest.mark.parametrize("p", [1, 2])
def test_the_vectors_of_a_frame_are_at_a_right_angle(p):
    """Fails where a frame is read column by column, or vectors of several chains are joined."""
    page = Page(Frames, {"key": "matrix_langevin", "params": {"vectors": p}}, "sggmc")
    for steps in (0, 30):
        data = page.compute(steps)
        heads = np.array([np.transpose(data[f"heads {k} 0"]) for k in range(p)])
        frame = page.runs[0].position[:1].reshape(1, 3, p)
        np.testing.assert_array_equal(heads, frame.transpose(2, 0, 1))
        assert np.linalg.norm(heads, axis=2) == pytest.approx(1)
        assert p == 1 or (heads[0] * heads[1]).sum(axis=1) == pytest.approx(0, abs=1e-9)
        joined = np.transpose(data["frames 0"]).reshape(1, p + 2, 3)
        assert (joined[:, [0, -1]] == 0).all() and (joined[:, 1:-1] == heads.swapaxes(0, 1)).all()
    assert {name for name in page.view.feeds if name.startswith("draws")} == {f"draws {k} 0" for k in range(p)}
    # Planted fault: the other order of reading.
    wrong = page.runs[0].position.reshape(4, p, 3)
    assert p == 1 or np.abs(np.linalg.norm(wrong, axis=2) - 1).max() > 0.1


@pytest.mark.slow
def test_the_globe_of_frames_has_the_density_of_the_first_vector():
    """The share of draws whose first vector is in a cap: four standard errors."""
    page = Page(Frames, "matrix_langevin", "exact")
    z = page.target.sample(2, 20_000).reshape(-1, 3, 2)[..., 0]
    latitude, longitude = np.deg2rad(np.linspace(-90, 90, 91))[:, None], np.deg2rad(np.linspace(-180, 180, 181))
    density = page.view._table**2 * np.cos(latitude)
    points = np.cos(latitude) * np.cos(longitude)
    weights = density * np.deg2rad(2) ** 2
    weights[:, 0] = 0
    assert weights.sum() == pytest.approx(1, abs=1e-3)
    for cut in (0.3, 0.8):
        share = weights[points > cut].sum()
        assert (z[:, 0] > cut).mean() == pytest.approx(share, abs=4 * np.sqrt(share / 20_000) + 0.01)
        # Planted fault: the second vector has another density.
        second = page.target.sample(2, 20_000).reshape(-1, 3, 2)[..., 1]
        assert abs((second[:, 0] > cut).mean() - share) > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("point", [(0.6, 0.0, 0.8), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, -2.0, 0.0)])
def test_a_frame_starts_with_its_first_vector_where_it_was_clicked(point):
    page = Page(Frames, "matrix_langevin", "sggmc")
    before = page.target.start()
    start = page.view.start_at(point, before)
    frame = start.reshape(3, 2)
    assert frame[:, 0] == pytest.approx(np.array(point) / np.linalg.norm(point))
    assert frame.T @ frame == pytest.approx(np.eye(2))
    page.target.check_start(start)
    assert page.view.start_at((0.0, 0.0, 0.0), before) is None
    assert page.view.start_at((1.0, 0.0), before) is None


def test_views_that_a_person_chose_stay():
    state = AppState()
    state.views = ["marginal", "trace"]
    state.set_target("fisher")
    assert state.views == ["marginal", "trace"]
    # But an empty page helps nobody.
    state.views = ["globe"]
    state.set_target("von_mises")
    assert state.views == ["circle", "marginal", "ks", "temperature"]


@for_each("target", SPHERES)
def test_links_of_spheres_come_back(target):
    state, again = AppState(), AppState()
    state.set_target(target)
    assert link.read_query(again, link.to_query(state)) == []
    assert again.views == state.views and again.experiment == state.experiment
    # A sampler without a velocity has no temperature; its link asks for none.
    state.set_sampler(0, "exact")
    assert link.read_query(again, link.to_query(state)) == []
    assert "temperature" not in again.views


@pytest.mark.slow
@pytest.mark.parametrize("target", SPHERES)
def test_no_view_fails_on_a_sphere(target):
    state = AppState()
    state.set_target(target)
    fitting = state.fitting_views()
    assert {"marginal", "ks", "kl", "trace", "autocorrelation"} <= set(fitting)
    n = state.experiment.make_target().n_values
    for key in (k for k in fitting if k != "moments"):
        page = Page(VIEWS[key], target, "sggmc", "gsgnht", "gmc", "exact", coordinate=n - 1)
        for steps in (0, 1, 2, 300):
            page.compute(steps)
            assert "nan" not in page.why() and "inf" not in page.why()
        # The statistics start again; the views must not trip.
        for run in page.runs:
            run.change(Change(0, run.spec.sampler, run.spec.gradient))
        page.compute()
        page.compute(5)
        page.why()


@pytest.mark.slow
def test_every_sampler_of_the_posterior_begins_stable():
    state = AppState()
    state.set_target("mises_posterior")
    for key in [key for key, cls in SAMPLERS.items() if cls.fits(TARGETS["mises_posterior"])]:
        state.set_sampler(0, key)
        run = Run(state.experiment.runs()[0])
        run.advance(2000)
        angles = run.target.values(run.position)
        assert (np.abs(angles) < 1.0).all(), key
    # Planted fault: a step of its own takes a sampler without a velocity away.
    own = SAMPLERS["geodesic_sgld"]().step_size
    lanes = [{"sampler": {"key": "geodesic_sgld", "params": {"step_size": own}}}]
    run = Run(Experiment.from_dict({"target": "mises_posterior", "lanes": lanes}).runs()[0])
    run.advance(2000)
    assert (np.abs(run.target.values(run.position)) > 1.0).any()


@pytest.mark.slow
def test_a_link_without_parameters_begins_as_the_menu_does():
    for key in [key for key, cls in SAMPLERS.items() if cls.fits(TARGETS["mises_posterior"])]:
        for gradient in SAMPLERS[key].gradients_for(TARGETS["mises_posterior"]):
            state, linked = AppState(), AppState()
            state.set_target("mises_posterior")
            state.set_sampler(0, key)
            state.set_gradient(0, gradient)
            assert link.read_query(linked, f"?target=mises_posterior&lane={key}~{gradient}") == []
            assert linked.experiment.lanes[0].sampler == state.experiment.lanes[0].sampler
    # The values of a link stay.
    link.read_query(linked, "?target=mises_posterior&lane=sggmc(friction:7)~minibatch")
    assert linked.experiment.lanes[0].sampler.values() == {"step_size": 0.002, "friction": 7.0}
    # Elsewhere the samplers' own values are the first.
    link.read_query(linked, "?target=circle_mixture&lane=sggmc~gaussian")
    assert linked.experiment.lanes[0].sampler.values()["step_size"] == SAMPLERS["sggmc"]().step_size


def test_minibatches_begin_with_friction_enough():
    state = AppState()
    state.set_target("mises_posterior")
    state.set_gradient(0, "minibatch_fisher")
    values = state.experiment.lanes[0].sampler.values()
    assert (values["step_size"], values["friction"]) == (0.002, 20.0)
    run = Run(state.experiment.runs()[0])
    run.advance(4000)
    assert run.counts[jit.CLIPPED] < 0.4 * run.statistics.n_draws
    # A value that a person sets is not changed.
    state.set_lane_param(0, "sampler", "friction", 2.5)
    assert state.experiment.lanes[0].sampler.values()["friction"] == 2.5


# The circle


def test_the_ring_is_as_high_as_the_density():
    page = Page(Circle, "circle_mixture", "exact")
    angles = np.linspace(-np.pi, np.pi, 1000)
    density = np.exp(page.target.log_column_density(angles[:, None]))
    radius = np.hypot(*ring(angles, density / density.max()))
    assert radius.max() == pytest.approx(RING + HEIGHT, abs=1e-4)
    # The heavier mode is at −π/3.
    assert angles[radius.argmax()] == pytest.approx(-np.pi / 3, abs=0.02)


@pytest.mark.slow
def test_the_wrapped_histogram_lies_on_the_exact_ring():
    page = Page(Circle, "circle_mixture", "exact", n_chains=100)
    x, y = page.compute(4000)["bars 0"]
    found, angles = np.hypot(x, y), np.arctan2(y, x)
    # The middles of the bars, where two corners of the same height are.
    middles = (page.view._bars[1:] + page.view._bars[:-1]) / 2
    heights = (found[:-1:2] - RING) / HEIGHT
    exact = np.exp(page.target.log_column_density(middles[:, None])) / page.view._top
    assert np.abs(heights - exact).max() < 0.02
    # It is closed, and goes around once.
    assert (x[-1], y[-1]) == pytest.approx((x[0], y[0]))
    assert np.abs(np.unwrap(angles)[-1] - angles[0]) == pytest.approx(2 * np.pi, abs=1e-9)
    # Planted fault: draws of another law are off the ring.
    other = Page(Circle, "circle_mixture", "exact", n_chains=100)
    other.view._top *= 1.3
    x, y = other.compute(4000)["bars 0"]
    assert np.abs((np.hypot(x, y)[:-1:2] - RING) / HEIGHT - exact).max() > 0.15


@pytest.mark.slow
def test_dots_are_on_the_circle_and_arrows_are_tangent():
    page = Page(Circle, "circle_mixture", "sggmc")
    for steps in (0, 1, 200):
        data = page.compute(steps)
        x, y = data["heads 0"]
        assert len(x) == 4 and np.hypot(x, y) == pytest.approx(1.0)
        x0, y0, x1, y1 = data["velocity 0"]
        assert x0 * (x1 - x0) + y0 * (y1 - y0) == pytest.approx(0.0, abs=1e-9)
    v = page.runs[0].momentum
    lengths = np.minimum(ARROW * np.linalg.norm(v, axis=1), LONGEST)
    assert np.hypot(x1 - x0, y1 - y0) == pytest.approx(lengths)


@pytest.mark.slow
def test_no_arrow_without_a_velocity_and_long_ones_are_cut():
    page = Page(Circle, "circle_mixture", "exact")
    assert len(page.compute(10)["velocity 0"][0]) == 0
    x0, y0, x1, y1 = arrows(np.array([[1.0, 0.0]]), np.array([[0.0, 50.0]]))
    assert (x0[0], y0[0]) == (1.0, 0.0) and (x1[0], y1[0]) == pytest.approx((1.0, LONGEST))


def test_the_picture_of_gsgnht_has_no_thermostat_among_its_velocities():
    page = Page(Circle, "circle_mixture", "gsgnht")
    x0, y0, x1, y1 = page.compute(50)["velocity 0"]
    assert x0 * (x1 - x0) + y0 * (y1 - y0) == pytest.approx(0.0, abs=1e-9)


# The torus map


@pytest.mark.slow
def test_the_sides_have_the_exact_marginals():
    page = Page(Torus, "mises_posterior", "exact", n_chains=50)
    data = page.compute(4000)
    for k in (0, 1):
        end, width, top = page.view._axes[1 - k][1], page.view._widths[1 - k], page.view._tops[k]
        along, rise = data[f"side {k} 0"] if k == 0 else data[f"side {k} 0"][::-1]
        density = ((rise - end) / width - 0.02) / 0.3 * top
        places = along[::2], along[1::2]
        exact = np.diff(page.target.columns[k].cdf(np.stack(places)), axis=0)[0] / (places[1] - places[0])
        assert np.abs(density[::2] - exact).max() < 0.04 * exact.max()
        # Planted fault: the other angle's marginal is another one.
        wrong = np.diff(page.target.columns[1 - k].cdf(np.stack(places)), axis=0)[0] / (places[1] - places[0])
        assert np.abs(density[::2] - wrong).max() > 0.3 * exact.max()


@pytest.mark.slow
def test_the_map_has_the_paper_s_two_modes():
    page = Page(Torus, "mises_posterior", "exact")
    angles = np.linspace(-0.6, 0.6, 121)
    grid = np.stack(np.meshgrid(angles, angles, indexing="ij"), axis=-1)
    density = np.exp(page.target.log_column_density(grid))
    # A mode is the highest within .1 of it.
    modes = angles[np.argwhere(density == maximum_filter(density, 21))]
    modes = modes[np.abs(modes).max(axis=1) < 0.5]
    assert len(modes) == 2
    (a0, a1), (b0, b1) = page.view._axes
    assert ((modes[:, 0] > a0) & (modes[:, 0] < a1) & (modes[:, 1] > b0) & (modes[:, 1] < b1)).all()


@pytest.mark.slow
def test_paths_do_not_cross_the_seam():
    page = Page(Torus, "mises_posterior", "exact")
    view = page.view
    view._axes = [(-np.pi, np.pi)] * 2
    values = np.array([[3.0, 0.0], [3.1, 0.1], [-3.1, 0.2], [-3.0, 0.3]])
    x0, _, x1, _ = view._path(0, values)
    assert list(zip(x0, x1, strict=True)) == [(3.0, 3.1), (-3.1, -3.0)]
    # The next frame goes on where this one ended.
    x0, y0, x1, y1 = view._path(0, np.array([[-2.9, 0.4]]))
    assert (x0[0], y0[0], x1[0], y1[0]) == (-3.0, 0.3, -2.9, 0.4)


def test_ticks_are_round():
    assert [tick_step(w) for w in (0.6, 1.2, 6.28)] == pytest.approx([0.1, 0.2, 2.0])


# The globe


def test_the_eye_sees_what_it_is_above():
    for turn, tilt in ((0, 0), (70, 30), (-120, -60), (10, 90)):
        a, b = np.deg2rad([turn, tilt])
        eye = np.array([[np.cos(b) * np.cos(a), np.cos(b) * np.sin(a), np.sin(b)]])
        assert turned(eye, turn, tilt)[0] == pytest.approx([0, 0, 1], abs=1e-12)
        # The north is up, and the east to the right.
        assert turned(np.array([[0, 0, 1.0]]), turn, tilt)[0] == pytest.approx([0, np.cos(b), np.sin(b)], abs=1e-12)
        assert turned(np.array([[-np.sin(a), np.cos(a), 0]]), turn, tilt)[0] == pytest.approx([1, 0, 0], abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["fisher", "sphere_mixture", "bingham"])
def test_the_picture_is_the_density(target):
    page = Page(Globe, target, "exact")
    turn, tilt = 35.0, -20.0
    image = page.view.picture(turn, tilt)
    side = len(image)
    points = page.target.sample(1, 500)
    seen = turned(points, turn, tilt)
    seen, points = seen[seen[:, 2] > 0.2], points[seen[:, 2] > 0.2]
    i, j = (((seen[:, k] + 1) / 2 * side).astype(int) for k in (0, 1))
    exact = np.sqrt(np.exp(page.target.log_density(points)))
    assert np.abs(image[j, i] - exact).max() < 0.06 * exact.max()
    # Planted fault: another tilt is another picture.
    wrong = page.view.picture(turn, tilt + 40)[j, i]
    assert np.nanmax(np.abs(wrong - exact)) > 0.2 * exact.max()
    assert np.isnan(image[0, 0]) and np.isfinite(image[side // 2, side // 2])


def test_the_first_view_is_of_the_mode():
    page = Page(Globe, "fisher", "exact")
    turn, tilt = page.view.turn.value, page.view.tilt.value
    assert turned(page.target.centres, turn, tilt)[0, 2] > 0.8


@pytest.mark.slow
def test_points_of_the_globe_are_on_the_sphere():
    page = Page(Globe, "bingham", "sggmc", "gmc")
    data = page.compute(400)
    for name in ("draws 0", "heads 0", "draws 1", "heads 1"):
        assert np.linalg.norm(np.stack(data[name]), axis=0) == pytest.approx(1.0)
    lines = graticule()
    good = np.isfinite(lines).all(axis=1)
    assert np.linalg.norm(lines[good], axis=1) == pytest.approx(1.0)


# The temperature


def settle(page, frames=400, steps=25):
    for _ in range(frames):
        page.compute(steps)
    return page.view.heat


@pytest.mark.slow
def test_ignored_noise_heats_sggmc_and_not_gsgnht():
    # The paper's toy with V = 400: 1 + Vε/2C = 1.8.
    params = {"step_size": 0.01, "friction": 2.5}
    lanes = [("sggmc", params, noisy(400.0)), ("gsgnht", params, noisy(400.0)), ("sggmc", params, noisy(400.0, True))]
    page = Page(Temperature, "circle_mixture", *lanes, n_chains=40)
    assert [expected(run) for run in page.runs] == pytest.approx([1.8, 1.8, 1.0])
    page.compute(2000)
    for run in page.runs:
        run.change(Change(0, run.spec.sampler, run.spec.gradient))
    (hot, _), (fine, friction), (corrected, _) = settle(page)
    assert hot.mean == pytest.approx(1.8, abs=0.08)
    assert fine.mean == pytest.approx(1.0, abs=0.05)
    assert friction.mean == pytest.approx(1.8, abs=0.12)
    assert corrected.mean == pytest.approx(1.0, abs=0.05)
    said = page.why()
    assert "expected 1.80" in said and "C 2.5" in said and "set to 0" not in said


@pytest.mark.slow
def test_the_degrees_of_freedom_are_the_manifold_s():
    # On two circles m = 2, on S² too: without noise ‖v‖²/m is 1 there. Planted fault: by d it would be 1/2, and 2/3.
    for target, step in (("mises_posterior", 0.005), ("fisher", 0.05)):
        page = Page(Temperature, target, ("gsgnht", {"step_size": step}, None), n_chains=40)
        page.compute(1000)
        ((hot, _),) = settle(page)
        assert hot.mean == pytest.approx(1.0, abs=0.1)


@pytest.mark.slow
def test_clipping_is_said():
    params = {"step_size": 0.01, "friction": 2.5}
    page = Page(Temperature, "circle_mixture", ("sggmc", params, noisy(1000.0, True)))
    page.compute(100)
    # 2C = 5 < Vε = 10: nothing is injected, and the noise alone is twice too hot.
    assert page.runs[0].counts[jit.CLIPPED] == page.runs[0].statistics.n_draws
    assert "injected noise set to 0 in 100% of steps" in page.why()
    assert expected(page.runs[0]) == pytest.approx(2.0)
    circle = Page(Circle, "circle_mixture", ("sggmc", params, noisy(1000.0, True)))
    circle.compute(100)
    assert "injected noise set to 0 in 100% of steps" in circle.why()
    right = Page(Temperature, "circle_mixture", ("sggmc", params | {"step_size": 0.005}, noisy(1000.0, True)))
    right.compute(100)
    assert "set to 0" not in right.why()


def test_means_start_again_where_the_statistics_do():
    means = Means()
    means.set(5.0, 10, 0)
    means.set(6.0, 20, 0)
    assert (means.mean, means.recent) == (6.0, 6.0)
    for k in range(3, 41):
        means.set(6.0 + 1 / k, 10 * k, 0)
    # Over the latest 25 frames alone.
    assert means.recent == pytest.approx((400 * (6 + 1 / 40) - 150 * (6 + 1 / 15)) / 250)
    means.set(1.0, 5, 100)
    assert (means.mean, means.recent) == (1.0, 1.0)


def test_a_pause_adds_nothing():
    page = Page(Temperature, "von_mises", "sggmc")
    page.compute(10)
    mean = page.view.heat[0][0].mean
    assert page.compute(0) == {}
    assert page.view.heat[0][0].mean == mean == page.runs[0].temperature


def test_a_temperature_is_said_once_there_is_one():
    """Not before the first step, when it would be 0, and never of a sampler without a velocity."""
    page = Page(Temperature, "von_mises", "sggmc", "gsgnht", "exact")
    page.compute()
    assert "‖v‖²" not in page.why()
    page.compute(10)
    lines = [line for line in page.why().splitlines() if "‖v‖²" in line]
    assert len(lines) == 2
    for line, run, means in zip(lines, page.runs, page.view.heat, strict=False):
        assert line.startswith(f"{run.sampler.title}  ‖v‖²/m {means[0].mean:.2f}")


def test_only_samplers_with_a_velocity_have_a_temperature():
    for keys, fits in ((["sggmc"], True), (["gmc", "gsgnht_euler"], True), (["gmc"], False), (["exact"], False)):
        lanes = [{"sampler": key} for key in keys]
        assert Temperature.fits(Experiment.from_dict({"target": "von_mises", "lanes": lanes})) is fits
    # On the line they have one, too.
    page = Page(Temperature, "gaussian", "gsgnht", "sgld")
    assert set(page.compute(10)) >= {"temperature 0", "thermostat 0"}
    assert "temperature 1" not in page.compute(10)


# The order


def test_slopes_are_found_and_noise_is_not_taken_for_one():
    steps, rng = np.geomspace(0.05, 0.4, 7), np.random.default_rng(1)
    for order in (1, 2):
        error = np.full(7, 1e-4)
        found, uncertain = slope(steps, 0.3 * steps**order + error * rng.standard_normal(7), error)
        assert found == pytest.approx(order, abs=4 * uncertain) and uncertain < 0.05
    assert slope(steps, error * rng.standard_normal(7), error) is None
    # A step that blows up is no part of a power law; the first of them is the last but one here.
    blown = 0.3 * steps * np.array([1, 1, 1, 1, 1, 60, 60])
    assert slope(steps, blown, error)[0] == pytest.approx(1, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sampler", "target", "step", "order"),
    # Laws and steps where the bias is large enough for a short run, and small enough for its first term alone.
    [("sggmc", "von_mises", 0.1, 2.0), ("sggmc_euler", "circle_mixture", 0.02, 1.0)],
)
def test_euler_is_of_first_order_and_aboba_of_second(sampler, target, step, order):
    page = Page(Order, target, (sampler, {"step_size": step}, None))
    data = page.compute()
    while len(page.view._rungs[0][-1].means) < 150:
        data = page.compute()
    k = page.view._chosen
    fit, kept = page.view._found[0].slope(k)
    found, uncertain = fit
    assert found == pytest.approx(order, abs=0.3 + 2 * uncertain) and uncertain < 0.2
    assert len(data["dots 0"][0]) == kept.sum() >= 4 and f"slope {found:.2f}" in page.why()

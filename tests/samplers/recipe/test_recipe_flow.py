"""The process of a recipe on the grid, held against its symbolic form, against chains and against closed forms.

And the views that show it. Seeds are fixed; where chance decides, the test states how often a right program would fail.
"""

from dataclasses import replace

import numpy as np
import pytest

from sgmcmc_lab.app.live.lanes.densities import LaneRecord
from sgmcmc_lab.app.views.base import Scene
from sgmcmc_lab.app.views.curl import STRENGTHS, Curl, closed_form
from sgmcmc_lab.app.views.evolution import CHAINS, FRAMES, GAPS, Evolution, Simulation, chance, divergence, lane_spec
from sgmcmc_lab.app.views.modes import Modes
from sgmcmc_lab.app.views.planes import Process, process_of
from sgmcmc_lab.app.views.spectrum import SpectrumView, linear, mixing
from sgmcmc_lab.app.views.stationarity import Stationarity
from sgmcmc_lab.samplers import Change, Experiment, Run
from sgmcmc_lab.samplers.diagnostics import autocorrelation
from sgmcmc_lab.samplers.gradients import GRADIENTS
from sgmcmc_lab.samplers.kernels.recipe import parameters_of
from sgmcmc_lab.samplers.recipe import fokker_planck
from sgmcmc_lab.samplers.recipe.flow import Flow, effective
from sgmcmc_lab.samplers.recipe.presets import PRESETS, preset
from sgmcmc_lab.samplers.targets import TARGETS
from tests.helpers.cases import for_each
from tests.helpers.naive_law import wrong_potential
from tests.helpers.statistics import critical, exact_start

TARGETS_2 = {"double_well": {}, "quartic": {}, "gamma": {"shape": 2.5}}
NAIVE = ("naive_sghmc", "naive_sgrhmc")


def target_of(key, **params):
    return TARGETS[key](**{**TARGETS_2.get(key, {}), **params})


def combinations(right):
    """The presets with one or two coordinates, on the targets that they fit."""
    for key in TARGETS_2:
        target = target_of(key)
        for name, cls in PRESETS.items():
            small = len(preset(name, target.dim).layout.names) <= 2 if target.dim in cls.dims else False
            if small and (name in NAIVE) != right and (not cls.positive or target.support == "positive"):
                yield pytest.param(key, name, id=f"{key}-{name}")


def lane(name, **values):
    """A lane with a preset's recipe; ``values`` are other parameters of the sampler, ``gradient`` its gradient."""
    return {"name": name, **values}


def records(target, *lanes, n_chains=4, **target_params):
    params = {**TARGETS_2.get(target, {}), **target_params}
    made, out = target_of(target, **target_params), []
    for entry in lanes:
        given = dict(entry)
        recipe = PRESETS[given.pop("name")].recipe(made.dim, made.formula())
        gradient = given.pop("gradient", None)
        out.append({"sampler": {"key": "recipe", "params": {**parameters_of(recipe), **given}}})
        if gradient:
            out[-1]["gradient"] = gradient
    experiment = Experiment.from_dict({"target": {"key": target, "params": params}, "lanes": out, "n_chains": n_chains})
    return [LaneRecord(Run(spec)) for spec in experiment.runs()]


def scene_of(made, coordinate=0):
    layouts = tuple(record.run.sampler.layout for record in made)
    titles = tuple(f"Recipe {i + 1}" for i in range(len(made)))
    return Scene(made[0].run.target, titles, coordinate, "steps", False, layouts)


def frames(made, steps=0):
    for record in made:
        record.run.advance(steps)
    return [record.frame("steps") for record in made]


def sent(view, data):
    """The data, after a check that the bus can carry them."""
    for name, arrays in data.items():
        assert len(arrays) == len(view.feeds[name].columns)
        assert len({len(array) for array in arrays}) == 1
        assert all(array.ndim == 1 and np.isfinite(array).all() for array in arrays)
    return data


def seen(view, made, steps=0):
    """The data and the text of a view after its work."""
    now = frames(made, steps)
    data = {}
    for _ in range(8):
        view.background(now)
        data |= sent(view, view.compute(now))
    return data, " ".join(view.captions(now).values())


def off_balance(flow):
    """The change of e^{−H} in a unit of time, over what flows in and out of the busiest cell."""
    p = flow.wanted.ravel()
    return np.abs(flow.matrix @ p).max() / (abs(flow.matrix) @ p).max()


# The law of the grid


@for_each(("key", "name"), lambda: combinations(True))
def test_the_grid_keeps_the_law_of_every_right_preset(key, name):
    target = target_of(key)
    flow = Flow(preset(name, target.dim, target.formula()), target)
    assert flow.right
    assert off_balance(flow) < 1e-12
    # The symbolic check is another way to the same end.
    assert flow.recipe.residual.is_zero or key == "gamma" or name == "gsgrhmc"


@for_each(("key", "name"), lambda: combinations(False))
def test_the_grid_shows_that_naive_presets_lose_the_law(key, name):
    target = target_of(key)
    noise = GRADIENTS[PRESETS[name].gradient]().noise().variance
    flow = Flow(effective(preset(name, target.dim, target.formula()), 0.1, noise), target)
    assert not flow.right
    assert off_balance(flow) > 1e-6
    assert not flow.recipe.residual.is_zero


def test_the_law_of_the_grid_without_gamma_is_the_closed_form():
    target = target_of("double_well")
    flow = Flow(preset("naive_sgrhmc", 1, target.formula()), target)
    theta = flow.law.sum(axis=1) * flow.grid.volume
    wrong = np.exp(-wrong_potential(flow.recipe).evaluate(theta=flow.grid.centres[0]))
    wrong /= wrong.sum()
    assert float((theta * np.log(theta / wrong)).sum()) < 1e-5
    right = flow.wanted.sum(axis=1) * flow.grid.volume
    assert float((right * np.log(right / theta)).sum()) > 1e-3


@for_each("cells", [60, 80, 96, 108, 120])
def test_the_gap_of_a_wrong_drift_does_not_depend_on_the_grid(cells):
    target = target_of("double_well")
    found = Flow(preset("naive_sgrhmc", 1, target.formula()), target, cells).spectrum
    assert found.gap == pytest.approx(0.317, abs=1.5e-3)


# Predicted and measured autocorrelation

WELL = {
    # ε is small against all times of the wells, the fastest of which is 1/8.
    "sgld": {"step_size": 0.004},
    # With D = 1 it would be SGLD.
    "sgfs": {"step_size": 0.006, "diffusion_entries": ("0.5",)},
    "sghmc": {"step_size": 0.02, "scheme": "semi_implicit"},
    "gsgrhmc": {"step_size": 0.005, "scheme": "semi_implicit"},
    "naive_sgrhmc": {"step_size": 0.005, "scheme": "semi_implicit"},
}
TOLERANCE = 0.05
FALSE_ALARM = 1e-3
"""How often one of the five would fail by chance if the prediction were exact, at most."""


def decay(name, chains=6000, lengths=10, seed=3, **changes):
    """The decay time t/−log ρ at t = 1/gap: measured over predicted, and its standard error.

    Of chains in their stationary law: ρ is a ratio of means over chains and over all starts, and its error is that
    across the independent chains.
    """
    run = records("double_well", lane(name, **WELL[name]), n_chains=chains)[0].run
    step = run.sampler.step_size
    recipe = replace(run.sampler.recipe(run.target), **changes)
    found = mixing(Process(recipe, step, 0.0, run.target), 0)
    every = round(0.5 / found.gap / step)
    exact_start(run, seed)
    run.advance(every * (6 if name in NAIVE else 1))
    kept = []
    for _ in range(2 * lengths + 1):
        kept.append(run.position[:, 0].copy())
        run.advance(every)
    assert run.divergence is None
    kept = np.array(kept)
    products, squares = (kept[:-2] * kept[2:]).mean(axis=0), (kept**2).mean(axis=0)
    rho = products.mean() / squares.mean()
    error = (products - rho * squares).std(ddof=1) / np.sqrt(chains) / squares.mean()
    predicted = np.interp(2 * every * step, found.times, found.rho)
    return np.log(predicted) / np.log(rho), error / rho / abs(np.log(rho))


@pytest.mark.slow
@pytest.mark.parametrize("name", WELL)
def test_the_measured_decay_is_the_predicted_one_within_5_percent(name):
    ratio, error = decay(name)
    assert abs(ratio - 1) < TOLERANCE, (ratio, error)
    # The errors are small enough for these rates: of a false alarm, and of a miss where the decay is a tenth off.
    assert error * critical(FALSE_ALARM, len(WELL)) < TOLERANCE


@pytest.mark.slow
def test_a_prediction_with_another_friction_is_refused():
    other = preset("sghmc", 1, "theta^4 - 2*theta^2", friction=2.5)
    ratio, error = decay("sghmc", diffusion=other.diffusion)
    assert abs(ratio - 1) > TOLERANCE + 3 * error


# The optimal curl


@pytest.mark.slow
def test_the_gap_against_the_strength_of_the_curl_is_the_closed_form():
    target = target_of("correlated_gaussian", rho=0.8)
    best = fokker_planck.optimal_curl(target.covariance)
    gaps = []
    for share in (0.0, 0.5, 1.0, 1.5):
        q = share * best
        recipe = preset("curl_sgld", 2, target.formula(), curl_strength=float(q))
        process = Process(recipe, 0.01, 0.0, target)
        exact = linear(process).gap
        assert exact == pytest.approx(
            fokker_planck.gaussian_gap(target.covariance, np.eye(2), q * np.array([[0, 1], [-1, 0]]))
        )
        gaps.append(mixing(process, 0).gap)
        assert gaps[-1] == pytest.approx(exact, rel=0.05 if share == 1.0 else 0.02)
    assert gaps[0] < gaps[1] < gaps[2]
    # Beyond the best the gap stays what it is.
    assert gaps[3] == pytest.approx(fokker_planck.optimal_curl_gap(target.covariance), rel=0.02)
    found = linear(Process(preset("curl_sgld", 2, target.formula()), 0.01, 0.0, target)).best
    assert found == pytest.approx((fokker_planck.optimal_curl_gap(target.covariance), best))


# Views


def residual_of(view, made):
    """The largest value of the image or the curve of the first lane, and the text."""
    data, text = seen(view, made)
    if "curve 0" in data:
        return np.abs(data["curve 0"][1]).max(), text
    # An image of zeros is what the page begins with.
    (values,) = data.get("residual 0", (np.zeros(1),))
    return np.abs(values).max(), text


@for_each(
    ("target", "name"),
    [
        ("double_well", "sgld"),
        ("double_well", "sghmc"),
        ("double_well", "sgnht"),
        ("double_well", "gsgrhmc"),
        ("quartic", "curl_sgld"),
        ("quartic", "gsgrhmc"),
        ("gamma", "sgrld"),
    ],
)
def test_stationarity_is_zero_for_right_recipes(target, name):
    made = records(target, lane(name))
    top, text = residual_of(Stationarity(scene_of(made)), made)
    assert top == 0
    assert "0: e⁻ᴴ is stationary" in text


@for_each(
    ("target", "entry"),
    [
        ("double_well", lane("gsgrhmc", gamma=False)),
        ("quartic", lane("gsgrhmc", gamma=False)),
        ("gamma", lane("sgrld", gamma=False)),
        ("double_well", lane("sghmc", dissipation=False)),
        ("double_well", lane("sghmc", gradient={"key": "gaussian", "params": {"variance": 40.0}})),
    ],
)
def test_stationarity_is_not_zero_for_wrong_ones(target, entry):
    made = records(target, entry)
    top, text = residual_of(Stationarity(scene_of(made)), made)
    assert top > 0.5 or target == "gamma"
    assert "not stationary" in text


def test_stationarity_is_zero_again_when_the_noise_of_the_gradient_is_subtracted():
    gradient = {"key": "gaussian_corrected", "params": {"variance": 40.0}}
    made = records("double_well", lane("sghmc", gradient=gradient))
    assert residual_of(Stationarity(scene_of(made)), made)[0] == 0


def test_stationarity_follows_an_edit():
    made = records("double_well", lane("gsgrhmc"))
    view = Stationarity(scene_of(made))
    assert residual_of(view, made)[0] == 0
    run = made[0].run
    values = {**run.spec.sampler.values(), "gamma": False}
    run.change(Change(0, type(run.spec.sampler)("recipe", tuple(values.items())), run.spec.gradient))
    assert residual_of(view, made)[0] > 0.5
    # And nothing is sent twice.
    assert view.compute(frames(made)) == {}


def test_stationarity_marks_where_d_is_negative():
    made = records("double_well", lane("sgld", diffusion_entries=("1 - theta^2",)))
    data, text = seen(Stationarity(scene_of(made)), made)
    x = data["bad 0"][0]
    assert len(x) and (np.abs(x) > 1).all()
    assert "positive semidefinite" in text and "theta" in text


def run_of(made, edit=None):
    """A simulation of the first lane, with a recipe of its own for the exact density."""
    process = process_of(frames(made)[0])
    if edit is not None:
        process = process._replace(recipe=edit(process.recipe))
    return Simulation(process, lane_spec(made[0].run, CHAINS))


def apart(simulation, pictures):
    """KL(chains‖exact) less what chance alone makes, at some pictures."""
    out = []
    while len(out) < max(pictures) + 1:
        found = simulation.work()
        if found is not None:
            assert found.exact.sum() == pytest.approx(1, abs=1e-9)
            out.append(divergence(found.chains, found.exact) - chance(found.exact))
    return np.array(out)[list(pictures)]


# The divergence of 10,000 draws in some dozens of blocks is chance ± about a third of it (a χ² over 2n): .003 is far
# beyond that, and what Euler's step adds is below it at these ε.
EVOLUTIONS = [
    ("double_well", lane("sgld", step_size=0.002)),
    ("double_well", lane("sghmc", step_size=0.004, scheme="semi_implicit")),
    ("quartic", lane("curl_sgld", step_size=0.002)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("target", "entry"), EVOLUTIONS)
def test_the_exact_density_and_the_chains_agree(target, entry):
    assert (apart(run_of(records(target, entry)), (0, 2, 6, 14)) < 3e-3).all()


@pytest.mark.slow
@pytest.mark.parametrize(("target", "entry"), EVOLUTIONS[1:])
def test_a_curl_with_the_other_sign_is_seen(target, entry):
    def flipped(recipe):
        return replace(recipe, curl=tuple(tuple(-e for e in row) for row in recipe.curl), typed=())

    # The blob starts at rest: both signs agree at t = 0 and part from there.
    found = apart(run_of(records(target, lane(**entry)), flipped), (0, 2, 6, 14))
    assert found[0] < 3e-3
    assert found[1:].max() > 0.02


def test_the_pictures_end_when_the_slowest_mode_has_decayed():
    """To a per cent, held against the rate of a grid that is twenty times as fine."""
    process = process_of(frames(records("double_well", lane("sgld", step_size=0.002)))[0])
    rate = Flow(process.recipe, process.target, 800).spectrum.gap
    steps = run_of(records("double_well", lane("sgld", step_size=0.002)))._length(process)
    assert steps * process.step_size * rate == pytest.approx(GAPS, rel=0.01)


def test_evolution_starts_again():
    made = records("double_well", lane("sgld", step_size=0.05))
    simulation = run_of(made)
    steps = []
    while len(steps) < FRAMES + 4:
        found = simulation.work()
        if found is not None:
            steps.append(found.steps)
    assert steps[: FRAMES + 1] == [simulation.every * k for k in range(FRAMES + 1)]
    assert steps[FRAMES + 1] == 0


def test_evolution_rests_when_the_page_does():
    made = records("double_well", lane("sgld"))
    view = Evolution(scene_of(made))
    data, text = seen(view, made, 1)
    assert "KL chains" in text and {"bars", "curve"} <= set(data)
    assert not view.background(frames(made))
    assert view.background(frames(made, 1))


@pytest.mark.slow
@pytest.mark.parametrize(("target", "name"), [("quartic", "curl_sgld"), ("double_well", "sghmc")])
def test_the_pictures_of_the_evolution_are_where_the_chains_are(target, name):
    """Means and spreads, read off the picture. Fails where an image is moved by half of a cell, is a tenth too wide, or
    has its coordinates exchanged. The mean of 10,000 chains has an error of a fiftieth of a cell."""
    made = records(target, lane(name))
    view = Evolution(scene_of(made))
    now = frames(made, 1)
    while not view.background(now):
        pass
    data, run = sent(view, view.compute(now)), view._simulation.run
    z = np.concatenate([run.position, run.momentum], axis=1)
    for image in view._images:
        glyph, (n_x, n_y) = image.renderer.glyph, image.cells
        masses = data[image.name][0].reshape(n_y, n_x) ** 2
        x = glyph.x + glyph.dw * (np.arange(n_x) + 0.5) / n_x
        y = glyph.y + glyph.dh * (np.arange(n_y) + 0.5) / n_y
        for chains, places, shares in zip(z.T, (x, y), (masses.sum(axis=0), masses.sum(axis=1)), strict=True):
            mean = np.average(places, weights=shares)
            assert abs(mean - chains.mean()) < 0.1 * (places[1] - places[0])
            assert np.average((places - mean) ** 2, weights=shares) ** 0.5 == pytest.approx(chains.std(), rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("cls", [Stationarity, Evolution, SpectrumView, Modes])
@pytest.mark.parametrize(
    ("target", "names"),
    [
        ("double_well", ("sgld", "sghmc")),
        ("double_well", ("hmc",)),
        ("double_well", ("naive_sghmc",)),
        ("double_well", ("sgnht",)),
        ("quartic", ("sghmc", "sgld", "curl_sgld")),
        ("gamma", ("sgrld",)),
    ],
)
def test_no_recipe_makes_a_view_fail(cls, target, names):
    made = records(target, *(lane(name) for name in names))
    view = cls(scene_of(made))
    assert any("computing" in text for text in view.captions(frames(made)).values()) or view._text.text == ""
    _, text = seen(view, made, 20)
    assert text and "nan" not in text and "inf" not in text and "computing" not in text


@pytest.mark.slow
def test_the_spectrum_view_shows_both_curls_and_what_was_measured():
    made = records("correlated_gaussian", lane("curl_sgld", step_size=0.02))
    view = SpectrumView(scene_of(made))
    data, text = seen(view, made, 20_000)
    (rates, turns), (plain, flat) = data["values with 0"], data["values without 0"]
    assert rates.min() > 1.5 * plain.min() and np.abs(flat).max() < 1e-6 and len(turns) >= 6
    _, rho = autocorrelation.autocorrelation(made[0].run.statistics, 0)
    x, y = data["measured 0"]
    assert np.array_equal(y, rho[: len(y)]) and x[-1] <= data["lags"][0][1]
    line = np.interp(x, *data["predicted with 0"])
    assert np.abs(line - y)[x < 40].max() < 0.1
    assert "gap 1.12" in text and "(Q = 0: 0.526)" in text and "best |q| = 2.06 has 5.26" in text


def test_the_effective_diffusion_counts_what_the_gradient_adds():
    target = target_of("double_well")
    recipe = preset("sghmc", 1, target.formula())
    wider = effective(recipe, 0.1, 4.0)
    assert wider.D[1][1].constant == pytest.approx(1 + 0.1 / 2 * 4)
    assert [str(f) for f in wider.drift] == [str(f) for f in recipe.drift]


@pytest.mark.slow
def test_the_gap_against_the_curl_has_the_closed_form_beside_it():
    made = records("correlated_gaussian", lane("curl_sgld", step_size=0.02))
    view = Curl(scene_of(made))
    now = frames(made)
    data, widths = {}, set()
    for _ in range(STRENGTHS + 3):
        view.background(now)
        data |= sent(view, view.compute(now))
        ((left, right),), ((bottom, top),) = data["x"], data["y"]
        # Both signs have the same room, and all that is drawn is inside.
        assert left == -right and bottom == 0
        for name in ("found 0", "curve 0", "best 0", "now 0"):
            x, y = data[name]
            assert (np.abs(x) <= right).all() and (y >= 0).all() and (y < top).all(), name
        # The level of the best curl is a line from one side to the other.
        assert data["best 0"][0].tolist() == [left, right]
        widths.add(right)
    # Strengths to come have their room from the start, so that the axis stands still.
    assert len(widths) == 1
    strengths, gaps = data["found 0"]
    assert len(strengths) == STRENGTHS + 1
    closed = np.interp(strengths, *data["curve 0"])
    # The closed form has a kink, between two points of the curve, at the best strength.
    smooth = np.abs(np.abs(strengths) - 2.06) > 0.2
    assert np.abs(gaps / closed - 1)[smooth].max() < 0.05
    assert data["now 0"][0] == [1.0] and data["now 0"][1][0] == pytest.approx(1.12, rel=0.05)
    assert data["best 0"][1][0] == pytest.approx(5.26, abs=0.01)
    # Planted fault: curls of twice the strength.
    wrong = closed_form(linear(process_of(now[0])), 2 * strengths)
    assert np.abs(gaps / wrong - 1)[smooth].max() > 0.3
    assert "5.26" in view.captions(now)[view._text.id]

"""The engine in a browser makes the draws that it makes in Python; ``python -m tests.parity`` compares every pair.

Here are few pairs, in which each target, sampler and gradient stands twice, and what may happen to a run on its way.
Each fault that is planted, in a description or in the text of a script, must be found.
"""

import base64
import functools
import math
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from numpy.random import SFC64, Generator, SeedSequence

from sgmcmc_lab.app.live_page import live_page
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.lanes import Change
from sgmcmc_lab.samplers.settings import Settings
from sgmcmc_lab.samplers.targets.posterior import PRESETS
from tests.browser import hosts, until
from tests.browser.hosts import HELD, Host, Job, compare
from tests.browser.live import MOVES, SETTLED, few_figures
from tests.parity import Pair, compared, pairs

EACH = 2
"""How often each target, sampler and gradient is in one of the pairs."""
APART = ("posterior",)
"""Targets that are not: what happens to a run is tried on one whose exact answers are there sooner."""
LARGE, MEMORY = "logistic_large", "saga"
"""A target with so many data points that an estimator which stores a gradient for each makes tests wait."""


def covering() -> list[Pair]:
    """Pairs in which each target, sampler and gradient is :data:`EACH` times, the rarest first."""
    every = [
        pair for pair in pairs() if pair.target not in APART and not (pair.target == LARGE and MEMORY in pair.gradient)
    ]
    counts: Counter[tuple[str, str]] = Counter()
    wanted = {key for pair in every for key in vars(pair).items()}
    most = {key: min(EACH, sum(key in vars(pair).items() for pair in every)) for key in wanted}
    chosen: list[Pair] = []
    while any(counts[key] < most[key] for key in wanted):
        best = max(
            (pair for pair in every if pair not in chosen),
            key=lambda pair: sum(max(most[key] - counts[key], 0) for key in vars(pair).items()),
        )
        chosen.append(best)
        counts.update(vars(best).items())
    return chosen


def spec(target, sampler, gradient="", n_steps=200, n_chains=4, **more) -> RunSpec:
    return RunSpec.of(target, sampler, gradient, n_steps=n_steps, n_chains=n_chains, **more)


def to(target, sampler, gradient="", of_target=False, **more) -> Change:
    """A change to the parameters of another spec."""
    other = spec(target, sampler, gradient, **more)
    return Change(0, other.sampler, other.gradient, other.target if of_target else None)


PLANE = "theta1^2/2 + theta2^2/2 + theta1^2*theta2^2/4"
CURL = {"layout": "theta_r", "curl_entries": ("-1",)}
BAD = {"diffusion_entries": ("-1",)}
TYPED_D = {"diffusion_entries": ("1 + theta^2/4",), "layout": "theta"}
TYPED_DQ = {"layout": "theta_r", "diffusion_entries": ("0", "0", "1 + theta^2/9"), "curl_entries": ("-1 - theta^2/9",)}
REFRESHED = {"layout": "theta_r", "diffusion_entries": ("0", "0", "0"), "curl_entries": ("-1",), "refresh": 2.0}
FALLING = {"key": "polynomial", "params": {"exponent": 0.5, "offset": 3.0}}
FLAT = {"key": "polynomial", "params": {"exponent": 0.34, "offset": 1e4}}
COUNTS = PRESETS["counts"]._asdict() | {"table": "counts"}
NARROW = {**COUNTS, "prior": "normal_lpdf(a, 0, 1) + normal_lpdf(b, 0, 0.1)"}
POSTERIOR = {"target": "posterior", "gradient": "minibatch"}
START = (0.75, 0.5)


def placed(described):
    """A person's start and throw, which are in θ and not where the chains move."""
    described |= {"theta": START, "velocity": START[::-1], "momentum": None}
    described["start"]["values"] = [0.0, 0.0]


CHANGES = (
    to("gaussian", "sghmc", sampler_params={"step_size": 0.2})._replace(step=7),
    to("gaussian", "sghmc", of_target=True, target_params={"sd": 2.0})._replace(step=40),
    to("gaussian", "sghmc", sampler_params={"friction": 3.0})._replace(step=40),
)
JOBS = {
    "changes that the spec has": Job(replace(spec("gaussian", "sghmc", burn_in=10), changes=CHANGES), [5, HELD, 30, HELD, 100, HELD]),
    "a posterior from a place in θ": Job(
        spec(**POSTERIOR, sampler="sghmc", target_params=COUNTS, start=START, momentum=START[::-1]), [HELD, 50, HELD], placed
    ),
    "a sampler's parameters": Job(
        spec("quartic", "sgld"),
        [50, HELD, to("quartic", "sgld", sampler_params={"step_size": 0.1}), HELD, 50, HELD],
    ),
    "a path's length": Job(
        spec("quartic", "hmc"), [20, to("quartic", "hmc", sampler_params={"n_leapfrog": 3}), 20, HELD]
    ),
    "a noise's parameters": Job(
        spec("quartic", "sghmc", "gaussian", gradient_params={"variance": 1.0}),
        [50, to("quartic", "sghmc", "gaussian", gradient_params={"variance": 3.0}), 50, HELD],
    ),
    "a target's parameters": Job(
        spec("gaussian", "sghmc"), [50, to("gaussian", "sghmc", of_target=True, target_params={"sd": 3.0}), HELD, 50, HELD]
    ),
    "another estimator": Job(
        spec("linear_regression", "sgld", "minibatch_svrg"), [50, to("linear_regression", "sgld", "minibatch"), 50, HELD]
    ),
    "a memory that stays": Job(
        spec("linear_regression", "sgld", "minibatch_saga"),
        [50, to("linear_regression", "sgld", "minibatch_saga", sampler_params={"step_size": 1e-4}), HELD, 50, HELD],
    ),
    "a memory that starts again": Job(
        spec("linear_regression", "sgld", "minibatch_saga"),
        [50, to("linear_regression", "sgld", "minibatch_saga", gradient_params={"batch_size": 3}), HELD, 50, HELD],
    ),
    "other variables": Job(
        spec("double_well", "recipe", sampler_params=CURL),
        [
            50, to("double_well", "recipe", sampler_params={"layout": "theta"}), HELD, 30,
            to("double_well", "recipe", sampler_params=CURL), HELD, 30,
            to("double_well", "recipe", sampler_params={"layout": "theta_r_xi", "curl_entries": ("-1", "0", "-r")}), 30, HELD,
        ],
    ),
    "two changes at a step": Job(
        spec("gaussian", "sgld"),
        [
            50, to("gaussian", "sgld", of_target=True, target_params={"sd": 2.0}),
            to("gaussian", "sgld", sampler_params={"step_size": 0.3}), HELD, 50, HELD,
        ],
    ),
    "a change in the burn-in": Job(
        spec("quartic", "sghmc", burn_in=60),
        [20, to("quartic", "sghmc", sampler_params={"step_size": 0.05}), HELD, 100, HELD],
    ),
    "a change after a refused start": Job(
        spec("double_well", "recipe", sampler_params=BAD),
        [20, HELD, to("double_well", "recipe", sampler_params={"step_size": 0.05}), HELD, 50, HELD],
    ),
    "a change to what is refused": Job(
        spec("double_well", "recipe"), [20, to("double_well", "recipe", sampler_params=BAD), HELD, 20, HELD]
    ),
    "a chain that leaves": Job(
        spec("quartic", "sgld", sampler_params={"step_size": 1.0}),
        [200, HELD, to("quartic", "sgld", sampler_params={"step_size": 0.01}), 20, HELD],
    ),
    "a start without a density": Job(spec("funnel", "sgld", start=(-1e6, 0.1234567)), [20, HELD]),
    "a burn-in and a thinned trace": Job(spec("quartic", "sghmc", burn_in=33, thin=7), [233, HELD]),
    "a schedule": Job(spec("quartic", "sgld", burn_in=33, thin=7, schedule=FALLING), [233, HELD]),
    "a schedule with minibatches": Job(spec("linear_regression", "sghmc", "minibatch", schedule=FALLING), [7, 93, HELD]),
    "a schedule of a recipe whose momentum is redrawn": Job(
        spec("double_well", "recipe", sampler_params=REFRESHED, schedule=FALLING), [100, HELD]
    ),
    "a start and a momentum": Job(spec("quartic", "hmc", start=(0.5, -1.0)), [50, HELD]),
    "a momentum that goes on": Job(spec("quartic", "sghmc", start=(0.5, -1.0), momentum=(-2.5, 0.25)), [HELD, 50, HELD]),
    "a momentum on a sphere": Job(spec("von_mises", "sggmc", momentum=(1.0, 0.25)), [HELD, 30, HELD]),
    "divergent transitions": Job(
        spec("quartic", "hmc", burn_in=20, schedule=FLAT, sampler_params={"step_size": 0.42}),
        [110, HELD, to("quartic", "hmc", sampler_params={"step_size": 0.4}), 60, HELD],
    ),
    "more divergent transitions than marks": Job(
        spec("double_well", "hmc", sampler_params={"step_size": 0.6}), [50, HELD, 250, HELD]
    ),
    "weights of the draws": Job(
        spec("gaussian_mixture", "contour_sgld", sampler_params={"step_size": 0.1, "adapt_steps": 20, "n_bins": 12}, thin=3),
        [
            10, HELD, 30, HELD, to("gaussian_mixture", "contour_sgld", sampler_params={"adapt_steps": 10, "n_bins": 7}), 5, HELD,
            40, HELD,
        ],
    ),
    "weights of the draws and a schedule": Job(
        spec("gaussian_mixture", "contour_sgld", sampler_params={"step_size": 0.1, "adapt_steps": 5}, schedule=FALLING),
        [60, HELD],
    ),
    "one chain": Job(spec("quartic", "baoab", n_chains=1), [200, HELD]),
    "nine chains": Job(spec("quartic", "baoab", n_chains=9), [200, HELD]),
    "a hundred chains": Job(spec("quartic", "baoab", n_chains=100), [200, HELD]),
    "more steps than the history and the tail hold": Job(spec("quartic", "sgld", n_steps=5000, n_chains=2), [5000, HELD]),
    "a temperature": Job(
        spec("quartic", "sgld", temperature=0.25),
        [50, HELD, to("quartic", "sgld", sampler_params={"step_size": 0.02}), HELD, 50, HELD],
    ),
    "a temperature with minibatches": Job(spec("linear_regression", "sgld", "minibatch", temperature=0.25), [100, HELD]),
    "a temperature and another target": Job(
        spec("gaussian", "sgld", temperature=0.25),
        [50, to("gaussian", "sgld", of_target=True, target_params={"sd": 2.0}), HELD, 50, HELD],
    ),
    "a typed energy": Job(spec("typed", "sghmc", target_params={"energy": PLANE, "extent": 8.0}), [200, HELD]),
    "another energy": Job(
        spec("typed", "sgld", target_params={"energy": PLANE, "extent": 8.0}),
        [50, to("typed", "sgld", of_target=True, target_params={"energy": PLANE + " - theta1", "extent": 9.0}), HELD, 50, HELD],
    ),
    "a typed D": Job(spec("double_well", "recipe", sampler_params=TYPED_D), [200, HELD]),
    "a typed D and Q": Job(spec("double_well", "recipe", sampler_params=TYPED_DQ), [200, HELD]),
    "a typed posterior": Job(spec(**POSTERIOR, sampler="sghmc", target_params=COUNTS), [50, HELD]),
    "random data": Job(spec(LARGE, "sgld", "minibatch"), [50, HELD]),
    "another posterior": Job(
        spec(**POSTERIOR, sampler="sghmc", target_params=COUNTS),
        [20, to(**POSTERIOR, sampler="sghmc", of_target=True, target_params=NARROW), HELD, 30, HELD],
    ),
    "a typed posterior in its own units": Job(
        spec(**POSTERIOR, sampler="sgld", target_params={**COUNTS, "coordinates": "typed"}), [50, HELD]
    ),
}  # fmt: skip


def chunks(job):
    """The same run in parts."""
    return Job(job.spec, [1, 6, 43, 1, 100, 49, HELD])


@pytest.fixture(scope="module")
def covered():
    return covering()


@pytest.fixture(scope="module")
def module(covered):
    specs = [*(pair.spec() for pair in covered), *(job.spec for job in JOBS.values())]
    for job in JOBS.values():
        # A change may be to another estimator, whose functions are to be there.
        specs += [RunSpec(job.spec.target, x.sampler, x.gradient) for x in job.moves if isinstance(x, Change)]
    return hosts.module_of(specs)


@pytest.fixture
def host(module, kept_page):
    with hosts.serve(module) as site:
        yield Host(kept_page(), site)


def problems(job: Job, made: hosts.Made) -> list[str]:
    """The differences between the page's results and Python's."""
    if made.error:
        return [made.error]
    found = compare_all(job.here(), made.held, job)
    return [each for difference in found for each in difference.problems]


def compare_all(here, there, job):
    target = job.target()
    return [compare(a, b, target) for a, b in zip(here, there, strict=True)]


# Parity


def test_each_target_sampler_and_gradient(host, covered):
    found = list(compared(host, covered))
    assert len(found) == len(covered) > 40
    failed = {str(each.pair): each.problems for each in found if each.problems}
    assert not failed
    # Not all comparisons need a tolerance.
    assert sum(each.late.equal for each in found) > len(found) / 2


def test_a_run_on_its_way(host):
    made = host.made(list(JOBS.values()))
    failed = {name: problems(job, one) for (name, job), one in zip(JOBS.items(), made, strict=True)}
    assert not {name: found for name, found in failed.items() if found}


def test_the_runs_are_what_their_names_say():
    """A refused run stands still, one that leaves stops on its way, others make all their steps."""
    held = {name: job.here() for name, job in JOBS.items()}
    refused = held["a change after a refused start"]
    assert refused[0].fields["divergence"]["refused"] and refused[0].fields["steps"] == 0
    assert refused[-1].fields["divergence"] is None and refused[-1].fields["steps"] == 50
    assert 0 < held["a chain that leaves"][0].fields["steps"] < 200
    assert "at the start (-1e+06, 0.123457)" in held["a start without a density"][0].fields["divergence"]["message"]
    assert held["a burn-in and a thinned trace"][0].arrays["kept"].shape[1] == 200 // 7
    assert held["a memory that stays"][0].arrays["memory"].any()
    assert not held["a memory that starts again"][0].arrays["memory"].any()
    assert [x.arrays["momentum"].shape[1] for x in held["other variables"]] == [0, 1, 2]
    few, many = ([x.arrays["counts"][jit.DIVERGED] for x in held[name]] for name in JOBS if "divergent" in name)
    assert 20 < few[1] < few[0] < jit.N_MARKS < many[1]
    assert held["more steps than the history and the tail hold"][0].arrays["clock"][2] > 1


def test_chunks_change_nothing(host):
    """A run in parts is the run as a whole, but for sums that are added block by block."""
    whole = Job(spec("quartic", "sghmc", "gaussian", burn_in=30), [200, HELD])
    parts = chunks(whole)
    assert parts.n_steps == whole.n_steps
    one, other = host.made([whole, parts])
    assert not problems(whole, other) and not problems(whole, one)
    (difference,) = compare_all(one.held, other.held, whole)
    assert difference.equal and not difference.problems


def test_a_run_gives_its_memory_back(host):
    """Lists and arrays of compiled functions, and the run's own, are freed: fails where one kind is not."""
    for job in (
        Job(spec("matrix_langevin", "gmc"), [2000]),
        Job(spec("gamma", "cir"), [2000]),
        JOBS["other variables"],
    ):
        sizes = host.sizes([job] * 8)
        assert len(sizes) == 8 and len(set(sizes[1:])) == 1, job.spec


# Seeds

SEEDS = [0, 1, 2, 3, 7, 2**16, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 2, 2**32 - 1]
SEEDS += np.random.default_rng(5).integers(0, 2**32, 200).tolist()
NUMBERS = 40


def numpy_streams(generator) -> list[list[str]]:
    """The first numbers of 64 bits, of 32, and doubles."""
    state = generator.bit_generator
    first = state.state

    def again():
        state.state = first
        return state

    words = [str(x) for x in again().random_raw(NUMBERS)]
    halves = Generator(again()).integers(0, 2**32, NUMBERS, dtype=np.uint32, endpoint=False)
    doubles = Generator(again()).random(NUMBERS)
    return [words, [str(x) for x in halves], [repr(float(x)) for x in doubles]]


def test_every_seed_has_numpys_stream(host):
    assert set(Settings.param.seed.bounds) <= set(SEEDS)
    found = host.streams(spec("quartic", "sgld"), SEEDS, NUMBERS)
    for seed, (words, halves, doubles) in zip(SEEDS, found, strict=True):
        right = numpy_streams(Generator(SFC64(SeedSequence(seed))))
        assert words == right[0], seed
        assert halves == right[1], seed
        assert list(map(float, doubles)) == list(map(float, right[2])), seed
    # Planted fault: the stream of the next seed.
    assert found[0][0] != numpy_streams(Generator(SFC64(SeedSequence(SEEDS[0] + 1))))[0]


@pytest.mark.parametrize(("seed", "chain"), [(1, 0), (1, 3), (2**32 - 1, 1), (2**32 - 3, 4)])
def test_the_runs_of_a_seed_have_the_streams_of_the_next_seeds(host, seed, chain):
    one = spec("quartic", "sgld", seed=seed)
    (found,) = host.streams(one, [(seed + chain) % 2**32], NUMBERS)
    assert found[0] == numpy_streams(one.generator(chain))[0]


# Planted faults


def changed_number(packed, index, factor=1 + 1e-9):
    if "values" in packed:
        packed["values"][index] = packed["values"][index] * factor or factor
        return
    numbers = np.frombuffer(base64.b64decode(packed["data"])).copy()
    numbers[index] = numbers[index] * factor or factor
    packed["data"] = base64.b64encode(numbers.tobytes()).decode()


def wrong_parameter(described):
    changed_number(described["sampler"]["params"], 0)


def wrong_target(described):
    changed_number(described["target"]["params"], 0)


def wrong_seed(described):
    described["seed"] += 1


def wrong_noise(described):
    described["gradient"]["noise"]["variance"] *= 1 + 1e-9


def wrong_kernel(described):
    described["sampler"]["gradients_per_step"] += 1


def wrong_scale(described):
    changed_number(described["target"]["scales"], 3, 1e-3)


NOISY = Job(spec("quartic", "sghmc", "gaussian", burn_in=10), [60, HELD])
DESCRIPTIONS = {
    "a sampler's parameter": (wrong_parameter, NOISY),
    "a target's parameter": (wrong_target, Job(spec("gaussian", "sgld"), [60, HELD])),
    "a seed": (wrong_seed, NOISY),
    "a noise": (wrong_noise, NOISY),
    "a count of gradients": (wrong_kernel, NOISY),
    "a scale of statistics": (wrong_scale, NOISY),
}
SCRIPTS = {
    "a change of the spec missed": ("run.js", "        this.change(this.changed)\n", "", JOBS["changes that the spec has"]),
    "a place taken for another": ("run.js", "this._place(tile(description.theta, n * dim))", "engine.view(this.arrays.position).set(tile(description.theta, n * dim))", JOBS["a posterior from a place in θ"]),
    "a throw taken for another": ("run.js", "this._throw(this._white(Float64Array.from(description.velocity)))", "this._throw(Float64Array.from(description.velocity))", JOBS["a posterior from a place in θ"]),
    "other random data": ("engine.js", "? -random[skipped + i] : random[skipped + i]", "? -random[i] : random[i]", JOBS["random data"]),
    "strides": ("engine.js", "let i = shape.length - 1; i >= 0; i--", "let i = 0; i < shape.length; i++", JOBS["another estimator"]),
    "an item's size": ("engine.js", "BigInt(size(shape)), 8n, pointer", "BigInt(size(shape) - 1), 16n, pointer", JOBS["other variables"]),
    "no restart of statistics": ("run.js", "this.restartStatistics()\n    if", "if", JOBS["a sampler's parameters"]),
    "no new prices": ("run.js", "else this._price()\n    this.restart", "this.restart", JOBS["a path's length"]),
    "a memory forgotten": ("run.js", "identity(gradient) !== identity(this.gradient)", "true", JOBS["a memory that stays"]),
    "a burn-in counted": ("run.js", "counting = this.steps >= this.burnIn", "counting = true", NOISY),
    "chains moved by a target": ("run.js", "this._place(theta)", "this._place(theta.map((x) => x + 1e-9))", JOBS["a target's parameters"]),
    "variables drawn afresh": ("run.js", "now.set(old.subarray", "if (n < 0) now.set(old.subarray", JOBS["other variables"]),
    "a refusal kept": ("run.js", "if (this.divergence?.refused) this.divergence = null", "", JOBS["a change after a refused start"]),
    "no projection": ("run.js", 'this.engine.call("project"', 'if (this.steps) this.engine.call("project"', JOBS["a momentum on a sphere"]),
    "no marks": ("run.js", "constants.COUNTS + constants.MARKS * (1 + dim)", "constants.COUNTS", JOBS["divergent transitions"]),
    "marks of other steps": ("run.js", "first: this.steps, n", "first: 0, n", JOBS["more divergent transitions than marks"]),
    "marks counted before": ("run.js", "fill(0, 0, this.constants.COUNTS) }", "fill(0, 0, 0) }", JOBS["divergent transitions"]),
    "a step of divergence": ("run.js", "(this.steps + 1).toLocale", "(this.steps + 2).toLocale", JOBS["a chain that leaves"]),
}  # fmt: skip


def test_faults_in_descriptions_are_found(host):
    jobs = [Job(job.spec, job.moves, edit) for edit, job in DESCRIPTIONS.values()]
    found = {name: problems(job, made) for name, job, made in zip(DESCRIPTIONS, jobs, host.made(jobs), strict=True)}
    assert all(found.values()), found


@pytest.mark.parametrize("fault", SCRIPTS)
def test_faults_in_scripts_are_found(fault, module, kept_page):
    name, right, wrong, job = SCRIPTS[fault]
    assert (hosts.LIVE / name).read_text(encoding="utf-8").count(right) == 1, "the fault is planted in no place"
    with hosts.serve(module, {name: lambda text: text.replace(right, wrong)}) as site:
        (made,) = Host(kept_page(), site).made([job])
    assert problems(job, made)


@pytest.mark.parametrize("name", hosts.CHAOTIC)
def test_the_comparison_sees_one_number(name):
    """Fails where an array of draws or of state may differ in a digit that is not rounding."""
    job = Job(spec("linear_regression", "sghmc", "minibatch_saga"), [30, HELD])
    (one,), (other,) = job.here(), job.here()
    assert not compare(one, other, job.target()).problems
    array = other.arrays[name]
    at = np.unravel_index(np.argmax(np.abs(array)), array.shape)
    array[at] *= 1 + 1e-11
    assert compare(one, other, job.target()).problems
    array[at] = math.nan
    assert compare(one, other, job.target()).problems


# Other browsers


def skip_without(name):
    if not hosts.OTHERS[name][0]():
        pytest.skip(f"no {name} is installed")


@pytest.mark.parametrize("name", hosts.OTHERS)
def test_another_browser(name, covered):
    """A few pairs where it is installed."""
    skip_without(name)
    some = covered[:: len(covered) // 10]
    with hosts.serve(hosts.module_of(pair.spec() for pair in some)) as site, hosts.open_page(name) as page:
        found = list(compared(Host(page, site), some))
    assert len(found) >= 10
    assert not {str(each.pair): each.problems for each in found if each.problems}


@functools.cache
@few_figures("state", "marginal", "ks")
def a_file():
    lanes = [{"sampler": "sgld"}, {"sampler": "sghmc"}]
    return live_page(Experiment.from_dict({"target": "gaussian", "lanes": lanes}))


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        (hosts.FIREFOX, False),
        (hosts.WEBKIT, False),
        (hosts.WEBKIT, True),
    ],
)
def test_a_file_moves_in_another_browser(name, fault, tmp_path):
    """Opened from a disk, it moves and rests. A planted fault: the worker reads a Blob, which WebKit refuses it."""
    skip_without(name)
    text = a_file()
    if fault:
        text = re.sub("<meta http-equiv=[^>]*>", "", text)
        text = re.sub(r"const \{ body \} = new Response\((.*)\)\n", r"const body = new Blob([\1]).stream()\n", text)
        assert "new Blob([ (bytesOf(" in text
    file = tmp_path / "live.html"
    file.write_text(text, encoding="utf-8")
    with hosts.open_page(name) as page:
        page.goto(file.as_uri())
        moves = "Number(document.getElementById('steps').textContent.replaceAll(',', '')) > 100"
        problem = "document.getElementById('problem').textContent"
        until(page, f"({MOVES} && {moves}) || {problem} !== ''")
        assert ("NotReadableError" in page.evaluate(problem)) == fault
        if fault:
            return
        page.evaluate("document.getElementById('play').click()")
        until(page, SETTLED)
        assert page.evaluate("document.querySelectorAll('#views .bk-Figure').length") >= 2
        assert page.evaluate(problem) == ""

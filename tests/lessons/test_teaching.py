"""The course's material for a teacher: notes, exercises that run, solutions whose numbers hold, and paths."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import solve_discrete_lyapunov

from sgmcmc_lab.lessons.claims import quantity
from sgmcmc_lab.lessons.cli import main
from sgmcmc_lab.lessons.evidence import evidence, measured
from sgmcmc_lab.lessons.measures import MEASURES
from sgmcmc_lab.lessons.paths import CoursePath, Lecture, Stop, paths
from sgmcmc_lab.lessons.specs import changed, choice_data
from sgmcmc_lab.samplers import Run
from sgmcmc_lab.samplers.models.run import start
from sgmcmc_lab.samplers.targets import TARGETS
from tests.helpers.cases import for_each
from tests.helpers.course import LESSONS


def exercises_of(key):
    """The exercises of a lesson, by lesson, step and number."""
    return {
        (key, step.number, number): exercise
        for step in LESSONS[key].steps
        for number, exercise in enumerate(step.exercises, 1)
    }


def exercise_at(place):
    return exercises_of(place[0])[place]


FEW = 20
DIVERGES = {("langevin", 1, 1): 2}
"""The lane of an exercise whose solution says that it blows up."""
NUMBERS = {
    ("minibatch-noise", 1, 1): [("variance", 1, "2.11")],
    ("minibatch-noise", 2, 1): [("variance", 1, "1.10")],
    ("momentum", 1, 1): [("tau", 1, "180")],
    ("momentum", 2, 1): [("power(order:2)", 1, "5.0"), ("power(order:2)", 2, "1.08")],
    ("diagnostics-mislead", 2, 1): [("rhat", 1, "1.00"), ("ks", 1, "0.012")],
    ("diagnostics-mislead", 3, 1): [("variance", 1, "1.25"), ("variance", 2, "2.03")],
    ("dw", 1, 1): [("variance", 1, "1.33")],
    ("dw", 3, 1): [("variance", 1, "0.513"), ("variance", 2, "0.253")],
    ("recipe-d", 2, 1): [("power(order:2)", 1, "1.05"), ("power(order:2)", 2, "0.833")],
    ("recipe-q", 1, 1): [("tau", 1, "52"), ("tau", 2, "52")],
    ("recipe-q", 3, 1): [("variance", 1, "1.01")],
    ("gamma", 1, 1): [("power(order:2)", 1, "1.00"), ("power(order:2)", 2, "0.84")],
    ("gamma", 1, 2): [("power(order:2)", 1, "0.96")],
    ("thermostats", 3, 1): [("variance(column:2)", 1, "0.087")],
    ("tempering", 2, 1): [("swaps", 1, "0.02")],
    ("tempering", 3, 1): [("swaps", 2, "0.019"), ("swaps", 1, "0.54")],
    ("thermostats", 1, 1): [("temperature", 1, "1.50"), ("auxiliary(component:2;order:1)", 2, "1.50")],
    ("thermostats-figures", 1, 1): [("auxiliary(component:3;order:2)", 1, "4.5")],
    ("thermostats-figures", 1, 2): [("auxiliary(component:2;order:2)", 1, "2.0")],
    ("riemannian", 1, 1): [("probability(high:-3)", 1, "0.04")],
    ("riemannian", 2, 1): [("probability(high:-3)", 1, "0.000")],
    ("riemannian", 3, 1): [("power(order:2)", 1, "1.06")],
    ("riemannian-figures", 1, 1): [("power(order:2)", 1, "0.96")],
    ("riemannian-figures", 4, 1): [("power(order:2)", 1, "0.99")],
    ("boundary", 1, 1): [("quantile(p:0.5)", 2, "0.017"), ("quantile(p:0.5)", 3, "0.038")],
    ("boundary", 3, 1): [("ks", 1, "0.097"), ("ks", 2, "0.034")],
    ("scir", 1, 1): [("tau", 1, "4.09"), ("tau", 2, "1.01"), ("variance", 2, "0.100")],
    ("scir", 2, 1): [("ks", 1, "0.05")],
    ("scir-figures", 1, 1): [("chain_ks", 1, "0.027")],
    ("scir-figures", 2, 1): [("chain_ks", 1, "0.027")],
    ("bias-variance", 2, 1): [
        ("ensemble_variance(component:1;steps:6;start:1)", 1, "26.6"),
        ("ensemble_variance(component:1;steps:6;start:1)", 2, "22.6"),
    ],
    ("bias-variance", 4, 1): [("chain_ks", 1, "0.11"), ("chain_ks", 2, "0.09")],
    ("bias-variance-figures", 2, 1): [
        ("ensemble_variance(component:1;steps:1;start:1)", 1, "3.65"),
        ("ensemble_variance(component:1;steps:1;start:1)", 2, "28.4"),
    ],
    ("bias-variance-figures", 3, 1): [("variance", 1, "0.00238"), ("variance", 2, "0.00161")],
    ("circle", 2, 1): [("temperature", 1, "1.09")],
    ("circle", 3, 1): [("temperature", 1, "1.99"), ("expectation(number:3)", 1, "0.36")],
    ("order", 1, 1): [("variance", 1, "1.00"), ("variance", 2, "0.90")],
    ("order", 2, 1): [("variance", 1, "1.003"), ("auxiliary(component:1;order:2)", 1, "1.058")],
    ("spherical", 1, 1): [("mean(column:2)", 1, "0.63")],
    ("spherical", 2, 1): [("heat", 1, ("3.0", "4.4"))],
    ("spherical", 3, 1): [("mean(column:2)", 1, "0.675")],
    ("scan", 1, 1): [("tau", 1, "1.00"), ("variance", 1, "2.01")],
    ("scan", 2, 1): [("tau", 1, "120"), ("tau", 2, "60")],
    ("topics", 1, 1): [("score", 1, "18.5")],
    ("topics", 1, 2): [("score", 1, "14.5"), ("score", 2, "17.6")],
    ("topics-figures", 1, 1): [("score", 1, "14.6"), ("score", 2, "14.6"), ("score", 3, "18.25"), ("score", 4, "19.2")],
    ("topics-figures", 1, 2): [("score", 1, "14.6"), ("score", 2, "15.6"), ("score", 3, "14.4")],
    ("clusters", 1, 1): [("adjusted_rand", 2, "0.99")],
    ("clusters", 2, 1): [("mean(column:1)", 1, ("5", "6")), ("mean(column:1)", 2, ("5", "6"))],
    ("clusters", 3, 1): [("adjusted_rand", 1, "0.00"), ("adjusted_rand", 2, ("0.9", "1"))],
    ("clusters", 4, 1): [
        ("mean(column:1)", 1, "5.9"),
        ("mean(column:1)", 2, "13.1"),
        ("mean(column:4)", 1, "0.83"),
        ("mean(column:4)", 2, "3.7"),
    ],
    ("drift", 1, 1): [("variance", 1, "1.00")],
    ("drift", 2, 1): [("mean(column:2)", 1, "0.00")],
    ("drift", 2, 2): [("power(order:2)", 1, "0.833")],
    ("search", 1, 1): [("tau", 1, "372")],
    ("search", 2, 1): [("tau", 1, "39")],
    ("factors", 1, 1): [("mean(column:1)", 1, "18.0")],
    ("factors", 2, 1): [("amari", 1, ("0.01", "0.10")), ("amari", 2, ("0.01", "0.10"))],
    ("network", 1, 1): [("score", 1, "0.733")],
    ("network", 2, 1): [("score", 1, "0.976"), ("score", 2, ("0.94", "0.98"))],
    ("network-figures", 1, 1): [("score", 1, "0.971"), ("score", 2, ("0.90", "0.93"))],
    ("control-variates", 2, 1): [("variance", (2, 1), "1.10"), ("variance", (3, 1), "2.81")],
    ("control-variates", 4, 1): [
        ("variance", 1, "0.280"),
        ("variance", 2, "0.301"),
        ("probability(low:0;column:2)", 2, "0.51"),
    ],
    ("gap", 1, 1): [("tau(column:5)", 1, "7")],
    ("gap", 2, 1): [("variance(column:7)", (2, 1), "1.8"), ("variance(column:7)", (3, 1), "4.1")],
}
"""The numbers that an exercise's experiment gives: measure, lane, and the number as the solution has it, or the
two that it lies between where another release of a library, by its rounding, makes another chain.

Two lanes are the ratio of the first to the second.
"""
SHORTER = {
    ("control-variates", 2, 1): {"n_steps": 5000},
    ("gap", 1, 1): {"n_steps": 1000},
    ("gap", 2, 1): {"n_steps": 2000, "n_chains": 16},
}
"""How a test runs what takes many seconds."""
METHOD_STEPS = {
    ("topics", 1, 1): 400,
    ("topics", 1, 2): 200,
    ("spherical", 1, 1): 400,
    ("spherical", 2, 1): 600,
    ("spherical", 3, 1): 300,
    ("topics-figures", 1, 1): 200,
    ("topics-figures", 1, 2): 200,
    ("clusters", 2, 1): 200,
    ("clusters", 3, 1): 200,
    ("clusters", 4, 1): 300,
}
OTHER_METHOD_STEPS = 1000
"""The steps of an exercise on a model of data; a density's experiment says itself how long it runs."""


# Notes and exercises


@for_each("key", LESSONS)
def test_a_lesson_has_notes_and_exercises(key):
    lesson = LESSONS[key]
    assert lesson.steps[0].teacher
    assert sum(len(step.exercises) for step in lesson.steps) >= 2


def soon_known(spec):
    """Whether the target's exact answers take no long run; claims run the same samplers on one whose answers do."""
    return spec.of_model or TARGETS[spec.target.key].exact_law


@pytest.mark.slow
@pytest.mark.parametrize("key", LESSONS)
def test_the_experiments_of_exercises_run(key, subtests):
    for place, exercise in exercises_of(key).items():
        if soon_known(exercise.experiment):
            with subtests.test(place=place):
                check_experiment(place, exercise.experiment)


def check_experiment(place, spec):
    if spec.of_model:
        runs, steps = start(spec, spec.make_model()), 1
    else:
        few = replace(spec, n_chains=4, burn_in=0)
        runs, steps = [Run(run) for run in few.runs()], 2000 if place in DIVERGES else FEW
    for run in runs:
        run.advance(steps)
    stopped = [lane for lane, run in enumerate(runs, 1) if run.divergence is not None]
    assert stopped == [lane for lane in [DIVERGES.get(place)] if lane]


class Lanes:
    """The whole runs of the lanes of an exercise, each made once, with all that the measures of its numbers need."""

    def __init__(self, place, spec):
        self.spec = replace(spec, **SHORTER.get(place, {}))
        self.steps = METHOD_STEPS.get(place, OTHER_METHOD_STEPS)
        self.needs = {made_of(measure).requires for measure, *_ in NUMBERS[place]}
        self.runs = {}

    def __getitem__(self, lane):
        if lane not in self.runs:
            self.runs[lane] = self.of_model(lane) if self.spec.of_model else self.of_density(lane)
        return self.runs[lane]

    def of_density(self, lane):
        return evidence(self.spec.runs()[lane - 1], self.needs)

    def of_model(self, lane):
        run = start(self.spec, self.spec.make_model())[lane - 1]
        while run.steps < self.steps:
            run.advance(1)
        return run


def made_of(measure):
    data = choice_data("measure", measure)
    return MEASURES[data["key"]](**data["params"])


def off(lanes, measure, lane, text):
    """How far the number of a solution is from that of an experiment, and what chance and rounding allow.

    Of two numbers it is the middle, and half of what is between them.
    """
    made = made_of(measure)
    first, *second = (measured(made, lanes[n]) for n in np.atleast_1d(lane))
    found = quantity("ratio", first, second[0] if second else None)
    if isinstance(text, tuple):
        low, high = map(float, text)
        return abs(found.value - (low + high) / 2), (high - low) / 2
    rounding = 0.51 * 10.0 ** -len(text.partition(".")[2])
    # Four standard errors are exceeded by chance once in 6,000 choices of the seed, with 16 chains once in 850.
    return abs(found.value - float(text)), rounding + 4 * (found.error or 0.0)


@pytest.mark.slow
@for_each("place", NUMBERS, ids=lambda place: "-".join(map(str, place)), apart=lambda place: place[0])
def test_the_numbers_of_a_solution_hold(place):
    exercise = exercise_at(place)
    lanes = Lanes(place, exercise.experiment)
    for measure, lane, text in NUMBERS[place]:
        assert all(each in exercise.solution for each in np.atleast_1d(text))
        away, allowed = off(lanes, measure, lane, text)
        assert away <= allowed, (measure, lane, text, away)


def test_noise_across_the_ridge_creeps_by_the_closed_form():
    """τ of θ₁ of the linear chain θ ← (I − εDA)θ + N(0, 2εD) in the exercise whose run takes long."""
    exercise = exercise_at(("recipe-d", 1, 1))
    for lane, correlation, text in ((0, -0.9, "3,600"), (1, 0.0, "360")):
        step = exercise.experiment.lanes[lane].sampler.values()["step_size"]
        precision = np.linalg.inv([[1.0, 0.9], [0.9, 1.0]])
        diffusion = np.array([[1.0, correlation], [correlation, 1.0]])
        keeps = np.eye(2) - step * diffusion @ precision
        variance = solve_discrete_lyapunov(keeps, 2 * step * diffusion)
        sums = np.linalg.solve(np.eye(2) - keeps, variance)
        assert text in exercise.solution
        assert 2 * sums[0, 0] / variance[0, 0] - 1 == pytest.approx(float(text.replace(",", "")), rel=0.01)


def test_a_number_that_does_not_hold_is_found():
    place = ("dw", 1, 1)
    lanes = Lanes(place, changed(exercise_at(place).experiment, {"sampler.step_size": 0.4}))
    away, allowed = off(lanes, "variance", 1, "1.33")
    assert away > allowed


# Paths


def problems(path, lessons):
    """The faults of a path: steps that are not there, out of the course's order or twice, and minutes.

    Only where the path leaves time for questions may a lesson take more minutes than it says itself.
    """
    order, out, last = list(lessons), [], (-1, 0)
    for lecture in path.lectures:
        if lecture.minutes != sum(stop.minutes for stop in lecture.stops):
            out.append(f"{lecture.title}: its steps take other than {lecture.minutes} minutes.")
        for stop in lecture.stops:
            if stop.lesson not in lessons or not 1 <= stop.step <= len(lessons[stop.lesson].steps):
                out.append(f"{lecture.title}: there is no {stop.lesson} {stop.step}.")
                continue
            at = (order.index(stop.lesson), stop.step)
            if at <= last:
                out.append(f"{lecture.title}: {stop.lesson} {stop.step} comes too late.")
            last = at
        for key in {stop.lesson for stop in lecture.stops} & set(lessons):
            minutes = sum(stop.minutes for stop in lecture.stops if stop.lesson == key)
            if "time for the questions" not in path.says and minutes > lessons[key].minutes:
                out.append(f"{lecture.title}: {key} takes {minutes} minutes, and has {lessons[key].minutes}.")
    return out


@for_each("path", paths(), ids=lambda path: path.title)
def test_a_path_names_steps_and_keeps_its_time(path):
    assert problems(path, LESSONS) == []


def test_a_wrong_path_is_found():
    stops = (Stop("langevin", 2, 5), Stop("langevin", 1, 5), Stop("langevin", 9, 5), Stop("gone", 1, 5))
    assert len(problems(CoursePath("x", "", (Lecture("x", 21, stops),)), LESSONS)) == 5
    long = (Lecture("x", 25, (Stop("factors", 1, 25),)),)
    assert len(problems(CoursePath("x", "", long), LESSONS)) == 1
    assert problems(CoursePath("x", "With time for the questions.", long), LESSONS) == []


def test_paths_are_listed(capsys):
    assert main(["--paths"]) == 0
    said = capsys.readouterr().out
    for path in paths():
        assert path.title in said
    assert " 8 min  langevin 1: Downhill" in said

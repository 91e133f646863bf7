"""A new target, sampler, gradient or view is one file and one line: the tests of its registry need nothing else.

The files of ``new_things`` stand for a contributor's. Each is loaded from a package of its own, as it is or with one
declaration left out, and registered by one line.
"""

import ast
import importlib.util
from pathlib import Path

import pytest

from sgmcmc_lab.app.views import VIEWS
from sgmcmc_lab.samplers.gradients import GRADIENTS
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.targets import TARGETS
from tests.helpers import checks_gradients, checks_samplers, checks_targets, checks_views

FILES = Path(__file__).with_name("new_things")
# The class of each file, its registry, the checks of its kind, and what it must declare for them.
THINGS = {
    "logistic": ("Logistic", TARGETS, checks_targets, ["tried_at", "drawn_at", "textbook_draw"]),
    "unadjusted": ("Unadjusted", SAMPLERS, checks_samplers, ["bias_order", "steps_to_test", "textbook_step", "parts"]),
    "uniform": ("Uniform", GRADIENTS, checks_gradients, ["title", "tex", "textbook_gradients"]),
    "means": ("Means", VIEWS, checks_views, ["title", "hint", "build", "compute"]),
}


def without(tree, owner, name):
    """The module's source without one declaration of its class."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == owner:
            node.body = [each for each in node.body if name not in (getattr(each, "name", ""), *assigned(each))]
    return ast.unparse(tree)


def assigned(statement):
    """The names that a statement gives a value."""
    return [ast.unparse(each) for each in statement.targets] if isinstance(statement, ast.Assign) else []


def load(folder, file, left_out=""):
    """The class of a file of ``new_things``, from a package in this folder."""
    text = (FILES / f"{file}.py").read_text(encoding="utf-8")
    owner = THINGS[file][0]
    (folder / "__init__.py").touch()
    path = folder / f"{file}.py"
    path.write_text(without(ast.parse(text), owner, left_out) if left_out else text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(f"{folder.name}.{file}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, owner)


@pytest.fixture(scope="module")
def new(tmp_path_factory):
    """The new things in their registries, each put there by one line."""
    folder = tmp_path_factory.mktemp("contributed")
    made = {file: load(folder, file) for file in THINGS}
    for file, cls in made.items():
        THINGS[file][1].add(cls)
    yield made
    for file, cls in made.items():
        THINGS[file][1].remove(cls.key)


@pytest.mark.parametrize("file", THINGS)
def test_a_new_thing_declares_what_its_tests_need(new, file):
    assert THINGS[file][2].missing(new[file]) == []


LEFT_OUT = [(file, name) for file, (*_, names) in THINGS.items() for name in names]


@pytest.mark.parametrize(("file", "name"), LEFT_OUT)
def test_what_a_new_thing_does_not_declare_is_named(tmp_path, file, name):
    owner, _, checks, _ = THINGS[file]
    assert checks.missing(load(tmp_path, file, left_out=name)) == [f"{owner} declares no {name}"]


@pytest.mark.slow
def test_a_new_target(new):
    checks_targets.check_target("logistic")


def test_a_new_gradient(new):
    checks_gradients.check_gradient("uniform")


def test_a_new_sampler_has_its_card(new):
    checks_samplers.check_card(new["unadjusted"])


def triples_of(*keys):
    """The triples with one of these in them."""
    return [triple for triple in checks_samplers.triples() if set(keys) & set(triple)]


@pytest.mark.slow
def test_every_triple_with_a_new_thing_is_its_textbook(new):
    found = triples_of("logistic", "unadjusted", "uniform")
    assert {s for s, t, _ in found if t == "logistic"} >= {"sgld", "sghmc", "hmc", "recipe", "exact", "unadjusted"}
    assert {t for s, t, _ in found if s == "unadjusted"} >= {"logistic", "gaussian", "quartic"}
    assert ("unadjusted", "logistic", "uniform") in found
    for each in checks_samplers.draw_for_draw(found):
        checks_samplers.check_formula(*each)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("s", "t", "g"),
    [
        ("unadjusted", "logistic", "uniform"),
        ("unadjusted", "double_well", "full"),
        ("sghmc", "logistic", "gaussian"),
        ("hmc", "logistic", "full"),
        ("exact", "logistic", "full"),
    ],
)
def test_a_triple_with_a_new_thing_stays_in_its_law(new, s, t, g):
    assert (s, t, g) in triples_of("logistic", "unadjusted", "uniform")
    checks_samplers.check_invariance(s, t, g)


@pytest.mark.parametrize("name", ["one lane", "a plane", "simplex"])
def test_a_new_view(new, name):
    checks_views.check_words(new["means"])
    checks_views.check_scene(name, False, [new["means"]])

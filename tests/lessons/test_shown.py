"""A step of the course shows every view that its text, its watch sentence and its claims speak of."""

import re
from dataclasses import replace

from sgmcmc_lab.app.views import VIEWS
from tests.helpers.cases import for_each
from tests.helpers.course import LESSONS
from tests.helpers.seen import NAMED, SEEN, measured


def places():
    return [(key, step.number) for key, lesson in LESSONS.items() for step in lesson.steps if step.spec is not None]


TITLED = {VIEWS[key].title: key for key in VIEWS if " " in VIEWS[key].title}
"""The titles of views as a text has them: a title of several words means nothing else."""


def missing(step):
    """The views that the step mentions and does not show."""
    out = [f"the text: {title}" for title, key in TITLED.items() if title in step.text and key not in step.views]
    for pattern, views in NAMED.items():
        if (found := re.search(pattern, step.watch)) and not set(views.split()) & set(step.views):
            out.append(f"watch: {found[0]}")
    return out + [f"a claim: {key}" for key in measured(step.claims) if not set(SEEN[key].split()) & set(step.views)]


@for_each("place", places, ids=str)
def test_a_step_shows_what_it_speaks_of(place):
    """Fails where a student is told to watch something that is not on the page.

    Planted fault: one view after the other is left out; of those that the watch sentence names each is missed.
    """
    key, number = place
    step = LESSONS[key].steps[number - 1]
    assert set(step.views) <= VIEWS.keys()
    assert missing(step) == []


def test_what_is_left_out_is_missed():
    """Planted faults: a view that the watch sentence names, that of a claim, and one that the text names."""
    first = LESSONS["langevin"].steps[0]
    without = [missing(replace(first, views=tuple(key for key in first.views if key != left))) for left in first.views]
    assert without == [["watch: state space"], ["watch: marginal"]]
    gamma = LESSONS["gamma"].steps[0]
    assert "watch: stationarity picture" in missing(replace(gamma, views=("marginal", "trace")))
    assert "a claim: variance" in missing(replace(first, views=("ks",)))
    assert missing(replace(first, text="See the State space, the Torus map.")) == ["the text: Torus map"]
    # A step of an appendix has no watch sentence.
    watched = [watch for key, number in places() if (watch := LESSONS[key].steps[number - 1].watch)]
    named = [watch for watch in watched if any(re.search(one, watch) for one in NAMED)]
    assert len(named) > 0.8 * len(watched)

"""A step of the course shows every view that its text, its watch sentence and its claims speak of."""

import re
from dataclasses import replace

import pytest

from app.views import VIEWS
from lessons.library import load_all

LESSONS = load_all().lessons
PLACES = [(key, step.number) for key, lesson in LESSONS.items() for step in lesson.steps if step.spec is not None]

NAMED = {
    r"\btraces?\b": "trace",
    r"\b(state space|paths?)\b": "state phase",
    r"\b(marginals?|histograms?)\b": "marginal circle",
    r"\bKS\b": "ks",
    r"\bKL\b": "kl",
    r"\bautocorrelations?\b": "autocorrelation",
    r"\bphase plane\b": "phase",
    r"\b(temperature picture|temperatures)\b": "temperature",
    r"\bthermostat picture\b": "thermostat",
    r"\bspectrum\b": "spectrum",
    r"\bgap against q\b": "curl",
    r"\bstationarity picture\b": "stationarity",
    r"\btorus map\b": "torus",
    r"\bring\b": "circle",
    r"\border picture\b": "order",
    r"\bpicture of (bias and|the) variance\b": "moments",
    r"\bscores?\b": "scores",
    r"\bsparsity\b": "sparsity",
    r"\bordered matrix\b": "adjacency",
    r"\brates\b": "rates factor_rates",
    r"\bpicture of the bound\b": "elbo",
    r"\bgradient noise\b": "gradient_noise",
    r"\bpicture of the fit\b": "fit",
    r"\bsquares\b": "pictures",
}
"""What a watch sentence calls a picture, and the views of which it means one."""
TITLED = {VIEWS[key].title: key for key in VIEWS if " " in VIEWS[key].title}
"""What a text calls them: in so many words it means nothing else."""
BY_EYE = "marginal state trace circle torus fit moments components phase"
"""Views in which a mean, a variance or a probability can be seen."""
SEEN = {
    "acceptance": "state circle torus", "adjusted_rand": "cluster_points cluster_sizes mixture_sizes", "amari": "loadings", "auxiliary": "thermostat phase temperature marginal", "chain_ks": "ks", "clipped": "state temperature torus",
    "cost": "autocorrelation", "data_to_reach": "scores", "diverged": "state trace", "elbo": "elbo", "ensemble_mean": "moments", "ensemble_mgf": "mgf",
    "ensemble_variance": "moments", "expectation": "marginal circle torus", "gap": "spectrum curl", "heat": "spherical_globe", "joint_kl": "kl", "kl": "kl", "ks": "ks", "mean": f"{BY_EYE} cluster_points loadings spherical_globe",
    "power": BY_EYE, "predictive": "posterior_predictive", "probability": BY_EYE, "purity": "cluster_points", "quantile": BY_EYE, "rhat": "trace", "scan_cost": "autocorrelation", "scan_tau": "autocorrelation",
    "score": "scores", "tau": "autocorrelation trace", "temperature": "temperature", "trial_gain": "batch", "trial_tau": "batch", "variance": BY_EYE,
}  # fmt: skip
"""The views of which one shows what a claim measures. What a sweep measures has a picture of its own."""


def missing(step):
    """What the step speaks of and does not show."""
    out = [f"the text: {title}" for title, key in TITLED.items() if title in step.text and key not in step.views]
    for pattern, views in NAMED.items():
        if (found := re.search(pattern, step.watch)) and not set(views.split()) & set(step.views):
            out.append(f"watch: {found[0]}")
    measured = {claim.measure.key for claim in step.claims if claim.reduction is None and not claim.where}
    return out + [f"a claim: {key}" for key in sorted(measured) if not set(SEEN[key].split()) & set(step.views)]


@pytest.mark.parametrize("place", PLACES, ids=str)
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
    assert without == [["watch: state space"], [], ["watch: histogram"]]
    gamma = LESSONS["gamma"].steps[0]
    assert "watch: stationarity picture" in missing(replace(gamma, views=("marginal", "trace")))
    assert "a claim: variance" in missing(replace(first, views=("ks",)))
    assert missing(replace(first, text="See the State space, the Torus map.")) == ["the text: Torus map"]
    named = [
        place for place in PLACES if any(re.search(one, LESSONS[place[0]].steps[place[1] - 1].watch) for one in NAMED)
    ]
    assert len(named) > 0.8 * len(PLACES)

"""The meanings of the words of a watch sentence, and the views that show the measure of a claim."""

import re

NAMED = {
    r"\btraces?\b": "trace",
    r"\b(state space|paths?)\b": "state phase",
    r"\b(marginals?|histograms?)\b": "marginal circle",
    r"\bKS\b": "ks",
    r"\bKSD\b": "ksd",
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
    r"\b(ordered matrix|Edge probabilities)\b": "adjacency",
    r"\b(rates|Communities in use)\b": "rates factor_rates",
    r"\bCost of a batch size\b": "batch",
    r"\bpicture of the bound\b": "elbo",
    r"\bgradient noise\b": "gradient_noise",
    r"\bpicture of the fit\b": "fit",
    r"\bsquares\b": "pictures",
    r"\bpicture of the rungs\b": "rungs",
}
"""The name of a picture in a watch sentence, and the views of which it means one."""
BY_EYE = "marginal state trace circle torus fit moments components phase"
"""Views in which a mean, a variance or a probability can be seen."""
SEEN = {
    "acceptance": "state circle torus", "adjusted_rand": "cluster_points cluster_sizes mixture_sizes", "amari": "loadings", "auxiliary": "thermostat phase temperature marginal", "chain_ks": "ks", "clipped": "state temperature torus",
    "cost": "autocorrelation", "data": "ks", "data_to_reach": "scores", "diverged": "state trace", "elbo": "elbo", "ensemble_mean": "moments", "ensemble_mgf": "mgf",
    "ensemble_variance": "moments", "expectation": "marginal circle torus", "gap": "spectrum curl", "heat": "spherical_globe", "joint_kl": "kl", "kl": "kl", "ks": "ks", "ksd": "ksd", "mean": f"{BY_EYE} cluster_points loadings spherical_globe",
    "power": BY_EYE, "predictive": "posterior_predictive", "probability": BY_EYE, "purity": "cluster_points", "quantile": BY_EYE, "rhat": "trace", "scan_cost": "autocorrelation", "scan_tau": "autocorrelation",
    "score": "scores", "swaps": "rungs", "tau": "autocorrelation trace", "temperature": "temperature", "trial_gain": "batch", "trial_tau": "batch", "variance": BY_EYE,
}  # fmt: skip
"""The views of which one shows what a claim measures. The measure of a sweep has a picture of its own."""


def measured(claims):
    """The measures of claims about a run, by name. The measure of a sweep has a picture of its own."""
    return sorted({claim.measure.key for claim in claims if claim.reduction is None})


def named(watch, views):
    """The words in a watch sentence that name a picture, each with those of the views of which it means one."""
    found = {match[0]: set(keys.split()) for pattern, keys in NAMED.items() if (match := re.search(pattern, watch))}
    return {word: keys & set(views) for word, keys in found.items()}

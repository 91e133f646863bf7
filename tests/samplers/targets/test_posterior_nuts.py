"""The presets of the typed posterior against blackjax's NUTS on densities that are written down here."""

import numpy as np
import pytest

from sgmcmc_lab.samplers.targets.posterior import TypedPosterior
from sgmcmc_lab.samplers.targets.posterior_data import PRESETS
from tests.helpers.checks_nuts import apart, estimates, nuts

pytestmark = pytest.mark.slow


def logistic():
    """Bliss's beetles: an intercept and a slope."""
    import jax.numpy as jnp

    dose = np.array([1.6907, 1.7242, 1.7552, 1.7842, 1.8113, 1.8369, 1.8610, 1.8839]) - 1.79
    exposed, killed = np.array([59, 60, 62, 56, 63, 59, 62, 60]), np.array([6, 13, 18, 28, 52, 53, 61, 60])

    def log_density(theta):
        logit = theta[0] + theta[1] * dose
        return (
            (killed * logit - exposed * jnp.logaddexp(0.0, logit)).sum()
            - (theta[0] / 5) ** 2 / 2
            - (theta[1] / 50) ** 2 / 2
        )

    return nuts(log_density, 2)


def counts():
    """Sixty counts: the logarithm of their mean is a line."""
    import jax.numpy as jnp

    table = PRESETS["counts"].table()
    x, y = table.x[:, 0], table.y

    def log_density(theta):
        line = theta[0] + theta[1] * x
        return (y * line - jnp.exp(line)).sum() - (theta @ theta) / 18

    return nuts(log_density, 2)


def schools():
    """(m, log t, e₁, …, e₈): NUTS runs in z of e = m + tz, for in e it does not come into the neck either."""
    import jax.numpy as jnp

    effect = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
    error = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])

    def log_density(q):
        m, t, z = q[0], jnp.exp(q[1]), q[2:]
        rows = -(((effect - m - t * z) / error) ** 2).sum() / 2
        return rows - (z @ z) / 2 - (m / 5) ** 2 / 2 - jnp.log1p((t / 5) ** 2) + q[1]

    draws = nuts(log_density, 10)
    draws[..., 2:] = draws[..., :1] + np.exp(draws[..., 1:2]) * draws[..., 2:]
    return draws


def exact(key, **changed):
    """Means and variances on the page, and the errors of the run that they are of; 0 where they are of quadrature."""
    target = TypedPosterior(**{**PRESETS[key]._asdict(), "table": key, **changed})
    mean, variance = (np.array([getattr(c, what) for c in target.columns]) for what in ("mean", "variance"))
    if target.by_quadrature is not None:
        return [mean, np.zeros_like(mean), variance, np.zeros_like(variance)]
    _, of_mean, _, of_variance = estimates(target.reference.draws)
    return [mean, of_mean, variance, of_variance]


# Of each: what NUTS runs on, and a planted fault, a slip of the hand.
MODELS = {
    "doses": (logistic, {"row": "bernoulli_logit_lpmf(y, a + 1.02*b*dose)"}),
    "counts": (counts, {"row": "poisson_log_lpmf(y, a + 1.05*b*x)"}),
    "schools": (schools, {"prior": PRESETS["schools"].prior.replace("cauchy_lpdf(t, 0, 5)", "cauchy_lpdf(t, 0, 3)")}),
}


@pytest.mark.parametrize("key", MODELS)
def test_presets_are_those_of_another_programs_nuts(key):
    """Means and variances within 3 SE: of 4, 4 and 20 numbers that were independent one would be past 3 in 7 % of the
    seeds, which are fixed. A planted fault is past 5.

    It is skipped where blackjax is not installed.
    """
    pytest.importorskip("blackjax", reason="it comes with the extra bench")
    run, fault = MODELS[key]
    theirs = estimates(run())
    z = apart(exact(key), theirs)
    assert np.abs(z).max() < 3
    assert np.abs(apart(exact(key, **fault), theirs)).max() > 5

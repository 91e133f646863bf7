"""Strategies of what a class's parameters allow."""

from hypothesis import strategies as st

from sgmcmc_lab.samplers.parameters import Count, CountVector, Flag, Formula, Option, RealVector, declared

ENERGIES = [
    "theta^4 - 2*theta^2",
    " theta ^ 2 / 2",
    "cosh(theta)",
    "3e0*theta^2 + (sin(theta))",
    "(theta1^2 + theta2^2)*(1.5)",
]


def value_of(parameter):
    """A strategy of allowed values."""
    if isinstance(parameter, Formula):
        return st.sampled_from(ENERGIES)
    if isinstance(parameter, Flag):
        return st.booleans()
    if isinstance(parameter, Option):
        return st.sampled_from(parameter.objects)
    if isinstance(parameter, CountVector):
        return st.lists(st.integers(0, 1000), min_size=1, max_size=2).filter(any)
    if isinstance(parameter, RealVector):
        return st.lists(st.floats(-parameter.max_value, parameter.max_value), max_size=2)
    low, high = parameter.bounds
    if isinstance(parameter, Count):
        return st.integers(int(low), int(high))
    return st.floats(low, high, allow_nan=False)


def params_of(cls, without=()):
    return st.fixed_dictionaries({}, optional={name: value_of(p) for name, p in declared(cls) if name not in without})

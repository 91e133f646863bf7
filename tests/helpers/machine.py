"""The stack machine of formulas as a compiled function of its own, which is kept for the next run."""

from numba import types

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.expressions import machine


@jit.loop(types.void(jit.vector, jit.vector))
def _run(program, work):
    machine.execute(program, work)


def execute(program, work):
    """Run a program on the inputs in ``work``, as :func:`sgmcmc_lab.samplers.expressions.machine.execute` does."""
    jit.prepare([_run])
    _run(program, work)

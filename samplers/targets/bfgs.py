"""BFGS, from SciPy, without its warnings.

Where its first line search fails BFGS tries a second one, and SciPy itself ignores that one's warnings. It does so with
``warnings.catch_warnings``, which holds for the whole process: where a thread leaves such a block while another thread
searches, the warning is printed all the same. The end point of a search shows its outcome, so the warnings are
ignored in every thread, by their texts.
"""

import warnings
from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, minimize

warnings.filterwarnings("ignore", "The line search algorithm", RuntimeWarning)
warnings.filterwarnings("ignore", "Rounding errors prevent the line search", RuntimeWarning)


def bfgs(
    function: Callable[..., Any], start: NDArray[Any], *, jac: Callable[..., Any] | bool | None = None, **options: Any
) -> OptimizeResult:
    """The minimum of a function (dim,) → ℝ from ``start`` (dim,), by BFGS with SciPy's ``options``.

    With ``jac=True`` the function returns its gradient (dim,) too; None takes differences.
    """
    return minimize(function, start, jac=jac, method="BFGS", options=options)

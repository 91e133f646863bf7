"""A target at another temperature: e^{−U/T} in place of e^{−U}."""

from collections.abc import Mapping
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.targets.at_temperature import Divided, divided
from sgmcmc_lab.samplers.targets.base import Array, Column, Moment, Target, Tell
from sgmcmc_lab.samplers.targets.boxed import FEW, Boxed
from sgmcmc_lab.samplers.targets.long_run import LongRun, Reference

_AFAR = 64
_AT_ONCE = 2
"""The most coordinates of a density without data whose quadrature runs when the target is made: it takes a second."""


def tempered(target: Target, temperature: float) -> Target:
    """The distribution e^{−U/T} of the target's energy U, T ≠ 1.

    A target with ``at_temperature`` is of the same family there, one with ``family_at`` has a class of its own; other
    targets with ``tempers``, on ℝᵈ, have quadrature or a long run. Every sampler of the target serves at T, too.

    Raises :class:`SpecError` if it has no exact answers with which to compare samplers.
    """
    found = target.family_at(temperature)
    if found is not None:
        return found
    values = target.at_temperature(temperature)
    if values is not None:
        known = {name: value for name, value in target.param.values().items() if name != "name"}
        try:
            return type(target)(**{**known, **values})
        except SpecError as error:
            # Beyond the bounds of its parameters the family has no member e^{−U/T}; quadrature may have its answers.
            if not target.tempers:
                raise SpecError(
                    "temperature", temperature, f"{target.title} would have {str(error).rstrip('.')}"
                ) from None
    if not target.tempers:
        raise SpecError(
            "temperature", temperature, f"{target.title} has exact answers at temperature 1 alone; allowed is 1"
        )
    kind: Any = type(target)
    made = class_of(kind).made(target, temperature)
    if made.dim <= _AT_ONCE and not len(target.data()):
        made.prepare(lambda what, share: None)
    return made


@cache
def class_of(kind: Any) -> Any:
    """The class of such a target at any temperature other than 1."""
    # The file of a live page has functions by their names, which differ from target to target.
    functions = dict(zip(("potential", "gradient", "batch"), divided(kind, _own, __name__, kind.key), strict=True))
    members = {"__doc__": kind.__doc__, "__module__": __name__, **functions}
    return type(f"Tempered{kind.__name__}", (TemperedTarget, kind), members)


@jit.helper
def _own(params):
    """The numbers of the target and T, which precede those of a grid; the last one says how many they are."""
    return params[: int(params[params.size - 1])]


def declare_again(name: str) -> None:
    """Declare the functions of a tempered target in another process, where one has this name (``jit.name_of``)."""
    from sgmcmc_lab.samplers.targets import TARGETS

    kind: Any = TARGETS[name.rsplit(".", 2)[1]]
    class_of(kind)


class TemperedTarget(Divided, Boxed):  # type: ignore[misc]
    """The distribution e^{−U/T} of another target's energy U; its class is also a subclass of that target's.

    Energy, gradient and the gradients of data points are the other's, divided by T, so that every sampler has this
    distribution as its target, with the discretisation error that it has there. The exact answers come from quadrature
    in up to three coordinates, if the columns are the coordinates, and from a long run otherwise.
    """

    exact_law = False
    native = None
    watched = False

    def formula(self) -> str:
        own = self.base.formula()
        return own if own == "U" else f"({own})/{self.temperature!r}"

    @property
    def n_data(self) -> int:  # type: ignore[override]
        return len(self.base.data())

    @property
    def dim(self) -> int:
        return self.base.dim

    @cached_property
    def params(self) -> Array:  # type: ignore[override]
        """The numbers of the other target, and after them the temperature."""
        return np.append(self.base.without_draws(), self.temperature)

    @cached_property
    def start_at(self) -> Array:  # type: ignore[override]
        return self.base.start()

    def starts(self) -> Array:
        return self.base.starts()

    def data(self) -> NDArray[np.int64]:
        return self.base.data()

    @property
    def gradient_work(self) -> int:
        return 100 + 10 * max(self.n_data, 1) * self.dim

    @property
    def column_names(self) -> tuple[str, ...]:
        return self.base.column_names

    @property
    def n_values(self) -> int:
        return self.base.n_values

    @property
    def planar(self) -> bool:
        return self.base.planar

    @property
    def _quadrature_fits(self) -> bool:
        return self.dim <= FEW and self.of_coordinates

    def _starts(self) -> list[tuple[Array, Array | None]]:
        return [*((start, None) for start in self.starts()), *super()._starts()[1:]]

    looked_from = "draws at T = 1"

    def afar(self) -> Array:
        """Exact draws of the other target: e^{−U/T} has the modes of e^{−U}."""
        rng = np.random.default_rng(3)
        return np.array([self.base.textbook_draw(rng) for _ in range(_AFAR)]).reshape(_AFAR, self.dim)

    @cached_property
    def _peak(self) -> tuple[Array, Array]:
        """The mode of the other target; T divides the curvature there."""
        if isinstance(self.base, LongRun):
            return self.base.mode, self.base.curvature / self.temperature
        return super()._peak

    def _found(self, tell: Tell, rough: bool = False) -> Reference:
        if not self._quadrature_fits:
            self._quadrature = None
            return LongRun._found(self, tell, rough)
        found = super()._found(tell, rough)
        if self._quadrature is None and not rough and not self.n_data:
            raise SpecError(
                "temperature",
                self.temperature,
                f"no quadrature resolves {self.title} there, so that it would have no exact answers; allowed are temperatures nearer to 1",
            )
        return found

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return super(Boxed, self).columns if self.by_quadrature is None else tuple(map(self._column, range(self.dim)))

    @property
    def moments(self) -> tuple[Moment, ...]:
        return Target.moments.fget(self)  # type: ignore[attr-defined]

    def facts(self) -> Mapping[str, str]:
        if self.by_quadrature is None:
            return super().facts()
        said = super().facts()
        return {**said, "Exact answers": f"{said['Exact answers']}, of e^(−U/T)"}

    def log_column_density(self, values: Array) -> Array:
        return self.log_density(values)

"""The common part of the distributions e^{−U/T} of another target's energy U."""

from typing import Self

from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.targets.base import Target


class AtTemperature(Target):
    """The distribution e^{−U/T} of another target's energy U, T ≠ 1; its class is also a subclass of that target's."""

    tempers = False
    process = None
    base: Target
    temperature: float

    @classmethod
    def made(cls, base: Target, temperature: float) -> Self:
        """That target at this temperature."""
        out = object.__new__(cls)
        # The parameters are those of the other target; no computed value of it is taken over.
        out.__dict__.update({name: value for name, value in base.__dict__.items() if name.startswith("_param")})
        out.__dict__.update(base=base, temperature=float(temperature))
        return out

    @property
    def tex(self) -> str:  # type: ignore[override]
        """U(θ)/T in LaTeX."""
        left, equals, right = self.base.tex.partition("=")
        whole = rf"\frac1T\Bigl[{right.strip()}\Bigr]" if equals else rf"\frac1T\,{left}"
        return rf"\frac{{U(\theta)}}{{T}} = {whole},\quad T = {self.temperature:g}"


def tempered_shape(target: Target, shape: float, name: str, temperature: float, high: float) -> float:
    """1 + (a − 1)/T: the exponent of θ plus 1 in (θ^{a−1})^{1/T}. Raises :class:`SpecError` where it is no shape."""
    out = 1 + (shape - 1) / temperature
    if out <= 0:
        raise SpecError(
            "temperature",
            temperature,
            f"e^(−U/T) of {target.title} has no finite integral at 0; allowed are temperatures above 1 − {name} = {1 - shape:g}",
        )
    if not 0.005 <= out <= high:
        raise SpecError(
            "temperature",
            temperature,
            f"{target.title} would have the shape {out:.4g} there; allowed are temperatures with a shape from 0.005 to {high:g}",
        )
    return out

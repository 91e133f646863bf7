"""Named samplers as recipes: each one's H, D and Q, declared once.

The entries are texts of the recipe's own grammar. A key (θ, r) stands for a diagonal block: in two dimensions
its entries are (theta1, r1) and (theta2, r2), and ``{theta}``, ``{r}`` stand for the names of that coordinate. Where
the layout has one entry for all coordinates it is (theta, r). Other words in braces are the preset's parameters, and
``{d}`` is the dimension of θ.
"""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, ClassVar

import param

from sgmcmc_lab.samplers.parameters import Real, SpecError, check_all
from sgmcmc_lab.samplers.recipe.recipe import ENERGY, MAX_DIM, MAX_REFRESH, THETA, THETA_R, THETA_R_XI, Layout, Recipe
from sgmcmc_lab.samplers.registry import Registry

Entries = Mapping[tuple[str, str], str]


class Preset(param.Parameterized):
    """A named sampler: the layout of its state, D and Q with parameters, and where it is from."""

    key: ClassVar[str]
    title: ClassVar[str]
    kind: ClassVar[str]
    dims: ClassVar[Sequence[int]] = range(1, MAX_DIM + 1)
    """The dimensions of θ that it exists in."""
    diffusion: ClassVar[Entries] = {}
    curl: ClassVar[Entries] = {}
    source: ClassVar[str]
    energies: ClassVar[Mapping[int, str]] = {
        1: "theta^4 - 2*theta^2",
        2: "theta1^4/10 + (4*(theta2 + 1.2) - theta1^2)^2/2",
    }
    """An energy to begin with, by dimension: the paper's double well and its 2-D target."""
    positive: ClassVar[bool] = False
    """Whether θ lives on (0, ∞)."""
    gamma_dropped: ClassVar[bool] = False
    dissipation_dropped: ClassVar[bool] = False
    gradient: ClassVar[str] = "full"
    """The gradient that a lane begins with where none is chosen."""

    @classmethod
    def recipe(cls, dim: int = 1, potential: str | None = None, **values: Any) -> Recipe:
        """The recipe with these parameters; those left out have their defaults. Raises :class:`SpecError`."""
        if dim not in cls.dims:
            raise SpecError("preset.dim", dim, f"{cls.title} is for θ of dimension {_listed(cls.dims)}")
        parameters: dict[str, Any] = dict(check_all(cls, "preset", values))
        layout = Layout(cls.kind, dim)
        return Recipe.from_text(
            layout,
            cls.energies.get(dim, ENERGY) if potential is None else potential,
            cls._entries(cls.diffusion, layout, parameters),
            cls._entries(cls.curl, layout, parameters),
            friction=parameters.get("friction", 1.0),
            gamma_dropped=cls.gamma_dropped,
            dissipation_dropped=cls.dissipation_dropped,
            refresh=parameters.get("refresh", 0.0),
        )

    @staticmethod
    def _entries(blocks: Entries, layout: Layout, parameters: Mapping[str, Any]) -> dict[str, str]:
        names = layout.rows
        every = [("theta", "r")] if layout.alike else list(zip_longest(layout.thetas, layout.momenta, fillvalue=""))
        numbers = {label: repr(value).removesuffix(".0") for label, value in parameters.items()}
        entries = {}
        for (row, column), text in blocks.items():
            for theta, r in every:
                own = {"theta": theta, "r": r, "xi": "xi"}
                pair = own.get(row, row), own.get(column, column)
                if set(pair) <= set(names):
                    a, b = (names.index(label) + 1 for label in pair)
                    entries[f"{a},{b}"] = text.format(**own, d=layout.dim, **numbers)
        return entries


class SGLD(Preset):
    """Stochastic gradient Langevin dynamics: dθ = −D∇U dt + √(2D) dW with a constant D, Γ = 0. Eq (13)."""

    key = "sgld"
    title = "SGLD"
    kind = THETA
    diffusion = {("theta", "theta"): "{diffusion_strength}"}
    source = "Welling & Teh 2011; Ma, Chen & Fox 2015, eq (13)"

    diffusion_strength = Real(
        1.0,
        bounds=(0.01, 100.0),
        log=True,
        tex="D_0",
        label="Diffusion D",
        doc="How strong drift and noise are. In SGLD it only changes the unit of time.",
    )


class SGRLD(Preset):
    """Stochastic gradient Riemannian Langevin dynamics on θ > 0: dθ = (1 − θ∇U) dt + √(2θ) dW.

    D = diag(θ), so that Γ = 1. Corrects the printed eq (14), which subtracts Γ.
    """

    key = "sgrld"
    title = "SGRLD"
    kind = THETA
    diffusion = {("theta", "theta"): "{theta}"}
    source = "Patterson & Teh 2013; Ma, Chen & Fox 2015, eq (14)"
    energies = {1: "theta - 1.5*log(theta)", 2: "theta1 - 1.5*log(theta1) + theta2 - 0.5*log(theta2)"}
    positive = True


class HMC(Preset):
    """Hamiltonian dynamics: dθ = r dt, dr = −∇U dt; D = 0, Q = [[0, −I], [I, 0]]. Eq (10) with M = I.

    By themselves they leave e^{−H} invariant and never leave their level of H, so the momentum is resampled,
    r ~ N(0, I), at the start and then at random times, λ of them in a unit of time. Random, since after a fixed time,
    such as the period of a Gaussian's orbits, θ may be back where it was.
    """

    key = "hmc"
    title = "HMC"
    kind = THETA_R
    curl = {("theta", "r"): "-1"}
    source = "Neal 2011; Ma, Chen & Fox 2015, eq (10)"

    refresh = Real(
        1.0,
        bounds=(0.0, MAX_REFRESH),
        tex=r"\lambda",
        label="Momentum redraws λ",
        doc="How often in a unit of time the momentum is drawn afresh. With 0 the chain stays on its level of H.",
    )


class SGHMC(Preset):
    """Stochastic gradient HMC: dθ = r dt, dr = −∇U dt − C r dt + √(2C) dW; D = diag(0, C). Eq (12)."""

    key = "sghmc"
    title = "SGHMC"
    kind = THETA_R
    diffusion = {("r", "r"): "{friction}"}
    curl = {("theta", "r"): "-1"}
    source = "Chen, Fox & Guestrin 2014; Ma, Chen & Fox 2015, eq (12)"

    friction = Real(
        1.0, bounds=(0.01, 100.0), log=True, tex="C", label="Friction C", doc="How fast the momentum is forgotten."
    )


class NaiveSGHMC(Preset):
    """SGHMC without friction: dθ = r dt, dr = −∇Ũ dt, and no noise but the gradient's own. Eq (11).

    A step of size ε with noise N(0, V) in the gradient adds ε²V = 2εD to the variance of r: in the paper's words the
    noise √(2D) dW with D = εV/2, which corrects the printed D = V. It comes with the gradient, so that it follows ε and
    V, and nothing is injected; the term −D∇H that would balance it is not there (``dissipation_dropped``). The mean
    of H grows by εVd/2 in a unit of time, for ever: the process has no stationary distribution at all.
    """

    key = "naive_sghmc"
    title = "Naive SGHMC"
    kind = THETA_R
    curl = {("theta", "r"): "-1"}
    source = "Chen, Fox & Guestrin 2014; Ma, Chen & Fox 2015, eq (11)"
    dissipation_dropped = True
    gradient = "gaussian"


class SGNHT(Preset):
    """Stochastic gradient Nosé–Hoover thermostat: dθ = r dt, dr = −∇U dt − ξ r dt + √(2A) dW, dξ = (rᵀr/d − 1) dt.

    H = U + |r|²/2 + (d/2)(ξ − A)², D = diag(0, A, 0), Q of eq (15). Corrects the printed (1/2d)(ξ − A)².
    """

    key = "sgnht"
    title = "SGNHT"
    kind = THETA_R_XI
    diffusion = {("r", "r"): "{friction}"}
    curl = {("theta", "r"): "-1", ("r", "xi"): "{r}/{d}"}
    source = "Ding et al. 2014; Ma, Chen & Fox 2015, eq (15)"

    friction = Real(
        1.0,
        bounds=(0.01, 100.0),
        log=True,
        tex="A",
        label="Friction A",
        doc="The mean of the thermostat, and the noise that it balances.",
    )


class GSGRHMC(Preset):
    """Generalised stochastic gradient Riemann HMC, with the metric G^{−1} = D_c √|U + C|.

    dθ = G^{−1/2} r dt, dr = −G^{−1/2}∇U dt + ∇·(G^{−1/2}) dt − G^{−1} r dt + √(2G^{−1}) dW: D = diag(0, G^{−1}),
    Q = [[0, −G^{−1/2}], [G^{−1/2}, 0]]. Algorithm 1; corrects the two signs of the printed eq (17).

    C must keep U + C away from 0, where Γ diverges: C ≥ 1.5 for the double well θ⁴ − 2θ², whose least value is −1.
    """

    key = "gsgrhmc"
    title = "gSGRHMC"
    kind = THETA_R
    diffusion = {("r", "r"): "{scale}*sqrt(abs(U + {shift}))"}
    curl = {("theta", "r"): "-sqrt({scale}*sqrt(abs(U + {shift})))"}
    source = "Ma, Chen & Fox 2015, Algorithm 1 and eq (17)"

    scale = Real(
        1.5,
        bounds=(0.01, 100.0),
        log=True,
        tex="D_c",
        label="Scale of the metric",
        doc="How strong the metric is; it changes the unit of time.",
    )
    shift = Real(
        1.5,
        bounds=(0.0, 100.0),
        tex="C",
        label="Shift of the metric",
        doc="Added to the energy, to keep the metric from vanishing. The paper has 0.5, which is too little for the double well.",
    )


class NaiveSGRHMC(GSGRHMC):
    """Stochastic gradient Riemann HMC without Γ: what a careless implementation does. Eq (16).

    dθ = G^{−1/2} r dt, dr = −G^{−1/2}∇U dt − G^{−1} r dt + √(2G^{−1}) dW. Its marginal of θ is exactly ∝ e^{−U}
    G^{1/2}.
    """

    key = "naive_sgrhmc"
    title = "Naive SGRHMC"
    source = "Ma, Chen & Fox 2015, eq (16)"
    gamma_dropped = True


class CurlSGLD(Preset):
    """SGLD with a constant curl in two dimensions: dθ = −(D + Q)∇U dt + √(2D) dW, Q = q [[0, 1], [−1, 0]], Γ = 0."""

    key = "curl_sgld"
    title = "SGLD with a curl"
    kind = THETA
    dims = (2,)
    diffusion = {("theta", "theta"): "{diffusion_strength}"}
    curl = {("theta1", "theta2"): "{curl_strength}"}
    source = "Ma, Chen & Fox 2015, eq (3); Lelièvre, Nier & Pavliotis 2013"

    diffusion_strength = Real(
        1.0, bounds=(0.01, 100.0), log=True, tex="D_0", label="Diffusion D", doc="How strong drift and noise are."
    )
    curl_strength = Real(
        1.0,
        bounds=(-100.0, 100.0),
        tex="q",
        label="Strength q",
        doc="How fast the process goes around along the contours of the energy.",
    )


class SGFS(Preset):
    """Stochastic gradient Fisher scoring: SGLD with a constant matrix D, and B̂ = D V D subtracted. Section 3.1.

    dθ = −D∇U dt + √(2D) dW; a step is θ ← θ − εD∇Ũ + N(0, ε(2D − εB̂)).
    """

    key = "sgfs"
    title = "SGFS"
    kind = THETA
    dims = (1, 2)
    diffusion = {("theta", "theta"): "{diffusion_strength}", ("theta1", "theta2"): "{diffusion_strength}*{correlation}"}
    source = "Ahn, Korattikara & Welling 2012; Ma, Chen & Fox 2015, section 3.1"

    diffusion_strength = Real(
        1.0, bounds=(0.01, 100.0), log=True, tex="D_0", label="Diffusion D", doc="How strong drift and noise are."
    )
    correlation = Real(
        0.5,
        bounds=(-0.99, 0.99),
        tex=r"\rho",
        label="Correlation of D",
        doc="In two dimensions: how much the two noises have in common.",
    )


PRESETS: Registry[type[Preset]] = Registry(
    "preset",
    SGLD,
    SGRLD,
    HMC,
    SGHMC,
    NaiveSGHMC,
    SGNHT,
    GSGRHMC,
    NaiveSGRHMC,
    CurlSGLD,
    SGFS,
)


def _listed(dims: Sequence[int]) -> str:
    """As in ``1 or 2``."""
    return f"{dims[0]} to {dims[-1]}" if len(dims) > 2 else " or ".join(map(str, dims))


def preset(key: str, dim: int = 1, potential: str | None = None, **values: Any) -> Recipe:
    """The recipe of a named preset; raises :class:`SpecError` for what it does not have."""
    return PRESETS.find("preset", key).recipe(dim, potential, **values)

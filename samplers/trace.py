"""The result of a run: draws and running statistics, to ArviZ, NetCDF and CSV."""

import csv
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.kernels.base import Sampler
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.requirements import BATCH
from sgmcmc_lab.samplers.running_statistics import Statistics
from sgmcmc_lab.samplers.targets.base import SIMPLEX, Array, Target

MAX_LOG_LIKELIHOOD = 4_000_000
"""Numbers of log p(row | θ) in one file, 32 MB: of every row for every draw."""


@runtime_checkable
class HasRows(Protocol):
    """A target whose log density of one row is known."""

    n_data: int

    def log_likelihood(self, theta: Array) -> Array:
        """log p(row | θ) at θ (..., dim), (..., N)."""


@dataclass(frozen=True)
class Divergence:
    """Why a lane stands still: a chain left its target for good, or the sampler is none."""

    step: int
    message: str
    refused: bool = False
    """Whether the sampler was refused, so that another one may go on from here."""

    @classmethod
    def of(cls, sampler: Sampler, target: Target, step: int, above: bool = False) -> "Divergence":
        """The sentence a person reads: what happened and what to change; ``above``: a rate was above its bound."""
        if above:
            known = {"lipschitz": target.lipschitz}
            if BATCH in target.provides:
                known["lipschitz_of_each"] = target.lipschitz_of_each
            said = " or ".join(f"{name}, {np.max(values):g} at most," for name, values in known.items())
            return cls(
                step,
                f"{sampler.title} stopped on {target.title} at step {step + 1:,}: a rate of events was above its bound. "
                f"The target's {said} is too small; allowed are C_i with |∂_iU(θ) − ∂_iU(θ′)| ≤ C_i‖θ − θ′‖ for all θ and θ′.",
            )
        step_size = getattr(sampler, "step_size", None)
        advice = f"Make the step size smaller than {step_size:g}" if step_size is not None else "Choose another sampler"
        return cls(
            step,
            f"{sampler.title} blew up on {target.title} at step {step + 1:,}: {sampler.why_it_stops}. {advice} and reset.",
        )


@dataclass(frozen=True)
class Trace:
    """A run's draws and statistics."""

    spec: RunSpec
    target: Target
    statistics: Statistics
    draws: Array | None
    """θ, (chains, draws, dim), where the full trace was kept."""
    steps: int
    counted_from: int
    gradients: int
    data_seen: int
    seconds: float
    accepted: int
    clipped: int
    turned: int
    """Trajectories that turned back at an implicit step without a solution."""
    divergence: Divergence | None
    divergent: int = 0
    """Divergent transitions: trajectories with an energy error above 1000."""
    diverging: NDArray[np.bool_] | None = None
    """Whether the transition to each stored draw diverged, (chains, draws); None where that is not known, and for
    samplers without divergent transitions."""
    diverging_unknown: str = ""
    """Why it is not known."""
    drawn_at: NDArray[np.int64] | None = None
    """The step of each stored draw, from 1, (draws,)."""
    own_weights: Array | None = None
    """The weight of each stored draw of each chain, (chains, draws), from a sampler that weights its draws."""

    @property
    def weights(self) -> Array | None:
        """The weight of each stored draw, its step size as a share of ε, (draws,), or, from a sampler that weights its
        draws, (chains, draws); None where all are equal.
        """
        if self.own_weights is not None:
            return self.own_weights
        schedule = self.spec.make_schedule()
        if self.drawn_at is None or not schedule.falls:
            return None
        return schedule.shares(self.drawn_at - 1)

    @property
    def acceptance(self) -> float:
        """The share of accepted proposals, for samplers with an accept step."""
        return self.accepted / max(self.statistics.n_draws, 1)

    def values(self) -> Array:
        """The values on the page, (chains, draws, values): θ, or ω on the simplex."""
        if self.draws is None:
            raise ValueError("the full trace was not kept: run with keep_draws=True")
        return self.target.values(self.draws)[..., : self.target.n_values]

    def to_arviz(self) -> Any:
        """An ArviZ ``DataTree`` with the group posterior, and the spec's JSON among its attributes.

        Where draws have weights, the group sample_stats holds them, and for samplers with divergent transitions
        ``diverging``, whether the transition to the draw diverged; where that is not known for all draws, the attribute
        ``diverging`` says why. Variable ``theta`` holds θ (chain, draw, dim); on the simplex ``omega`` holds ω besides.
        If the target has the log density of each row, the group log_likelihood holds it (chain, draw, row), up to
        ``MAX_LOG_LIKELIHOOD`` numbers; beyond, the attribute ``log_likelihood`` says that it is left out.
        """
        from arviz_base import from_dict

        if self.draws is None:
            raise ValueError("the full trace was not kept: run with keep_draws=True")
        posterior = {"theta": self.draws}
        dims = {"theta": ["coordinate"]}
        if self.target.support == SIMPLEX:
            posterior["omega"] = self.values()
            dims["omega"] = ["coordinate"]
        groups, left_out = {"posterior": posterior}, ""
        stats: dict[str, Any] = {}
        if (weights := self.weights) is not None:
            stats["weight"] = np.broadcast_to(weights, self.draws.shape[:2]).copy()
        if self.diverging is not None:
            stats["diverging"] = self.diverging
        if stats:
            groups["sample_stats"] = stats
        if isinstance(self.target, HasRows):
            n = self.draws.shape[0] * self.draws.shape[1] * self.target.n_data
            if n <= MAX_LOG_LIKELIHOOD:
                groups["log_likelihood"] = {"row": self.target.log_likelihood(self.draws)}
                dims["row"] = ["number"]
            else:
                left_out = f"left out: of {self.target.n_data:,} rows for every draw it has {n:,} numbers; allowed are {MAX_LOG_LIKELIHOOD:,}, so thin the run"
        with warnings.catch_warnings():
            # Many chains of few draws are meant.
            warnings.filterwarnings("ignore", "Found chain dimension to be longer than draw dimension")
            tree = from_dict(groups, dims=dims, coords={"coordinate": np.arange(1, self.target.dim + 1)})
        if left_out:
            tree.attrs["log_likelihood"] = left_out
        tree.attrs["spec"] = self.spec.to_json()
        tree.attrs["steps"] = self.steps
        tree.attrs["seconds"] = self.seconds
        if self.turned:
            tree.attrs["turned"] = self.turned
        if self.divergent:
            tree.attrs["divergent"] = self.divergent
        if self.diverging_unknown:
            tree.attrs["diverging"] = self.diverging_unknown
        if self.divergence is not None:
            tree.attrs["divergence"] = self.divergence.message
        return tree

    def save(self, path: str | Path) -> None:
        """Write NetCDF (``.nc``) or CSV (``.csv``), by suffix. Raises :class:`SpecError` for another suffix."""
        path = Path(path)
        if path.suffix == ".nc":
            self.to_arviz().to_netcdf(path)
        elif path.suffix == ".csv":
            with path.open("w", newline="") as file:
                self.write_csv(file)
        else:
            raise SpecError("out", path.name, "allowed suffixes are .nc and .csv")

    def write_csv(self, file: Any) -> None:
        """One row a draw: chain, draw, θ₁…, ω₁… on the simplex, and the weight if draws have weights, at full
        precision.
        """
        if self.draws is None:
            raise ValueError("the full trace was not kept: run with keep_draws=True")
        dim = self.target.dim
        simplex = self.target.support == SIMPLEX
        table = np.concatenate([self.draws, self.values()], axis=-1) if simplex else self.draws
        names = [f"theta_{i + 1}" for i in range(dim)] + [f"omega_{i + 1}" for i in range(dim if simplex else 0)]
        if (weights := self.weights) is not None:
            names.append("weight")
            column = np.broadcast_to(weights, table.shape[:2])[..., None]
            table = np.concatenate([table, column], axis=-1)
        writer = csv.writer(file)
        writer.writerow(["chain", "draw", *names])
        for chain, rows in enumerate(table):
            for draw, row in enumerate(rows.tolist()):
                writer.writerow([chain, draw, *row])

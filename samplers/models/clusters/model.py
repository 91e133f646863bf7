"""Dirichlet process mixtures whose points are partly held out, and that of Gaussians in the plane."""

from abc import abstractmethod
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.random import SFC64, Generator
from numpy.typing import NDArray

from sgmcmc_lab.samplers.file_format import GUESSED, Format
from sgmcmc_lab.samplers.files import Tell, untold
from sgmcmc_lab.samplers.models.base import Model
from sgmcmc_lab.samplers.models.clusters.normal import DRAWN, sums_of
from sgmcmc_lab.samplers.models.clusters.points import BUILT_IN, MAX_POINTS, Points, read
from sgmcmc_lab.samplers.parameters import UPLOADED, Count, Option, Real, SpecError
from sgmcmc_lab.samplers.targets.base import Array

TOGETHER = 60
"""Points whose co-clustering is counted: of more, the count would take longer than a small minibatch."""
_BUILT_IN = {key: lru_cache(make) for key, make in BUILT_IN.items()}


def beside(key: Array | NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """Up to TOGETHER data, drawn with a seed, those of one key beside each other."""
    some = Generator(SFC64(seed)).permutation(len(key))[:TOGETHER]
    return some[np.argsort(key[some], kind="stable")].astype(np.int64)


class ClusterModel(Model):
    """A Dirichlet process mixture of a family of :mod:`samplers.models.clusters.family`, with z ~ CRP(α).

    α ~ Gamma(1, 1). Held out are some points; the score is the mean log density that the other points give them.
    """

    score_name = "held-out log density"
    higher_is_better = True
    data_name = "points"
    followed = ("clusters", "largest cluster", "second cluster", "concentration α")
    n_drawn: ClassVar[int] = DRAWN
    """The numbers of a cluster whose parameters are drawn."""
    x: Array
    """The points that the methods see, (N, d)."""
    held: Array
    """Those that they do not."""
    prior: Array
    """The prior of a cluster, as its family has it."""
    groups: NDArray[np.int64] | None
    """The known group of each point that the methods see."""
    shown: NDArray[np.int64]
    """Points whose co-clustering is counted, those of one known group beside each other, (TOGETHER,)."""
    held_out: float
    split_seed: int

    def split(self, points: Array, groups: NDArray[np.int64] | None) -> None:
        """Hold some of the points (N, d) out."""
        order = Generator(SFC64(self.split_seed)).permutation(len(points))
        n_held = max(1, round(self.held_out * len(points)))
        self.held = np.ascontiguousarray(points[np.sort(order[:n_held])])
        seen = np.sort(order[n_held:])
        self.x = np.ascontiguousarray(points[seen])
        self.groups = None if groups is None else groups[seen]
        self.shown = beside(self.x[:, 0] if self.groups is None else self.groups, self.split_seed)

    @abstractmethod
    def sums(self, z: NDArray[np.int64], n_slots: int) -> Array:
        """The statistics of each cluster, (slots, …), from the clusters of the points (N,)."""

    @abstractmethod
    def described(self, known: Array) -> dict[str, Array]:
        """The entries of a snapshot for clusters with these statistics, (K, …)."""

    @property
    def n_data(self) -> int:
        """The points that the methods see."""
        return len(self.x)

    def ranges(self) -> tuple[tuple[float, float, bool], ...]:
        """One cluster, or any number up to the number of points; shares of the points."""
        share = (0.0, 1.0001, False)
        return (0.9, 1.1 * MAX_POINTS, True), share, share, (1e-6, 1e4, True)

    def followed_of(self, counts: Array, alpha: float) -> Array:
        """The numbers that are followed, from the sizes of the clusters."""
        sizes = np.sort(counts)[::-1] / self.n_data
        return np.array([np.count_nonzero(counts), sizes[0], sizes[1] if len(sizes) > 1 else 0.0, alpha])

    def score(self, logs: Array) -> float:
        """The mean of the log density of the held-out points."""
        if not np.isfinite(logs).all():
            raise FloatingPointError("The log density of a held-out point is no longer finite.")
        return float(logs.mean())


class Clusters(ClusterModel):
    """A Dirichlet process mixture of Gaussians (Smolyakov, Liu & Fisher, section 3.2).

    z ~ CRP(α), α ~ Gamma(1, 1); μ_k, Σ_k ~ NIW(0, κ₀, ν₀, (ν₀ − 3) s² I), so that E Σ = s² I; x_i ~ N(μ_z, Σ_z). The
    points are two columns of the data, each with mean 0 and standard deviation 1. Held out are some points; the score
    is the mean log density that the other points give them.
    """

    key = "clusters"
    title = "Clusters of points"
    tex = (
        r"\begin{aligned}w &\sim \mathrm{GEM}(\alpha),\quad \alpha\sim\mathrm{Gamma}(1,1),\quad z_i \sim w,\quad "
        r"x_i \mid z_i \sim \mathcal N(\mu_{z_i}, \Sigma_{z_i})\\ \Sigma_k &\sim \mathrm{IW}\bigl(\nu_0, (\nu_0-3)s^2 I\bigr),\quad "
        r"\mu_k \mid \Sigma_k \sim \mathcal N(0, \Sigma_k/\kappa_0)\end{aligned}"
    )
    source = "Ferguson 1973; Neal 2000; Smolyakov, Liu & Fisher, section 3.2"
    data_parameter = "points"
    real_data = "iris"

    points = Option(
        default="five",
        objects=[*BUILT_IN, UPLOADED],
        label="Points",
        doc="Five made-up clusters; irises of three species; wines of three growers; or an uploaded CSV file.",
    )
    first = Count(1, bounds=(1, 99), label="First column", doc="The column of the data on the horizontal axis.")
    second = Count(2, bounds=(1, 99), label="Second column", doc="The column of the data on the vertical axis.")
    cluster_sd = Real(
        0.15,
        bounds=(0.01, 3.0),
        log=True,
        tex="s",
        label="Cluster size s",
        doc="The standard deviation of a cluster that the prior expects, where that of all points is 1.",
    )
    freedom = Real(
        6.0,
        bounds=(4.0, 100.0),
        log=True,
        tex=r"\nu_0",
        label="Sameness ν₀",
        doc="The strength of the prior on that size: small values allow clusters of very different sizes.",
    )
    mean_weight = Real(
        0.03,
        bounds=(1e-3, 10.0),
        log=True,
        tex=r"\kappa_0",
        label="Prior weight κ₀",
        doc="The weight of the prior of a cluster's mean, in points. If it is small, clusters may lie anywhere.",
    )

    held_out = Real(
        0.2, bounds=(0.05, 0.5), label="Held-out share", doc="The share of the points that the methods do not see."
    )
    split_seed = Count(1, bounds=(0, 2**32 - 1), label="Split seed", doc="It selects the held-out points.")

    @classmethod
    def read(cls, files: Mapping[str, bytes], tell: Tell = untold, form: Format = GUESSED) -> Points:
        """One file."""
        return read(files, form)

    def prepare(self) -> None:
        """Load the points and hold some out."""
        if self.points != UPLOADED:
            self.data = _BUILT_IN[self.points]()
        elif isinstance(self.uploaded, Points):
            self.data = self.uploaded
        else:
            raise SpecError("model.points", UPLOADED, "no file has been uploaded; choose one, or built-in points")
        n_columns = self.data.x.shape[1]
        for field in ("first", "second"):
            if getattr(self, field) > n_columns:
                raise SpecError(f"model.{field}", getattr(self, field), f"these points have {n_columns} columns")
        if self.first == self.second:
            raise SpecError("model.second", self.second, "the second column is another one than the first")
        columns = [int(self.first) - 1, int(self.second) - 1]
        self.names = tuple(self.data.names[k] for k in columns)
        chosen = self.data.x[:, columns]
        chosen = (chosen - chosen.mean(axis=0)) / chosen.std(axis=0)
        self.split(chosen, self.data.groups)
        self.prior = np.array([self.mean_weight, self.freedom, (self.freedom - 3) * self.cluster_sd**2])

    def facts(self) -> Mapping[str, str]:
        """The description of the data."""
        facts = {
            "points": f"{len(self.data.x):,}, of which {len(self.held):,} are held out",
            "columns": f"{self.names[0]} and {self.names[1]}",
        }
        if self.groups is not None:
            facts["known groups"] = (
                f"{len(self.data.group_names)}: {', '.join(self.data.group_names[:6])}{', …' * (len(self.data.group_names) > 6)}"
            )
        return facts

    def sums(self, z: NDArray[np.int64], n_slots: int) -> Array:
        return sums_of(self.x, z, n_slots)

    def described(self, known: Array) -> dict[str, Array]:
        """``means`` (K, 2) and ``covariances`` (K, 2, 2): of μ and Σ the posterior means given z."""
        means, covariances = expected(known, self.prior)
        return {"means": means, "covariances": covariances}


def expected(known: Array, prior: Array) -> tuple[Any, Any]:
    """The posterior means of μ (K, 2) and of Σ (K, 2, 2) of clusters of which that is known, (K, 6)."""
    n, sums = known[:, 0], known[:, 1:3]
    kappa = prior[0] + n
    mean = sums / kappa[:, None]
    squares = known[:, [3, 4, 4, 5]].reshape(-1, 2, 2)
    spread = prior[2] * np.eye(2) + squares - kappa[:, None, None] * mean[:, :, None] * mean[:, None, :]
    return mean, spread / (prior[1] + n - 3)[:, None, None]

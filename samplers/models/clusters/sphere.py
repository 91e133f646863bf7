"""A Dirichlet process mixture of von Mises–Fisher distributions on a sphere, with some of its points held out."""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers.file_format import GUESSED, Format
from sgmcmc_lab.samplers.files import Tell, untold
from sgmcmc_lab.samplers.models.clusters.model import ClusterModel
from sgmcmc_lab.samplers.models.clusters.sphere_points import MADE_KAPPA, Directions, made, read, wine
from sgmcmc_lab.samplers.models.clusters.von_mises import FIRST, KAPPA, prior_of, sums_of
from sgmcmc_lab.samplers.parameters import UPLOADED, Count, Option, Real, SpecError
from sgmcmc_lab.samplers.targets.base import Array

MAX_NUMBERS = 500_000
"""Points times their dimensions: with so many a sweep takes some hundredths of a second a cluster."""
_MADE = lru_cache(maxsize=8)(made)
_WINE = lru_cache(wine)


def main_directions(x: Array) -> Array:
    """The columns where there are three; else the directions with the largest sums of squares of x (N, d), (3, d)."""
    dim = x.shape[1]
    if dim <= 3:
        return np.eye(3)[:, :dim]
    values, vectors = np.linalg.eigh(x.T @ x)
    return np.ascontiguousarray(vectors[:, np.argsort(-values)[:3]].T)


class SphereClusters(ClusterModel):
    """A Dirichlet process mixture of von Mises–Fisher distributions (Banerjee et al. 2005; Gopal & Yang 2014).

    z ~ CRP(α), α ~ Gamma(1, 1); μ_k ~ vMF(m, κ₀), where m is the mean direction of all points; x_i ~ vMF(μ_z, κ), with
    one κ for all clusters. Held out are some points; the score is the mean log density, on the sphere, that the other
    points give them.
    """

    key = "sphere_clusters"
    title = "Clusters on a sphere"
    tex = (
        r"\begin{aligned}w &\sim \mathrm{GEM}(\alpha),\quad \alpha\sim\mathrm{Gamma}(1,1),\quad z_i \sim w\\"
        r"x_i \mid z_i &\sim \mathrm{vMF}(\mu_{z_i}, \kappa),\quad \mu_k \sim \mathrm{vMF}(m, \kappa_0)\end{aligned}"
    )
    source = "Ferguson 1973; Banerjee, Dhillon, Ghosh & Sra 2005; Gopal & Yang 2014"
    data_parameter = "points"
    real_data = "wine"

    points = Option(
        default="made",
        objects=["made", "wine", UPLOADED],
        label="Points",
        doc="Made-up points of six clusters on S²; wines of three growers, by the direction in which each differs from the mean wine; or the rows of an uploaded CSV file, such as vectors of words, scaled to length 1.",
    )
    items = Count(
        500, bounds=(20, 5000), log=True, label="Made-up points", doc="Their number, held-out points included."
    )
    data_seed = Count(1, bounds=(0, 10000), label="Data seed", doc="It draws the made-up clusters and their points.")
    kappa = Real(
        MADE_KAPPA,
        bounds=(0.1, 10000.0),
        log=True,
        tex=r"\kappa",
        label="Concentration κ",
        doc="The concentration of every cluster: on S², most of its points lie within 140/√κ degrees of its mean direction. A large value gives many narrow clusters.",
    )
    kappa0 = Real(
        0.1,
        bounds=(1e-3, 1000.0),
        log=True,
        tex=r"\kappa_0",
        label="Prior concentration κ₀",
        doc="The concentration of the prior of mean directions. If it is small, clusters may lie anywhere.",
    )
    held_out = Real(
        0.2, bounds=(0.05, 0.5), label="Held-out share", doc="The share of the points that the methods do not see."
    )
    split_seed = Count(1, bounds=(0, 2**32 - 1), label="Split seed", doc="It selects the held-out points.")

    @classmethod
    def read(cls, files: Mapping[str, bytes], tell: Tell = untold, form: Format = GUESSED) -> Directions:
        """One file."""
        return read(files, form)

    def prepare(self) -> None:
        """Load the points and hold some out."""
        if self.points == "made":
            self.data = _MADE(self.items, self.data_seed)
        elif self.points == "wine":
            self.data = _WINE()
        elif isinstance(self.uploaded, Directions):
            self.data = self.uploaded
        else:
            raise SpecError("model.points", UPLOADED, "no file has been uploaded; choose one, or built-in points")
        n, self.dim = self.data.x.shape
        if n * self.dim > MAX_NUMBERS:
            raise SpecError(
                "model.points",
                UPLOADED,
                f"these are {n:,} points of {self.dim} numbers; allowed are {MAX_NUMBERS:,} numbers in all",
            )
        self.n_drawn = self.dim  # type: ignore[misc]
        self.split(self.data.x, self.data.groups)
        mean = self.data.x.mean(axis=0)
        length = float(np.linalg.norm(mean))
        self.axes = main_directions(self.data.x)
        """The directions that a globe shows, (3, d)."""
        self.prior_mean = mean / length if length > 1e-9 else np.eye(self.dim)[0]
        """m."""
        self.prior = prior_of(self.kappa, self.prior_mean, self.kappa0)

    def facts(self) -> Mapping[str, str]:
        """The description of the data."""
        (low, high), d = self.data.lengths, self.dim
        facts = {
            "points": f"{len(self.data.x):,}, of which {len(self.held):,} are held out",
            "dimensions": f"{d}: the sphere {'S²' if d == 3 else f'of the unit vectors of {d} numbers'}",
        }
        if self.points == UPLOADED and high - low > 1e-6:
            facts["lengths"] = f"{low:.3g} to {high:.3g} in the file, scaled to 1"
        if self.groups is not None:
            facts["known groups"] = f"{len(self.data.group_names)}"
        if self.points == "made":
            facts["their κ"] = f"{MADE_KAPPA:g}"
        return facts

    def sums(self, z: NDArray[np.int64], n_slots: int) -> Array:
        return sums_of(self.x, z, n_slots)

    def described(self, known: Array) -> dict[str, Array]:
        """``directions`` (K, d): the mean directions of μ given z."""
        found = self.prior[0, FIRST:] + self.prior[0, KAPPA] * known[:, 1:]
        return {"directions": found / np.linalg.norm(found, axis=1, keepdims=True)}

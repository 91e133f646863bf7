"""The papers' figures as pictures.

The command is ``python -m sgmcmc_lab.lessons.papers.pictures factors FOLDER``.

``factors`` draws Figures 4 to 6 of Knowles 2015, ``network`` its Figures 2 and 3, ``spherical`` Figure 5(a) of Liu, Zhu
& Song 2016. The numbers are measured and printed by the command of the same model in :mod:`samplers.models`, which has
no screen, and whose arguments follow the folder; what the paper has is said beside them in the picture.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sgmcmc_lab.lessons.figures import COLOURS, EXACT, MARKERS, prepare
from sgmcmc_lab.lessons.papers import knowles_2015_figures_2_and_3 as network
from sgmcmc_lab.lessons.papers import knowles_2015_figures_4_to_6 as factors
from sgmcmc_lab.lessons.papers import liu_2016_figure_5 as spherical
from sgmcmc_lab.samplers import SpecError
from sgmcmc_lab.samplers.console import Parser
from sgmcmc_lab.samplers.files import FileError
from sgmcmc_lab.samplers.models import METHODS
from sgmcmc_lab.samplers.targets.base import Array

Picture = tuple[str, Any]
"""The name of its file, and Matplotlib's figure."""
DOTS_PER_INCH = 150


def canvas(title: str, paper: str, n_panels: int = 1, width: float = 7.0) -> tuple[Any, Any]:
    """A figure and its panels; what the paper has stands below the title."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, 4.6), layout="constrained")
    figure.suptitle(title)
    panels = figure.subplots(1, n_panels, squeeze=False)[0]
    figure.supxlabel(paper, fontsize="small", style="italic")
    return figure, panels


def curve(panel: Any, x: Any, values: Array, name: str, i: int, *, standard_error: bool = False) -> None:
    """Means over seeds with their errors; ``values`` is (points, seeds). A point that is not finite is left out."""
    shown = np.isfinite(values).all(axis=1)
    n = values.shape[1]
    error = values[shown].std(axis=1, ddof=1) / (np.sqrt(n) if standard_error else 1) if n > 1 else None
    panel.errorbar(
        np.asarray(x, dtype=float)[shown],
        values[shown].mean(axis=1),
        error,
        label=name,
        color=COLOURS[i],
        marker=MARKERS["matplotlib"][i],
        markersize=5,
        linewidth=1.5,
        capsize=3,
    )


def at_values(axis: Any, values: Sequence[float]) -> None:
    """Ticks at these values alone."""
    from matplotlib.ticker import FixedLocator, NullLocator

    axis.set_major_locator(FixedLocator(list(values)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: f"{value:,g}")


def legend_beside(figure: Any, panel: Any) -> None:
    """The legend, where no data can be."""
    figure.legend(*panel.get_legend_handles_labels(), loc="outside right center", frameon=False)


def heat_map(found: network.Found, elbo: Array) -> Picture:
    """Figure 2 of Knowles 2015."""
    paper = "paper: without momentum performance is degraded; no numbers"
    figure, (panel,) = canvas(f"ELBO/1000 of gamma SGVB, K = {found.communities[0]}, {found.name}", paper)
    mean = elbo.mean(axis=2) / 1000
    image = panel.imshow(mean, cmap="viridis", aspect="auto")
    for (a, b), value in np.ndenumerate(mean):
        spread = f"\n± {elbo[a, b].std(ddof=1) / 1000:.2f}" if found.n_seeds > 1 else ""
        # Dark letters on the light half of the colours.
        dark = image.norm(value) > 0.5
        panel.text(
            b, a, f"{value:.2f}{spread}".replace("-", "−"), ha="center", va="center", color="black" if dark else "white"
        )
    panel.set(xlabel="ρ of AdaDelta", ylabel="1 − λ, the weight of the newest gradient")
    panel.set_xticks(range(len(network.RHOS)), [f"{rho:g}" for rho in network.RHOS])
    panel.set_yticks(range(len(network.KEPT)), [f"{kept:g}" for kept in network.KEPT])
    figure.colorbar(image, label="ELBO/1000 after 1000 steps")
    return "knowles-2015-figure-2", figure


def against_communities(found: network.Found) -> Picture:
    """Figure 3 of Knowles 2015."""
    paper = (
        "paper, NIPS-234, a picture only: MCMC the best at every K, then gamma SGVB, the IRM; NormSGVB and MAP below"
    )
    figure, (panel,) = canvas(f"Held-out edges of {found.name}, {found.n_seeds} seeds", paper, width=8.5)
    for i, key in enumerate(network.METHODS):
        curve(panel, found.communities, found.auc[key], METHODS[key].title, i)
    irm = found.auc[network.IRM][0]
    panel.axhline(irm.mean(), color=EXACT, linestyle="dashed", label=f"{METHODS[network.IRM].title}, without a K")
    if found.n_seeds > 1:
        panel.axhspan(irm.mean() - irm.std(ddof=1), irm.mean() + irm.std(ddof=1), color=EXACT, alpha=0.2, linewidth=0)
    panel.set(xlabel="communities K", ylabel="AUC, ± sd over splits", xscale="log")
    at_values(panel.xaxis, found.communities)
    legend_beside(figure, panel)
    return "knowles-2015-figure-3", figure


def of_network(found: network.Found) -> list[Picture]:
    """Figures 2 and 3 of Knowles 2015, or the one that was measured."""
    second = [heat_map(found, found.elbo)] if found.elbo is not None else []
    return second + ([against_communities(found)] if found.auc else [])


def amari_errors(found: factors.Found) -> Picture:
    """Figure 4 of Knowles 2015."""
    rows = list(found.made)
    values = np.array(list(found.made.values())).transpose(2, 0, 1)
    paper = "paper: NSFA ahead at few rows, worse from there on; the time of gamma SGVB does not depend on N (crosses: its code, one run)"
    figure, (errors, seconds) = canvas("Made-up data, D = 50, K = 10", paper, 2, 11)
    names = *factors.MADE_METHODS.values(), "sparse PCA"
    for i, name in enumerate(names):
        curve(errors, rows, values[i], name, i)
        curve(seconds, rows, values[len(names) + i], name, i)
    told = {n: error for n, error in factors.PAPERS_CODE.items() if n in rows}
    errors.plot(list(told), list(told.values()), "x", color="black", label="paper's code")
    errors.axhline(factors.RANDOM_LOADINGS, color=EXACT, linestyle="dashed", label="random loadings")
    errors.set(xlabel="rows N", ylabel="Amari error, ± sd", xscale="log", yscale="log")
    seconds.set(xlabel="rows N", ylabel="processor time, s", xscale="log", yscale="log")
    at_values(errors.yaxis, [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5])
    for panel in (errors, seconds):
        at_values(panel.xaxis, rows)
    legend_beside(figure, errors)
    return "knowles-2015-figure-4", figure


def held_out(data: str, by_rows: dict[int, factors.Held]) -> Picture:
    """Figure 5 of Knowles 2015."""
    rows = list(by_rows)
    last = by_rows[rows[-1]]
    paper = "paper, on CyTOF cells, which are not available: gamma SGVB ahead of Ledoit–Wolf"
    figure, (likelihood, clock) = canvas(f"Held-out rows of {data}: lower is better", paper, 2, 11)
    for i, name in enumerate(factors.REAL_METHODS):
        curve(likelihood, rows, np.array([held.scores[:, i] for held in by_rows.values()]), name, i)
        if i < last.paths.shape[1]:
            times, scores = last.paths[:, i].mean(axis=0)[:, 0], last.paths[:, i, :, 1].T
            curve(clock, times, scores, name, i)
        else:
            curve(clock, [last.seconds[:, i].mean()], last.scores[:, [i]].T, name, i)
    likelihood.set(xlabel="rows N", ylabel="−log density of a row, ± sd", xscale="log")
    at_values(likelihood.xaxis, rows)
    clock.set(xlabel=f"processor time with N = {rows[-1]:,}, s", ylabel="−log density of a row, ± sd", xscale="log")
    # Densities may be above 1.
    if all((held.scores > 0).all() and (held.paths[..., 1] > 0).all() for held in by_rows.values()):
        for panel in (likelihood, clock):
            panel.set(yscale="log")
            plain(panel.yaxis)
    legend_beside(figure, likelihood)
    return f"knowles-2015-figure-5-{data}", figure


def plain(axis: Any) -> None:
    """A logarithmic axis with some more ticks than powers of ten, in plain numbers."""
    from matplotlib.ticker import LogLocator, NullLocator

    axis.set_major_locator(LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 5.0, 7.0)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: f"{value:,g}")


def covariances(data: str, matrices: Array) -> Picture:
    """Figure 6 of Knowles 2015."""
    paper = "paper: of CyTOF cells, which are not available"
    title = f"Covariances of {data}, estimates from up to {factors.COVARIANCE_ROWS} rows, one seed"
    figure, panels = canvas(title, paper, len(matrices), 12)
    beside = ~np.eye(matrices.shape[1], dtype=bool)
    n = matrices.shape[1]
    ends = 0.5, n + 0.5, n + 0.5, 0.5
    most = float(np.quantile(np.abs(matrices[:, beside]), 0.995))
    images = [
        panel.imshow(matrix, cmap="RdBu_r", vmin=-most, vmax=most, extent=ends)
        for panel, matrix in zip(panels, matrices, strict=True)
    ]
    for panel, name in zip(panels, factors.SHOWN, strict=True):
        panel.set(title=name, xlabel="column", ylabel="column" if panel is panels[0] else "")
    figure.colorbar(images[0], ax=list(panels), label="covariance", shrink=0.7, extend="both")
    return f"knowles-2015-figure-6-{data}", figure


def of_factors(found: factors.Found) -> list[Picture]:
    """Figures 4 to 6 of Knowles 2015."""
    return [
        amari_errors(found),
        *(held_out(data, by_rows) for data, by_rows in found.real.items()),
        *(covariances(data, matrices) for data, matrices in found.covariances.items()),
    ]


def of_spherical(found: spherical.Found) -> list[Picture]:
    """Figure 5(a) of Liu, Zhu & Song 2016."""
    paper = "paper, on 20News, a picture only, from the lowest: gSGNHT, SGGMC, SGGMC with all, GMC, VI"
    figure, (panel,) = canvas(f"Topics on a sphere, {found.name}", paper, width=9)
    times = found.seconds * np.arange(1, spherical.SCORED + 1) / spherical.SCORED
    from matplotlib import colormaps

    for i, row in enumerate(found.rows):
        shown = np.isfinite(row.curves).all(axis=0)
        values = row.curves[:, shown]
        colour = COLOURS[i] if i < len(COLOURS) else colormaps["tab10"](5)
        panel.plot(times[shown], values.mean(axis=0), color=colour, label=row.case.title)
        if len(values) > 1:
            error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
            panel.fill_between(
                times[shown],
                values.mean(axis=0) - error,
                values.mean(axis=0) + error,
                color=colour,
                alpha=0.25,
                linewidth=0,
            )
    panel.set(xlabel="processor time, s", ylabel="held-out log-perplexity, ± standard error", xscale="log")
    plain(panel.xaxis)
    legend_beside(figure, panel)
    return [("liu-2016-figure-5a", figure)]


OF: dict[str, tuple[Callable[[Sequence[str]], Any], Callable[[Any], list[Picture]]]] = {
    "factors": (factors.measure, of_factors),
    "network": (network.measure, of_network),
    "spherical": (spherical.measure, of_spherical),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write the pictures. Exit code 2 for bad input, said in one sentence."""
    parser = Parser(prog="python -m sgmcmc_lab.lessons.papers.pictures", description=__doc__)
    parser.add_argument("model", choices=OF)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the pictures are written there, as PNG")
    options, rest = parser.parse_known_args(arguments)
    measure, draw = OF[options.model]
    try:
        prepare("matplotlib")
        try:
            options.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SpecError("FOLDER", str(options.folder), (error.strerror or str(error)).lower()) from None
        for name, figure in draw(measure(rest)):
            path = options.folder / f"{name}.png"
            figure.savefig(path, dpi=DOTS_PER_INCH)
            print(path)
    except (FileError, SpecError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

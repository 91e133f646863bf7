"""The static figures of a step, as PNG: composed with HoloViews, drawn by Matplotlib.

Every figure shows the exact answer in grey beside what was measured. Lanes have the colours of the page, light theme.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from lessons import sweep as sweeps
from lessons.document import is_number
from lessons.headless import Outcome
from lessons.lesson import Lesson
from lessons.measures.base import Evidence
from samplers import SpecError
from samplers.accumulate import bin_edges
from samplers.diagnostics.autocorrelation import autocorrelation
from samplers.models.run import ModelRun
from samplers.parameters import declared
from samplers.spec import ANY_SAMPLER

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b5518f", "#56b4e9", "#e69f00")
"""Of lanes and methods: the page's four, and two more of Okabe and Ito's palette."""
EXACT = "#8d99ae"
CELLS = 60
"""Bars of a histogram."""


def prepare() -> Any:
    """HoloViews with its Matplotlib backend. Raises :class:`SpecError` where that is not installed."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise SpecError("plots", "…", "it needs Matplotlib: pip install 'sgmcmc-lab[plots]'") from None
    # Files only: a machine without a screen has no other backend.
    mpl.use("agg")
    import holoviews as hv

    if "matplotlib" not in hv.Store.renderers:
        hv.extension("matplotlib")
    return hv


def write(outcome: Outcome, lesson: Lesson, folder: Path) -> list[Path]:
    """The figures of a step as ``lesson-2-marginal.png``."""
    hv = prepare()
    paths = []
    for name in outcome.step.figures or _fitting(outcome):
        for made in FIGURES[name](hv, outcome):
            path = folder / f"{lesson.key}-{outcome.step.number}-{name}.png"
            hv.save(made, path, fmt="png", backend="matplotlib", dpi=150)
            paths.append(path)
    return paths


def _fitting(outcome: Outcome) -> tuple[str, ...]:
    if outcome.table is not None:
        return ("sweep",)
    if outcome.step.spec is not None and outcome.step.spec.of_model:
        return ("scores",)
    return ("joint",) if _lanes(outcome) and _lanes(outcome)[0].trace.target.planar else ("marginal",)


def _lanes(outcome: Outcome) -> list[Evidence]:
    """The lanes of the first seed, where they were run."""
    return [lane for lane in (outcome.lanes[0] if outcome.lanes else ()) if isinstance(lane, Evidence)]


def _name(outcome: Outcome, i: int) -> str:
    """A lane's name in the lesson, or its title, with what differs where the same sampler is there twice."""
    spec = outcome.step.spec
    if outcome.step.names:
        return outcome.step.names[i]
    assert spec is not None
    sampler = spec.lanes[i].sampler
    values, *others = (
        {**lane.sampler.values(), **lane.gradient.values()}
        for lane in (spec.lanes[i], *spec.lanes)
        if lane.sampler.key == sampler.key
    )
    differing = [name for name, value in values.items() if any(other.get(name) != value for other in others)]
    labels = dict(declared(ANY_SAMPLER[sampler.key]))
    said = [f"{labels[n].label if n in labels else n} {values[n]}" for n in differing if not isinstance(values[n], (tuple, str))]  # fmt: skip
    return f"{i + 1} {ANY_SAMPLER[sampler.key].title}" + (f", {', '.join(said[:2])}" if said else "")


def _column(outcome: Outcome, lane: Evidence) -> int:
    return min(int(outcome.step.page.get("coordinate", 1)), lane.trace.target.n_values) - 1


def _marginal(hv: Any, outcome: Outcome) -> list[Any]:
    """Histograms of one column in every lane, and the exact density."""
    curves = []
    lanes = _lanes(outcome)
    for i, lane in enumerate(lanes):
        k = _column(outcome, lane)
        column = lane.trace.statistics.columns[k]
        fine, n = bin_edges(column), lane.trace.statistics.n_draws
        low, high = column.axis
        places = np.unique(np.searchsorted(fine, (np.geomspace if column.log else np.linspace)(low, high, CELLS + 1)))
        edges = fine[np.minimum(places, len(fine) - 1)]
        width = np.diff(np.log(edges) if column.log else edges)
        if i == 0:
            exact = np.diff(column.cdf(edges)) / width
            curves.append(hv.Area((_middles(edges, column.log), exact), column.name, "density", label="exact").opts(facecolor=EXACT, edgecolor=EXACT, alpha=0.35))  # fmt: skip
        if n == 0:
            continue
        below = np.concatenate([[0], np.cumsum(lane.trace.statistics.counts(k)[:-1])])[1:] / n
        shares = np.diff(below[np.minimum(places, len(fine) - 1)]) / width
        curves.append(hv.Curve((_middles(edges, column.log), shares), column.name, "density", label=_name(outcome, i)).opts(color=COLOURS[i]))  # fmt: skip
    if not curves:
        return []
    log = lanes[0].trace.statistics.columns[_column(outcome, lanes[0])].log
    return [_titled(hv.Overlay(curves), outcome, logx=log)]


def _middles(edges: Any, log: bool) -> Any:
    return np.sqrt(edges[1:] * edges[:-1]) if log else (edges[1:] + edges[:-1]) / 2


def _joint(hv: Any, outcome: Outcome) -> list[Any]:
    """The joint histogram of every lane of a two-dimensional target, and contours of the exact density."""
    panels = []
    for i, lane in enumerate(_lanes(outcome)):
        target, statistics = lane.trace.target, lane.trace.statistics
        if not target.planar:
            return []
        (x0, x1), (y0, y1) = (column.axis for column in target.columns[:2])
        names = [column.name for column in target.columns[:2]]
        counts = statistics.sums.joint.T[::-1] / max(statistics.n_draws, 1)
        image = hv.Image(counts, names, "share", bounds=(x0, y0, x1, y1)).opts(cmap="Blues")
        x, y = np.linspace(x0, x1, 120), np.linspace(y0, y1, 120)
        density = np.exp(target.log_column_density(np.stack(np.meshgrid(x, y), axis=-1)))
        grid = hv.Image((x, y, density), names, "density")
        lines = hv.operation.contours(grid, levels=[density.max() * share for share in (0.05, 0.2, 0.5, 0.8)])
        panels.append((image * lines.opts(color=EXACT, linewidth=1, show_legend=False)).opts(title=_name(outcome, i)))
    return [hv.Layout(panels).opts(title=outcome.step.title, sublabel_format="")] if panels else []


def _trace(hv: Any, outcome: Outcome) -> list[Any]:
    """The thinned history of the first chain of every lane."""
    curves = []
    for i, lane in enumerate(_lanes(outcome)):
        history, stride = lane.trace.statistics.history(), lane.trace.statistics.history_stride
        k = _column(outcome, lane)
        name = lane.trace.statistics.columns[k].name
        steps = np.arange(history.shape[1]) * stride
        curves.append(hv.Curve((steps, history[0, :, k]), "step", name, label=_name(outcome, i)).opts(color=COLOURS[i], linewidth=0.8))  # fmt: skip
    return [_titled(hv.Overlay(curves), outcome)] if curves else []


def _autocorrelation(hv: Any, outcome: Outcome) -> list[Any]:
    """ρ against the lag, for one column of every lane."""
    curves = []
    for i, lane in enumerate(_lanes(outcome)):
        lags, rho = autocorrelation(lane.trace.statistics, _column(outcome, lane))
        if len(lags) > 1:
            curves.append(hv.Curve((np.maximum(lags, 0.5), rho), "lag, in steps", "ρ", label=_name(outcome, i)).opts(color=COLOURS[i]))  # fmt: skip
    return [_titled(hv.Overlay(curves), outcome, logx=True)] if curves else []


def _sweep(hv: Any, outcome: Outcome) -> list[Any]:
    """The measure against one axis, a curve a lane, with the range of its seeds."""
    table = outcome.table
    if table is None:
        return []
    axis, what = sweeps.axis_of(outcome.step), sweeps.quantity_of(table.sweep)
    label_x = sweeps.label_of(outcome.step, axis)
    others = dict.fromkeys(other.name for other in table.sweep.axes if other.name != axis)
    best = [label[:1].lower() + label[1:] for label in (sweeps.label_of(outcome.step, other) for other in others)]
    label_y = what + (f", at the best {' and '.join(best)}" if best else "")
    layers, ticks = [], []
    positive = numeric = above = True
    for curve in sweeps.curves(axis, table.rows):
        numeric = numeric and all(is_number(at) for at in curve.at)
        x = np.array(curve.at, dtype=float) if numeric else np.arange(len(curve.at), dtype=float)
        ticks = [(i, str(at)) for i, at in enumerate(curve.at)]
        above = above and bool((x > 0).all())
        middle, low, high = map(np.array, (curve.middle, curve.low, curve.high))
        positive = positive and bool((low > 0).all())
        label, colour, found = _name(outcome, curve.lane - 1), COLOURS[curve.lane - 1], sweeps.slope_of(curve)
        label += f", slope {found:.2f}" if np.isfinite(found) else ""
        layers += [
            hv.Area((x, low, high), axis, ["low", "high"]).opts(facecolor=colour, edgecolor=colour, alpha=0.2),
            hv.Curve((x, middle), axis, what, label=label).opts(color=colour),
            hv.Scatter((x, middle), axis, what).opts(color=colour, s=25),
        ]
    if not layers:
        return []
    made = _titled(hv.Overlay(layers), outcome, logx=numeric and above, logy=positive)
    return [made.opts(xlabel=label_x, ylabel=label_y, padding=0.06, **({} if numeric else {"xticks": ticks}))]


def _scores(hv: Any, outcome: Outcome) -> list[Any]:
    """The held-out score of every method against the data it has seen, for every seed and chain."""
    curves = []
    for seed in outcome.lanes:
        for i, run in enumerate(seed):
            for chain in run.chains if isinstance(run, ModelRun) else ():
                points = [(max(score.data_seen, 1), score.value) for score in chain.scores]
                curve = hv.Curve(points, f"{run.model.data_name} seen", run.model.score_name, label=_name(outcome, i))
                curves.append(curve.opts(color=COLOURS[i]))
    return [_titled(hv.Overlay(curves), outcome, logx=True)] if curves else []


def _wide(plot: Any, element: Any) -> None:
    # HoloViews' own aspect is one of the data, which on a logarithmic axis has no meaning.
    axis = plot.handles["axis"]
    axis.set_aspect("auto")
    axis.set_box_aspect(0.6)


def _titled(overlay: Any, outcome: Outcome, logx: bool = False, logy: bool = False) -> Any:
    return overlay.opts(title=outcome.step.title, logx=logx, logy=logy, fig_inches=(7, 4.5), hooks=[_wide], show_legend=True, legend_position="best")  # fmt: skip


FIGURES: dict[str, Callable[[Any, Outcome], list[Any]]] = {
    "marginal": _marginal,
    "joint": _joint,
    "trace": _trace,
    "autocorrelation": _autocorrelation,
    "sweep": _sweep,
    "scores": _scores,
}

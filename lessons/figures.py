"""The static figures, each composed once with HoloViews: PNG by Matplotlib; Bokeh in a handout, on the page and in a
notebook, where :func:`figure` makes one of a run's trace.

Every figure shows the exact answer in grey beside what was measured. A lane has its colour, its marker and its dashes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import holoviews as hv
import numpy as np
from bokeh.document import Document
from bokeh.io.doc import patch_curdoc
from bokeh.models import BoxSelectTool, CustomJSTickFormatter, FixedTicker, LegendItem, LogAxis, Plot, TapTool
from holoviews.plotting.links import DataLink

from sgmcmc_lab.lessons import sweep as sweeps
from sgmcmc_lab.lessons.document import is_number
from sgmcmc_lab.lessons.headless import Outcome
from sgmcmc_lab.lessons.lesson import VALUE, Lesson, Step
from sgmcmc_lab.lessons.measures.base import Evidence
from sgmcmc_lab.samplers import SpecError
from sgmcmc_lab.samplers.diagnostics.autocorrelation import autocorrelation
from sgmcmc_lab.samplers.models.run import ModelRun
from sgmcmc_lab.samplers.parameters import declared
from sgmcmc_lab.samplers.running_statistics import bin_edges
from sgmcmc_lab.samplers.settings import ANY_SAMPLER
from sgmcmc_lab.samplers.trace import Trace

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b5518f", "#8f6b00", "#5f6b76")
"""The colours of lanes and methods, those of the page in the light."""
DASHES = {
    "bokeh": ("solid", "dashed", "dotdash", "dotted", "dashdot", "6 2"),
    "matplotlib": ("solid", "dashed", "dashdot", "dotted", (0, (5, 1, 1, 1)), (0, (6, 2))),
}
MARKERS = {
    "bokeh": ("circle", "square", "triangle", "diamond", "inverted_triangle", "star"),
    "matplotlib": ("o", "s", "^", "D", "v", "*"),
}
EXACT = "#8d99ae"
CELLS = 60
"""Bars of a histogram."""
WIDTH, HEIGHT = 620, 340
"""The size of a figure in Bokeh, in pixels."""
AXIS, LETTER, APART = 260.0, 7.0, 8.0
"""Pixels of the axis of a sweep on a phone, of a letter of its labels, and between two labels."""
MANTISSAS = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9)
TICKS = [float(f"{a}e{k}") for k in range(-9, 10) for a in MANTISSAS]
"""On a vertical log axis."""
THINNED = """
// Powers of ten; on shorter axes 2 and 5 times them, too, then others. Two labels are at least a tenth of the axis apart.
const powers = Math.log10(range.end / range.start)
const place = (x) => (Math.log10(x / range.start) / powers) * 10
const rank = (x) => [/^1e/, /^[25]e/, /./].findIndex((one) => one.test(x.toExponential()))
const chosen = []
for (const wanted of powers > 4 ? [0] : powers > 1 ? [0, 1] : [0, 1, 2])
  for (const one of ticks) if (rank(one) === wanted && chosen.every((other) => Math.abs(place(one) - place(other)) >= 1)) chosen.push(one)
return chosen.includes(tick) ? String(tick) : ""
"""
"""The labels of these ticks that have room."""
SWEEP = "sweep"


def prepare(backend: str) -> None:
    """Let HoloViews draw with ``bokeh`` or ``matplotlib``. Raises :class:`SpecError` where that is not installed."""
    if backend in hv.Store.renderers:
        return
    if backend == "matplotlib":
        try:
            import matplotlib as mpl
        except ImportError:
            raise SpecError("plots", "…", "it needs Matplotlib: pip install 'sgmcmc-lab[plots]'") from None
        # Files only: a machine without a screen has no other backend.
        mpl.use("agg")
    # In a notebook the script goes into it, for there may be no network when it is read.
    hv.extension(backend, inline=True, logo=False)


def figure(runs: Any, kind: str = "marginal", *, coordinate: int = 1, names: Sequence[str] = ()) -> Any:
    """A figure of a run, or of several on the same target, as an object that a notebook shows.

    ``runs``: a :class:`~samplers.trace.Trace` or a :class:`~samplers.models.run.ModelRun`, or up to six. ``kind``:
    marginal, joint, trace or autocorrelation, of the ``coordinate`` counted from 1; scores of runs on a model of data.
    Without ``names`` they have their samplers'. Raises :class:`SpecError`.
    """
    listed = [runs] if isinstance(runs, (Trace, ModelRun)) else list(runs)
    if kind not in OF_RUNS:
        raise SpecError("kind", kind, f"allowed is one of {', '.join(OF_RUNS)}")
    if not 1 <= len(listed) <= len(COLOURS):
        raise SpecError("runs", len(listed), f"allowed are 1 to {len(COLOURS)}")
    if names and len(names) != len(listed):
        raise SpecError("names", len(names), f"allowed are {len(listed)}, one for each run")
    prepare("bokeh")
    lanes = Lanes(tuple((run,) for run in listed), tuple(names or _names([run.spec for run in listed])), coordinate, "")
    made = OF_RUNS[kind](lanes)
    if made is None:
        raise SpecError("kind", kind, "these runs have no such figure")
    return made


def fitting(outcome: Outcome) -> tuple[str, ...]:
    """The figures of a step: those that it names, or what fits."""
    if outcome.step.figures:
        return outcome.step.figures
    if outcome.table is not None:
        return (SWEEP,)
    if outcome.step.spec is None:
        return ()
    if outcome.step.spec.of_model:
        return ("scores",)
    first = next((lane for lane in (outcome.lanes[0] if outcome.lanes else ()) if isinstance(lane, Evidence)), None)
    return ("joint",) if first is not None and first.trace.target.planar else ("marginal",)


def of_step(outcome: Outcome, kind: str, *, sliders: bool = False) -> Any:
    """A figure of a step that was run; None where it has none. A sweep has ``sliders`` for all axes but one."""
    step = outcome.step
    assert step.spec is not None
    names = step.names or _names(step.spec.lanes)
    if kind == SWEEP:
        if outcome.table is None:
            return None
        return sweep_map(step, outcome.table.rows, names) if sliders else sweep(step, outcome.table.rows, names)
    lanes = tuple(
        tuple(lane.trace if isinstance(lane, Evidence) else lane for lane in seeds)
        for seeds in zip(*outcome.lanes, strict=True)
    )
    return OF_RUNS[kind](Lanes(lanes, tuple(names), int(step.page.get("coordinate", 1)), step.title))


def write(outcome: Outcome, lesson: Lesson, folder: Path) -> list[Path]:
    """The figures of a step as ``lesson-2-marginal.png``."""
    prepare("matplotlib")
    paths = []
    for kind in fitting(outcome):
        made = of_step(outcome, kind)
        if made is not None:
            path = folder / f"{lesson.key}-{outcome.step.number}-{kind}.png"
            hv.save(made, path, fmt="png", backend="matplotlib", dpi=150)
            paths.append(path)
    return paths


def bokeh_plot(made: Any) -> Any:
    """HoloViews' plot of a figure: ``state`` is Bokeh's figure, or a layout of it and its table, and ``update(i)``
    shows a frame. Only the figure's selection tools remain.
    """
    prepare("bokeh")
    # Its renderer would give its theme to the document of whoever looks at a page.
    document = Document()
    with patch_curdoc(document):
        plot = hv.renderer("bokeh").instance(theme=None).get_plot(made)
    for drawn in plot.state.select({"type": Plot}):
        selecting = [tool for tool in drawn.tools if isinstance(tool, (TapTool, BoxSelectTool))]
        drawn.update(sizing_mode="stretch_width", toolbar_location=None, tools=selecting)
        for legend in drawn.legend:
            legend.update(
                orientation="vertical",
                padding=2,
                spacing=0,
                border_line_color=None,
                label_text_font_size="12px",
                click_policy="none",
            )
    return plot


def thin_labels(drawn: Any) -> None:
    """Label a vertical log axis, whose range may move, at as many ticks as have room."""
    for axis, grid in zip(drawn.yaxis, drawn.ygrid, strict=True):
        if isinstance(axis, LogAxis):
            formatter = CustomJSTickFormatter(code=THINNED, args={"range": drawn.y_range})
            axis.update(ticker=FixedTicker(ticks=TICKS), formatter=formatter)
            grid.ticker = FixedTicker(ticks=[tick for tick in TICKS if f"{tick:e}".startswith("1.000000e")])


def complete(drawn: Any, labels: Sequence[str]) -> None:
    """Show all layers of a sweep's figure in Bokeh, also those that have no point yet, and each lane in its legend."""
    for renderer in drawn.renderers:
        renderer.visible = True
    lanes = zip(labels, drawn.renderers[1::3], drawn.renderers[2::3], strict=True)
    drawn.legend[0].items = [LegendItem(label={"value": label}, renderers=both) for label, *both in lanes]


# --- what is drawn of runs -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lanes:
    """Runs to be drawn together."""

    runs: tuple[tuple[Any, ...], ...]
    """The runs of every lane, one per seed: traces, or runs on a model of data."""
    names: tuple[str, ...]
    coordinate: int
    """Counted from 1; the last one where there are fewer."""
    title: str

    @property
    def traces(self) -> list[tuple[int, str, Trace]]:
        """Number, name and trace of every lane's first seed."""
        firsts = enumerate(zip(self.names, (runs[0] for runs in self.runs), strict=True))
        return [(i, name, run) for i, (name, run) in firsts if isinstance(run, Trace)]

    def column(self, trace: Trace) -> int:
        """The column that is drawn, counted from 0."""
        return min(self.coordinate, trace.target.n_values) - 1


def _names(lanes: Sequence[Any]) -> list[str]:
    """The lanes' titles, with what differs where the same sampler is there twice."""
    return [_name(lanes, i) for i in range(len(lanes))]


def _name(lanes: Sequence[Any], i: int) -> str:
    sampler = lanes[i].sampler
    values, *others = (
        {**lane.sampler.values(), **lane.gradient.values(), **lane.schedule.values()}
        for lane in (lanes[i], *lanes)
        if lane.sampler.key == sampler.key
    )
    differing = [name for name, value in values.items() if any(other.get(name) != value for other in others)]
    labels = dict(declared(ANY_SAMPLER[sampler.key]))
    said = [
        f"{labels[n].label if n in labels else n} {values[n]}"
        for n in differing
        if not isinstance(values[n], (tuple, str))
    ]
    return f"{i + 1} {ANY_SAMPLER[sampler.key].title}" + (f", {', '.join(said[:2])}" if said else "")


def _marginal(lanes: Lanes) -> Any:
    """Histograms of one column in every lane, and the exact density."""
    curves, log = list[Any](), False
    for i, name, trace in lanes.traces:
        k = lanes.column(trace)
        column = trace.statistics.columns[k]
        fine, n = bin_edges(column), trace.statistics.total
        low, high = column.axis
        places = np.unique(np.searchsorted(fine, (np.geomspace if column.log else np.linspace)(low, high, CELLS + 1)))
        edges = fine[np.minimum(places, len(fine) - 1)]
        width = np.diff(np.log(edges) if column.log else edges)
        if not curves:
            log = column.log
            exact = hv.Area(
                (_middles(edges, log), np.diff(column.cdf(edges)) / width), column.name, "density", label="exact"
            )
            curves.append(
                _styled(
                    exact,
                    bokeh={"color": EXACT, "alpha": 0.35},
                    matplotlib={"facecolor": EXACT, "edgecolor": EXACT, "alpha": 0.35, "show_legend": True},
                )
            )
        if n == 0:
            continue
        below = np.concatenate([[0], np.cumsum(trace.statistics.counts(k)[:-1])])[1:] / n
        shares = np.diff(below[np.minimum(places, len(fine) - 1)]) / width
        curves.append(_line((_middles(edges, column.log), shares), column.name, "density", name, i))
    # The exact density alone is no figure of a run: a measure that makes runs of its own leaves this one without draws.
    return _framed(curves, lanes.title, logx=log) if len(curves) > 1 else None


def _middles(edges: Any, log: bool) -> Any:
    return np.sqrt(edges[1:] * edges[:-1]) if log else (edges[1:] + edges[:-1]) / 2


def _joint(lanes: Lanes) -> Any:
    """The joint histogram of every lane of a two-dimensional target, and contours of the exact density."""
    panels = []
    for _, name, trace in lanes.traces:
        target, statistics = trace.target, trace.statistics
        if not target.planar:
            return None
        (x0, x1), (y0, y1) = (column.axis for column in target.columns[:2])
        names = [column.name for column in target.columns[:2]]
        counts = (statistics.sums.joint.T[::-1] / max(statistics.total, 1)).astype(np.float32)
        image = hv.Image(counts, names, "share", bounds=(x0, y0, x1, y1)).opts(cmap="Blues")
        x, y = np.linspace(x0, x1, 120), np.linspace(y0, y1, 120)
        density = np.exp(target.log_column_density(np.stack(np.meshgrid(x, y), axis=-1)))
        levels = [density.max() * share for share in (0.05, 0.2, 0.5, 0.8)]
        lines = hv.operation.contours(hv.Image((x, y, density), names, "density"), levels=levels)
        lines = _styled(lines, bokeh={"line_width": 1}, matplotlib={"linewidth": 1}, color=EXACT, show_legend=False)
        panels.append(
            _styled(image * lines, bokeh={"width": 310, "height": 320, "default_tools": []}, matplotlib={}, title=name)
        )
    return (
        _styled(
            hv.Layout(panels).cols(2), bokeh={"toolbar": None}, matplotlib={"sublabel_format": ""}, title=lanes.title
        )
        if panels
        else None
    )


def _trace(lanes: Lanes) -> Any:
    """The thinned history of the first chain of every lane."""
    curves = []
    for i, label, trace in lanes.traces:
        history, stride = trace.statistics.history(), trace.statistics.history_stride
        k = lanes.column(trace)
        steps = np.arange(history.shape[1]) * stride
        name = trace.statistics.columns[k].name
        curves.append(_line((steps, history[0, :, k]), "step", name, label, i, width=0.8, dashed=False))
    return _framed(curves, lanes.title) if curves else None


def _autocorrelation(lanes: Lanes) -> Any:
    """ρ against the lag, for one column of every lane."""
    curves = []
    for i, name, trace in lanes.traces:
        lags, rho = autocorrelation(trace.statistics, lanes.column(trace))
        if len(lags) > 1:
            curves.append(_line((np.maximum(lags, 0.5), rho), "lag, in steps", "ρ", name, i))
    return _framed(curves, lanes.title, logx=True) if curves else None


def _scores(lanes: Lanes) -> Any:
    """The held-out score of every method against the data it has seen, for every seed and chain."""
    curves = []
    for i, (name, runs) in enumerate(zip(lanes.names, lanes.runs, strict=True)):
        for run in runs:
            for chain in run.chains if isinstance(run, ModelRun) else ():
                points = [(max(score.data_seen, 1), score.value) for score in chain.scores]
                curves.append(_line(points, f"{run.model.data_name} seen", run.model.score_name, name, i))
    return _framed(curves, lanes.title, logx=True) if curves else None


OF_RUNS: dict[str, Callable[[Lanes], Any]] = {
    "marginal": _marginal,
    "joint": _joint,
    "trace": _trace,
    "autocorrelation": _autocorrelation,
    "scores": _scores,
}
"""All but the sweep, which is of many runs."""


# --- sweeps ----------------------------------------------------------------------------------------------------------


class Swept(NamedTuple):
    """The drawing of a lane: a point with a bar over its seeds at each value of the axis."""

    label: str
    x: Any
    y: Any
    low: Any
    high: Any

    @property
    def layers(self) -> list[dict[str, Any]]:
        """The columns of its bars, its line and its markers."""
        points = {"x": self.x, "y": self.y}
        return [{"x": self.x, "low": self.low, "x1": self.x, "high": self.high}, points, points]


def swept(
    step: Step, rows: Sequence[sweeps.Row], names: Sequence[str], axis: str = "", slopes: bool = True
) -> list[Swept]:
    """The drawing of each lane along an axis, or of the one that the claims are about; over the others the best mean.

    A bias is drawn by its size, for a log axis has no signs; of three points or more the slope is told.
    """
    assert step.sweep is not None
    axis = axis or sweeps.axis_of(step)
    values = _values(step, axis)
    sizes = _of_sizes(step)
    found = {curve.lane: curve for curve in sweeps.curves(axis, rows)}
    out = []
    for lane, name in enumerate(names, 1):
        curve = found.get(lane)
        if curve is None:
            out.append(Swept(name, *np.zeros((4, 0))))
            continue
        x = np.array(curve.at if _numeric(values) else [values.index(at) for at in curve.at], dtype=float)
        y, *ends = (np.abs(each) if sizes else np.array(each) for each in (curve.middle, curve.low, curve.high))
        label = name
        if slopes and _log(values) and np.isfinite(told := sweeps.slope_of(curve)):
            label += f", slope {told:.2f}"
        out.append(Swept(label, x, y, *np.sort(ends, axis=0)))
    return out


def sweep(step: Step, rows: Sequence[sweeps.Row], names: Sequence[str], colours: Sequence[str] = COLOURS) -> Any:
    """The measure against one axis, a curve a lane, with the range of its seeds; over other axes the best mean.

    A lane without a point has its layers, too, so that they may be filled later: bars, line and markers of each.
    """
    lanes = swept(step, rows, names)
    return _swept_overlay(step, sweeps.axis_of(step), lanes, colours, lanes)


def sweep_table(step: Step, rows: Sequence[sweeps.Row], names: Sequence[str], colours: Sequence[str] = COLOURS) -> Any:
    """The same beside a table of its points, with linked brushing: a selection in one shows in the other.

    A ring lies around each selected point. In Bokeh alone: Matplotlib has no selections.
    """
    assert step.sweep is not None
    lanes = swept(step, rows, names)
    columns = table_columns(step, lanes, names)
    what = sweeps.quantity_of(step.sweep)
    at = hv.Dimension("at", label=sweeps.label_of(step, sweeps.axis_of(step)))
    value = hv.Dimension("value", label=f"|{what}|" if _of_sizes(step) else what)
    rings = hv.Points(columns, ["x", "y"]).opts(
        size=16,
        line_width=3,
        color=EXACT,
        fill_alpha=0,
        line_alpha=0,
        selection_fill_alpha=0,
        selection_line_alpha=1,
        nonselection_fill_alpha=0,
        nonselection_line_alpha=0,
        tools=["tap", "box_select"],
    )
    table = hv.Table(columns, [hv.Dimension("lane", label="Sampler"), at], value)
    DataLink(rings, table)
    return _swept_overlay(step, sweeps.axis_of(step), lanes, colours, lanes, [rings]) + table


def table_columns(step: Step, lanes: Sequence[Swept], names: Sequence[str]) -> dict[str, list[Any]]:
    """The points of all lanes, one after the other: their places in the figure, and the columns of the table."""
    values = _values(step, sweeps.axis_of(step))
    xs = [float(x) for lane in lanes for x in lane.x]
    ys = [float(y) for lane in lanes for y in lane.y]
    return {
        "x": xs,
        "y": ys,
        "lane": [name for name, lane in zip(names, lanes, strict=True) for _ in lane.x],
        "at": [f"{x:g}" if _numeric(values) else str(values[int(x)]) for x in xs],
        "value": [f"{y:.4g}" for y in ys],
    }


def sweep_map(step: Step, rows: Sequence[sweeps.Row], names: Sequence[str]) -> Any:
    """The same at each value of the other axes, as a HoloMap; where there are none, just that."""
    assert step.sweep is not None
    axes = list(dict.fromkeys(axis.name for axis in step.sweep.axes))
    drawn = sweeps.axis_of(step)
    # Lanes that differ in an axis have no common value to stop its slider at.
    drawn = next((name for name in axes if name != drawn and not _common(step, name)), drawn)
    others = [name for name in axes if name != drawn]
    if not others or not all(_common(step, name) for name in others):
        return sweep(step, rows, names)
    found: dict[tuple[Any, ...], list[Swept]] = {}
    for row in rows:
        at = dict(row.point.values)
        key = tuple(at.get(name) for name in others)
        if None not in key and key not in found:
            here = dict(zip(others, key, strict=True))
            fits = [one for one in rows if all(here.get(name, value) == value for name, value in one.point.values)]
            found[key] = swept(step, fits, names, drawn, slopes=False)
    every = [lane for lanes in found.values() for lane in lanes]
    frames = {key: _swept_overlay(step, drawn, lanes, COLOURS, every) for key, lanes in found.items()}
    return hv.HoloMap(frames, kdims=[sweeps.label_of(step, name) for name in others])


def _swept_overlay(
    step: Step,
    axis: str,
    lanes: Sequence[Swept],
    colours: Sequence[str],
    every: Sequence[Swept],
    above: Sequence[Any] = (),
) -> Any:
    """The layers of ``lanes`` and those ``above`` them, on axes for ``every`` one that is drawn there in turn."""
    assert step.sweep is not None
    values = _values(step, axis)
    layers = []
    for i, lane in enumerate(lanes):
        bars, line, points = lane.layers
        layers.append(
            _styled(
                hv.Segments(tuple(bars.values()), list(bars)),
                bokeh={"line_width": 4, "line_alpha": 0.35},
                matplotlib={"linewidth": 4, "alpha": 0.35},
                color=colours[i],
            )
        )
        layers.append(_line(tuple(line.values()), "x", "y", lane.label, i, width=2, colour=colours[i]))
        layers.append(
            _styled(
                hv.Scatter(tuple(points.values()), "x", "y", label=lane.label),
                bokeh={"size": 8, "marker": MARKERS["bokeh"][i]},
                matplotlib={"s": 40, "marker": MARKERS["matplotlib"][i]},
                color=colours[i],
            )
        )
    what = sweeps.quantity_of(step.sweep)
    ends = np.concatenate([np.append(lane.low, lane.high) for lane in every])
    log = _of_sizes(step) or bool((ends > 0).all())
    if _log(values):
        xticks = _apart(values)
    else:
        xticks = [(at if _numeric(values) else i, str(at)) for i, at in enumerate(values)]
    return _framed(
        [*layers, *above],
        step.title,
        logx=_log(values),
        logy=log,
        xticks=xticks,
        xlim=_around(np.array(values if _numeric(values) else range(len(values)), dtype=float), _log(values)),
        ylim=_around(ends, log),
        xlabel=sweeps.label_of(step, axis),
        ylabel=f"|{what}|" if _of_sizes(step) else what,
    )


def _apart(values: Sequence[float]) -> list[tuple[float, str]]:
    """The values of a log axis whose labels have room on a phone."""
    low, high = _around(np.array(values, dtype=float), True)
    assert low is not None and high is not None
    out: list[tuple[float, str]] = []
    end = -np.inf
    for value in values:
        label = f"{value:g}"
        place = AXIS * np.log(value / low) / np.log(high / low)
        half = LETTER * len(label) / 2
        if place - half >= end + APART:
            out.append((value, label))
            end = place + half
    return out


def _around(values: Any, log: bool) -> tuple[float | None, float | None]:
    """The ends of an axis on which these values have some room."""
    shown = values[values > 0] if log else values
    if not len(shown):
        return (None, None)
    low, high = float(shown.min()), float(shown.max())
    if log:
        room = max((high / low) ** 0.08, 1.2)
        return low / room, high * room
    margin = 0.08 * (high - low) or max(abs(high), 1.0) / 5
    return low - margin, high + margin


def axis_values(step: Step, axis: str) -> tuple[list[Any], bool, bool]:
    """The values of an axis in their order, whether they are numbers, and whether they are drawn on a log axis."""
    values = _values(step, axis)
    return values, _numeric(values), _log(values)


def _values(step: Step, axis: str) -> list[Any]:
    """The values of an axis in any lane, at either length, in their order."""
    assert step.sweep is not None
    listed = [at for one in step.sweep.axes if one.name == axis for at in (*one.values, *one.quick_values)]
    distinct = list(dict.fromkeys(listed))
    return sorted(distinct) if _numeric(distinct) else distinct


def _common(step: Step, axis: str) -> bool:
    """Whether all lanes have the same values of an axis."""
    assert step.sweep is not None
    return len([one for one in step.sweep.axes if one.name == axis]) == 1


def _numeric(values: Sequence[Any]) -> bool:
    return all(map(is_number, values))


def _log(values: Sequence[Any]) -> bool:
    return _numeric(values) and min(values) > 0


def _of_sizes(step: Step) -> bool:
    return step.sweep is not None and step.sweep.quantity != VALUE


# --- how it looks ----------------------------------------------------------------------------------------------------


def _styled(element: Any, *, bokeh: dict[str, Any], matplotlib: dict[str, Any], **common: Any) -> Any:
    """An element with its options, in the words of each library that draws it here."""
    for backend, own in (("bokeh", bokeh), ("matplotlib", matplotlib)):
        if backend in hv.Store.renderers:
            element = element.opts(**common, **own, backend=backend)
    return element


def _line(
    points: Any, x: str, y: str, label: str, i: int, *, width: float = 1.5, dashed: bool = True, colour: str = ""
) -> Any:
    dash, style = (DASHES[backend][i if dashed else 0] for backend in ("bokeh", "matplotlib"))
    return _styled(
        hv.Curve(points, x, y, label=label),
        color=colour or COLOURS[i],
        bokeh={"line_width": width, "line_dash": dash},
        matplotlib={"linewidth": width, "linestyle": style},
    )


def _framed(layers: Sequence[Any], title: str, **options: Any) -> Any:
    """Layers on common axes, with a legend that lies on no curve."""
    return _styled(
        hv.Overlay(layers),
        title=title,
        show_legend=True,
        **options,
        bokeh={
            "width": WIDTH,
            "height": HEIGHT,
            "legend_position": "top",
            "default_tools": ["box_zoom", "reset", "save"],
            "yformatter": "%.3g",
        },
        matplotlib={"fig_inches": (7, 4.5), "hooks": [_wide], "legend_position": "best"},
    )


def _wide(plot: Any, element: Any) -> None:
    # HoloViews' own aspect is one of the data, which on a logarithmic axis has no meaning.
    axis = plot.handles["axis"]
    axis.set_aspect("auto")
    axis.set_box_aspect(0.6)
    if plot.xticks is not None:
        # Beside ticks of our own a log axis would have its small ones named, too.
        axis.xaxis.set_minor_formatter("")

"""The picture of a step's sweep, drawn as it is measured: the static figure of the lesson, whose points come later."""

from collections.abc import Sequence

from bokeh.models import DataRange1d, DataTable, Label, Node, Plot

from sgmcmc_lab.app.views.base import LINE
from sgmcmc_lab.app.views.marks import SIGNS, brief
from sgmcmc_lab.app.views.theme import Theme, style_figure
from sgmcmc_lab.lessons import Step
from sgmcmc_lab.lessons.sweep import Row

HEIGHT = 270
TABLE_HEIGHT = 150


def table_look(colours: Theme) -> str:
    """The style sheet of a table in the lab's colours."""
    return f"""
    .slick-header-column.slick-header-column, .slick-row.slick-row {{ background: {colours.surface}; color: {colours.text}; }}
    .slick-cell.selected.selected {{ background: {colours.grid}; }}
    """


class SweepPicture:
    """A figure made once, with a table of its points where ``table`` is set, and what its points and captions are now.

    HoloViews links the two: points that are selected in one are selected in the other.

    It takes a tenth of a second to make, and more than a second where HoloViews is not loaded yet, as the thread that
    measures has done by its first point.
    """

    def __init__(self, step: Step, rows: Sequence[Row], names: Sequence[str], colours: Theme, *, table: bool = False):
        from sgmcmc_lab.lessons import figures

        self._step, self._names = step, [brief(name) for name in names]
        made = (figures.sweep_table if table else figures.sweep)(step, rows, self._names, colours.lanes)
        drawn = figures.bokeh_plot(made).state
        self.figure = drawn.select_one({"type": Plot})
        self.table = drawn.select_one({"type": DataTable})
        if self.table is not None:
            self.table.update(
                sizing_mode="stretch_width", height=TABLE_HEIGHT, index_position=None, stylesheets=[table_look(colours)]
            )
        figures.complete(self.figure, self._names)
        style_figure(self.figure, colours)
        self.figure.update(title=None, min_height=HEIGHT, height=HEIGHT)
        # Above the points is room for captions; there is none for a legend, to which the page gives large type.
        self.figure.x_range, self.figure.y_range = DataRange1d(range_padding=0.15), DataRange1d(range_padding=0.9)
        figures.thin_labels(self.figure)
        self.figure.legend[0].visible = False
        self.sources = [renderer.data_source for renderer in self.figure.renderers[: 3 * len(names)]]
        """The bars, the line and the markers of each lane."""
        self.captions = [
            Label(
                x=8,
                y=Node(target="frame", symbol="top", offset=4 + LINE * i),
                x_units="screen",
                y_units="screen",
                text_baseline="top",
                text_font_size="13px",
                text_color=colour,
                background_fill_color=colours.surface,
                background_fill_alpha=0.7,
            )
            for i, colour in enumerate(colours.lanes[: len(names)])
        ]
        for caption in self.captions:
            self.figure.add_layout(caption)
        self.show(rows)

    def show(self, rows: Sequence[Row]) -> None:
        """Draw what has been measured so far."""
        from sgmcmc_lab.lessons import figures

        lanes = figures.swept(self._step, rows, self._names)
        for source, data in zip(self.sources, (layer for lane in lanes for layer in lane.layers), strict=True):
            found = {name: column.tolist() for name, column in data.items()}
            if found != {name: list(column) for name, column in source.data.items()}:
                source.data = found
        for sign, caption, lane in zip(SIGNS, self.captions, lanes, strict=False):
            caption.text = f"{sign} {lane.label}"
        if self.table is not None:
            columns = figures.table_columns(self._step, lanes, self._names)
            if columns["value"] != list(self.table.source.data["value"]):
                self.table.source.data = columns
        said = "; ".join(lane.label for lane in lanes)
        about = f"{self.figure.yaxis[0].axis_label} against {self.figure.xaxis[0].axis_label}: {said}"
        if self.figure.html_attributes.get("aria-label") != about:
            self.figure.html_attributes = {"role": "img", "aria-label": about}

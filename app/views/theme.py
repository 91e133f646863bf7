"""Colours, type and the look of figures, light and dark."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from textwrap import fill
from typing import Any

from bokeh.models import DataRange1d, Div, Model, Range1d
from bokeh.palettes import interp_palette
from bokeh.plotting import figure


@dataclass(frozen=True)
class Theme:
    """The colours of the figures."""

    text: str
    faint: str
    grid: str
    surface: str
    exact: str
    lanes: tuple[str, ...]
    """The colours of up to six lanes or methods."""
    density: tuple[str, str]
    """The colours of zero density and of the highest density."""
    good: str
    """The colour of a claim that holds."""
    bad: str
    """The colour of a claim that fails."""


# The first lanes are blue, orange, green and purple of Okabe and Ito's palette, which people with any
# common colour blindness can tell apart; on dark, lighter versions with the same order of hues.
LIGHT = Theme(
    text="#1f2933",
    faint="#52606d",
    grid="#e4e7eb",
    surface="#ffffff",
    exact="#111827",
    lanes=("#0072b2", "#d55e00", "#009e73", "#b5518f", "#8f6b00", "#5f6b76"),
    density=("#ffffff", "#8d99ae"),
    good="#1b7a3d",
    bad="#b3261e",
)
DARK = Theme(
    text="#e4e7eb",
    faint="#9aa5b1",
    grid="#323a45",
    surface="#1b2027",
    exact="#f5f7fa",
    lanes=("#56b4e9", "#f39c4a", "#2fc59b", "#e391c1", "#f0e442", "#b6c2cd"),
    density=("#1b2027", "#5c6b80"),
    good="#4cc38a",
    bad="#ff8a80",
)

DASHES = ("solid", "dashed", "dotdash", "dotted", "dashdot", "6 2")
"""A second sign beside the colour, for lines of lanes."""
FINE = 1.0
"""Width of long paths and traces. Wider lines are filled outlines, which cost a browser that has no graphics processor
five times as much: two paths of 400 points and two traces of 600 took 8.4 ms a frame at a width of 1.2, now 1.7."""


def theme(dark: bool) -> Theme:
    """The theme that is on."""
    return DARK if dark else LIGHT


def in_dark() -> dict[str, str]:
    """The dark theme's colour for each of the light one."""
    pairs = [(getattr(LIGHT, one.name), getattr(DARK, one.name)) for one in fields(Theme)]
    plain = [pair for pair in pairs if isinstance(pair[0], str)]
    several = [zip(light, dark, strict=True) for light, dark in pairs if isinstance(light, tuple)]
    return dict([*(pair for pairs in several for pair in pairs), *plain])


def palette_in(palette: Sequence[str], known: Mapping[str, str]) -> list[str]:
    """A palette in another theme: its ``known`` colours are replaced, and those between two of them interpolated.

    One whose ends are not ``known`` stays as it is.
    """
    at = [i for i, colour in enumerate(palette) if colour in known]
    if not {0, len(palette) - 1} <= {*at}:
        return list(palette)
    out = [known[palette[0]]]
    for a, b in pairwise(at):
        out += interp_palette([known[palette[a]], known[palette[b]]], b - a + 1)[1:]
    return out


LARGE = 1.45
"""How much larger type is in presenter mode."""


def enlarge(model: Model) -> None:
    """Make all type of a figure larger, for people who sit far from it."""
    for part in model.references():
        for name in part.properties():
            if name.endswith("font_size"):
                size = getattr(part, name)
                setattr(part, name, _larger(getattr(size, "value", size)))
        if isinstance(part, Div) and isinstance(part.styles, dict):
            part.styles = {
                name: _larger(x) if name in ("font-size", "line-height") else x for name, x in part.styles.items()
            }
            part.height = part.height and round(LARGE * part.height)


def _larger(size: str) -> str:
    return f"{LARGE * float(size.removesuffix('px')):g}px" if size.endswith("px") else size


LABEL = 18
"""Characters in a line of a vertical axis's label: as many as the smallest frame, of 120 pixels, has room for."""


def plot(
    colours: Theme,
    x_label: str,
    y_label: str,
    x_range: tuple[float, float],
    y_range: tuple[float, float],
    **options: Any,
) -> figure:
    """An empty figure in the lab's look. Ranges are fixed, for only the server moves them."""
    p = figure(
        x_range=Range1d(*x_range),
        y_range=Range1d(*y_range),
        sizing_mode="stretch_both",
        min_height=160,
        min_width=200,
        toolbar_location=None,
        tools="",
        **options,
    )
    style_figure(p, colours)
    # Measuring and painting its labels is most of what a browser does for a small figure.
    p.xaxis.ticker.desired_num_ticks, p.yaxis.ticker.desired_num_ticks = 5, 4
    for axis in p.axis:
        axis.ticker.num_minor_ticks = 0
    p.xaxis.axis_label, p.yaxis.axis_label = x_label, fill(y_label, LABEL)
    return p


def style_figure(p: Any, colours: Theme) -> None:
    """Give a figure the lab's colours and type."""
    # On the right there is room for half of the last tick's label, which is beyond the frame.
    p.update(
        background_fill_color=colours.surface,
        border_fill_color=colours.surface,
        outline_line_color=None,
        min_border_left=4,
        min_border_right=24,
        min_border_top=6,
        min_border_bottom=4,
    )
    p.axis.axis_label_text_font_style = "normal"
    p.axis.axis_label_text_font_size = "13px"
    p.axis.major_label_text_font_size = "12px"
    p.axis.axis_label_text_color = colours.faint
    p.axis.major_label_text_color = colours.faint
    p.axis.axis_line_color = colours.grid
    p.axis.major_tick_line_color = colours.grid
    p.axis.minor_tick_line_color = None
    p.axis.axis_label_standoff = 4
    p.grid.grid_line_color = colours.grid
    for legend in p.legend:
        legend.update(
            label_text_color=colours.text,
            label_text_font_size="13px",
            background_fill_alpha=0.0,
            border_line_color=None,
        )


UNEVEN = 4.0
"""With one axis this many times as long as the other, equal scales would leave a line of the picture."""


def comparable(x_range: tuple[float, float], y_range: tuple[float, float]) -> bool:
    """Whether a figure with equal scales shows both ranges well."""
    return 1 / UNEVEN <= (x_range[1] - x_range[0]) / (y_range[1] - y_range[0]) <= UNEVEN


def even_scales(p: figure, x_range: tuple[float, float], y_range: tuple[float, float]) -> None:
    """Give both axes of a figure the same scale, whatever its shape on the page."""
    p.match_aspect = True
    # Ranges that follow data keep the scales equal; they follow an invisible frame alone, so that nothing moves.
    frame = p.scatter(x_range, y_range, alpha=0)
    p.x_range = DataRange1d(renderers=[frame], range_padding=0)
    p.y_range = DataRange1d(renderers=[frame], range_padding=0, flipped=y_range[0] > y_range[1])


def even_plot(colours: Theme, x_range: tuple[float, float], y_range: tuple[float, float]) -> figure:
    """A figure without axes where both have the same scale, whatever its shape on the page; y may fall upwards."""
    p = plot(colours, "", "", x_range, y_range)
    p.axis.visible = p.grid.visible = False
    even_scales(p, x_range, y_range)
    p.min_border_left = p.min_border_right = p.min_border_top = p.min_border_bottom = 0
    return p

"""The card of a sampler: its update, its place on the grid recipe × integrator × gradient, and its source."""

from typing import Any

import panel as pn
import panel_material_ui as pmui

from app.state import AppState
from app.theme import theme
from samplers.gradients import GRADIENTS
from samplers.kernels import SAMPLERS


def _formula(tex: str) -> Any:
    return pn.pane.LaTeX(
        f"$${tex}$$",
        renderer="mathjax",
        sizing_mode="stretch_width",
        margin=(0, 4),
        styles={"font-size": "15px", "overflow-x": "auto"},
    )


def entry(label: str, text: str) -> str:
    """A line of a card."""
    return f"<dt>{label}</dt><dd>{text}</dd>"


_STYLE = """
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 12px; margin: 4px 4px; font-size: 14px; }
dt { opacity: .7; } dd { margin: 0; }
h2 { margin: 8px 4px 2px; font-size: 16px; }
"""


def cards(state: AppState) -> list[Any]:
    """A card for the target and one for each different sampler and gradient of the lanes."""
    target = state.experiment.make_target()
    colours = theme(state.dark)
    out = [card(
        colours.faint, f"Target: {target.title}", [target.tex],
        entry("Law", (target.__doc__ or "").split("\n")[0]) + (entry("Source", target.source) if target.source else ""),
    )]  # fmt: skip
    seen = set()
    for i, lane in enumerate(state.experiment.lanes):
        if (lane.sampler.key, lane.gradient.key) in seen:
            continue
        seen.add((lane.sampler.key, lane.gradient.key))
        sampler, gradient = SAMPLERS[lane.sampler.key], GRADIENTS[lane.gradient.key]
        details = (
            entry("Integrator", sampler.integrator)
            + entry("Gradient", gradient.title)
            + entry("Source", sampler.source)
        )
        out.append(card(
            colours.lanes[i], sampler.title, [sampler.update, rf"{sampler.diffusion},\qquad {sampler.curl},\qquad {gradient.tex}"], details,
        ))  # fmt: skip
    return out


def card(colour: str, title: str, formulas: list[str], details: str) -> Any:
    """A card: displayed formulas, and entries below them."""
    return pmui.Paper(
        pn.pane.HTML(f"<h2>{title}</h2>", stylesheets=[_STYLE], margin=0, sizing_mode="stretch_width"),
        *[_formula(tex) for tex in formulas],
        pn.pane.HTML(f"<dl>{details}</dl>", stylesheets=[_STYLE], margin=0, sizing_mode="stretch_width"),
        sizing_mode="stretch_width", margin=6, elevation=1, styles={"border-left": f"5px solid {colour}"},
    )  # fmt: skip

"""The bar above the pictures while a step is taken apart: its equation, its numbers, and the ways on and back."""

from collections.abc import Callable
from html import escape
from typing import Any

import panel as pn
import panel_material_ui as pmui
from bokeh.models import Div
from panel.models.mathjax import MathJax

from sgmcmc_lab.app.live.step_player import StepPlayer
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.app.views.formulas import COMMAS
from sgmcmc_lab.app.views.formulas import split_formula as cut
from sgmcmc_lab.app.views.steps import colours_of, lit_equation, numbers_of, under
from sgmcmc_lab.samplers.gradients import GRADIENTS
from sgmcmc_lab.samplers.kernels import SAMPLERS

WAYS = {
    "step_back": ("Step back", "skip_previous", "<", "Step back: the previous step again; the run does not change."),
    "part_back": ("Part back", "chevron_left", ",", "Part back: one arrow less."),
    "part": ("Part", "chevron_right", ".", "Part: the next arrow; after the last one the chain moves."),
    "step": ("Next step", "skip_next", ">", "Next step: the chain moves, and the step after that is shown."),
}
"""The buttons: label, icon, key and help."""
_LOW = {
    "minWidth": 0,
    "px": "8px",
    "fontSize": {"xs": "12px", "sm": "13px"},
    "& .MuiButton-startIcon": {"display": {"xs": "none", "sm": "inherit"}},
}
"""On a phone the four stand in one line."""
_BESIDE = """
:host { display: flex !important; flex-flow: row wrap; align-items: center; gap: 0 12px; }
:host > .buttons { flex: 0 0 auto; width: auto; max-width: 100%; }
:host > .words { flex: 1 1 300px; width: auto; min-width: min(300px, 100%); }
:host > .equation { flex: 1 1 100%; width: auto; max-width: calc(100% - 16px); }
.scroll-button { display: none; }
"""
"""The words stand beside the buttons where there is room, and the equation below both: pictures need the height."""
_EQUATION = """
:host { font-size: 17px; overflow-x: auto; }
.line { display: inline-block; margin-right: 28px; vertical-align: top; }
mjx-container[display="true"] { margin: 2px 0 !important; }
@media (max-width: 600px) { :host { font-size: 14px; } }
"""
"""Lines of an equation stand beside each other where there is room. On a phone the first picture is still to be in the
upper half of the screen."""
_STYLE = """
:host { overflow-x: auto; }
.parts { display: flex; flex-wrap: wrap; gap: 2px 14px; font: 14px/1.5 Roboto, sans-serif; font-variant-numeric: tabular-nums; }
.parts i { display: inline-block; width: 18px; height: 4px; border-radius: 2px; margin-right: 6px; vertical-align: middle; }
@media (max-width: 600px) {
  .parts { flex-wrap: nowrap; overflow-x: auto; white-space: nowrap; }
  .parts:has([data-lit="true"]) > :not([data-lit="true"]) { display: none; }
}
"""
"""On a phone there is one line, and while a part is drawn the line is about that part."""


class StepBar:
    """The bar, which is on the page while a step takes seconds."""

    def __init__(self, state: AppState, play_step: Callable[[str], None]):
        self.state, self._play_step = state, play_step
        look = {"sizing_mode": "stretch_width", "margin": 0}
        self._equation = MathJax(text="", stylesheets=[_EQUATION], **look)
        self._words = Div(text="", stylesheets=[_STYLE], **look)
        self.panel = pn.Column(sizing_mode="stretch_width", margin=(0, 8), visible=False)
        self._buttons: pn.FlexBox | None = None
        state.param.watch(lambda *_: self._refresh(), ["slow", "present"])
        self._refresh()

    def _refresh(self) -> None:
        slow = bool(self.state.slow)
        # Few pages ever have it, so it is made where it is first seen.
        if slow and not len(self.panel):
            self.panel.objects = self._parts()
        if self._buttons is not None:
            # In presenter mode the keys at the foot of the page are buttons, too.
            self._buttons.visible = not self.state.present
        self.panel.visible = slow

    def _parts(self) -> list[Any]:
        buttons = []
        for way, (label, icon, key, help_) in WAYS.items():
            made = pmui.Button(
                label=label,
                icon=icon,
                size="small",
                variant="outlined",
                margin=(4, 0),
                sx=_LOW,
                description=f"{help_} Key: {key}",
            )

            def pressed(_: Any, way: str = way) -> None:
                self._play_step(way)

            made.on_click(pressed)
            buttons.append(made)
        self._buttons = pn.FlexBox(*buttons, gap="4px", margin=0, sizing_mode="stretch_width", css_classes=["buttons"])
        return [
            pn.Column(
                self._buttons,
                pn.pane.Bokeh(self._words, margin=(2, 8), sizing_mode="stretch_width", css_classes=["words"]),
                pn.pane.Bokeh(self._equation, margin=(0, 8), sizing_mode="stretch_width", css_classes=["equation"]),
                stylesheets=[_BESIDE],
                margin=0,
                sizing_mode="stretch_width",
            ),
        ]

    def texts(self, player: StepPlayer) -> list[tuple[str, str]]:
        """The equation with its numbers, and each part in words, by their models' id."""
        step, state = player.step, self.state
        first = state.experiment.lanes[0]
        sampler = SAMPLERS[first.sampler.key]
        if step is None:
            return [(self._equation.id, ""), (self._words.id, escape(player.problem))]
        coordinate = state.coordinate
        below = [under(part, step.dim, coordinate) for part in step.parts]
        equation = lit_equation(
            sampler.update_by(GRADIENTS[first.gradient.key], first.sampler.values()), sampler.parts, step.parts, below
        )
        colours = self._colours(sampler)
        lane = f"{state.lane_titles()[0]}, chain 1" if state.experiment.n_chains > 1 else state.lane_titles()[0]
        ago = f", {player.behind} before the run's" if player.behind else ""
        items = [f"<b>{escape(lane)}: step {player.number:,}{ago}</b>"]
        for k, part in enumerate(step.parts):
            numbers = numbers_of(part, step, coordinate)
            hidden = "" if k < player.shown else " style='opacity:.45'"
            items.append(
                f"<span class='part-{k}'{hidden}><i style='background:{colours[part.name]}'></i>{escape(part.name)} {escape(numbers)}</span>"
            )
        lines = "".join(f"<span class='line'>$${line}$$</span>" for line in cut(equation, COMMAS))
        return [(self._equation.id, lines), (self._words.id, f"<div class='parts'>{''.join(items)}</div>")]

    def lit(self, player: StepPlayer) -> list[str]:
        """The colour in which each part of the step is lit while it is drawn: that of its arrow."""
        if player.step is None:
            return []
        colours = self._colours(SAMPLERS[self.state.experiment.lanes[0].sampler.key])
        return [colours[part.name] for part in player.step.parts]

    def _colours(self, sampler: Any) -> dict[str, str]:
        names = tuple(sampler.parts)
        return dict(zip(names, colours_of(names, self.state.colours), strict=True))

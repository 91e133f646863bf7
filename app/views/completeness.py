"""The place of a choice of D and Q among all processes: Fig 1 of the recipe paper."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
from bokeh.models import Label

from sgmcmc_lab.app.views.base import Data, LaneFrame
from sgmcmc_lab.app.views.marks import MARKERS, SIGNS
from sgmcmc_lab.app.views.planes import FAILURES, excess, process_of
from sgmcmc_lab.app.views.recipes import RecipeView, recipe_of
from sgmcmc_lab.app.views.theme import plot
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.gradients import GRADIENTS
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.recipe.flow import on_points, shown
from sgmcmc_lab.samplers.recipe.presets import PRESETS
from sgmcmc_lab.samplers.recipe.recipe import Recipe
from sgmcmc_lab.samplers.search import Score, score
from sgmcmc_lab.samplers.targets.base import ByTarget, Target

NO_CURL, BOTH, NO_DIFFUSION, OUTSIDE = "Q = 0", "D and Q", "D = 0", "outside"
COLUMNS = (NO_CURL, BOTH, NO_DIFFUSION)
CONSTANT, VARYING = "constant", "D(z), Q(z)"
EDGES = (7.5, 33.0, 69.5, 98.0)
"""Where the columns of the inner region begin and end, in hundredths of the figure."""
LEFT = 2.0
"""The inner region's left side; beside it there is room for the names of the rows."""
INNER = (16.0, 90.5)
"""The inner region's lower and upper side."""
ROWS = {CONSTANT: (45.5, 74.5), VARYING: (16.5, 45.5)}
"""The lower and upper side of each row."""
HEADS = 82.0
"""The upper side of the names of the columns."""
REASON = 9.0
"""The height of a line that says why a lane stands where it does."""
LINE = 15
"""The height of a line of text, in pixels."""
MOST_SHOWN = 100
"""Recipes on the way of a lane that are drawn."""
LOWEST, RISE = 5.5, 16.0
"""How high above the bottom of its cell a mark stands at first, and how much higher with ten times the gap."""


@dataclass(frozen=True)
class Classification:
    """Where a process stands, and why."""

    column: str
    row: str
    why: str

    @property
    def inside(self) -> bool:
        """Whether it leaves e^{−H} invariant."""
        return self.column != OUTSIDE


def cell(recipe: Recipe) -> tuple[str, str]:
    """Whether D and Q are zero, and whether they depend on the state."""
    curl = any(not e.is_zero for row in recipe.Q for e in row)
    diffusion = any(not e.is_zero for row in recipe.D for e in row)
    column = BOTH if curl and diffusion else NO_DIFFUSION if curl else NO_CURL
    varies = any(e.constant is None for row in (*recipe.D, *recipe.Q) for e in row)
    return column, VARYING if varies else CONSTANT


@lru_cache(maxsize=64)
def by_recipe(recipe: Recipe, noise: float | None = 0.0, clipped: bool = False) -> Classification:
    """Where a recipe stands whose gradient has noise of variance ``noise`` beyond B̂, or a B̂ that D is too small for.

    For minibatches whose noise is not subtracted as estimated, ``noise`` is None: there is noise, and its variance is
    unknown.

    By the theorem every process that leaves e^{−H} invariant is a recipe's, so that one question decides: is the drift
    the recipe's?
    """
    column, row = cell(recipe)
    if (noise is None or noise > 0) and any(not e.is_zero for entries in recipe.correction(1.0) for e in entries):
        return Classification(OUTSIDE, row, "the gradient's noise is added to D, not to f")
    if clipped:
        return Classification(OUTSIDE, row, "D is too small for B̂ to be subtracted")
    missing = [own - other for own, other in zip(recipe.drift, recipe.due, strict=True)]
    if any(not e.is_zero for e in missing):
        if recipe.edited:
            return Classification(OUTSIDE, row, "f is typed by hand, and is not −(D+Q)∇H + Γ")
        if recipe.dissipation_dropped and any(not e.is_zero for e in recipe.dissipation):
            return Classification(OUTSIDE, row, "−D∇H is left out: nothing balances the noise")
        return Classification(OUTSIDE, row, "Γ ≠ 0 is left out of f")
    what = "constant, so Γ = 0" if row == CONSTANT else "f has its Γ"
    if column == NO_DIFFUSION:
        what = "no noise: only a new momentum changes H" if recipe.refresh else "no noise, so H never changes"
    elif column == NO_CURL and not any(not e.is_zero for entries in recipe.D for e in entries):
        what = "D = 0 too: nothing moves"
    return Classification(column, row, f"e⁻ᴴ invariant as ε → 0: {column}, {what}")


@cache
def known() -> tuple[Classification, ...]:
    """Where the presets stand, in their order."""
    return tuple(
        by_recipe(preset.recipe(preset.dims[0]), GRADIENTS[preset.gradient]().noise().variance)
        for preset in PRESETS.values()
    )


def stationary(recipe: Recipe, target: Target) -> bool:
    """Whether e^{−H} is invariant under a drift that is not D and Q's own: Q may hide in what was typed by hand.

    Symbolically where that comes out, else at points all over what is shown, to rounding.
    """
    try:
        residual = recipe.residual
    except SpecError:
        return False
    if residual.is_zero:
        return True
    axes = [np.linspace(low, high, 7) + 0.01 for low, high in shown(recipe, target)]
    points = tuple(axis.ravel() for axis in np.meshgrid(*axes))
    value, *drift = (np.abs(v) for v in on_points(recipe, target, [residual, *recipe.drift], points))
    good = np.isfinite(value)
    return bool(good.any() and value[good].max() < 1e-9 * max(1.0, *(float(d[good].max()) for d in drift)))


MOST_ROWS = 200
"""With more data a recipe's gap per gradient takes seconds, and the other pages' captions wait for the same thread."""
_SCORES: ByTarget[Recipe, Score | None] = ByTarget()


def score_of(recipe: Recipe, target: Target) -> Score | None:
    """The gap per gradient; None where there is none, or no grid to find it on."""

    def find() -> Score | None:
        try:
            return score(recipe, target) if len(target.data()) <= MOST_ROWS else None
        except FAILURES:
            return None

    return _SCORES.of(target, recipe, find)


def _choice(recipe: Recipe, lane: LaneFrame) -> tuple[Recipe, float | None, bool]:
    """All that decides where a lane stands."""
    return recipe, excess(lane.run.gradient.noise()), bool(lane.run.counts[jit.CLIPPED])


class Completeness(RecipeView):
    """All processes, those that leave e^{−H} invariant, and those that the recipe writes; the lanes are marked."""

    key = "place"
    title = "Map of samplers"
    hint = "D and Q express every process with e⁻ᴴ invariant"
    help = "After a change of D or Q the mark rises with the spectral gap per gradient, and its line shows the way."
    tall = True

    def build(self) -> Any:
        colours, n = self.scene.colours, len(self.scene.lanes)
        self._checked: dict[Any, Classification] = {}
        self._ways: list[list[tuple[Recipe, Score | None]]] = [[] for _ in range(n)]
        p = plot(colours, "", "", (0, 100), (-REASON * n, 100))
        p.axis.visible = p.grid.visible = False
        p.min_border_left = p.min_border_right = p.min_border_top = p.min_border_bottom = 4
        p.quad(0.3, 99.7, 0.3, 99.7, fill_color=None, line_color=colours.faint, line_width=1.5, line_dash="dashed")
        # Two outlines that coincide: the set that leaves e⁻ᴴ invariant, and the recipe's.
        inner = {"left": LEFT, "right": EDGES[-1], "bottom": INNER[0], "top": INNER[1]}
        p.quad(**inner, fill_color=colours.density[1], fill_alpha=0.25, line_color=colours.exact, line_width=4)
        p.quad(**inner, fill_color=None, line_color=colours.surface, line_width=1.2)
        for x in EDGES[1:-1]:
            p.segment([x], [INNER[0]], [x], [HEADS], line_color=colours.faint, line_alpha=0.6)
        middle = ROWS[VARYING][1]
        p.segment([LEFT], [middle], [EDGES[-1]], [middle], line_color=colours.faint, line_alpha=0.6)
        for row, ends in ROWS.items():
            p.add_layout(
                Label(
                    x=LEFT,
                    y=sum(ends) / 2,
                    x_offset=3,
                    text=row,
                    angle=np.pi / 2,
                    text_font_size="11px",
                    text_color=colours.text,
                    text_align="center",
                    text_baseline="top",
                )
            )
        self._text(p, 2, 100, "all continuous Markov processes", -1, colours.faint)
        self._text(
            p, 50, INNER[1], "e⁻ᴴ invariant  =  recipe  f = −(D+Q)∇H + Γ", -4, colours.text, bold=True, align="center"
        )
        for column, left, right in zip(COLUMNS, EDGES, EDGES[1:], strict=False):
            self._text(p, (left + right) / 2, HEADS, column, -1, colours.text, align="center")
        self._add_known(p)
        for i, _ in enumerate(self.scene.lanes):
            way = self.feed(f"way {i}", "x", "y")
            p.line("x", "y", source=way, line_color=colours.lanes[i], line_width=2, line_alpha=0.5)
            mark = self.feed(f"mark {i}", "x", "y")
            p.scatter(
                "x",
                "y",
                source=mark,
                marker=MARKERS[i],
                size=17,
                fill_color=colours.lanes[i],
                line_color=colours.surface,
                line_width=1.5,
            )
        self._labels = []
        for i in range(n):
            if not self.scene.layouts or self.scene.layouts[i]:
                self._text(p, 1, -REASON * i, SIGNS[i], -3, colours.lanes[i])
            self._labels.append(self._text(p, 6, -REASON * i, "", -3, colours.text))
        return p

    def _text(
        self, p: Any, x: float, y: float, text: str, down: int, colour: str, bold: bool = False, align: str = "left"
    ) -> Label:
        label = Label(
            x=x,
            y=y,
            y_offset=down,
            text=text,
            text_font_size="12px",
            text_color=colour,
            text_align=align,
            text_font_style="bold" if bold else "normal",
            text_baseline="top",
        )
        p.add_layout(label)
        return label

    def _add_known(self, p: Any) -> None:
        """The named samplers, each in its cell; lines of text are in pixels, so that they do not meet."""
        colours = self.scene.colours
        lines: dict[tuple[str, str], int] = {}
        for preset, found in zip(PRESETS.values(), known(), strict=True):
            where = (OUTSIDE, "") if not found.inside else (found.column, found.row)
            k = lines.get(where, 0)
            lines[where] = k + 1
            if found.inside:
                x, y, down = EDGES[COLUMNS.index(found.column)] + 1, ROWS[found.row][1], -LINE * k - 2
            else:
                x, y, down = LEFT + 34.0 * k, INNER[0], -5
            title = preset.title.replace(" with a ", " + ")
            self._text(p, x, y, f"• {title}", down, colours.text)

    # ------------------------------------------------------------ frames

    def classification(self, lane: LaneFrame) -> Classification | None:
        """The place of a lane; None where it is no process, or no recipe."""
        recipe = recipe_of(lane)
        if recipe is None or (lane.run.divergence is not None and lane.run.divergence.refused):
            return None
        key = _choice(recipe, lane)
        return self._checked.get(key) or by_recipe(*key)

    def background(self, lanes: Sequence[LaneFrame]) -> bool:
        moved = False
        for lane in lanes:
            found, recipe, process = self.classification(lane), recipe_of(lane), process_of(lane)
            if found is None or recipe is None or process is None or found.inside:
                continue
            key = _choice(recipe, lane)
            if key in self._checked:
                continue
            # A process that this D and Q do not express may still have another Q: that takes a while to see.
            if not key[2] and key[1] is not None and stationary(process.effective, lane.run.sampled):
                found = Classification(*cell(recipe), "e⁻ᴴ is invariant nevertheless: another Q gives this f")
                moved = True
            self._checked[key] = found
        return self._follow(lanes) or moved

    def _follow(self, lanes: Sequence[LaneFrame]) -> bool:
        """Score the recipes that the lanes have had, the new ones."""
        new = False
        for way, lane in zip(self._ways, lanes, strict=True):
            found, recipe = self.classification(lane), recipe_of(lane)
            if found is None or recipe is None or not found.inside:
                way.clear()
            elif not way or way[-1][0] != recipe:
                way.append((recipe, score_of(recipe, lane.run.sampled)))
                # The picture has a bounded number of points; the first stays, from which the others rise.
                del way[1 : max(len(way) - MOST_SHOWN, 1)]
                new = True
        return new

    def _place(self, i: int, recipe: Recipe, found: Score | None) -> tuple[float, float]:
        """The place of a recipe of lane ``i``, inside."""
        column, row = cell(recipe)
        k = COLUMNS.index(column)
        first = next((one for _, one in self._ways[i] if one is not None), None)
        rise = 0.0
        if first is not None and found is not None:
            rise = float(np.clip(np.log10(found.per_gradient / first.per_gradient), 0.0, 1.0))
        x = EDGES[k] + (EDGES[k + 1] - EDGES[k]) * (1 + 2 * i) / 8
        return x, ROWS[row][0] + LOWEST + RISE * rise

    def compute(self, lanes: Sequence[LaneFrame]) -> Data:
        out: Data = {}
        for i, lane in enumerate(lanes):
            found, recipe, way = self.classification(lane), recipe_of(lane), self._ways[i]
            if found is None or recipe is None:
                out[f"mark {i}"] = out[f"way {i}"] = (np.zeros(0),) * 2
                continue
            if found.inside:
                score = next((one for known, one in way if known == recipe), None)
                place = self._place(i, recipe, score)
            else:
                place = 77.0 + 6.5 * i, INNER[0] / 2
            out[f"mark {i}"] = (np.array([place[0]]), np.array([place[1]]))
            points = np.array([self._place(i, *one) for one in way]).reshape(-1, 2)
            out[f"way {i}"] = (points[:, 0], points[:, 1])
        return out

    def captions(self, lanes: Sequence[LaneFrame]) -> dict[str, str]:
        out = {}
        for label, lane, way in zip(self._labels, lanes, self._ways, strict=True):
            found = self.classification(lane)
            known = [one for _, one in way if one is not None]
            if found is None:
                text = "no process: D is not positive semidefinite" if recipe_of(lane) is not None else ""
            elif len(known) > 1 and found.inside:
                text = f"e⁻ᴴ invariant; gap per gradient {known[0].per_gradient:.2g} → {known[-1].per_gradient:.2g}"
            else:
                text = found.why
            out[label.id] = text
        return out

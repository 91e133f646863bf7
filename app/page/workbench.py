"""The recipe workbench: D and Q as grids of entries, with what follows from them."""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast

import panel as pn
import panel_material_ui as pmui

from sgmcmc_lab.app.page.formula_box import formula_box
from sgmcmc_lab.app.page.improving import DoLater, Improving
from sgmcmc_lab.app.page.notice import Notice
from sgmcmc_lab.app.state import START_PRESETS, AppState
from sgmcmc_lab.app.views.formulas import short
from sgmcmc_lab.app.views.planes import SYMBOLS
from sgmcmc_lab.app.views.recipes import DRAWN
from sgmcmc_lab.app.views.theme import theme
from sgmcmc_lab.samplers.choices import make_sampler
from sgmcmc_lab.samplers.kernels.recipe import RecipeSampler, parameters_of
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.recipe import theorem2
from sgmcmc_lab.samplers.recipe.presets import PRESETS
from sgmcmc_lab.samplers.recipe.recipe import ENERGY, KINDS, THETA, THETA_R_XI, Layout, Recipe

SHOWN_KINDS = dict(zip(("θ", "θ, momentum r", "θ, r, thermostat ξ"), KINDS, strict=True))
FIELDS = {"D": "diffusion_entries", "Q": "curl_entries", "f": "drift_entries"}
"""The parameter that holds the entries of each grid."""
NUMBERS = {"A": "thermostat", "λ": "refresh"}
"""The parameter of each box for a number, by the box's label."""
OWN = "own"
"""The text in the menu of presets for entries that are no preset's."""
DROPPED = r"\ \text{(left out)}"
_STYLE = """
h2 { margin: 0; font-size: 16px; } .faint { opacity: .75; font-size: 14px; }
"""
_ENTRY = {"& input": {"fontFamily": "monospace", "fontSize": "14px", "padding": "7px 8px"}}
_WIDTHS = {1: 200, 2: 122, 3: 96, 4: 86, 5: 76}
"""How wide an entry is at least, in pixels, by the number of coordinates. On a phone a row of them is as wide as it."""
_PANEL = """
:host { max-height: 42vh !important; overflow-y: auto; position: sticky; top: 0; z-index: 4; box-sizing: border-box;
  background: var(--mui-palette-background-paper, Canvas); }
.scroll-button { display: none; }
@media (max-width: 599px) { :host { max-height: 38vh !important; } }
"""
"""The workbench stays in sight while the page is scrolled, and leaves the pictures half of the screen."""
LETTER = 8
"""The width of a letter in an entry, in pixels."""


def _not_entered(label: str, value: str) -> Any:
    """The box of an entry that follows from the others."""
    return pmui.TextInput(
        label=label, value=value, size="small", sizing_mode="stretch_width", margin=(4, 2), sx=_ENTRY, disabled=True
    )


class Workbench:
    """A card for each lane whose sampler is a recipe."""

    def __init__(
        self,
        state: AppState,
        notify: Callable[[str, str], None],
        later: Callable[[Callable[[], None]], None],
        do_later: DoLater,
    ):
        self.state, self.notify, self.later, self._do_later = state, notify, later, do_later
        self.panel = pn.Column(sizing_mode="stretch_width", margin=(0, 4), visible=False, stylesheets=[_PANEL])
        self._cards: dict[int, _Card] = {}
        self._shape: Any = None
        state.param.watch(lambda *_: self.refresh(), ["experiment", "dark"])
        state.position.param.watch(lambda *_: self.refresh(), ["lesson", "number", "free", "everything"])
        self.refresh()

    def refresh(self) -> None:
        """Draw cards where other ones are needed, and bring the rest up to date. A lesson's step has none to draw."""
        state, recipe = self.state, RecipeSampler.key
        lanes = [i for i, lane in enumerate(state.experiment.lanes) if lane.sampler.key == recipe]
        if not state.shows("workbench"):
            lanes = []
        dim = state.experiment.make_target().dim if lanes else 0
        shape = (
            state.dark,
            dim,
            state.experiment.target.key,
            tuple((i, state.experiment.lanes[i].sampler.values()["layout"]) for i in lanes),
        )
        if shape != self._shape:
            self._shape = shape
            for card in self._cards.values():
                card.improving.give_up()
            self._cards = {i: _Card(state, i, self.notify, self._do_later) for i in lanes}
            self.panel.objects = [card.panel for card in self._cards.values()]
            self.panel.visible = bool(lanes)
        self.later(self._refresh_cards)

    def _refresh_cards(self) -> None:
        for card in self._cards.values():
            card.refresh()


def indices(what: str, n: int) -> list[tuple[int, int]]:
    """The row and column of every entry that is typed, of a recipe with n coordinates."""
    if what == "f":
        return [(i, i) for i in range(n)]
    return [(i, j) for i in range(n) for j in range(i + (what == "Q"), n)]


def texts(sampler: RecipeSampler, what: str, n: int) -> list[str]:
    """The entries as they are typed; those that are left out are D = 1 and Q = 0."""
    given = getattr(sampler, FIELDS[what])
    left_out = {"D": "1", "Q": "0", "f": ""}[what]
    return list(given or (left_out if i == j else "0" for i, j in indices(what, n)))


def entry_boxes(state: AppState, lane: int, name: str, apply: Callable[[Any], bool]) -> list[Any]:
    """A box for each entry of one of a lane's grids, by its parameter's name; ``apply`` takes all of the grid."""
    (what,) = (key for key, field in FIELDS.items() if field == name)
    sampler = RecipeSampler(**state.experiment.lanes[lane].sampler.values())
    names = Layout(sampler.layout, state.experiment.make_target().dim).rows
    now = texts(sampler, what, len(names))
    boxes = []
    for at, (i, j) in enumerate(indices(what, len(names))):
        label = f"{what} {SYMBOLS[names[i]]}" + (f" {SYMBOLS[names[j]]}" if what != "f" else "")
        box = formula_box(now[at], 36, _ENTRY, label=label, sizing_mode="stretch_width", margin=(4, 10))

        def changed(event: Any, at: int = at, box: Any = box) -> None:
            tried = [*now]
            tried[at] = event.new.strip() or ("" if what == "f" else "0")
            box.error_state = not apply(tuple(tried) if any(tried) else ())
            if not box.error_state:
                now[at] = tried[at]

        box.param.watch(changed, "value")
        boxes.append(box)
    return boxes


class _Card:
    """The recipe of one lane."""

    def __init__(self, state: AppState, lane: int, notify: Callable[[str, str], None], do_later: DoLater):
        self.state, self.lane, self.notify = state, lane, notify
        self._silent = False
        sampler = self._sampler()
        self._layout = Layout(sampler.layout, state.experiment.make_target().dim)
        self.names = self._layout.rows
        self._mirrors: dict[tuple[str, int, int], Any] = {}
        self._entries: dict[tuple[str, int], Any] = {}
        self._wrong: dict[tuple[str, int], str] = {}
        small = {"size": "small", "margin": (4, 6)}
        fitting = {PRESETS[key].title: key for key in state.fitting_presets()}
        self.preset = pmui.Select(
            label="Preset",
            options={"Your own": OWN, **fitting},
            width=150,
            description="The D and Q of a named sampler, as a start.",
            **small,
        )
        self.layout = pmui.Select(
            label="State z",
            options=SHOWN_KINDS,
            value=sampler.layout,
            width=170,
            description="The moving variables: θ alone, with a momentum, or with a momentum and a thermostat.",
            **small,
        )
        self.gamma = pmui.Switch(
            label="Γ",
            description="Γ in the drift: without it e⁻ᴴ is not stationary where D or Q depends on z.",
            **small,
        )
        self.dissipation = pmui.Switch(
            label="−D∇H", description="−D∇H in the drift: without it nothing balances the noise.", **small
        )
        self.preset.param.watch(lambda event: self._act(self._choose_preset, event.new), "value")
        self.layout.param.watch(lambda event: self._act(self._choose_layout, event.new), "value")
        self.gamma.param.watch(lambda event: self._act(self._set, "gamma", event.new), "value")
        self.dissipation.param.watch(lambda event: self._act(self._set, "dissipation", event.new), "value")
        head = [self.preset, self.layout, self.gamma, self.dissipation]
        if sampler.layout == THETA_R_XI:
            head.append(self._number("A", "The mean of the thermostat ξ under e^{−H}."))
        if sampler.layout != THETA:
            head.append(self._number("λ", "The rate at which the momentum is redrawn, as in HMC; 0 for never."))
        find = pmui.Button(
            label="Find Q",
            size="small",
            variant="outlined",
            margin=(4, 6),
            description="Find Q: compute the Q that gives this drift with D (Theorem 2), and put it into the grid.",
        )
        find.on_click(lambda _: self._act(self._find_curl))
        self.improving = Improving(state, lane, do_later)
        head += [find, self.improving.family, self.improving.button]
        self.problem = Notice(margin=(2, 6))
        said = [pn.pane.HTML(text, stylesheets=[_STYLE], margin=(0, 8)) for text in _said(self._layout)]
        self.energy = self._energy()
        self.follows = {
            what: pn.pane.LaTeX(
                "",
                renderer="mathjax",
                margin=(2, 8),
                styles={"font-size": "15px", "overflow-x": "auto", "max-width": "100%"},
            )
            for what in ("H", "gamma", "drift")
        }
        colour = theme(state.dark).lanes[lane]
        title = pn.pane.HTML(
            f"<h2>Recipe of sampler {lane + 1}</h2>",
            stylesheets=[_STYLE],
            margin=(6, 12, 0, 8),
            styles={"white-space": "nowrap"},
        )
        row = {"align_items": "center", "gap": "2px", "sizing_mode": "stretch_width", "margin": 0}
        self.panel = pmui.Paper(
            pn.FlexBox(title, *head, **row),
            self.problem,
            self.improving.bar,
            self.improving.result,
            *said,
            pn.FlexBox(
                self._matrix("D"),
                self._matrix("Q"),
                self._drift(),
                self.energy,
                **{**row, "align_items": "flex-start", "gap": "10px"},
            ),
            pn.FlexBox(*self.follows.values(), **row),
            sizing_mode="stretch_width",
            margin=(4, 4),
            elevation=1,
            styles={"border-left": f"5px solid {colour}"},
            css_classes=["workbench"],
        )

    def refresh(self) -> None:
        """Show what the state holds; what is being typed and was refused stays as it is."""
        self.improving.refresh()
        sampler = self._sampler()
        recipe = sampler.recipe(self.state.experiment.make_target())
        self._silent = True
        try:
            self.gamma.value, self.dissipation.value = sampler.gamma, sampler.dissipation
            self.preset.value = self._preset_of(recipe)
            for name in NUMBERS:
                if (name, 0) in self._entries and (name, 0) not in self._wrong:
                    self._entries[name, 0].value = self._number_text(name)
            if ("U", 0) in self._entries and ("U", 0) not in self._wrong:
                self._entries["U", 0].value = self.state.experiment.target.values()["energy"]
            for what in FIELDS:
                for at, text in enumerate(self._texts(what)):
                    if (what, at) not in self._wrong:
                        self._entries[what, at].value = text
                    i, j = self._indices(what)[at]
                    if (what, j, i) in self._mirrors:
                        self._mirrors[what, j, i].value = text if what == "D" or text == "0" else _negative(text)
        finally:
            self._silent = False
        for what, pane in self.follows.items():
            tex = recipe.tex(what)
            dropped = what == "gamma" and recipe.gamma_dropped
            pane.visible = bool(short([tex]))
            pane.object = f"$${tex}{DROPPED if dropped else ''}$$" if pane.visible else ""

    def _sampler(self) -> RecipeSampler:
        return cast(RecipeSampler, make_sampler(self.state.experiment.lanes[self.lane].sampler))

    def _indices(self, what: str) -> list[tuple[int, int]]:
        return indices(what, len(self.names))

    def _texts(self, what: str) -> list[str]:
        return texts(self._sampler(), what, len(self.names))

    def _preset_of(self, recipe: Recipe) -> str:
        target = self.state.experiment.make_target()
        for key in self.state.fitting_presets():
            if _of_preset(key, target.dim, target.formula()) == recipe:
                return key
        return OWN

    def _number(self, name: str, description: str) -> Any:
        # A field for numbers drops other text in the browser, and no sentence could name it.
        box = pmui.TextInput(
            label=name,
            value=self._number_text(name),
            width=110,
            size="small",
            margin=(4, 6),
            description=description,
        )
        box.param.watch(lambda event: self._act(self._set_entry, name, 0, event.new), "value")
        self._entries[name, 0] = box
        return box

    def _number_text(self, name: str) -> str:
        return f"{getattr(self._sampler(), NUMBERS[name]):.15g}"

    def _matrix(self, what: str) -> Any:
        n = len(self.names)
        width = _WIDTHS[n]
        texts = self._texts(what)
        cells: dict[tuple[int, int], Any] = {}
        for at, (i, j) in enumerate(self._indices(what)):
            name = f"{what} {SYMBOLS[self.names[i]]} {SYMBOLS[self.names[j]]}"
            box = formula_box(
                texts[at], width // LETTER - 2, _ENTRY, label=name, sizing_mode="stretch_width", margin=(4, 2)
            )
            box.param.watch(lambda event, at=at: self._act(self._set_entry, what, at, event.new), "value")
            self._entries[what, at] = cells[i, j] = box
            if i != j:
                mirror = _not_entered(f"{what} {SYMBOLS[self.names[j]]} {SYMBOLS[self.names[i]]}", "")
                self._mirrors[what, j, i] = cells[j, i] = mirror
        if what == "Q":
            for i in range(n):
                name = f"Q {SYMBOLS[self.names[i]]} {SYMBOLS[self.names[i]]}"
                cells[i, i] = _not_entered(name, "0")
        meaning = "diffusion, symmetric, ≥ 0" if what == "D" else "skew-symmetric"
        head = pn.pane.HTML(
            f"<b>{what}(z)</b> <span class='faint'>{meaning}</span>",
            stylesheets=[_STYLE],
            margin=(0, 4, 4, 4),
        )
        # As wide as there is room, and no narrower than a phone.
        columns = f":host {{ grid-template-columns: repeat({n}, minmax(0, 1fr)) !important; }}"
        grid = pn.GridBox(
            *(cells[i, j] for i in range(n) for j in range(n)),
            ncols=n,
            margin=0,
            sizing_mode="stretch_width",
            stylesheets=[columns],
        )
        least = n * (width + 4)
        styles = {"flex": f"{n} 1 {least}px", "min-width": f"min({least}px, calc(100% - 12px))", "width": "auto"}
        return pn.Column(head, grid, margin=(0, 6), styles=styles)

    def _drift(self) -> Any:
        head = pn.pane.HTML("<b>f(z)</b> <span class='faint'>by hand</span>", stylesheets=[_STYLE], margin=(0, 4, 4, 4))
        boxes = []
        width = _WIDTHS[max(2, len(self.names) - 1)]
        for at, text in enumerate(self._texts("f")):
            box = formula_box(
                text,
                width // LETTER - 2,
                _ENTRY,
                label=f"f {SYMBOLS[self.names[at]]}",
                placeholder="follows",
                width=width,
                margin=(4, 2),
                description="A component of the drift typed by hand; empty, it follows from D and Q.",
            )
            box.param.watch(lambda event, at=at: self._act(self._set_entry, "f", at, event.new), "value")
            self._entries["f", at] = box
            boxes.append(box)
        # Beside large matrices there is no room for a column, but below them there is for a row.
        inside = [pn.Row(*boxes, margin=0)] if len(boxes) > 3 else boxes
        return pn.Column(head, *inside, margin=(0, 6))

    def _energy(self) -> Any:
        choice = self.state.experiment.target
        head = pn.pane.HTML("<b>U(θ)</b> <span class='faint'>energy</span>", stylesheets=[_STYLE], margin=(0, 4))
        if choice.key == "typed":
            box = formula_box(choice.values()["energy"], 300 // LETTER - 2, _ENTRY, label="U", width=300, margin=(4, 2))
            box.param.watch(lambda event: self._act(self._set_entry, "U", 0, event.new), "value")
            self._entries["U", 0] = box
            return pn.Column(head, box, margin=(0, 6))
        text = self.state.experiment.make_target().formula()
        if text == ENERGY:
            # A formula of its own would have none of the data.
            shown = pn.pane.HTML(
                "no formula: values and slopes are the target's own", margin=(2, 6), styles={"max-width": "210px"}
            )
            return pn.Column(head, shown, margin=(0, 6))
        button = pmui.Button(label="Type your own", icon="edit", size="small", variant="outlined", margin=(4, 4))
        button.on_click(lambda _: self._act(self.state.type_energy))
        shown = pn.pane.HTML(f"<code>{text}</code>", margin=(2, 6), styles={"max-width": "210px", "font-size": "13px"})
        return pn.Column(head, shown, button, margin=(0, 6))

    def _act(self, change: Callable[..., None], *args: Any) -> None:
        """Make a change; where it is refused, say so on the card, and keep what was typed."""
        if self._silent:
            return
        key = (args[0], args[1]) if change == self._set_entry else ("", 0)
        try:
            change(*args)
            self._wrong.pop(key, None)
        except (SpecError, theorem2.NoCurlError) as error:
            self._wrong[key] = self._by_label(str(error))
        for entry, box in self._entries.items():
            box.error_state = entry in self._wrong
        message = "\n".join(self._wrong.values())
        self.problem.say(message)

    def _by_label(self, message: str) -> str:
        """A message about an entry, by the label of its box."""

        def label(found: re.Match[str]) -> str:
            numbers = [SYMBOLS[self.names[int(number) - 1]] for number in found[2].split(",")]
            return " ".join([found[1], *numbers])

        field, sign, rest = message.partition(" = ")
        labels = {f"sampler.{parameter}": name for name, parameter in (FIELDS | NUMBERS).items()}
        message = f"{labels.get(field, field)}{sign}{rest}"
        return re.sub(r"^recipe\.([DQf])\[([\d,]+)\]", label, message).removeprefix("recipe.")

    def _choose_preset(self, key: str) -> None:
        if key != OWN:
            self._wrong.clear()
            self.state.set_preset(self.lane, key)

    def _choose_layout(self, kind: str) -> None:
        self._wrong.clear()
        self.state.set_preset(self.lane, START_PRESETS[kind])

    def _set(self, name: str, value: Any) -> None:
        self.state.set_recipe(self.lane, **{name: value})

    def _find_curl(self) -> None:
        target = self.state.experiment.make_target()
        found = theorem2.find(self._sampler().recipe(target), target)
        self.state.set_recipe(self.lane, **parameters_of(found))

    def _set_entry(self, what: str, at: int, text: str) -> None:
        if what == "U":
            self.state.set_target_param("energy", text)
            return
        if what in NUMBERS:
            self._set(NUMBERS[what], text)
            return
        texts = self._texts(what)
        texts[at] = text.strip() or ("" if what == "f" else "0")
        # Entries that need each other are refused until all are there, and then go together.
        refused = [k for grid, k in self._wrong if grid == what and k != at]
        together = [*texts]
        for k in refused:
            together[k] = self._entries[what, k].value
        try:
            self._set(FIELDS[what], tuple(together) if any(together) else ())
        except SpecError:
            if not refused:
                raise
            self._set(FIELDS[what], tuple(texts) if any(texts) else ())
        else:
            for k in refused:
                del self._wrong[what, k]


@lru_cache(maxsize=64)
def _of_preset(key: str, dim: int, formula: str) -> Recipe:
    return PRESETS[key].recipe(dim, formula)


def _said(layout: Layout) -> list[str]:
    """The remark about a recipe whose θ has many coordinates, as HTML."""
    d, out = layout.dim, []
    if layout.alike:
        own = "<code>theta</code> and <code>r</code> are" if layout.momenta else "<code>theta</code> is"
        any_of = f"<code>theta1</code> … <code>theta{d}</code>" + (
            f", <code>r1</code> … <code>r{d}</code>" if layout.momenta else ""
        )
        out.append(
            f"The entries are those of one coordinate, and all {d} have them: {own} its own, {any_of} may stand anywhere."
        )
    if d > DRAWN:
        out.append(
            f"θ has {d} coordinates: drift, p(z, t), spectrum and where e⁻ᴴ is stationary are drawn for one or two."
        )
    return [f"<span class='faint'>{text}</span>" for text in out]


def _negative(text: str) -> str:
    return text[1:].strip() if text.startswith("-") and not any(sign in text[1:] for sign in "+-") else f"-({text})"

"""The frame of a page: header, sidebar, and a lesson beside the views."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import panel as pn
import panel_material_ui as pmui
import param

from sgmcmc_lab.app.page.lesson_panel import BESIDE
from sgmcmc_lab.app.page.parts import Part, taken_out
from sgmcmc_lab.app.page.present import SX
from sgmcmc_lab.app.state import AppState

_SCREEN = """
@media (min-width: 900px) {
  :host(.filled) { height: calc(100vh - var(--strip, 34px) - 6px - var(--lost, 0px)); }
  :host(.filled) > .views { flex: 1 1 0; min-height: 400px; }
}
@media print { :host { display: block !important; } }
.scroll-button { display: none; }
"""
"""In presenter mode what is above the pictures takes the height that it needs, and they fill the rest of the screen."""
HEADER = 44
"""The height of the header, in pixels."""
LOST = "var(--lost, 0px)"
"""The height of the banner of a server that does not answer, from ``connection.js``."""
_SX = {
    "position": "relative",
    "top": LOST,
    "height": f"calc(100vh - {LOST})",
    "& .MuiAppBar-root": {"top": LOST},
    "& .MuiDrawer-root .MuiDrawer-paper": {"height": f"calc(100vh - {LOST})"},
    ".sidebar": {"padding": 0},
    "& .main": {"padding": "0 4px 4px"},
    # The parts above the views are as low as possible: on a small screen three of them are seen whole.
    "& .MuiToolbar-root": {"minHeight": f"{HEADER}px"},
    # On a phone there is no room for it, but it stays the page's heading.
    "& .title": {
        "position": {"xs": "absolute", "sm": "static"},
        "clipPath": {"xs": "inset(50%)", "sm": "none"},
        "marginRight": "12px",
    },
    "& .header > .MuiLinearProgress-root": {"display": "none"},
    # On paper the page is as long as what it holds, and a picture is on one sheet. The address has the experiment.
    "@media print": {
        "&, & .main, & .main-content": {"display": "block", "height": "auto", "overflow": "visible", "margin": 0},
        "& .MuiAppBar-root, & .MuiDrawer-root, & .main .MuiToolbar-root": {"display": "none"},
    },
}
_SEEN = {
    "styleOverrides": {
        "root": {
            "@media (forced-colors: active)": {"&.Mui-selected": {"outline": "3px solid", "outlineOffset": "-4px"}}
        }
    }
}
"""Forced colours leave out the fill that shows what is chosen."""
_COMPONENTS = {
    # An interactive tooltip covers the next button and takes its click; beside a narrow button it would be as narrow.
    "MuiTooltip": {
        "defaultProps": {"disableInteractive": True},
        "styleOverrides": {"tooltip": {"width": "max-content", "maxWidth": 300}},
    },
    "MuiToggleButton": _SEEN,
    "MuiMenuItem": _SEEN,
    # The page's title is its first heading, and what only keeps a place free is none.
    "MuiTypography": {"defaultProps": {"variantMapping": {"h3": "h1", "h5": "div"}}},
}
_DARK = "html:root { background-color: var(--mui-palette-background-default, #121212); }"
"""The page's own colour, before its scripts have set the variable."""
PHONE = "@media (max-width: 599px)"
ICON = {
    "fontSize": 0,
    "minWidth": 36,
    "height": 36,
    "& .MuiButton-startIcon": {"margin": 0},
    "& .MuiButton-startIcon *": {"fontSize": "20px !important"},
}
"""A button without its words, which name it all the same."""
_NO_DRAWER = {"& .header [aria-label$='drawer']": {"display": "none"}}
NARROW = 900
"""Below this width, in pixels, the sidebar covers the views."""


class Frame:
    """The page around its parts; it follows the lesson, presenter mode, the width of the screen and the colours."""

    def __init__(
        self,
        state: AppState,
        *,
        main: Sequence[Any],
        below: Sequence[Any],
        lesson: Any,
        room: Any,
        controls: Any,
        columns: Sequence[Any],
        overlays: Sequence[Any],
        header: Sequence[Any],
    ):
        """``main`` are the views with what is above them, ``overlays`` dialogs and invisible components. Parts of
        their own put the children of ``columns`` on the page.
        """
        self._state, self._narrow = state, False
        self._screen = pn.Column(
            *main, stylesheets=[_SCREEN], css_classes=self._screen_classes(), sizing_mode="stretch_width", margin=0
        )
        beside = pn.Column(room, self._screen, *below, sizing_mode="stretch_width", margin=0, css_classes=["beside"])
        self._body = pn.Column(lesson, beside, stylesheets=[BESIDE], sizing_mode="stretch_width", margin=0)
        self._body.css_classes = self._body_classes()
        self.page = pmui.Page(
            title="SG-MCMC Lab",
            main=[self._body, *overlays],
            sidebar=[] if "controls" in state.hidden else [controls],
            sidebar_width=300,
            header=[*header],
            dark_theme=state.dark,
            theme_toggle="theme" not in state.hidden,
            sidebar_open=self._opens_sidebar(),
            busy_indicator=None,
            theme_config={"components": _COMPONENTS},
            sx=self._sx(),
            raw_css=[first_colour(state)],
        )
        with param.edit_constant(self.page):
            # Panel's count of what is going on would walk every model of the page, twice for every event. Another
            # reference ends the one to it, which would keep the page for ever; a value alone does not (param 2.4).
            self.page.busy = self.page.param.dark_theme
            self.page.busy = False
        self.page.param.watch(self._choose_theme, "dark_theme")
        self._columns = columns

    def parts(self) -> Iterator[Part]:
        """The page's parts, which are taken out now, and put back from above to below."""
        page, inner = self.page, (self._body, self._screen)
        places = [(page, "header"), (page, "main"), (page, "sidebar"), *((column, "objects") for column in inner)]
        taken = [part for place in places for part in taken_out(*place)]

        def put_back() -> Iterator[Part]:
            # The first parts make the children of these.
            columns = [part for column in self._columns for part in taken_out(column, "objects")]
            yield from taken
            yield from columns

        return put_back()

    def fit_lesson(self) -> None:
        """Follow the lesson's step: its panel has the controls in place of the sidebar."""
        self._body.css_classes = self._body_classes()
        self.page.param.update(sx=self._sx(), sidebar_open=self._opens_sidebar(asked=self._state.position.free))

    def fit_presenter(self) -> None:
        """Follow presenter mode."""
        self._screen.css_classes = self._screen_classes()
        self._body.css_classes = self._body_classes()
        if self.page.sx != (sx := self._sx()):
            self.page.param.update(sx=sx, sidebar_open=self._opens_sidebar())

    def fit_width(self, width: int) -> None:
        """Close the sidebar where it would cover the views."""
        self._narrow = width < NARROW
        self.page.sidebar_open = self._opens_sidebar()

    def prefer_dark(self, dark: bool) -> None:
        """Follow the device's preference for dark colours, unless the link or the person has chosen."""
        if self._state.follows_device:
            self._state.dark = dark
            self.page.dark_theme = dark

    def toggle_sidebar(self) -> None:
        """Open or close the sidebar, where the page has one."""
        if len(self.page.sidebar) and not self._state.position.restricted:
            self.page.sidebar_open = not self.page.sidebar_open

    def _choose_theme(self, event: Any) -> None:
        """Take the button's colours. A change that does not come from it changes nothing here."""
        if event.new != self._state.dark:
            self._state.param.update(dark=event.new, follows_device=False)

    def _opens_sidebar(self, asked: bool = False) -> bool:
        """Whether there is room for the sidebar. A lesson's step has its controls in its panel."""
        if "controls" in self._state.hidden:
            # The frame would move the page into the place of a closed sidebar that is not there.
            return True
        return not self._state.position.restricted and (asked or not (self._narrow or self._state.present))

    def _sx(self) -> dict[str, Any]:
        state = self._state
        return _SX | (SX if state.present else {}) | (_NO_DRAWER if state.position.restricted else {})

    def _body_classes(self) -> list[str]:
        position = self._state.position
        classes = ["guided"] if position.restricted else ["free"] if position.free else []
        return classes + ["apart"] * bool(self._state.slow)

    def _screen_classes(self) -> list[str]:
        return ["filled"] if self._state.present else []


def header_button(
    label: str, icon: str, help_: str, action: Callable[[], Any], phone: Mapping[str, Any] | None = None
) -> Any:
    """A button of the header; ``phone`` is its style on a phone, which has no room for all of it."""
    button = pmui.Button(
        label=label,
        icon=icon,
        size="small",
        color="light",
        variant="outlined",
        margin=(0, 4),
        description=help_,
        sx={"color": "white", **({PHONE: phone} if phone else {})},
    )
    button.on_click(lambda _: action())
    return button


def first_colour(state: AppState) -> str:
    """The style by which a dark page is dark from its first byte on."""
    if state.follows_device:
        return f"@media (prefers-color-scheme: dark) {{ {_DARK} }}"
    return _DARK if state.dark else ""

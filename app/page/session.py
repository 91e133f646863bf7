"""The base of a session's pages: its loop's life, messages, the transport's buttons and the frame around it all."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from functools import partial, wraps
from typing import Any

import panel as pn
import panel_material_ui as pmui
import param
from bokeh.document import Document
from bokeh.models import Div
from panel.io.state import set_curdoc

from sgmcmc_lab.app.lesson.catalogue import Catalogue
from sgmcmc_lab.app.lesson.course import (
    lesson_apart,
    lesson_of,
    outlines,
    outlines_apart,
    own_lessons_apart,
    read_apart,
)
from sgmcmc_lab.app.live.runner import Runner
from sgmcmc_lab.app.page.access import Access
from sgmcmc_lab.app.page.connection import Connection
from sgmcmc_lab.app.page.export import ExportMenu
from sgmcmc_lab.app.page.frame import ICON, Frame, header_button
from sgmcmc_lab.app.page.labels import with_labels
from sgmcmc_lab.app.page.lesson_panel import LessonPanel
from sgmcmc_lab.app.page.notice import Notice
from sgmcmc_lab.app.page.notifications import Notifications, in_short
from sgmcmc_lab.app.page.parts import keep
from sgmcmc_lab.app.page.pointer_events import PointerEvents
from sgmcmc_lab.app.page.present import Presenter
from sgmcmc_lab.app.page.room_panel import RoomPanel
from sgmcmc_lab.app.page.step_bar import WAYS
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.app.views.base import CLICK
from sgmcmc_lab.lessons import Lesson, LessonError

log = logging.getLogger("sgmcmc-lab")

# Panel's Column has a scroll button that would take a cell of the grid.
GRID = """
:host { display: grid !important; max-height: none !important; grid-template-columns: repeat(auto-fit, minmax(min(100%, 340px), 1fr)); gap: 8px; width: calc(100% - 8px); }
.scroll-button { display: none; }
"""
_READOUT = """
:host { flex: 1 1 140px !important; width: auto !important; max-width: 320px; display: flex; align-items: center;
  font-size: 13px; line-height: 17px; font-variant-numeric: tabular-nums; }
@media (max-width: 599px) { :host { flex: 1 1 100% !important; max-width: none; height: 19px !important; white-space: nowrap; overflow: hidden; } }
"""
"""It has the height of two lines, so that nothing moves where it needs both; on a phone it is a line of its own."""
_DOUBTS = ":host { font-size: 13px; line-height: 17px; } .bk-clearfix { display: block !important; }"
"""Without a sentence it has no height: a phone has room for a picture and a control."""
LATER_SECONDS = 0.08
"""After a change, formulas and the link wait so long for its first frame."""
NOT_RUN = "This link cannot be run as written. Nothing moves until you press Play, and the address stays until you change a setting."
UNMADE = "A part of this page could not be made; the server's log says why. Reload the page to try again."
FEW = 3
"""So many views or fewer stand in two columns in presenter mode; more in three, where there is room for them."""
FADE = 40
"""Pixels over which a line that is wider than a phone fades at its right end."""
ROW = {"align_items": "center", "gap": "2px", "sizing_mode": "stretch_width", "margin": (0, 4)}
"""How a line of the transport is laid out."""


def after_load(show: Callable[..., None]) -> Callable[..., None]:
    """A method of a session that changes models of its page, for the loop, which begins before the page is drawn."""

    @wraps(show)
    def shown(session: "Session", *args: Any) -> None:
        session.when_drawn(partial(show, session, *args))

    return shown


class Session:
    """One browser session: its live loop begins with the page and ends with it."""

    runner: Runner
    state: AppState
    controls: Any
    export: ExportMenu
    """The header's menu of files."""
    frame: Frame
    page: Any
    notifications: Notifications
    refusal: Any
    """The box that says what the link asked for and is not shown."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self._drawn = False
        self._at_load: list[Callable[[], None]] = []
        """Changes of models that wait until the browser has drawn the page."""
        self._play: Any = None
        """The button that plays and pauses, where the page has one."""
        self._document: Document = pn.state.curdoc
        self._still = False
        self._errands: set[asyncio.Task[None]] = set()
        self._waiting: list[Callable[[], None]] = []
        self._messages: list[str] = []
        """The faults of the link."""
        self._written_at: Any = None
        """The lesson and the step that the address was last written for."""
        self.status = Notice(severity="info")
        self._formulas: list[Any] = []
        self.cards = pn.Column(stylesheets=[GRID], sizing_mode="stretch_width", margin=(0, 4))
        self.doubts = Div(text="", margin=(0, 12), stylesheets=[_DOUBTS], sizing_mode="stretch_width")
        self.readout = Div(text="starting", width=140, height=34, stylesheets=[_READOUT])

    def query(self) -> str:
        """The query of the link that opened the page."""
        return (pn.state.location.search or "") if pn.state.location else ""

    def link(self) -> str:
        """The query of a link to what is on the page now."""
        raise NotImplementedError

    def write_link(self) -> None:
        """Put the whole state into the page's address. A step of a lesson is an entry of its own in the browser's
        history, so that Back goes to the step before.
        """
        if not self.runner.announced:
            return
        self.refusal.visible = False
        position = self.state.position
        at = (position.lesson, position.number)
        self.do_later(self.runner.bus.send_address(self.link(), self._written_at not in (None, at)))
        self._written_at = at

    def running(self) -> tuple[Any, list[Any]]:
        """The running experiment, and the runs on which its claims are checked."""
        raise NotImplementedError

    def say_refused(self) -> Any:
        """The requests of the link that are not shown."""
        sentences = with_labels(in_short(self.state.refused), self.state.experiment).split("\n")
        self.refusal = Notice("\n".join([NOT_RUN, *sentences]) if self.state.refused else "", severity="warning")
        return self.refusal

    def add_lessons(self, controls: Any) -> None:
        """Make the lesson's panel, the list of lessons and presenter mode; ``controls`` are a lesson's step's."""
        state = self.state
        self.lesson_controls = controls
        self.catalogue = Catalogue(self.go_to, lambda: self.state.teacher)
        self.lesson = LessonPanel(
            state,
            None if "controls" in state.hidden else controls,
            self.go,
            self.go_to,
            self._following,
            self.list_lessons,
            self.do_later,
        )
        self.presenter = Presenter(
            {
                "next": self.lesson.next,
                "back": self.lesson.back,
                "play": self.play_or_pause,
                "reset": state.reset,
                "controls": self._toggle_controls,
                "picture": self._take_picture,
                "leave": lambda: setattr(state, "present", False),
                **{way: partial(self.play_step, way) for way in WAYS},
            },
            on_screen=state.present,
            lesson=state.position.lesson is not None,
            dark=state.dark,
            slow=bool(state.slow),
        )
        self.runner.checks = lambda: self.lesson.texts(*self.running())
        self.room = RoomPanel(
            state, self.lesson, self.notifications.notify, self.notifications.warn, self.do_later, self.write_link
        )

    def go(self, lesson: Lesson, number: int) -> None:
        """Open a step of a lesson."""
        state = self.state
        # The controls are drawn again when the place and the experiment have both changed.
        with pn.io.hold(), param.parameterized.batch_call_watchers(state.position):
            state.position.open(lesson, number)
            state.follow(lesson.steps[number - 1])
            state.playing &= not self._still

    def go_to(self, key: str) -> None:
        """Open the first step of a lesson when it has been read; meanwhile the loop is for the others."""
        self.do_later(self._go_to(key))

    async def _go_to(self, key: str) -> None:
        await lesson_apart(key)
        try:
            lesson = lesson_of(key)
        except LessonError as error:
            self.notifications.notify("error", str(error))
            return
        if lesson is not None:
            self.go(lesson, 1)

    def _following(self) -> str | None:
        """The key of the lesson after this one."""
        keys = list(outlines())
        here = self.state.position.lesson
        index = keys.index(here.key) + 1 if here is not None and here.key in keys else len(keys)
        return keys[index] if index < len(keys) else None

    def play_or_pause(self) -> None:
        """Play or pause; not before a lesson's question is answered. Where every lane has stopped, start again."""
        if self.question_first():
            return
        if self.runner.ended:
            self.state.reset()
            self.state.playing = True
        else:
            self.state.playing = not self.state.playing

    def play_step(self, way: str) -> None:
        """A part or a step forwards or back; not before a lesson's question is answered."""
        if self.state.slow and not self.question_first():
            self.runner.play_step(way)

    def question_first(self) -> bool:
        """Whether a question waits for its answer; says so, and shows it."""
        if self.state.position.waiting:
            self.notifications.notify("info", "First answer the lesson's question, or skip it.")
            self.lesson.show_question()
        return bool(self.state.position.waiting)

    def _toggle_controls(self) -> None:
        self.frame.toggle_sidebar()

    def _take_picture(self) -> None:
        self.do_later(self.export.picture())

    def do_later(self, work: Coroutine[Any, Any, None]) -> None:
        """Let the loop do it."""
        task = asyncio.get_running_loop().create_task(work)
        # The loop itself keeps no task alive.
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)

    def frame_of(self, main: list[Any], below: list[Any], header: list[Any], columns: Sequence[Any]) -> Any:
        """The page: the views with what is above them, what is below them, the buttons of its header, and the columns
        among ``main`` that are put on it in parts.
        """
        state = self.state
        if "lessons" not in state.hidden:
            header = [header_button("Lessons", "school", "Lessons: a course, step by step", self.list_lessons), *header]
        if "share" not in state.hidden:
            header = [
                *header,
                header_button(
                    "Share",
                    "qr_code_2",
                    "Share: this experiment for others in the room, with a code to scan",
                    self.room.share.open,
                    phone=ICON,
                ),
            ]
        if "present" not in state.hidden:
            header = [
                *header,
                header_button(
                    "Present",
                    "slideshow",
                    "Present: full screen, large type, keys",
                    lambda: setattr(state, "present", True),
                    phone={"display": "none"},
                ),
            ]
        self.pointer = PointerEvents(state, lambda: self.runner.views, self.question_first, self.notifications.notify)
        self.frame = Frame(
            state,
            main=main,
            below=below,
            lesson=self.lesson.panel,
            room=self.room.panel,
            controls=self.controls.panel,
            columns=[*columns, self.lesson_controls.panel, self.controls.panel],
            overlays=[
                self.catalogue.panel,
                self.room.share.panel,
                self.lesson.progress,
                self.presenter,
                self.export.camera,
                self.pointer.component,
                Connection(),
                Access(),
            ],
            header=header,
        )
        state.position.param.watch(lambda *_: self._fit_lesson(), ["lesson", "number", "answer", "free", "everything"])
        state.param.watch(lambda *_: self._fit_presenter(), ["present", "dark", "slow"])
        # At once: what the change itself makes wrong is said after it.
        state.param.watch(lambda *_: self.notifications.clear_errors(), ["experiment", "resets"])
        keep(self.frame.parts, lambda: self.status.say(UNMADE))
        return self.frame.page

    def fit_screen(self, width: int, still: bool) -> None:
        """On a phone the sidebar lies over the views; it starts closed there. Less motion: the page starts paused."""
        self._still = still
        if still and self.state.playing:
            self.state.playing = False
            self.notifications.notify("info", "Paused, for this device asks for less motion. Press Play to start.")
        self.frame.fit_width(width)
        # The address keeps the link's text until the person changes something.
        if not self.state.refused:
            self.write_link()

    def prefer_dark(self, dark: bool) -> None:
        """Follow the device's preference for dark colours, unless the link or the person has chosen."""
        self.frame.prefer_dark(dark)

    def _fit_lesson(self) -> None:
        self.frame.fit_lesson()
        self.presenter.lesson = self.state.position.lesson is not None
        self.later(self.write_link)
        self.later(self.room.changed, 0.0)

    def _fit_presenter(self) -> None:
        state = self.state
        self.presenter.param.update(on_screen=state.present, dark=state.dark, slow=bool(state.slow))
        self.frame.fit_presenter()

    def list_lessons(self) -> None:
        """Show the list of lessons, and what is wrong with their files as they are read."""
        self.do_later(self._list_lessons())

    async def _list_lessons(self) -> None:
        await outlines_apart()
        self.catalogue.open()
        await own_lessons_apart()
        self.catalogue.update()
        await read_apart()
        self.catalogue.update()

    def begin_with_the_page(self) -> None:
        """Let the loop begin with the page, and end with it."""
        self._document.add_next_tick_callback(self._start)
        pn.state.onload(self._loaded)
        pn.state.on_session_destroyed(lambda _: self.stop())

    def stop(self) -> None:
        """End the loop, and give back the memory."""
        if self._task is not None:
            self._task.cancel()
        self.room.end()

    @after_load
    def show_divergence(self, index: int, message: str) -> None:
        """Say why a lane stopped."""
        for controls in (self.controls, self.lesson_controls):
            controls.show_error(index, message)
        self.notifications.notify("error", message)
        self._show_play()

    @after_load
    def clear_divergence(self, index: int | None = None) -> None:
        """One goes on, or all start again; their cards say nothing more."""
        self.notifications.clear_errors()
        for controls in (self.controls, self.lesson_controls):
            controls.clear_errors(index)
        self._show_play()

    @after_load
    def show_status(self, what: str) -> None:
        """Say what is going on before anything moves; an empty text says nothing."""
        self.status.say(what)

    def when_drawn(self, work: Callable[[], None]) -> None:
        """Change models of the page: at once, or, while the browser loads it, when it has drawn it.

        Panel drops changes that are made meanwhile, and a change of a model that was in a dropped one ends the page.
        """
        if self._task is None or self._drawn:
            work()
        else:
            self._at_load.append(work)

    async def _loaded(self) -> None:
        self._drawn = True
        for work in self._at_load:
            work()
        self._at_load.clear()
        self.notifications.warn([message for message in self._messages if message not in self.state.refused])
        self.runner.page_loaded()

    async def _start(self) -> None:
        # The loop's messages go to this page: a task takes its context from where it is made.
        with set_curdoc(self._document):
            self._task = asyncio.get_running_loop().create_task(self.runner.run())
        self._task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and task.exception() is not None:
            log.error("The live loop ended", exc_info=task.exception())
            self.show_status("The live loop met an error and stopped; reload the page to go on.")

    def later(self, work: Callable[[], None], seconds: float = LATER_SECONDS) -> None:
        """Do what the browser may wait for after the frame that shows a change; asked for several times, do it once."""
        if self._task is None:
            work()
        elif work not in self._waiting:
            self._waiting.append(work)
            asyncio.get_running_loop().call_later(seconds, self._catch_up, work)

    def _catch_up(self, work: Callable[[], None]) -> None:
        self._waiting.remove(work)
        if self._task is not None and not self._task.done():
            with set_curdoc(self._document):
                self.when_drawn(work)

    def look(self, views: Sequence[Any]) -> dict[str, Any]:
        """The cards of the views, of which the first is larger; the classes of their grid, and its colours."""
        cards: list[Any] = []
        for i, view in enumerate(views):
            # Beside a lesson's text there is room for two large ones.
            few = len(views) <= 2 and self.state.position.restricted
            # Below a workbench one that is twice as high would not be seen whole.
            first = i == 0 and len(views) > 2 and not any(one.tall for one in views) and not self.state.has_workbench
            wide = view.tall or few or first
            # One that is tall wherever it stands is beside the others, not below them.
            row = "1 / span 2" if view.tall and sum(one.tall for one in views) == 1 else "span 2"
            below = sum(one.height for one in getattr(view.figure, "children", []) if isinstance(one, Div))
            click = f"; {view.click}" if CLICK in view.gestures and self.state.shows("start") else ""
            cards.append(
                {
                    "key": f"{view.key} {view.scene.target.key}",
                    "title": view.title,
                    "hint": f"{view.hint}{click}",
                    "help": view.help,
                    "classes": [*["wide"] * wide, *["tall"] * view.tall, *["leading"] * (i == 0)],
                    "style": f"--lines: {len(view.scene.lanes)}; --below: {below}px; --row: {row}",
                }
            )
        classes = [*["few"] * (len(views) <= FEW), *["large"] * self.state.present]
        colours = self.state.colours
        return {"cards": cards, "classes": classes, "colours": {"surface": colours.surface, "text": colours.text}}

    def show_former(self, former: bool) -> None:
        """Grey the figures until those of another experiment take their place."""
        self.do_later(self.runner.bus.send_former(former))

    def show_cards(self, cards: list[Any]) -> None:
        """Put cards of formulas on the page."""
        self._formulas = cards
        self.put(self.cards, cards, lambda: self._formulas is cards)

    def put(self, place: Any, parts: list[Any], wanted: Callable[[], bool] = lambda: True) -> None:
        """Put parts into a column while they are wanted, one after the other: other pages have a frame in between."""
        if self._task is None:
            place.objects = parts
        else:
            self.do_later(self._put_each(place, parts, wanted))

    async def _put_each(self, place: Any, parts: list[Any], wanted: Callable[[], bool]) -> None:
        with set_curdoc(self._document):
            for number in range(len(parts)):
                if not wanted():
                    return
                place[number : number + 1] = parts[number : number + 1]
                await asyncio.sleep(0)
            if len(place) > len(parts):
                place[:] = parts

    def follow_visibility(self, widgets: dict[str, Any]) -> None:
        """Show widgets of the transport where neither the link nor a lesson leaves them out, by the words for them."""

        def fit(*_: Any) -> None:
            for name, made in widgets.items():
                made.visible = self.state.shows(name)

        self.state.position.param.watch(fit, ["lesson", "number", "free", "everything"])
        fit()

    def _show_play(self) -> None:
        """The main button says what a press does: it plays where nothing moves."""
        if self._play is None:
            return
        moves = self.state.playing and not self.runner.ended
        self._play.param.update(label="Pause" if moves else "Play", icon="pause" if moves else "play_arrow")

    def _transport_buttons(self, state: AppState) -> list[Any]:
        """Play or pause, Step, Reset and New seed."""
        play = self._play = pmui.Button(color="primary", variant="contained", size="small", width=96, margin=(2, 4))
        self._show_play()
        play.on_click(lambda _: self.play_or_pause())
        state.param.watch(lambda _: self._show_play(), "playing")

        def button(name: str, icon: str, help_: str, action: Any) -> Any:
            made = pmui.Button(
                label=name, icon=icon, variant="outlined", size="small", margin=(2, 2), description=help_
            )
            made.on_click(action)
            return made

        def one_step(_: Any) -> None:
            if not self.question_first():
                state.playing = False
                if state.slow:
                    self.runner.play_step("step")
                else:
                    self.runner.step()

        step, reset, seed = (
            button(
                "Step",
                "skip_next",
                "Step: one step of every chain, then a pause. To see it in its parts, drag the speed to its slow end.",
                one_step,
            ),
            button(
                "Reset",
                "replay",
                "Reset: start again with the same seed, and so the same draws.",
                lambda _: state.reset(),
            ),
            button(
                "New seed",
                "casino",
                "New seed: start again with the next seed, and so other draws.",
                lambda _: state.set_seed(state.seed % (2**32 - 1) + 1),
            ),
        )
        self.follow_visibility({"seed": seed})
        named = {"play": play, "step": step, "reset": reset, "new_seed": seed}
        return [made for name, made in named.items() if name not in state.hidden]


def view_chooser(**options: Any) -> pmui.CheckButtonGroup:
    """The buttons that put views on the page and take them off."""
    return pmui.CheckButtonGroup(
        **options, size="small", margin=(2, 4), color="primary", sizing_mode="stretch_width",
        sx={
            "& .MuiToggleButton-root": {"width": "auto", "flex": "0 0 auto", "textTransform": "none", "whiteSpace": "nowrap", "py": "3px", "px": "6px", "fontSize": "13px", "letterSpacing": 0},
            # One line, which fades where it goes on: a wheel or a finger moves it, and the Tab key.
            "flexWrap": "nowrap", "overflowX": "auto", "scrollbarWidth": "thin",
            "maskImage": f"linear-gradient(to right, black calc(100% - {FADE}px), transparent)", "pr": f"{FADE}px",
        },
    )  # fmt: skip

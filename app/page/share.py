"""Share: a code to scan and a short address of what is on the page, for the network that this computer is in."""

from collections.abc import Callable, Coroutine
from html import escape
from typing import Any

import panel as pn
import panel_material_ui as pmui
from tornado.process import task_id

from sgmcmc_lab.app import link
from sgmcmc_lab.app.live.page_lock import on_page
from sgmcmc_lab.app.page.notice import Notice
from sgmcmc_lab.app.room.network import address_of, addresses, hosts, qr_svg
from sgmcmc_lab.app.room.rooms import carefully, rooms
from sgmcmc_lab.app.room.store import REDIS, Redis, store
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.samplers.parameters import SpecError

OWN_NAMES = ("localhost", "127.0.0.1", "[::1]", "::1", "")
MOST = 20
"""Short links that one page makes."""
_LOOK = """
.share { display: flex; flex-wrap: wrap; gap: 16px 28px; align-items: center; justify-content: center; }
.code { flex: 0 0 auto; width: min(56vh, 74vw); line-height: 0; } .code svg { width: 100%; height: auto; border-radius: 6px; }
.where { flex: 1 1 260px; min-width: 0; }
.address { font: 600 clamp(18px, 2.5vw, 38px)/1.3 Roboto, sans-serif; overflow-wrap: anywhere; margin: 0 0 12px; }
p { margin: 0 0 8px; font-size: 16px; }
"""
_SIGNS = {"& .MuiIconButton-root": {"color": "inherit"}}
"""Material has them dark on a dark dialog."""


class ShareDialog:
    """A dialog that is made when it is first asked for."""

    def __init__(
        self,
        state: AppState,
        is_maker: Callable[[], bool],
        open_room: Callable[[], Coroutine[Any, Any, str]],
        notify: Callable[[str, str], None],
        do_later: Callable[[Coroutine[Any, Any, None]], None],
    ):
        self.state, self._is_maker, self._make_room = state, is_maker, open_room
        self._notify, self._do_later = notify, do_later
        self._document = pn.state.curdoc
        self.panel = pn.Column(margin=0, width=0, height=0, sizing_mode="fixed")
        where = pn.state.location
        # As the request had it, which the guard has checked: a browser cannot set these.
        self._scheme = (where.protocol or "http:") if where else "http:"
        self._name = (where.hostname or "") if where else ""
        self._port = (where.port or "") if where else ""
        self._path = (where.pathname or "").rstrip("/").rpartition("/")[0] if where else ""
        self._codes: dict[str, str] = {}
        self._dialog: Any = None

    def open(self) -> None:
        """Show the address of what is on the page now."""
        self._do_later(carefully(self._open(), self._warn))

    def _warn(self, sentence: str) -> None:
        self._notify("warning", sentence)

    async def _open(self, code: str = "") -> None:
        hosts = self.hosts()
        code = code or (self.state.room if self._is_maker() else await self._code() if hosts else "")
        urls = [f"{self._scheme}//{host}{self._path}/s/{code}" for host in hosts]
        on_page(self._document, lambda: self._show(urls))

    async def _code(self) -> str:
        shown = link.to_share(self.state)
        if shown not in self._codes:
            if len(self._codes) == MOST:
                raise SpecError("share", MOST + 1, f"allowed are {MOST} short links of one page; reload it")
            self._codes[shown] = await rooms().share(shown, address_of(self._document))
        return self._codes[shown]

    def hosts(self) -> list[str]:
        """By what other computers may open this page; none where the server answers to this computer alone."""
        port = f":{self._port}" if self._port else ""
        if self._name not in OWN_NAMES:
            return [f"{self._name}{port}"]
        return hosts(port)

    def _show(self, urls: list[str]) -> None:
        alone = task_id() is not None and not isinstance(store(), Redis)
        if not urls:
            parts = [self._unreachable()]
        elif alone:
            parts = [
                Notice(
                    f"This server has several processes, which share no rooms. Start it with {REDIS}=redis://localhost, the address of a Redis server.",
                    severity="warning",
                )
            ]
        else:
            parts = [_code(urls, self._is_maker()), *self._ways()]
        if self._dialog is None:
            self._dialog = pmui.Dialog(
                *parts,
                title="Share",
                title_variant="h5",
                show_close_button=True,
                close_on_click=True,
                open=True,
                width_option="lg",
                sizing_mode="stretch_width",
                sx=_SIGNS,
            )
            self.panel.objects = [self._dialog]
        else:
            self._dialog.param.update(objects=parts, open=True)

    def _unreachable(self) -> Any:
        found = addresses(patience=0)
        if not found:
            return Notice("This computer is in no network, so no other can open the page.", severity="warning")
        return Notice(
            "Other computers cannot open this page yet: the server answers to this computer alone. End it, and start it with: sgmcmc-lab --class\n"
            f"Or with: panel serve app --allow-websocket-origin {found[0]}:{self._port or 80}",
            severity="warning",
        )

    def _ways(self) -> list[Any]:
        if self._is_maker():
            return []
        opener = pmui.Button(
            label="Open a room",
            icon="groups",
            size="small",
            variant="contained",
            margin=(4, 8),
            description="Open a room: its pages follow this one, answer questions and race.",
        )

        def open_room(_: Any) -> None:
            self._do_later(carefully(self._open_room(), self._warn))

        opener.on_click(open_room)
        text = pn.pane.HTML(
            "Others follow this page, answer the questions of lessons, and race.",
            margin=(10, 8),
            styles={"font-size": "15px"},
        )
        return [pn.FlexBox(opener, text, align_items="center", margin=0)]

    async def _open_room(self) -> None:
        if code := await self._make_room():
            await self._open(code)


def _code(urls: list[str], of_room: bool) -> Any:
    """The code of the first address, and all of them as text."""
    leads = "into your room, whose pages follow this one" if of_room else "to what this page shows"
    first, *others = urls
    short = first.removeprefix("http://")
    more = f"<p>or {' or '.join(escape(one.removeprefix('http://')) for one in others)}</p>" if others else ""
    return pn.pane.HTML(
        f"<div class='share'><div class='code' role='img' aria-label='QR code of {escape(short)}'>{qr_svg(first)}</div>"
        f"<div class='where'><p class='address'>{escape(short)}</p>{more}<p>Scan the code or type the address, in the same network. It leads {leads}, and expires after a day.</p></div></div>",
        sizing_mode="stretch_width",
        margin=(0, 10),
        stylesheets=[_LOOK],
    )

"""Files of the person's own: how they come to the server, and the menus of their format."""

from collections.abc import Callable, Mapping
from html import escape
from typing import Any
from weakref import WeakSet

import panel as pn
import panel_material_ui as pmui

from sgmcmc_lab.app.state.upload import Kind, Upload
from sgmcmc_lab.samplers.file_format import CHOICES, Choice
from sgmcmc_lab.samplers.parameters import visible

MAX_BYTES = 30_000_000
"""The largest size of all files of one upload together."""
BROWSERS_BYTES = 30 << 20
"""The browser looks first and sends nothing of what is larger. It counts 2²⁰ bytes as an MB, and so says 30 MB, too."""
CHUNK_BYTES = 1_000_000
"""A file is sent in messages of this size: far below the server's limit, and frames come in between."""
MOST_OF_ADDRESS = 300_000_000
"""The bytes of files that all pages of an address hold: ten of the largest uploads, or 1,500 of 200 kB."""
MAX_FILES = 2000
MAX_NAME = 255
"""Characters: no file system has longer names."""
MAX_CHUNKS = MAX_FILES + MAX_BYTES // CHUNK_BYTES
"""Each file ends with a chunk that is not full."""


class Files(dict[str, bytes]):
    """The files of an upload by their names, with the size that counts until nobody has them any more."""

    def __init__(self, address: str):
        super().__init__()
        self.size = Size(address)


class Size:
    """How much of one upload the server holds, and for whom."""

    all: "WeakSet[Size]" = WeakSet()

    def __init__(self, address: str):
        self.address, self.bytes = address, 0

    def add(self, n: int) -> bool:
        """Count so many bytes more; False where the pages of the address would hold too many."""
        if sum(one.bytes for one in self.all if one.address == self.address) + n > MOST_OF_ADDRESS:
            return False
        self.all.add(self)
        self.bytes += n
        return True


class FileBox(pmui.FileInput):
    """The button that files are dropped on. It hands them on, and keeps nothing."""

    def __init__(
        self,
        kind: Kind,
        take: Callable[[Mapping[str, bytes]], None],
        refuse: Callable[[str], None],
        address: str = "",
    ):
        """``address`` is whose page it is on."""
        # The browser leaves out files of another kind without a word; so it is not asked to look.
        # The label stays: whether a file was good is not yet known when it has been sent.
        super().__init__(
            label=kind.label,
            uploaded_label=kind.label,
            multiple=kind.several,
            max_file_size=BROWSERS_BYTES,
            chunk_size=CHUNK_BYTES,
            variant="outlined",
            size="small",
            sizing_mode="stretch_width",
            margin=(6, 10),
            description=f"{kind.label}. {kind.help}",
        )
        self._take, self._refuse, self._address = take, refuse, address
        self._parts: dict[str, tuple[Any, list[bytes]]]
        """The number of chunks of each file, and the chunks received so far."""
        self._begin()

    def _begin(self) -> None:
        self._received = self._chunks = 0
        self._parts, self._files, self._full = {}, Files(self._address), False

    def _handle_msg(self, msg: Any) -> None:
        status = msg.get("status") if isinstance(msg, Mapping) else None
        if status == "error":
            self._begin()
            self._refuse(f"The file was not sent: {str(msg.get('error'))[:200]}.")
        elif status == "upload_event":
            self._take_chunk(msg)
        elif status == "finished":
            self._take_files()
            self._send_msg({"status": "finished"})

    def _take_chunk(self, msg: Any) -> None:
        # The browser's own check is a courtesy: this is the one that holds. The parent would put a file together
        # chunk by chunk, which costs the square of their number.
        name, number, total, data = (msg.get(key) for key in ("name", "chunk", "total_chunks", "data"))
        if not isinstance(name, str) or len(name) > MAX_NAME or not isinstance(data, bytes):
            return
        self._received += len(data)
        self._chunks += 1
        self._full = self._full or not self._files.size.add(len(data))
        if self._full or self._received > MAX_BYTES or self._chunks > MAX_CHUNKS:
            self._parts.clear()
            self._files.size.bytes = 0
            return
        if number == 1:
            self._parts[name] = (total, [])
        of, chunks = self._parts.get(name, (None, []))
        if of == total and number == len(chunks) + 1:
            chunks.append(data)

    def _take_files(self) -> None:
        received, chunks, files, full = self._received, self._chunks, self._files, self._full
        # A file that did not arrive whole is left out.
        whole = {name: some for name, (total, some) in self._parts.items() if len(some) == total}
        files.update({visible(name): b"".join(some) for name, some in whole.items()})
        self._begin()
        if received > MAX_BYTES:
            self._refuse(f"The upload has {received / 1e6:.2f} MB: allowed are at most {MAX_BYTES / 1e6:g} MB in all.")
        elif chunks > MAX_CHUNKS or len(files) > MAX_FILES:
            self._refuse(f"The upload has too many files: allowed are at most {MAX_FILES:,}.")
        elif full:
            self._refuse(
                f"The pages of your network hold as many files as they may, {MOST_OF_ADDRESS / 1e6:g} MB. Close one of "
                "these pages, and send the file again a minute later."
            )
        elif files:
            self._take(files)
        else:
            # The browser sends no chunk of an empty file.
            self._refuse("No data arrived: the file is empty, or was not sent completely.")


class FormatBox(pn.Column):
    """The format read from a person's file, with a menu for each choice that was guessed."""

    def __init__(self, change: Callable[[str, str], None]):
        """``change`` is called with a field of the format and its new value; an empty one is guessed again."""
        super().__init__(visible=False, sizing_mode="stretch_width", margin=0)
        self._change = change
        self._shown: Any = None

    def put(self, upload: Upload | None, brought: Upload | None) -> None:
        """``upload`` is the file that was read, ``brought`` the last one, which may be wrong."""
        shown = (upload, brought, brought is not None and brought.failed, upload is not None and upload.read)
        if shown == self._shown:
            return
        self._shown = shown
        parts: list[Any] = []
        if upload is not None:
            taken = "" if upload.taken is None else f"<br>{escape(upload.taken.sentence)}"
            parts.append(f"Your own: <b>{escape(upload.name)}</b>{taken}")
        choices: tuple[Choice, ...] = ()
        if brought is not None and brought.failed:
            parts.append(f"To read <b>{escape(brought.name)}</b> in another way, change a choice:")
            choices = CHOICES
        elif brought is not None and brought.taken is not None:
            choices = brought.taken.choices
        texts = [pn.pane.HTML(text, sizing_mode="stretch_width", margin=(0, 12, 6, 12)) for text in parts]
        menus = [self._menu(brought, choice) for choice in choices if brought is not None]
        self.objects = [*texts, pn.FlexBox(*menus, sizing_mode="stretch_width", margin=(0, 6))]
        self.visible = bool(texts)

    def _menu(self, brought: Upload, choice: Choice) -> Any:
        form = brought.form if brought.taken is None else brought.taken.format
        made = pmui.Select(
            label=choice.label,
            options={"guessed": "", **choice.options},
            value=getattr(form, choice.field),
            size="small",
            width=126,
            margin=(4, 4),
        )
        made.param.watch(lambda event: self._change(choice.field, event.new), "value")
        return made

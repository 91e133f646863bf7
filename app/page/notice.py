"""A sentence on the page, in a box of its own."""

import re
from typing import Any

import panel_material_ui as pmui

from sgmcmc_lab.samplers.parameters import visible


class Notice(pmui.Alert):
    """Its text is text. The library's alert is Markdown with HTML in it; a sentence may repeat what somebody typed."""

    def __init__(self, text: str = "", severity: str = "error", **params: Any):
        super().__init__(
            object=_as_markdown(text),
            severity=severity,
            visible=bool(text),
            sizing_mode="stretch_width",
            **{"margin": 6, **params},
        )

    def say(self, text: str) -> None:
        """Another sentence; an empty one is no box."""
        self.param.update(object=_as_markdown(text), visible=bool(text))


_MARKUP = re.compile(r"""[\\`*_{}\[\]()<>#+!|~&"'$=:@/^-]|^\s+|(?<=^\d)[.)]|(?<=\d)[.)](?= )""")
"""Characters that Markdown or HTML may take for markup; an address is not to become a link."""


def _as_markdown(text: str) -> str:
    """The text as Markdown that shows it as it is: a character reference is never markup (CommonMark 0.31, 2.5)."""
    lines = visible(text).split("\n")
    return "<br>".join(_MARKUP.sub(lambda found: "".join(f"&#{ord(c)};" for c in found[0]), line) for line in lines)

"""A sentence on the page, in a box of its own."""

from html import escape
from typing import Any

import panel_material_ui as pmui

from samplers.parameters import visible


class Notice(pmui.Alert):
    """Its text is text. The library's alert is Markdown with HTML in it; a sentence may repeat what somebody typed."""

    def __init__(self, text: str = "", severity: str = "error", **params: Any):
        super().__init__(
            object=text, severity=severity, visible=bool(text), sizing_mode="stretch_width", **{"margin": 6, **params}
        )

    def say(self, text: str) -> None:
        """Another sentence; an empty one is no box."""
        self.param.update(object=text, visible=bool(text))

    def _process_param_change(self, params: dict[str, Any]) -> dict[str, Any]:
        text = params.get("object")
        params = super()._process_param_change(params)
        if text is not None:
            # The page takes what it gets apart as HTML twice: entities first, then elements.
            params["object"] = escape("<br>".join(map(escape, visible(text).split("\n"))))
        return params

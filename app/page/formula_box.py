"""The box in which a formula is typed."""

from collections.abc import Mapping
from typing import Any

import panel_material_ui as pmui


def formula_box(value: str, room: int, sx: Mapping[str, Any] | None = None, **options: Any) -> Any:
    """A box for a formula, which stands below it, too, where it has more letters than there is ``room`` for."""
    below = {"overflowWrap": "anywhere", "fontFamily": "monospace", "mx": 0}
    looks = {"& input": {"fontFamily": "monospace"}, "& .MuiFormHelperText-root": below, **(sx or {})}
    made = pmui.TextInput(value=value, size="small", sx=looks, **options)

    def show(*_: Any) -> None:
        made.helper_text = made.value if len(made.value) > room else ""

    made.param.watch(show, "value")
    show()
    return made

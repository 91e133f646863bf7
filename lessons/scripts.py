"""The content security policy of a file, and the code of Bokeh's ``CustomJS`` models as functions in a script.

Bokeh compiles the code of a ``CustomJS`` from a string, which a policy forbids unless it has ``unsafe-eval``. In a file
all code is known beforehand: a script defines the functions, and Bokeh gets the one that it would compile.
"""

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Any

_SCRIPT = re.compile(r"<script[^>]*>(.*?)</script>", re.DOTALL)
_CONSTRUCT = """<script>
{
  const known = [FUNCTIONS]
  window.Function = new Proxy(Function, {construct(made, parts, self) {
    const text = `function (${parts.slice(0, -1).join(", ")}) {\\n${parts.at(-1)}\\n}`
    return known.find((one) => one.toString() === text) ?? Reflect.construct(made, parts, self)
  }})
}
</script>"""


_TEXTS: dict[str, dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "CustomJS": {"code": ((), ("cb_obj", "cb_data", "cb_context"))},
    "CustomJSTickFormatter": {"code": (("tick", "index", "ticks"), ())},
    "CustomJSTicker": {"major_code": (("cb_data",), ())},
    "CustomJSTransform": {"func": ((), ("x",)), "v_func": ((), ("xs",))},
}
"""The models with code; for each piece of code, Bokeh's arguments before and after its own."""

Text = tuple[str, str, Sequence[str], str]
"""A model's kind, a property that holds code, the names of the code's own arguments, and the code."""


def functions(texts: Iterable[Text]) -> str:
    """A script element with these functions, to precede Bokeh's; empty without any."""
    made = sorted({_function(*text) for text in texts})
    return _CONSTRUCT.replace("FUNCTIONS", ",\n".join(made)) if made else ""


def _function(kind: str, name: str, own: Sequence[str], code: str) -> str:
    before, after = _TEXTS[kind][name]
    arguments = ", ".join([*before, *own, *after])
    return f"function ({arguments}) {{\n'use strict';\n{code}\n}}"


def of_models(models: Iterable[Any]) -> Iterator[Text]:
    """The code of all models that these refer to."""
    for model in {one for root in models for one in root.references()}:
        kind = type(model).__name__
        for name in _TEXTS.get(kind, ()):
            yield kind, name, list(model.args), getattr(model, name)


def of_json(node: Any) -> Iterator[Text]:
    """The code of Bokeh's documents anywhere in this JSON."""
    if isinstance(node, dict):
        kind = node.get("name")
        if node.get("type") == "object" and kind in _TEXTS:
            held = node["attributes"]
            own = [name for name, _ in held.get("args", {}).get("entries", [])]
            yield from ((kind, name, own, held[name]) for name in _TEXTS[kind] if name in held)
        node = list(node.values())
    if isinstance(node, (list, tuple)):
        for part in node:
            yield from of_json(part)


def policy(scripts: str, more: str = "") -> str:
    """The content security policy of a file with these scripts: only they run, and nothing is loaded.

    ``more`` lists further sources of scripts. Inline styles are allowed, because scripts of figures write them.
    """
    # A browser normalises line ends before it hashes a script.
    found = [text.replace("\r\n", "\n").replace("\r", "\n") for text in _SCRIPT.findall(scripts)]
    sums = [f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in found]
    runs = " ".join([*sums, *more.split()]) or "'none'"
    return (
        f"default-src 'none'; script-src {runs}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; "
        "form-action 'none'"
    )

"""Figures as documents for BokehJS, in pages of the lab and in live pages."""

import functools
import json
from typing import Any

from bokeh.core.serialization import Serializer
from bokeh.document import Document
from bokeh.model import Model

_OWN = f"{__name__.partition('.')[0]}."
"""The qualified names of this project's models begin so."""


def standalone(figure: Model) -> dict[str, Any]:
    """A figure for ``Bokeh.embed.embed_item``, as `bokeh.embed.json_item` makes it, without the model definitions of
    all loaded libraries.
    """
    root = as_json(figure)
    text = json.dumps(root)
    document = _empty()
    own = [one for one in document["defs"] if one["name"].startswith(_OWN) and one["name"] in text]
    return {"target_id": None, "root_id": figure.id, "doc": {**document, "defs": own, "roots": [root]}}


def as_json(value: Any) -> Any:
    """A model or a property's value as BokehJS reads it."""
    return json.loads(json.dumps(Serializer(deferred=False).encode(value)))


@functools.cache
def _empty() -> dict[str, Any]:
    """A document without figures."""
    found: dict[str, Any] = json.loads(json.dumps(Document(title="").to_json(deferred=False)))
    return found

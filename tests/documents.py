"""A document as a browser gets it, without what differs from one page to the next."""

import json
import re

from bokeh.protocol import Protocol
from panel.models import ReactComponent


def told(document):
    """The document as a browser gets it, with numbers in place of what identifies a model, in the order of the text."""
    for model in document.models:
        if isinstance(model, ReactComponent):
            assert model.bundle or any(name.startswith("@mui") for name in model.importmap["imports"])
    return without_names(Protocol().create("PULL-DOC-REPLY", "id", document))


def without_names(message):
    """What a message tells of a document."""
    content = json.loads(message.content_json)["doc"]
    content["defs"].sort(key=lambda model: model["name"])
    text = re.sub(r"([A-Za-z]{2})\d{5}\b", r"\1", json.dumps(without_order(content)))
    numbers = {}
    return re.sub(r"\bp\d+\b", lambda found: f"p{numbers.setdefault(found[0], len(numbers))}", text)


def without_order(value):
    """Sets have none; and the addresses of modules, which are in the bundle, are not compared."""
    if isinstance(value, dict):
        if value.get("type") == "set":
            value = {**value, "entries": sorted(value["entries"], key=str)}
        return {key: without_order(item) for key, item in value.items() if key != "importmap"}
    return [without_order(item) for item in value] if isinstance(value, list) else value

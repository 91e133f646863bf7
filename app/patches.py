"""Every name of a library that the lab replaces, and every private one that it reads.

Each place has a digest of the source that it was written for, by version of the library. At the start every patch is
held against the installed source. Where a place differs or is gone, the patch is off: one line of the log names it, and
the page works without it, more slowly or with the fault that the patch mends. ``python -m app.patches`` prints the
places and digests of the installed versions.
"""

import hashlib
import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import version
from inspect import getattr_static
from types import FunctionType
from typing import Any

log = logging.getLogger("sgmcmc-lab")

KNOWN: dict[str, dict[str, str]] = {
    "bokeh.core.has_props:HasProps.__init__": {"bokeh 3.9.2": "8184f3bb9444", "bokeh 3.10.2": "8184f3bb9444"},
    "bokeh.core.has_props:HasProps._overridden_defaults": {
        "bokeh 3.9.2": "c3b1c82a295e",
        "bokeh 3.10.2": "ec9e67e28418",
    },
    "bokeh.core.has_props:HasProps.apply_theme": {"bokeh 3.9.2": "d2db20814767", "bokeh 3.10.2": "d2db20814767"},
    "bokeh.core.has_props:HasProps.query_properties_with_values": {
        "bokeh 3.9.2": "e864a09d3846",
        "bokeh 3.10.2": "e864a09d3846",
    },
    "bokeh.core.has_props:HasProps.themed_values": {"bokeh 3.9.2": "668c1fc00de3", "bokeh 3.10.2": "668c1fc00de3"},
    "bokeh.core.property.bases:Property.themed_default": {
        "bokeh 3.9.2": "6285cc20a790",
        "bokeh 3.10.2": "74741f874296",
    },
    "bokeh.core.property.descriptors:PropertyDescriptor._get": {
        "bokeh 3.9.2": "4a1853c83257",
        "bokeh 3.10.2": "4a1853c83257",
    },
    "bokeh.core.property.descriptors:PropertyDescriptor.has_unstable_default": {
        "bokeh 3.9.2": "5508a3739436",
        "bokeh 3.10.2": "2d569c98dc98",
    },
    "bokeh.core.property.wrappers:PropertyValueContainer.__init__": {
        "bokeh 3.9.2": "0acd223c3ab8",
        "bokeh 3.10.2": "32848d7fa076",
    },
    "bokeh.core.property.wrappers:PropertyValueContainer._register_owner": {
        "bokeh 3.9.2": "e99c2b6db159",
        "bokeh 3.10.2": "e99c2b6db159",
    },
    "bokeh.core.property.wrappers:PropertyValueContainer._unregister_owner": {
        "bokeh 3.9.2": "9cc35c9f7fa7",
        "bokeh 3.10.2": "9cc35c9f7fa7",
    },
    "bokeh.core.serialization:Serializer._encoders": {"bokeh 3.9.2": "dict", "bokeh 3.10.2": "dict"},
    "bokeh.document.callbacks:DocumentCallbackManager.hold": {
        "bokeh 3.9.2": "e684e5663293",
        "bokeh 3.10.2": "e684e5663293",
    },
    "bokeh.document.callbacks:DocumentCallbackManager.trigger_event": {
        "bokeh 3.9.2": "bd18fd38b05e",
        "bokeh 3.10.2": "bd18fd38b05e",
    },
    "bokeh.document.document:Deserializer": {"bokeh 3.9.2": "e9b3a287623d", "bokeh 3.10.2": "e9b3a287623d"},
    "bokeh.document.models:DocumentModelManager.synced_references": {
        "bokeh 3.9.2": "bb89fdd70092",
        "bokeh 3.10.2": "bb89fdd70092",
    },
    "bokeh.model.util:visit_immediate_value_references": {
        "bokeh 3.9.2": "94591d886aac",
        "bokeh 3.10.2": "94591d886aac",
    },
    "bokeh.protocol.messages.patch_doc:Serializer": {"bokeh 3.9.2": "3e2fa32d495d", "bokeh 3.10.2": "1501da46aa99"},
    "bokeh.server.contexts:ApplicationContext._create_session": {
        "bokeh 3.9.2": "absent",
        "bokeh 3.10.2": "8c12f8061a44",
    },
    "bokeh.server.session:ServerSession._run_in_executor": {"bokeh 3.9.2": "absent", "bokeh 3.10.2": "41b82f1c187e"},
    "bokeh.server.session:ServerSession.unsubscribe": {"bokeh 3.9.2": "cae3cc3621da", "bokeh 3.10.2": "2f291aff89c7"},
    "bokeh.server.session:_run_in_executor": {"bokeh 3.9.2": "absent", "bokeh 3.10.2": "7d143d445da9"},
    "bokeh.server.tornado:BokehTornado.__init__": {"bokeh 3.9.2": "a9e6e8c7b81d", "bokeh 3.10.2": "44a686624ff4"},
    "bokeh.server.views.ws:WSHandler._async_open": {"bokeh 3.9.2": "7ecf497ea1e8", "bokeh 3.10.2": "e8f33cc75201"},
    "bokeh.util.callback_manager:EventCallbackManager._trigger_event": {
        "bokeh 3.9.2": "08edc7ec5662",
        "bokeh 3.10.2": "08edc7ec5662",
    },
    "bokeh.util.callback_manager:_check_callback": {"bokeh 3.9.2": "12bb8615fe4b", "bokeh 3.10.2": "12bb8615fe4b"},
    "panel.custom:JSComponent._bundle_path": {"panel 1.9.4": "classproperty", "panel 1.10.0": "classproperty"},
    "panel.custom:JSComponent._render_esm": {"panel 1.9.4": "f58923251679", "panel 1.10.0": "f58923251679"},
    "panel.custom:ReactiveESM._component_resource_path": {
        "panel 1.9.4": "0326f519efd7",
        "panel 1.10.0": "0326f519efd7",
    },
    "panel.custom:ReactiveESM._patch_datamodel_ref": {"panel 1.9.4": "85aa275e1d39", "panel 1.10.0": "85aa275e1d39"},
    "panel.custom:ReactiveESMMetaclass.__init__": {"panel 1.9.4": "9c55acd97406", "panel 1.10.0": "9c55acd97406"},
    "panel.io.document:_dispatch_msgs": {"panel 1.9.4": "06084fe04469", "panel 1.10.0": "a8bfe013801b"},
    "panel.io.document:_drain_unconnected_events": {"panel 1.9.4": "3af857c238df", "panel 1.10.0": "3af857c238df"},
    "panel.io.document:_garbage_collect": {"panel 1.9.4": "9d00644da823", "panel 1.10.0": "9d00644da823"},
    "panel.io.resources:patch_model_css": {"panel 1.9.4": "d2cdf392b550", "panel 1.10.0": "d2cdf392b550"},
    "panel.io.server:DocHandler._generate_token_payload": {
        "panel 1.9.4": "8122e8b8c039",
        "panel 1.10.0": "f75d56c99111",
    },
    "panel.io.server:bundle_resources": {"panel 1.9.4": "423a861540d1", "panel 1.10.0": "aa284ba9f2cd"},
    "panel.io.server:patch_model_css": {"panel 1.9.4": "d2cdf392b550", "panel 1.10.0": "d2cdf392b550"},
    "panel.reactive:Syncable._debounce": {"panel 1.9.4": "int", "panel 1.10.0": "int"},
    "panel.reactive:Syncable._init_params": {"panel 1.9.4": "3c20aeeded14", "panel 1.10.0": "3c20aeeded14"},
    "panel.reactive:Syncable._link_props": {"panel 1.9.4": "b04cc42511ee", "panel 1.10.0": "b04cc42511ee"},
    "panel.reactive:Syncable._server_event": {"panel 1.9.4": "c9fc478dda3c", "panel 1.10.0": "c9fc478dda3c"},
    "panel.viewable:Viewable._preprocessing_hooks": {"panel 1.9.4": "list", "panel 1.10.0": "list"},
    "panel.viewable:Viewable._server_destroy": {"panel 1.9.4": "b6f4cb8b0817", "panel 1.10.0": "b6f4cb8b0817"},
    "panel.viewable:add_to_doc": {"panel 1.9.4": "07828d87e8a0", "panel 1.10.0": "07828d87e8a0"},
    "panel_material_ui.base:MaterialComponent._importmap": {"panel-material-ui 0.16.6": "dict"},
    "panel_material_ui.base:MaterialComponent._render_esm": {"panel-material-ui 0.16.6": "27b3c0dd8237"},
    "param.parameterized:Parameters._register_watcher": {"param 2.4.2": "e19074d6fccf"},
}


ABSENT, UNREADABLE = "absent", "unreadable"


@cache
def found(place: str) -> Any:
    """What stood at ``module:Class.name`` at first, unbound; ``ABSENT`` where nothing did."""
    module, _, path = place.partition(":")
    try:
        at: Any = import_module(module)
        for name in path.split("."):
            at = getattr_static(at, name)
    except (ImportError, AttributeError):
        return ABSENT
    return at


def digest(place: str) -> str:
    """A digest of the source of what stood there at first; of data the name of their type."""
    at = found(place)
    if at is ABSENT:
        return ABSENT
    at = getattr(at, "fget", None) or getattr(at, "__func__", None) or at
    at = inspect.unwrap(at) if callable(at) else at
    if not isinstance(at, FunctionType | type):
        return type(at).__name__
    try:
        return hashlib.sha256(inspect.getsource(at).encode()).hexdigest()[:12]
    except (OSError, TypeError):
        return UNREADABLE


def owner(place: str) -> tuple[Any, str]:
    """The module or class that holds what stands there, and its name in it."""
    module, _, path = place.partition(":")
    *owners, name = path.split(".")
    at: Any = import_module(module)
    for step in owners:
        at = getattr(at, step)
    return at, name


def is_known(place: str) -> bool:
    """Whether what stands there is what the lab was written for."""
    return digest(place) in KNOWN.get(place, {}).values()


@dataclass(frozen=True, eq=False)
class Patch:
    """A replacement of some places of the libraries, all or none of them."""

    without: str
    """The consequence where it is off; it completes the log's line."""
    places: Mapping[str, Callable[[Any], Any]]
    """What is replaced; each function makes the replacement from what stands there."""
    reads: Sequence[str] = ()
    """Places that show the private names which the replacement reads."""

    @cached_property
    def differing(self) -> list[str]:
        """The places that are not what the patch was written for."""
        return [place for place in (*self.places, *self.reads) if not is_known(place)]

    def put(self) -> None:
        """Replace, where every place is known; else say so in a line of the log. A second call changes nothing."""
        if self in _PUT:
            return
        _PUT.append(self)
        if self.differing:
            log.warning("%s: %s is unknown (%s).", self.without, ", ".join(self.differing), _library(self.differing[0]))
            return
        for place, make in self.places.items():
            if found(place) is not ABSENT:  # as in a version of the library that has no need of it
                setattr(*owner(place), make(found(place)))


_PUT: list[Patch] = []


def _library(place: str) -> str:
    name = {"panel_material_ui": "panel-material-ui"}.get(top := place.partition(":")[0].partition(".")[0], top)
    return f"{name} {version(name)}"


def override(place: str) -> Callable[[Any], Any]:
    """Decorate a method that overrides a private one of a library; where that is unknown the library's own stays."""

    def decorated(method: Any) -> Any:
        if is_known(place):
            return method
        log.warning("%s is unknown (%s): the library's own is used.", place, _library(place))
        return found(place)

    return decorated


def reads(*places: str) -> bool:
    """Whether private names may be read that these places show."""
    return all(map(is_known, places))


def install() -> None:
    """Put every patch in place. Must run before there is a page; a second call changes nothing."""
    try:
        from app.replacements import PATCHES, relax_validation, share_parameters
    except ImportError as reason:
        log.warning("Every patch is off: %s.", reason)
        return
    for patch in PATCHES:
        patch.put()
    share_parameters()
    relax_validation()


def places() -> list[str]:
    """Every place that is replaced, overridden or read."""
    from app.replacements import PATCHES

    patched = {place for patch in PATCHES for place in (*patch.places, *patch.reads)}
    return sorted({*patched, *KNOWN})


if __name__ == "__main__":
    for place in places():
        print(f'    "{place}": {{"{_library(place)}": "{digest(place)}"}},')

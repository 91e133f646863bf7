"""The replacements of library code that the lab makes, and the figure or fault behind each.

Most of them are the libraries' repeated work: a page has some 300 models, each walked dozens of times. None changes the
page; a test compares the documents made with and without them. :mod:`app.patches` holds each against the installed
source and leaves it off where that is unknown.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import panel.io.document
import param
from bokeh.core.has_props import HasProps, MetaHasProps
from bokeh.core.property.singletons import Intrinsic, Undefined
from bokeh.core.property.wrappers import PropertyValueContainer
from bokeh.core.serialization import Deserializer, Serializer
from bokeh.core.types import ID
from bokeh.document.events import DocumentPatchedEvent, MessageSentEvent
from bokeh.events import ModelEvent
from bokeh.model import Model, util
from bokeh.models import ImportedStyleSheet
from bokeh.settings import settings
from panel.io import resources
from panel.io.state import state
from panel.viewable import Layoutable
from panel_material_ui.base import MaterialComponent

from app.guard.writes import is_writable
from app.patches import Patch

_MUI = "@mui/material/"
OWN = {"value", "value_throttled", "active", "busy", "dark_theme"}
"""Parameters with bounds of their component's own, or that are written in it alone, or that another one refers to."""


def _once_for_each_class(library: Any) -> Any:
    """A class's defaults do not change."""
    return classmethod(cache(library.__func__))


def _unstable_defaults(library: Any) -> Any:
    """Whether a property's default is made anew for each model depends on the class alone."""
    answers: dict[Any, bool] = {}

    def has_unstable_default(self: Any, obj: Any) -> bool:
        key = self, type(obj)
        if key not in answers:
            answers[key] = library(self, obj)
        return answers[key]

    return has_unstable_default


_empty: dict[tuple[type, str], type] = {}
"""The type of a default that is an empty container, by class and property."""


def _themed_default(library: Any) -> Any:
    """An immutable default is looked up once; an empty container is made without a new validation."""
    constant: dict[tuple[type, str], Any] = {}

    def themed_default(
        self: Any, cls: type, name: str, overrides: dict[str, Any] | None, *, no_eval: bool = False
    ) -> Any:
        if no_eval or (overrides and name in overrides):
            return library(self, cls, name, overrides, no_eval=no_eval)
        key = cls, name
        if key in constant:
            return constant[key]
        if key in _empty:
            return _empty[key]()
        default = library(self, cls, name, None)
        if default is None or type(default) in (bool, int, float, str):
            constant[key] = default
        elif isinstance(default, list | dict | set) and not default:
            _empty[key] = type(default)
        return default

    return themed_default


@cache
def _names_of_unstable_defaults(cls: Any) -> tuple[str, ...]:
    names = cls.properties(_with_props=True)
    return tuple(name for name in names if cls.lookup(name).has_unstable_default(cls))


def _kind_on_demand(cls: type, name: str) -> type:
    """The type of an empty default that the browser is not sent; ``object`` for any other.

    A plain list is sent, as the indices of a selection are.
    """
    kind = _empty.get((cls, name), object)
    return kind if issubclass(kind, PropertyValueContainer) else object


def _init_of_models(library: Any) -> Any:
    """Empty containers are made at the first access: a page would have 2,700 of them, half a kilobyte each."""

    def init(self: Any, **properties: Any) -> None:
        super(HasProps, self).__init__()
        self._property_values, self._unstable_default_values, self._unstable_themed_values = {}, {}, {}
        cls = type(self)
        for name, value in properties.items():
            is_default = (
                isinstance(value, list | dict | set)
                and not value
                and issubclass(_kind_on_demand(cls, name), type(value))
            )
            if value is not Undefined and value is not Intrinsic and not is_default:
                setattr(self, name, value)
        for name in _names_of_unstable_defaults(cls):
            if name not in properties and _kind_on_demand(cls, name) is object:
                self.lookup(name)._get(self)
        self._initialized = True

    return init


def _set_values(library: Any) -> Any:
    """Where no defaults are wanted, none is looked up."""

    def query_properties_with_values(
        self: Any, query: Any, *, include_defaults: bool = True, include_undefined: bool = False
    ) -> dict[str, Any]:
        if include_defaults or include_undefined:
            return library(self, query, include_defaults=include_defaults, include_undefined=include_undefined)
        held, unstable, themed = self._property_values, self._unstable_default_values, self.themed_values() or {}
        values = {}
        for name in self.properties(_with_props=True):
            if name in held or name in unstable or name in themed:
                descriptor = self.lookup(name)
                if query(descriptor):
                    value = descriptor.get_value(self)
                    if name in themed or name not in unstable or not isinstance(value, PropertyValueContainer):
                        values[name] = value
        return values

    return query_properties_with_values


def _references(library: Any) -> Any:
    """A stable default refers to no model."""

    def visit_immediate_value_references(value: Any, visitor: Callable[[Any], None]) -> None:
        if not isinstance(value, HasProps):
            library(value, visitor)
            return
        names = type(value).properties_with_refs()
        themed = value.themed_values() or {}
        for held in (value._property_values, value._unstable_default_values, value._unstable_themed_values, themed):
            for name, child in list(held.items()):
                if name in names:
                    util.visit_value_and_its_immediate_references(child, visitor)

    return visit_immediate_value_references


def _init_of_containers(library: Any) -> Any:
    """The single owner of a list stands in a tuple; a set is three times as large."""

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        self._owners = ()
        super(PropertyValueContainer, self).__init__(*args, **kwargs)

    return init


def _register_owner(library: Any) -> Any:
    def register(self: Any, owner: Any, descriptor: Any) -> None:
        if (owner, descriptor) not in self._owners:
            self._owners = *self._owners, (owner, descriptor)

    return register


def _unregister_owner(library: Any) -> Any:
    def unregister(self: Any, owner: Any, descriptor: Any) -> None:
        self._owners = tuple(one for one in self._owners if one != (owner, descriptor))

    return unregister


class _Shared(dict[str, list[Any]]):
    """The watchers that several parameters of one component have in common."""


def _register_watcher(library: Any) -> Any:
    """A component watches all its parameters by one watcher, which param would hold in a list for each of them."""

    def register(self: Any, action: Any, watcher: Any, what: str = "value") -> None:
        if self.self is None or what != "value":
            library(self, action, watcher, what)
            return
        held = self.self._param__private.watchers
        before = {name: held.get(name) for name in watcher.parameter_names}
        for name, shared in before.items():
            if isinstance(shared, _Shared):
                held[name] = {kind: list(watchers) for kind, watchers in shared.items()}
        library(self, action, watcher, what)
        # Parameters with the same watchers before have the same ones after. Panel reverses a layout's list in place.
        again: dict[int, _Shared] = {}
        for name, shared in before.items():
            if (shared is None or isinstance(shared, _Shared)) and name in held and name != "objects":
                held[name] = again.setdefault(id(shared), _Shared(held[name]))

    return register


def _mark_data_model(library: Any) -> Any:
    """Panel searches for the data models below each component; a component of ours has its own alone."""

    def patch_datamodel_ref(cls: type, model: Any, page: str) -> None:
        mark = f"__ref:{page}"
        if mark not in model.tags:
            model.tags.append(mark)

    return classmethod(patch_datamodel_ref)


def _link_writable(library: Any) -> Any:
    """The browser may write few properties; only these need a callback."""

    def link_props(self: Any, model: Any, properties: Sequence[Any], *args: Any, **kwargs: Any) -> None:
        library(self, model, [name for name in properties if is_writable(model, name)], *args, **kwargs)

    return link_props


def _first_values(library: Any) -> Any:
    def init_params(self: Any) -> dict[str, Any]:
        synced = set(self._synced_params)
        return {name: value for name in self.param if name in synced and (value := getattr(self, name)) is not None}

    return init_params


def _answer_once(library: Any) -> Any:
    """A class method with the same answer for the same arguments, at the same depth of the address."""
    answers: dict[Any, Any] = {}

    def answer(cls: type, *args: Any, **kwargs: Any) -> Any:
        key = cls, state.rel_path, args, *kwargs.items()
        if key not in answers:
            answers[key] = library.__func__(cls, *args, **kwargs)
        return answers[key]

    return classmethod(answer)


def _describe_once(library: Any) -> Any:
    """The description of a component's class is the same in each page."""
    descriptions: dict[type, Any] = {}

    def describe(cls: Any, serializer: Any) -> Any:
        if cls not in descriptions:
            descriptions[cls] = library[MetaHasProps](cls, serializer)
        else:
            serializer.add_ref(cls, {"id": ID(cls.__qualified_model__)})
        return descriptions[cls]

    return {**library, MetaHasProps: describe}


def _bundle_once(library: Any) -> Any:
    """Every page has the same scripts and style sheets, at addresses that depend on the request's form."""
    bundles: dict[Any, Any] = {}

    def bundle_resources(roots: Any, resources: Any, *args: Any, **kwargs: Any) -> Any:
        key = resources.mode, resources.root_url, resources.absolute, state.rel_path
        if key not in bundles:
            bundles[key] = library(roots, resources, *args, **kwargs)
        return bundles[key]

    return bundle_resources


def _patch_styles(library: Any) -> Any:
    """The document knows its style sheets; Panel would walk each root for them, three times for a page."""

    def patch_model_css(root: Any, dist_url: str) -> None:
        if root.document is None:
            library(root, dist_url)
            return
        callbacks = root.document.callbacks
        held, events = callbacks._hold, list(callbacks._held_events)
        root.document.hold()
        for model in list(root.document.models):
            if isinstance(model, ImportedStyleSheet):
                resources.patch_stylesheet(model, dist_url)
        callbacks._held_events = events
        # A change that is sent now would arrive before the page is there.
        if held or not state._loaded.get(root.document):
            callbacks._hold = held
        else:
            root.document.unhold()

    return patch_model_css


def _hooks(library: Any) -> Any:
    """No page has a pane of HoloViews or a method as a pane; Panel would look for them below each root, four times."""
    unused = ("find_links", "link_axes", "link_param_method")
    return [hook for hook in library if getattr(hook, "__name__", "") not in unused]


def _trigger_event(library: Any) -> Any:
    """An event is for the model that it names; Bokeh would ask each of the page's."""

    def trigger_event(self: Any, event: Any) -> None:
        if isinstance(event, ModelEvent) and event.model is not None:
            event.model._trigger_event(event)
        for callback in self.event_callbacks_for_event_name(event.event_name):
            callback(event)

    return trigger_event


class _Serializer(Serializer):
    """Refers to the models of the page by their ids, each at its first use. Bokeh lists all of them."""

    def __init__(self, *, references: set[Any], **kwargs: Any):
        super().__init__(**kwargs)
        self._known = references

    def has_ref(self, obj: Any) -> bool:
        return super().has_ref(obj) or (isinstance(obj, Model) and obj in self._known)

    def get_ref(self, obj: Any) -> Any:
        return obj.ref if isinstance(obj, Model) and obj in self._known else super().get_ref(obj)


class _Deserializer(Deserializer):
    def __init__(self, references: Sequence[Any] = (), *, setter: Any = None):
        super().__init__(setter=setter)
        if references:
            self._references.update(references[0].document.models._models)


async def _at_once(work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return work(*args, **kwargs)


def _on_the_loop(library: Any) -> Any:
    """From 3.10 on Bokeh changes and writes out documents in a thread, while the live loop changes their figures."""
    return _at_once


def _on_the_loop_static(library: Any) -> Any:
    return staticmethod(_at_once)


def _dispatch(library: Any) -> Any:
    """Panel's task sends a change that was kept while the task before it ended, too."""

    async def dispatch(doc: Any) -> None:
        if any(doc in getattr(panel.io.document, waiting, ()) for waiting in ("_WRITE_MSGS", "_WRITE_EVENTS")):
            panel.io.document._WRITE_BLOCK[doc] = True
        await library(doc)

    return dispatch


def _drain(library: Any) -> Any:
    """The changes that were held while the browser drew the page, which Panel drops, are sent to it."""

    def drain(doc: Any, lock: Any) -> list[Any]:
        held = list(doc.callbacks._held_events)
        kept = list(library(doc, lock))
        session = getattr(doc.session_context, "session", None)
        if session is not None and session.connection_count:
            kept += [
                one for one in held if isinstance(one, DocumentPatchedEvent) and not isinstance(one, MessageSentEvent)
            ]
        return kept

    return drain


_HAS_PROPS = "bokeh.core.has_props:HasProps"
_CONTAINER = "bokeh.core.property.wrappers:PropertyValueContainer"
_ESM = "panel.custom:ReactiveESM"
_MATERIAL = "panel_material_ui.base:MaterialComponent"
_INIT = f"{_HAS_PROPS}.__init__"
_DESCRIPTOR = "bokeh.core.property.descriptors:PropertyDescriptor"
_HOLD = "bokeh.document.callbacks:DocumentCallbackManager.hold"

PATCHES = [
    Patch(
        "Pages open more slowly and take more memory",
        {
            f"{_HAS_PROPS}._overridden_defaults": _once_for_each_class,
            f"{_DESCRIPTOR}.has_unstable_default": _unstable_defaults,
            "bokeh.core.property.bases:Property.themed_default": _themed_default,
            _INIT: _init_of_models,
            f"{_HAS_PROPS}.themed_values": lambda library: lambda self: vars(self).get("__themed_values__"),
            f"{_HAS_PROPS}.query_properties_with_values": _set_values,
            "bokeh.model.util:visit_immediate_value_references": _references,
        },
        reads=[f"{_DESCRIPTOR}._get", f"{_HAS_PROPS}.apply_theme"],
    ),
    Patch(
        "Lists take more memory",
        {
            f"{_CONTAINER}.__init__": _init_of_containers,
            f"{_CONTAINER}._register_owner": _register_owner,
            f"{_CONTAINER}._unregister_owner": _unregister_owner,
        },
    ),
    Patch("Watchers take more memory", {"param.parameterized:Parameters._register_watcher": _register_watcher}),
    Patch(
        "Callbacks are inspected anew",
        {"bokeh.util.callback_manager:_check_callback": lambda library: lambda *args, **kwargs: None},
    ),
    Patch("Data models are searched for", {f"{_ESM}._patch_datamodel_ref": _mark_data_model}),
    Patch(
        "Properties that the browser may not write have callbacks",
        {"panel.reactive:Syncable._link_props": _link_writable, "panel.reactive:Syncable._init_params": _first_values},
    ),
    Patch(
        "Classes of components are described in each page",
        {"bokeh.core.serialization:Serializer._encoders": _describe_once},
    ),
    Patch(
        "Components' modules are listed in each page",
        {f"{_MATERIAL}._importmap": lambda library: {"imports": {_MUI: library["imports"][_MUI]}}},
    ),
    Patch(
        "Components' scripts are read for each page",
        {
            f"{_ESM}._component_resource_path": _answer_once,
            f"{_MATERIAL}._render_esm": _answer_once,
            "panel.custom:JSComponent._bundle_path": lambda library: None,
            "panel.custom:JSComponent._render_esm": _answer_once,
        },
    ),
    Patch("Scripts and style sheets are listed for each page", {"panel.io.server:bundle_resources": _bundle_once}),
    Patch(
        "Style sheets are searched for",
        {"panel.io.resources:patch_model_css": _patch_styles, "panel.io.server:patch_model_css": _patch_styles},
        reads=[_HOLD],
    ),
    Patch("Roots are searched for plots", {"panel.viewable:Viewable._preprocessing_hooks": _hooks}),
    Patch(
        "Models are looked for in other documents",
        {"panel.viewable:add_to_doc": lambda library: lambda model, document: document.add_root(model)},
    ),
    Patch(
        "Events are offered to every model",
        {"bokeh.document.callbacks:DocumentCallbackManager.trigger_event": _trigger_event},
        reads=["bokeh.util.callback_manager:EventCallbackManager._trigger_event"],
    ),
    Patch(
        "Messages list every model",
        {
            "bokeh.protocol.messages.patch_doc:Serializer": lambda library: _Serializer,
            "bokeh.document.document:Deserializer": lambda library: _Deserializer,
            "bokeh.document.models:DocumentModelManager.synced_references": lambda library: property(
                lambda self: {*self._models.values()} - self._new_models
            ),
        },
    ),
    Patch(
        "The collector stops every page after the end of one",
        {"panel.io.document:_garbage_collect": lambda library: lambda: None},
    ),
    Patch("Widgets answer 50 ms later", {"panel.reactive:Syncable._debounce": lambda library: 0}),
    Patch("A change may wait for the next one", {"panel.io.document:_dispatch_msgs": _dispatch}),
    Patch(
        "A change while a page is drawn may be lost",
        {"panel.io.document:_drain_unconnected_events": _drain},
        reads=[_HOLD],
    ),
    Patch(
        "Documents are written out in threads",
        {
            "bokeh.server.session:_run_in_executor": _on_the_loop,
            "bokeh.server.session:ServerSession._run_in_executor": _on_the_loop_static,
        },
    ),
]


def share_parameters() -> None:
    """Let components share their class's parameters, by param's documented ``per_instance``."""
    for cls in _classes_below(Layoutable):
        for name, parameter in vars(cls).items():
            layout = name in Layoutable.param
            material = issubclass(cls, MaterialComponent) and isinstance(parameter, param.Parameter)
            if layout or (material and name not in OWN):
                parameter.per_instance = False


def relax_validation() -> None:
    """Switch off two of Bokeh's checks, by its documented settings.

    It warns of columns without children, which here get theirs later; and for the message of an error that Panel
    catches unread it compares every property's name.
    """
    settings.perform_document_validation = False
    settings.perform_error_diagnostics = False


def _classes_below(cls: type[Any]) -> Iterator[type[Any]]:
    yield cls
    for child in cls.__subclasses__():
        yield from _classes_below(child)

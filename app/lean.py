"""What the libraries work out again for each model of each page, though it is the same every time.

Opening a page was .9 s of the event loop, most of it such repetition: nearly 400 models, each walked dozens of times.
Nothing here changes what a page is. Each entry replaces what a library looks up by name by something that
gives the same answer; a test holds the pages made with and without them against each other.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from inspect import getattr_static
from typing import Any

import bokeh.document.document
import panel.io.server
import panel.reactive
import panel.viewable
import param
from bokeh.core.has_props import HasProps, MetaHasProps
from bokeh.core.property.bases import Property
from bokeh.core.property.descriptors import PropertyDescriptor
from bokeh.core.property.singletons import Intrinsic, Undefined
from bokeh.core.property.wrappers import PropertyValueContainer
from bokeh.core.serialization import Deserializer, Ref, Serializer
from bokeh.core.types import ID
from bokeh.document.callbacks import DocumentCallbackManager
from bokeh.document.models import DocumentModelManager
from bokeh.events import Event, ModelEvent
from bokeh.model import Model, util
from bokeh.models import ImportedStyleSheet
from bokeh.settings import settings
from bokeh.util import callback_manager
from panel.custom import JSComponent, ReactiveESM
from panel.io import resources
from panel.io.state import state
from panel.pane.holoviews import find_links, link_axes
from panel.param import link_param_method
from panel.reactive import Syncable
from panel.viewable import Layoutable, Viewable
from panel_material_ui.base import MaterialComponent
from param.parameterized import Parameters, Watcher

from app.guard.writes import is_writable

MATERIAL = MaterialComponent._importmap["imports"]["@mui/material/"]
OWN = {"value", "value_throttled", "active", "busy", "dark_theme"}
"""Parameters that have bounds of their component's, may be written in it alone, or to which another of it refers."""
_describe = Serializer._encoders[MetaHasProps]
_themed_default = Property.themed_default
_has_unstable_default = PropertyDescriptor.has_unstable_default
_link_props = Syncable._link_props
_set_values = HasProps.query_properties_with_values
_bundle_resources = panel.io.server.bundle_resources
_patch_below = resources.patch_model_css
_register_watcher = Parameters._register_watcher
_visit = util.visit_immediate_value_references


def replacements() -> Iterator[tuple[Any, str, Any]]:
    """Who holds what is replaced, under which name, and what takes its place."""
    # A class's defaults and which of them are made anew for each model: known when the class is.
    yield HasProps, "_overridden_defaults", classmethod(cache(HasProps._overridden_defaults.__func__))  # type: ignore[attr-defined]
    yield PropertyDescriptor, "has_unstable_default", _is_made_anew
    yield Property, "themed_default", _known_default
    yield HasProps, "__init__", _begin
    # Bokeh would hold the one model that a list or mapping is of in a set, three times as large.
    yield PropertyValueContainer, "__init__", _begin_of_nobody
    yield PropertyValueContainer, "_register_owner", _register_owner
    yield PropertyValueContainer, "_unregister_owner", _unregister_owner
    yield HasProps, "themed_values", lambda self: vars(self).get("__themed_values__")
    yield HasProps, "query_properties_with_values", _values_that_are_set
    # Panel's own callbacks have the arguments that Bokeh looks for in each of them.
    yield callback_manager, "_check_callback", lambda *args, **named: None
    # Panel looks for the data models below each component, which have been marked with their own components.
    yield ReactiveESM, "_patch_datamodel_ref", classmethod(_mark_of_page)
    yield util, "visit_immediate_value_references", _visit_what_is_there
    yield Syncable, "_link_props", _link_what_is_writable
    yield Syncable, "_init_params", _first_values
    # An event is for the model that it names; Bokeh would ask each of the page's.
    yield DocumentCallbackManager, "trigger_event", _trigger_named
    # What the components of Material are made of stands in each page, as do the addresses of what its own bundle holds.
    yield Serializer._encoders, MetaHasProps, _describing()
    yield MaterialComponent, "_importmap", {"imports": {"@mui/material/": MATERIAL}}
    # Where a component's script and styles are served.
    yield ReactiveESM, "_component_resource_path", _once(ReactiveESM._component_resource_path)
    yield MaterialComponent, "_render_esm", _once(MaterialComponent._render_esm)
    yield panel.io.server, "bundle_resources", _bundle_once
    # None of the page's own scripts is in a bundle; Panel would look for one through the folders of each.
    yield JSComponent, "_bundle_path", None
    # Each page would read the scripts of its own components, and keep them.
    yield JSComponent, "_render_esm", _once(ReactiveESM._render_esm)
    # A component listens to all of its parameters by one watcher, and param would hold it in a list for each of them.
    yield Parameters, "_register_watcher", _watch_together
    # No page has a pane of HoloViews or a method that is shown; Panel would look for them below each root, four times.
    hooks = [hook for hook in Viewable._preprocessing_hooks if hook not in (find_links, link_axes, link_param_method)]
    yield Viewable, "_preprocessing_hooks", hooks
    # A page's models are its own, and were made a moment ago: none has to be taken from another document.
    yield panel.viewable, "add_to_doc", lambda model, document: document.add_root(model)
    # The document knows its style sheets; Panel would walk each root for them, three times for a page.
    yield resources, "patch_model_css", _patch_known
    yield panel.io.server, "patch_model_css", _patch_known
    # For each message all models of the page would be asked for their names, though it refers to one or two.
    yield import_module("bokeh.protocol.messages.patch_doc"), "Serializer", _Writing
    yield bokeh.document.document, "Deserializer", _Reading
    yield DocumentModelManager, "synced_references", property(lambda self: {*self._models.values()} - self._new_models)
    # Nobody is shown that Panel is busy with an event: its count of them is written six times for each.
    yield type(state), "_add_busy_event", _say_nothing
    yield type(state), "_remove_busy_event", _say_nothing
    # Of fifty parameters of a component that an event writes to, a few may not be written otherwise.
    yield panel.reactive, "edit_readonly", _edit_readonly
    # Each component would have a copy of each parameter of its class, which differs in nothing.
    for cls in _classes_below(Layoutable):
        for name, parameter in vars(cls).items():
            layout = name in Layoutable.param
            material = issubclass(cls, MaterialComponent) and isinstance(parameter, param.Parameter)
            if layout or (material and name not in OWN):
                yield parameter, "per_instance", False


def install() -> None:
    """Must run before there is a page, and after the libraries' classes are there. A second call changes nothing."""
    for owner, name, new in replacements():
        put(owner, name, new)
    # It warns of columns without children, which here get theirs later.
    settings.perform_document_validation = False
    # Panel asks each component that is given a value for a property that only its data have; Bokeh would look for the
    # names most like it, for an error that nobody reads.
    settings.perform_error_diagnostics = False


def put(owner: Any, name: Any, new: Any) -> None:
    """Let the owner have this under its name, in a mapping under its key."""
    if isinstance(owner, dict):
        owner[name] = new
    else:
        setattr(owner, name, new)


_made_anew: dict[tuple[PropertyDescriptor[Any], type], bool] = {}


def _is_made_anew(self: PropertyDescriptor[Any], obj: HasProps) -> bool:
    key = self, type(obj)
    if key not in _made_anew:
        _made_anew[key] = _has_unstable_default(self, obj)
    return _made_anew[key]


_known: dict[tuple[type, str], Any] = {}
_empty: dict[tuple[type, str], type] = {}


def _known_default(
    self: Property[Any], cls: type[HasProps], name: str, overrides: dict[str, Any] | None, *, no_eval: bool = False
) -> Any:
    """What cannot change is kept; what is empty at first need not be held against its type again."""
    if no_eval or (overrides and name in overrides):
        return _themed_default(self, cls, name, overrides, no_eval=no_eval)
    key = cls, name
    if key in _known:
        return _known[key]
    if key in _empty:
        return _empty[key]()
    found = _themed_default(self, cls, name, None)
    if found is None or type(found) in (bool, int, float, str):
        _known[key] = found
    elif isinstance(found, list | dict | set) and not found:
        _empty[key] = type(found)
    return found


@cache
def _names_made_anew(cls: type[HasProps]) -> tuple[str, ...]:
    """The properties of a class whose defaults are made anew for each model."""
    names = cls.properties(_with_props=True)
    return tuple(name for name in names if cls.lookup(name).has_unstable_default(cls))  # type: ignore[arg-type]


def _on_demand(cls: type[HasProps], name: str) -> type:
    """What a property is at first, if it is empty and the browser is not told of it; ``object`` for any other.

    A browser is told of a plain list, as the indices of a selection are.
    """
    kind = _empty.get((cls, name), object)
    return kind if issubclass(kind, PropertyValueContainer) else object


def _begin(self: HasProps, **properties: Any) -> None:
    super(HasProps, self).__init__()
    self._property_values, self._unstable_default_values, self._unstable_themed_values = {}, {}, {}
    cls = type(self)
    # What is empty at first is made when somebody looks: a page would have 2,700 of them, half a kilobyte each.
    for name, value in properties.items():
        is_default = (
            isinstance(value, list | dict | set) and not value and issubclass(_on_demand(cls, name), type(value))
        )
        if value is not Undefined and value is not Intrinsic and not is_default:
            setattr(self, name, value)
    for name in _names_made_anew(cls):
        if name not in properties and _on_demand(cls, name) is object:
            self.lookup(name)._get(self)
    self._initialized = True


def _begin_of_nobody(self: Any, *given: Any, **named: Any) -> None:
    self._owners = ()
    super(PropertyValueContainer, self).__init__(*given, **named)


def _register_owner(self: Any, owner: HasProps, descriptor: PropertyDescriptor[Any]) -> None:
    if (owner, descriptor) not in self._owners:
        self._owners = *self._owners, (owner, descriptor)


def _unregister_owner(self: Any, owner: HasProps, descriptor: PropertyDescriptor[Any]) -> None:
    self._owners = tuple(one for one in self._owners if one != (owner, descriptor))


def _values_that_are_set(
    self: HasProps, query: Callable[[Any], bool], *, include_defaults: bool = True, include_undefined: bool = False
) -> dict[str, Any]:
    """Where no defaults are asked for, none is looked up."""
    if include_defaults or include_undefined:
        return _set_values(self, query, include_defaults=include_defaults, include_undefined=include_undefined)
    held, anew, themed = self._property_values, self._unstable_default_values, self.themed_values() or {}
    found = {}
    for name in self.properties(_with_props=True):
        if name in held or name in anew or name in themed:
            descriptor = self.lookup(name)
            if query(descriptor):
                value = descriptor.get_value(self)
                if name in themed or name not in anew or not isinstance(value, PropertyValueContainer):
                    found[name] = value
    return found


def _mark_of_page(cls: type, model: Any, page: str) -> None:
    mark = f"__ref:{page}"
    if mark not in model.tags:
        model.tags.append(mark)


def _visit_what_is_there(value: Any, visitor: Callable[[Any], None]) -> None:
    """A default that is not made anew for each model refers to none."""
    if not isinstance(value, HasProps):
        _visit(value, visitor)
        return
    names = type(value).properties_with_refs()
    themed = value.themed_values() or {}
    for held in (value._property_values, value._unstable_default_values, value._unstable_themed_values, themed):
        for name, child in list(held.items()):
            if name in names:
                util.visit_value_and_its_immediate_references(child, visitor)


def _link_what_is_writable(self: Syncable, model: Any, properties: Sequence[Any], *rest: Any, **named: Any) -> None:
    """Nobody but the browser changes a model behind its component's back, and it may write few properties."""
    _link_props(self, model, [name for name in properties if is_writable(model, name)], *rest, **named)


def _trigger_named(self: DocumentCallbackManager, event: Event) -> None:
    if isinstance(event, ModelEvent) and event.model is not None:
        event.model._trigger_event(event)
    for callback in self.event_callbacks_for_event_name(event.event_name):
        callback(event)


def _describing() -> Callable[[type[HasProps], Serializer], Any]:
    descriptions: dict[type, Any] = {}

    def describe(cls: type[HasProps], serializer: Serializer) -> Any:
        if cls not in descriptions:
            descriptions[cls] = _describe(cls, serializer)
        else:
            serializer.add_ref(cls, {"id": ID(cls.__qualified_model__)})
        return descriptions[cls]

    return describe


class _Together(dict[str, list[Watcher]]):
    """What several parameters of one component are watched by, until one of them is watched by more or by less."""


def _watch_together(self: Parameters, action: Any, watcher: Watcher, what: str = "value") -> None:
    if self.self is None or what != "value":
        _register_watcher(self, action, watcher, what)
        return
    held = self.self._param__private.watchers
    before = {name: held.get(name) for name in watcher.parameter_names}
    for name, shared in before.items():
        if isinstance(shared, _Together):
            held[name] = {kind: list(watchers) for kind, watchers in shared.items()}
    _register_watcher(self, action, watcher, what)
    # Those that were watched by the same are so again. Panel turns the list of a layout's objects round in its place.
    together: dict[int, _Together] = {}
    for name, shared in before.items():
        if (shared is None or isinstance(shared, _Together)) and name in held and name != "objects":
            held[name] = together.setdefault(id(shared), _Together(held[name]))


def _first_values(self: Syncable) -> dict[str, Any]:
    synced = set(self._synced_params)
    return {name: value for name in self.param if name in synced and (value := getattr(self, name)) is not None}


def _once(method: Any) -> Any:
    """A method of a class that returns the same for the same arguments at the same depth of the address."""
    answers: dict[Any, Any] = {}

    def known(cls: type, *given: Any, **named: Any) -> Any:
        key = cls, state.rel_path, given, *named.items()
        if key not in answers:
            answers[key] = method.__func__(cls, *given, **named)
        return answers[key]

    return classmethod(known)


_bundles: dict[Any, Any] = {}


def _bundle_once(roots: Any, served: Any, *rest: Any, **named: Any) -> Any:
    """Every page has the same scripts and style sheets, at addresses that depend on how the server was asked."""
    key = served.mode, served.root_url, served.absolute, state.rel_path
    if key not in _bundles:
        _bundles[key] = _bundle_resources(roots, served, *rest, **named)
    return _bundles[key]


def _patch_known(root: Model, dist_url: str) -> None:
    if root.document is None:
        _patch_below(root, dist_url)
        return
    callbacks = root.document.callbacks
    held, events = callbacks._hold, list(callbacks._held_events)
    root.document.hold()
    for model in list(root.document.models):
        if isinstance(model, ImportedStyleSheet):
            resources.patch_stylesheet(model, dist_url)
    callbacks._held_events = events
    # What was sent for it would come before the page is there.
    if held or not state._loaded.get(root.document):
        callbacks._hold = held
    else:
        root.document.unhold()


class _Writing(Serializer):
    """Refers to the models that the page has, each by its name once it is needed."""

    def __init__(self, *, references: set[Model], **named: Any):
        super().__init__(**named)
        self._known = references

    def has_ref(self, obj: Any) -> bool:
        return super().has_ref(obj) or (isinstance(obj, Model) and obj in self._known)

    def get_ref(self, obj: Any) -> Ref | None:
        return obj.ref if isinstance(obj, Model) and obj in self._known else super().get_ref(obj)


class _Reading(Deserializer):
    def __init__(self, references: Sequence[Model] = (), *, setter: Any = None):
        super().__init__(setter=setter)
        if references:
            self._references.update(references[0].document.models._models)


def _say_nothing(self: Any, event_id: str) -> None:
    """As where nobody looks."""


@contextmanager
def _edit_readonly(parameterized: param.Parameterized) -> Iterator[None]:
    """Let what may not be written be written for a moment."""
    held = [(p, p.readonly, p.constant) for p in parameterized.param.objects("existing").values()]
    fixed = [(p, readonly, constant) for p, readonly, constant in held if readonly or constant]
    for p, _, _ in fixed:
        p.readonly = p.constant = False
    try:
        yield
    finally:
        for p, readonly, constant in fixed:
            p.readonly, p.constant = readonly, constant


def _classes_below(cls: type[Any]) -> Iterator[type[Any]]:
    yield cls
    for child in cls.__subclasses__():
        yield from _classes_below(child)


LIBRARIES = [
    (owner, name, owner[name] if isinstance(owner, dict) else getattr_static(owner, name) if isinstance(owner, type) else getattr(owner, name))
    for owner, name, _ in replacements()
]  # fmt: skip
"""What stood in those places before, for the test that compares."""

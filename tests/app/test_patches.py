"""The replacements in the libraries change no page, and are off where a library is another."""

import ast
import asyncio
import gc
import re
import sys
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

import param
import pytest
from bokeh.core.property.wrappers import PropertyValueContainer
from bokeh.document import Document
from bokeh.document.events import ModelChangedEvent
from bokeh.document.models import DocumentModelManager
from bokeh.model import DataModel, util
from bokeh.models import Div, ImportedStyleSheet, Range1d
from bokeh.protocol import Protocol
from panel.io.resources import CDN_DIST
from panel.io.state import set_curdoc

from app import patches
from app import replacements as replaced
from app.guard.writes import WRITABLE, _name, is_writable
from app.replacements import PATCHES, share_parameters
from app.shell import Page, page
from tests.documents import told

APP = Path(patches.__file__).parent
PAGES = ["", "?target=topics(corpus:bars)", "?lesson=langevin&step=2&theme=dark"]


def page_for(query):
    """The document of a page as the server makes one."""

    async def made():
        document = Document()
        with set_curdoc(document), patch.object(Page, "query", return_value=query):
            page().server_doc(document)
        return document

    return asyncio.run(made())


ALL = [(place, make) for patch in PATCHES for place, make in patch.places.items() if patches.found(place) != "absent"]
LIBRARIES = [(*patches.owner(place), patches.found(place)) for place, _ in ALL]
"""The libraries as they are installed, with or without a server in this process."""


def replacements():
    return [(*patches.owner(place), make(patches.found(place))) for place, make in ALL]


@pytest.fixture
def put(monkeypatch):
    """Puts things in their places until the test is over."""

    def put(places):
        for owner, name, thing in places:
            monkeypatch.setattr(owner, name, thing)

    share_parameters()
    return put


@pytest.mark.parametrize("query", PAGES)
def test_a_page_is_the_same(query, put):
    """Fails where a library has changed so that what is known of a class is no longer so, or models are overlooked.

    Planted fault: defaults that were made for one model are overlooked.
    """
    put(LIBRARIES)
    before = page_for(query)
    plain = told(before)
    put(replacements())
    if query:
        assert told(page_for(query)) == plain
        return
    for _ in range(2):
        after = page_for(query)
        assert len(after.models) == len(before.models)
        assert told(after) == plain
    put([(util, "visit_immediate_value_references", overlooking)])
    assert len(page_for(query).models) < len(before.models)


def styles_elsewhere(document):
    return {one.url for one in document.models if isinstance(one, ImportedStyleSheet) and "//" in one.url}


def test_no_style_is_of_another_host(monkeypatch):
    """Also where no HTML was written. Planted fault: nobody says where the styles are."""
    assert styles_elsewhere(page_for(PAGES[-1])) == set()
    monkeypatch.setattr("app.shell.get_dist_path", lambda: CDN_DIST)
    assert f"{CDN_DIST}css/loading.css" in {url.partition("?")[0] for url in styles_elsewhere(page_for(PAGES[-1]))}


def overlooking(value, visitor):
    """Only what was set."""
    for child in getattr(value, "_property_values", {}).values():
        util.visit_value_and_its_immediate_references(child, visitor)


@pytest.mark.parametrize("query", PAGES[::2])
def test_what_a_browser_may_write_is_listened_to_and_nothing_else(query, put):
    """Fails where a control would do nothing. Planted fault: nothing is writable."""

    def listened(document):
        return {(_name(x), name) for x in document.models if isinstance(x, DataModel) for name in x._callbacks}

    put(replacements())
    document = page_for(query)
    found = listened(document)
    wanted = {
        (name, attr)
        for model in document.models
        if isinstance(model, DataModel)
        for name in [_name(model)]
        for attr in WRITABLE.get(name, {})
        if attr in model.properties()
    }
    assert found == wanted
    assert len(wanted) > 5
    assert all(is_writable(x, name) for x in document.models for name in x._callbacks)
    put([(replaced, "is_writable", lambda model, name: False)])
    assert listened(page_for(query)) == set()


def test_a_message_is_the_same(put):
    """Fails where a change that is sent holds models that the page has, or one that comes is not applied.

    Planted fault: nothing is known of the page's models; the message then holds the card whole.
    """

    def sent(document):
        event = ModelChangedEvent(document, document.roots[0], "tags", [document.roots[0], {"new": Div(text="new")}])
        content = Protocol().create("PATCH-DOC", [event]).content
        (new,) = (x for x in content["events"][0]["new"] if x.get("type") == "map")
        new["entries"][0][1]["id"] = "new"
        return content

    put(LIBRARIES)
    document = page_for("")
    document.models.flush_synced()
    plain = sent(document)
    put(replacements())
    assert sent(document) == plain
    slider = next(x for x in document.models if getattr(x, "label", "").startswith("Step size"))
    change = {"kind": "ModelChanged", "model": {"id": slider.id}, "attr": "value", "new": 7}

    async def come():
        document.apply_json_patch({"events": [change]})

    asyncio.run(come())
    assert slider.value == 7
    put([(DocumentModelManager, "synced_references", set())])
    assert len(str(sent(document))) > 100 * len(str(plain))


MOST_HELD = 16_000
"""Objects that a page with two lanes and three views may hold; it holds some 12,500, and with the libraries' own ways
some 26,000."""
WORKING = "?lane=sgld&lane=hmc&views=state,ks,trace"


def held():
    """How many objects a page holds; of one before it is what is known of its classes."""
    page_for(WORKING)
    gc.collect()
    before = len(gc.get_objects())
    document = page_for(WORKING)
    gc.collect()
    found = len(gc.get_objects()) - before
    assert document.roots
    return found


@pytest.mark.parametrize("fault", ["__init__", "_register_watcher"])
def test_a_page_holds_no_more_than_it_needs(fault, put):
    """Fails where a page grows, or a library holds for each model again what is nothing yet, or what is the same.

    Planted faults: Bokeh makes every empty list and mapping of each model; param holds each component's one watcher
    in a mapping and a list for each parameter.
    """
    put(replacements())
    assert held() < MOST_HELD
    put(
        [
            (owner, name, thing)
            for owner, name, thing in LIBRARIES
            if name == fault and owner is not PropertyValueContainer
        ]
    )
    assert held() > MOST_HELD


def test_what_is_empty_at_first_tells_its_model_of_a_change(put):
    """Fails where a list that is made when somebody looks belongs to no model. Planted fault: it does not."""
    put(replacements())

    def told_of(cls):
        model, changes = cls(), []
        model.on_change("tags", lambda attr, old, new: changes.append((old, new)))
        model.tags.append("seen")
        return changes, model

    Range1d()
    assert told_of(Range1d)[0] == [([], ["seen"])]
    model = Range1d(tags=[])
    assert "tags" not in model._unstable_default_values
    kept = model.tags
    model.tags = ["others"]
    assert kept._owners == ()
    assert "tags" not in Range1d(tags=["some"])._unstable_default_values
    put([(PropertyValueContainer, "_register_owner", lambda self, owner, descriptor: None)])
    assert told_of(Range1d)[0] == []


class Unmarked:
    """What several parameters share, and nothing shows it."""

    def __new__(cls, held):
        return dict(held)


def test_one_watcher_of_many_parameters_is_each_ones_own(put):
    """Fails where who watches one parameter is told of another. Planted fault: what they share is never parted."""
    put(replacements())

    class Both(param.Parameterized):
        one, two, three = param.Integer(0), param.Integer(0), param.Integer(0)

    def told_of():
        both, seen = Both(), []
        every = both.param.watch(lambda *events: seen.extend(event.name for event in events), ["one", "two", "three"])
        both.param.watch(lambda event: seen.append("again " + event.name), "one")
        both.one, both.two = 1, 1
        both.param.unwatch(every)
        both.one, both.three = 2, 2
        return seen

    plain = ["one", "two", "again one", "again one"]
    assert sorted(told_of()) == sorted(plain)
    put([(replaced, "_Shared", Unmarked)])
    assert sorted(told_of()) != sorted(plain)


# The places


@pytest.fixture
def library(monkeypatch):
    """A library whose next release may be another, and what the log says of it."""
    module = ModuleType("a_library")
    exec("def _private():\n    return 'as it was'\n", vars(module))  # noqa: S102 - a module of this test
    monkeypatch.setitem(sys.modules, "a_library", module)
    monkeypatch.setattr(patches, "_library", lambda place: "a_library 1.0")
    monkeypatch.setattr(patches, "digest", lambda place: DIGESTS[getattr(module, "release", 1)])
    monkeypatch.setitem(patches.KNOWN, "a_library:_private", {"a_library 1.0": DIGESTS[1]})
    patches.found.cache_clear()
    yield module
    patches.found.cache_clear()


DIGESTS = {1: "0123456789ab", 2: "ba9876543210"}


@pytest.mark.parametrize("release", [1, 2])
def test_a_patch_is_on_where_its_place_is_known_and_off_elsewhere(release, library, caplog):
    """Fails where a release with another private function is patched all the same. Fault: the second release."""
    library.release = release
    patch = patches.Patch("It is slower", {"a_library:_private": lambda original: lambda: "patched " + original()})
    for _ in range(2):
        patch.put()
    assert library._private() == ("patched as it was" if release == 1 else "as it was")
    assert caplog.messages == ([] if release == 1 else ["It is slower: a_library:_private is unknown (a_library 1.0)."])


def test_a_place_that_is_gone_or_has_no_source_is_unknown():
    assert patches.digest("a_library_that_is_not_there:name") == patches.ABSENT
    assert patches.digest("panel.viewable:Viewable._that_is_gone") == patches.ABSENT
    assert not patches.is_known("panel.viewable:Viewable._that_is_gone")
    assert patches.digest("builtins:len") == "builtin_function_or_method"


def test_a_method_overrides_a_known_one_alone(caplog):
    place = "panel.viewable:Viewable._server_destroy"
    ours = patches.override(place)(print)
    assert ours is print
    gone = patches.override("panel.viewable:Viewable._that_is_gone")(print)
    assert gone is not print and len(caplog.messages) == 1


PRIVATE = re.compile(r"^_[A-Za-z]")
DOCUMENTED = {
    "_esm",
    "_stylesheets",
    "_importmap",
    "_handle_msg",
    "_send_msg",
    "_make",
    "_replace",
    "_asdict",
    "_fields",
}
"""Panel documents the first five for components of one's own, Python the others for named tuples."""
MODULES = {"patches.py", "replacements.py"}


def own_names(trees):
    """Every private name that the lab itself defines."""
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield node.name
            elif (
                isinstance(node, ast.Attribute)
                and isinstance(node.ctx, ast.Store)
                and ast.unparse(node.value) in ("self", "cls", "made")
            ):
                yield node.attr
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id


def foreign(source):
    """The private names of libraries that a module reads, writes or imports."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and PRIVATE.match(node.attr):
            yield node.attr
        if isinstance(node, ast.ImportFrom) and not (node.module or "").startswith(("app", "samplers", "lessons")):
            yield from (alias.name for alias in node.names if PRIVATE.match(alias.name))


def test_no_private_name_of_a_library_is_used_unguarded():
    """Fails where a module reaches into a library without a place in ``patches.KNOWN``.

    Planted fault: such a line. A module that asks ``reads`` or ``override`` names the place, and its names are listed.
    """
    files = [path for path in APP.rglob("*.py") if path.name not in MODULES]
    own = (
        set(
            own_names(
                [
                    ast.parse(path.read_text(encoding="utf-8"))
                    for path in APP.parent.glob("*/**/*.py")
                    if path.parts[len(APP.parent.parts)] in ("app", "samplers", "lessons")
                ]
            )
        )
        | DOCUMENTED
    )
    found = {
        (path.relative_to(APP).as_posix(), name)
        for path in files
        for name in foreign(path.read_text(encoding="utf-8"))
        if name not in own
    }
    assert found == GUARDED
    assert set(foreign("import panel\npanel.io.document._WRITE_MSGS")) == {"_WRITE_MSGS"}


GUARDED = {
    ("compiling.py", "_exit"),  # the standard library's own, documented
    ("guard/life.py", "_exit"),
    ("guard/server.py", "_applications"),
    ("guard/server.py", "_data_model"),
    ("guard/server.py", "_default"),
    ("guard/server.py", "_generate_token_payload"),
    ("guard/server.py", "_request"),
    ("guard/server.py", "_RequestProxy"),
    ("guard/ready.py", "_last_unsubscribe_time"),
    ("memory.py", "_views"),
}
"""Names behind :func:`app.patches.reads`, by module."""

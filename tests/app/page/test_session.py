"""The life of a page on the server, without a browser."""

import asyncio
import gc
import weakref
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock, patch

import panel as pn
import param
import pytest
from bokeh.application.handlers.document_lifecycle import DocumentLifecycleHandler
from bokeh.document import Document
from bokeh.model import Model
from bokeh.server.contexts import ApplicationContext
from bokeh.util.token import generate_jwt_token, generate_session_id
from panel.io.application import build_single_handler_application
from panel.io.state import set_curdoc
from tornado.ioloop import IOLoop

from sgmcmc_lab.app import state
from sgmcmc_lab.app.page.shell import Page
from sgmcmc_lab.app.server import patches
from sgmcmc_lab.app.views import fitting
from sgmcmc_lab.app.views.trace import TraceView
from sgmcmc_lab.samplers import choices
from sgmcmc_lab.samplers.kernels import Sampler

ROOT = Path(__file__).parents[3]
PAGES = ["", "?target=topics(corpus:bars)"]
(DESTROY,) = (patch for patch in patches.PATCHES if patch.function.endswith("._server_destroy"))


def opened(query):
    """A page as the server makes one, for a link."""
    document, connection = Document(), Mock()
    document.on_change_dispatch_to(connection)
    with set_curdoc(document), patch.object(Page, "query", return_value=query):
        session = Page()
        session.page.server_doc(document)
    return session, document, connection


def over(query, busy=False):
    """A page that has ended as the server ends one."""

    async def live():
        session, document, connection = opened(query)
        if busy:
            with param.edit_constant(session.page):
                session.page.busy = pn.state.param.busy
        for callback in document.session_destroyed_callbacks:
            callback(Mock(_document=document))
        document.destroy(connection)
        page = weakref.ref(session.page)
        del session
        await asyncio.sleep(0.01)
        return page

    return asyncio.run(live())


@pytest.mark.slow
@pytest.mark.parametrize("query", PAGES)
def test_a_page_that_is_over_is_gone(query):
    """Fails where something keeps a page that has ended: each would leave 3 MB, and the collector looks at all of it.

    Planted fault: a page that is busy where Panel is, as the library makes it; Panel's list of watchers keeps it.
    """
    page, kept = over(query), over(query, busy=True)
    gc.collect()
    assert page() is None
    assert kept() is not None


@pytest.mark.slow
def test_pages_that_are_over_leave_no_document_and_no_model(monkeypatch):
    """Fails where each page that was opened and closed stays in part: the server's memory would grow for ever.

    Planted fault: Panel's list of roots is left as it is, which keeps the document of every page by its messages.
    """

    async def kept(context):
        name = generate_session_id()
        payload = {"headers": {}, "cookies": {}, "arguments": {}}
        request = SimpleNamespace(path="/app", uri="/app", protocol="http", host="localhost", **payload)
        session = await context.create_session_if_needed(name, request, generate_jwt_token(name, extra_payload=payload))
        session.request_expiration()
        del session
        await context._cleanup_sessions(0)
        await asyncio.sleep(0.01)
        gc.collect()
        # By its type: a proxy of something that is gone has no class.
        return sum(issubclass(type(one), Document | Model | Page) for one in gc.get_objects())

    async def pages():
        application = build_single_handler_application(str(ROOT / "app"))
        application.add(DocumentLifecycleHandler())
        context = ApplicationContext(application, io_loop=IOLoop.current(), url="/app")
        monkeypatch.setattr(*patches.owner(DESTROY.function), DESTROY.make(patches.found(DESTROY.function)))
        found = [await kept(context) for _ in range(4)]
        monkeypatch.setattr(*patches.owner(DESTROY.function), patches.found(DESTROY.function))
        return [*found, await kept(context), await kept(context)]

    _, _, *left, first, second = asyncio.run(pages())
    assert left == [left[0]] * 2
    assert left[0] < first < second


@pytest.mark.slow
def test_an_edit_makes_one_sampler_and_asks_each_view_once(monkeypatch):
    """Fails where a change of one parameter makes samplers again that are there, or asks views again whether they fit.

    With thirty pages open all that an edit does is waited for by the others. Planted fault: nothing is kept; the edit
    then makes more than ten samplers, and asks more than five times.
    """
    made, asked = [], []
    begin, fits = Sampler.__init__, TraceView.fits
    monkeypatch.setattr(Sampler, "__init__", lambda self, **values: (made.append(self), begin(self, **values))[1])
    monkeypatch.setattr(TraceView, "fits", lambda experiment: (asked.append(experiment), fits(experiment))[1])

    async def counted(step_size):
        session, _, _ = opened("?lane=sgld&lane=hmc&views=state,ks,trace")
        made.clear()
        asked.clear()
        # The lanes' slider does this when it is released.
        session.state.set_lane_param(0, "sampler", "step_size", step_size)
        session.write_link()
        return len(made), len(asked)

    assert asyncio.run(counted(0.0123)) == (1, 1)
    monkeypatch.setattr(choices, "_made", choices._made.__wrapped__)
    monkeypatch.setattr(state, "fitting", fitting.__wrapped__)
    samplers, views = asyncio.run(counted(0.0124))
    assert samplers > 10
    assert views > 5


@pytest.mark.slow
def test_the_slider_of_the_speed_stands_at_its_value_when_its_stops_change():
    """A model has no seconds at the slow end: the browser's number of the same speed is another one."""

    async def live():
        session, document, _ = opened("?target=network")
        (slider,) = (
            one for one in document.models if getattr(getattr(one, "data", None), "label", "") == "Steps per frame"
        )
        found = []
        for target in ("gaussian", "network", "gaussian"):
            with set_curdoc(document):
                session.state.set_target(target)
            found.append(slider.data.options[slider.data.value])
        session.stop()
        return found

    assert asyncio.run(live()) == ["20"] * 3


@pytest.mark.slow
@pytest.mark.parametrize("fault", [False, True])
def test_models_change_when_the_browser_has_drawn_the_page(fault):
    """Panel drops what changes between the page's document and its drawing; with it went the models of the bar, to
    which the next change referred. The planted fault changes them at once.
    """

    async def live():
        session, document, _ = opened("")
        # Without a server Panel takes the page for loaded at once.
        await asyncio.sleep(0.05)
        session._task, session._drawn = Mock(**{"done.return_value": False}), False
        known = {model.id for model in document.models}
        show = Page.show_work.__wrapped__ if fault else Page.show_work
        for share in (None, 0.5):
            show(session, "answers", share)
        await asyncio.sleep(0.05)
        early = {model.id for model in document.models} - known
        session.later(lambda: session.status.say("late"), 0.0)
        await asyncio.sleep(0.05)
        said = [session.status.object]
        await session._loaded()
        said.append(session.status.object)
        return early, said, session.bar.value, session.work.visible

    early, said, value, visible = asyncio.run(live())
    assert bool(early) == fault and said == ["", "late"] and value == 50 and visible


@pytest.mark.slow
def test_the_formula_of_the_target_follows_the_temperature():
    """Fails where a page keeps the formula of the temperature before."""

    async def live():
        session, document, connection = opened("?target=banana&temperature=0.25&play=0")
        for temperature in (0.25, 4, 1):
            session.state.set_temperature(temperature)
            session._refresh_cards()
            parts = session._formulas[0].select(lambda one: hasattr(one, "object"))
            formula = next(str(part.object) for part in parts if "$$" in str(part.object))
            assert (f"T = {temperature:g}" in formula) == (temperature != 1)
            of_card = session._formulas[0][-1].object
            assert ("Distribution at T = 1<" in of_card) == (temperature != 1)
        document.destroy(connection)

    asyncio.run(live())

"""The page as a Bokeh document: small, with its figures outside it."""

import asyncio
import copy
import gc
from unittest.mock import patch

import numpy as np
import pytest
from bokeh.document import Document
from bokeh.models import ImportedStyleSheet, Plot
from panel.io.resources import CDN_DIST
from panel.io.state import set_curdoc

from sgmcmc_lab.app.page.shell import Page, page
from sgmcmc_lab.app.views import VIEWS, base
from tests.helpers.checks_views import frames, records, scene_of

PAGES = ["", "?target=topics(corpus:bars)", "?lesson=langevin&step=2&theme=dark"]
MOST_MODELS = 170
"""The most models of the opening page, which has some 110."""


def page_for(query):
    """The document of a page as the server makes one, whose figures are built."""

    async def made():
        document = Document()
        with (
            set_curdoc(document),
            patch.object(Page, "query", return_value=query),
            patch.object(Page, "begin_with_the_page", autospec=True) as begin,
        ):
            page().server_doc(document)
            [[opened]] = [call.args for call in begin.call_args_list]
            await opened.runner.build_views()
        return document

    return asyncio.run(made())


def styles_elsewhere(document):
    return {one.url for one in document.models if isinstance(one, ImportedStyleSheet) and "//" in one.url}


@pytest.mark.slow
def test_no_style_is_of_another_host(monkeypatch):
    """Even if no HTML was written. Planted fault: the path of the styles is not set."""
    assert styles_elsewhere(page_for(PAGES[-1])) == set()
    monkeypatch.setattr("sgmcmc_lab.app.page.shell.get_dist_path", lambda: CDN_DIST)
    assert f"{CDN_DIST}css/loading.css" in {url.partition("?")[0] for url in styles_elsewhere(page_for(PAGES[-1]))}


@pytest.mark.slow
@pytest.mark.parametrize("query", PAGES)
def test_a_page_has_few_models_and_no_figure(query):
    """Fails where a page begins with parts that are not visible yet, or with figures: each model costs the server a
    millisecond or more when the page opens.
    """
    models = page_for(query).models
    assert not [one for one in models if isinstance(one, Plot)]
    assert len(models) <= (MOST_MODELS if not query else 2 * MOST_MODELS)


MOST_HELD = 25_000
"""Objects that a page with two lanes and three views may hold; it holds some 21,400, and with figures of its own more
than 30,000."""
WORKING = "?lane=sgld&lane=hmc&views=state,ks,trace"


def held():
    """The number of objects that a page holds, after a first page has filled the caches of classes and figures."""
    page_for(WORKING)
    gc.collect()
    before = len(gc.get_objects())
    document = page_for(WORKING)
    gc.collect()
    found = len(gc.get_objects()) - before
    assert document.roots
    return found


@pytest.mark.slow
def test_a_page_holds_no_more_than_it_needs(monkeypatch):
    """Fails where a page grows. Planted fault: every page has models of figures of its own."""
    assert held() < MOST_HELD
    monkeypatch.setattr(base.View, "made", classmethod(lambda cls, scene, before=None: cls(scene, before)))
    assert held() > MOST_HELD


def shared_all(view, memo):
    return view


@pytest.mark.slow
@pytest.mark.parametrize("fault", [False, True])
@pytest.mark.parametrize("key", ["state", "marginal", "ks", "trace", "energy"])
def test_pages_share_the_figure_of_a_view_and_nothing_that_moves(key, fault, monkeypatch):
    """Fails where the second page of a scene shows what the first one drew. Planted fault: they share the view."""
    made = records("double_well", ["sgld"], n_steps=200)
    scene = scene_of(made)
    first = VIEWS[key].made(scene)
    if fault:
        monkeypatch.setattr(base, "deepcopy", shared_all)
        monkeypatch.setattr(copy, "deepcopy", shared_all)
    first = VIEWS[key].made(scene)
    first.compute(frames(made))
    second, alone = VIEWS[key].made(scene), VIEWS[key](scene)
    assert second.figure is first.figure and second.document is first.document
    assert (second is first) == fault
    assert [feed.columns for feed in second.feeds.values()] == [feed.columns for feed in alone.feeds.values()]
    if not fault:
        ours, theirs = second.compute(frames(made)), alone.compute(frames(made))
        assert ours.keys() == theirs.keys()
        for name, columns in ours.items():
            for one, other in zip(columns, theirs[name], strict=True):
                np.testing.assert_array_equal(one, other)

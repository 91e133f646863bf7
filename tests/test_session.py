"""The life of a page on the server, without a browser."""

import asyncio
import gc
import weakref
from unittest.mock import Mock

import panel as pn
import param
import pytest
from bokeh.document import Document
from panel.io.state import set_curdoc

from app.shell import Page
from app.study.shell import StudyPage


def over(kind, fault):
    """A page that has ended as the server ends one."""

    async def live():
        document, connection = Document(), Mock()
        document.on_change_dispatch_to(connection)
        with set_curdoc(document):
            session = kind()
            session.page.server_doc(document)
        if fault:
            with param.edit_constant(session.page):
                session.page.busy = pn.state.param.busy
        for callback in document.session_destroyed_callbacks:
            callback(Mock(_document=document))
        document.destroy(connection)
        return weakref.ref(session.page)

    return asyncio.run(live())


@pytest.mark.parametrize("kind", [Page, StudyPage])
def test_a_page_that_is_over_is_gone(kind):
    """Fails where something keeps a page that has ended: each would leave 3 MB, and the collector looks at all of it.

    Planted fault: a page that is busy where Panel is, as the library makes it; Panel's list of watchers keeps it.
    """
    page, kept = over(kind, fault=False), over(kind, fault=True)
    gc.collect()
    assert page() is None
    assert kept() is not None

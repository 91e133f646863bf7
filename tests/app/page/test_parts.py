"""A page is made in parts, of which no browser sees some alone."""

import asyncio
import re
from contextlib import nullcontext
from functools import partial
from itertools import pairwise
from unittest.mock import patch

import panel as pn
import pytest
from bokeh.document import Document
from panel.io.state import set_curdoc

from sgmcmc_lab.app.page import parts
from sgmcmc_lab.app.page.shell import Page

PAGES = [
    "",
    "?lesson=langevin&step=2&theme=dark",
    "?target=topics(corpus:bars)",
    "?target=banana&lane=sgld&lane=hmc&present=1&hide=transport,export",
    "?target=quartic&hide=controls,share,lessons,theme,present,export",
]
MOST_MODELS = 40
"""The most models of a part after the first: each costs the loop 5 ms."""
IDENTITY = re.compile(r"\b(p\d+)'|(?<=[A-Za-z])\d{5,}")
"""A model's identity, and the number in the name that Panel gives it."""


def made(query, apart=True):
    """The document of a page as text, with the models' numbers in their order; and how many there were before each
    part.
    """
    document, before = Document(), []

    async def make():
        with set_curdoc(document), patch.object(Page, "query", return_value=query):
            with patch.object(Page, "begin_with_the_page"), parts.in_parts() if apart else nullcontext() as left:
                page = Page()
                page.page.server_doc(document)

            async def between():
                before.append(len(list(document.models)))

            if apart:
                await left.make(between)

    asyncio.run(make())
    numbers = {}

    def number(found):
        return f"p{numbers.setdefault(found[1], len(numbers))}'" if found[1] else ""

    return IDENTITY.sub(number, str(document.to_json())), before


@pytest.mark.slow
@pytest.mark.parametrize("query", PAGES)
def test_a_page_in_parts_is_the_page(query):
    """To the last property, in the order of its parts. Fails where one is left out, or comes to another place."""
    apart, before = made(query)
    whole, none = made(query, apart=False)
    assert apart == whole and not none
    assert max(after - models for models, after in pairwise(before)) <= MOST_MODELS


def test_a_part_comes_to_no_place_that_another_one_has_filled():
    """Controls are made anew while the page is: for another experiment. Fault: the parts of before come after them."""
    # No part but one of a single child has more than ten objects.
    groups = [pn.Column(*"xyz"), pn.Column(*"xyzxyz"), *"ab", pn.Column(*"xyzxyzxyzxyz"), "c"]
    place = pn.Column(*groups)
    first, second, third, fourth = parts.taken_out(place, "objects")
    assert not len(place)
    for part, there in ((first, 1), (second, 4), (third, 5), (fourth, 6)):
        part()
        assert len(place) == there
    first, second, third, _ = parts.taken_out(place, "objects")
    first()
    place.objects = ["x", "y"]
    for part in (second, third):
        part()
    assert [one.object for one in place] == ["x", "y"]
    assert parts.taken_out(pn.Column(), "objects") == []


def test_a_part_that_fails_leaves_no_connection_waiting(caplog):
    """It is said on the page and in the log, and the page has the others. Fault: the page is never whole."""
    document, made = Document(), []

    async def make():
        with set_curdoc(document), parts.in_parts() as left:
            parts.do(lambda: 1 / 0)
            parts.keep(
                lambda: [partial(made.append, 1), lambda: 1 / 0, partial(made.append, 2)], lambda: made.append("failed")
            )
        await asyncio.gather(left.make(partial(asyncio.sleep, 0)), asyncio.wait_for(parts.whole(document), 60))

    asyncio.run(make())
    assert made == ["failed", 1, "failed", 2] and caplog.text.count("ZeroDivisionError: ") == 2

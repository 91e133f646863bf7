"""The common fixtures of all browser tests: a headless Chromium, empty pages, and what goes wrong in them."""

import os
from collections import defaultdict
from functools import partial
from types import SimpleNamespace

import pytest
from playwright.sync_api import sync_playwright

from sgmcmc_lab.lessons.library import VARIABLE
from tests import browser
from tests.browser.lab import Lab

PASSED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Keep whether a test passed, for the page that it leaves to the next."""
    report = yield
    if call.when == "call":
        item.stash[PASSED] = report.passed
    return report


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """As everywhere, with a teacher's folder ``server.lessons``, which is read again whenever a page is opened."""
    folder = tmp_path_factory.mktemp("lessons")
    with browser.serve(tmp_path_factory.mktemp("server"), environment={VARIABLE: str(folder)}) as running:
        running.lessons = folder
        yield running


@pytest.fixture(scope="module")
def chromium():
    """The browser, headless and with the network cut off. Skips where there is none; in CI that is a failure.

    It ends with its module: with ``pytest -n`` other tests follow in the same process.
    """
    path = browser.find_chromium()
    if path is None:
        wanted = os.environ.get("CHROMIUM")
        reason = f"CHROMIUM={wanted} is no program" if wanted else f"none of {', '.join(browser.BROWSERS)} is installed"
        if browser.in_ci():
            pytest.fail(f"{reason}, and CI runs all tests")
        pytest.skip(reason)
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, headless=True, args=browser.arguments())
        yield found
        found.close()


@pytest.fixture
def page_log():
    """The errors of the pages that it watches, and their requests to other machines: none when the test ends."""
    log = browser.PageLog()
    yield log
    assert not log.errors, log.errors
    assert not log.outside, log.outside


@pytest.fixture
def new_page(chromium, page_log):
    """``new_page(**options)``: an empty page in a context of its own. Open the app in it with ``browser.open_app``."""
    contexts = []

    def make(**options):
        contexts.append(browser.new_context(chromium, **options))
        opened = contexts[-1].new_page()
        page_log.watch(opened)
        return opened

    yield make
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def kept():
    """The page that the tests of a module have one after the other, and the link at which one of them left it."""
    return SimpleNamespace(page=None, link=None)


@pytest.fixture
def _watched(chromium, page_log, kept):
    """That page, of 1280 × 720. The functions that its process has compiled serve the next test, which opens a third
    sooner.
    """
    if kept.page is None or kept.page.is_closed():
        kept.page, kept.link = browser.new_context(chromium).new_page(), None
    page_log.watch(kept.page)
    yield kept.page
    page_log.forget(kept.page)


def _empty(kept):
    kept.link = None
    if not kept.page.is_closed():
        kept.page.goto("about:blank")
        kept.page.context.clear_cookies()
        _as_new(kept.page)


def _as_new(page, viewport=browser.VIEWPORT, color_scheme="light", reduced_motion="no-preference"):
    """Its size and its media are those of a new page, or as asked for."""
    page.set_viewport_size(viewport)
    page.emulate_media(media="null", color_scheme=color_scheme, reduced_motion=reduced_motion, forced_colors="null")


@pytest.fixture
def page(_watched, kept):
    """An empty page."""
    if kept.link is not None:
        _empty(kept)
    yield kept.page
    _empty(kept)


@pytest.fixture
def walk(_watched, kept, server, request):
    """``walk(query)``: the app, where the test before has left it, if that walked at the same link and passed.

    To open it takes longer than most of what is done there. Each test can also be run by itself.
    """

    def go_on(query="", kind=Lab):
        lab = kind(kept.page, server)
        if kept.link != query:
            if kept.link is not None:
                _empty(kept)
            lab.open(query)
            kept.link = query
        return lab

    yield go_on
    if not request.node.stash.get(PASSED, False):
        _empty(kept)


@pytest.fixture(scope="module")
def _spare():
    """The empty pages that tests of a module have left, by their options."""
    return defaultdict(list)


@pytest.fixture
def kept_page(chromium, page_log, _spare, request):
    """``kept_page(**options)``: an empty page, which a test before may have had, for a test that needs no process of
    its own: what one has compiled opens the next page in a third of the time.
    """
    taken = []

    def take(*, viewport=browser.VIEWPORT, color_scheme="light", reduced_motion="no-preference", **options):
        pages = _spare[repr(options)]
        page = pages.pop() if pages else browser.new_context(chromium, **options).new_page()
        taken.append((page, pages))
        _as_new(page, viewport, color_scheme, reduced_motion)
        page_log.watch(page)
        return page

    yield take
    passed = request.node.stash.get(PASSED, False)
    for page, pages in taken:
        page_log.forget(page)
        if passed and not page.is_closed():
            page.evaluate(
                "location.protocol === 'about:' || [localStorage, sessionStorage].forEach((one) => one.clear())"
            )
            page.goto("about:blank")
            page.context.clear_cookies()
            pages.append(page)
        else:
            page.context.close()


@pytest.fixture
def phone(kept_page):
    """An empty page of 390 × 844 that is touched, and that draws as often as a person's does."""
    return kept_page(often=True, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)


@pytest.fixture
def opened(kept_page, tmp_path):
    """Opens a text as a file; the page stands still at first where ``still``."""

    def open_file(text, *, still=False, size=(1280, 720), fragment="", theme="light"):
        motion = "reduce" if still else "no-preference"
        viewport = {"width": size[0], "height": size[1]}
        page = kept_page(often=True, viewport=viewport, color_scheme=theme, reduced_motion=motion)
        page.wait_for_function = partial(browser.until, page)
        file = tmp_path / "live.html"
        file.write_text(text, encoding="utf-8")
        page.goto(file.as_uri() + fragment)
        return page

    return open_file

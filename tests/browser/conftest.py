"""What all browser tests share: a headless Chromium, empty pages, and what goes wrong in them."""

import os

import pytest
from playwright.sync_api import sync_playwright

from tests import browser


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
    """The page that the tests of a module have one after the other."""
    return []


@pytest.fixture
def page(chromium, page_log, kept):
    """An empty page of 1280 × 720. What its process has compiled serves the next test, which opens a third sooner."""
    if not kept or kept[0].is_closed():
        kept[:] = [browser.new_context(chromium).new_page()]
    page_log.watch(kept[0])
    yield kept[0]
    page_log.forget(kept[0])
    if not kept[0].is_closed():
        kept[0].goto("about:blank")
        kept[0].context.clear_cookies()


@pytest.fixture
def phone(new_page):
    """An empty page of 390 × 844 that is touched, and that draws as often as a person's does."""
    return new_page(often=True, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)

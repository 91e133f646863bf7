"""What all tests share: a fresh cache of compiled functions, a headless Chromium, the served app.

The first lines run before any test module is imported, and so before Numba reads where its cache is.
"""

import os
import shutil
import tempfile
from pathlib import Path

# A cache from an older run may hold a function whose helpers have changed since. SGMCMC_LAB_TEST_CACHE names a
# folder to keep between runs, which saves the compile time while nothing but tests are edited. The processes of
# ``pytest -n`` share the folder of the one that started them.
_WORKER = "PYTEST_XDIST_WORKER" in os.environ
_KEPT = os.environ.get("SGMCMC_LAB_CACHE" if _WORKER else "SGMCMC_LAB_TEST_CACHE")
_CACHE = Path(_KEPT or tempfile.mkdtemp(prefix="sgmcmc-lab-tests-"))
os.environ["SGMCMC_LAB_CACHE"] = str(_CACHE)

import hypothesis  # noqa: E402
import pytest  # noqa: E402

# The same examples in every run, and no deadline: a first call may compile.
hypothesis.settings.register_profile("sgmcmc-lab", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("sgmcmc-lab")


def pytest_unconfigure():
    """Remove the session's cache."""
    if not _KEPT:
        shutil.rmtree(_CACHE, ignore_errors=True)


def pytest_collection_modifyitems(items):
    """Mark the browser tests, and run them last; with ``pytest -n`` first, in one process, and the others beside them.

    Playwright's sync API keeps an event loop running in this thread, in which no test could call ``asyncio.run``.
    """
    for item in items:
        if "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.xdist_group("browser"))
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None, reverse=_WORKER)


@pytest.fixture(scope="session")
def compile_cache() -> Path:
    """Where this session's compiled functions are."""
    return _CACHE


@pytest.fixture(scope="module")
def chromium():
    """The browser, headless and with the network cut off. Skips where there is none; in CI that is a failure.

    It ends with its module: with ``pytest -n`` other tests follow in the same process.
    """
    from playwright.sync_api import sync_playwright

    from tests import browser

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


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """``panel serve app`` on a free port: ``server.url``, ``server.log``, ``server.process``."""
    from tests import browser

    with browser.serve(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def page_log():
    """The errors of the page, and its requests to other machines; both must be empty when the test ends."""
    from tests.browser import PageLog

    return PageLog()


@pytest.fixture
def page(chromium, page_log):
    """An empty page of 1280 × 720 in a context of its own. Open the app in it with ``browser.open_app``."""
    from tests.browser import VIEWPORT

    context = chromium.new_context(viewport=VIEWPORT)
    context.set_default_timeout(30_000)
    opened = context.new_page()
    page_log.watch(opened)
    yield opened
    context.close()
    assert not page_log.errors, page_log.errors
    assert not page_log.outside, page_log.outside

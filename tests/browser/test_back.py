"""A page comes back to the same experiment: after the server or the network failed, and with Back and Forward."""

import os
import signal
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Error

from tests.browser import LIGHT_PAGE, new_context, open_app, serve
from tests.browser.lab import Lab, wait_until
from tests.browser.wire import wire

LESSON = "?lesson=langevin&step=2"


def opened(lab):
    """When the browser opened the document: another number where it has loaded it again."""
    return evaluate(lab, "performance.timeOrigin")


def fields(lab):
    return parse_qs(urlsplit(evaluate(lab, "location.href")).query)


def evaluate(lab, script):
    """The result of a script; it fails while the document is being replaced."""
    try:
        return lab.page.evaluate(script)
    except Error as error:
        raise LookupError from error


def banner(page, shown):
    state = "visible" if shown else "hidden"
    page.locator(".lost").wait_for(state=state)
    return page.locator(".lost").inner_text()


@pytest.fixture
def tabs(chromium):
    """Two tabs of one browser. Requests fail while there is no server, and the browser says so."""
    context = new_context(chromium)
    yield context.new_page(), context.new_page()
    context.close()


def test_pages_come_back_after_the_server_was_killed(tabs, tmp_path):
    """Fails where a page stays dead, comes back with another state, or does not say what happens."""
    with serve(tmp_path) as first:
        one, other = Lab(tabs[0], first), Lab(tabs[1], first)
        one.open(
            "?target=typed(energy:theta^4/4-theta;extent:4.0)&lane=sgld(step_size:0.03)~full&seed=77&theme=dark&play=0"
        )
        other.open(LESSON + "&answers=1.0")
        before = []
        for lab in (one, other):
            wait_until(lambda lab=lab: "views" in fields(lab), "the whole state in the address")
            before.append((fields(lab), opened(lab)))
        os.killpg(first.process.pid, signal.SIGKILL)
        for lab in (one, other):
            assert "does not answer" in banner(lab.page, shown=True)
    with serve(tmp_path, port=first.port):
        for lab, (state, earlier) in zip((one, other), before, strict=True):
            wait_until(lambda lab=lab, earlier=earlier: opened(lab) != earlier, "the page, opened again")
            wait_until(lambda lab=lab: "views" in fields(lab) and lab.page.locator(".bk-Figure").count(), "figures")
            assert fields(lab) == state
            banner(lab.page, shown=False)


@pytest.fixture(scope="module")
def far(chromium, tmp_path_factory):
    """A page whose server is behind a wire, and both: each test leaves the three whole."""
    folder = tmp_path_factory.mktemp("far")
    context = new_context(chromium)
    with wire() as between, serve(folder, "--allow-websocket-origin", f"localhost:{between.port}") as server:
        between.target, server.port = server.port, between.port
        lab = Lab(context.new_page(), server).open(f"{LIGHT_PAGE}&seed=12")
        yield lab, server, between
        context.close()


def test_a_server_that_stood_still_goes_on_with_the_same_session(far):
    """Fails where a page is silent while nothing moves, or gives up a session that is still there."""
    lab, server, _ = far
    lab.moves()
    earlier = opened(lab)
    os.killpg(server.process.pid, signal.SIGSTOP)
    try:
        assert "does not answer" in banner(lab.page, shown=True)
    finally:
        os.killpg(server.process.pid, signal.SIGCONT)
    banner(lab.page, shown=False)
    lab.moves()
    assert opened(lab) == earlier


def covers(page):
    """Whether the banner lies over the header, or the page no longer ends where the window does."""
    strip, header, main = (page.locator(one).bounding_box() for one in (".lost", "header", ".main-content"))
    ends = main["y"] + main["height"]
    height = page.viewport_size["height"]
    return header["y"] < strip["y"] + strip["height"] - 0.5 or not height - 8 <= ends <= height


def test_the_banner_covers_nothing(far):
    """Fails where it hides a lesson's heading or the ways on. Fault: the page does not make room for it."""
    lab, server, _ = far
    page = lab.page
    before = page.viewport_size
    os.killpg(server.process.pid, signal.SIGSTOP)
    try:
        banner(page, shown=True)
        for width, height in ((1280, 720), (390, 844)):
            page.set_viewport_size({"width": width, "height": height})
            wait_until(lambda: not covers(page), f"room for the banner at {width} × {height}")
            page.evaluate("document.documentElement.style.setProperty('--lost', '0px')")
            assert covers(page)
    finally:
        os.killpg(server.process.pid, signal.SIGCONT)
        page.set_viewport_size(before)
    banner(page, shown=False)
    wait_until(lambda: page.locator("header").bounding_box()["y"] == 0, "the header at the top again")


def test_a_network_that_stood_still_goes_on_with_the_same_session(far):
    """Fails where a page says nothing of what does not arrive, or gives up a session that is still there."""
    lab, _, between = far
    lab.moves()
    earlier = opened(lab)
    between.stall()
    try:
        assert "does not answer" in banner(lab.page, shown=True)
    finally:
        between.mend()
    banner(lab.page, shown=False)
    lab.moves()
    assert opened(lab) == earlier


def comes_back(lab, state, earlier):
    """Wait until the page was opened again, whole, and hold it against its state before."""
    wait_until(lambda: opened(lab) != earlier, "the page, opened again")
    wait_until(lambda: "views" in fields(lab) and lab.page.locator(".bk-Figure").count(), "figures")
    assert fields(lab) == state
    banner(lab.page, shown=False)


def test_a_network_that_is_cut_and_mended_brings_the_page_back(far):
    """Fails where a page whose connection was closed does not say so, or comes back with another state."""
    lab, _, between = far
    wait_until(lambda: "views" in fields(lab), "the whole state in the address")
    state, earlier = fields(lab), opened(lab)
    between.cut()
    try:
        assert "does not answer" in banner(lab.page, shown=True)
    finally:
        between.mend()
    comes_back(lab, state, earlier)


def test_a_machine_that_slept_comes_back(far):
    """Fails where a page goes on waiting on a connection whose other end is gone, of which nobody told it."""
    lab, _, between = far
    lab.moves()
    state, earlier = fields(lab), opened(lab)
    between.forget()
    lab.page.evaluate("const now = Date.now; Date.now = () => now() + 3_600_000")
    comes_back(lab, state, earlier)


def test_back_and_forward_apply_what_the_address_says(page, server):
    """Fails where each change is an entry of the history, or where Back changes the address and not the page."""
    open_app(page, server, "?lesson=langevin&step=1")
    lab = Lab(page, server)

    def step(number):
        wait_until(lambda: fields(lab).get("step") == [str(number)] and "views" in fields(lab), f"step {number}")
        page.get_by_text(f"step {number} of").first.wait_for()

    step(1)
    entries = page.evaluate("history.length")
    page.get_by_role("button", name="Next", exact=True).click()
    step(2)
    assert page.evaluate("history.length") == entries + 1
    page.go_back()
    step(1)
    page.go_forward()
    step(2)
    entries = page.evaluate("history.length")
    page.get_by_role("button", name=r"Toggle dark mode").or_(page.locator("[aria-label*='theme' i]")).first.click()
    wait_until(lambda: fields(lab)["theme"] == ["dark"], "the dark theme in the address")
    assert page.evaluate("history.length") == entries

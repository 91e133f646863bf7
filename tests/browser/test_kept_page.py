"""The page that tests have one after the other: each finds it as a new one is."""

import pytest

STATE = """() => [localStorage.length + sessionStorage.length, innerWidth, matchMedia("(prefers-color-scheme: dark)").matches,
  document.cookie, typeof left]"""


@pytest.fixture(scope="module")
def had():
    """The pages of the tests before."""
    return []


@pytest.mark.parametrize("nth", [1, 2])
def test_nothing_of_the_test_before_is_left(kept_page, server, had, nth):
    """The second test finds the page of the first, without what that one stored and set."""
    page = kept_page()
    page.goto(f"{server.url.removesuffix('app')}static/js/bokeh.min.js")
    assert page.evaluate(STATE) == [0, 1280, False, "", "undefined"]
    page.evaluate("localStorage.a = sessionStorage.b = window.left = 1; document.cookie = 'c=1'")
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(STATE) == [2, 390, True, "c=1", "number"]
    assert had in ([], [page])
    had.append(page)


SCREEN = """() => [innerWidth, ...["(prefers-color-scheme: dark)", "(prefers-reduced-motion)", "print", "(forced-colors: active)"].map(
  (one) => matchMedia(one).matches)]"""


@pytest.mark.parametrize("nth", [1, 2])
def test_an_empty_page_has_the_size_and_the_media_of_a_new_one(page, nth):
    """Fails where the second test has the telephone, the sheet or the colours of the first."""
    assert page.evaluate(SCREEN) == [1280, False, False, False, False]
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(media="print", color_scheme="dark", reduced_motion="reduce", forced_colors="active")
    assert page.evaluate(SCREEN) == [390, True, True, True, True]

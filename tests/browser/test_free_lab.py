"""The free lab of a course: a page of all densities, whose files it loads from its folder, also without a network."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from unittest import mock

import pytest

from sgmcmc_lab.app.live_page import free, site, write_site
from sgmcmc_lab.samplers import Experiment
from tests.browser.live import MOVES, few_figures, paused, same_as_python

DENSITIES = ("gaussian", "double_well")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A course without lessons, and with two densities."""
    made = tmp_path_factory.mktemp("site")
    with (
        few_figures("marginal", "ks"),
        mock.patch.object(free, "densities", return_value=DENSITIES),
        mock.patch.object(site, "_workers", return_value=ThreadPoolExecutor(1)),
    ):
        assert write_site([], made, lambda *_: None) == []
    return made


def moves(page):
    page.wait_for_function(MOVES)
    paused(page)


def said(page):
    return page.locator("#problem").inner_text()


def test_every_density_of_the_menu_is_drawn_as_python_draws_it(new_page, folder):
    """From a disk; with another sampler and gradient. Planted fault: the draws of the sampler's own gradient differ."""
    page = new_page(bypass_csp=True)
    page.goto((folder / free.PAGE).as_uri())
    moves(page)
    assert same_as_python(free.experiment("gaussian"), page) == []
    page.locator("#kind-0").select_option("nuts")
    page.locator("#gradient-1").select_option("gaussian")
    page.locator("#play").click()
    moves(page)
    lanes = [{"sampler": "nuts"}, {"sampler": "sghmc", "gradient": "gaussian"}]
    chosen = Experiment.from_dict({"target": "gaussian", "lanes": lanes})
    assert same_as_python(chosen, page) == []
    lanes[1]["gradient"] = "full"
    assert same_as_python(Experiment.from_dict({"target": "gaussian", "lanes": lanes}), page)
    page.locator("#density").select_option("double_well")
    page.wait_for_function(
        "document.querySelector('[data-step=\"2\"]').checkVisibility() && location.hash.includes('target=double_well')"
    )
    page.locator("#play").click()
    moves(page)
    assert same_as_python(free.experiment("double_well"), page) == []


def test_a_link_of_the_lab_opens_there(new_page, folder):
    """With # for ?. Planted fault: the link has a step size that the page must not miss."""
    lanes = [
        {"sampler": {"key": "sgld", "params": {"step_size": 0.02}}, "gradient": "gaussian"},
        {"sampler": "recipe"},
    ]
    wanted = Experiment.from_dict({"target": "double_well", "lanes": lanes, "seed": 9, "n_chains": 7})
    page = new_page(bypass_csp=True)
    page.goto(f"{(folder / free.PAGE).as_uri()}#{wanted.to_query()}&views=marginal,ks&speed=50")
    moves(page)
    assert said(page) == ""
    assert same_as_python(wanted, page) == []
    lanes[0]["sampler"]["params"]["step_size"] = 0.021
    assert same_as_python(Experiment.from_dict({**wanted.to_dict(), "lanes": lanes}), page)


def test_a_density_whose_file_is_missing_is_said(new_page, folder, tmp_path, page_log):
    """The one before it goes on."""
    for path in folder.iterdir():
        if not path.name.startswith("double-well-"):
            (tmp_path / path.name).write_bytes(path.read_bytes())
    page = new_page(bypass_csp=True)
    page.goto((tmp_path / free.PAGE).as_uri())
    page.wait_for_function(MOVES)
    page.locator("#density").select_option("double_well")
    page.wait_for_function("document.getElementById('problem').textContent")
    assert "double-well-" in said(page) and "Choose another one." in said(page)
    assert page.locator("#density").input_value() == "gaussian"
    before = int(page.locator("#steps").inner_text().replace(",", ""))
    page.wait_for_function(f"Number(document.getElementById('steps').textContent.replace(',', '')) > {before}")
    # The browser's own words about the file.
    (error,) = page_log.errors
    assert "ERR_FILE_NOT_FOUND" in error
    page_log.errors.clear()
    first = new_page(bypass_csp=True)
    first.goto(f"{(tmp_path / free.PAGE).as_uri()}#target=double_well")
    first.wait_for_function("document.getElementById('problem').textContent")
    assert not first.locator("#lab").is_visible()
    first.locator("#density").select_option("gaussian")
    moves(first)
    assert said(first) == ""
    page_log.errors.clear()


@contextmanager
def served(folder):
    quiet = type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(quiet, directory=str(folder)))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("kept", [True, False])
def test_a_course_that_is_kept_opens_without_its_server(new_page, folder, kept):
    """Every page and density. Planted fault: a course that nobody keeps does not."""
    page = new_page(bypass_csp=True)
    with served(folder) as server:
        address = f"http://localhost:{server.server_port}"
        page.goto(address)
        if kept:
            page.locator("#keep").click()
            page.wait_for_function(
                "document.getElementById('kept').textContent.includes('also opens without a network')"
            )
            assert page.evaluate("document.querySelector('link[rel=manifest]').href").endswith(site.MANIFEST)
    if not kept:
        with pytest.raises(Exception, match="ERR_CONNECTION_REFUSED"):
            page.goto(f"{address}/{free.PAGE}")
        return
    page.goto(address)
    # Without the server there is nothing new to keep, and what is kept stays.
    page.locator("#keep").click()
    page.wait_for_function("document.getElementById('kept').textContent.includes('could not save')")
    page.goto(f"{address}/{free.address('double_well')}")
    moves(page)
    assert same_as_python(free.experiment("double_well"), page) == []

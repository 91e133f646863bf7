"""The common part of tests of live pages."""

import gzip
import json
import re
from base64 import b64decode, b64encode
from contextlib import ExitStack, contextmanager
from unittest import mock

import numpy as np

from sgmcmc_lab.app.live_page import document
from sgmcmc_lab.samplers import Run
from sgmcmc_lab.samplers.diagnostics import ks
from sgmcmc_lab.samplers.running_statistics import bin_edges
from tests.browser import numbers

CURRENT = "document.documentElement.dataset.current === 'true'"
"""Figures and captions are those of the controls."""
ENSEMBLES = ("moments", "mgf")
"""Views that show many chains beside the lanes: their pictures go by how long they had."""
MOVES = f"{CURRENT} && Number(document.documentElement.dataset.frames) > 2"
STILL = "document.documentElement.dataset.playing === 'false'"
SETTLED = f"{STILL} && {CURRENT}"
SOURCES = """(feeds) => {
  const find = (id) => Bokeh.documents.map((one) => one.get_model_by_id(id)).find((one) => one)
  const read = ([id, columns]) => { const model = find(id); return model.data ? columns.map((name) => [...model.data[name]]) : [[model.start, model.end]] }
  return Object.fromEntries(Object.entries(feeds).map(([name, feed]) => [name, read(feed)]))
}"""


HELD = """globalThis.experiments?.[document.getElementById("density")?.value]?.[0]
  ?? document.getElementById("page").textContent"""
PAGE = re.compile(r'(id="page">)(.*?)(</script>)', re.DOTALL)


@contextmanager
def few_figures(*views, stops=False):
    """Files with these views, or all, and without stops of the target's sliders: figures take most of the making."""
    with ExitStack() as patches:
        if views:
            patches.enter_context(mock.patch.object(document, "LIVE", views))
        if not stops:
            patches.enter_context(mock.patch.object(document, "_stops", return_value={}))
        yield


def pages_of(text):
    """Everything that a file holds beside compiled functions."""
    return _unpacked(PAGE.search(text)[2])


def first_step(page):
    """The first step of a page's file, or of the file of the density that it shows, with its views in their places."""
    return step_of(_unpacked(page.evaluate(HELD)))


def step_of(held):
    """The first step of a file's contents, with its views in their places."""
    step = held["steps"][0]
    for figures in step["figures"].values():
        figures["views"] = {key: held["views"][place] for key, place in figures["views"].items()}
    return step


def _unpacked(text):
    return json.loads(gzip.decompress(b64decode(text)))


def feeds(step, key):
    """The feeds of a view, as a file's step has them."""
    return step["figures"][str(len(step["lanes"]))]["views"][key]["feeds"]


def sources(page, of):
    """The arrays of these feeds in a page."""
    return numbers(page, SOURCES, {name: [feed["id"], feed["columns"]] for name, feed in of.items()})


def with_pages(text, pages):
    """The file with other content."""
    packed = b64encode(gzip.compress(json.dumps(pages).encode())).decode()
    return PAGE.sub(lambda found: found[1] + packed + found[3], text)


def steps(page):
    return int(page.locator("#steps").inner_text().replace(",", ""))


def paused(page):
    """Stop it, and wait until all that was on the way has been drawn."""
    page.locator("#play").click()
    page.wait_for_function(SETTLED)
    return steps(page)


def same_as_python(experiment, page):
    """How a paused page's arrays and captions differ from those of Python's runs of so many steps; empty where not."""
    n = steps(page)
    step = first_step(page)
    step["lanes"] = list(range(len(experiment.lanes)))
    shown, out = sources(page, feeds(step, "marginal")), []
    curves, captions = sources(page, feeds(step, "ks")), page.locator("#caption-ks li").all_inner_texts()
    for i, spec in enumerate(experiment.runs()):
        run = Run(spec)
        run.advance(n)
        centres, density = map(np.array, shown[f"lane {i}"])
        edges = bin_edges(run.target.columns[0])
        width = np.diff(centres).mean()
        places = np.searchsorted(edges, [centres - width / 2 - 1e-9, centres + width / 2 - 1e-9])
        if places.max() == len(edges):
            out.append(f"bars of lane {i}, beyond the bins")
            continue
        below = np.concatenate([[0], np.cumsum(run.statistics.counts(0))])[1:]
        expected = (below[places[1]] - below[places[0]]) / (run.statistics.total * np.diff(edges[places], axis=0)[0])
        inner = slice(2, -2)
        if not np.allclose(density[inner], expected[inner], rtol=1e-9):
            out.append(f"marginal of lane {i}")
        distance = ks.mean_distance(run.statistics, run.target)
        if not np.isclose(curves[f"lane {i}"][1][-1], distance, rtol=1e-9):
            out.append(f"KS of lane {i}")
        if f"KS {distance:.3g}" not in captions[i]:
            out.append(f"caption of lane {i}: {captions[i]}, not {distance:.3g}")
    return out

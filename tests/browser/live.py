"""What tests of live pages share."""

import gzip
import json
import re
from base64 import b64decode, b64encode

CURRENT = "document.documentElement.dataset.current === 'true'"
"""Figures and captions are those of the controls."""
ENSEMBLES = ("moments", "mgf")
"""Views that show many chains beside the lanes: their pictures go by how long they had."""
MOVES = f"{CURRENT} && Number(document.documentElement.dataset.frames) > 2"
STILL = "document.documentElement.dataset.playing === 'false'"
SETTLED = f"{STILL} && {CURRENT}"
SOURCES = """([key, page]) => {
  const find = (id) => Bokeh.documents.map((one) => one.get_model_by_id(id)).find((one) => one)
  const read = ({ id, columns }) => { const model = find(id); return model.data ? columns.map((name) => [...model.data[name]]) : [[model.start, model.end]] }
  return Object.fromEntries(Object.entries(page.figures[page.lanes.length].views[key].feeds).map(([name, feed]) => [name, read(feed)]))
}"""


PAGE = re.compile(r'(id="page">)(.*?)(</script>)', re.DOTALL)


def pages_of(text):
    """Everything that a file holds beside compiled functions."""
    return json.loads(gzip.decompress(b64decode(PAGE.search(text)[2])))


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

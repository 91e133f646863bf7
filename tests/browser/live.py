"""What tests of live pages share."""

MOVES = "Number(document.documentElement.dataset.frames) > 2"
STILL = "document.documentElement.dataset.playing === 'false'"
SOURCES = """(key) => {
  const page = JSON.parse(document.getElementById("page").textContent).steps[0]
  const find = (id) => Bokeh.documents.map((one) => one.get_model_by_id(id)).find((one) => one)
  const read = ({ id, columns }) => { const model = find(id); return model.data ? columns.map((name) => [...model.data[name]]) : [[model.start, model.end]] }
  return Object.fromEntries(Object.entries(page.views[key].feeds).map(([name, feed]) => [name, read(feed)]))
}"""


def steps(page):
    return int(page.locator("#steps").inner_text().replace(",", ""))


def paused(page):
    """Stop it, and wait until all that was on the way has been drawn."""
    page.locator("#play").click()
    page.wait_for_function(STILL)
    page.wait_for_timeout(1000)
    return steps(page)

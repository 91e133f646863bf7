"""A lesson's file in a browser, without a server and without a network."""

from sgmcmc_lab.lessons import read
from sgmcmc_lab.lessons.handout import handout
from sgmcmc_lab.lessons.headless import run_step
from tests.browser import until
from tests.browser.lab import check_width

LESSON = """+++
title = "A file"
minutes = 1
+++

## One

$$\\operatorname{Var}\\theta = \\frac{1}{1-\\epsilon/2}, \\qquad \\theta \\sim \\mathcal N(0, 1).$$

```toml
[experiment]
target = "linear_regression"
lanes = ["sgld(step_size:0.001)~minibatch(batch_size:10)"]
n_chains = 8
n_steps = 20

[sweep]
measure = "chain_ks"
[sweep.grid]
gradient.batch_size = [5, 10]
sampler.step_size = [0.001, 0.002]

[question]
ask = "What is it?"
options = ["This", "That"]
answer = 1
why = "Because of it."
```
"""
POINTS = """() => Bokeh.documents[0].roots().flatMap((one) => [...one.references()]).filter((one) => one.type === "ColumnDataSource")
  .map((one) => [...(one.data.y ?? one.data.low)])"""


def test_a_file_has_formulas_figures_and_sliders(phone, tmp_path):
    """Fails where a script or a font is fetched, a formula is no formula, or the slider moves nothing."""
    (tmp_path / "file.md").write_text(LESSON, encoding="utf-8")
    lesson = read(tmp_path / "file.md")
    file = tmp_path / "file.html"
    text = handout(lesson, {1: run_step(lesson.steps[0])})
    assert "eval'" not in text.partition("<title>")[0]
    file.write_text(text, encoding="utf-8")
    phone.goto(file.as_uri())
    until(phone, "window.Bokeh && Bokeh.documents.length && Bokeh.documents.every((one) => one.is_idle)")
    fraction = phone.locator("mfrac").bounding_box()
    assert fraction["height"] > 25, "a fraction is two lines"
    assert not phone.get_by_text("Because of it.").is_visible()
    phone.get_by_text("Answer").click()
    assert phone.get_by_text("Because of it.").is_visible()
    before = phone.evaluate(POINTS)
    assert all(before)
    handle = phone.locator(".noUi-handle").first
    handle.focus()
    handle.press("ArrowRight")
    until(phone, f"(before) => JSON.stringify(({POINTS})()) !== JSON.stringify(before)", before)
    check_width(phone)
    canvas = phone.locator(".bk-Figure").first.bounding_box()
    assert canvas["width"] > 300 and canvas["x"] + canvas["width"] <= 390

"""A posterior of one's own in a real headless Chromium: typed, with a file, out of the lab, and back by its link."""

import re
from urllib.parse import urlsplit

import numpy as np
import xarray as xr

from tests.browser.lab import Lab, check_finite

ROW = "bernoulli_logit_lpmf(y, a + b*dose)"
TRIAL = "\n".join(["dose,y", *(f"{k / 10},{int(k % 7 > 6 - k // 5)}" for k in range(35))])


def bring(lab, name, text):
    lab.page.locator("input[type=file]").first.set_input_files(
        {"name": name, "mimeType": "text/csv", "buffer": text.encode()}
    )


def typed(lab, label, formula):
    box = lab.page.get_by_role("textbox", name=re.compile(f"^{label}"))
    box.fill(formula)
    box.press("Enter")


def saved(lab, entry, path):
    lab.page.mouse.move(640, 2)
    lab.button(re.compile("Export")).click()
    with lab.page.expect_download() as download:
        lab.page.get_by_role("menuitem", name=re.compile(re.escape(entry))).click()
    download.value.save_as(path)
    return path


def test_a_model_of_ones_own_with_a_file_goes_out_and_comes_back(new_page, server, tmp_path):
    lab = Lab(new_page(), server).open(
        "?target=posterior&lane=sgld(step_size:0.01)&views=fit,marginal&n_chains=2&play=0"
    )
    for label, formula in (
        ("Parameters", "a, b"),
        ("Prior", "normal_lpdf(a, 0, 5) + normal_lpdf(b, 0, 5)"),
        ("Each row", ROW),
    ):
        typed(lab, label, formula)
    lab.until(lambda: "normal_lpdf(b, 0, 5)" in lab.field("target"), "the prior in the link")
    lab.until(lambda: lab.steps() == 0, "a paused page")
    bring(lab, "trial.csv", TRIAL)
    lab.until(lambda: "table:own_" in lab.field("target") and ROW in lab.field("target"), "the file and the formulas")
    lab.step(3)
    assert lab.titles() == ["Fit", "Marginal histogram"]
    check_finite(lab.figures())

    # The exported files have the formulas and the page's draws.
    draws = np.loadtxt(saved(lab, "Draws (CSV)", tmp_path / "draws.csv"), delimiter=",", skiprows=1)
    assert draws.shape == (2 * 3, 4)
    with xr.open_datatree(saved(lab, "Draws (NetCDF)", tmp_path / "draws.nc")) as tree:
        np.testing.assert_array_equal(tree["posterior"]["theta"].values.reshape(-1, 2), draws[:, 2:])
        assert tree["log_likelihood"]
    model = saved(lab, "Model (Stan)", tmp_path / "model.stan").read_text(encoding="utf-8")
    assert "bernoulli_logit_lpmf(y[n] | a + b * dose[n])" in model

    # In another browser the link asks for the file, and takes no other one for it.
    other = Lab(new_page(), server).open("?" + urlsplit(lab.url).query)
    other.says("somebody's own file", "Upload the file")
    bring(other, "other.csv", TRIAL.replace("3.4,1", "3.4,0"))
    other.says("other.csv", "it is not the file")
    bring(other, "trial.csv", TRIAL)
    other.page.get_by_text("trial.csv", exact=True).wait_for()
    other.step(3)
    # A page that began beside rough answers keeps their ranges; the draws are the same, and the fit shows them.
    assert other.figures()["Fit"] == lab.figures()["Fit"]
    found = np.loadtxt(saved(other, "Draws (CSV)", tmp_path / "other.csv"), delimiter=",", skiprows=1)
    np.testing.assert_array_equal(found, draws)

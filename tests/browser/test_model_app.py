"""The pages of studies in a real headless Chromium: they open, move, obey, take files and refuse bad ones.

As in ``lab``: what a figure shows is read from its data sources, and no time decides a test.
"""

import re
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

from sgmcmc_lab.app.state import DEFAULT
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.models.run import start
from sgmcmc_lab.samplers.models.topics.model import FIRST
from tests.browser import IDLE, wait_for_figures
from tests.browser.lab import MARKUP, READOUT, Lab, check_finite, check_phone, check_text, check_width

BARS = "?target=topics(corpus:bars;n_topics:10)&lane=collapsed_gibbs&lane=lda_scir"
BLOCKS = "?target=network(graph:blocks;n_communities:6)"
PETS = "\n".join(
    ["title,text"]
    + [
        f"letter {i},{('cat dog mouse purr' if i % 2 else 'oak elm leaf root').replace(' ', f' {chr(97 + i % 7) * 3} ')}"
        for i in range(40)
    ]
)


class StudyLab(Lab):
    """A page of a model."""

    def methods(self):
        return parse_qs(urlsplit(self.url).query).get("lane", [])

    def figures(self):
        """Numbers only; names of nodes are texts. On the far side of a globe a place is NaN, and not drawn."""
        found = super().figures()
        for figure in found.values():
            for glyph in figure["glyphs"]:
                glyph["data"] = {
                    name: column
                    for name, column in glyph["data"].items()
                    if name not in ("px", "py") and not any(isinstance(x, str) for x in column[:1])
                }
        return found

    def upload(self, name, content):
        self.page.locator("input[type=file]").first.set_input_files(
            {"name": name, "mimeType": "text/plain", "buffer": content.encode()}
        )

    def scores(self, view):
        """The curves of all methods: x and y by method."""
        return [(glyph["x"], glyph["y"]) for glyph in self.glyphs(view, "Line")]


@pytest.fixture
def lab(page, server):
    made = StudyLab(page, server)
    yield made
    # A page that closes while much is on its way to it makes Tornado complain, which the next test would read.
    if made.button("Pause").count():
        made.press("Pause")
        made.settled()
    check_finite(made.figures())


def test_topics_open_move_and_obey(lab):
    lab.open(BARS)
    lab.moves()
    lab.until(lambda: lab.titles()[:3] == ["Topics", "Topics as pictures", "Held-out perplexity"], "three views")
    lab.until(lambda: all(len(x) > 3 for x, _ in lab.scores("Held-out perplexity")), "two curves")
    lab.until(lambda: sum(len(g["word"]) for g in lab.glyphs("Topics", "Quad")) > 0, "words")
    check_width(lab.page)
    assert lab.page.get_by_text("watch the words of a topic").is_visible(), "what to do first"

    lab.press("Pause")
    rest = lab.settled()
    lab.step()
    assert lab.steps() == rest + 1
    lab.press("Reset")
    lab.until(lambda: lab.steps() == 0, "the start")
    lab.step(3)
    # The page shows what the engine draws.
    experiment = Experiment.from_query(urlsplit(lab.url).query, DEFAULT)[0]
    runs = start(experiment, experiment.make_model())
    for run in runs:
        run.advance(3)
    drawn = [y for _, y in lab.scores("Held-out perplexity")]
    np.testing.assert_array_equal(drawn, [[score.value for score in run.chains[0].scores[1:]] for run in runs])

    lab.choose("Method 2", "SGRLD")
    lab.until(lambda: lab.methods()[1].startswith("lda_sgrld"), "SGRLD in the link")
    lab.page.get_by_role("heading", name="SGRLD").wait_for()
    lab.until(lambda: lab.steps() == 0, "a restart")
    lab.press("Add a method to compare")
    lab.until(lambda: len(lab.methods()) == 3, "three methods in the link")
    lab.remove("method", 1, of=3)
    lab.until(lambda: len(lab.methods()) == 2, "two methods")
    lab.step()


def test_a_network_opens_moves_and_its_link_is_the_whole_state(lab):
    lab.open(
        f"{BLOCKS}&lane=network_gibbs&lane=network_gibbs&seed=3&views=graph,scores,rates&axis=steps&n_chains=2&show=2&theme=dark&play=0"
    )
    lab.until(lambda: lab.steps() == 0, "a paused page")
    lab.step(2)
    first, figures = lab.url, lab.figures()
    assert list(figures) == ["Network", "Held-out AUC", "Communities in use"]
    assert figures["Held-out AUC"]["label"] == "steps of each chain"
    nodes = next(g for g in lab.glyphs("Network", "Scatter") if "community" in g)
    assert len(nodes["x"]) == 60
    lab.page.reload()
    wait_for_figures(lab.page)
    lab.until(lambda: lab.steps() == 0, "the paused page again")
    assert lab.url == first
    lab.step(2)
    assert lab.figures() == figures
    lab.press("Play")
    lab.moves(3)
    # To a density and back.
    lab.page.get_by_role("button", name=re.compile("^Known distributions")).click()
    lab.until(lambda: lab.field("target").startswith("gaussian"), "a density")
    lab.page.wait_for_function(IDLE)
    lab.moves()
    to_model(lab, "Communities of a network")
    lab.until(lambda: lab.field("target").startswith("network"), "a network")
    lab.page.wait_for_function(IDLE)
    lab.moves()


def test_files_are_refused_with_a_sentence_or_run(lab):
    lab.open(f"{BARS}&views=scores,documents")
    lab.moves()
    # The page writes the link anew some time after it is drawn.
    lab.until(lambda: lab.field("v"), "the link as the page writes it")
    before = lab.field("target")
    lab.upload(f"{MARKUP}.csv", PETS + "\nlast,one,two")
    lab.says(f"{MARKUP}.csv, line 42", "3 fields")
    check_text(lab.page)
    lab.until(lambda: lab.field("target") == before, "the corpus before")
    lab.press("Pause")
    lab.settled()
    assert lab.axe() == []
    lab.press("Play")
    lab.moves()
    lab.upload("letters.csv", PETS)
    lab.until(lambda: "corpus:uploaded" in lab.field("target"), "the file in the link's place")
    lab.page.get_by_text("letters.csv", exact=True).wait_for()
    lab.until(lambda: lab.page.get_by_text("words predicted", exact=False).count() > 0, "the card of the data")
    lab.moves()
    lab.until(lambda: lab.page.get_by_text("Documents", exact=True).count() > 0, "the card")
    # Another page with this link has not got the file, and says so.
    url = lab.url
    other = StudyLab(lab.page.context.new_page(), lab.server)
    other.open("?" + urlsplit(url).query)
    other.says("somebody's own file", FIRST)
    assert "corpus:uploaded" in other.field("target")
    other.press("Play")
    other.until(lambda: f"corpus:{FIRST}" in other.field("target"), "the built-in corpus")
    other.page.close()


def test_a_recording_of_ones_own_data_is_said_to_show_them(lab):
    """One of the lab's own corpus is not."""
    warning = lab.page.get_by_text("shows your data to everyone who has the file")

    def record():
        lab.page.mouse.move(640, 2)
        lab.button(re.compile("Export")).click()
        with lab.page.expect_download() as download:
            lab.page.get_by_role("menuitem", name=re.compile("Live page")).click()
            lab.page.get_by_text("A recording of this experiment is being made").first.wait_for()
            seen = warning.count()
        assert download.value.suggested_filename == "topics.html"
        return seen

    lab.open(f"{BARS}&views=scores")
    lab.moves()
    assert not record()
    lab.upload("letters.csv", PETS)
    lab.until(lambda: "corpus:uploaded" in lab.field("target"), "the file in the link's place")
    lab.moves()
    assert record()


def test_a_table_of_ones_own_is_run_or_refused_with_a_sentence(lab):
    lab.open("?target=logistic_table&lane=sgld&views=components&play=1")
    lab.moves()
    rows = [f"{k},{k * k % 11},{'ill' if k * k % 5 > 1 else 'well'}" for k in range(30)]
    lab.upload(f"{MARKUP}.csv", "\n".join(["dose,age,state", *rows, "1,1_000,well"]))
    lab.says(f"{MARKUP}.csv, line 32", "age")
    assert "own_" not in lab.field("target")
    lab.upload("trial.csv", "\n".join([f"{MARKUP},age,state", *rows]))
    lab.until(lambda: "table:own_" in lab.field("target"), "the file in the link's place")
    lab.page.get_by_text("trial.csv", exact=True).wait_for()
    lab.until(
        lambda: lab.page.get_by_text("30 rows; state is well in", exact=False).count() > 0, "the card of the data"
    )
    lab.moves()
    check_text(lab.page)
    own = lab.field("target")
    lab.choose("Data", "Iris")
    lab.until(lambda: "table:iris" in lab.field("target"), "the iris")
    lab.choose("Data", "Your own")
    lab.until(lambda: lab.field("target") == own, "the file once more")
    lab.moves()
    other = StudyLab(lab.page.context.new_page(), lab.server)
    other.open("?" + urlsplit(lab.url).query)
    other.says("somebody's own file", "iris")
    other.page.close()


def test_what_a_file_was_taken_for_is_said_and_can_be_changed(lab):
    """The sentence stands below the button, a menu reads the file again, and what is wrong then changes nothing."""
    lab.open("?target=linear_table&lane=sgld&views=components&play=0")
    rows = [f"{k},5;{k * k % 7};{k - k * k % 5},25" for k in range(30)]
    lab.upload("tabelle.csv", "\n".join([f"{MARKUP};alter;y", *rows, "n/a;2;3"]))
    said = lab.page.get_by_text(
        "Read as a table of 3 columns and 30 rows; separator: semicolon; title row: yes; decimal comma"
    )
    said.wait_for()
    assert "answer: column 3 (y); 1 row with a missing value left out." in said.inner_text()
    check_text(lab.page)
    lab.until(lambda: "table:own_" in lab.field("target"), "the file in the link's place")
    first = lab.field("target")
    lab.choose("Column: answer", "column 2 (alter)")
    lab.until(lambda: "answer: column 2 (alter)" in said.inner_text(), "the other answer")
    lab.until(lambda: lab.field("target") != first, "the other table")
    second = lab.field("target")
    lab.choose("Decimal mark", "point")
    lab.says("tabelle.csv, line 2", "'0,5'")
    assert lab.field("target") == second, "the last good data stay"
    lab.choose("Decimal mark", "guessed")
    lab.until(lambda: lab.page.get_by_text("in another way").count() == 0, "no complaint")
    lab.step()
    assert lab.axe() == []


def test_a_bad_link_says_so_and_the_page_runs(lab):
    lab.open("?target=network(graph:blocks)&lane=lda_scir&views=words")
    lab.says("lda_scir", "network")
    lab.press("Play")
    lab.moves()


@pytest.mark.parametrize("query", [BARS, BLOCKS], ids=["topics", "network"])
def test_on_a_phone_nothing_is_cut_off(phone, server, query):
    check_phone(StudyLab(phone, server).open(query))


def to_model(lab, title):
    """Another model of data, by the menu of the sidebar."""
    lab.button(re.compile("^Models of data")).click()
    lab.page.get_by_role("menuitem", name=title).click()


def test_a_walk_over_the_pages_of_data_in_one_session(lab):
    """From one page to the next each moves, draws finite numbers, and answers a bad file with a sentence."""
    lab.open("?target=mixture(documents:80)&lane=mixture_gibbs")
    for button, data, bad, said in (
        ("", "documents", "V,-1,1\n", ("-1", "whole number")),
        ("Sparse regression", "latents", "a,b,c,d,y\n" + "1,2,x,4,5\n" * 10, ("line 2", "'x'", "'c'")),
        ("Factors of columns", "rows", "x,y\n1,2\n", ("10 or more",)),
        ("Topics on a sphere", "documents", "a\n1\n", ("no document with words",)),
    ):
        if button:
            to_model(lab, button)
        lab.until(lambda data=data: data in lab.page.evaluate(READOUT), data)
        lab.moves()
        check_finite(lab.figures())
        name = "bad.csv" if button else "visits.data"
        lab.upload(name, bad)
        lab.says(name, *said)
        lab.moves()

"""A lesson as one file: its formulas, its parts, and the lines of the docs that show a trace in a notebook."""

import inspect
import re
import shlex
from base64 import b64encode
from hashlib import sha256
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import pytest
from latex2mathml.converter import convert

from sgmcmc_lab import lessons
from sgmcmc_lab.app.views import theme
from sgmcmc_lab.lessons import document, figures, read
from sgmcmc_lab.lessons import formulas as drawing
from sgmcmc_lab.lessons.cli import main
from sgmcmc_lab.lessons.document import prose_problem
from sgmcmc_lab.lessons.formulas import mathml
from sgmcmc_lab.lessons.glossary import glossary
from sgmcmc_lab.lessons.handout import handout
from sgmcmc_lab.lessons.headless import run_step
from sgmcmc_lab.lessons.prose import formulas
from sgmcmc_lab.lessons.scripts import policy
from sgmcmc_lab.lessons.sweep import axis_of
from sgmcmc_lab.samplers import RunSpec, SpecError, run
from tests.helpers.cases import for_each
from tests.helpers.course import LESSONS

ROOT = Path(__file__).parents[2]
README = (ROOT / "lessons" / "README.md").read_text(encoding="utf-8")


# Formulas


def texts(found):
    """All texts in a lesson, or in a part of it."""
    if isinstance(found, str):
        yield found
    elif isinstance(found, tuple | list):
        for one in found:
            yield from texts(one)
    elif hasattr(found, "__dataclass_fields__"):
        for name in found.__dataclass_fields__:
            yield from texts(getattr(found, name))


def drawn(tex, alone):
    """The signs that a formula shows, of MathML that can be read."""
    root = ElementTree.fromstring(mathml(tex, alone))
    marks = {one.tag.rpartition("}")[2] for one in root.iter()}
    assert "math" in marks and "merror" not in marks, tex
    return "".join(root.itertext())


@pytest.mark.slow
def test_all_formulas_are_drawn():
    """Formulas of every lesson and the glossary, in their lines and displayed: none shows a word of TeX."""
    listed = {tex for text in texts([*LESSONS.values(), *glossary()]) for tex in formulas(text)}
    assert len(listed) > 150
    for tex in sorted(listed):
        for alone in (False, True):
            shown = drawn(tex, alone)
            assert shown.strip() and not re.search(r"[\\$_&]", shown), (tex, shown)


def test_a_formula_shows_its_signs():
    assert drawn(r"\frac{1}{1-\epsilon/2} \le \lVert\theta\rVert", True).replace(" ", "") == "11−ϵ/2≤‖θ‖"
    assert mathml(r"a = 1, \qquad b = 2", True).count("<math") == 2, "its parts may stand below each other"


def test_bars_brackets_and_primes_stand_on_the_line():
    """Fails where a sign is left as browsers set it wrong: a bar or a large bracket right under an exponent, and
    a prime as an exponent. Planted fault: what the converter makes of them."""
    wrong = (r"<msup><mo>&#x02016;", r'<msup><mo stretchy="true"', r"</mi><mi>&#x02032;</mi></msup>")
    for tex, mark in zip((r"\lVert v\rVert^2", r"\bigl(1 - s\bigr)^{-a}", "D'"), wrong, strict=True):
        assert mark in convert(tex)
        assert unescape(mark) not in mathml(tex, True)
        assert drawn(tex, True) == "".join(ElementTree.fromstring(convert(tex)).itertext())


@for_each("tex", [r"\nosuchsign x", r"\frac{1}{", r"\left( x"])
def test_a_formula_that_cannot_be_drawn_is_refused(tex):
    with pytest.raises(SpecError, match="formula"):
        mathml(tex, True)


# The file

LESSON = """+++
title = "Steps & bias"
minutes = 1
+++

## Two axes

A number: $$x < \\epsilon$$, {= 2*step_size =}, and [a step](?lesson=langevin&step=1).

```toml
names = ["one", "two"]
teacher = "Say this."

[experiment]
target = "linear_regression"
lanes = ["sgld(step_size:0.001)~minibatch(batch_size:10)", "sgld(step_size:0.002)~minibatch(batch_size:10)"]
n_chains = 8
n_steps = 20

[sweep]
measure = "chain_ks"
[sweep.grid]
gradient.batch_size = [5, 10, 20]
sampler.step_size = [0.001, 0.002]

[question]
ask = "What is it?"
options = ["This", { text = "That", reply = "It is less." }]
answer = 1
why = "Because of it."
by = "definition"

[[claim]]
says = "It is a distance."
sweep = "at"
where = { gradient.batch_size = 5, sampler.step_size = 0.001 }
above = 0
below = 1

[[exercise]]
text = "Do it."
solution = "It was done."
experiment = "target=gaussian&lane=exact~full"
```
"""


@pytest.fixture(scope="module")
def lesson(tmp_path_factory):
    path = tmp_path_factory.mktemp("lesson") / "steps.md"
    path.write_text(LESSON, encoding="utf-8")
    return read(path)


@pytest.fixture(scope="module")
def outcomes(lesson):
    return {1: run_step(lesson.steps[0])}


@pytest.mark.slow
def test_a_lesson_is_one_file(lesson, outcomes):
    """With its text, its claim, folded answers, and nothing that is fetched; solutions are the teacher's."""
    made = handout(lesson, outcomes)
    result = outcomes[1].results[0]
    for part in (
        "Steps &amp; bias",
        "0.002",
        "What is it?",
        "<summary>Answer</summary>",
        "It is less.",
        "True by definition.",
        f"{result.measured:.5g}",
    ):
        assert part in made, part
    assert "<b>A.</b> Because" in made or "<b>B.</b> Because" in made
    order = lesson.shuffled(1)
    assert f"<b>{'AB'[order.index(1)]}.</b> Because of it." in made
    assert "<details open" not in made and "?lesson=langevin" not in made
    for fetched in ("<script[^>]*src", "<link"):
        assert not re.search(fetched, made), fetched
    assert not re.search(r"(src|href)\s*=|url\(|@import", re.sub(r"<script.*?</script>", "", made, flags=re.DOTALL))
    assert "Solution" not in made and "Say this." not in made
    text = handout(lesson, {}, teacher=True)
    assert "It was done." in text and "Say this." in text
    assert "<script" not in text, "without figures it has no script"


@pytest.mark.slow
def test_a_sweep_of_two_axes_has_a_slider(lesson, outcomes):
    """Each stop has its own points, the lanes' means over seeds. Fails where all stops show the same."""
    from sgmcmc_lab.lessons import figures

    figures.prepare("bokeh")
    step, table = lesson.steps[0], outcomes[1].table
    made = figures.sweep_map(step, table.rows, ("one", "two"))
    (other,) = made.kdims
    drawn_axis = {"Batch size n": "sampler.step_size", "Step size ε": "gradient.batch_size"}[other.name]
    assert len(made) in (2, 3)
    for key, overlay in made.items():
        here = "batch_size" if drawn_axis == "sampler.step_size" else "step_size"
        for lane, points in enumerate(list(overlay.values())[2::3], 1):
            wanted = [
                (dict(row.point.values)[drawn_axis], row.seeds[0].value)
                for row in table.rows
                if row.point.lane == lane
                and any(name.endswith(here) and value == key for name, value in row.point.values)
            ]
            assert sorted(wanted) == [*zip(*points.columns().values(), strict=True)]


def test_every_sweep_of_the_course_has_an_axis_to_be_drawn_against():
    """Fails where claims are about slopes along more than one."""
    swept = [step for one in LESSONS.values() for step in one.steps if step.sweep is not None]
    found = [axis_of(step) for step in swept]
    assert all(name in {axis.name for axis in step.sweep.axes} for name, step in zip(found, swept, strict=True))
    assert {"sampler.step_size", "gradient.batch_size"} <= set(found)


@pytest.mark.slow
def test_the_command_of_the_readme_writes_a_lesson(tmp_path, monkeypatch, capsys):
    (command,) = re.findall(r"^\.venv/bin/python -m sgmcmc_lab.lessons (.* --html .*)$", README, re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    assert main([*shlex.split(command), "--quick", "--results", "results"]) == 0
    (file,) = tmp_path.glob("*.html")
    made = file.read_text(encoding="utf-8")
    assert made.startswith("<!doctype html>") and "at reduced length" in made
    assert made.count("<figure>") >= 2 and made.count("class='met'") >= 3
    assert 1e6 < len(made) < 4e6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--html", "x.html"], "it needs the NAME"),
        (["langevin", "gamma", "--html", "x.html"], "a file holds one lesson, and these are 2"),
        (["langevin", "--html", "none/x.html"], "the folder none is not there"),
        (["langevin", "--teacher"], "it goes with --html FILE"),
    ],
)
def test_what_is_no_handout_is_said(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


# Notebooks


def lines_of_the_docs():
    found = re.search(r"figures in a notebook\n-+\n.*?::\n\n((?: {4}.*\n)+)", lessons.__doc__, re.DOTALL)
    return inspect.cleandoc(found[1])


@pytest.mark.slow
def test_the_lines_of_the_docs_show_a_trace_in_a_notebook():
    """Fails where the lines raise, or the object has no picture: then its text alone is shown."""
    import nbformat
    from nbclient import NotebookClient

    code = lines_of_the_docs()
    assert len(code.splitlines()) == 3
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    NotebookClient(book, timeout=600, kernel_name="python3").execute()
    shown = [output for output in book.cells[0].outputs if output.output_type == "execute_result"]
    assert len(shown) == 1
    html = shown[0].data["text/html"]
    assert "Bokeh" in html and "density" in html and "SGLD" in html


@pytest.mark.slow
def test_a_figure_of_a_trace_is_bounded_and_refused_in_a_sentence():
    from sgmcmc_lab.lessons.figures import figure

    traces = [run(RunSpec.of("gaussian", "exact", n_steps=50, seed=seed)) for seed in (1, 2)]
    for kind in ("marginal", "trace", "autocorrelation"):
        assert len(figure(traces, kind, names=["a", "b"])) >= 2
    for arguments, message in (
        ((traces[0], "art"), "allowed is one of marginal"),
        ((traces * 4,), "allowed are 1 to 6"),
        ((traces[0], "joint"), "no such figure"),
        ((traces[0], "scores"), "no such figure"),
    ):
        with pytest.raises(SpecError, match=message):
            figure(*arguments)


LINKED = [
    r"\href{javascript:alert(1)}{x}", r"\url{x}", r"\class{a}{x}", r"\style{color:red}{x}", r"\cssId{a}{x}", r"\htmlClass{a}{x}", r"\htmlStyle{a}{x}",
    r"\def\h{\href}\h{javascript:alert(1)}{x}", r"\csname href\endcsname{a}{x}", r"\color{expression(1)}{x}", r"\mmlToken{mi}[href=x]{y}", r"\require{html}",
    r"\texttip{a}{b}", r"\toggle{a}{b}\endtoggle", r"\includegraphics{x}", r"\colorbox{a\" onclick=\"1}{x}",
]  # fmt: skip
"""Formulas that would be more than signs, in the library that draws them here or in the one that does on the page."""


@for_each("tex", LINKED)
def test_a_formula_is_of_signs_alone(tex):
    with pytest.raises(SpecError, match=r"^formula = "):
        mathml(tex, False)
    line, why = prose_problem(f"A text.\n\nWith $${tex}$$.")
    assert (line == 2 and "formula" in why) or "braces" in why


def test_a_link_in_a_formula_is_seen(monkeypatch):
    """The planted fault: any attribute may come out."""
    monkeypatch.setattr(drawing, "ATTRIBUTES", dict.fromkeys(["href", "xmlns", "display"], re.compile(".*")))
    assert "javascript:" in mathml(LINKED[0], False)


@for_each(
    "text", [r"\text{<{}img src=x onerror=1>}", r"\text{&lt;b&gt;}", r"\text{&amp;lt;b&amp;gt;}", r"\unicode{60}b"]
)
def test_the_text_of_a_formula_is_text(text):
    """The library writes it as it is. Fails where a sign in it begins an element."""
    root = ElementTree.fromstring(mathml(text, False))
    assert {one.tag.rpartition("}")[2] for one in root.iter()} <= drawing.ELEMENTS
    assert not any("onerror" in one.attrib for one in root.iter())


MARKED = [
    "[x](javascript:alert(1))",
    "[x](data:text/html,a)",
    "[x](//evil.example)",
    "[x](/etc/passwd)",
    "[a\\]b]: /etc/x\n\n[a\\]b]",
    "[a\\]b]: data:image/png;base64,a\n\n[a\\]b]",
    "[x](<vbscript:a>)",
    "![x](a.svg)",
    "<svg onload=1>",
    "&#60;b>[x](ftp://a)",
    "[x](&#106;avascript:a)",
    "[x]\n\n[x]: javascript:a",
    "<javascript:a>",
    "[x](\tjavascript:a)",
]


@for_each("text", MARKED)
def test_a_text_has_links_to_web_pages_alone(text):
    assert prose_problem(f"First.\n\n{text}")[0] >= 2


def test_what_is_made_of_a_text_is_looked_at(monkeypatch):
    """The planted fault: a pattern of the text alone."""
    monkeypatch.setattr(document, "markup_problem", lambda text: None)
    assert prose_problem("[a\\]b]: /etc/x\n\n[a\\]b]") is None


def test_a_handout_runs_its_own_scripts_and_no_other():
    first, other = policy("<script>1</script>\r\n<script type='x'>a\r\nb</script>"), policy("<script>2</script>")
    sums = re.findall(r"'sha256-([^']+)'", first)
    assert [b64encode(sha256(text).digest()).decode() for text in (b"1", b"a\nb")] == sums
    assert "unsafe-inline" not in first.partition("style-src")[0] and sums[0] not in other
    assert "default-src 'none'" in first and "script-src 'none'" in policy("")
    made = handout(next(iter(LESSONS.values())), {})
    assert made.index("Content-Security-Policy") < made.index("<style")


@pytest.mark.slow
def test_every_writer_of_a_page_gives_it_a_policy():
    """Fails where somebody writes an HTML file without one. The server's pages have theirs in a header."""
    writers = {
        path.relative_to(ROOT).as_posix()
        for folder in ("app", "lessons", "samplers")
        for path in (ROOT / folder).rglob("*.py")
        if re.search(r"<!doctype html|\bfile_html\b|fmt=.html", path.read_text(encoding="utf-8"), re.IGNORECASE)
    }
    assert writers == {"app/server/handlers.py", "app/live_page/site.py", "lessons/handout.py"}


def test_lanes_have_the_colours_of_the_page():
    assert theme.LIGHT.lanes == figures.COLOURS

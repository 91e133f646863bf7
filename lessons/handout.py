"""A lesson as one file that opens without a server or a network: for a learning platform, slides, or print.

Formulas are MathML, figures are Bokeh's with its script in the file, and answers are folded away. Only parts that are
unfolded on the screen are printed.
"""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import product
from string import ascii_uppercase
from typing import Any

from sgmcmc_lab.lessons.claims import Result
from sgmcmc_lab.lessons.formulas import mathml
from sgmcmc_lab.lessons.glossary import used
from sgmcmc_lab.lessons.headless import Outcome
from sgmcmc_lab.lessons.lesson import Exercise, Lesson, Step
from sgmcmc_lab.lessons.live import filled
from sgmcmc_lab.lessons.prose import as_html, without_paragraph
from sgmcmc_lab.lessons.scripts import functions, of_models, policy

CAPTIONS = {
    "marginal": "One coordinate: the histogram of the draws, and the exact density in grey.",
    "joint": "The joint histogram of the draws; the lines are contours of the exact density.",
    "trace": "The first chain of each lane.",
    "autocorrelation": "Autocorrelation against the lag.",
    "sweep": "Each point is a mean over seeds, and its bar their range.",
    "scores": "Held-out score against the data that were seen.",
}
SLIDE = """
const at = sliders.reduce((index, one) => index * one.categories.length + one.categories.indexOf(one.value), 0)
for (const [source, names, frames] of all) {
  const data = {...source.data}
  names.forEach((name, i) => { data[name] = frames[at][i] })
  source.data = data
}
"""
STYLE = """
:root { color-scheme: light; } * { box-sizing: border-box; }
body { margin: 0; font: 16px/1.55 system-ui, "Segoe UI", Roboto, sans-serif; color: #1f2933; background: #fff; overflow-wrap: anywhere; }
main { max-width: 720px; margin: 0 auto; padding: 24px 20px 48px; }
h1 { font-size: 1.9em; line-height: 1.2; margin: 0 0 .3em; } h2 { font-size: 1.35em; line-height: 1.3; margin: 2.2em 0 .5em; }
p { margin: 0 0 .8em; } code { font-size: .92em; } .small { font-size: .88em; color: #52606d; }
math { font-family: "STIX Two Math", "Cambria Math", "Latin Modern Math", "Noto Sans Math", math; font-size: 1.06em; }
.formula { display: flex; flex-wrap: wrap; justify-content: center; gap: .4em 2.2em; margin: .9em 0; }
.formula span { max-width: 100%; overflow-x: auto; overflow-y: hidden; padding: .15em 0; } .formula math { width: auto; margin: 0; }
table { border-collapse: collapse; width: 100%; margin: .6em 0 1.2em; font-size: .94em; }
th, td { text-align: left; vertical-align: top; padding: 5px 10px 5px 0; border-bottom: 1px solid #d5dae0; } th { font-weight: 600; white-space: nowrap; }
.number { white-space: nowrap; } .met { color: #1b7a3d; font-weight: 700; } .not { color: #b3261e; font-weight: 700; }
.question, .teacher { border-left: 4px solid #1976d2; background: #f3f7fc; padding: 10px 14px; margin: 1em 0; }
.teacher { border-color: #8f6b00; background: #fbf7ec; }
.question ol { margin: .3em 0 .6em; padding-left: 1.8em; } details { margin: .3em 0; } summary { cursor: pointer; font-weight: 600; }
figure { margin: 1.2em 0; } figcaption { font-size: .9em; color: #52606d; margin-top: .3em; }
.row { display: flex; flex-wrap: wrap; gap: 8px 12px; } .row > div { flex: 1 1 300px; max-width: 640px; min-width: 0; }
dt { font-weight: 600; } dd { margin: 0 0 .6em; }
@media (max-width: 560px) {
  main { padding: 16px 14px 40px; } .claims thead { display: none; } .claims tr, .claims td { display: block; }
  .claims tr { border-bottom: 1px solid #d5dae0; padding: 5px 0; } .claims td { border: 0; padding: 1px 0; }
  .claims td[data-name]::before { content: attr(data-name) " "; color: #52606d; } .number { white-space: normal; }
}
@media print {
  @page { margin: 16mm; } body { font-size: 10.5pt; } main { max-width: none; padding: 0; }
  h2, summary, dt { break-after: avoid; } figure, tr, .question, .exercise, .formula { break-inside: avoid; }
  .question, .teacher { background: none; } details:not([open]) { display: none; }
}
"""


def handout(lesson: Lesson, outcomes: Mapping[int, Outcome], *, quick: bool = False, teacher: bool = False) -> str:
    """The file's text. ``outcomes`` are those of the steps that were run, by their number.

    With ``teacher`` it has the solutions of exercises, folded, and the notes. Raises
    :class:`~samplers.parameters.SpecError` for a formula that cannot be drawn.
    """
    drawn = {number: list(_figures(outcome)) for number, outcome in outcomes.items()}
    script, divs = _embedded([model for shown in drawn.values() for _, models in shown for model in models])
    left = iter(divs)
    places = {n: [(kind, [next(left) for _ in models]) for kind, models in shown] for n, shown in drawn.items()}
    steps = "".join(
        _step(lesson, step, outcomes.get(step.number), places.get(step.number, []), teacher) for step in lesson.steps
    )
    length = "at reduced length" if quick else "at full length"
    measured = f" Its claims were measured {length} when this file was made." if outcomes else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy(script)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(lesson.title)}</title>
<style>{STYLE}</style>
{script}
</head>
<body>
<main>
<h1>{sentence(lesson.title)}</h1>
<p>{sentence(lesson.summary)}</p>
<p class="small">A lesson of SG-MCMC Lab, {lesson.minutes} minutes.{measured} In the lab it is <code>?lesson={escape(lesson.key)}</code>.</p>
{steps}
{_glossary(lesson, teacher)}
</main>
</body>
</html>
"""


def _step(
    lesson: Lesson, step: Step, outcome: Outcome | None, figures: Sequence[tuple[str, list[str]]], teacher: bool
) -> str:
    parts = [
        f"<h2>{step.number}. {sentence(step.title)}</h2>",
        as_html(filled_text(step.text, step), mathml, change=_links),
    ]
    if step.question is not None:
        order = lesson.shuffled(step.number)
        options = "".join(f"<li>{sentence(step.question.options[number - 1])}</li>" for number in order)
        right = ascii_uppercase[order.index(step.question.answer)]
        replies = "".join(
            f"<p><b>{ascii_uppercase[i]}.</b> {sentence(said)}</p>"
            for i, n in enumerate(order)
            if (said := step.question.reply(n))
        )
        parts.append(
            f"<div class='question'><p><b>Before you look:</b> {sentence(step.question.ask)}</p><ol type='A'>{options}</ol>"
            f"<details><summary>Answer</summary><p><b>{right}.</b> {sentence(step.question.explanation)}</p>{replies}</details></div>"
        )
    for kind, divs in figures:
        shown = "".join(f"<div>{div}</div>" for div in divs)
        parts.append(f"<figure><div class='row'>{shown}</div><figcaption>{CAPTIONS[kind]}</figcaption></figure>")
    if step.watch:
        parts.append(f"<p><b>In the lab, watch this.</b> {sentence(filled_text(step.watch, step))}</p>")
    if outcome is not None and outcome.results:
        rows = "".join(map(_claim, outcome.results))
        parts.append(
            "<table class='claims'><thead><tr><th></th><th>Claim</th><th>measured</th><th>expected</th><th>tolerance</th></tr></thead>"
            f"<tbody>{rows}</tbody></table>"
        )
    parts += [_exercise(number, exercise, teacher) for number, exercise in enumerate(step.exercises, 1)]
    if step.teacher and teacher:
        note = as_html(step.teacher, mathml, change=_links)
        parts.append(f"<div class='teacher'><b>For the teacher.</b> {note}</div>")
    return f"<section id='step-{step.number}'>{''.join(parts)}</section>\n"


def _claim(result: Result) -> str:
    mark = "<span class='not'>✗</span>"
    if result.passed:
        mark = "on the way" if result.later else "<span class='met'>✓</span>"
    error = f" ± {result.error:.2g}" if result.error else ""
    allowed = f"{result.allowed:.2g}" if result.allowed is not None else ""
    says, paper = sentence(result.claim.says), result.claim.paper
    if paper is not None:
        says += f"<br><span class='small'>{sentence(paper.figure)}: {sentence(paper.with_source)}. {sentence(paper.reason)}</span>"
    if result.reason:
        says += f"<br><span class='not'>{escape(result.reason)}</span>"
    last = f"<td class='number' data-name='tolerance'>{allowed}</td>" if allowed else "<td></td>"
    return (
        f"<tr><td>{mark}</td><td>{says}</td><td class='number' data-name='measured'>{result.measured:.5g}{error}</td>"
        f"<td class='number' data-name='expected'>{escape(result.expected)}</td>{last}</tr>"
    )


def _exercise(number: int, exercise: Exercise, teacher: bool) -> str:
    solution = ""
    if teacher:
        link = escape(f"?{exercise.experiment.to_query()}")
        solution = f"<details><summary>Solution</summary><p>{sentence(exercise.solution)}</p><p class='small'>In the lab: <code>{link}</code></p></details>"
    return f"<div class='exercise'><p><b>Exercise {number}.</b> {sentence(exercise.text)}</p>{solution}</div>"


def _glossary(lesson: Lesson, teacher: bool) -> str:
    """The terms that the lesson uses, each with its sentence."""
    found = terms(lesson)
    return f"<section><h2>Terms</h2>{found}</section>" if found else ""


def terms(lesson: Lesson) -> str:
    """The terms that the lesson uses as a list, each with its sentence."""
    texts = [
        text
        for step in lesson.steps
        for text in (step.title, step.text, step.watch, *(claim.says for claim in step.claims))
    ]
    texts += [
        text
        for step in lesson.steps
        if step.question
        for text in (step.question.ask, *step.question.options, *step.question.replies, step.question.why)
    ]
    found = sorted(used(texts), key=lambda term: term.name.lower())
    listed = "".join(f"<dt>{sentence(term.name)}</dt><dd>{sentence(term.says)}</dd>" for term in found)
    return f"<dl>{listed}</dl>" if found else ""


def filled_text(text: str, step: Step) -> str:
    """A step's text with the numbers of its experiment in place of their names."""
    return text if step.spec is None else filled(text, step.spec)


def sentence(text: str) -> str:
    """A text of one paragraph as HTML, without links into the lab."""
    return without_paragraph(as_html(text, mathml, change=_links))


def _links(tokens: Sequence[Any]) -> Iterator[Any]:
    """The parts of a line without its links into the lab, which lead nowhere from a file: their words stay."""
    inside = False
    for token in tokens:
        if token.type == "link_open" and str(token.attrGet("href")).startswith("?"):
            inside = True
        elif token.type == "link_close" and inside:
            inside = False
        else:
            yield token


# --- figures ---------------------------------------------------------------------------------------------------------


def _figures(outcome: Outcome) -> Iterator[tuple[str, list[Any]]]:
    """The kind of each figure of a step, and what Bokeh draws of it."""
    from sgmcmc_lab.lessons import figures

    figures.prepare("bokeh")
    for kind in figures.fitting(outcome):
        made = figures.of_step(outcome, kind, sliders=True)
        if made is not None:
            panels = list(made.values()) if type(made).__name__ == "Layout" else [made]
            yield kind, [_drawn(panel, CAPTIONS[kind], titled=len(panels) > 1) for panel in panels]


def _drawn(made: Any, caption: str, titled: bool) -> Any:
    from bokeh.layouts import column
    from bokeh.models import CategoricalSlider, CustomJS, Plot

    from sgmcmc_lab.lessons import figures

    drawn = figures.bokeh_plot(made).state
    drawn.html_attributes = {"role": "img", "aria-label": caption}
    if not titled:
        drawn.title = None
    for plot in drawn.select({"type": Plot}):
        figures.thin_labels(plot)
    if type(made).__name__ != "HoloMap":
        return drawn
    stops = [list(dict.fromkeys(key)) for key in zip(*made.data, strict=True)]
    sliders = [
        CategoricalSlider(
            title=dimension.label, categories=list(map(str, values)), value=str(values[0]), sizing_mode="stretch_width"
        )
        for dimension, values in zip(made.kdims, stops, strict=True)
    ]
    figures.complete(drawn, [layer.label for layer in [*made.last.values()][1::3]])
    layers = [[layer.columns() for layer in made.data[key].values()] for key in product(*stops)]
    all_of = []
    for i, renderer in enumerate(drawn.renderers):
        names = list(layers[0][i])
        all_of.append([renderer.data_source, names, [[frame[i][name].tolist() for name in names] for frame in layers]])
        renderer.data_source.data = {name: layers[0][i][name] for name in names}
    move = CustomJS(args={"sliders": sliders, "all": all_of}, code=SLIDE)
    for slider in sliders:
        slider.js_on_change("value", move)
    return column(*sliders, drawn, sizing_mode="stretch_width")


def _embedded(models: Sequence[Any]) -> tuple[str, Sequence[str]]:
    """Bokeh's script with all figures, and the element of each. Without figures there is no script."""
    if not models:
        return "", ()
    from bokeh.embed import components
    from bokeh.models import Widget
    from bokeh.resources import Resources

    widgets = any(isinstance(one, Widget) for model in models for one in model.references())
    library = Resources(mode="inline", components=["bokeh", *(["bokeh-widgets"] if widgets else [])])
    script, divs = components(tuple(models))
    # Not its own tags: they would ask for files of every package of models that is loaded here.
    return "\n".join(
        [functions(of_models(models)), *(f"<script>{text}</script>" for text in library.js_raw), script]
    ), divs

"""A live page as HTML: figures, controls, compiled functions and the experiment in one file."""

import gzip
import json
import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import Any

from bokeh.resources import Resources

from app.formulas import parts as lines_of
from app.lanes import Progress, scene_of
from app.live_page import figures
from app.live_page.bundle import ASSETS, bundle
from app.state import AppState, default_views, first_coordinate
from app.views import fitting
from app.views.base import AXIS_LABELS
from lessons.formulas import mathml
from lessons.handout import policy
from samplers import Experiment
from samplers.choices import choice_text, value_text
from samplers.diagnostics import divergence
from samplers.diagnostics.ks import edges_and_cdf
from samplers.gradients import GRADIENTS
from samplers.kernels import SAMPLERS
from samplers.parameters import Count, Flag, Option, Real, SpecError, declared
from samplers.spec import RunSpec, make_gradient, make_sampler
from samplers.targets import TARGETS
from samplers.targets.base import SIMPLEX, Target
from samplers.wasm import description
from samplers.wasm.link import LinkError, module
from samplers.wasm.objects import CompileError
from samplers.wasm.variations import variations

LIVE = (
    "state", "energy", "phase", "circle", "torus", "globe", "frames", "components", "fit", "marginal", "ks", "kl", "bought", "temperature",
    "thermostat", "trace", "autocorrelation",
)  # fmt: skip
"""The views that move without a server, in the order of the page."""
BOKEH = ("bokeh", "bokeh-widgets")
"""The parts of BokehJS; pages whose figures have no sliders need the first alone."""
LIVE_SCRIPT = "live.js"
"""The page's own script, where it is next to the pages of a site."""
POLICY_BESIDE = (
    "default-src 'none'; script-src 'self' file: 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; "
    "form-action 'none'; worker-src blob:"
)
"""The content security policy of a page whose scripts are next to it, on a disk, too."""
MOST_CHAINS = 100
"""Of a live page, which may run on a telephone."""


def live_page(experiment: Experiment, title: str = "", shown: Sequence[str] = ()) -> str:
    """The experiment as the text of one HTML file. Raises :class:`SpecError`."""
    if experiment.of_model:
        raise SpecError("target", experiment.target.key, "a live page shows densities; a model of data needs Python")
    state = AppState(experiment=experiment)
    state.views = list(shown) or default_views(experiment)
    state.coordinate = first_coordinate(experiment)
    target = TARGETS[experiment.target.key]
    return document(title or f"{target.title}: {', '.join(state.lane_titles())}", [state])


def document(title: str, states: Sequence[AppState | None], text: str = "", beside: bool = False) -> str:
    """One HTML file of several steps, each an experiment on a density, or None where a step has text alone.

    ``text`` is HTML above the experiment. BokehJS is in the file, or with ``beside`` in files next to it. Raises
    :class:`SpecError`.
    """
    runs = [run for state in states if state is not None for run in state.experiment.runs()]
    functions = {id(one): one for run in runs for one in description.functions(run)}
    try:
        compiled = module(functions.values()) if runs else b""
    except (LinkError, CompileError) as error:
        raise SpecError("live", title, str(error)) from error
    steps = [_page(state) if state is not None else EMPTY for state in states]
    # Steps often share a target, and its data and exact answers are most of a page.
    targets: list[Any] = []
    for step in steps:
        if step["target"] not in targets:
            targets.append(step["target"])
    steps = [step | {"target": targets.index(step["target"])} for step in steps]
    pages = {
        "signatures": description.signatures(runs[0]) if runs else {},
        "constants": description.constants(),
        "steps": steps,
        "targets": targets,
    }
    components = BOKEH[: 2 if any(page.get("widgets") for page in pages["steps"]) else 1]
    parts = {
        "TITLE": escape(title),
        "STYLE": (ASSETS / "live" / "page.css").read_text(encoding="utf-8"),
        "TEXT": f'<div id="text">{text}</div>' if text else "",
        "BOKEH": "".join(_script(component, beside) for component in components),
        "WORKER": "" if beside else bundle("live/worker.js"),
        "SCRIPT": f'<script src="{LIVE_SCRIPT}"></script>' if beside else f"<script>{bundle('live/page.js')}</script>",
        "PAGE": _zipped(_json(pages)),
        "MODULE": _zipped(compiled),
    }
    parts["POLICY"] = POLICY_BESIDE if beside else f"{policy(parts['BOKEH'] + parts['SCRIPT'])}; worker-src blob:"
    page = (ASSETS / "live" / "page.html").read_text(encoding="utf-8")
    return re.sub("<!--([A-Z]+)-->", lambda found: parts[found[1]], page)


def script_of(component: str) -> str:
    """A part of BokehJS as text."""
    return "\n".join(Resources(mode="inline", components=[component]).js_raw)


def live_script() -> str:
    """The page's own script for a file next to it, which brings the worker's text along."""
    return f'document.getElementById("worker").textContent = {json.dumps(bundle("live/worker.js"))}\n{bundle("live/page.js")}'


def _script(component: str, beside: bool) -> str:
    return f'<script src="{component}.js"></script>' if beside else f"<script>{script_of(component)}</script>"


def _json(value: Any) -> bytes:
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def _zipped(content: bytes) -> str:
    """Bytes that a script element can hold, whatever is in their texts: compressed, in base64."""
    return b64encode(gzip.compress(content, 9, mtime=0)).decode()


EMPTY: dict[str, Any] = {
    "names": [], "columns": [], "dim": 0, "start": [], "seed": 1, "n_chains": 1, "most_chains": 1, "most_seed": 1, "speed": 1, "most_speed": 1,
    "coordinate": 0, "axes": {}, "shown": [], "views": {}, "light": {}, "dark": {}, "axis_labels": [], "taps": [],
    "target": {"key": "", "title": "", "first": {}, "base": {}, "parameters": [], "variations": {}, "query": ""}, "lanes": [],
}  # fmt: skip
"""A step without an experiment."""


def _page(state: AppState) -> dict[str, Any]:
    experiment = state.experiment
    target, runs = experiment.make_target(), experiment.runs()
    scenes = [_scene(state, dark) for dark in (False, True)]
    keys = [key for key in LIVE if key in fitting(experiment)]
    light, dark = ([figures.built(key, scene) for key in keys] for scene in scenes)
    light, dark = ([view for view in views if view.live_data() is not None] for views in (light, dark))
    to_light, to_dark = figures.theme_changes(light, dark)
    views = {view.key: figures.described(view) for view in light}
    return {
        "names": state.lane_titles(),
        "columns": [column.name for column in target.columns],
        "dim": target.dim,
        "start": [float(x) for x in runs[0].first_position()],
        "seed": experiment.seed,
        "n_chains": min(experiment.n_chains, MOST_CHAINS),
        "most_chains": MOST_CHAINS,
        "most_seed": 2**32 - 1,
        "speed": state.speed,
        "most_speed": 1_000_000,
        "coordinate": state.coordinate,
        "axes": {key: label for key, label in AXIS_LABELS.items() if key in ("steps", "gradients", "data")},
        "shown": [key for key in state.views if key in views] or list(views)[:3],
        "views": views,
        "widgets": figures.need_widgets(light),
        "light": to_light,
        "dark": to_dark,
        "axis_labels": figures.axis_labels(light),
        "taps": [{"view": view.key, "tap": view.live_tap()} for view in light if view.live_tap()],
        "target": _target(target, choice_text(TARGETS, experiment.target)),
        "lanes": [_lane(run) for run in runs],
    }


def _scene(state: AppState, dark: bool) -> Any:
    """What the figures are built for, once the target's exact answers are found."""
    state.experiment.make_target().prepare(Progress().tell)
    state.dark = dark
    return replace(scene_of(state, None), live=True)


def _target(target: Target, query: str) -> dict[str, Any]:
    made = {
        "run": description.of_target(target),
        "truth": {
            "cdf": [description.packed(edges_and_cdf(column)[1]) for column in target.columns],
            "ks_columns": list(target.ks_columns),
            "divergence": _divergence(target),
        },
    }
    return {
        "key": target.key,
        "title": target.title,
        "first": {},
        "base": made,
        "parameters": [],
        "variations": {},
        "query": query,
    }


def _divergence(target: Target) -> dict[str, Any] | None:
    """The cells of the KL divergence on the line and in the plane; None on the simplex."""
    if target.support == SIMPLEX:
        return None
    grid, terms = divergence.poisson_terms()
    arrays = {"grid": description.packed(grid), "terms": description.packed(terms)}
    if target.planar:
        return {"merged": divergence.MERGED, "masses": description.packed(divergence.joint_masses(target)), **arrays}
    cuts, masses = divergence.cells(target.columns[0])
    return {"cuts": description.packed(cuts), "masses": description.packed(masses), **arrays}


def _lane(spec: RunSpec) -> dict[str, Any]:
    run = description.of_run(spec)
    target = spec.make_target()

    def of_sampler(values: Any) -> dict[str, Any]:
        sampler = make_sampler(spec.sampler._replace(params=tuple(values.items())))
        sampler.check(target)
        return description.of_sampler(sampler, target)

    def of_gradient(values: Any) -> dict[str, Any]:
        gradient = make_gradient(spec.gradient._replace(params=tuple(values.items())))
        gradient.check(target)
        return description.of_gradient(gradient, target)

    sampler, gradient = SAMPLERS[spec.sampler.key], GRADIENTS[spec.gradient.key]
    return {
        "run": {name: value for name, value in run.items() if name not in ("target", "sampler", "gradient")},
        "sampler": _choice(sampler, spec.sampler.values(), of_sampler),
        "gradient": _choice(gradient, spec.gradient.values(), of_gradient),
        "equations": "".join(mathml(line, alone=True) for line in lines_of(sampler.update_by(gradient), r"\\\\")),
    }


def _choice(owner: Any, values: Any, describe: Any) -> dict[str, Any]:
    first = dict(values)
    found = variations(owner, first, describe)
    parameters = [_parameter(name, parameter) for name, parameter in declared(owner) if name in found]
    return {
        "key": owner.key, "title": owner.title, "first": {name: first[name] for name in found}, "base": describe(first),
        "parameters": parameters, "variations": found, "texts": {name: value_text(value) for name, value in values.items() if value != ()},
    }  # fmt: skip


def _parameter(name: str, parameter: Any) -> dict[str, Any]:
    kinds = {Count: "count", Real: "real", Flag: "flag", Option: "option"}
    bounds = getattr(parameter, "bounds", None)
    return {
        "name": name, "label": parameter.label, "doc": parameter.doc or "", "kind": next(kind for one, kind in kinds.items() if isinstance(parameter, one)),
        "bounds": list(bounds) if bounds else None, "log": getattr(parameter, "log", False),
    }  # fmt: skip

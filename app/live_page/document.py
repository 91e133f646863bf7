"""A live page as HTML: figures, controls, compiled functions and the experiment in one file."""

import gzip
import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from hashlib import sha256
from html import escape
from itertools import product
from typing import Any, NamedTuple

from bokeh.resources import Resources

from sgmcmc_lab.app.lesson.rules import shows
from sgmcmc_lab.app.live.lanes import Progress, scene_of
from sgmcmc_lab.app.live_page.claims import ks_columns
from sgmcmc_lab.app.live_page.figures import Changes, Difference, Drawn, StructureError, Turned
from sgmcmc_lab.app.live_page.recorded import recorded
from sgmcmc_lab.app.live_page.slow import described, names_of, palette
from sgmcmc_lab.app.live_page.still import still
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.app.views import VIEWS, fitting
from sgmcmc_lab.app.views.base import AXIS_LABELS, Scene, View
from sgmcmc_lab.app.views.bundle import ASSETS, bundle
from sgmcmc_lab.app.views.formulas import COMMAS, rows_of, short
from sgmcmc_lab.app.views.theme import in_dark
from sgmcmc_lab.lessons.formulas import mathml
from sgmcmc_lab.lessons.lesson import Step
from sgmcmc_lab.lessons.scripts import functions, of_json, policy
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.choices import make_gradient, make_sampler, make_target
from sgmcmc_lab.samplers.compile.wasm import ModuleError
from sgmcmc_lab.samplers.compile.wasm.engine import engine
from sgmcmc_lab.samplers.compile.wasm.link import module
from sgmcmc_lab.samplers.diagnostics import divergence
from sgmcmc_lab.samplers.diagnostics.ks import edges_and_cdf
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.gradients import GRADIENTS, Estimator
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.kernels.base import KEPT, Sampler
from sgmcmc_lab.samplers.lanes import CONSTANT, samplers_of
from sgmcmc_lab.samplers.link import choice_text, value_text
from sgmcmc_lab.samplers.live import description
from sgmcmc_lab.samplers.live.description import draws_exactly, smooth
from sgmcmc_lab.samplers.live.variations import tried, variations
from sgmcmc_lab.samplers.parameters import Count, Flag, Option, Real, SpecError, Value, declared
from sgmcmc_lab.samplers.schedules import SCHEDULES
from sgmcmc_lab.samplers.settings import Settings
from sgmcmc_lab.samplers.targets import TARGETS
from sgmcmc_lab.samplers.targets.base import SIMPLEX, Target

LIVE = (
    "state", "energy", "phase", "circle", "torus", "globe", "frames", "components", "fit", "marginal", "ks", "kl", "bought", "temperature",
    "thermostat", "trace", "autocorrelation", "moments", "mgf",
)  # fmt: skip
"""The views that move without a server, in the order of the page."""
BOKEH = ("bokeh", "bokeh-widgets")
"""The parts of BokehJS; pages whose figures have no sliders need only the first."""
LIVE_SCRIPT = "live.js"
"""The file with the page's own script, next to the pages of a site."""
MOST_LETTERS = 30.0
"""The width of a formula's row, in letters: for a phone, and for the column of controls on a wide screen."""
MOST_CHAINS = 100
"""Chains of a live page, which may run on a phone."""


NAMES = tuple(f"\u27ea{i}\u27eb" for i in range(4))
"""Placeholders for the lanes' names in a figure; the page fills them in."""
COMPANIONS = (
    "sgld",
    "sghmc",
    "hmc",
    "nuts",
    "scir",
    "sgrld",
    "sggmc",
    "gmc",
    "geodesic_sgld",
    "gsgnht",
    "mala",
    "baoab",
    "svgd",
)
"""Samplers that the page of an experiment offers in addition to its own, if they fit the target, in this order."""
MOST_COMPANIONS = 4
MOST_LANES = 3
"""The largest number of lanes after an addition; a file may begin with more."""
STOPS = 5
"""Values of a target's parameter on its slider, from bound to bound; its first value is one more."""
MOST_STOP = 200_000
"""Characters of JSON that a value of a target's parameter may add to the page; compression leaves a third."""
MOST_MOVED = 3
"""The largest number of a target's parameters with sliders."""
HEAT = "temperature"
"""The name of the temperature among the sliders of the target."""
HEATS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 10.0)
"""The temperatures on the slider; the file's own is one more."""
MENUS = {
    "target": "other targets",
    "sampler": "other samplers",
    "gradient": "other gradients",
    "lanes": "more samplers",
}
"""Controls of a lesson's step that its live page does not have."""


class LivePage(NamedTuple):
    """A live page."""

    text: str
    """The HTML file."""
    steps: list[dict[str, Any]]
    """Its steps, as the page's script has them."""


def document(
    title: str,
    states: Sequence[AppState | None],
    text: str = "",
    beside: bool = False,
    companions: Sequence[str] = (),
    lesson: Mapping[str, Any] | None = None,
    more: Sequence[RunSpec] = (),
    lab: str = "",
) -> LivePage:
    """One HTML file of several steps, each an experiment on a density, or None for a step with text only.

    ``text`` is HTML above the experiment. BokehJS is in the file, or with ``beside`` in files next to it. With
    ``companions``, keys of samplers, a reader can add and remove lanes, and give a lane one of those samplers.
    ``lesson`` is a lesson's data for the page's script, and ``more`` are its further runs on the same targets.
    ``lab`` is the address of the lab in which a reader can open the experiment. Raises :class:`SpecError`.
    """
    alone = [_alone(state.experiment, companions) if state is not None else [] for state in states]
    runs = [run for listed in alone for one in listed for run in one.runs()]
    needed = [one for run in (*runs, *more) for one in description.functions(run)]
    for state in (state for state in states if state is not None):
        # The functions of a tempered target are others.
        for heat in _heats(state, bool(companions)):
            needed += make_target(state.experiment.target, heat).functions()
    try:
        compiled = module(needed) if runs else b""
    except ModuleError as error:
        raise SpecError("live", title, str(error)) from error
    steps = [
        _page(state, listed, bool(companions)) if state is not None else EMPTY
        for state, listed in zip(states, alone, strict=True)
    ]
    # Steps often share a target, and its data and exact answers make up most of a page.
    targets: list[Any] = []
    for step in steps:
        if step["target"] not in targets:
            targets.append(step["target"])
    steps = [step | {"target": targets.index(step["target"])} for step in steps]
    # A module that was linked for this page is in it.
    apart = beside and compiled == engine().module
    pool = Pool()
    pages = {
        "signatures": description.signatures(runs[0]) if runs else {},
        "constants": description.constants(),
        "steps": pool.pooled(steps),
        "targets": pool.pooled(targets),
        "lesson": pool.pooled(lesson),
        "lab": lab,
    }
    of_lesson = lesson["steps"] if lesson is not None else []
    recordings = [step["recording"] or {} for step in of_lesson]
    components = BOKEH[: 2 if any(part.get("widgets") for part in (*steps, *recordings)) else 1]
    parts = {
        "TITLE": escape(title),
        "STYLE": (ASSETS / "live" / "page.css").read_text(encoding="utf-8"),
        "STILL": _still(next((state for state in states if state is not None), None)),
        "TEXT": f'<div id="text">{text}</div>' if text else "",
        "FUNCTIONS": functions(of_json([steps, of_lesson])),
        "BOKEH": "".join(_bokeh(component, beside) for component in components),
        "WORKER": "" if beside else bundle("live/worker.js"),
        "ENGINE": f'<script src="{engine_file()}"></script>' if apart else "",
        "SCRIPT": f'<script src="{LIVE_SCRIPT}"></script>' if beside else f"<script>{bundle('live/page.js')}</script>",
        "PAGE": _zipped(_json(pages)),
        "ARRAYS": _zipped(bytes(pool.content)),
        "MODULE": _zipped(compiled) if compiled and not apart else "",
    }
    allowed = "'self' file: 'wasm-unsafe-eval'" if beside else "'wasm-unsafe-eval'"
    own = parts["FUNCTIONS"]
    if not beside:
        own += parts["SCRIPT"] + "".join(f"<script>{script_of(component)}</script>" for component in components)
    parts["POLICY"] = f"{policy(own, allowed)}; worker-src blob:"
    page = (ASSETS / "live" / "page.html").read_text(encoding="utf-8")
    return LivePage(re.sub("<!--([A-Z]+)-->", lambda found: parts[found[1]], page), steps)


def _still(state: AppState | None) -> str:
    """A picture of the first experiment's target."""
    if state is None:
        return ""
    return still(state.experiment.make_target(), state.coordinate, state.experiment.temperature)


@cache
def script_of(component: str) -> str:
    """A part of BokehJS as text."""
    return "\n".join(Resources(mode="inline", components=[component]).js_raw)


def live_script() -> str:
    """The page's own script for a file next to the page; it contains the worker's text."""
    return f'document.getElementById("worker").textContent = {json.dumps(bundle("live/worker.js"))}\n{bundle("live/page.js")}'


@cache
def engine_file() -> str:
    """The name of the file with the engine, next to the pages of a site: another engine has another name."""
    return f"engine-{sha256(engine().module).hexdigest()[:16]}.js"


def engine_script() -> str:
    """The contents of that file."""
    return f'document.getElementById("module").textContent = "{_zipped(engine().module)}"'


@cache
def _bokeh(component: str, beside: bool) -> str:
    """A part of BokehJS: the name of a file, or its compressed text, which the page's script unpacks."""
    if beside:
        return f'<script src="{component}.js"></script>'
    return f'<script type="text/plain" class="bokeh">{_zipped(script_of(component).encode())}</script>'


def _json(value: Any) -> bytes:
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def _zipped(content: bytes) -> str:
    """Bytes as text that a script element can hold: compressed, in base64."""
    return b64encode(gzip.compress(content, 9, mtime=0)).decode()


class Pool:
    """The arrays of a file, each stored once."""

    def __init__(self) -> None:
        self.content = bytearray()
        self._places: dict[str, list[int]] = {}

    def pooled(self, node: Any) -> Any:
        """The same data, with the place of each array's bytes instead of the bytes."""
        if isinstance(node, (list, tuple)):
            return [self.pooled(part) for part in node]
        if not isinstance(node, dict):
            return node
        data = node.get("data")
        if isinstance(data, str) and (node.get("type") == "bytes" or "shape" in node):
            return {**node, "data": {"pooled": self._place(data)}}
        return {name: self.pooled(part) for name, part in node.items()}

    def _place(self, data: str) -> list[int]:
        if data not in self._places:
            raw = b64decode(data)
            self._places[data] = [len(self.content), len(raw)]
            self.content += raw
        return self._places[data]


EMPTY: dict[str, Any] = {
    "names": [], "columns": [], "dim": 0, "start": [], "seed": 1, "n_chains": 1, "most_chains": 1, "most_seed": 1, "speed": 1, "slow": False, "axis": "steps", "most_speed": 1,
    "coordinate": 0, "axes": {}, "shown": [], "figures": {0: {"views": {}, "dark": {"before": {}, "after": {}}, "axis_labels": [], "taps": {}}},
    "target": {"key": "", "title": "", "base": {}, "texts": {}, "temperature": 1.0}, "stops": {}, "controls": None, "elsewhere": [], "kinds": [], "lanes": [],
}  # fmt: skip
"""A step without an experiment."""


def _alone(experiment: Experiment, companions: Sequence[str]) -> list[Experiment]:
    """An experiment with one lane for each of its lanes, and for some companions (by key) that fit the target."""
    target, data = experiment.make_target(), experiment.to_dict()
    used = {lane.sampler.key for lane in experiment.lanes}
    free = [key for key in companions if key not in used and key in samplers_of(target.key, target)]
    more = []
    for key in free:
        # Some settings of the page, such as a momentum, do not fit every sampler.
        with suppress(SpecError):
            more.append(Experiment.from_dict({**data, "lanes": [{"sampler": {"key": key}}]}))
    return [*(replace(experiment, lanes=(lane,)) for lane in experiment.lanes), *more[:MOST_COMPANIONS]]


def _page(state: AppState, alone: Sequence[Experiment], changes: bool) -> dict[str, Any]:
    """A step: the kinds of lanes, the figures for each possible number of lanes, and the first settings."""
    experiment = state.experiment
    target, n_lanes = experiment.make_target(), len(experiment.lanes)
    kinds = [_kind(one) for one in alone]
    keys = [key for key in LIVE if any(key in kind["views"] for kind in kinds)]
    throws = sum(make_sampler(one.lanes[0].sampler).momentum == KEPT for one in alone)
    counts = range(1, max(MOST_LANES, n_lanes) + 1) if changes else [n_lanes]
    diverges = any(SAMPLERS[one.lanes[0].sampler.key].diverges for one in alone)
    scene = replace(_scene(state), diverges=diverges, noted=0, parts=names_of(alone))
    scenes = {n: replace(scene, lanes=NAMES[:n], throws=min(throws, n)) for n in counts}
    drawn = {n: _drawn(keys, scene) for n, scene in scenes.items()}
    with_parts = [one.view.key for one in drawn[n_lanes] if "parts" in one.view.feeds]
    slow = _slow(alone, kinds, with_parts, replace(scenes[n_lanes], lanes=NAMES[:1], throws=min(throws, 1)))
    views = {n: _figures(drawn[n]) for n in counts}
    still_keys = [key for key in state.views if key not in LIVE and key in fitting(experiment)]
    stills = recorded(state, replace(scenes[n_lanes], lanes=state.lane_titles()), still_keys)
    for one, said in stills:
        views[n_lanes]["views"][one.view.key] = {**one.described(), "feeds": {}, "data": None, "recorded": said}
        recoloured = Difference.by_colour(one, in_dark())
        views[n_lanes]["dark"]["before"] |= recoloured.before
        views[n_lanes]["dark"]["after"] |= recoloured.after
    shown = list(views[n_lanes]["views"])
    step = state.position.step
    # A lesson's claims hold for its own number of chains.
    most_chains = MOST_CHAINS if step is None else max(MOST_CHAINS, experiment.n_chains)
    moved = [
        name for name, _ in declared(type(target)) if changes or (step is not None and shows(step, f"target.{name}"))
    ]
    with_draws = _with_draws(alone)
    stops = _stops(state, moved, _heats(state, changes), alone, kinds, drawn, scenes)
    return {
        "names": state.lane_titles(),
        "columns": [column.name for column in target.columns],
        "dim": target.dim,
        "start": [float(x) for x in experiment.runs()[0].first_position()],
        "seed": experiment.seed,
        "n_chains": min(experiment.n_chains, most_chains),
        "most_chains": most_chains,
        "most_seed": 2**32 - 1,
        "speed": state.speed,
        "slow": state.slow > 0,
        "most_speed": 1_000_000,
        "axis": state.axis,
        "coordinate": state.coordinate,
        "axes": {key: label for key, label in AXIS_LABELS.items() if key in ("steps", "gradients", "data")},
        "shown": [key for key in state.views if key in shown] or shown[:3],
        "figures": views,
        "widgets": any(one.needs_widgets for one in (*drawn[n_lanes], *(one for one, _ in stills))),
        "target": _target(experiment, with_draws, step),
        "stops": stops,
        "controls": None if step is None or changes else _controls(step, kinds[:n_lanes], stops),
        "elsewhere": [] if step is None or changes else _elsewhere(state, step, kinds[:n_lanes], stops),
        "kinds": [kind | {"slow": steps} for kind, steps in zip(kinds, slow, strict=True)],
        "parts": palette(names_of(alone)),
        "lanes": list(range(n_lanes)),
    }


def _slow(alone: Sequence[Experiment], kinds: Sequence[Any], keys: Sequence[str], scene: Scene) -> list[Any]:
    """The recorded steps of each kind of lane, in the views with these keys, which draw the parts of a step."""
    views = [VIEWS[key](scene) for key in keys]
    shown = [[view for view in views if view.key in kind["views"]] for kind in kinds]
    return [described(one, scene.parts, there, scene.coordinate) for one, there in zip(alone, shown, strict=True)]


def _drawn(keys: Sequence[str], scene: Scene) -> list[Drawn]:
    """The views of a scene that a live page can have."""
    found = [Drawn.of(key, scene) for key in keys]
    return [one for one in found if one is not None]


def _turned(
    drawn: Mapping[int, Sequence[Drawn]], scenes: Mapping[int, Scene], n_lanes: int, target: Target
) -> dict[int, list[Turned]]:
    """The figures for each number of lanes for another target.

    A figure that cannot turn is rebuilt for the file's number of lanes, and for another number where the first
    difference does not determine its own.
    """
    found: dict[int, list[Turned]] = {n: [] for n in drawn}
    for place, one in enumerate(drawn[n_lanes]):
        turned = {n: there[place].turned(target) for n, there in drawn.items()}
        base = None if turned[n_lanes] is not None else _again(one, scenes[n_lanes], target)
        for n, there in drawn.items():
            made = turned[n]
            if made is None and base is not None and n != n_lanes:
                change = base.change.carried(one, there[place])
                made = (
                    None if change is None else base._replace(change=change, tap=_own_tap(base.tap, there[place].view))
                )
            elif made is None:
                made = base
            found[n].append(made or _again(there[place], scenes[n], target))
    return found


def _again(one: Drawn, scene: Scene, target: Target) -> Turned:
    """The same by a new figure. Raises :class:`StructureError` where it has other models."""
    twin = Drawn.of(one.view.key, replace(scene, target=target))
    if twin is None:
        raise StructureError(one.view.key)
    return Turned(Difference.between(one, twin), twin.view.live_data(), _own_tap(twin.view.live_tap(), one.view))


def _own_tap(tap: dict[str, Any] | None, view: View) -> dict[str, Any] | None:
    """A click's data, with the models of this view's figure."""
    own: dict[str, Any] = view.live_tap() or {}
    ids: dict[str, Any] = {name: own[name] for name in ("figure", "arrow", "turn", "tilt") if name in own}
    return None if tap is None else {**tap, **ids}


def _figures(drawn: Sequence[Drawn]) -> dict[str, Any]:
    """The figures for one number of lanes, and their differences in the dark theme."""
    return {
        "views": {one.view.key: one.described() for one in drawn},
        "dark": _changes(Difference.by_colour(one, in_dark()) for one in drawn),
        "axis_labels": [label for one in drawn for label in one.axis_labels],
        "taps": {one.view.key: tap for one in drawn if (tap := one.view.live_tap())},
    }


def _changes(found: Iterable[Difference]) -> dict[str, Changes]:
    """The differences of several views, merged."""
    changes = list(found)
    return {
        "before": {model: values for one in changes for model, values in one.before.items()},
        "after": {model: values for one in changes for model, values in one.after.items()},
    }


def _controls(step: Step, kinds: Sequence[Any], stops: Mapping[str, Any]) -> list[str]:
    """The controls of the page that a lesson's step shows, by their addresses; a reader can show the others, too."""
    lanes = [
        f"lane{number}.{part}.{name}"
        for number, kind in enumerate(kinds, 1)
        for part in ("sampler", "gradient")
        for name in kind[part]["first"]
    ]
    there = (*lanes, *map(_address, stops), "speed", "seed", "n_chains")
    return [name for name in there if shows(step, name)]


def _elsewhere(state: AppState, step: Step, kinds: Sequence[Any], stops: Mapping[str, Any]) -> list[str]:
    """The labels of the controls that a lesson's step shows in the lab alone, or there with more values."""
    experiment, out = state.experiment, [words for name, words in MENUS.items() if name in step.controls]
    for number, (lane, kind) in enumerate(zip(experiment.lanes, kinds, strict=True), 1):
        for part, owner in (("sampler", SAMPLERS[lane.sampler.key]), ("gradient", GRADIENTS[lane.gradient.key])):
            listed = [(name, one.label) for name, one in declared(owner) if name not in kind[part]["first"]]
            out += [label for name, label in listed if shows(step, f"lane{number}.{part}.{name}")]
    for name, parameter in declared(TARGETS[experiment.target.key]):
        if shows(step, f"target.{name}") and name not in stops:
            out.append(parameter.label)
        elif shows(step, f"target.{name}") and stops[name]["cut"]:
            out.append(f"{parameter.label} up to {parameter.bounds[1]:,}")
    if shows(step, HEAT) and HEAT not in stops:
        out.append(Settings.param.temperature.label)
    return list(dict.fromkeys(out))


def _address(name: str) -> str:
    """The address of a slider of the target."""
    return HEAT if name == HEAT else f"target.{name}"


def _heats(state: AppState, changes: bool) -> list[float]:
    """The temperatures on the page's slider, its own among them; empty where it has none.

    A page that begins at T = 1 has one where its lesson's step asks for it: the exact answers of each take a second.
    """
    now, step = state.experiment.temperature, state.position.step
    asked = now != 1 if changes or step is None else shows(step, HEAT)
    if not asked or not TARGETS[state.experiment.target.key].has_temperatures():
        return []
    found = []
    for heat in sorted({now, *HEATS}):
        with suppress(SpecError):
            if make_target(state.experiment.target, heat).ready or heat == now:
                found.append(heat)
    return found if len(found) > 2 else []


def _stops(
    state: AppState,
    names: Sequence[str],
    heats: Sequence[float],
    alone: Sequence[Experiment],
    kinds: Sequence[Any],
    drawn: Mapping[int, Sequence[Drawn]],
    scenes: Mapping[int, Scene],
) -> dict[str, Any]:
    """For each parameter of the target with a slider, and the temperature: the differences at each of its values."""
    out: dict[str, Any] = {}
    first, own = state.experiment.target.values(), declared(TARGETS[state.experiment.target.key])
    first[HEAT] = state.experiment.temperature
    listed = [(name, one, tried(one, first[name], STOPS)) for name, one in own if name in names]
    for name, parameter, values in [(HEAT, Settings.param.temperature, heats), *listed]:
        found, cut = [], False
        for value in values:
            try:
                stop = _stop(state, name, value, alone, kinds, drawn, scenes) if value != first[name] else None
            except (SpecError, StructureError):
                continue
            if len(_json(stop)) > MOST_STOP:
                cut = True
                break
            found.append([value, stop])
        if len(found) > 2 and len(out) < MOST_MOVED:
            out[name] = {"parameter": _parameter(name, parameter), "stops": found, "cut": cut}
    return out


def _stop(
    state: AppState,
    name: str,
    value: Value,
    alone: Sequence[Experiment],
    kinds: Sequence[Any],
    drawn: Mapping[int, Sequence[Drawn]],
    scenes: Mapping[int, Scene],
) -> dict[str, Any]:
    """The differences at this value of the target's parameter, or of the temperature.

    Raises :class:`SpecError` for an invalid value, and :class:`~app.live_page.figures.StructureError` where the figures
    differ in structure.
    """
    spec, n_lanes = state.experiment.target, len(state.experiment.lanes)
    to = {HEAT: value} if name == HEAT else {"target": {"key": spec.key, "params": {**spec.values(), name: value}}}
    moved = Experiment.from_dict({**state.experiment.to_dict(), **to})
    target = moved.make_target()
    if not target.ready or target.dim != state.experiment.make_target().dim:
        raise SpecError(name, value, "its exact answers take too long")
    there = [_kind(replace(one, target=moved.target, temperature=moved.temperature)) for one in alone]
    figures = {}
    for n, turned in _turned(drawn, scenes, n_lanes, target).items():
        pairs = [(one.view, then) for one, then in zip(drawn[n], turned, strict=True)]
        figures[n] = {
            **_changes(then.change for then in turned),
            "data": {view.key: then.data for view, then in pairs if view.live_data() != then.data},
            "taps": {view.key: then.tap for view, then in pairs if then.tap},
        }
    return {
        "target": aimed(target, _with_draws(alone), state.position.step),
        "kinds": [
            {name: part for name, part in kind.items() if part != base[name]}
            for kind, base in zip(there, kinds, strict=True)
        ],
        "figures": figures,
    }


def _scene(state: AppState) -> Any:
    """The scene of the figures, once the target's exact answers are computed."""
    state.experiment.make_target().prepare(Progress().tell)
    state.dark = False
    return replace(scene_of(state, None), live=True)


def _with_draws(alone: Sequence[Experiment]) -> bool:
    """Whether the file needs what the target's ``draw`` reads: one of these experiments draws exactly."""
    return any(draws_exactly(one.lanes[0].sampler) for one in alone)


def _target(experiment: Experiment, with_draws: bool, step: Step | None) -> dict[str, Any]:
    target = experiment.make_target()
    return {
        "key": target.key,
        "title": target.title,
        "base": aimed(target, with_draws, step),
        "texts": _texts(experiment.target.values()),
        "temperature": experiment.temperature,
    }


def packed(array: Any) -> dict[str, Any]:
    """An array of exact answers, which never contains a parameter's value."""
    return description.packed(array, few=0)


def aimed(target: Target, with_draws: bool = False, step: Step | None = None) -> dict[str, Any]:
    """A target as the engine sees it, with the exact answers that the measures of a lesson's step need, too."""
    read = {*target.ks_columns, *(() if step is None else ks_columns(step))}
    return description.of_target(target, with_draws) | {
        "truth": {
            "cdf": [smooth(edges_and_cdf(column)[1]) if k in read else None for k, column in enumerate(target.columns)],
            "ks_columns": list(target.ks_columns),
            "divergence": _divergence(target),
        }
    }


def _divergence(target: Target) -> dict[str, Any] | None:
    """The cells of the KL divergence on the line and in the plane; None on the simplex."""
    if target.support == SIMPLEX:
        return None
    grid, terms = divergence.poisson_terms()
    arrays = {"grid": packed(grid), "terms": packed(terms)}
    if target.planar:
        return {"merged": divergence.MERGED, "masses": packed(divergence.joint_masses(target)), **arrays}
    cuts, masses = divergence.cells(target.columns[0])
    return {"cuts": packed(cuts), "masses": packed(masses), **arrays}


def _kind(alone: Experiment) -> dict[str, Any]:
    """A kind of lane: a sampler with its gradient, each with parameters, and the views that show it."""
    (spec,) = alone.runs()
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
    choice = _choice(sampler, spec.sampler.values(), of_sampler)
    return {
        "title": sampler.title,
        "views": [key for key in LIVE if key in fitting(alone)],
        "run": {name: value for name, value in run.items() if name not in ("target", "sampler", "gradient")},
        "sampler": choice,
        "gradient": _choice(gradient, spec.gradient.values(), of_gradient),
        "schedule": choice_text(SCHEDULES, spec.schedule) if spec.schedule != CONSTANT else "",
        "equations": _equations(sampler, gradient, spec, target, choice["first"]),
    }


def _equations(
    sampler: type[Sampler], gradient: type[Estimator], spec: RunSpec, target: Target, offered: Mapping[str, Value]
) -> list[tuple[dict[str, Value], str]]:
    """The formulas of a step for all values of the flags that the page offers and that change them; those at the first
    values come last.
    """
    first, schedule = spec.sampler.values(), spec.make_schedule().equations
    own = {name: first[name] for name in sampler.optional if name in offered}
    found: list[dict[str, Value]] = [
        dict(zip(own, values, strict=True)) for values in product((True, False), repeat=len(own))
    ]
    return [
        (
            flags,
            "".join(
                mathml(line, alone=True)
                for formula in (
                    sampler.update_by(gradient, {**first, **flags}),
                    *short(sampler.typed_formulas({**first, **flags}, target)),
                    *schedule,
                )
                for line in rows_of(formula, COMMAS, MOST_LETTERS)
            ),
        )
        for flags in [*(one for one in found if one != own), {}]
    ]


def _choice(owner: Any, values: Any, describe: Any) -> dict[str, Any]:
    first = dict(values)
    found = variations(owner, first, describe)
    parameters = [_parameter(name, parameter) for name, parameter in declared(owner) if name in found]
    return {
        "key": owner.key,
        "title": owner.title,
        "first": {name: first[name] for name in found},
        "base": describe(first),
        "parameters": parameters,
        "variations": found,
        "texts": _texts(values),
    }


def _texts(values: Mapping[str, Value]) -> dict[str, str]:
    """The values of parameters as a link writes them."""
    return {name: value_text(value) for name, value in values.items() if value != ()}


def _parameter(name: str, parameter: Any) -> dict[str, Any]:
    kinds = {Count: "count", Real: "real", Flag: "flag", Option: "option"}
    bounds = getattr(parameter, "bounds", None)
    return {
        "name": name,
        "label": parameter.label,
        "doc": parameter.doc or "",
        "kind": next(kind for one, kind in kinds.items() if isinstance(parameter, one)),
        "bounds": list(bounds) if bounds else None,
        "log": getattr(parameter, "log", False),
    }

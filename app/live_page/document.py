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
from typing import Any, NamedTuple
from urllib.parse import quote

from bokeh.resources import Resources

from sgmcmc_lab.app.lesson.rules import shows
from sgmcmc_lab.app.live.lanes import Progress, scene_of
from sgmcmc_lab.app.live_page.claims import ks_columns
from sgmcmc_lab.app.live_page.figures import (
    Changes,
    Difference,
    Drawn,
    StructureError,
    Turned,
    Views,
    with_short_ids,
)
from sgmcmc_lab.app.live_page.kinds import LIVE, MOST_CHAINS, Kinds, alone, parameter_of, texts
from sgmcmc_lab.app.live_page.recorded import recorded
from sgmcmc_lab.app.live_page.slow import described, names_of, palette
from sgmcmc_lab.app.live_page.still import still
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.app.views import VIEWS, fitting
from sgmcmc_lab.app.views.base import AXIS_LABELS, Scene, View
from sgmcmc_lab.app.views.bundle import ASSETS, bundle
from sgmcmc_lab.app.views.theme import in_dark
from sgmcmc_lab.lessons.lesson import Step
from sgmcmc_lab.lessons.scripts import functions, of_json, policy
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.choices import make_sampler, make_target
from sgmcmc_lab.samplers.compile.wasm import ModuleError
from sgmcmc_lab.samplers.compile.wasm.engine import engine
from sgmcmc_lab.samplers.compile.wasm.link import module
from sgmcmc_lab.samplers.diagnostics import divergence
from sgmcmc_lab.samplers.diagnostics.ks import edges_and_cdf
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.gradients import GRADIENTS
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.kernels.base import KEPT
from sgmcmc_lab.samplers.live import description
from sgmcmc_lab.samplers.live.description import draws_exactly, smooth
from sgmcmc_lab.samplers.live.variations import tried
from sgmcmc_lab.samplers.migrations import VERSION
from sgmcmc_lab.samplers.parameters import SpecError, Value, declared
from sgmcmc_lab.samplers.settings import Settings, settings_of
from sgmcmc_lab.samplers.targets import TARGETS
from sgmcmc_lab.samplers.targets.base import SIMPLEX, Target

ICON_SVG = (
    "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 64 64'><rect width='64' height='64' rx='12' fill='#0b61a8'/>"
    "<path d='M6 52C22 52 22 14 32 14S42 52 58 52' fill='none' stroke='#fff' stroke-width='5' stroke-linecap='round'/></svg>"
)
"""The icon, as SVG: the curve of a density."""
ICON = f"data:image/svg+xml,{quote(ICON_SVG)}"
"""The icon as a page holds it. Without it, a browser would ask a server for one."""
BOKEH = ("bokeh", "bokeh-widgets")
"""The parts of BokehJS; pages whose figures have no sliders need only the first."""
LIVE_SCRIPT = "live.js"
"""The file with the page's own script, next to the pages of a site."""


NAMES = tuple(f"\u27ea{i}\u27eb" for i in range(4))
"""Placeholders for the lanes' names in a figure; the page fills them in."""
LENGTHS = ("n_steps", "burn_in", "thin")
"""The lengths of a run, which a live page does not change."""
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


class Contents(NamedTuple):
    """The contents of a file for the page's script."""

    steps: list[dict[str, Any]]
    page: str
    """Everything but arrays and compiled functions, compressed."""
    arrays: str
    module: bytes
    """The compiled functions; empty without an experiment."""
    functions: str
    """A script element with the code of the figures."""
    components: Sequence[str]
    """The parts of BokehJS that the figures need."""


def document(
    title: str,
    states: Sequence[AppState | None],
    text: str = "",
    beside: bool = False,
    menu: bool = False,
    lesson: Mapping[str, Any] | None = None,
    more: Sequence[RunSpec] = (),
    lab: str = "",
) -> LivePage:
    """One HTML file of several steps, each an experiment on a density, or None for a step with text only.

    ``text`` is HTML above the experiment. BokehJS is in the file, or with ``beside`` in files next to it. With a
    ``menu`` a reader can add and remove lanes, and give a lane any sampler and any gradient that fit the target.
    ``lesson`` is a lesson's data for the page's script, and ``more`` are its further runs on the same targets.
    ``lab`` is the address of the lab in which a reader can open the experiment. Raises :class:`SpecError`.
    """
    held = _contents(title, states, menu, lesson, more, {"lab": lab})
    return LivePage(
        _html(title, text, held, beside, next((one for one in states if one is not None), None)), held.steps
    )


def document_of_scripts(title: str, scripts: Sequence[Mapping[str, str]], text: str, first: AppState) -> str:
    """The HTML of a page whose steps are in files next to it; ``first`` is the state of the first step.

    Each of the ``scripts`` has the ``key`` of its target, and the file's name as ``script``. Raises :class:`SpecError`.
    """
    held = _contents(title, [], True, None, first.experiment.runs(), {"apart": scripts})
    return _html(title, text, held._replace(components=BOKEH), True, first)


def script_of_step(key: str, state: AppState) -> str:
    """The file of a step, with the whole menu of samplers and gradients. Raises :class:`SpecError`."""
    held = _contents(key, [state], True, None, (), {})
    code = held.functions.removeprefix("<script>").removesuffix("</script>")
    return f'{code}\n(globalThis.experiments ??= {{}})[{json.dumps(key)}] = ["{held.page}", "{held.arrays}"]\n'


def _contents(
    title: str,
    states: Sequence[AppState | None],
    menu: bool,
    lesson: Mapping[str, Any] | None,
    more: Sequence[RunSpec],
    further: Mapping[str, Any],
) -> Contents:
    kinds = [alone(state.experiment, menu) if state is not None else [] for state in states]
    runs = [*(run for listed in kinds for one in listed for run in one.runs()), *more]
    needed = [one for run in runs for one in description.functions(run)]
    for state in (state for state in states if state is not None):
        # The functions of a tempered target are others.
        for heat in _heats(state, menu):
            needed += make_target(state.experiment.target, heat).functions()
    try:
        compiled = module(needed) if runs else b""
    except ModuleError as error:
        raise SpecError("live", title, str(error)) from error
    steps = [
        with_short_ids(_page(state, listed, menu)) if state is not None else EMPTY
        for state, listed in zip(states, kinds, strict=True)
    ]
    # Steps often share a target, and its data and exact answers make up most of a page.
    targets: list[Any] = []
    for step in steps:
        if step["target"] not in targets:
            targets.append(step["target"])
    steps = [step | {"target": targets.index(step["target"])} for step in steps]
    views, pool = Views(steps), Pool()
    pages = {
        "signatures": description.signatures(runs[0]) if runs else {},
        "constants": description.constants(),
        "version": VERSION,
        "steps": pool.pooled([views.placed(step) for step in steps]),
        "views": pool.pooled(views.listed),
        "targets": pool.pooled(targets),
        "lesson": pool.pooled(lesson),
        **further,
    }
    of_lesson = lesson["steps"] if lesson is not None else []
    recordings = [step["recording"] or {} for step in of_lesson]
    return Contents(
        steps,
        _zipped(_json(pages)),
        _zipped(bytes(pool.content)),
        compiled,
        functions(of_json([steps, of_lesson])),
        BOKEH[: 2 if any(part.get("widgets") for part in (*steps, *recordings)) else 1],
    )


def _html(title: str, text: str, held: Contents, beside: bool, pictured: AppState | None) -> str:
    # A module that was linked for this page is in it.
    apart = beside and held.module == engine().module
    parts = {
        "TITLE": escape(title),
        "ICON": ICON,
        "STYLE": (ASSETS / "live" / "page.css").read_text(encoding="utf-8"),
        "STILL": _still(pictured),
        "TEXT": f'<div id="text">{text}</div>' if text else "",
        "FUNCTIONS": held.functions,
        "BOKEH": "".join(_bokeh(component, beside) for component in held.components),
        "WORKER": "" if beside else bundle("live/worker.js"),
        "ENGINE": f'<script src="{engine_file()}"></script>' if apart else "",
        "SCRIPT": f'<script src="{LIVE_SCRIPT}"></script>' if beside else f"<script>{bundle('live/page.js')}</script>",
        "PAGE": held.page,
        "ARRAYS": held.arrays,
        "MODULE": _zipped(held.module) if held.module and not apart else "",
    }
    allowed = "'self' file: 'wasm-unsafe-eval'" if beside else "'wasm-unsafe-eval'"
    own = parts["FUNCTIONS"]
    if not beside:
        own += parts["SCRIPT"] + "".join(f"<script>{script_of(component)}</script>" for component in held.components)
    parts["POLICY"] = f"{policy(own, allowed)}; worker-src blob:"
    page = (ASSETS / "live" / "page.html").read_text(encoding="utf-8")
    return re.sub("<!--([A-Z]+)-->", lambda found: parts[found[1]], page)


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
    "target": {"key": "", "title": "", "base": {}, "texts": {}, "temperature": 1.0}, "stops": {}, "controls": None, "elsewhere": [], "kinds": [],
    "choices": [], "runs": [], "lengths": {}, "places": {}, "slow_steps": [], "lanes": [],
}  # fmt: skip
"""A step without an experiment."""


def _page(state: AppState, alone: Sequence[Experiment], menu: bool) -> dict[str, Any]:
    """A step: the kinds of lanes, the figures for each possible number of lanes, and the first settings."""
    experiment = state.experiment
    target, n_lanes = experiment.make_target(), len(experiment.lanes)
    kinds, own = Kinds(alone), alone[:n_lanes]
    keys = [key for key in LIVE if any(key in kind["views"] for kind in kinds.listed)]
    throws = sum(make_sampler(one.lanes[0].sampler).momentum == KEPT for one in alone)
    counts = range(1, max(MOST_LANES, n_lanes) + 1) if menu else [n_lanes]
    diverges = any(SAMPLERS[one.lanes[0].sampler.key].diverges for one in alone)
    scene = replace(_scene(state), diverges=diverges, noted=0, parts=names_of(own))
    scenes = {n: replace(scene, lanes=NAMES[:n], throws=min(throws, n)) for n in counts}
    drawn = {n: _drawn(keys, scene) for n, scene in scenes.items()}
    with_parts = [one.view.key for one in drawn[n_lanes] if "parts" in one.view.feeds]
    slow = _slow(own, kinds.listed, with_parts, replace(scenes[n_lanes], lanes=NAMES[:1], throws=min(throws, 1)))
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
    moved = [name for name, _ in declared(type(target)) if menu or (step is not None and shows(step, f"target.{name}"))]
    with_draws, usual = _with_draws(alone), settings_of(experiment.target.key)
    stops = _stops(state, moved, _heats(state, menu), kinds, with_draws, drawn, scenes)
    return {
        "names": state.lane_titles(),
        "columns": [column.name for column in target.columns],
        "dim": target.dim,
        "start": [float(x) for x in experiment.runs()[0].first_position()],
        "seed": experiment.seed,
        "lengths": {name: [getattr(experiment, name), usual[name].default] for name in LENGTHS},
        "places": {name: list(getattr(experiment, name)) for name in ("start", "momentum")},
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
        "controls": None if step is None or menu else _controls(step, kinds, stops),
        "elsewhere": [] if step is None or menu else _elsewhere(state, step, kinds, stops),
        "kinds": kinds.listed,
        "choices": kinds.choices,
        "runs": kinds.runs,
        "slow_steps": slow,
        "parts": palette(names_of(own)),
        "lanes": list(range(n_lanes)),
    }


def _slow(own: Sequence[Experiment], kinds: Sequence[Any], keys: Sequence[str], scene: Scene) -> list[Any]:
    """The recorded steps of the file's own lanes, in the views with these keys, which draw the parts of a step."""
    views = [VIEWS[key](scene) for key in keys]
    shown = [[view for view in views if view.key in kind["views"]] for kind in kinds[: len(own)]]
    return [described(one, scene.parts, there, scene.coordinate) for one, there in zip(own, shown, strict=True)]


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


def _controls(step: Step, kinds: Kinds, stops: Mapping[str, Any]) -> list[str]:
    """The controls of the page that a lesson's step shows, by their addresses; a reader can show the others, too."""
    lanes = [
        f"lane{number}.{part}.{name}"
        for number in range(1, len(kinds.listed) + 1)
        for part in ("sampler", "gradient")
        for name in kinds.choice(number - 1, part)["first"]
    ]
    there = (*lanes, *map(_address, stops), "speed", "seed", "n_chains")
    return [name for name in there if shows(step, name)]


def _elsewhere(state: AppState, step: Step, kinds: Kinds, stops: Mapping[str, Any]) -> list[str]:
    """The labels of the controls that a lesson's step shows in the lab alone, or there with more values."""
    experiment, out = state.experiment, [words for name, words in MENUS.items() if name in step.controls]
    for number, lane in enumerate(experiment.lanes, 1):
        for part, owner in (("sampler", SAMPLERS[lane.sampler.key]), ("gradient", GRADIENTS[lane.gradient.key])):
            there = kinds.choice(number - 1, part)["first"]
            listed = [(name, one.label) for name, one in declared(owner) if name not in there]
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


def _heats(state: AppState, menu: bool) -> list[float]:
    """The temperatures on the page's slider, its own among them; empty where it has none.

    A page that begins at T = 1 has one where its lesson's step asks for it: the exact answers of each take a second.
    """
    now, step = state.experiment.temperature, state.position.step
    asked = now != 1 if menu or step is None else shows(step, HEAT)
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
    kinds: Kinds,
    with_draws: bool,
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
                stop = _stop(state, name, value, kinds, with_draws, drawn, scenes) if value != first[name] else None
            except (SpecError, StructureError):
                continue
            if len(_json(stop)) > MOST_STOP:
                cut = True
                break
            found.append([value, stop])
        if len(found) > 2 and len(out) < MOST_MOVED:
            out[name] = {"parameter": parameter_of(name, parameter), "stops": found, "cut": cut}
    return out


def _stop(
    state: AppState,
    name: str,
    value: Value,
    kinds: Kinds,
    with_draws: bool,
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
    there = kinds.at(moved)
    figures = {}
    for n, turned in _turned(drawn, scenes, n_lanes, target).items():
        pairs = [(one.view, then) for one, then in zip(drawn[n], turned, strict=True)]
        figures[n] = {
            **_changes(then.change for then in turned),
            "data": {view.key: then.data for view, then in pairs if view.live_data() != then.data},
            "taps": {view.key: then.tap for view, then in pairs if then.tap},
        }
    return {
        "target": aimed(target, with_draws, state.position.step),
        **there,
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
        "texts": texts(experiment.target.values()),
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
    arrays = {"grid": smooth(grid), "terms": smooth(terms)}
    if target.planar:
        return {"merged": divergence.MERGED, "masses": packed(divergence.joint_masses(target)), **arrays}
    cuts, masses = divergence.cells(target.columns[0])
    return {"cuts": packed(cuts), "masses": packed(masses), **arrays}

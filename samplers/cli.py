"""The command line: ``python -m sgmcmc_lab.samplers list | run | live``.

Exit codes: 0 done; 1 a chain diverged (its draws up to there are kept); 2 bad input, said in one sentence;
130 stopped by Ctrl-C (what was drawn is kept).
"""

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import Any

import param
from tqdm import tqdm

from sgmcmc_lab.samplers import convergence, engine, file_format
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.console import Parser
from sgmcmc_lab.samplers.diagnostics import autocorrelation
from sgmcmc_lab.samplers.experiment import Experiment, RunSpec
from sgmcmc_lab.samplers.file_format import Format
from sgmcmc_lab.samplers.files import read_file
from sgmcmc_lab.samplers.gradients import GRADIENTS
from sgmcmc_lab.samplers.interrupts import interruptible
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.lanes import samplers_of
from sgmcmc_lab.samplers.models import METHODS, MODELS
from sgmcmc_lab.samplers.models.run import ModelRun, needed, run_models, write_curves
from sgmcmc_lab.samplers.models.topics.corpus import MAX_BYTES
from sgmcmc_lab.samplers.output import written
from sgmcmc_lab.samplers.parameters import (
    MAX_FORMULA,
    Count,
    CountVector,
    Flag,
    Formula,
    Formulas,
    Option,
    RealVector,
    SpecError,
    declared,
)
from sgmcmc_lab.samplers.reader import MAX_JSON
from sgmcmc_lab.samplers.schedules import SCHEDULES
from sgmcmc_lab.samplers.settings import ANY_SAMPLER, ModelSettings, Settings
from sgmcmc_lab.samplers.targets import TARGETS
from sgmcmc_lab.samplers.targets.own import OfTable, Table, keep
from sgmcmc_lab.samplers.trace import Trace

DONE, DIVERGED, BAD_INPUT, STOPPED = 0, 1, 2, 130
SUFFIXES = (".nc", ".csv")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        with interruptible():
            return options.command(options)
    except SpecError as error:
        print(f"error: {error}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("stopped: nothing was drawn and nothing was written", file=sys.stderr)
        return STOPPED
    except BrokenPipeError:
        # The reader of a pipe, such as head, has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE


def _add_experiment(parser: argparse.ArgumentParser, data: str) -> None:
    """The options of a command on a saved experiment; ``data`` says what --data takes."""
    parser.add_argument("spec", metavar="SPEC.json", help="an experiment, as the app saves it")
    parser.add_argument("--data", nargs="+", metavar="FILE", default=[], help=data)
    file_format.add_options(parser)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="python -m sgmcmc_lab.samplers", description="SG-MCMC Lab without a screen.")
    commands = parser.add_subparsers(required=True, metavar="list | run | live")
    listing = commands.add_parser(
        "list", help="targets, samplers, gradients, schedules, models, methods and their parameters"
    )
    listing.add_argument("--json", action="store_true", help="as JSON")
    listing.set_defaults(command=_list)
    running = commands.add_parser("run", help="run a saved experiment")
    _add_experiment(running, "the documents or the network of an experiment on your own data")
    running.add_argument(
        "--out",
        required=True,
        metavar="FILE",
        help="output file of the draws: NetCDF (.nc) or CSV (.csv); with several lanes FILE-1-sgld.nc, FILE-2-…; "
        "for a model of data, of the curves of its scores (.csv)",
    )
    running.add_argument(
        "--temperature", metavar="T", help="the temperature in e^(−U/T), in place of the experiment's own"
    )
    running.set_defaults(command=_run)
    live = commands.add_parser("live", help="a saved experiment as one HTML file that runs without a server")
    _add_experiment(live, "the table of an experiment on your own data; it will be in the page")
    live.add_argument("--out", required=True, type=Path, metavar="FILE.html", help="output file of the page")
    live.add_argument("--title", default="", help="title of the page")
    live.set_defaults(command=_live)
    return parser


# --- list ----------------------------------------------------------------------------------------------------------


def catalogue() -> dict[str, Any]:
    """Targets, samplers, gradients, schedules, models and methods with their parameters, the settings of a run, and
    what fits what.
    """
    return {
        "targets": [_entry(x, "title", "tex", "source", "support") for x in TARGETS.values()],
        "samplers": [
            _entry(x, "title", "update", "diffusion", "curl", "integrator", "source") for x in SAMPLERS.values()
        ],
        "gradients": [_entry(x, "title", "tex") for x in GRADIENTS.values()],
        "schedules": [_entry(x, "title", "update") for x in SCHEDULES.values()],
        "settings": _parameters(Settings),
        "model_settings": _parameters(ModelSettings),
        "combinations": [
            {"target": target, "sampler": sampler, "gradient": gradient}
            for target, target_class in TARGETS.items()
            for sampler in samplers_of(target, target_class())
            for gradient in GRADIENTS
            if gradient in SAMPLERS[sampler].gradients_for(target_class)
        ],
        "models": [_entry(x, "title", "tex", "source", "score_name", "data_name", made=x) for x in MODELS.values()],
        "methods": [_entry(x, "title", "update", "source") for x in METHODS.values()],
        "model_combinations": [{"target": method.model, "sampler": key} for key, method in METHODS.items()],
    }


def _entry(cls: Any, *fields: str, made: Any = None) -> dict[str, Any]:
    # An instance, since the texts may depend on the parameters; but a model would load its data.
    made = made or cls()
    described = {name: getattr(made, name) for name in fields}
    return {"key": cls.key, **described, "doc": (cls.__doc__ or "").strip(), "parameters": _parameters(cls)}


def _parameters(owner: type[param.Parameterized]) -> list[dict[str, Any]]:
    return [_parameter(name, parameter) for name, parameter in declared(owner)]


def _parameter(name: str, parameter: param.Parameter) -> dict[str, Any]:
    out: dict[str, Any] = {"name": name, "type": type(parameter).__name__.lower(), "default": parameter.default}
    if isinstance(parameter, Option):
        out["type"], out["options"] = "option", list(parameter.objects)
    elif isinstance(parameter, CountVector):
        out["type"], out["bounds"], out["max_length"] = "counts", [0, parameter.max_value], parameter.max_length
    elif isinstance(parameter, RealVector):
        largest = parameter.max_value
        out["type"], out["bounds"], out["max_length"] = "reals", [-largest, largest], parameter.max_length
    elif isinstance(parameter, Formula):
        out["max_characters"] = MAX_FORMULA
    elif isinstance(parameter, Formulas):
        out["max_characters"], out["max_length"] = MAX_FORMULA, parameter.max_length
    elif not isinstance(parameter, Flag):
        out["type"] = "integer" if isinstance(parameter, Count) else "real"
        out["bounds"] = list(parameter.bounds)
    out["label"] = parameter.label
    out["unit"] = getattr(parameter, "unit", "")
    out["tex"] = getattr(parameter, "tex", "")
    out["doc"] = parameter.doc or ""
    return out


def _list(options: argparse.Namespace) -> int:
    data = catalogue()
    if options.json:
        print(json.dumps(data, ensure_ascii=False, indent=2))
    else:
        print(
            "\n\n".join(
                [
                    *(_section(data, name) for name in ("targets", "samplers", "gradients", "schedules")),
                    _pairs(data),
                    *(_section(data, name) for name in ("models", "methods")),
                    _studies(data),
                ]
            )
        )
    return DONE


def _section(data: dict[str, Any], name: str) -> str:
    lines = [name.upper()]
    for entry in data[name]:
        lines.append(f"  {entry['key']:<20} {entry['title']}")
        lines += [
            f"      {p['name']:<14} {_shown(p['default']):<14} {_range(p):<26} {p['label']}"
            for p in entry["parameters"]
        ]
    return "\n".join(lines)


def _shown(value: Any) -> str:
    return (
        ",".join(map(str, value))
        if isinstance(value, (list, tuple))
        else str(value).lower()
        if isinstance(value, bool)
        else str(value)
    )


def _range(entry: dict[str, Any]) -> str:
    if "options" in entry:
        return " | ".join(map(str, entry["options"]))
    if "bounds" in entry:
        low, high = entry["bounds"]
        return f"{low:g} … {high:,g}"
    if "max_characters" in entry:
        return f"0 to {entry['max_length']} formulas" if "max_length" in entry else "a formula"
    return "true | false"


def _pairs(data: dict[str, Any]) -> str:
    lines = ["COMBINATIONS THAT FIT: target, sampler, gradients"]
    gradients: dict[tuple[str, str], list[str]] = {}
    for x in data["combinations"]:
        gradients.setdefault((x["target"], x["sampler"]), []).append(x["gradient"])
    lines += [f"  {target:<20} {sampler:<14} {', '.join(names)}" for (target, sampler), names in gradients.items()]
    return "\n".join(lines)


def _studies(data: dict[str, Any]) -> str:
    lines = ["COMBINATIONS THAT FIT: model, methods"]
    for model in data["models"]:
        fitting = [x["sampler"] for x in data["model_combinations"] if x["target"] == model["key"]]
        lines.append(f"  {model['key']:<20} {', '.join(fitting)}")
    return "\n".join(lines)


# --- run -----------------------------------------------------------------------------------------------------------


def _run(options: argparse.Namespace) -> int:
    # Targets find the table for as long as it is held here.
    experiment, _held = _experiment(options)
    if options.temperature is not None:
        experiment = Experiment.from_dict({**experiment.to_dict(), "temperature": options.temperature})
    if experiment.of_model:
        return _run_models(experiment, Path(options.out), options.data, file_format.of_options(options))
    specs = experiment.runs()
    for spec in specs:
        engine.check_length(spec)
    paths = _outputs(Path(options.out), specs)
    jit.prepare(needed(experiment))
    code = DONE
    for spec, path in zip(specs, paths, strict=True):
        with _stop_on_interrupt() as stop:
            trace = _draw(spec, stop)
            with written(path) as part:
                trace.save(part)
        drawn = 0 if trace.draws is None else trace.draws.shape[1]
        print(
            f"{path}: {drawn:,} draws of {spec.n_chains:,} {'chain' if spec.n_chains == 1 else 'chains'}, {_name(spec)}"
        )
        if trace.turned:
            share = trace.turned / max(trace.statistics.n_draws, 1)
            print(f"{share:.1%} of trajectories turned back: an implicit step had no solution", file=sys.stderr)
        if trace.divergence is not None:
            print(trace.divergence.message, file=sys.stderr)
            code = DIVERGED
        if stop():
            print(
                f"stopped at step {trace.steps:,} of {spec.burn_in + spec.n_steps:,}; {path} has the {drawn:,} draws of each chain so far",
                file=sys.stderr,
            )
            return STOPPED
    return code


def _experiment(options: argparse.Namespace) -> tuple[Experiment, Table | None]:
    """The saved experiment, and the person's own table where it is on one: it is there while the caller holds it."""
    text = _text(Path(options.spec), 4 * MAX_JSON)
    table = _table(text, options.data, file_format.of_options(options))
    experiment = Experiment.from_json(text)
    if table is not None:
        named = experiment.target.values()[OfTable.data_parameter]
        if named != table.key:
            allowed = f"allowed is the file of the experiment, which is on {named}; to be on this one it needs {OfTable.data_parameter} = {table.key}"
            raise SpecError("data", options.data[0], allowed)
    elif options.data and not experiment.of_model:
        raise SpecError(
            "data", options.data[0], f"allowed are files for a model of data, not for {experiment.target.key}"
        )
    return experiment, table


def _table(text: str, files: Sequence[str], form: Format) -> Table | None:
    """The person's own table, where the experiment's target takes one: there before the experiment is read."""
    try:
        cls = TARGETS.get(json.loads(text)["target"]["key"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if not files or cls is None or not issubclass(cls, OfTable):
        return None
    found = cls.read({name: _bytes("data", Path(name), MAX_BYTES) for name in files}, form)
    _say_taken(found)
    return keep(found)


def _say_taken(data: Any) -> None:
    """Say what a person's files were taken for."""
    print(data.taken.sentence, file=sys.stderr)


def _run_models(experiment: Experiment, out: Path, files: Sequence[str], form: Format) -> int:
    """An experiment on a model: the curves hold what was scored, also where a method blew up or Ctrl-C ended it."""
    _check_output(out, (".csv",))
    cls = MODELS[experiment.target.key]
    if experiment.of_own_data and not files:
        raise SpecError(
            "data", None, f"the experiment is on somebody's own {cls.data_parameter}: give its files with --data"
        )
    if files and not experiment.of_own_data:
        named = experiment.target.values()[cls.data_parameter]
        allowed = f"allowed are none: the experiment is on the built-in {cls.data_parameter} {named}"
        raise SpecError("data", files[0], allowed)
    contents = {name: _bytes("data", Path(name), MAX_BYTES) for name in files}
    own = cls.read(contents, form=form) if contents else None
    if own is not None:
        _say_taken(own)
    jit.prepare(needed(experiment))
    with _stop_on_interrupt() as stop, _progress(cls.title) as report:
        runs = run_models(experiment, own, _stoppable(stop, report))
    titles = [f"{number}. {ANY_SAMPLER[run.spec.sampler.key].title}" for number, run in enumerate(runs, 1)]
    with written(out) as part, part.open("w", newline="", encoding="utf-8") as file:
        write_curves(file, titles, runs)
    model, code = runs[0].model, DONE
    print(f"{out}: the {model.score_name} of {len(runs)} {'method' if len(runs) == 1 else 'methods'}")
    for title, run in zip(titles, runs, strict=True):
        for i, chain in enumerate(run.chains):
            last = f"{chain.scores[-1].value:.6g} at step {chain.scores[-1].step:,}" if chain.scores else "no score"
            seed = (experiment.seed + i) % 2**32
            print(f"  {title}, seed {seed}: {last}, {chain.data_seen:,} {model.data_name} seen")
            if chain.divergence is not None:
                print(chain.divergence.message, file=sys.stderr)
                code = DIVERGED
        for line in _followed(run):
            print(f"    {line}")
    if stop():
        print(f"stopped; {out} has the scores so far", file=sys.stderr)
        return STOPPED
    return code


def _followed(run: ModelRun) -> Iterator[str]:
    """A line for each number that the model follows: its mean at the later steps, its memory, whether chains agree."""
    found = run.statistics
    for k, column in enumerate(found.columns if found.n_draws else ()):
        tau, rhat = autocorrelation.tau_int(found, k), convergence.summary(found.history(), k).rhat
        error = (max(found.variance(k), 0.0) * max(tau, 1.0) / found.n_draws) ** 0.5
        # Where nothing moves, or there are few steps, these are not known.
        known = ((f" ± {error:.1g}", error), (f", τ {tau:.3g}", tau), (f", R̂ {rhat:.3f}", rhat))
        more = "".join(text for text, value in known if isfinite(value))
        yield f"{column.name:<22}{found.mean(k):.5g}{more}"


def _text(path: Path, most: int) -> str:
    try:
        return _bytes("spec", path, most).decode()
    except UnicodeDecodeError:
        raise SpecError("spec", str(path), "it is not a text file in UTF-8") from None


def _bytes(field: str, path: Path, most: int) -> bytes:
    """A file's content, with one byte more than the most that is allowed, so that a check of its length sees it."""
    try:
        return read_file(path, most)
    except OSError as error:
        raise SpecError(field, str(path), f"it cannot be read: {(error.strerror or str(error)).lower()}") from None


def _outputs(out: Path, specs: Sequence[RunSpec]) -> list[Path]:
    paths = (
        [out]
        if len(specs) == 1
        else [out.with_name(f"{out.stem}-{i}-{spec.sampler.key}{out.suffix}") for i, spec in enumerate(specs, 1)]
    )
    for path in paths:
        _check_output(path, SUFFIXES)
    return paths


def _check_output(out: Path, suffixes: Sequence[str]) -> None:
    if out.suffix not in suffixes:
        allowed = f"suffixes are {' and '.join(suffixes)}" if len(suffixes) > 1 else f"suffix is {suffixes[0]}"
        raise SpecError("out", out.name, f"allowed {allowed}")
    if not out.parent.is_dir():
        raise SpecError("out", str(out), f"there is no folder {out.parent}")
    if not os.access(out.parent, os.W_OK):
        raise SpecError("out", str(out), f"the folder {out.parent} cannot be written to")
    if out.is_dir():
        raise SpecError("out", str(out), "it is a folder")


def _draw(spec: RunSpec, stop: Callable[[], bool]) -> Trace:
    with _progress(_name(spec)) as report:
        return engine.run(spec, progress=_stoppable(stop, report))


def _stoppable(stop: Callable[[], bool], report: Callable[[int, int], None]) -> Callable[[int, int], None]:
    def progress(done: int, total: int) -> None:
        report(done, total)
        if stop():
            raise KeyboardInterrupt

    return progress


def _name(spec: RunSpec) -> str:
    return f"{SAMPLERS[spec.sampler.key].title} on {TARGETS[spec.target.key].title}"


@contextmanager
def _stop_on_interrupt() -> Iterator[Callable[[], bool]]:
    """Ctrl-C asks the run to stop after its chunk; a second one ends the program at once.

    An interrupt that is raised inside a chunk would lose count of the steps that the compiled loop has made.
    """
    asked = False

    def ask(number: int, frame: Any) -> None:
        nonlocal asked
        asked = True
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal, a line every ten seconds elsewhere; report(done, total)."""
    if sys.stderr.isatty():
        with tqdm(desc=what, file=sys.stderr, unit_scale=True, leave=False) as bar:

            def report(done: int, total: int) -> None:
                bar.total = total
                bar.update(done - bar.n)

            yield report
        return
    last = time.monotonic()

    def told_in_lines(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= 10:
            last = time.monotonic()
            print(f"{what}: {done:,} of {total:,}", file=sys.stderr, flush=True)

    print(what, file=sys.stderr, flush=True)
    yield told_in_lines


# --- live ----------------------------------------------------------------------------------------------------------


def _live(options: argparse.Namespace) -> int:
    from sgmcmc_lab.samplers.live.makers import maker
    from sgmcmc_lab.samplers.output import written

    # Targets find the table for as long as it is held here.
    experiment, _held = _experiment(options)
    if options.data:
        print(f"note: everyone who has {options.out} has your table, too", file=sys.stderr)
    page = maker("page")(experiment, title=options.title)
    with written(options.out) as part:
        part.write_text(page, encoding="utf-8")
    print(f"wrote {options.out}: {len(page.encode()) / 1e6:.1f} MB; it opens without a server", file=sys.stderr)
    return DONE

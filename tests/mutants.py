"""Mutation testing: ``python -m tests.mutants`` breaks one place of the code at a time and sees whether a test fails.

cosmic-ray makes the mutants. They are drawn with a fixed seed, evenly over ``GROUPS``: first a place, then one of
the mutants there. A mutant's number comes from its text and that of its line, so an edit elsewhere leaves the draw
as it is. A mutant is only ever in the memory of a forked process, whose import system finds it in the file's stead;
no file is changed. First each test runs once as it is, to learn which functions of Python it enters and how long it
takes; a mutant in such a function meets the tests that enter it, and one in a compiled function or on a module's own
level all tests of its group: first those that have killed others, then the quickest. Equivalent mutants are listed
with their reasons in ``tests/mutants.toml``.

It needs the extra ``mutation``, and a system that can fork.
"""

import argparse
import ast
import functools
import gc
import hashlib
import importlib
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import tomllib
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.machinery import PathFinder, SourceFileLoader
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).parent.parent

GROUPS = {
    "samplers/diagnostics": ("test_diagnostics*", "test_readings", "test_calibration"),
    "samplers/running_statistics.py": (
        "test_engine::count moments autocovariance history burn thin",
        "test_diagnostics",
        "test_readings",
    ),
    "samplers/convergence.py": ("test_diagnostics", "test_readings"),
    "samplers/kolmogorov.py": ("test_diagnostics*",),
    "samplers/expressions": (
        "test_expressions",
        "test_densities",
        "test_draws",
        "test_ends",
        "test_native",
        "test_signs",
        "test_recipe",
        "test_recipe_flow",
        "test_values",
    ),
    "samplers/recipe": (
        "test_fokker_planck",
        "test_recipe",
        "test_recipe_flow",
        "test_recipe_papers",
        "test_recipe_sampler",
        "test_theorem2",
        "test_values",
    ),
    "samplers/gradients": ("test_gradients", "test_costs", "test_catalogue", "test_samplers"),
    "samplers/kernels": (
        "test_samplers",
        "test_costs",
        "test_references",
        "test_piecewise",
        "test_recipe_sampler",
        "test_rmhmc",
        "test_scir_cv",
        "test_sg_barker",
        "test_sphere",
        "test_svgd",
        "test_parts",
    ),
    "samplers/models": (
        "test_gamma_gradient",
        "test_network*",
        "test_average",
        "test_file_formats",
        "test_model_runs",
        "test_readers",
        "test_trials",
        "test_followed",
        "samplers/test_formulas",
        "test_references",
        "test_clusters",
        "test_factors",
        "test_mixture",
        "test_sparse",
        "test_spherical",
        "test_topics*",
        "test_catalogue",
        "test_values",
    ),
    "app/views": (
        "test_captions",
        "test_*views",
        "test_views_figures",
        "test_views_lanes",
        "test_reach",
        "test_paths_view",
        "test_steps",
        "test_followed",
        "test_recipe_flow",
        "test_values",
    ),
    "app/room": (
        "test_attacks",
        "test_follow",
        "test_hub",
        "test_pages",
        "test_race",
        "test_rooms",
        "test_students",
    ),
    "app/live/fair_executor.py": ("test_fair_executor",),
    "app/link.py": ("test_link", "test_links", "test_follow"),
    "samplers/search.py": ("test_search",),
    "samplers/targets/posterior.py": (
        "test_bfgs",
        "test_drawn",
        "test_forty_posteriors",
        "test_functions",
        "test_generative",
        "test_lasso",
        "test_posterior*",
        "test_starts",
    ),
    "lessons/claims.py": ("test_claims", "test_values"),
    "lessons/*.py": (
        "test_contact",
        "test_glossary",
        "test_handout",
        "test_lesson_panel",
        "test_lessons*",
        "test_shown",
        "test_supported",
        "test_sweeping",
        "test_teaching",
    ),
    "lessons/measures": ("test_claims", "test_course_measures", "test_shown", "test_supported", "test_trials"),
}
"""The mutated files, by a pattern or a folder, each with the files of tests that concern it; behind :: words, of which
a test's name has one."""

UNSEEN = {"samplers/models/topics/__main__.py"}
"""A command that tests start as a process of its own, and a stopwatch."""

LOOK = {
    *(
        "alpha",
        "background_fill_alpha",
        "desired_num_ticks",
        "fill_alpha",
        "glyph_height",
        "glyph_width",
        "hatch_alpha",
    ),
    *("inactive_fill_alpha", "label_height", "label_standoff", "line_alpha", "line_width", "margin", "num_minor_ticks"),
    *("padding", "place", "precision", "size", "spacing", "text_line_height", "width", "x_offset"),
}
"""Arguments and attributes that only set how a figure looks: numbers in them are taste, not code."""

OPERATORS = ("Number", "Add_", "Sub_", "Mul_", "Div_", "FloorDiv_", "Mod_", "Pow_", "Unary", "Comparison", "Zero")
OPERATORS += ("True", "False", "And", "Or", "AddNot", "Break", "Continue", "Decorator", "Exception")
"""The operators of cosmic-ray by a part of their names; those to and from ``<<``, ``|`` and their like are left out,
for numbers have none, and each such mutant would be killed by a TypeError."""


@dataclass(frozen=True)
class Mutant:
    """One small fault."""

    group: str
    path: str
    definition: str
    line: str
    mutated: str
    """The line with the fault."""
    twin: int
    """How many such lines with such a place come before it in the definition."""
    source: str
    """The whole file with the fault."""

    @property
    def key(self) -> str:
        """Its name in the results, and in the list of equivalents: it survives a shift of lines."""
        again = f" ({self.twin + 1})" if self.twin else ""
        return f"{self.path} {self.definition}: {self.line}  ->  {self.mutated}{again}"


def _files(group: str) -> list[Path]:
    files = [f for path in ROOT.glob(group) for f in ([path] if path.is_file() else path.rglob("*.py"))]
    return sorted(file for file in files if str(file.relative_to(ROOT)) not in UNSEEN)


def _tests(group: str) -> list[str]:
    """The files of tests, each with its words.

    Raises ValueError for a pattern that no file has, and for a word that no test of its files has.
    """
    found = []
    for entry in GROUPS[group]:
        pattern, _, words = entry.partition("::")
        files = sorted((ROOT / "tests").rglob(f"{pattern}.py"))
        if not files:
            raise ValueError(f"{group}: no file of tests is called {pattern}.py")
        names = [name for file in files for *_, name in _functions(ast.parse(file.read_text()))]
        if lost := [word for word in words.split() if not any(word in name for name in names)]:
            raise ValueError(f"{group}: no test in {pattern}.py has a name with {', '.join(lost)}")
        found += [f"{file.relative_to(ROOT).as_posix()}::{words}" for file in files]
    return found


def _functions(tree: ast.AST, outer: str = "") -> Iterator[tuple[int, int, str]]:
    """First line, last line and qualified name of each function, outer ones first."""
    for node in ast.iter_child_nodes(tree):
        name = outer
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            name = f"{outer}.{node.name}".lstrip(".")
            if isinstance(node, ast.FunctionDef):
                yield min([node.lineno, *(d.lineno for d in node.decorator_list)]), node.end_lineno or 0, name
        yield from _functions(node, name)


def _definition(functions: list[tuple[int, int, str]], line: int) -> str:
    return next((name for first, last, name in reversed(functions) if first <= line <= last), "")


def _no_code(tree: ast.AST) -> Iterator[ast.AST]:
    """Annotations, and what is only look."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign | ast.arg) and node.annotation:
            yield node.annotation
        elif isinstance(node, ast.FunctionDef) and node.returns:
            yield node.returns
        elif isinstance(node, ast.keyword) and node.arg in LOOK:
            yield node.value
        elif isinstance(node, ast.Assign):
            yield from [node.value for t in node.targets if getattr(t, "attr", getattr(t, "id", "")) in LOOK]


def draw(group: str, n: int, seed: int) -> list[Mutant]:
    """``n`` mutants of a group, at places that are drawn with equal chances, one at a place."""
    from cosmic_ray import plugins
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.mutating import mutate_code

    def number(*text: object) -> bytes:
        return hashlib.sha256("\0".join(map(str, (seed, *text))).encode()).digest()

    # The operators' own names: every class, made without arguments, whose two sides are both of the kinds above.
    names = [
        name
        for name in plugins.operator_names()
        if any(part in name for part in OPERATORS)
        and not any(bits in name for bits in ("Shift", "BitOr", "BitAnd", "BitXor"))
        and not plugins.get_operator(name).arguments()
    ]
    places: dict[bytes, list[tuple[bytes, str, int, Path, int, str, int]]] = defaultdict(list)
    for path in _files(group):
        text = path.read_text()
        lines, tree, parsed = text.splitlines(), ast.parse(text), get_ast(text)
        functions, nodes = list(_functions(tree)), list(ast_nodes(parsed))
        skipped = [((s.lineno, s.col_offset), (s.end_lineno, s.end_col_offset)) for s in _no_code(tree)]
        seen: Counter[object] = Counter()
        twins: dict[object, int] = {}
        for name in names:
            operator = plugins.get_operator(name)()
            positions = [start for node in nodes for start, _ in operator.mutation_positions(node)]
            here: Counter[object] = Counter()
            for occurrence, (row, column) in enumerate(positions):
                here[row, column] += 1
                line = lines[row - 1]
                # ast counts columns in bytes, parso in characters.
                at = (row, len(line[:column].encode()))
                if any(first <= at < last for first, last in skipped):
                    continue
                definition = _definition(functions, row)
                place = (path.relative_to(ROOT), definition, line.strip(), column - len(line) + len(line.lstrip()))
                if (twin := twins.get((row, column))) is None:
                    twin = twins[row, column] = seen[place]
                    seen[place] += 1
                which = number(*place, twin, name, here[row, column])
                places[number(*place, twin)].append((which, name, occurrence, path, row, definition, twin))
    mutants = []
    for place in sorted(places):
        _, name, occurrence, path, row, definition, twin = min(places[place])
        text = path.read_text()
        source = mutate_code(text, plugins.get_operator(name)(), occurrence)
        try:
            ast.parse(source)  # ``**more`` as ``%more`` is no program
        except SyntaxError:
            continue
        before, after = text.splitlines(), source.splitlines()
        # A decorator that is removed leaves fewer lines.
        mutated = after[row - 1].strip() if len(before) == len(after) else "(removed)"
        mutants.append(
            Mutant(group, str(path.relative_to(ROOT)), definition, before[row - 1].strip(), mutated, twin, source)
        )
        if len(mutants) == n:
            break
    return mutants


CACHED = type(functools.cache(len))


class Watch:
    """A plugin of pytest that notes how long each test takes, and which functions of the mutated files it enters."""

    def __init__(self, coverage) -> None:
        self.coverage = coverage
        self.seconds: dict[str, float | None] = {}

    def pytest_runtest_protocol(self, item):
        # A cached computation would be entered only by the first test that asks for it.
        loaded = [module for name, module in sys.modules.items() if name.split(".")[0] == "sgmcmc_lab"]
        for kept in [one for module in loaded for one in vars(module).values() if isinstance(one, CACHED)]:
            kept.cache_clear()
        self.coverage.switch_context(item.nodeid)
        self.start = time.process_time()
        self.failed = False

    def pytest_fixture_setup(self, fixturedef, request):
        """The common part of the tests of a file belongs to every one."""
        if fixturedef.scope != "function":
            self.coverage.switch_context(request.node.nodeid.split("::")[0])

    def pytest_runtest_call(self, item):
        self.coverage.switch_context(item.nodeid)

    def pytest_runtest_logreport(self, report):
        self.failed |= report.failed

    def pytest_runtest_logfinish(self, nodeid):
        self.seconds[nodeid] = None if self.failed else time.process_time() - self.start


class Choice:
    """A plugin of pytest that runs the tests of one mutant: those that have killed others first, then the quickest."""

    def __init__(self, mutant: Mutant, known: dict, grace: float, killers: set[str]) -> None:
        place = f"{mutant.path} {mutant.definition}"
        self.seconds = {test: seconds for test, (seconds, _) in known.items()}
        self.others = {test for test, (_, places) in known.items() if place not in places}
        if not mutant.definition or len(self.others) == len(known):
            self.others = set()
        self.grace, self.killers = grace, killers

    def pytest_collection_modifyitems(self, items):
        """A test that nobody has met is one of them; one that fails without a mutant is not."""
        items[:] = [i for i in items if i.nodeid not in self.others and self.seconds.get(i.nodeid, 0.0) is not None]
        items.sort(key=lambda item: (item.nodeid not in self.killers, self.seconds.get(item.nodeid, 0.0)))

    def pytest_runtest_setup(self, item):
        """A mutant that never ends is ended by the system, which counts the processor's time: others use it too."""
        limit = time.process_time() + self.grace + 5 * self.seconds.get(item.nodeid, 5.0)
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit) + 1, resource.RLIM_INFINITY))

    def pytest_runtest_logreport(self, report):
        if report.failed:
            print(f"\nKILLER {report.nodeid}")


class Finder(PathFinder):
    """Finds the mutant in its module's stead."""

    mutant: Mutant

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        spec = super().find_spec(fullname, path, target)
        if spec is None or spec.origin != str(ROOT / cls.mutant.path):
            return None
        source = cls.mutant.source

        class Loader(SourceFileLoader):
            def get_code(self, fullname):
                return compile(source, self.path, "exec", dont_inherit=True)

        spec.loader = Loader(fullname, spec.origin)
        return spec


def _importers(path: str) -> set[str]:
    """This module and all of the engine that import it, however indirectly."""
    imports = {}
    for file in (ROOT / "samplers").rglob("*.py"):
        wanted = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ImportFrom)]
        words = {word for node in wanted for word in (node.module, *(f"{node.module}.{a.name}" for a in node.names))}
        imports[".".join(("sgmcmc_lab", *file.relative_to(ROOT).with_suffix("").parts))] = words
    found = {f"sgmcmc_lab.{path.removesuffix('.py').replace('/', '.')}"}
    while more := {name for name, words in imports.items() if words & found and name not in found}:
        found |= more
    return found


def _of(modules: set[str], names: list[str]) -> set[str]:
    """The files of the cache with compiled functions of these modules."""
    return {name for name in names if any(name.startswith(f"{module}.") for module in modules)}


class Words:
    """A plugin of pytest that leaves out the tests whose names have none of their file's words."""

    def __init__(self, entries: list[str]) -> None:
        self.words = {file: words.split() for file, _, words in (entry.partition("::") for entry in entries)}

    def pytest_collection_modifyitems(self, items):
        wanted = [(item, self.words[item.nodeid.split("::")[0]]) for item in items]
        items[:] = [item for item, words in wanted if not words or any(word in item.name for word in words)]


def _pytest(entries: list[str], plugin: object, *options: str) -> int:
    import pytest

    words = Words(entries)
    # A browser's server is a process of its own, which has no mutant.
    # Another process of pytest-xdist has none either.
    quiet = ["-q", "-n", "0", "-m", "not browser", "-p", "no:cacheprovider"]
    quiet += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return int(pytest.main([*words.words, *quiet, *options], [words, plugin]))


def _warm(folder: Path, cache: Path) -> int:
    """In a process of its own: compile all that there is to compile."""
    os.environ["SGMCMC_LAB_CACHE"] = str(cache)
    import sgmcmc_lab.samplers.models  # noqa: F401
    from sgmcmc_lab.samplers.compile import jit

    jit.prepare(jit.declared())
    return 0


def _learn(folder: Path, entry: str, cache: Path) -> int:
    """In a process of its own: run one file of tests, and write what :class:`Watch` sees."""
    import coverage

    os.environ["SGMCMC_LAB_TEST_CACHE"] = str(cache)
    measured = coverage.Coverage(data_file=None, include=[str(f) for group in GROUPS for f in _files(group)])
    watch = Watch(measured)
    measured.start()
    code = _pytest([entry], watch)
    measured.stop()
    entered: dict[str, set[str]] = defaultdict(set)
    for file in measured.get_data().measured_files():
        functions, path = list(_functions(ast.parse(Path(file).read_text()))), Path(file).relative_to(ROOT)
        for line, contexts in measured.get_data().contexts_by_lineno(file).items():
            for context in contexts:
                entered[context].add(f"{path} {_definition(functions, line)}")
    learnt = {
        test: (seconds, sorted(entered[test] | entered[entry.split("::", maxsplit=1)[0]]))
        for test, seconds in watch.seconds.items()
    }
    (folder / "learnt.json").write_text(json.dumps(learnt))
    return code


def _try(folder: Path, mutant: Mutant, known: dict, cache: Path, killers: set[str]) -> int:
    """In a process of its own: run a mutant's tests. Compiled functions that may hold the fault are compiled anew."""
    stale = _importers(mutant.path) if mutant.path.startswith("samplers/") else set()
    shutil.copytree(
        cache,
        folder / "cache",
        copy_function=os.link,
        ignore=lambda _, names: _of(stale, names),
    )
    os.environ["SGMCMC_LAB_TEST_CACHE"] = str(folder / "cache")
    Finder.mutant = mutant
    sys.meta_path.insert(0, Finder)
    compiles = "jit." in (ROOT / mutant.path).read_text()
    return _pytest(_tests(mutant.group), Choice(mutant, known, 90.0 if compiles else 15.0, killers), "-x")


def _parallel(work: Callable, tasks: dict, jobs: int) -> Iterator[tuple[Any, int, Path, float]]:
    """``work(folder, *arguments)`` in forked processes: yields each task's key, how it ended, folder and seconds."""
    running: dict[int, tuple[Any, Path]] = {}
    waiting = list(tasks)[::-1]
    while waiting or running:
        while waiting and len(running) < jobs:
            key, folder = waiting.pop(), Path(tempfile.mkdtemp(prefix="mutant-"))
            pid = os.fork()
            if not pid:
                _in_child(folder, work, tasks[key])
            running[pid] = key, folder
        pid, status, used = os.wait3(0)
        key, folder = running.pop(pid)
        yield key, status, folder, used.ru_utime + used.ru_stime
        shutil.rmtree(folder, ignore_errors=True)


def _in_child(folder: Path, work: Callable, arguments: tuple) -> NoReturn:
    code = 70
    try:
        signal.alarm(1800)  # for what waits for ever, and takes no processor's time
        log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT)
        os.dup2(log, 1)
        os.dup2(log, 2)
        code = work(folder, *arguments)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def _outcome(status: int, log: str) -> tuple[str, str]:
    """Whether it was killed, and by what."""
    if os.WIFSIGNALED(status):
        return "killed", signal.Signals(os.WTERMSIG(status)).name
    code = os.WEXITSTATUS(status)
    if code == 0:
        return "survived", ""
    if code > 3:
        raise RuntimeError(log[-3000:])
    # Interrupted (2) or broken (3): the mutant cannot be imported.
    return "killed", next((line.split()[1] for line in log.splitlines() if line.startswith("KILLER")), "import")


def _preload() -> None:
    """The preparation of every process, once; nothing of the lab, for that is imported with its mutant."""
    for name in (
        "arviz_stats",
        "bokeh.plotting",
        "h5netcdf",
        "holoviews",
        "hypothesis.strategies",
        "networkx",
        "numba",
        "panel",
    ):
        importlib.import_module(name)
    for name in (
        "panel_material_ui",
        "pytest",
        "scipy.integrate",
        "scipy.optimize",
        "scipy.sparse.linalg",
        "scipy.stats",
    ):
        importlib.import_module(name)
    import numba

    numba.njit(lambda x: x + 1)(1.0)
    gc.freeze()


def main() -> None:
    """Draw the mutants, hold each against its tests, print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.split("\n")[0])
    parser.add_argument("--each", type=int, default=40, help="mutants of each group (default %(default)s)")
    parser.add_argument("--seed", type=int, default=12, help="of the draw (default %(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at once (default %(default)s)")
    parser.add_argument("--group", choices=GROUPS, action="append", help="only this group")
    folder = Path(tempfile.gettempdir(), "sgmcmc-lab-mutants")
    parser.add_argument(
        "--folder",
        type=Path,
        default=folder,
        help="what is learnt, and results; killed mutants are not tried again (default %(default)s)",
    )
    options = parser.parse_args()
    os.chdir(ROOT)
    (options.folder / "cache").mkdir(parents=True, exist_ok=True)
    groups = options.group or list(GROUPS)
    mutants = {m.key: m for group in groups for m in draw(group, options.each, options.seed)}
    _preload()

    learnt_file, results_file, cache = (options.folder / name for name in ("learnt.json", "results.json", "cache"))
    learnt = json.loads(learnt_file.read_text()) if learnt_file.exists() else {}
    # The functions that a test enters are known by name, and so outlive edits of the code.
    digests = {e: hashlib.sha256(Path(e.split("::")[0]).read_bytes()).hexdigest() for g in groups for e in _tests(g)}
    new = {f: (f, cache) for f, digest in digests.items() if f not in learnt or learnt[f]["digest"] != digest}
    list(_parallel(_warm, {"": (cache,)}, 1))
    for file, _, out, seconds in _parallel(_learn, new, options.jobs):
        if not (out / "learnt.json").exists():
            raise RuntimeError((out / "log").read_text())
        tests = json.loads((out / "learnt.json").read_text())
        if not tests:
            raise RuntimeError(f"no test of {file} ran:\n{(out / 'log').read_text()}")
        print(
            f"learnt {file} in {seconds:.0f} s",
            *(f"\n  fails without a mutant, left out: {t}" for t in tests if tests[t][0] is None),
            flush=True,
        )
        learnt[file] = {"digest": digests[file], "tests": tests}
        learnt_file.write_text(json.dumps(learnt))

    known = {group: {t: v for f in _tests(group) for t, v in learnt[f]["tests"].items()} for group in groups}
    equivalent = {m["mutant"]: m["reason"] for m in tomllib.loads(Path("tests/mutants.toml").read_text())["equivalent"]}
    results = json.loads(results_file.read_text()) if results_file.exists() else {}
    tried = [key for key in mutants if key not in equivalent and results.get(key, [""])[0] != "killed"]
    killers = {by for _, by, _ in results.values()}
    tasks = {key: (mutants[key], known[mutants[key].group], cache, killers) for key in tried}
    for key, status, out, seconds in _parallel(_try, tasks, options.jobs):
        results[key] = [*_outcome(status, (out / "log").read_text(errors="replace")), round(seconds, 1)]
        killers.add(results[key][1])
        print(*results[key], key, flush=True)
        results_file.write_text(json.dumps(results, indent=1, ensure_ascii=False))

    print(f"\nseed {options.seed}\n{'':24}mutants  killed  equivalent  survived  killed of the others")
    total: Counter[str] = Counter()
    for group in groups:
        counts = Counter(
            ["equivalent" if k in equivalent else results[k][0] for k in mutants if mutants[k].group == group]
        )
        print(_row(group, counts))
        total += counts
    print(_row("all", total))
    for key in mutants:
        if key in equivalent:
            print(f"equivalent: {key}\n    {equivalent[key]}")
        elif results[key][0] == "survived":
            print(f"survived: {key}")


def _row(name: str, counts: Counter[str]) -> str:
    n, killed, same, survived = counts.total(), counts["killed"], counts["equivalent"], counts["survived"]
    return f"{name:24}{n:7}{killed:8}{same:12}{survived:10}{100 * killed / max(n - same, 1):21.1f} %"


if __name__ == "__main__":
    main()

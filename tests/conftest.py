"""The common fixtures of all tests: the folder of compiled functions, the served app, and what runs where.

The first lines run before any test module is imported, and so before Numba reads where its cache is, and NumPy how
many threads it has.
"""

import os
import subprocess
import sys
from pathlib import Path

import platformdirs

# Compiled functions are kept for the next run, which compiles those that reach something that was edited since.
# The processes of ``pytest -n`` share the folder of the one that started them.
_WORKER = "PYTEST_XDIST_WORKER" in os.environ
_KEPT = os.environ.get("SGMCMC_LAB_CACHE" if _WORKER else "SGMCMC_LAB_TEST_CACHE")
_CACHE = Path(_KEPT or platformdirs.user_cache_dir("sgmcmc-lab-tests"))
os.environ["SGMCMC_LAB_CACHE"] = str(_CACHE)
# The processes take all cores. With threads of its own beside them, linear algebra takes 20 times as long: each
# spins while it waits for the others.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import hypothesis  # noqa: E402
import pytest  # noqa: E402

from tests.helpers import cases  # noqa: E402
from tests.helpers.cases import of_a_long_run  # noqa: E402

# The same examples in every run, and no deadline: a first call may compile.
hypothesis.settings.register_profile("sgmcmc-lab", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("sgmcmc-lab")

# Their asserts say what was compared, as those of test modules do.
pytest.register_assert_rewrite(
    *(f"tests.helpers.checks_{what}" for what in ("gradients", "samplers", "targets", "views"))
)

COMPILE = "from sgmcmc_lab.app.server.warmup import compile_apart; compile_apart([])"
QUICK = "quick or core"
"""The tests that ``pytest`` alone runs."""
BROWSER = "tests/browser/"
SERVED = "tests/app/server/test_guard.py"
TOGETHER = {
    SERVED: SERVED,
    "tests/app/server/test_light_page.py": SERVED,
    "tests/app/views/test_views_lanes.py": "lanes",
    "tests/samplers/kernels/test_sphere_order.py": "orders",
    "tests/lessons/test_course.py::test_claims_of_a_lesson[gap": "gap",
    "tests/lessons/test_teaching.py::test_the_numbers_of_a_solution_hold[gap": "gap",
    "tests/lessons/test_shown.py": "course",
    "tests/lessons/test_glossary.py": "course",
    "tests/lessons/test_supported.py": "course",
    "tests/lessons/test_teaching.py::test_a_lesson_has": "course",
    "tests/app/page/test_lesson_panel.py::test_a_lesson_asks": "course",
    "tests/test_project.py": "project",
}
"""The tests of one process: the lanes of a stage, the laws of integrators, a law's long run and the lessons are made
once for all tests of them. Many together are begun before one alone, so that no checker of the project is left to the
end."""

BY_CASE = "tests/samplers/targets/test_targets.py"
"""Its tests of one target are in one process, too: they share draws, and some a long run."""


def pytest_configure(config):
    """Without a file, a test or a marker on the command line, only the quick tests and the core run."""
    named = config.args_source is not pytest.Config.ArgsSource.TESTPATHS
    if not (named or config.option.markexpr or config.option.keyword):
        config.option.markexpr = QUICK
    cases.keyword = config.option.keyword


def pytest_ignore_collect(collection_path, config):
    """The core reads the files that have a test of it, and the quick tier no other file in a browser."""
    if config.option.markexpr not in (QUICK, "core") or not collection_path.match("test_*.py"):
        return None
    skippable = config.option.markexpr == "core" or collection_path.parent.name == "browser"
    return True if skippable and "pytest.mark.core" not in collection_path.read_text(encoding="utf-8") else None


def pytest_sessionstart(session):
    """Before the processes of ``pytest -n`` start, the processes of the server fill an empty cache.

    To collect the tests takes many functions, which each of the processes would compile.
    """
    option = session.config.option
    if (
        getattr(option, "numprocesses", None)
        and not option.collectonly
        and len(list(_CACHE.glob("functions/*.nbc"))) < 100
    ):
        subprocess.run([sys.executable, "-c", COMPILE], check=True)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """One process more than there are cores, for the one with the browser often waits."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """With ``pytest -n``: what is to be together first, in one process each, and the others one by one beside it."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            if nodeid.startswith(BY_CASE) and "[" in nodeid:
                return BY_CASE + nodeid[nodeid.index("[") :]
            # The tests of a module have a browser, and most a page or a file, together.
            if nodeid.startswith(BROWSER):
                return nodeid.partition("::")[0]
            return next((group for start, group in TOGETHER.items() if nodeid.startswith(start)), nodeid)

        def mark_test_complete(self, node, item_index, duration=0):
            """Forget what is done: after each test all that a process was ever given is counted."""
            super().mark_test_complete(node, item_index, duration)
            given = self.assigned_work.get(node, {})
            scope = self._split_scope(self.registered_collections[node][item_index])
            if all(given.get(scope, {}).values()):
                given.pop(scope, None)

    return Scheduling(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Mark all tests, those in a browser and the quick ones, and run the browser's last where there is one process.

    Playwright's sync API keeps an event loop running in this thread, in which no test could call ``asyncio.run``.
    """
    for item in items:
        item.add_marker(pytest.mark.all)
        if config.option.keyword and (labels := getattr(item.obj, "labels", None)):
            values = item.callspec.params if hasattr(item, "callspec") else {}
            item.extra_keyword_matches.update(labels(values.get("part")))
        if "server" in item.fixturenames or of_a_long_run(item.name):
            item.add_marker(pytest.mark.slow)
        if item.nodeid.startswith(BROWSER):
            item.add_marker(pytest.mark.browser)
        elif item.get_closest_marker("slow") is None:
            item.add_marker(pytest.mark.quick)
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)


@pytest.fixture(scope="session")
def compile_cache() -> Path:
    """The folder of this session's compiled functions."""
    return _CACHE


@pytest.fixture(scope="session")
def readings() -> None:
    """The readings of captions and claims, compiled or loaded: before that a page makes none."""
    from sgmcmc_lab.samplers.compile import jit

    jit.prepare(jit.readings())


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """``panel serve app`` on a free port: ``server.url``, ``server.log``, ``server.process``."""
    from tests import browser

    with browser.serve(tmp_path_factory.mktemp("server")) as running:
        yield running

"""The project as a whole: the checkers, the layout, the wheel."""

import ast
import importlib.metadata
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

from sgmcmc_lab.samplers.compile import numba_private
from tests.browser import in_ci
from tests.helpers.cases import for_each

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {"app", "samplers", "lessons", "tests", "assets"}
FILES = {"pyproject.toml", "README.md", "LICENSE", "SECURITY.md", "CHANGELOG.md", "CITATION.cff"}


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """The output of a command that must succeed."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        timeout=600,
    )
    if done.returncode:
        print(done.stdout)  # pytest shows it once; a reason is shown twice
        pytest.fail(
            f"{Path(command[0]).name} {' '.join(map(str, command[1:]))}: exit code {done.returncode}", pytrace=False
        )
    return done.stdout


def tool(name: str) -> str:
    """A program of the environment that runs the tests."""
    found = shutil.which(name, path=sysconfig.get_path("scripts"))
    assert found, f"{name} is not installed: pip install -e '.[test]'"
    return found


def can_list() -> bool:
    """Whether this is a checkout; a copy without its history has no list of tracked files."""
    return shutil.which("git") is not None and (ROOT / ".git").exists()


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    """The files that git tracks, relative to the root."""
    if not can_list() and not in_ci():
        pytest.skip("not a git checkout")
    listed = run("git", "-c", "safe.directory=*", "ls-files", "-z").split("\0")
    paths = [Path(name) for name in listed if name and (ROOT / name).is_file()]
    if not paths and not in_ci():
        pytest.skip("git tracks no file yet")
    assert paths, "git tracks no file"
    return paths


# The checkers


def test_ruff_check():
    run(tool("ruff"), "check", ".")


def test_ruff_format():
    run(tool("ruff"), "format", "--check", ".")


@pytest.fixture
def named(tmp_path) -> Path:
    """A folder in which ``sgmcmc_lab`` is the checkout: checkers follow no import hook of an editable installation."""
    (tmp_path / "sgmcmc_lab").symlink_to(ROOT)
    return tmp_path


@pytest.mark.slow
def test_mypy(named):
    run(tool("mypy"), "--config-file", ROOT / "pyproject.toml", "--cache-dir", ROOT / ".mypy_cache", cwd=named)


def test_what_mypy_reads_is_marked_as_typed():
    """Without the mark, a checker takes everything that another project imports from there as Any."""
    checked = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]["packages"]
    marked = {path.parent.name for path in ROOT.glob("*/py.typed")}
    assert {f"sgmcmc_lab.{name}" for name in marked} == set(checked)


@pytest.mark.slow
def test_scripts_of_live_pages_have_their_types(tmp_path):
    """By JSDoc; the planted fault is a wrong type in one of them."""
    compiler = shutil.which("tsc")
    if compiler is None:
        pytest.skip("TypeScript's compiler is not on the path: npm install typescript")
    run(compiler, "--project", "assets/live")
    scripts = tmp_path / "live"
    shutil.copytree(ROOT / "assets" / "live", scripts)
    with (scripts / "host.js").open("a", encoding="utf-8") as file:
        file.write("\n/** @type {number} */\nexport const planted = 'text'\n")
    found = subprocess.run([compiler, "--project", scripts], capture_output=True, text=True, check=False)
    assert found.returncode != 0
    assert "'string' is not assignable to type 'number'" in found.stdout


@pytest.mark.slow
def test_import_contracts(named):
    run(tool("lint-imports"), "--config", ROOT / "pyproject.toml", cwd=named)


# The layout


def test_top_level_is_fixed(tracked):
    top = {path.parts[0] for path in tracked if not path.parts[0].startswith(".")}
    folders = {path.parts[0] for path in tracked if len(path.parts) > 1 and not path.parts[0].startswith(".")}
    assert top <= FOLDERS | FILES, f"not a part of the layout: {sorted(top - FOLDERS - FILES)}"
    assert folders <= FOLDERS
    assert top >= FILES, f"missing: {sorted(FILES - top)}"


def test_app_hides_no_other_module():
    """``panel serve app`` puts ``app/`` first on the path: a module there hides one of the same name elsewhere."""
    own = {path.stem for path in (ROOT / "app").glob("*.py")} | {
        path.name for path in (ROOT / "app").iterdir() if path.is_dir()
    }
    others = set(sys.stdlib_module_names) | set(importlib.metadata.packages_distributions())
    hidden = (own & others) - {"__init__", "__pycache__"}
    assert not hidden, f"rename in app/: {sorted(hidden)}"


@pytest.mark.parametrize("planted", ["from tests.samplers.test_spec import x", "import tests.test_values"])
def test_no_test_module_imports_another(planted):
    """Common code of two of them stands in a module without tests. The planted lines must be found."""
    found = re.compile(r"^\s*(?:from|import) tests\.(?:\w+\.)*test_", re.MULTILINE)
    assert found.search(planted)
    assert not [path.name for path in (ROOT / "tests").rglob("*.py") if found.search(path.read_text(encoding="utf-8"))]


@for_each("planted", ["from samplers.engine import Run", "    import app.views", "x = 'import lessons'"])
def test_every_import_begins_with_the_package(planted):
    """A folder imported by its own name is a second copy, with its own registries. The planted lines must be found."""
    found = re.compile(r"\b(?:from (?:app|samplers|lessons)(?:\.\w+)* import|import (?:app|samplers|lessons)\b)")
    assert found.search(planted)
    paths = [path for folder in ("app", "samplers", "lessons", "tests") for path in (ROOT / folder).rglob("*.py")]
    texts = {path: path.read_text(encoding="utf-8").replace("from sgmcmc_lab import", "") for path in paths}
    assert [path.name for path, text in texts.items() if found.search(text)] == ["test_project.py"]


PRIVATE = re.compile(r"_[A-Za-z]\w*(?<!_)")
OF_LIBRARIES = {"app/server/patches.py", "samplers/compile/numba_private.py"}
"""The modules that list private names of libraries."""
DOCUMENTED = {
    "_make",
    "_replace",
    "_asdict",
    "_fields",
    "_field_defaults",
    "_exit",
    "_esm",
    "_stylesheets",
    "_importmap",
    "_handle_msg",
    "_send_msg",
}
"""Python documents the first six, Panel the others, for components of one's own."""


def defined(tree):
    """The private names that a module defines for itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr if ast.unparse(node.value) in ("self", "cls", "made") else ""
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def used(tree):
    """The private names that a module reads, writes or imports, also by ``getattr`` and the like."""
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Attribute):
            names = [node.attr]
        elif isinstance(node, ast.ImportFrom) and not (node.module or "").startswith("sgmcmc_lab"):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Call) and re.fullmatch(r"(get|has|set|del)attr(_static)?", ast.unparse(node.func)):
            names = [part.value for part in node.args[1:2] if isinstance(part, ast.Constant)]
        yield from (name for name in names if PRIVATE.fullmatch(name))


def replaced(tree):
    """The private names of a library's class that a class below it defines anew."""
    modules = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not (node.module or "").startswith("sgmcmc_lab"):
            modules |= {alias.asname or alias.name: (node.module, alias.name) for alias in node.names}
    for node in ast.walk(tree):
        for base in node.bases if isinstance(node, ast.ClassDef) else []:
            root, *path = ast.unparse(base).split("[")[0].split(".")
            if root not in modules:
                continue
            module, name = modules[root]
            of = importlib.import_module(module)
            of = getattr(of, name, None) or importlib.import_module(f"{module}.{name}")
            for step in path:
                of = getattr(of, step)
            own = {name for part in node.body for name in defined(part)}
            yield from (name for name in own if PRIVATE.fullmatch(name) and hasattr(of, name))


PLANTED = {
    "an attribute": "numba.core._helper_of_numba",
    "an attribute of a base class": "class A(numba.B):\n    def c(self):\n        return self._helper_of_numba",
    "a change": "numba.A._helper_of_numba = 1",
    "an import": "from numba import _helper_of_numba",
    "a text": "getattr(numba, '_helper_of_numba', None)",
    "a method": "from numba.core import codegen\nclass A(codegen.AOTCPUCodegen):\n    def _init(self):\n        pass",
}


@pytest.mark.slow
def test_private_names_of_libraries_are_in_the_modules_that_list_them():
    """Fails where another module reaches into a library. Planted faults: such lines."""
    paths = [path for folder in ("app", "samplers", "lessons") for path in (ROOT / folder).rglob("*.py")]
    trees = {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in paths}
    listed = {name: trees.pop(name) for name in OF_LIBRARIES}["samplers/compile/numba_private.py"]
    own = {name for tree in trees.values() for name in defined(tree)} | DOCUMENTED

    def of_libraries(tree):
        return set(used(tree)) - own | set(replaced(tree)) - DOCUMENTED

    assert {name: names for name, tree in trees.items() if (names := of_libraries(tree))} == {}
    assert [what for what, planted in PLANTED.items() if not of_libraries(ast.parse(planted))] == []
    assert set(numba_private.WITHOUT) == {*used(listed), *replaced(listed)}


# One machine's paths, and hosts to install from, are nobody else's.
FORBIDDEN = {
    "a path of one machine": re.compile(r"(?<![\w.:~/-])/(?:home|root|Users|work|opt|tmp|var|mnt|srv)/\w"),
    "a Windows path of one machine": re.compile(r"\b[A-Z]:\\Users\\"),
    "a host or option to install from": re.compile(
        r"pypi\.org/simple|pythonhosted\.or[g]|(?:extra-)?index[-_]url|find-link[s]|pip_find_link[s]|artifactor[y]|registr[y]\.npmjs|proxy\.golan[g]",
        re.IGNORECASE,
    ),
}


@pytest.mark.slow
def test_no_file_names_one_machine(tracked):
    found = []
    for path in tracked:
        try:
            text = (ROOT / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for what, pattern in FORBIDDEN.items():
            for hit in pattern.finditer(text):
                line = text.count("\n", 0, hit.start()) + 1
                found.append(f"{path}:{line}: {what}: {hit.group()}")
    assert not found, "\n".join(found)


@for_each(
    "planted",
    [
        "open('/ho" + "me/me/x')",
        "cd /wo" + "rk/main",
        r"C:\Us" + r"ers\me",
        "pip --index" + "-url x",
        "PIP_FIND" + "_LINKS",
    ],
)
def test_the_search_for_machine_paths_can_fail(planted):
    assert any(pattern.search(planted) for pattern in FORBIDDEN.values())


# The wheel


@pytest.mark.slow
def test_the_wheel_holds_every_file(tracked, tmp_path):
    """Assets and other data too; and nothing that is not tracked, and no tests."""
    source, wheels = tmp_path / "source", tmp_path / "wheels"
    for path in tracked:
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, source / path)
    pip = ("-m", "pip", "--disable-pip-version-check", "wheel")
    run(sys.executable, *pip, "--no-deps", "--no-build-isolation", "-q", "-w", wheels, source)
    (wheel,) = wheels.glob("sgmcmc_lab-*.whl")
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    wanted = {f"sgmcmc_lab/{path.as_posix()}" for path in tracked if path.parts[0] in FOLDERS - {"tests"}}
    wanted = {name.replace("assets/package/", "") for name in wanted}
    wanted = {name for name in wanted if not Path(name).name.startswith(".")}
    assert held == wanted, f"missing: {sorted(wanted - held)}; too much: {sorted(held - wanted)}"

"""The project as a whole: the checkers, the layout, the README's commands, the wheel."""

import importlib
import importlib.metadata
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

from lessons import load_all
from tests.browser import in_ci

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
README = (ROOT / "README.md").read_text(encoding="utf-8")
FOLDERS = {"app", "samplers", "lessons", "tests", "assets"}
FILES = {"pyproject.toml", "README.md", "LICENSE", "SECURITY.md", "CHANGELOG.md"}


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


@pytest.mark.slow
def test_mypy():
    run(tool("mypy"))


def test_import_contracts():
    run(tool("lint-imports"))


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
    """What two of them share stands in a module without tests. The planted lines must be found."""
    found = re.compile(r"^\s*(?:from|import) tests\.(?:\w+\.)*test_", re.MULTILINE)
    assert found.search(planted)
    assert not [path.name for path in (ROOT / "tests").rglob("*.py") if found.search(path.read_text(encoding="utf-8"))]


# One machine's paths, and hosts to install from, are nobody else's.
FORBIDDEN = {
    "a path of one machine": re.compile(r"(?<![\w.:~/-])/(?:home|root|Users|work|opt|tmp|var|mnt|srv)/\w"),
    "a Windows path of one machine": re.compile(r"\b[A-Z]:\\Users\\"),
    "a host or option to install from": re.compile(
        r"pypi\.org/simple|pythonhosted\.or[g]|(?:extra-)?index[-_]url|find-link[s]|pip_find_link[s]|artifactor[y]|registr[y]\.npmjs|proxy\.golan[g]",
        re.IGNORECASE,
    ),
}


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


@pytest.mark.parametrize(
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


# The README's commands


def blocks() -> list[str]:
    """The fenced sh blocks of the README, in order."""
    return [block.strip() for block in re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL)]


def test_readme_installs_with_one_command():
    start, test = blocks()[:2]
    for command in (start, test):
        assert "\n" not in command
        assert command.startswith("python3 -m venv .venv && .venv/bin/pip install -e ")
    assert start.endswith("&& .venv/bin/panel serve app --show")
    assert test.endswith("&& .venv/bin/pytest -n logical")
    extras = re.search(r'install -e "\.\[(\w+)\]"', test)
    assert extras and extras[1] in PROJECT["project"]["optional-dependencies"]


@pytest.mark.slow
def test_the_programs_of_the_readme_run():
    """Each in a module of its own; the mean that the last one prints is the exact one, to four standard errors."""
    programs = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert len(programs) == 2
    # In one process, for what they import takes longest.
    both = f"for program in {programs!r}: exec(program, {{'__name__': '__main__'}})"
    printed = subprocess.run([sys.executable, "-c", both], cwd=ROOT, capture_output=True, text=True, timeout=300, check=True).stdout  # fmt: skip
    measured, exact = map(float, printed.splitlines()[-1].split())
    # Of N(−0.053, 0.138²): the chain of 200 units of time forgets at a rate of 53, and the long run has 10,000 draws.
    assert abs(measured - exact) < 4 * 0.138 * ((2 / 53 / 200) ** 0.5 + 0.01)


def test_the_readme_counts_the_claims_of_the_course():
    claims = {key: sum(len(step.claims) for step in lesson.steps) for key, lesson in load_all().lessons.items()}
    table = dict(re.findall(r"^\| ([a-z-]+) \| (\d+ of \d+) \|$", README, re.MULTILINE))
    assert table == {key: f"{n} of {n}" for key, n in claims.items()}
    assert f"The course has {len(claims)} lessons with {sum(claims.values())} claims." in README


@pytest.mark.skipif(sys.platform == "win32", reason="CI runs on Linux")
def test_ci_runs_the_command_of_the_readme():
    assert run("bash", ROOT / ".ci" / "run", "--show").strip() == blocks()[1]


def commands() -> list[str]:
    """The commands that the project has: scripts, and packages that ``python -m`` runs, with their subcommands."""
    found = list(PROJECT["project"].get("scripts", {}))
    mains = [main for folder in ("app", "samplers", "lessons") for main in (ROOT / folder).rglob("__main__.py")]
    found += ["python -m " + ".".join(main.parent.relative_to(ROOT).parts) for main in sorted(mains)]
    return found


def usage_of(command: str, monkeypatch, capsys) -> str:
    """The help of a command, of a package's in this process: others have all that it imports."""
    if not command.startswith("python -m "):
        module, _, function = PROJECT["project"]["scripts"][command].partition(":")
        with pytest.raises(SystemExit) as end:
            getattr(importlib.import_module(module), function)(["--help"])
        assert not end.value.code
        return capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["x", "--help"])
    # Another test may have imported it.
    monkeypatch.delitem(sys.modules, f"{command.removeprefix('python -m ')}.__main__", raising=False)
    with pytest.raises(SystemExit) as end:
        runpy.run_module(command.removeprefix("python -m "), run_name="__main__", alter_sys=True)
    assert not end.value.code
    return capsys.readouterr().out


def test_readme_names_every_command(monkeypatch, capsys):
    missing = []
    for command in ["panel serve app", *commands()]:
        if command not in README:
            missing.append(command)
        if command == "panel serve app":
            continue
        usage = usage_of(command, monkeypatch, capsys)
        # argparse lists subcommands as {run,check}; options with choices have a name before the brace.
        for listed in re.findall(r"^\s*\{([\w,-]+)\}", usage, re.MULTILINE):
            missing += [f"{command} {one}" for one in listed.split(",") if f"{command} {one}" not in README]
    assert not missing, f"the README does not mention: {missing}"


# The wheel


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
    wanted = {path.as_posix() for path in tracked if path.parts[0] in FOLDERS - {"tests"}}
    wanted = {name for name in wanted if not Path(name).name.startswith(".")}
    assert held == wanted, f"missing: {sorted(wanted - held)}; too much: {sorted(held - wanted)}"

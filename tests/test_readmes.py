"""The contents of the READMEs: their commands parse, links lead somewhere, programs run, numbers are those of the
course.
"""

import importlib
import itertools
import json
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from datetime import date, datetime
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from sgmcmc_lab.app import link
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.lessons import read
from sgmcmc_lab.lessons.headless import run_step
from sgmcmc_lab.lessons.record import BEGIN, END
from sgmcmc_lab.samplers import cli
from tests.benchmarks import record
from tests.helpers.cases import for_each
from tests.helpers.course import LESSONS

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SERVER = "http://localhost:5006/app"
OUTSIDE = {"https://keepachangelog.com/en/1.1.0/", "https://semver.org/spec/v2.0.0.html"}
"""Pages of others that no test can open."""
LIBRARIES = tuple(
    f"https://github.com/{name}"
    for name in (
        "blackjax-devs/blackjax",
        "jeremiecoullon/SGMCMCJax",
        "tummfm/jax-sgmc",
        "normal-computing/posteriors",
        "tensorflow/probability",
        "pymc-devs/pymc",
        "pyro-ppl/numpyro",
        "TuringLang/Turing.jl",
        "chi-feng/mcmc-demo",
        "flatironinstitute/stan-playground",
        "pymc-labs/nuts-rs-wasm",
    )
)
"""The repositories of the README's tables, whose files no test can open either."""
DOCUMENTS = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (
        *(
            ROOT / name
            for name in ("README.md", "SECURITY.md", "CHANGELOG.md", ".github/CONTRIBUTING.md", "lessons/RESULTS.md")
        ),
        *(path for folder in ("app", "lessons", "samplers", "tests") for path in (ROOT / folder).rglob("README.md")),
    )
}
README = DOCUMENTS["README.md"]
CITATION = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
CITED = dict(re.findall(r"^([\w-]+): \"?([^\"\n]+)", CITATION, re.MULTILINE))
"""The fields of the citation file, but for lists."""
TEXT = "\n".join(DOCUMENTS.values())


DEFINED = re.compile(r"^\[([\w-]+)\]: (\S+)\n", re.MULTILINE)
"""A name of a link and its address, on a line of their own."""


def fenced(text: str, kind: str) -> list[str]:
    """The fenced blocks of a kind, in order."""
    return [block.strip() for block in re.findall(rf"^```{kind}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)]


def spans(text: str) -> list[str]:
    """The code in its lines, outside of fenced blocks."""
    return re.findall(
        r"(?<!`)`([^`\n]+)`(?!`)", re.sub(r"^(`{3,})\w*\n.*?^\1", "", text, flags=re.MULTILINE | re.DOTALL)
    )


# Length


def test_the_readme_is_read_in_five_minutes():
    """The addresses of links, below the tables, are not read."""
    text = DEFINED.sub("", README)
    assert len(text.splitlines()) <= 150
    assert len(text.split()) <= 1200


# Commands


def test_readme_installs_with_one_command():
    start, test = fenced(README, "sh")[:2]
    for command in (start, test):
        assert "\n" not in command
        assert command.startswith("python3 -m venv .venv && .venv/bin/pip install -e ")
    assert start.endswith("&& .venv/bin/panel serve app --show")
    assert test.endswith("&& .venv/bin/pytest")
    extras = re.search(r'install -e "\.\[(\w+)\]"', test)
    assert extras and extras[1] in PROJECT["project"]["optional-dependencies"]


def ci_command(script: str) -> str:
    """The test command of a script, which runs nothing else by that name."""
    (command,) = re.findall(r"^command='(.+)'$", script, re.MULTILINE)
    assert script.count('-c "$command"') == 1 and script.count("command=") == 1
    return command


def test_ci_runs_the_command_of_the_readme():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert ci_command(script) == fenced(README, "sh")[1]
    planted = script.replace("bin/pytest'", "bin/pytest -m core'", 1)
    assert ci_command(planted) != fenced(README, "sh")[1]


PROGRAMS = ("python3", "python", "pip", "pytest", "panel", "sgmcmc-lab")


def commands(text: str) -> list[list[str]]:
    """The commands of the fenced sh blocks and of the code in lines."""
    return of_lines([*"\n".join(fenced(text, "sh")).splitlines(), *spans(text)])


def of_lines(lines: list[str]) -> list[list[str]]:
    """The commands of these lines, without variables and folders before the program."""
    found = []
    for line in lines:
        for part in line.removesuffix(" &").split(" && "):
            plain = re.sub(r"^(?:[A-Z_]+=\S+ )*(?:\.venv/bin/)?", "", part)
            if plain.partition(" ")[0] in PROGRAMS and " " in plain:
                found.append(shlex.split(plain))
    return found


def image_commands() -> list[list[str]]:
    """The commands by which the recipes of a container and of Binder install, check and serve the lab."""
    docker = (ROOT / ".container" / "Dockerfile").read_text(encoding="utf-8")
    lines = re.findall(r"^RUN (.+)$", docker, re.MULTILINE)
    lines += [shlex.join(json.loads(words)) for words in re.findall(r"^CMD (.+)$", docker, re.MULTILINE)]
    for name in ("postBuild", "start"):
        lines += (ROOT / ".binder" / name).read_text(encoding="utf-8").splitlines()
    return of_lines(lines)


PARSE = r"""
import argparse, importlib.util, io, json, re, runpy, sys, warnings
from contextlib import redirect_stderr, redirect_stdout

warnings.simplefilter("ignore")
depth = 0


class Parsed(BaseException):
    pass


def outermost(method):
    def parse(self, *given, **named):
        global depth
        depth += 1
        try:
            method(self, *given, **named)
        finally:
            depth -= 1
        if not depth:
            raise Parsed
        return method(self, *given, **named)
    return parse


def parsed(words):
    program, *rest = words
    sys.argv = [program, *rest]
    if program in ("python", "python3"):
        if rest[0] == "-c":
            return exec(rest[1], {"__name__": "__main__"})
        assert rest[0] == "-m", "no module"
        if rest[1] == "venv":
            return None
        sys.argv = rest[1:]
        if len(rest) == 2 and rest[1] in QUIET:
            assert importlib.util.find_spec(rest[1]), "no such module"
            return None
        return runpy.run_module(rest[1], run_name="__main__", alter_sys=True)
    if program == "panel":
        from panel.command import main
    elif program == "sgmcmc-lab":
        from sgmcmc_lab.app.server.command import main
    elif program == "pytest":
        import pytest
        code = pytest.main([*rest, "--help"])
        assert code == 0, f"exit code {code}"
        return None
    elif program == "pip":
        from pip._internal.cli.main import main
        return None
    return main()


QUIET = ("tests.draws", "tests.ends", "tests.picture", "tests.benchmarks.record")
plain = argparse.ArgumentParser.parse_args, argparse.ArgumentParser.parse_known_args
wrong = []
for words in json.load(sys.stdin):
    argparse.ArgumentParser.parse_args, argparse.ArgumentParser.parse_known_args = map(outermost, plain)
    if words[0] == "pytest":
        argparse.ArgumentParser.parse_args, argparse.ArgumentParser.parse_known_args = plain
    out = io.StringIO()
    depth = 0
    try:
        with redirect_stdout(out), redirect_stderr(out):
            parsed(words)
    except Parsed:
        pass
    except BaseException as error:
        wrong.append([" ".join(words), type(error).__name__, str(error), out.getvalue()[-300:]])
print(json.dumps(wrong))
"""


def refused(listed: list[list[str]]) -> list[list[str]]:
    """The commands that their own parsers refuse, each with the reason."""
    done = subprocess.run(
        [sys.executable, "-c", PARSE], cwd=ROOT, input=json.dumps(listed), capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_every_command_is_one_that_its_program_takes():
    """The last three are planted: a module, an option and a value that do not exist."""
    planted = [
        ["python", "-m", "sgmcmc_lab.samplers.gone"],
        ["python", "-m", "sgmcmc_lab.lessons", "--gone"],
        ["python", "-m", "tests.benchmarks", "--class", "N"],
    ]
    listed = [words for text in DOCUMENTS.values() for words in commands(text)]
    assert len(listed) > 60
    images = image_commands()
    both = ["sgmcmc-lab", "sgmcmc-lab", "panel"]
    assert [words[0] for words in images] == ["python", "pip", *both, *both]
    listed += images
    wrong = refused([*listed, *planted])
    assert [said[0].split()[-1] for said in wrong] == ["sgmcmc_lab.samplers.gone", "--gone", "N"], wrong


def test_what_pip_installs_is_declared():
    """Extras of this project, and a file of constraints that is there."""
    asked = [words[2:] for words in commands(TEXT) if words[:2] == ["pip", "install"]]
    assert len(asked) > 3
    for words in asked:
        assert set(words) <= {"-e", ".", "-c", "--no-compile", "assets/constraints.txt"} | {
            word for word in words if word.startswith(".[")
        }
        for extras in re.findall(r"\.\[([\w,]+)\]", " ".join(words)):
            assert set(extras.split(",")) <= set(PROJECT["project"]["optional-dependencies"])
    for extra in re.findall(r"extras? `(\w+)`", TEXT):
        assert extra in PROJECT["project"]["optional-dependencies"]


def test_binder_installs_the_tested_versions():
    folder = ROOT / ".binder"
    lines = [line for line in (folder / "requirements.txt").read_text(encoding="utf-8").splitlines() if line[0] != "#"]
    assert lines[:2] == ["-c ../assets/constraints.txt", "-e ."]
    assert (folder / lines[0].removeprefix("-c ")).is_file()
    version = (folder / "runtime.txt").read_text(encoding="utf-8").strip().removeprefix("python-")
    image = re.search(
        r"^FROM python:([\d.]+)-slim$", (ROOT / ".container/Dockerfile").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert f"Programming Language :: Python :: {version}" in PROJECT["project"]["classifiers"] and image[1] == version


def mains() -> list[str]:
    """The commands that the project has: scripts, and packages that ``python -m`` runs."""
    found = list(PROJECT["project"].get("scripts", {}))
    ran = [main for folder in ("app", "samplers", "lessons") for main in (ROOT / folder).rglob("__main__.py")]
    return found + ["python -m sgmcmc_lab." + ".".join(main.parent.relative_to(ROOT).parts) for main in sorted(ran)]


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


def test_the_readmes_name_every_command_and_option(monkeypatch, capsys):
    """Also every subcommand, and no option that no command has."""
    missing, options = [], set()
    for command in ["panel serve app", *mains()]:
        if command not in TEXT:
            missing.append(command)
        if command == "panel serve app":
            continue
        usage = usage_of(command, monkeypatch, capsys)
        options |= set(re.findall(r"--[\w-]+", usage))
        # argparse lists subcommands as {run,check}; options with choices have a name before the brace.
        for listed in re.findall(r"^\s*\{([\w,-]+)\}", usage, re.MULTILINE):
            missing += [f"{command} {one}" for one in listed.split(",") if f"{command} {one}" not in TEXT]
    assert not missing, f"the READMEs do not mention: {missing}"
    # Of subcommands and of other modules: they stand in a command above, which its parser takes.
    options |= {word for words in commands(TEXT) for word in words if word.startswith("--")}
    for source in [
        path for folder in ("samplers", "lessons", "tests/benchmarks") for path in (ROOT / folder).rglob("*.py")
    ]:
        options |= set(re.findall(r'"(--[\w-]+)"', source.read_text(encoding="utf-8")))
    named = {span.split()[0] for span in spans(TEXT) if span.startswith("--")} - {"--ssl-certfile"}
    assert named and named <= options, f"no command has: {named - options}"


# Names in code


@cache
def source() -> str:
    """All programs of the project as one text."""
    return "\n".join(
        path.read_text(encoding="utf-8")
        for folder in ("app", "lessons", "samplers", "tests")
        for path in (ROOT / folder).rglob("*.py")
    )


def missing_names(text: str) -> list[str]:
    """Files, modules and variables of the environment that a text names, and that do not exist."""
    wrong = []
    for span in spans(text):
        first = span.split()[0]
        if re.fullmatch(r"(?:app|assets|lessons|samplers|tests|\.ci)/[\w./-]+", span) and not (ROOT / span).exists():
            wrong.append(span)
        dotted = re.match(r"(?:app|lessons|samplers|tests)(?:\.\w+)+", first)
        if dotted:
            module, _, attribute = dotted[0].rpartition(".")
            there = ROOT.joinpath(*dotted[0].split("."))
            if not (there.is_dir() or there.with_suffix(".py").is_file()) and not hasattr(
                importlib.import_module(module), attribute
            ):
                wrong.append(span)
    wrong += [name for name in set(re.findall(r"\bSGMCMC_[A-Z_]+", text)) if name not in source()]
    return wrong


@for_each("name", DOCUMENTS)
def test_files_modules_and_variables_exist(name):
    assert not missing_names(DOCUMENTS[name])


@for_each("planted", ["`samplers/gone.py`", "`samplers.engine.gone`", "`SGMCMC_GO" + "NE=1`"])
def test_the_search_for_names_can_fail(planted):
    assert missing_names(planted)


def unknown_words(text: str) -> list[str]:
    """Classes of a glossary that their files do not define."""
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| [^|]+ \| `([\w/]+\.py)` \|$", text, re.MULTILINE)
    assert len(rows) >= 9
    return [
        name
        for names, file in rows
        for name in re.findall(r"\w+", names)
        if not re.search(rf"^class {name}\b", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    ]


@for_each("package", ["app", "samplers", "lessons"])
def test_the_words_of_a_package_are_its_classes(package):
    _, _, text = DOCUMENTS[f"{package}/README.md"].partition("\n## The words of this package\n")
    text = text.partition("\n## ")[0]
    assert text.count("\n|") == 12
    assert unknown_words(text) == []
    first = re.search(r"^\| `(\w+)`", text, re.MULTILINE)[1]
    assert unknown_words(text.replace(f"`{first}`", f"`{first}s`", 1)) == [f"{first}s"]


def test_the_picture_of_the_data_names_files():
    for package in ("app", "lessons"):
        (picture,) = fenced(DOCUMENTS[f"{package}/README.md"], "text")
        named = re.findall(r"\b(?:app|assets|lessons|samplers)/[\w./]+", picture)
        assert len(named) > 9 and [name for name in named if not (ROOT / name).exists()] == []


def misplaced(text: str, package: str) -> list[str]:
    """The parts of a package whose order in a text is not that of its import contract."""
    (layers,) = [
        contract["layers"]
        for contract in PROJECT["tool"]["importlinter"]["contracts"]
        if contract.get("containers") == [f"sgmcmc_lab.{package}"]
    ]
    height = {part: -i for i, layer in enumerate(layers) for part in layer.split(" | ")}
    (chain,) = [
        [re.findall(r"`(\w+)`", link) for link in re.split(r"\s*→\s*", found[0])]
        for found in re.finditer(r"(?:`\w+`,\s|`\w+`\s→\s)+`\w+`", text)
        if found[0].count("→") > 6
    ]
    return [
        f"{above} above {below}"
        for upper, lower in itertools.pairwise(chain)
        for above in upper
        for below in lower
        if height[above] <= height[below]
    ]


@pytest.mark.parametrize(
    ("package", "planted"), [("app", ("`live` → `link`", "`link` → `live`")), ("samplers", ("`trace`", "`targets`"))]
)
def test_the_order_of_the_parts_is_that_of_their_imports(package, planted):
    text = DOCUMENTS[f"{package}/README.md"]
    assert misplaced(text, package) == []
    assert misplaced(text.replace(*planted), package) != []


PUBLIC = ("sgmcmc_lab.samplers", "sgmcmc_lab.lessons")


def not_listed(text: str) -> list[str]:
    """Public names that the table of a text leaves out, and names in it that nobody can import."""
    listed = {
        module: re.findall(r"`(\w+)`", names)
        for module, names in re.findall(r"^\| `(sgmcmc_lab[\w.]*)` \| (.+) \|$", text, re.MULTILINE)
    }
    wrong = [
        f"{module}.{name}"
        for module in PUBLIC
        for name in importlib.import_module(module).__all__
        if name not in listed.get(module, ())
    ]
    wrong += [
        f"{module}.{name}"
        for module, names in listed.items()
        for name in names
        if not hasattr(importlib.import_module(module), name)
    ]
    return wrong


def test_the_public_names_stand_on_their_page():
    _, _, page = DOCUMENTS["samplers/README.md"].partition("\n## What stays stable\n")
    assert not_listed(page) == []
    assert not_listed(page.replace("`RunSpec`, ", "")) == ["sgmcmc_lab.samplers.RunSpec"]
    assert not_listed(page.replace("`figure`", "`figures`")) == ["sgmcmc_lab.lessons.figures.figures"]


# Links


def anchors(text: str) -> set[str]:
    """The anchors of the headings, as GitHub makes them."""
    headings = re.findall(
        r"^#+ (.+)$", re.sub(r"^(`{3,})\w*\n.*?^\1", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def links(text: str) -> list[str]:
    """The addresses of links and pictures, those with a name among them."""
    in_line = re.findall(r"\]\(((?:[^()\s]|\([^()\s]*\))+)\)", text)
    return in_line + [address for _, address in DEFINED.findall(text)]


def broken(name: str, text: str) -> list[str]:
    """The links of a document that lead nowhere."""
    wrong = []
    for address in links(text):
        if address.startswith(SERVER):
            wrong += [f"{address}: {said}" for said in link.read_query(AppState(), address.removeprefix(SERVER))]
        elif urlsplit(address).scheme:
            wrong += [address] if address not in OUTSIDE and not address.startswith(LIBRARIES) else []
        else:
            path, _, anchor = address.partition("#")
            file = ((ROOT / name).parent / unquote(path)).resolve() if path else ROOT / name
            if not file.is_file() or (anchor and anchor not in anchors(file.read_text(encoding="utf-8"))):
                wrong.append(address)
    return wrong


@for_each("name", DOCUMENTS)
def test_every_link_leads_somewhere(name):
    assert not broken(name, DOCUMENTS[name])


@for_each(
    "planted",
    [
        "gone.md",
        "app/README.md#gone",
        "#gone",
        f"{SERVER}?target=gone",
        f"{SERVER}?lesson=gone",
        "https://example.org/",
    ],
)
def test_the_search_for_broken_links_can_fail(planted):
    assert broken("README.md", f"[x]({planted})") and broken("README.md", f"[x][y]\n\n[y]: {planted}\n")


DATED = re.compile(r"(?:[^][:]+: )?\[(20\d\d-(?:0[1-9]|1[0-2]))\]\[([\w-]+)\]")
"""A cell on another project: perhaps a restriction, then a month that leads to its source."""
OURS = ("", "this lab", "a live page")
"""The titles of the other columns."""


def undated(text: str) -> list[str]:
    """Cells on other projects that are neither a dash nor a month with its source, and sources that no cell has."""
    _, _, section = text.partition("\n## Beside other libraries\n")
    section = section.partition("\n## ")[0]
    looked = datetime.strptime(re.search(r"by (\d+ \w+ \d{4})\.", section)[1], "%d %B %Y")
    sources, used, wrong = dict(DEFINED.findall(section)), set(), []
    for head, rows in re.findall(r"^(\|\|.+)\n\|[-|]+\|\n((?:\|.+\n)+)", section, re.MULTILINE):
        titles = head[1:-1].split("|")
        for title, cell in (
            pair for row in rows.splitlines() for pair in zip(titles, row[1:-1].split("|"), strict=True)
        ):
            found = DATED.fullmatch(cell)
            if found and found[1] <= f"{looked:%Y-%m}" and found[2] in sources:
                used.add(found[2])
            elif cell != "–" and title not in OURS:
                wrong.append(cell)
    return wrong + sorted(sources.keys() - used)


def test_every_cell_on_another_project_has_its_month_and_source():
    """Fails for a *yes* without a month, a month after the last look, and a source that is missing or in no cell."""
    assert undated(README) == []
    cell, source = re.search(r"\|(\[[\d-]+\]\[bj-nuts\])\|", README)[1], dict(DEFINED.findall(README))["bj-nuts"]
    assert undated(README.replace(cell, "yes")) == ["yes", "bj-nuts"]
    assert undated(README.replace(cell, "[2099-01][bj-nuts]")) == ["[2099-01][bj-nuts]", "bj-nuts"]
    assert undated(README.replace(f"[bj-nuts]: {source}\n", "")) == [cell]


def test_the_tour_opens_what_it_says():
    """Six experiments or steps, each another one."""
    tour = re.search(r"^## A tour\n(.*?)^## ", README, re.MULTILINE | re.DOTALL)[1]
    assert len(set(links(tour))) == len(re.findall(r"^\d\. ", tour, re.MULTILINE)) == 6


def test_the_links_table_of_the_page_is_read():
    """Each part of a link that the table names, and every word of ``hide=``, is one that the page takes."""
    text = re.search(r"^## Links\n.*?^## ", DOCUMENTS["app/README.md"], re.MULTILINE | re.DOTALL)[0]
    parts = re.findall(r"^\| `([\w=&.,]+)` \|", text, re.MULTILINE)
    assert len(parts) == 7
    for part in parts:
        extra = "" if "lesson" in part else "&target=gaussian" if "start" in part else "&target=quartic"
        assert link.read_query(AppState(), f"?{part}{extra}") == [], part
    listed = re.search(r"^`hide=` takes (.*?)\n\n", text, re.MULTILINE | re.DOTALL)[1]
    words = re.findall(r"`([\w.]+)`", listed)
    assert len(words) > 25
    query = f"?target=linear_regression&lane=sgld&lane=sgld~minibatch&hide={','.join(words)}"
    assert link.read_query(AppState(), query) == []
    assert link.read_query(AppState(), f"{query},gone") != []


@pytest.mark.slow
@pytest.mark.parametrize("source", ["", "https://example.org/lab"])
def test_a_package_index_gets_absolute_addresses(source, tmp_path):
    """Fails where a picture or a file of the description is looked for beside the package index's page."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for package in ("assets.package", *tomllib.loads(project)["tool"]["setuptools"]["packages"]):
        tmp_path.joinpath(*package.removeprefix("sgmcmc_lab").strip(".").split(".")).mkdir(parents=True, exist_ok=True)
    for name in ("assets/package_index.py", "README.md", "LICENSE"):
        shutil.copyfile(ROOT / name, tmp_path / name)
    urls = f'[project.urls]\nSource = "{source}"\n\n' if source else ""
    (tmp_path / "pyproject.toml").write_text(
        project.replace("[project.scripts]", f"{urls}[project.scripts]"), encoding="utf-8"
    )
    code = "from setuptools import build_meta; print(build_meta.prepare_metadata_for_build_wheel('.'))"
    made = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=600, check=True
    )
    described = (tmp_path / made.stdout.splitlines()[-1] / "METADATA").read_text(encoding="utf-8")
    assert "Description-Content-Type: text/markdown" in described
    _, _, text = described.partition("\n\n")
    if source:
        assert f"({source}/raw/HEAD/assets/live.webp)" in text
        assert f"({source}/blob/HEAD/lessons/README.md#presenting)" in text
        assert not [address for address in links(text) if not urlsplit(address).scheme]
    else:
        assert text.strip() == README.strip()


# Programs and lessons


@pytest.mark.slow
def test_the_programs_of_the_readmes_run():
    """Each in a module of its own; the mean that the last one prints is the exact one, to four standard errors."""
    programs = fenced(TEXT, "python")
    assert len(programs) == 2
    # In one process, for what they import takes longest.
    both = f"for program in {programs!r}: exec(program, {{'__name__': '__main__'}})"
    printed = subprocess.run(
        [sys.executable, "-c", both], cwd=ROOT, capture_output=True, text=True, timeout=600, check=True
    ).stdout
    measured, exact = map(float, printed.splitlines()[-1].split())
    # Of N(−0.053, 0.138²): the chain of 200 units of time forgets at a rate of 53, and the long run has 10,000 draws.
    assert abs(measured - exact) < 4 * 0.138 * ((2 / 53 / 200) ** 0.5 + 0.01)


@pytest.mark.slow
def test_the_experiment_of_the_readme_runs(tmp_path, capsys):
    """Fails for a field that the file of an experiment does not have, as the planted one."""
    (text,) = fenced(DOCUMENTS["samplers/README.md"], "json")
    file, out = tmp_path / "experiment.json", tmp_path / "draws.csv"
    file.write_text(text, encoding="utf-8")
    assert cli.main(["run", str(file), "--out", str(out)]) == cli.DONE
    assert "10,000 draws of 4 chains, SGLD" in capsys.readouterr().out and out.stat().st_size > 10_000
    file.write_text(text.replace("n_steps", "steps"), encoding="utf-8")
    assert cli.main(["run", str(file), "--out", str(out)]) == cli.BAD_INPUT
    assert "there is no such field" in capsys.readouterr().err


def test_the_lesson_of_the_readme_passes(tmp_path):
    (text,) = re.findall(r"^````markdown\n(.*?)^````", DOCUMENTS["lessons/README.md"], re.MULTILINE | re.DOTALL)
    file = tmp_path / "first.md"
    file.write_text(text, encoding="utf-8")
    (step,) = read(file).steps
    assert [result.passed for result in run_step(step).results] == [True]
    file.write_text(text.replace("equals = 1", "equals = 2"), encoding="utf-8")
    assert [result.passed for result in run_step(read(file).steps[0]).results] == [False]


# Numbers


def test_the_counts_of_the_readme_are_those_of_the_course():
    n = sum(not lesson.title.startswith("Appendix: ") for lesson in LESSONS.values())
    assert f"a course of {n} lessons, with appendices" in README
    assert f"The course has {n} lessons" in DOCUMENTS["CHANGELOG.md"]


def test_the_measured_figures_are_those_of_their_records():
    """Fails where a figure was altered by hand, or a record was not written into its place."""
    text = DOCUMENTS["tests/benchmarks/README.md"]
    records = record.kept()
    assert len(records) > 15
    written = record.table(records)
    assert f"{BEGIN}\n\n{written}\n\n{END}" in text
    for one in records:
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", one["date"]) and one["machine"] and one["versions"]["Python"]
        for table in (item for item in one["body"] if isinstance(item, dict) and "rows" in item):
            assert {len(row) for row in table["rows"]} == {len(table["columns"])}


# Version


def test_version_date_and_licence_agree():
    project = PROJECT["project"]
    newest = re.search(r"^## \[(.+?)\] - (\d{4}-\d\d-\d\d)$", DOCUMENTS["CHANGELOG.md"], re.MULTILINE)
    assert (CITED["version"], CITED["date-released"]) == newest.groups()
    assert CITED["version"] == project["version"] and f"version is {project['version']}." in README
    assert (CITED["license"], CITED["abstract"]) == (project["license"], project["description"])
    assert authors() == [author["name"] for author in project["authors"]]


def authors() -> list[str]:
    """The authors in the citation file, which are entities with one name."""
    return re.findall(r'^  - name: "(.+)"$', CITATION, re.MULTILINE)


def miscited(text: str) -> list[str]:
    """The lines of a README's entry for BibTeX, and its sentence, that differ from the citation file."""
    day = date.fromisoformat(CITED["date-released"])
    names = " and ".join(f"{{{name}}}" for name in authors())
    right = {"author": names, "title": f"{{{CITED['title']}}}", "version": CITED["version"], "year": f"{day.year}"}
    (entry,) = fenced(text, "bibtex")
    lines = [line.rstrip(",") for line in entry.splitlines()[1:-1]]
    wrong = sorted(
        {*(f"  {name} = {{{value}}}" for name, value in right.items()), f"  month = {day:%b}".lower()} ^ {*lines}
    )
    sentence = f"> {', '.join(authors())} ({day.year}). *{CITED['title']}*, version {CITED['version']}, {day.day} {day:%B %Y}. "
    return wrong if sentence in text else [*wrong, sentence]


def test_the_readme_is_cited_as_the_citation_file_says():
    assert miscited(README) == []
    for planted in ("{0.2.0}", "month = nov", "{{SG-MCMC Lab authors}}", "27 November 2026"):
        assert planted in README and miscited(README.replace(planted, "x")), planted


def cited_papers(citation: str) -> list[tuple[str, str]]:
    """The first author and the year of each reference in a citation file."""
    _, _, references = citation.partition("\nreferences:\n")
    return [
        (re.search(r"family-names: (.+)", one)[1], re.search(r"^    year: (\d{4})$", one, re.MULTILINE)[1])
        for one in re.split(r"^  - type: ", references, flags=re.MULTILINE)[1:]
    ]


def uncited(citation: str) -> set[str]:
    """The papers that the course reproduces, by their first author and year, but for those in a citation file."""
    _, _, table = DOCUMENTS["lessons/RESULTS.md"].partition("\n## Where to find each part of the papers\n")
    named = re.findall(r"^\| (?!paper)(\w+)[^|]*?(\d{4})? \|", table, re.MULTILINE)
    assert len({name for name, _ in named}) == 5 and "of five papers" in README
    for path in (ROOT / "lessons" / "course").glob("*.md"):
        named += re.findall(r'figure = "(\w+)[^",]*?(\d{4})?[",]', path.read_text(encoding="utf-8"))
    papers = cited_papers(citation)
    known = {*papers, *((name, "") for name, _ in papers)}
    return {f"{name} {year}" for name, year in named if (name, year) not in known}


def test_the_papers_that_the_course_reproduces_are_cited():
    assert len(cited_papers(CITATION)) == 5 and uncited(CITATION) == set()
    assert uncited(CITATION.replace("family-names: Knowles", "family-names: Other")) == {"Knowles 2015"}
    assert uncited(CITATION.replace("year: 2018", "year: 2019")) == {"Baker 2018"}


def test_a_version_says_ten_things():
    sections = re.split(r"^## ", DOCUMENTS["CHANGELOG.md"], flags=re.MULTILINE)[1:]
    assert all(len(re.findall(r"^- ", section, re.MULTILINE)) <= 10 for section in sections)


# The picture


def test_the_moving_picture_moves_and_is_small():
    """No other picture is kept in assets."""
    from PIL import Image

    pictures = {path.name for path in (ROOT / "assets").iterdir() if path.suffix in (".webp", ".gif", ".png", ".jpg")}
    assert pictures == {Path(address).name for address in links(README) if address.startswith("assets/")}
    file = ROOT / "assets" / "live.webp"
    assert file.stat().st_size <= 1_500_000
    with Image.open(file) as picture:
        assert 20 <= picture.n_frames <= 40 and 900 <= picture.width <= 1200
        first = picture.convert("RGB").tobytes()
        picture.seek(picture.n_frames - 1)
        assert picture.convert("RGB").tobytes() != first

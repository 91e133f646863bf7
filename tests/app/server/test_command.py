"""The command ``sgmcmc-lab``: what it serves to whom, what it checks, and what it says to bad arguments."""

import importlib.metadata
import io
import socket
import subprocess
import sys
from itertools import pairwise

import pytest

from sgmcmc_lab.app.room.network import addresses, qr_svg, qr_terminal
from sgmcmc_lab.app.server import checking, command
from sgmcmc_lab.samplers.compile import jit

BAD = [
    (["--port", "0"], "sgmcmc-lab: argument --port: '0': allowed is a whole number from 1 to 65535.\n"),
    (
        ["--port", "9" * 5000],
        f"sgmcmc-lab: argument --port: '{'9' * 40}': allowed is a whole number from 1 to 65535.\n",
    ),
    (["--port", "²"], "sgmcmc-lab: argument --port: '²': allowed is a whole number from 1 to 65535.\n"),
    (["--all"], "sgmcmc-lab: unrecognized arguments: --all.\n"),
    (["--site"], "sgmcmc-lab: argument --site: expected one argument.\n"),
    (["--class", "--check"], "sgmcmc-lab: argument --check: not allowed with argument --class.\n"),
]


@pytest.mark.parametrize(("arguments", "sentence"), BAD)
def test_bad_arguments_are_one_sentence(arguments, sentence, capsys):
    with pytest.raises(SystemExit) as end:
        command.main(arguments)
    assert end.value.code == command.BAD_INPUT
    assert capsys.readouterr() == ("", sentence)


def test_a_folder_that_cannot_be_made_is_said(tmp_path, capsys, monkeypatch):
    """Before any page of the course is made."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert command.main(["--site", "file"]) == command.BAD_INPUT
    assert capsys.readouterr().err == "error: site = 'file': it cannot be made: file exists.\n"


def test_a_taken_port_is_said(capsys):
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(SystemExit) as end:
        command.main(["--port", str(listener.getsockname()[1])])
    assert end.value.code == command.BAD_INPUT
    assert "listens on" in capsys.readouterr().err


def test_without_a_class_only_this_computer_is_served():
    own, room = (command.serve_arguments(5006, room, ["10.0.0.5", "desk.local"]) for room in (False, True))
    assert own[own.index("--address") + 1] == "localhost"
    assert "--allow-websocket-origin" not in own
    assert "--address" not in room
    allowed = [after for before, after in pairwise(room) if before == "--allow-websocket-origin"]
    assert allowed == ["10.0.0.5:5006", "desk.local:5006"]


def test_the_class_is_told_the_address_that_it_may_open(monkeypatch, capsys):
    served = []
    # Panel's own reading of the command line comes before it.
    monkeypatch.setattr("panel.command.Serve.invoke", lambda _, given: served.append(given))
    monkeypatch.setattr("sys.argv", ["sgmcmc-lab", "--class"])
    monkeypatch.setattr("sgmcmc_lab.app.room.network.addresses", lambda: ["10.0.0.5", "192.168.1.7"])
    assert command._serve(5044, room=True) == 0
    said = capsys.readouterr().out
    assert "http://10.0.0.5:5044/ or http://192.168.1.7:5044/" in said
    assert qr_terminal("http://10.0.0.5:5044/") in said
    assert served[0].port == 5044
    assert {"10.0.0.5:5044", "192.168.1.7:5044"} <= set(served[0].allow_websocket_origin)
    monkeypatch.setattr("sgmcmc_lab.app.room.network.addresses", list)
    assert command._serve(5044, room=True) == command.FAILED
    assert len(served) == 1
    assert "in no network" in capsys.readouterr().err


def test_a_console_without_blocks_gets_the_address_without_its_code(monkeypatch):
    """Fault: the command ends in a traceback."""
    western = io.TextIOWrapper(io.BytesIO(), encoding="cp1252")
    monkeypatch.setattr("panel.command.Serve.invoke", lambda _, given: None)
    monkeypatch.setattr("sys.argv", ["sgmcmc-lab", "--class"])
    monkeypatch.setattr("sgmcmc_lab.app.room.network.addresses", lambda: ["10.0.0.5"])
    monkeypatch.setattr("sys.stdout", western)
    assert command._serve(5044, room=True) == 0
    western.flush()
    assert western.buffer.getvalue().decode("cp1252").startswith("For the class: http://10.0.0.5:5044/")


def test_the_check_sees_a_sampler_that_is_wrong(monkeypatch, capsys):
    """Unadjusted SGLD at a large step has another stationary distribution."""
    monkeypatch.setattr(checking, "TESTED", (checking.TESTED[0], ("gaussian", "sgld", {"step_size": 0.5})))
    monkeypatch.setattr(checking, "first_frame", lambda: 0.0)
    assert command.main(["--check"]) == command.FAILED
    found = capsys.readouterr()
    assert "ok    gaussian, mala" in found.out
    assert "WRONG gaussian, sgld" in found.out
    assert found.err == "sgmcmc-lab: not the exact moments: gaussian, sgld.\n"


CHECK = "import sys; from sgmcmc_lab.app.server.command import main; sys.exit(main(['--check']))"
FAULT = "import sgmcmc_lab.app.page.shell as shell; shell.page = lambda: 1 / 0; "
LATE = """
import asyncio
from sgmcmc_lab.app.server.light_page import LightPage

class Late(LightPage):
    closed = False

    async def take(self):
        taking = asyncio.create_task(super().take())
        while not self.closed:
            await asyncio.sleep(0.01)
        self.answer(2, 0)

    def close(self):
        super().close()
        self.closed = True

from sgmcmc_lab.app.server import checking
checking.LightPage = Late
"""
"""A frame comes after the page was left."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "fault"),
    [("", False), (LATE, False), (FAULT, True)],
    ids=["as it is", "a late frame", "a page that cannot be made"],
)
def test_the_check_opens_a_page(before, fault):
    """Fails where ``--check`` is content while every visitor gets an error. Fault: the page cannot be made."""
    done = subprocess.run([sys.executable, "-c", before + CHECK], capture_output=True, text=True, timeout=400)
    assert ("ok    page: the first frame came after" in done.stdout) == (not fault), done.stderr
    assert done.returncode == (command.FAILED if fault else 0)
    assert ("sgmcmc-lab: the page does not open" in done.stderr) == bool(fault)
    assert "UNTESTED" not in done.stdout and "OFF " not in done.stdout
    assert "WARNING" not in done.stderr, "parts that are empty until they are needed are no fault"


def test_a_version_that_no_test_ran_with_is_said(monkeypatch):
    """Fails where a release outside the bounds is taken for a tested one. Fault: the installed ones are inside."""
    assert list(checking.untested()) == []
    real = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "99.0" if name == "bokeh" else real(name))
    (sentence,) = checking.untested()
    assert sentence.startswith("bokeh 99.0 lies outside the tested versions, ")


def test_the_version_is_the_packages_own(capsys):
    with pytest.raises(SystemExit) as end:
        command.main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"sgmcmc-lab {importlib.metadata.version('sgmcmc-lab')}\n"


@pytest.mark.parametrize("arguments", [["--version"], ["--port", "0"], ["--help"]])
def test_what_needs_no_engine_imports_none(arguments):
    """Its import takes two seconds. Fault: the check's modules are imported with the command's."""
    code = "import sys; from sgmcmc_lab.app.server.command import main\ntry: main(sys.argv[1:])\nfinally: print({'numba', 'numpy', 'panel'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "set()"


@pytest.mark.parametrize(
    ("kept", "missing", "code"), [("cache", [], 0), ("cache", ["f"], 1), ("a temporary one", [], 1), (None, [], 1)]
)
def test_to_compile_ahead_succeeds_where_a_start_finds_all_of_it(kept, missing, code, tmp_path, monkeypatch, capsys):
    """Fails where the image of a container is built without them, and nobody is told."""
    begun = []
    monkeypatch.setattr("sgmcmc_lab.app.server.warmup.compile_apart", begun.append)
    monkeypatch.setattr(jit, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(jit, "FOLDER", kept and tmp_path / kept)
    monkeypatch.setattr(jit, "missing", lambda: missing)
    assert command.main(["--compile"]) == code
    assert begun == [[]] and "ompiled" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("folder", "missing", "said"),
    [
        ("cache", [], "All 3 functions are compiled"),
        ("cache", ["f"], "1 of 3 functions are still to be compiled"),
        ("another", ["f"], "Set SGMCMC_LAB_CACHE to a writable folder"),
        (None, [], "3 of 3 functions are still to be compiled"),
    ],
)
def test_the_check_says_what_is_compiled_and_where_it_is_kept(folder, missing, said, tmp_path, monkeypatch):
    """Fails where a person with a read-only home is not told why every start takes a minute."""
    monkeypatch.setattr(jit, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(jit, "FOLDER", folder and tmp_path / folder)
    monkeypatch.setattr(jit, "declared", lambda: ["e", "f", "g"])
    monkeypatch.setattr(jit, "missing", lambda: missing)
    lines = "\n".join(checking._cache_lines())
    assert said in lines and str(tmp_path / "cache") in lines
    assert ("be written to" in lines) == (folder != "cache")


def test_addresses_are_of_this_computer():
    """To each of them a socket can be bound, which no other computer's address allows."""
    for one in addresses():
        with socket.socket() as bound:
            bound.bind((one, 0))
    with socket.socket() as bound, pytest.raises(OSError, match="assign"):
        bound.bind(("192.0.2.1", 0))


def test_a_code_is_of_its_text():
    assert qr_svg("http://10.0.0.5:5006/") != qr_svg("http://10.0.0.6:5006/")
    assert qr_svg("x").startswith("<svg")
    assert "width=" not in qr_svg("x").partition(">")[0]

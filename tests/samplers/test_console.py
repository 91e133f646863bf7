"""Commands write to consoles of any code page."""

import argparse
import io
import subprocess
import sys

import pytest

from sgmcmc_lab.samplers.console import Parser


@pytest.mark.parametrize("kind", [Parser, argparse.ArgumentParser])
def test_a_sign_that_the_code_page_lacks_is_written_by_its_number(kind, monkeypatch):
    """Planted fault: Python's own parser, under which the command ends in a traceback."""
    western = io.TextIOWrapper(io.BytesIO(), encoding="cp1252")
    monkeypatch.setattr("sys.stdout", western)
    parser = kind(prog="a command", description="The step size ε, and é.")
    if kind is Parser:
        parser.print_help()
        western.flush()
        assert "The step size \\u03b5, and é." in western.buffer.getvalue().decode("cp1252")
    else:
        with pytest.raises(UnicodeEncodeError):
            parser.print_help()


def test_a_stream_without_a_code_page_stays_as_it_is(monkeypatch):
    """As in a notebook, or where there is no console."""
    text = io.StringIO()
    monkeypatch.setattr("sys.stdout", text)
    monkeypatch.setattr("sys.stderr", None)
    Parser(prog="a command", description="ε").print_help()
    assert "ε" in text.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("sgmcmc_lab.samplers", "list"),
        ("sgmcmc_lab.samplers.diagnostics.coupling", "--help"),
        ("sgmcmc_lab.samplers.diagnostics.calibration", "--help"),
        ("sgmcmc_lab.samplers.models.topics", "--help"),
        ("sgmcmc_lab.lessons",),
    ],
)
def test_commands_write_to_a_western_code_page(arguments, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "cp1252")
    done = subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True, encoding="cp1252")
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert done.stdout

"""The bench of a first start: it ends when what the engine declares is compiled."""

import asyncio
import importlib
from pathlib import Path

import pytest

from sgmcmc_lab.samplers.compile import jit
from tests.benchmarks import kernels, start


class Page:
    """Stands for a page that moves, on a server that compiles a function between two frames."""

    def __init__(self, left):
        self.left, self.on_frame = left, None

    async def open(self, url):
        await asyncio.sleep(0)

    async def take(self):
        while True:
            self.on_frame()
            if self.left:
                path = self.left.pop()
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
            await asyncio.sleep(0.001)

    def close(self):
        pass


@pytest.mark.slow
@pytest.mark.parametrize("fault", [False, True])
def test_it_ends_with_the_last_function_of_the_engine(fault, tmp_path, monkeypatch):
    """Fails where it waits for what no server compiles, ends before the last one, or is silent meanwhile.

    Planted fault: the benches' own functions are waited for, which are not in the process that compiles.
    """
    importlib.import_module("sgmcmc_lab.samplers.models")
    functions = [f for f in jit.declared() if jit.kept_in(f) is not None]
    benches = [f for f in functions if Path(f.py_func.__code__.co_filename).parent == Path(kernels.__file__).parent]
    assert benches and len(start.files()) == len(functions) - len(benches)
    monkeypatch.setenv(start.CACHE, str(tmp_path))
    compiled = [jit.cache_folder() / file for file in start.files()]
    monkeypatch.setattr(start, "LightPage", lambda: Page(compiled))
    monkeypatch.setattr(start, "LOOK_SECONDS", 0.005)
    monkeypatch.setattr(start, "SAY_SECONDS", 0.02)
    wanted, said = start.files(), []
    if fault:
        wanted += [jit.kept_in(f).relative_to(jit.FOLDER) for f in benches]
    report = asyncio.run(start._watch("", wanted, 0.0, 10.0 if fault else 60.0, said.append))
    assert (report.functions == report.declared) == (not fault)
    assert ("nobody waited" in start.as_text(report)) == fault
    assert not compiled and any(f"of {len(wanted)} functions" in what for what in said)

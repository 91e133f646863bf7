"""Export: draws as NetCDF and CSV, a picture, a film, the experiment as JSON, as a Python script, and as a link."""

import asyncio
import io
import tempfile
import zipfile
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import panel as pn
import panel_material_ui as pmui

from sgmcmc_lab.app.live.fair_executor import FullError, Pool
from sgmcmc_lab.app.live.runner import Runner
from sgmcmc_lab.app.live_page import live_page
from sgmcmc_lab.app.page.camera import SECONDS, Camera
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.app.views.theme import theme
from sgmcmc_lab.samplers import Experiment, SpecError, run
from sgmcmc_lab.samplers.file_format import GUESSED
from sgmcmc_lab.samplers.models.run import write_curves
from sgmcmc_lab.samplers.settings import ANY_TARGET
from sgmcmc_lab.samplers.targets.own import OfTable, held
from sgmcmc_lab.samplers.targets.posterior import TypedPosterior

T = TypeVar("T")

MAX_ROWS = 200_000
"""Draws in a file made by the page, over all chains; of longer runs every so many steps are kept."""
MAX_NUMBERS = 4_000_000
"""Coordinates of those draws in all: about 80 MB of CSV."""
MAX_RUN = 1_000_000_000
"""Steps that a saved experiment runs at most: the bound of ``n_steps``."""
MOST_FILES, MOST_WAITING = 2, 20
"""Files of one address that are made at a time, and that wait for it."""
_WRITERS = Pool(1, "file", most_of_address=MOST_FILES, most_waiting=MOST_WAITING)
TOO_MANY = f"{MOST_WAITING} files are being made for your network already, which is as many as may wait. Try again in a minute."
MAX_STEPS = 20_000_000
"""The longest run that the page makes again for a file, in chain-steps; longer ones are for the command line."""

_SCRIPT = '''"""An experiment of SG-MCMC Lab, as it stood on the page after {steps:,} steps.

Needs the package sgmcmc-lab. Run it with Python: it writes the draws of each lane beside itself.
"""

{imports}

EXPERIMENT = r"""
{experiment}
"""

if __name__ == "__main__":{table}
    for number, spec in enumerate(Experiment.from_json(EXPERIMENT).runs(), start=1):
        trace = run(spec)
        name = f"lane-{{number}}-{{spec.sampler.key}}.nc"
        trace.save(name)
        print(name, "holds", trace.values().shape[1], "draws of", spec.n_chains, "chains")
'''

_IMPORTS = "from sgmcmc_lab.samplers import Experiment, run"
_OWN_IMPORTS = """import sys
from pathlib import Path

from sgmcmc_lab.samplers import Experiment, run
from sgmcmc_lab.samplers.file_format import Format
from sgmcmc_lab.samplers.targets import TARGETS
from sgmcmc_lab.samplers.targets.own import keep"""
_OWN = """
    if len(sys.argv) != 2:
        sys.exit("Give the CSV file of the table after the program; the program does not contain it.")
    # The experiment finds its table as long as this name holds it.
    form = {form}
    table = keep(TARGETS["{target}"].read({{sys.argv[1]: Path(sys.argv[1]).read_bytes()}}, form))"""


def script(experiment: Experiment) -> str:
    """A Python program that makes the experiment's draws again."""
    imports, table = _IMPORTS, ""
    if experiment.of_own_data:
        table_held = held(experiment.target.values()[OfTable.data_parameter])
        # A format chosen on the page, or guessed, is not guessed again.
        form = GUESSED if table_held is None or table_held.taken is None else table_held.taken.format
        imports, table = _OWN_IMPORTS, _OWN.format(target=experiment.target.key, form=form)
    return _SCRIPT.format(steps=experiment.n_steps, experiment=experiment.to_json(), imports=imports, table=table)


def saved(experiment: Experiment) -> Experiment:
    """The experiment as a file holds it: with so much thinning that its draws are at most ``MAX_ROWS``, and their
    coordinates at most ``MAX_NUMBERS``.

    Raises :class:`~samplers.parameters.SpecError` where more was changed than a file may hold.
    """
    if experiment.of_model:
        return Experiment.from_dict(experiment.to_dict())
    steps = min(experiment.n_steps, MAX_RUN)
    rows = min(MAX_ROWS, MAX_NUMBERS // experiment.make_target().dim)
    thinned = replace(experiment, n_steps=steps, thin=max(1, -(-steps * experiment.n_chains // rows)))
    return Experiment.from_dict(thinned.to_dict())


def draws(experiment: Experiment, suffix: str) -> tuple[str, bytes]:
    """A file name and its content: the draws of one lane, or a zip with a file for each."""
    files: list[tuple[str, bytes]] = []
    with tempfile.TemporaryDirectory() as folder:
        for number, spec in enumerate(experiment.runs(), start=1):
            path = Path(folder) / f"lane-{number}-{spec.sampler.key}{suffix}"
            run(spec).save(path)
            files.append((path.name, path.read_bytes()))
    if len(files) == 1:
        return files[0]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return f"draws{suffix}.zip", buffer.getvalue()


class ExportMenu:
    """The header's menu: an action for each label, with an icon."""

    def __init__(self, state: AppState, runner: Runner, notify: Callable[[str, str], None]):
        self.state, self.runner, self.notify = state, runner, notify
        self.camera = Camera()
        where = pn.state.location
        # As the request had it, which the guard has checked.
        port = f":{where.port}" if where and where.port else ""
        self._address = f"{where.protocol}//{where.hostname}{port}{where.pathname}" if where and where.hostname else ""
        """The lab's, for the link of a live page."""
        self._making = False
        """Whether a live page is being made, which takes a processor."""
        self.panel = pmui.MenuButton(
            label="Export",
            icon="ios_share",
            size="small",
            color="light",
            variant="outlined",
            margin=(0, 8),
            sx={"color": "white"},
            items=self._items(),
        )
        self.panel.on_click(self._clicked)  # type: ignore[arg-type]  # it takes a coroutine function as well
        state.param.watch(lambda *_: self._refresh(), "experiment")

    def actions(self) -> dict[str, tuple[str, Callable[[], Awaitable[None]]]]:
        """An icon and an action for each label."""
        common: dict[str, tuple[str, Callable[[], Awaitable[None]]]] = {
            "Copy the link": ("link", self._link),
            "Picture (PNG)": ("image", self.picture),
            **{f"Film of {n} s (WebM)": ("videocam", partial(self.film, n)) for n in SECONDS},
            "Experiment (JSON)": ("data_object", self._json),
            "Live page (HTML)": ("smart_display", self._live),
        }
        if self.state.experiment.of_model:
            return common | {"Curves (CSV)": ("table_chart", self._curves)}
        stan = (
            {"Model (Stan)": ("functions", self._stan)}
            if self.state.experiment.target.key == TypedPosterior.key
            else {}
        )
        return common | {
            "Experiment (Python)": ("code", self._script),
            **stan,
            "Draws (NetCDF)": ("save", lambda: self._draws(".nc")),
            "Draws (CSV)": ("table_chart", lambda: self._draws(".csv")),
        }

    def _items(self) -> list[dict[str, str]]:
        return [{"label": label, "icon": icon} for label, (icon, _) in self.actions().items()]

    def _refresh(self) -> None:
        if (items := self._items()) != self.panel.items:
            self.panel.items = items

    async def _clicked(self, item: Any) -> None:
        try:
            await self.actions()[item["label"]][1]()
        except SpecError as error:
            # More was changed on the page than a file may hold.
            self.notify("error", str(error))
        except FullError:
            self.notify("error", TOO_MANY)

    async def _in_turn(self, make: Callable[[], T]) -> T:
        """The result of work in a thread; addresses take turns. Raises :class:`FullError`."""
        turn = _WRITERS.of(_WRITERS.share(self.runner.address))
        return await asyncio.get_running_loop().run_in_executor(turn, make)

    async def _link(self) -> None:
        await self.runner.bus.send_copy()
        more = "; but no file of your own" if self.state.experiment.of_own_data else ""
        self.notify("success", f"The link is on the clipboard. It holds the whole experiment, seed included{more}.")

    async def picture(self) -> None:
        """Save the figures as one PNG."""
        colours = theme(self.state.dark)
        experiment = self.runner.experiment()
        at = "" if experiment.of_model else f" · step {experiment.n_steps:,}"
        self.camera.take_picture("sgmcmc-lab.png", f"{self.caption()}{at}", colours.surface, colours.text)

    async def film(self, seconds: int) -> None:
        """Save how the figures move for so many seconds."""
        colours = theme(self.state.dark)
        self.camera.take_film("sgmcmc-lab.webm", self.caption(), colours.surface, colours.text, seconds)

    def caption(self) -> str:
        """The subject of a picture or a film."""
        experiment = self.runner.experiment()
        title, lanes = ANY_TARGET[experiment.target.key].title, ", ".join(self.state.lane_titles())
        return f"SG-MCMC Lab · {title} · {lanes} · seed {experiment.seed}"

    async def _json(self) -> None:
        await self.runner.bus.send_file("experiment.json", saved(self.runner.experiment()).to_json().encode())

    async def _script(self) -> None:
        await self.runner.bus.send_file("experiment.py", script(saved(self.runner.experiment())).encode())

    async def _live(self) -> None:
        if self._making:
            self.notify("info", "A live page is being made already.")
            return
        experiment, views = self.state.experiment, tuple(self.state.views)
        if experiment.of_own_data:
            held = (
                "shows your data to everyone who has the file"
                if experiment.of_model
                else "contains your table: everyone with the file can read it"
            )
            self.notify("warning", f"The live page {held}, too.")
        if experiment.of_model:
            self.notify(
                "info",
                "A recording of this experiment is being made, which takes ten seconds: models of data need Python to run.",
            )
        else:
            self.notify(
                "info", "The live page is being made. Functions that are not yet compiled for it take a minute."
            )
        make = partial(
            live_page, experiment, shown=views, axis=self.state.axis, upload=self.state.own_data, lab=self._address
        )
        self._making = True
        try:
            page = await self._in_turn(make)
        finally:
            self._making = False
        await self.runner.bus.send_file(f"{experiment.target.key}.html", page.encode())

    async def _stan(self) -> None:
        model = self.state.experiment.make_target()
        assert isinstance(model, TypedPosterior)
        await self.runner.bus.send_file("model.stan", model.stan().encode())

    async def _curves(self) -> None:
        if self.runner.lanes is None:
            self.notify("warning", "The data are not loaded yet.")
            return
        text = io.StringIO(newline="")
        write_curves(text, self.state.lane_titles(), self.runner.lanes.runs)
        await self.runner.bus.send_file("curves.csv", text.getvalue().encode())

    async def _draws(self, suffix: str) -> None:
        experiment = saved(self.runner.experiment())
        if experiment.n_steps * experiment.n_chains * len(experiment.lanes) > MAX_STEPS:
            self.notify(
                "error",
                f"This run has {experiment.n_steps:,} steps of {experiment.n_chains:,} chains, too many to make again here. "
                "Save the experiment as JSON and run: python -m sgmcmc_lab.samplers run experiment.json --out draws.nc",
            )
            return
        self.notify("info", f"Repeating the draws of {experiment.n_steps:,} steps for a file.")
        name, content = await self._in_turn(partial(draws, experiment, suffix))
        await self.runner.bus.send_file(name, content)

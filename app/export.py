"""Export: draws as NetCDF and CSV, the picture as PNG, the experiment as JSON, as a Python script, and as a link."""

import asyncio
import io
import tempfile
import zipfile
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import panel as pn
import panel_material_ui as pmui

from app.live import Live
from app.page_state import PageState
from app.runner import Runner
from app.theme import theme
from samplers import Experiment, SpecError, run

MAX_ROWS = 200_000
"""Draws in a file made by the page, over all chains; of longer runs every so many steps are kept."""
MAX_RUN = 1_000_000_000
"""Steps that a saved experiment runs at most: the bound of ``n_steps``."""
MAX_STEPS = 20_000_000
"""The longest run that the page makes again for a file, in chain-steps; longer ones are for the command line."""

_SCRIPT = '''"""An experiment of SG-MCMC Lab, as it stood on the page after {steps:,} steps.

Needs the package sgmcmc-lab. Run it with Python: it writes the draws of each lane beside itself.
"""

from samplers import Experiment, SpecError, run

EXPERIMENT = r"""
{experiment}
"""

if __name__ == "__main__":
    for number, spec in enumerate(Experiment.from_json(EXPERIMENT).runs(), start=1):
        trace = run(spec)
        name = f"lane-{{number}}-{{spec.sampler.key}}.nc"
        trace.save(name)
        print(name, "holds", trace.values().shape[1], "draws of", spec.n_chains, "chains")
'''


def script(experiment: Experiment) -> str:
    """A Python program that makes the experiment's draws again."""
    return _SCRIPT.format(steps=experiment.n_steps, experiment=experiment.to_json())


def saved(experiment: Experiment) -> Experiment:
    """The experiment as a file holds it: with so much thinning that its draws are at most ``MAX_ROWS``.

    Raises :class:`~samplers.parameters.SpecError` where more was changed than a file may hold.
    """
    steps = min(experiment.n_steps, MAX_RUN)
    thinned = replace(experiment, n_steps=steps, thin=max(1, -(-steps * experiment.n_chains // MAX_ROWS)))
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


class Menu:
    """The header's menu: an action for each label, with an icon."""

    holds = "It holds the whole experiment, seed included."
    """What a copied link is."""

    def __init__(self, state: PageState, runner: Live, notify: Callable[[str, str], None]):
        self.state, self.runner, self.notify = state, runner, notify
        common = {"Copy the link": ("link", self._link), "Picture (PNG)": ("image", self.picture)}
        actions = {**common, **self.files()}
        self._actions = {label: action for label, (_, action) in actions.items()}
        menu = pmui.MenuButton(
            label="Export", icon="ios_share", size="small", color="light", variant="outlined", margin=(4, 8), sx={"color": "white"},
            items=[{"label": label, "icon": icon} for label, (icon, _) in actions.items()],
        )  # fmt: skip
        menu.on_click(self._clicked)
        self.panel = pn.Row(menu, margin=0, align="end")

    @abstractmethod
    def files(self) -> dict[str, tuple[str, Callable[[], Any]]]:
        """The files that the page gives: an icon and an action for each label."""

    @abstractmethod
    def caption(self) -> str:
        """What a picture is of."""

    async def _clicked(self, item: Any) -> None:
        try:
            await self._actions[item["label"]]()
        except SpecError as error:
            # More was changed on the page than a file may hold.
            self.notify("error", str(error))

    async def _link(self) -> None:
        await self.runner.bus.send_copy()
        self.notify("success", f"The link is on the clipboard. {self.holds}")

    async def picture(self) -> None:
        """Save the figures as one PNG."""
        colours = theme(self.state.dark)
        caption = f"SG-MCMC Lab · {self.caption()}"
        await self.runner.bus.send_picture("sgmcmc-lab.png", caption, colours.surface, colours.text)


class ExportMenu(Menu):
    """The menu of the page of laws."""

    runner: Runner

    def files(self) -> dict[str, tuple[str, Callable[[], Any]]]:
        return {
            "Experiment (JSON)": ("data_object", self._json),
            "Experiment (Python)": ("code", self._script),
            "Draws (NetCDF)": ("save", lambda: self._draws(".nc")),
            "Draws (CSV)": ("table_chart", lambda: self._draws(".csv")),
        }

    def caption(self) -> str:
        experiment = self.runner.experiment()
        title, lanes = experiment.make_target().title, ", ".join(self.state.lane_titles())
        return f"{title} · {lanes} · seed {experiment.seed} · step {experiment.n_steps:,}"

    async def _json(self) -> None:
        await self.runner.bus.send_file("experiment.json", saved(self.runner.experiment()).to_json().encode())

    async def _script(self) -> None:
        await self.runner.bus.send_file("experiment.py", script(saved(self.runner.experiment())).encode())

    async def _draws(self, suffix: str) -> None:
        experiment = saved(self.runner.experiment())
        if experiment.n_steps * experiment.n_chains * len(experiment.lanes) > MAX_STEPS:
            self.notify(
                "error",
                f"This run has {experiment.n_steps:,} steps of {experiment.n_chains:,} chains, too many to make again here. "
                "Save the experiment as JSON and run: python -m samplers run experiment.json --out draws.nc",
            )
            return
        self.notify("info", f"Making the draws of {experiment.n_steps:,} steps again, for a file.")
        name, content = await asyncio.get_running_loop().run_in_executor(None, draws, experiment, suffix)
        await self.runner.bus.send_file(name, content)

"""Export from the page of a model: the link, the picture, the experiment as JSON, the curves as CSV."""

import io
from collections.abc import Callable
from typing import Any

from app.export import Menu
from app.study.runner import StudyRunner
from samplers import Experiment
from samplers.models.run import write_curves


class StudyExport(Menu):
    """The menu of the page of a model."""

    runner: StudyRunner
    holds = "It holds the whole experiment, seed included; but no file of your own."

    def files(self) -> dict[str, tuple[str, Callable[[], Any]]]:
        return {"Experiment (JSON)": ("data_object", self._json), "Curves (CSV)": ("table_chart", self._curves)}

    def caption(self) -> str:
        experiment, methods = self.state.experiment, ", ".join(self.state.lane_titles())
        model = self.runner.model
        return f"{model.title if model else experiment.target.key} · {methods} · seed {experiment.seed}"

    async def _json(self) -> None:
        experiment = Experiment.from_dict(self.runner.experiment().to_dict())
        await self.runner.bus.send_file("experiment.json", experiment.to_json().encode())

    async def _curves(self) -> None:
        if self.runner.model is None:
            self.notify("warning", "The data are not loaded yet.")
            return
        text = io.StringIO(newline="")
        write_curves(text, self.state.lane_titles(), [record.run for record in self.runner.records])
        await self.runner.bus.send_file("curves.csv", text.getvalue().encode())

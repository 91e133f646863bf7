"""Export of a study: the link, the picture, the study as JSON, the curves as CSV."""

import io
from collections.abc import Callable
from typing import Any

from app.export import Menu
from app.study.runner import StudyRunner
from samplers.models.study import Study, write_curves


class StudyExport(Menu):
    """The menu of the page of a study."""

    runner: StudyRunner
    holds = "It holds the whole study, seed included; but no file of your own."

    def files(self) -> dict[str, tuple[str, Callable[[], Any]]]:
        return {"Study (JSON)": ("data_object", self._json), "Curves (CSV)": ("table_chart", self._curves)}

    def caption(self) -> str:
        study, methods = self.state.study, ", ".join(self.state.method_titles())
        model = self.runner.model
        return f"{model.title if model else study.model.key} · {methods} · seed {study.seed}"

    async def _json(self) -> None:
        study = Study.from_dict(self.runner.study().to_dict())
        await self.runner.bus.send_file("study.json", study.to_json().encode())

    async def _curves(self) -> None:
        if self.runner.model is None:
            self.notify("warning", "The data are not loaded yet.")
            return
        text = io.StringIO(newline="")
        runs = [record.runs for record in self.runner.records]
        write_curves(text, self.runner.study(), self.state.method_titles(), runs)
        await self.runner.bus.send_file("curves.csv", text.getvalue().encode())

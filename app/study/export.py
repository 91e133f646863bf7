"""Export of a study: the link, the picture, the study as JSON, the curves as CSV."""

import csv
import io
from collections.abc import Callable, Sequence
from typing import Any

from app.export import Menu
from app.study.runner import MethodRecord, StudyRunner


def curves(titles: Sequence[str], records: Sequence[MethodRecord], seed: int, data_name: str, score_name: str) -> bytes:
    """Every score of every run, a row each."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["method", "seed", "step", f"{data_name} seen", "seconds", score_name])
    for title, record in zip(titles, records, strict=True):
        for extra, run in enumerate(record.runs):
            writer.writerows([title, (seed + extra) % 2**32, *score] for score in run.scores)
    return text.getvalue().encode()


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
        await self.runner.bus.send_file("study.json", self.state.study.to_json().encode())

    async def _curves(self) -> None:
        model = self.runner.model
        if model is None:
            self.notify("warning", "The data are not loaded yet.")
            return
        state = self.state
        content = curves(
            state.method_titles(), self.runner.records, state.study.seed, model.data_name, model.score_name
        )
        await self.runner.bus.send_file("curves.csv", content)

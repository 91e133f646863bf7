"""Documents by topic: the topics of a few documents."""

from typing import Any

import numpy as np

from sgmcmc_lab.app.views.base import MAX_NAMED, Array, Data, Frame, View
from sgmcmc_lab.app.views.models.marks import group_colour, shortened, text_of
from sgmcmc_lab.app.views.theme import plot

SHOWN = 8
"""Documents in the picture."""
NUMBERED = 0.06
"""A part of a bar that is this wide has its topic's number in it."""


class Documents(View):
    """The first documents that are learned from, as bars of their topics."""

    key = "documents"
    title = "Documents by topic"
    hint = "a bar's parts are the document's topics"
    requires = "topics"

    def build(self) -> Any:
        colours, model = self.scene.colours, self.scene.target
        labelled = model.training.labels is not None
        # The caption takes the room of one.
        self._n = min(SHOWN - labelled, model.training.n_documents)
        self._proportions: dict[int, Array] = {}
        p = plot(colours, "", "", (0, 1), (self._n, 0))
        p.axis.visible = p.grid.visible = False
        p.min_border_left = p.min_border_right = p.min_border_bottom = 6
        titles = [shortened(model.training.titles[d], 54) for d in range(self._n)]
        p.text(
            [0.0] * self._n,
            [d + 0.55 for d in range(self._n)],
            text=titles,
            text_font_size="12px",
            text_color=colours.text,
            text_baseline="bottom",
        )
        parts = self.feed("parts", "left", "right", "top", "bottom", "topic")
        p.quad(
            "left",
            "right",
            "top",
            "bottom",
            source=parts,
            fill_color=group_colour("topic"),
            line_color=colours.surface,
            line_width=1,
        )
        numbers = self.feed("numbers", "x", "y", "topic")
        p.text(
            "x",
            "y",
            text=text_of("topic", [str(k + 1) for k in range(model.n_topics)]),
            source=numbers,
            text_font_size="11px",
            text_color="#111827",
            text_align="center",
            text_baseline="middle",
        )
        self._labels = np.unique(model.training.labels, return_inverse=True)[1] if labelled else None
        if labelled:
            self._caption = self.caption_above(p, 1)
        return p

    def compute(self, lanes: Frame) -> Data:
        seen = lanes.snapshot()
        for d, proportions in zip(seen["documents"], seen["proportions"], strict=True):
            if d < self._n:
                self._proportions[int(d)] = proportions
        parts, numbers = [np.zeros((0, 5))], [np.zeros((0, 3))]
        for d, proportions in self._proportions.items():
            # The largest topics first, as far as they can be seen.
            order = np.argsort(-proportions, kind="stable")
            order = order[proportions[order] > 0.005]
            right = np.cumsum(proportions[order])
            left = right - proportions[order]
            parts.append(
                np.column_stack([left, right, np.full(len(order), d + 0.56), np.full(len(order), d + 0.96), order])
            )
            wide = proportions[order] > NUMBERED
            numbers.append(np.column_stack([(left + right)[wide] / 2, np.full(wide.sum(), d + 0.77), order[wide]]))
        return {"parts": tuple(np.concatenate(parts).T), "numbers": tuple(np.concatenate(numbers).T)}

    def captions(self, lanes: Frame) -> dict[str, str]:
        """How much the documents' topics say of their labels."""
        if self._labels is None:
            return {}
        # It is slow to import, and captions are made in a worker thread.
        from sklearn.metrics import normalized_mutual_info_score

        found = normalized_mutual_info_score(self._labels, lanes.snapshot()["document_topics"])
        return {self._caption.id: f"commonest topic and label of all documents: NMI {found:.2f}"}

    def words(self, lanes: Frame) -> str:
        """The largest topic of the first documents."""
        return "; ".join(
            f"{self.scene.target.training.titles[d]}: topic {np.argmax(shares) + 1}, {shares.max():.0%}"
            for d, shares in list(self._proportions.items())[:MAX_NAMED]
        )

"""The topics as their top words, which move as the topics do, and the coherence of each."""

from typing import Any, ClassVar

import numpy as np

from sgmcmc_lab.app.views.base import MAX_NAMED, Array, Data, Frame, View
from sgmcmc_lab.app.views.models.marks import NPMI, group_colour, shortened, text_of
from sgmcmc_lab.app.views.theme import LARGE, plot
from sgmcmc_lab.samplers.models import Snapshot

COLUMNS, ROWS = 3, 4
SHOWN = COLUMNS * ROWS
"""Topics in the picture: those with the largest share of the words."""
WORDS = 5
"""Words of each."""
GLIDE = 0.05
"""A word goes most of its way to another line in so many seconds."""
SMOOTH = 0.1
"""The part that a frame has in a word's probability: two words that are as likely would change places all the time."""
OVERTAKES = 1.1
"""A word goes above another when it is so much more likely; words that are about as likely stay where they are."""
LARGER = 1.3
"""A topic takes another one's place when it is so much larger."""
HEAD, NUMBERS = "10.5px", "10px"
"""The type of a topic's name and of its numbers: on a telephone a column has 110 pixels for all three."""
PERCENTS = [f"{k / 10:.{int(k < 100)}f} %" for k in range(1001)]
"""The shares as texts, by thousandths. From 10 % on there is no room for a decimal."""
PERCENT_WIDTH = 33
"""The room of ``4.5 %`` in pixels, in a wide font; the coherence stands to the left of it."""
LEVEL = "\u200a"
"""A hair space at the end of a text of digits: without it Bokeh puts the text below the others on its line."""
HUNDREDTHS = [f"{k / 100:.2f}{LEVEL}".replace("0.", ".").replace("-", "−") for k in range(-100, 101)]
"""The values of NPMI as texts, without the leading 0, for which there is no room."""


class TopWords(View):
    """The largest groups of words, such as topics; each word's bar is its weight in the group."""

    title = "Topics"
    tall = True
    group: ClassVar[str] = "topic"
    """The noun for an item, in the singular."""
    shares: ClassVar[str] = "topic_shares"
    """Their sizes, in the snapshots."""

    def n_groups(self) -> int:
        """How many there may be."""
        return self.scene.target.n_topics

    def build(self) -> Any:
        scene, colours = self.scene, self.scene.colours
        n = min(self.n_groups(), SHOWN)
        self._rows = -(-n // COLUMNS)
        p = plot(colours, "", "", (0, COLUMNS), (self._rows, 0))
        p.axis.visible = p.grid.visible = False
        p.min_border_left = p.min_border_right = p.min_border_bottom = 4
        bars = self.feed("bars", "left", "right", "top", "bottom", "topic", "word")
        p.quad(
            "left",
            "right",
            "top",
            "bottom",
            source=bars,
            fill_color=group_colour("topic"),
            fill_alpha=0.4,
            line_color=None,
        )
        p.text(
            "left",
            "bottom",
            text=text_of("word", [shortened(word, 17) for word in scene.target.vocabulary]),
            source=bars,
            x_offset=3,
            text_font_size="13px",
            text_color=colours.text,
            text_baseline="bottom",
        )
        # Large type leaves no room for the noun.
        noun = "" if scene.large else f"{self.group} "
        heads = self.feed("heads", "x", "y", "topic", "right", "percent")
        p.text(
            "x",
            "y",
            text=text_of("topic", [f"{noun}{k + 1}{LEVEL}" for k in range(self.n_groups())]),
            source=heads,
            text_font_size=HEAD,
            text_font_style="bold",
            text_color=colours.faint,
            text_baseline="bottom",
        )
        p.text(
            "right",
            "y",
            text=text_of("percent", PERCENTS),
            source=heads,
            text_font_size=NUMBERS,
            text_color=colours.faint,
            text_baseline="bottom",
            text_align="right",
        )
        self._slots: list[int] = []
        self._places: list[dict[int, float]] = [{} for _ in range(n)]
        self._means: list[dict[int, float]] = [{} for _ in range(n)]
        return p

    def compute(self, lanes: Frame) -> Data:
        seen = lanes.snapshot()
        words, probabilities, shares = seen["top_words"], seen["top_probabilities"], seen[self.shares]
        self._choose(shares)
        line = 1 / (WORDS + 1.4)
        glide = 1 - np.exp(-lanes.seconds / GLIDE)
        bars: list[tuple[float, ...]] = []
        heads = []
        for slot, k in enumerate(self._slots):
            row, column = divmod(slot, COLUMNS)
            left = column + 0.03
            heads.append((left, row + line, k, column + 0.95, round(1000 * shares[k])))
            means = self._means[slot] = self._smooth(self._means[slot], words[k], probabilities[k])
            places, moved = self._places[slot], {}
            ranked = in_lines(means, places if lanes.moving else {})[:WORDS]
            for rank, word in enumerate(ranked):
                # A word that is new comes up from below.
                at = places.get(word, WORDS - 0.5) if places and lanes.moving else float(rank)
                at += glide * (rank - at)
                moved[word] = at
                top = row + (1.05 + at) * line
                width = 0.92 * means[word] / max(*means.values(), 1e-300)
                bars.append((left, left + width, top, top + 0.92 * line, k, word))
            self._places[slot] = moved
        return {"bars": tuple(np.array(bars, dtype=float).T), "heads": tuple(np.array(heads, dtype=float).T)}

    def words(self, lanes: Frame) -> str:
        """The topics on the screen: their numbers, and their first words."""
        seen, names = lanes.snapshot(), self.scene.target.vocabulary
        return "; ".join(
            f"topic {k + 1}, {self.measures(seen, k)}: {', '.join(names[int(w)] for w in seen['top_words'][k][:5])}"
            for k in self._slots[:MAX_NAMED]
        )

    def measures(self, seen: Snapshot, k: int) -> str:
        """The numbers of a topic, in words."""
        return f"{seen['topic_shares'][k]:.1%}"

    def _smooth(self, means: dict[int, float], words: Array, probabilities: Array) -> dict[int, float]:
        """The running means of the words that are among the top ones now."""
        now = {int(word): float(probability) for word, probability in zip(words, probabilities, strict=True)}
        return {word: means.get(word, p) + SMOOTH * (p - means.get(word, p)) for word, p in now.items()}

    def _choose(self, shares: Array) -> None:
        """The topics that are shown. One keeps its place until another is clearly larger."""
        n = len(self._places)
        order = [int(k) for k in np.argsort(-shares, kind="stable")]
        if not self._slots:
            self._slots = order[:n]
        smallest = min(range(n), key=lambda slot: shares[self._slots[slot]])
        for k in order:
            if k not in self._slots:
                if shares[k] > LARGER * shares[self._slots[smallest]]:
                    self._slots[smallest], self._places[smallest], self._means[smallest] = k, {}, {}
                break


class Words(TopWords):
    """The largest topics, each with its coherence; a word's bar is its probability in the topic."""

    key = "words"
    hint = "with NPMI and share of words; bars: probabilities"
    help = NPMI
    requires = "topics"

    def build(self) -> Any:
        p = super().build()
        coherences = self.feed("coherences", "right", "y", "npmi")
        p.text(
            "right",
            "y",
            text=text_of("npmi", HUNDREDTHS),
            source=coherences,
            x_offset=-PERCENT_WIDTH * (LARGE if self.scene.large else 1),
            text_font_size=NUMBERS,
            text_color=self.scene.colours.faint,
            text_baseline="bottom",
            text_align="right",
        )
        return p

    def compute(self, lanes: Frame) -> Data:
        out = super().compute(lanes)
        _, y, topics, right, _ = out["heads"]
        npmi = lanes.snapshot()["npmi"][topics.astype(int)]
        return {**out, "coherences": (right, y, np.round(100 * (1 + npmi)))}

    def measures(self, seen: Snapshot, k: int) -> str:
        return f"{super().measures(seen, k)}, NPMI {seen['npmi'][k]:.2f}"


def in_lines(means: dict[int, float], places: dict[int, float]) -> list[int]:
    """The words, the most likely first; those that have a place already change it only where the order is clear."""
    order = sorted(means, key=lambda word: (places.get(word, np.inf), -means[word]))
    # Sorting by exchange: only neighbours that are clearly in the wrong order are exchanged.
    for end in range(len(order) - 1, 0, -1):
        for i in range(end):
            if means[order[i + 1]] > OVERTAKES * means[order[i]]:
                order[i], order[i + 1] = order[i + 1], order[i]
    return order

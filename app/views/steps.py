"""A step in its parts, as arrows in a picture of the state space, and in words.

The rows of a feed that is played are pieces of paths: columns in pairs x0, x1 are their ends, ``head`` is the size of
the arrow's head, 0 inside a path, ``kind`` the number of the part's name, which stands to the left of the head where
``left`` is 1, and ``begin`` and ``end`` are seconds. The page itself draws what is there at a time.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from bokeh.models import Arrow, ColumnDataSource, LinearColorMapper, VeeHead

from sgmcmc_lab.app.views.base import Array, Feed, Playing, View
from sgmcmc_lab.app.views.theme import Theme
from sgmcmc_lab.samplers.step_terms import ChainStep, Part

HEAD = 9
"""The size of an arrow's head, in pixels."""
PIECES = 60
"""A path has at most so many pieces; of a longer one points are left out."""
SMALL, SEEN = 0.04, 0.12
"""Where a step is shorter than the first share of the picture, its arrows are made longer than the second."""
MARGIN = 0.25
"""Nearer to an end of the picture than this share of it, there is no room for a name on that side."""
ROUNDING = 1e-12
"""A part that moves a chain by no more than this share of where it is has no arrow: it is the rounding of numbers."""
NEW = ("new momentum", "new velocity")
"""Parts that draw the momentum at every step."""
AFRESH = (*NEW, "redraw")
"""Parts after which what the momentum was before does not matter: their arrow begins at the chain."""
ENDS = ("0", "1")

Place = Callable[[Array], Array]
"""Where θ (n, dim) is in a picture, (n, its coordinates); of a picture of momenta, where (θ, r) (n, 2 dim) is."""


def colours_of(names: tuple[str, ...], theme: Theme) -> list[str]:
    """The colour of each part: the gradient as −∇U is drawn, noise, and what moves the chain as the chain."""
    found = {"gradient": theme.exact, "mean": theme.exact, "εΓ": theme.lanes[3], "Γ": theme.lanes[3]}
    noise = ("noise", "Poisson", "gamma", "new", "proposal", "length", "redraw")
    return [
        found.get(name)
        or (
            theme.lanes[1]
            if name == "gradient noise"
            else theme.lanes[2]
            if any(word in name for word in noise)
            else theme.exact
            if name == "−εD∇H"
            else theme.faint
            if "friction" in name or name in ("accept", "reflection", "normalise")
            else theme.lanes[0]
        )
        for name in names
    ]


def add_arrows(view: View, figure: Any, letters: str = "xy") -> ColumnDataSource:
    """The arrows of a step, with the name of each at its end, and the feed ``parts`` that plays them."""
    names = view.scene.parts
    columns = (*(f"{letter}{end}" for letter in letters for end in ENDS), "head", "kind", "left", "begin", "end")
    source = ColumnDataSource({column: np.zeros(0) for column in (*columns, "after", "before")})
    view.feeds["parts"] = Feed(source, columns, "play", names=names)
    if letters == "xy":
        draw_arrows(view, figure, source)
    return source


def draw_arrows(view: View, figure: Any, source: ColumnDataSource) -> None:
    """The glyphs of arrows whose ends in the figure are x0, y0 and x1, y1."""
    names, colours = view.scene.parts or ("",), view.scene.colours
    palette = colours_of(names, colours)
    mapper = LinearColorMapper(palette=palette, low=-0.5, high=len(palette) - 0.5)
    colour: Any = {"field": "kind", "transform": mapper}
    for width, shade in ((6, colours.surface), (3, colour)):
        head = VeeHead(size={"field": "head"}, fill_color=shade, line_color=shade)
        figure.add_layout(
            Arrow(
                end=head,
                source=source,
                x_start={"field": "x0"},
                y_start={"field": "y0"},
                x_end={"field": "x1"},
                y_end={"field": "y1"},
                line_color=shade,
                line_width=width,
                line_cap="round",
                level="annotation",
            )
        )
    for column, align in (("after", "left"), ("before", "right")):
        figure.text(
            "x1",
            "y1",
            text=column,
            source=source,
            text_color=colour,
            text_font_size="13px",
            text_font_style="bold",
            text_align=align,
            y_offset=-6,
            level="annotation",
        )


def rows(
    playing: Playing | None,
    names: tuple[str, ...],
    place: Place,
    scale: float = 1.0,
    heights: Sequence[float] = (),
    width: int = 2,
    ends: tuple[float, float] = (-1.0, 1.0),
    of_phase: bool = False,
) -> tuple[Array, ...]:
    """The rows of the parts that are shown, in a picture of ``width`` coordinates; none without a step.

    Arrows are longer by ``scale`` than the step is, seen from where it begins. In a picture of one coordinate, each
    part has one of the heights. A name stands where its arrow points to, but not near the ends of the first
    coordinate. ``of_phase`` is a picture of θ and r.
    """
    found: list[Array] = []
    if playing is not None:
        origin = place(beginning(playing, of_phase))[0]
        for level, (path, part, (begin, end)) in enumerate(_paths(playing, place if of_phase else None)):
            places = origin + scale * (place(path) - origin)
            if len(heights):
                places = np.column_stack([places[:, 0], np.full(len(places), heights[min(level, len(heights) - 1)])])
            n = len(places) - 1
            share = np.linspace(begin, end, n + 1)
            head = np.where(np.arange(n) == n - 1, HEAD, 0.0)
            pairs = [x for coordinate in places.T for x in (coordinate[:-1], coordinate[1:])]
            at = (places[1:, 0] - ends[0]) / (ends[1] - ends[0])
            left = (at > 1 - MARGIN) | ((at > MARGIN) & (places[-1, 0] < places[0, 0]))
            of_part = [np.full(n, names.index(part.name)), left]
            made = np.array([*pairs, head, *of_part, share[:-1], share[1:]], dtype=float)
            found.append(made[:, np.isfinite(made).all(axis=0)])
    return tuple(np.hstack(found)) if found else (np.zeros(0),) * (2 * width + 5)


def beginning(playing: Playing, of_phase: bool = False) -> Array:
    """Where the step begins, θ (1, dim) or (θ, r) (1, 2 dim): a momentum that is drawn afresh is 0 before."""
    start, dim = playing.step.start[None], playing.step.dim
    if not of_phase:
        return start[:, :dim]
    anew = any(part.name in NEW for part in playing.step.parts[:1])
    return _rested(start[:, : 2 * dim], dim) if anew else start[:, : 2 * dim]


def _rested(z: Array, dim: int) -> Array:
    return np.hstack([z[:, :dim], np.zeros_like(z[:, dim:])])


def longer(playing: Playing | None, place: Place, spans: Array, of_phase: bool = False) -> float:
    """1, or how many times as long arrows have to be for a small step to be seen in a picture of these spans."""
    if playing is None:
        return 1.0
    whole = playing._replace(windows=((0.0, 0.0),) * len(playing.step.parts))
    origin = place(beginning(playing, of_phase))[0]
    farthest = max(
        (
            float(np.nanmax(np.abs(place(path) - origin) / spans, initial=0.0))
            for path, _, _ in _paths(whole, place if of_phase else None)
        ),
        default=0.0,
    )
    if not 0 < farthest < SMALL:
        return 1.0
    power = 10.0 ** np.floor(np.log10(SEEN / farthest))
    return float(next(m * power for m in (10, 5, 2, 1) if m * power <= SEEN / farthest))


def _paths(playing: Playing, phase: Place | None = None) -> Iterator[tuple[Array, Part, tuple[float, float]]]:
    """The path of each part that is shown, as θ (points, dim): a momentum's as where it would take the chain.

    In a phase plane, where ``phase`` places them, it is (θ, r) (points, 2 dim), of what is seen to move there.
    """
    dim = playing.step.dim
    for part, window in zip(playing.step.parts, playing.windows, strict=False):
        theta, r = part.path[:, :dim], part.path[:, dim : 2 * dim]
        if phase is not None:
            path = part.path[:, : 2 * dim]
            if part.name in NEW:
                path = np.concatenate([_rested(path[:1], dim), path[-1:]])
            if not _moves(phase(path)):
                continue
        elif _moves(theta):
            path = theta
        elif playing.step.velocity and _moves(r):
            path = theta + playing.reach * r
            if part.name in AFRESH:
                path = np.stack([theta[0], path[-1]])
        else:
            continue
        yield path[np.unique(np.linspace(0, len(path) - 1, PIECES + 1).round().astype(int))], part, window


def _moves(path: Array) -> bool:
    """Whether it leads anywhere, beyond rounding."""
    return bool((np.ptp(path, axis=0) > ROUNDING * np.abs(path).max(axis=0)).any())


# --- in words -------------------------------------------------------------------------------------------------


OF_ENERGIES = {"p": "p_J", "weight": "w"}
"""The symbols of the probability of a bin of energies, and of the weight of a draw."""


def numbers_of(part: Part, step: ChainStep, coordinate: int) -> str:
    """The effect of a part in numbers: its move, of few coordinates all and of many one, and what it says besides."""
    said, dim = [], step.dim
    if not part.aside:
        move = part.end - part.start
        blocks = {"θ": move[:dim], "ξ": move[len(move) - step.thermostats :]}
        if step.velocity:
            blocks["r"] = move[dim : 2 * dim]
        said = [f"{symbol} {_signed(block, coordinate)}" for symbol, block in blocks.items() if block.any()]
        said = said if _moves(part.path) else ["0, no arrow"]
        if part.name in AFRESH:
            said = [f"r {_plain(part.end[dim : 2 * dim], coordinate)}"]
    numbers = part.numbers
    if "u" in numbers:
        verdict = "accepted" if numbers["accepted"] else "refused"
        said = [f"probability {numbers['probability']:.3g}, coin {numbers['u']:.3g}: {verdict}"]
    else:
        words = {
            "gradient": "∇Ũ" if part.name == "gradient noise" else "∇U",
            "K": "K",
            "gamma": "G",
            "probability": "P(+)",
            "z": "z",
            "step_size": "ε",
            **OF_ENERGIES,
        }
        said += [f"{words[name]} {_plain(value, coordinate)}" for name, value in numbers.items() if name in words]
    return ", ".join(said)


def _shown(values: Array, coordinate: int) -> Array:
    values = np.atleast_1d(values)
    return values if len(values) <= 3 else values[coordinate : coordinate + 1]


def _signed(values: Array, coordinate: int) -> str:
    return (
        "("
        + ", ".join(f"{x:+.3g}" if np.isfinite(x) else "∞" for x in _shown(values, coordinate)).replace("-", "−")
        + ")"
    )


def _plain(values: Array, coordinate: int) -> str:
    return (
        "("
        + ", ".join(f"{x:.3g}" if np.isfinite(x) else "∞" for x in _shown(values, coordinate)).replace("-", "−")
        + ")"
    )


def under(part: Part, dim: int, coordinate: int) -> str:
    """A part's move in a formula: of θ, or else of what it moves besides; of many coordinates one. Where a part
    learns the p of an energy, or weights a draw, it is this number.
    """
    for name in OF_ENERGIES.keys() & part.numbers.keys():
        return _plain(part.numbers[name], coordinate)
    move = part.end - part.start
    block = move[:dim] if move[:dim].any() else move[dim : 2 * dim]
    if part.aside or not block.any():
        return ""
    text = _plain(part.end[dim : 2 * dim], coordinate) if part.name in AFRESH else _signed(block, coordinate)
    return text.replace("−", "-").replace("∞", r"\infty")


def lit_equation(update: str, terms: Mapping[str, str], parts: Sequence[Part], below: Sequence[str]) -> str:
    """The update with each part's term of the class ``part-k``, which the page lights while the part is drawn.

    A part that is made again lights the next place of its term. ``below`` are the numbers that stand below the terms.
    """
    seen: dict[str, int] = {}
    spans: dict[tuple[int, int], list[int]] = {}
    for k, part in enumerate(parts):
        term, turn = terms[part.name], seen.get(part.name, 0)
        if term not in update:
            # A term that is switched off.
            continue
        seen[part.name] = turn + 1
        at = update.find(term)
        while turn and (following := update.find(term, at + 1)) >= 0:
            at, turn = following, turn - 1
        spans.setdefault((at, at + len(term)), []).append(k)
    opens: dict[int, str] = {}
    closes: dict[int, str] = {}
    # If two begin together, the longer one is outside.
    for (first, last), which in sorted(spans.items(), key=lambda item: (item[0][0], -item[0][1])):
        classes = " ".join(f"part-{k}" for k in which)
        listed = [below[k] for k in which if below[k]]
        numbers = r"\substack{" + r" \\ ".join(listed) + "}" if len(listed) > 1 else "".join(listed)
        # A class is no operator, and would stand close to what is before it.
        space = r"\ " if update[first] == "-" else ""
        opens[first] = opens.get(first, "") + rf"{space}\underset{{{numbers}}}{{\class{{{classes}}}{{"
        closes[last] = closes.get(last, "") + "}}"
    return "".join(closes.get(i, "") + opens.get(i, "") + update[i : i + 1] for i in range(len(update) + 1))

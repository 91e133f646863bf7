"""A picture of the target that a live page shows before any script runs, and keeps where scripts are refused."""

from html import escape

import numpy as np

from sgmcmc_lab.app.views.scales import Scale
from sgmcmc_lab.samplers.diagnostics.ks import edges_and_cdf
from sgmcmc_lab.samplers.targets.base import Column, Target

CELLS = 48
"""Cells per side of the density in the plane."""
LEVELS = 8
"""Shades of the density."""
WIDTH, HEIGHT = 320, 200
"""The picture's size in the units of its SVG."""


def still(target: Target, coordinate: int, temperature: float = 1.0) -> str:
    """The density in the plane, or that of one coordinate, as SVG; the target's exact answers must be ready."""
    column = target.columns[coordinate]
    if target.planar and target.of_coordinates and target.dim == 2:
        drawn, names = _plane(target), " and ".join(column.name for column in target.columns)
    else:
        drawn, names = _line(column), column.name
    hot = "" if temperature == 1 else f" at temperature T = {temperature:g}"
    says = f"The exact density of {target.title}{hot} in {names}."
    return (
        f'<figure class="view"><figcaption>{escape(says)}</figcaption><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(says)}" preserveAspectRatio="none">{drawn}</svg></figure>'
    )


def _plane(target: Target) -> str:
    """Squares, darker where the density is larger."""
    scales = [Scale.of(column) for column in target.columns]
    middles = [np.linspace(*scale.range, 2 * CELLS + 1)[1::2] for scale in scales]
    x, y = (np.array([scale.back(at) for at in found]) for scale, found in zip(scales, middles, strict=True))
    with np.errstate(all="ignore"):
        logs = target.log_density(np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)).reshape(CELLS, CELLS)
        # The density with respect to positions on the axes.
        per_position = [np.log(at) if scale.log else np.zeros(CELLS) for at, scale in zip((x, y), scales, strict=True)]
        logs = logs + sum(np.meshgrid(*per_position))
    height = np.exp(np.nan_to_num(logs, nan=-np.inf) - logs[np.isfinite(logs)].max(initial=-700.0))
    shade = np.ceil(LEVELS * np.minimum(height, 1.0) - 0.05).astype(int)
    w, h = WIDTH / CELLS, HEIGHT / CELLS
    paths = []
    for level in range(1, LEVELS + 1):
        squares = "".join(
            f"M{i * w:.4g} {HEIGHT - (j + 1) * h:.4g}h{w:.4g}v{h:.4g}h-{w:.4g}z" for j, i in np.argwhere(shade == level)
        )
        paths.append(f'<path d="{squares}" opacity="{level / LEVELS:.3g}"/>' if squares else "")
    return f'<g fill="var(--accent)">{"".join(paths)}</g>'


def _line(column: Column) -> str:
    """The density with respect to positions on the axis, from the CDF at the edges of its bins."""
    scale = Scale.of(column)
    edges, cdf = edges_and_cdf(column)
    inside = np.isfinite(edges)
    at, below = np.asarray(scale.forward(edges[inside])), cdf[inside]
    density = np.diff(below) / np.maximum(np.diff(at), 1e-300)
    middle = 0.5 * (at[1:] + at[:-1])
    seen = (middle >= scale.range[0]) & (middle <= scale.range[1])
    if not seen.any() or not density[seen].max() > 0:
        return ""
    x = WIDTH * (middle[seen] - scale.range[0]) / (scale.range[1] - scale.range[0])
    y = HEIGHT * (1 - 0.95 * density[seen] / density[seen].max())
    points = "".join(f"L{a:.4g} {b:.4g}" for a, b in zip(x, y, strict=True))
    return f'<path d="M{x[0]:.4g} {HEIGHT}{points}L{x[-1]:.4g} {HEIGHT}z" fill="var(--accent)" opacity=".35"/>'

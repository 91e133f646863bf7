"""Frames of vectors in space on a globe: the points that they point to, and those of the first chain joined."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from sgmcmc_lab.app.views.base import Array, Data, Frame
from sgmcmc_lab.app.views.globe import ARROW, BEHIND, FRONT, SHOWN_CHAINS, Globe, Layer, columns
from sgmcmc_lab.app.views.marks import MARKERS
from sgmcmc_lab.app.views.steps import rows
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.manifolds import Stiefel


class Frames(Globe):
    """The Stiefel manifold of one or two vectors in space. The globe has the density of the first vector alone."""

    key = "frames"
    title = "Frames"
    hint = "one chain's vectors, joined; shade: the first's density"
    click = "click: start"

    @classmethod
    def fits(cls, experiment: Experiment) -> bool:
        return experiment.make_target().manifold in (Stiefel(3, 1), Stiefel(3, 2))

    def build(self) -> Any:
        self._vectors = self.scene.target.manifold.columns
        return super().build()

    def live_data(self) -> dict[str, Any]:
        return {"vectors": self._vectors}

    def live_tap(self) -> dict[str, Any] | None:
        return {**(super().live_tap() or {}), "kind": "frames", "vectors": self._vectors}

    def log_density(self, points: Array) -> Array:
        found = self.scene.target.log_vector_density(points)
        return np.full(points.shape[:-1], -np.log(4 * np.pi)) if found is None else found

    def layers(self, p: Any, i: int) -> list[Layer]:
        colours, alone = self.scene.colours, len(self.scene.lanes) == 1
        layers: list[Layer] = []
        shades = [colours.lanes[k if alone else i] for k in range(self._vectors)]
        for k, shade in enumerate(shades):
            # With several lanes the draws of different vectors would be indistinguishable.
            if alone or k == 0:
                dots = self.dots(p, 4, marker=MARKERS[i], fill_color=shade, line_color=None)
                layers.append((f"draws {k} {i}", (FRONT, BEHIND), dots))
        joined = partial(p.line, line_color=shades[0], line_width=2, line_alpha=0.7, line_join="bevel")
        layers.append((f"frames {i}", (1.0, 0.3), joined))
        for k, shade in enumerate(shades):
            # The second vector is hollow.
            inside = shade if k == 0 else colours.surface
            rim = colours.surface if k == 0 else shade
            dots = self.dots(p, 11, marker=MARKERS[i], fill_color=inside, line_color=rim, line_width=2 if k else 1)
            layers.append((f"heads {k} {i}", (1.0, 0.3), dots))
        return layers

    def start_at(self, point: Sequence[float], before: Array) -> Array | None:
        first = super().start_at(point, before)
        if first is None:
            return None
        frame = before.reshape(3, self._vectors).copy()
        frame[:, 0] = first
        if self._vectors == 2:
            # The component of the second one orthogonal to the first; any other vector where nothing is.
            across = [v - (v @ first) * first for v in (frame[:, 1], *np.eye(3))]
            second = next(v for v in across if np.linalg.norm(v) > 0.1)
            frame[:, 1] = second / np.linalg.norm(second)
        return frame.ravel()

    def compute(self, lanes: Frame) -> Data:
        playing = lanes.playing and lanes.playing._replace(reach=ARROW)
        out: Data = {"parts": rows(playing, self.scene.parts, lambda x: self._each(x)[..., 0], width=3)}
        chains = SHOWN_CHAINS if len(lanes) == 1 else 1
        for i, lane in enumerate(lanes):
            # Those of several chains are a tangle.
            heads = self._each(lane.run.position[:1])
            heads = heads[np.isfinite(heads).all(axis=(1, 2))]
            centre = np.zeros((len(heads), 3, 1))
            out[f"frames {i}"] = columns(np.concatenate([centre, heads, centre], axis=2).swapaxes(1, 2).reshape(-1, 3))
            fresh = self._each(lane.fresh[:, :chains].reshape(-1, 3 * self._vectors)) if len(lane.fresh) else None
            for k in range(self._vectors):
                out[f"heads {k} {i}"] = columns(heads[..., k])
                if fresh is not None and f"draws {k} {i}" in self.feeds:
                    out[f"draws {k} {i}"] = columns(fresh[..., k])
        return out

    def _each(self, theta: Array) -> Array:
        """The vectors of frames θ (n, 3 p), (n, 3, p)."""
        return theta.reshape(-1, 3, self._vectors)

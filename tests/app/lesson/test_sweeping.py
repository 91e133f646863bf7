"""The picture of a sweep and the table of its points, with linked brushing."""

import numpy as np
import pytest

from sgmcmc_lab.app.lesson.sweeping import SweepPicture
from sgmcmc_lab.app.views.theme import LIGHT
from sgmcmc_lab.lessons.figures import prepare
from sgmcmc_lab.lessons.headless import run_step
from tests.helpers.course import LESSONS


@pytest.fixture(scope="module")
def step():
    return LESSONS["step-size"].steps[1]


@pytest.fixture(scope="module")
def rows(step):
    prepare("bokeh")
    return run_step(step, quick=True).table.rows


def points(picture):
    """The places of all markers in the figure."""
    return [point for source in picture.sources[2::3] for point in zip(source.data["x"], source.data["y"], strict=True)]


@pytest.mark.slow
def test_a_row_of_the_table_is_a_point_of_the_figure(rows, step):
    """Fails where the two have sources of their own, so that no selection is shared, or where a new point is missing
    in one of them."""
    picture = SweepPicture(step, rows[:3], step.names, LIGHT, table=True)
    rings = picture.figure.renderers[-1]
    assert rings.data_source is picture.table.source
    for some in (rows[:3], rows):
        picture.show(some)
        data = picture.table.source.data
        np.testing.assert_allclose([*zip(data["x"], data["y"], strict=True)], points(picture))
        np.testing.assert_allclose([float(x) for x in data["value"]], data["y"], rtol=1e-3)
        assert [float(x) for x in data["at"]] == list(data["x"])
        assert len(data["lane"]) == len(some)
    assert {column.field for column in picture.table.columns} == {"lane", "at", "value"}
    # Only what is selected has a ring, and the axes are those of the figure without a table.
    assert rings.glyph.line_alpha == 0
    assert rings.selection_glyph.line_alpha == 1
    alone = SweepPicture(step, rows, step.names, LIGHT)
    assert alone.table is None
    for axis in ("xaxis", "yaxis"):
        both = [getattr(one.figure, axis)[0] for one in (picture, alone)]
        assert len({(type(one), one.axis_label) for one in both}) == 1

"""Contact sheets, without a browser: which page is looked at, for how long, and what is said where there is none."""

from sgmcmc_lab.app.server import contact
from sgmcmc_lab.lessons import cli
from sgmcmc_lab.lessons.sweep import axis_of
from tests.helpers.cases import for_each
from tests.helpers.course import LESSONS


def test_a_step_is_looked_at_after_its_answer_until_its_quick_run_is_over():
    for key in ("step-size", "topics"):
        lesson = LESSONS[key]
        step = lesson.steps[0]
        short = step.quick_spec
        assert contact.wanted(step) == short.burn_in + (
            max(lane.n_steps for lane in short.lanes) if short.of_model else short.n_steps
        )
        speed = -(-contact.wanted(step) // contact.FRAMES)
        assert contact.query(lesson, step) == f"?lesson={key}&step=1&answer={step.question.answer}&speed={speed}"


@for_each(
    ("readout", "steps"),
    [("step 12,345 · 3k steps/s", 12_345), ("paused at step 7", 7), ("burn-in 87 of 400", 87), ("starting", 0)],
)
def test_how_far_a_page_is(readout, steps):
    assert contact.how_far(readout) == steps


def test_without_a_browser_it_says_what_it_needs(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CHROMIUM", raising=False)
    assert cli.main(["langevin", "--contact-sheet", str(tmp_path / "sheets")]) == cli.BAD_INPUT
    assert "it needs one of chromium" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert cli.main(["--contact-sheet", str(tmp_path / "file" / "sheets")]) == cli.BAD_INPUT
    assert "it cannot be made" in capsys.readouterr().err
    assert cli.main(["nothing", "--contact-sheet", str(tmp_path)]) == cli.BAD_INPUT
    assert "there is no such lesson" in capsys.readouterr().err


def test_every_sweep_is_drawn_against_an_axis_of_its_own():
    """Fails where the page of a step cannot be opened, for its claims single out a value of the only axis."""
    swept = [step for lesson in LESSONS.values() for step in lesson.steps if step.sweep is not None]
    assert len(swept) > 5
    for step in swept:
        assert axis_of(step) in {axis.name for axis in step.sweep.axes}, step.title

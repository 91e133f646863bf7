"""A teacher in the lab, and students with live pages in her room."""

import re

import pytest

from sgmcmc_lab.app.room.network import addresses
from tests import browser
from tests.browser.classroom import PHONE, allowed, open_room, press, room_says
from tests.browser.lab import Lab, check_width, wait_until

SENT = """() => { const hash = new URLSearchParams(document.getElementById("live").contentWindow.location.hash.slice(1))
  return { ...Object.fromEntries(hash), step_size: Number(/step_size:([^;)]+)/.exec(hash.get("lane"))[1]) } }"""


class Student:
    """A page of a room."""

    def __init__(self, page, address):
        self.page = page
        self.requests = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(address)
        self.live = page.frame_locator("#live")
        self.until(lambda: self.steps() > 0, "the teacher's experiment moves")

    def until(self, condition, what):
        return wait_until(condition, lambda: f"{what}: {self.page.locator('body').inner_text()!r}")

    def steps(self):
        return int(self.live.locator("#steps").inner_text().replace(",", "") or 0)

    def settings(self):
        return self.page.evaluate(SENT)

    def button(self, name):
        return self.page.locator(".room").get_by_role("button", name=name)

    def says(self, *parts):
        text = self.page.locator(".room")
        self.until(lambda: all(part in text.inner_text() for part in parts), parts)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A server of several rooms: each test opens its own."""
    if not addresses():
        pytest.skip("this machine is in no network")
    port = browser.free_port()
    with browser.serve(tmp_path_factory.mktemp("served"), *allowed(port), port=port) as server:
        yield server


def test_students_have_live_pages_and_no_session(served, new_page, page_log):
    """They follow a slider without a restart, pause, change the sampler, answer, stop following, race and leave."""
    teacher = Lab(new_page(), served).open("?target=gaussian&lane=sgld&views=marginal,ks")
    code = open_room(teacher)
    a, b = (Student(new_page(), f"http://localhost:{served.port}/s/{code}") for _ in range(2))
    assert a.page.url.endswith(f"/room/{code}")
    room_says(teacher, "2 students")
    # Follow.
    before, first = a.steps(), a.settings()["step_size"]
    slider = teacher.page.get_by_role("slider", name=re.compile("Step size")).first
    slider.focus()
    slider.press("ArrowRight")

    def moved():
        found = re.search(r"step_size:([\d.e-]+)", teacher.field("lane"))
        return found and float(found[1]) != first and float(found[1])

    wanted = teacher.until(moved, "another step size")
    for student in (a, b):
        student.until(lambda s=student: s.settings()["step_size"] == wanted, "the step size")
    assert a.steps() >= before, "the run begins anew"
    a.until(lambda: "This page follows your teacher's" in a.page.locator("#said").inner_text(), "what to do first")
    teacher.button("Pause").first.click()
    for student in (a, b):
        student.until(lambda s=student: s.live.locator("#play").inner_text() == "Play", "a pause")
    # A reset.
    assert a.steps() > 0
    teacher.press("Reset")
    for student in (a, b):
        student.until(lambda s=student: s.steps() == 0, "step 0")
    # Ask, in a lesson.
    teacher.page.evaluate(
        "location.search = location.search.replace(/target=[^&]*/, 'lesson=langevin&step=2').replace(/&lane=[^&]*/, '')"
    )
    for student in (a, b):
        student.live.get_by_role("heading", name=re.compile("^2\\.")).wait_for()
    press(teacher, "Ask this question")
    a.button("By 4").click()
    room_says(teacher, "Reveal the answers (1)")
    assert not b.page.locator(".room .bar").count()
    assert teacher.button("Play").count()
    press(teacher, "Reveal the answers")
    a.says("✓ By √2", "By 4 (yours)")
    # The class has answered, and so the teacher's page plays.
    teacher.button("Play").first.click()
    teacher.button("Pause").first.wait_for()
    for size in (PHONE, browser.VIEWPORT):
        a.page.set_viewport_size(size)
        check_width(a.page)
    press(teacher, "Close the bars")
    for page in (teacher.page, a.page, b.page):
        page.locator(".room .bar").first.wait_for(state="detached")
    # A student who moves a control stops following; the controls that the step hides are then there, too.
    free = b.live.get_by_role("button", name="Try it yourself")
    free.click()
    b.live.locator("#seed").click()
    b.says("Follow the teacher")
    a.says("Stop following")
    # Race, with a sampler that the teacher does not show.
    press(teacher, "Race on this target")
    choice = a.live.get_by_role("combobox", name="Sampler").first
    choice.locator("option", has_text="HMC").first.wait_for(state="attached")
    choice.select_option(label=next(name for name in choice.locator("option").all_inner_texts() if "HMC" in name))
    a.says("Follow the teacher")
    a.button("Enter my sampler").click()
    a.says("HMC", "(yours)")
    b.button("Enter my sampler").click()
    b.says("(yours)", "KS distance", "Yours: ")
    # A row opens for whom it is clicked: for a student with the samplers of the race, for the teacher in another tab.
    led = teacher.url
    b.button(re.compile("^Open number 1")).click()
    others = b.live.get_by_role("combobox", name="Sampler").first.locator("option")
    b.until(lambda: b.settings().get("seed") == "1" and others.count() > 3, "the row's run, and other samplers")
    row = teacher.page.locator(".room").get_by_role("link", name=re.compile("^Open number 1"))
    assert row.get_attribute("target") == "_blank" and "target=gaussian" in row.get_attribute("href")
    assert teacher.url == led
    press(teacher, "Show the class number 1")
    teacher.until(lambda: teacher.field("n_chains") == "8" and not teacher.field("lesson"), "the row's run")
    # The result stays until the teacher goes on.
    press(teacher, "End the race")
    for student in (a, b):
        student.says("The race is over", "KS distance")
        assert student.button("Enter my sampler").count() == 0
    # A model of data is a recording.
    a.button("Follow the teacher").click()
    teacher.page.evaluate(
        "location.search = `?target=network&lane=network_gibbs&room=${new URLSearchParams(location.search).get('room')}`"
    )
    a.live.get_by_text("A recording of the first").wait_for()
    a.live.locator(".bk-Figure").first.wait_for()
    check_width(a.page)
    for student in (a, b):
        student.until(lambda s=student: not s.page.locator(".room .race").count(), "the table is gone")
    # Leave, and come back.
    b.button("Leave").click()
    b.until(lambda: "You have left" in b.page.locator("#said").inner_text(), "left")
    room_says(teacher, "1 student")
    b.page.get_by_role("link", name="Come back to the room").click()
    room_says(teacher, "2 students")
    b.says("Follow the teacher")
    assert not any("/app" in url for student in (a, b) for url in student.requests), "a session of the lab"
    assert page_log.errors == []


def test_a_lost_connection_is_made_again(served, new_page, page_log):
    """And who comes again is the same student."""
    teacher = Lab(new_page(), served).open("?target=gaussian&lane=sgld&views=marginal")
    code = open_room(teacher)
    page = new_page()
    page.add_init_script(
        "const Plain = WebSocket; window.sockets = []; window.WebSocket = class extends Plain { constructor(...all) { super(...all); sockets.push(this) } }"
    )
    student = Student(page, f"http://localhost:{served.port}/s/{code}")
    room_says(teacher, "1 student")
    page.evaluate("sockets.at(-1).close()")
    student.until(lambda: "is lost" in page.locator("#said").inner_text(), "a sentence")
    student.until(lambda: page.evaluate("sockets.length > 1 && sockets.at(-1).readyState === 1"), "a connection")
    student.until(lambda: "is lost" not in page.locator("#said").inner_text(), "the room again")
    teacher.button("Pause").first.click()
    student.until(lambda: student.live.locator("#play").inner_text() == "Play", "a pause")
    room_says(teacher, "1 student")
    page_log.errors.clear()


MESSAGES = """() => {
  const [said, frame] = [document.getElementById("said"), document.getElementById("live")]
  window.messages = []
  new MutationObserver(() => messages.push([said.textContent, frame.classList.contains("former")])).observe(document.body, { subtree: true, childList: true, attributes: true, attributeFilter: ["class"] })
}"""
"""Note each sentence of a student's page, and whether its frame is faded at that time."""


def test_the_page_before_fades_while_the_next_one_is_made(served, new_page, page_log):
    """And a sentence says why. Another step size takes no new page, and nothing fades."""
    teacher = Lab(new_page(), served).open("?target=gaussian&lane=sgld&views=marginal")
    student = Student(new_page(), f"http://localhost:{served.port}/s/{open_room(teacher)}")
    before = student.page.locator("#live").get_attribute("src")
    student.page.evaluate(MESSAGES)
    slider = teacher.page.get_by_role("slider", name=re.compile("Step size")).first
    first = student.settings()["step_size"]
    slider.focus()
    slider.press("ArrowRight")
    student.until(lambda: student.settings()["step_size"] != first, "another step size")
    assert not any(faded for _, faded in student.page.evaluate("messages"))
    teacher.choose("Target", "Banana")
    student.until(lambda: student.page.locator("#live").get_attribute("src") != before, "the next page")
    messages = student.page.evaluate("messages")
    assert any("is being made" in said and faded for said, faded in messages)
    assert not any("follows your teacher's" in said and faded for said, faded in messages)
    assert not student.page.locator("#live.former").count()
    assert page_log.errors == []


def test_the_bar_keeps_the_focus_when_its_content_is_renewed(served, new_page, page_log):
    """Where the button is gone, the bar has it."""
    teacher = Lab(new_page(), served).open("?lesson=langevin&step=2&answer=0&views=marginal")
    student = Student(new_page(), f"http://localhost:{served.port}/s/{open_room(teacher)}")
    focused = "document.activeElement.dataset.action ?? document.activeElement.className"
    student.button("Leave").focus()
    press(teacher, "Ask this question")
    student.button("By 4").wait_for()
    assert student.page.evaluate(focused) == "leave"
    student.button("By 4").focus()
    press(teacher, "Reveal the answers")
    student.says("✓ By √2")
    assert student.page.evaluate(focused) == "room"
    assert page_log.errors == []

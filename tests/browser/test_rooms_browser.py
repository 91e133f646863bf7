"""A teacher and two students in one room: Share, Follow, Ask and Race, and a server started again in between.

The students have opened the whole lab.
"""

from contextlib import ExitStack

import pytest

from sgmcmc_lab.app.room.network import addresses
from tests import browser
from tests.browser.classroom import PHONE, allowed, press, room_says
from tests.browser.lab import Lab, check_width, wait_until
from tests.helpers.hall import COOKIE, hall

STEP = "?lesson=langevin&step=2&views=marginal&theme=dark"
"""A student's page has the light theme."""


class House:
    """One process, whose rooms end with it."""

    outlives = False

    def __init__(self, folder, stack):
        self._folder, self._stack = folder, stack
        self.port = browser.free_port()
        self._options = allowed(self.port)

    def begin(self):
        """Start the server of the lab's pages."""
        self._running = ExitStack()
        folder = self._folder / f"{len(list(self._folder.iterdir()))}"
        folder.mkdir()
        self.server = self._running.enter_context(browser.serve(folder, *self._options, port=self.port))
        self._stack.callback(self._running.close)

    def end(self):
        """The server of the teacher's page ends."""
        self._running.close()

    def lead(self, page, number):
        """A student of that page belongs to the only process."""

    def check_processes(self):
        """There is one."""


class TwoProcesses(House):
    """Two of them behind nginx, with Redis; the teacher and one student are of the first, the other of the second."""

    outlives = True

    def __init__(self, folder, stack):
        self._folder = folder
        self.port = browser.free_port()
        self.server = stack.enter_context(hall(folder, *allowed(self.port), port=self.port))
        self._cookies = self.server.cookies()
        self._led = {}

    def begin(self):
        first = self.server.behind[0]
        if first not in self.server.processes:
            self.server.begin(first)

    def end(self):
        self.server.end(self.server.behind[0])

    def lead(self, page, number):
        port = self.server.behind[number]
        value = self._cookies[port]
        self._led[value] = port
        page.context.add_cookies([{"name": COOKIE, "value": value, "url": f"http://localhost:{self.port}"}])

    def check_processes(self):
        """The pages were of both processes, each of one."""
        pages = {
            (number, address)
            for address, number, _, uri in self.server.asked()
            if uri == "/app" and number in self._led
        }
        assert pages == {(value, f"127.0.0.1:{port}") for value, port in self._led.items()}
        assert len(pages) == 2


def check_access(lab):
    """Axe finds nothing, when the colours of what was just pressed have come to rest."""
    wait_until(lambda: not lab.axe(), lab.axe)


@pytest.mark.parametrize("kind", [House, TwoProcesses])
def test_two_students_and_a_teacher(kind, new_page, tmp_path, page_log):
    if not (own := addresses()):
        pytest.skip("this machine is in no network")
    with ExitStack() as stack:
        house = kind(tmp_path, stack)
        house.begin()
        first = new_page()
        house.lead(first, 0)
        teacher = Lab(first, house.server).open(STEP)
        teacher.page.set_viewport_size(PHONE)
        press(teacher, "Share")
        address = teacher.page.locator(".address")
        address.wait_for()
        assert address.inner_text().startswith(f"{own[0]}:{house.port}/s/")
        check_width(teacher.page)
        for seen in (teacher.page.locator(".code"), address):
            seen.click(trial=True)
        teacher.page.set_viewport_size(browser.VIEWPORT)
        check_access(teacher)
        press(teacher, "Open a room")
        teacher.until(lambda: teacher.field("room"), "a room in the link")
        teacher.until(lambda: teacher.field("room") in address.inner_text(), "the room's own address")
        code = teacher.field("room")
        students = []
        for process in range(2):
            page = new_page()
            house.lead(page, process)
            page.goto(f"http://localhost:{house.port}/app?room={code}")
            students.append(Lab(page, house.server))
            room_says(students[-1], "Stop following")
        a, b = students
        house.check_processes()
        teacher.page.keyboard.press("Escape")
        room_says(teacher, "2 students")
        # Ask: hidden until it is revealed.
        press(teacher, "Ask this question")
        for student, answer in ((a, "By 4"), (b, "By √2")):
            student.page.locator(".room").get_by_role("button", name=answer).click()
        room_says(teacher, "Reveal the answers (2)")
        assert not a.page.locator(".bar").count()
        press(teacher, "Ask again")
        room_says(teacher, "1 first", "0 now")
        a.page.locator(".room").get_by_role("button", name="By √2").click()
        press(teacher, "Reveal the answers (1)")
        room_says(a, "✓ By √2 (yours)", "1 first", "1 now")
        check_access(a)
        # Follow: to another step; one of them stops following.
        press(b, "Stop following")
        press(teacher, "Back")
        a.until(lambda: a.field("step") == "1", "the teacher's step")
        assert b.field("step") == "2"
        press(b, "Follow the teacher")
        b.until(lambda: b.field("step") == "1", "the teacher's step")
        wait_until(lambda: not any(lab.page.locator(".bar").count() for lab in (teacher, a, b)), "the bars gone")
        for lab in (teacher, a, b):
            lab.page.evaluate("window.before = true")
        if not house.outlives:
            race(teacher, a, b)
            press(a, "Follow the teacher")
            room_says(a, "Stop following")
            room_says(b, "Follow the teacher")
        assert page_log.errors == []
        # The pages come back by themselves when there is a server again.
        house.end()
        if house.outlives:
            # Those of a process that is there go on with the room.
            press(b, "Stop following")
        house.begin()
        teacher.server = house.server
        returned = (teacher, a) if house.outlives else (teacher, a, b)
        for lab in returned:
            lab.page.wait_for_function(f"!window.before && {browser.IDLE}")
        page_log.errors.clear()
        if house.outlives:
            assert b.page.evaluate("window.before")
            room_says(teacher, "2 students", "Close the room")
            room_says(a, "Stop following")
            room_says(b, "Follow the teacher")
            race(teacher, a, b)
            press(teacher, "Close the room")
            room_says(b, "This room is gone")
        else:
            for lab in (a, b):
                room_says(lab, "This room is gone")
            press(teacher, "Open the room again")
            room_says(teacher, "2 students", "Close the room")
            room_says(a, "Stop following")
            # A reload does not make a student follow again who has stopped.
            room_says(b, "Follow the teacher")
            assert teacher.field("room") == code
            press(teacher, "Next")
            a.until(lambda: a.field("step") == "2", "the teacher's step")
        for lab in (teacher, a, b):
            lab.page.close()


def race(teacher, a, b):
    press(teacher, "Race on this target")
    room_says(b, "the smallest KS distance leads")
    press(b, "Enter my sampler")
    room_says(b, "(yours)")
    room_says(a, "KS distance", "Open")
    check_access(b)
    b.page.set_viewport_size(PHONE)
    check_width(b.page)
    press(b, "Next")
    b.until(lambda: b.field("step") == "2", "a target of her own")
    press(b, "Enter my sampler")
    room_says(b, "allowed is the target of the race")
    # A target as a link writes it has no blank at which a line could end.
    assert b.page.locator(".said").evaluate("said => said.scrollWidth <= said.clientWidth")
    b.page.set_viewport_size(browser.VIEWPORT)
    press(teacher, "Rank by gradients")
    room_says(b, "the fewest gradients for one independent draw lead")
    a.page.get_by_role("button", name="Open number 1").click()
    wait_until(lambda: "seed=1" in a.url and a.field("n_chains") == "8", "the best, replayed")

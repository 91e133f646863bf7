"""A teacher and two students in one room: Share, Follow, Ask and Race, and the server started again in between."""

import re
import shutil
import subprocess
from contextlib import contextmanager

import pytest
from playwright.sync_api import Error

from app.room.network import addresses
from app.room.store import REDIS
from tests import browser
from tests.browser.lab import PATIENCE, Lab, check_width, wait_until

STEP = "?lesson=langevin&step=2&views=marginal&theme=dark"
"""What a student has of it is light."""
PHONE = {"width": 390, "height": 844}


@contextmanager
def redis(folder):
    """The address of a Redis server of its own; empty where the machine has none, and rooms end with the server."""
    command = shutil.which("redis-server")
    if command is None:
        yield ""
        return
    port = browser.free_port()
    process = subprocess.Popen(
        [command, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield f"redis://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


def press(lab, name):
    lab.button(re.compile(rf"^{re.escape(name)}")).first.click()


def room_says(lab, *parts):
    lab.until(lambda: all(part in text(lab) for part in parts), lambda: f"{parts} in {text(lab)!r}")


def check_access(lab):
    """Axe finds nothing, when the colours of what was just pressed have come to rest."""
    wait_until(lambda: not lab.axe(), lab.axe)


def text(lab):
    """What the room says; nothing while the page is loaded again."""
    try:
        return " ".join(lab.page.locator(".room").all_inner_texts())
    except Error:
        return ""


def test_two_students_and_a_teacher(new_page, tmp_path, page_log):
    if not (own := addresses()):
        pytest.skip("this machine is in no network")
    port = browser.free_port()
    allowed = [part for one in own for part in ("--allow-websocket-origin", f"{one}:{port}")]
    with redis(tmp_path) as store:

        def serve(name):
            folder = tmp_path / name
            folder.mkdir()
            return browser.serve(folder, *allowed, port=port, environment={REDIS: store})

        with serve("first") as server:
            teacher = Lab(new_page(), server).open(STEP)
            teacher.page.set_viewport_size(PHONE)
            press(teacher, "Share")
            address = teacher.page.locator(".address")
            address.wait_for()
            assert address.inner_text().startswith(f"{own[0]}:{port}/s/")
            check_width(teacher.page)
            number = teacher.page.get_by_role("textbox", name="Students")
            for seen in (teacher.page.locator(".code"), address, number):
                seen.click(trial=True)
            teacher.page.set_viewport_size(browser.VIEWPORT)
            check_access(teacher)
            press(teacher, "Open a room")
            teacher.until(lambda: teacher.field("room"), "a room in the link")
            teacher.until(lambda: teacher.field("room") in address.inner_text(), "the room's own address")
            code = teacher.field("room")
            # Their pages are made before they come, and are the ones that they get.
            number.fill("2")
            number.press("Enter")
            teacher.page.get_by_text("Ready: 2.").wait_for(timeout=1000 * PATIENCE)
            students = []
            for _ in range(2):
                page = new_page()
                page.goto(f"http://localhost:{port}/s/{code}")
                students.append(Lab(page, server))
                room_says(students[-1], "Following: let go")
            a, b = students
            teacher.page.get_by_text("Ready: 0.").wait_for(timeout=1000 * PATIENCE)
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
            # Follow: to another step; one of them lets go.
            press(b, "Following: let go")
            press(teacher, "Back")
            a.until(lambda: a.field("step") == "1", "the teacher's step")
            assert b.field("step") == "2"
            press(b, "Follow the teacher")
            b.until(lambda: b.field("step") == "1", "the teacher's step")
            wait_until(lambda: not any(lab.page.locator(".bar").count() for lab in (teacher, a, b)), "the bars gone")
            for lab in (teacher, a, b):
                lab.page.evaluate("window.before = true")
            assert page_log.errors == []
        # The pages come back by themselves when there is a server again.
        with serve("second") as server:
            teacher.server = server
            for lab in (teacher, a, b):
                lab.page.wait_for_function(f"!window.before && {browser.IDLE}", timeout=1000 * PATIENCE)
            page_log.errors.clear()
            if store:
                race(teacher, a, b)
            else:
                for lab in (teacher, a, b):
                    room_says(lab, "there is no such room any more")
            for lab in (teacher, a, b):
                lab.page.close()
    if not store:
        pytest.skip("no redis-server is installed: a room that outlives its server, and the race in it, were left out")


def race(teacher, a, b):
    room_says(teacher, "2 students", "Close the room")
    room_says(b, "Following: let go")
    press(teacher, "Race on this target")
    room_says(b, "the smallest KS distance leads")
    press(b, "Enter my sampler")
    room_says(b, "(yours)")
    room_says(a, "KS distance", "Open")
    check_access(b)
    a.page.get_by_role("button", name="Open number 1").click()
    wait_until(lambda: "seed=1" in a.url and a.field("n_chains") == "8", "the best, replayed")
    press(teacher, "Close the room")
    room_says(b, "This room is gone")

"""The common part of tests of rooms."""

import re

from playwright.sync_api import Error

from sgmcmc_lab.app.room.network import addresses
from tests.browser.lab import wait_until

PHONE = {"width": 390, "height": 844}


def allowed(port):
    return [part for one in addresses() for part in ("--allow-websocket-origin", f"{one}:{port}")]


def press(lab, name):
    lab.button(re.compile(rf"^{re.escape(name)}")).first.click()


def room_says(lab, *parts):
    lab.until(lambda: all(part in text(lab) for part in parts), lambda: f"{parts} in {text(lab)!r}")


def text(lab):
    """The text of the room; nothing while the page is loaded again."""
    try:
        return " ".join(lab.page.locator(".room").all_inner_texts())
    except Error:
        return ""


def open_room(lab):
    """Its code. The dialog takes the focus back, a moment after its button is gone; before, it hears no Escape."""
    press(lab, "Share")
    press(lab, "Open a room")
    lab.until(lambda: lab.field("room"), "a room in the link")
    assert not lab.page.get_by_role("textbox", name="Students").count()

    def closed():
        lab.page.keyboard.press("Escape")
        return not lab.page.locator(".address").is_visible()

    wait_until(closed, "the dialog closes")
    return lab.field("room")

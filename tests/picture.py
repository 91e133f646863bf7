"""The moving picture of the README: ``python -m tests.picture`` records the real page in a headless Chromium.

Two samplers of the recipe paper's quartic stand side by side: SGLD, whose step biases it, and HMC, which has the right
distribution. Frames are taken as the page draws them, and written as an animated WebP.
"""

import sys
import tempfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from tests import browser

FILE = browser.ROOT / "assets" / "lab.webp"
MOST = 1_500_000
"""Bytes of the file: a README loads at once."""
SIZE = {"width": 960, "height": 640}
QUERY = (
    "?target=quartic&lane=sgld(step_size:0.05)~full&lane=hmc~full&n_chains=4&seed=1&views=state,marginal,ks"
    "&axis=steps&speed=10&theme=light&play=0&hide=controls,equations,export,share,lessons,present,theme,workbench,pages,step,reset,new_seed,speed,axis,views,coordinate"
)
FRAMES, PAUSE = 36, 250
"""Pictures, and milliseconds between two of them, in the recording and in the file."""
LAST = 2500
"""Milliseconds that the last one stands."""
QUALITIES = (80, 65, 50, 35)


def record(url: str) -> list[Image.Image]:
    """Pictures of the page while the chains run."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser.find_chromium(), args=browser.arguments())
        page = chromium.new_page(viewport=SIZE)
        page.goto(url)
        page.wait_for_function(browser.IDLE, timeout=120_000)
        page.wait_for_timeout(3000)
        page.get_by_role("button", name="Play", exact=True).click()
        page.mouse.move(1, 1)
        taken = []
        for _ in range(FRAMES):
            taken.append(Image.open(BytesIO(page.screenshot())).convert("RGB"))
            page.wait_for_timeout(PAUSE)
        chromium.close()
    return taken


def animated(pictures: Sequence[Image.Image], quality: int) -> bytes:
    """The pictures as one WebP that begins again after its end."""
    out = BytesIO()
    times = [PAUSE] * (len(pictures) - 1) + [LAST]
    pictures[0].save(
        out, "WEBP", save_all=True, append_images=pictures[1:], duration=times, loop=0, quality=quality, method=6
    )
    return out.getvalue()


def main() -> int:
    """Record, and write the best quality that fits."""
    with tempfile.TemporaryDirectory() as folder, browser.serve(Path(folder)) as server:
        pictures = record(server.url + QUERY)
    for quality in QUALITIES:
        made = animated(pictures, quality)
        if len(made) <= MOST:
            FILE.write_bytes(made)
            print(f"{FILE.name}: {len(pictures)} frames of {SIZE['width']} × {SIZE['height']}, {len(made):,} bytes, quality {quality}")  # fmt: skip
            return 0
    print(f"no quality of {QUALITIES} fits {MOST:,} bytes", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())

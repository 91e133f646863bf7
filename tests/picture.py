"""The animation of the README: ``python -m tests.picture`` records a live page in a headless Chromium.

Two samplers of the recipe paper's quartic run side by side: SGLD, with a bias from its step size, and HMC, with the
right distribution. Frames are recorded as the page draws them, and written as an animated WebP.
"""

import sys
import tempfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from sgmcmc_lab.app.live_page import live_page
from sgmcmc_lab.samplers import Experiment
from tests import browser

FILE = browser.ROOT / "assets" / "live.webp"
MOST = 1_500_000
"""The largest size of the file in bytes, so that the README loads quickly."""
SIZE = {"width": 1120, "height": 600}
EXPERIMENT = {
    "target": "quartic",
    "lanes": [{"sampler": {"key": "sgld", "params": {"step_size": 0.05}}}, {"sampler": "hmc"}],
    "n_chains": 4,
    "seed": 1,
}
FRAGMENT = "#views=state,ks&speed=10"
FRAMES, PAUSE = 36, 250
"""The number of pictures, and the milliseconds between two of them, in the recording and in the file."""
LAST = 2500
"""Milliseconds of the last picture."""
QUALITIES = (80, 65, 50, 35)


def record(url: str) -> list[Image.Image]:
    """Pictures of the page while the chains run."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser.find_chromium(), args=browser.arguments())
        page = chromium.new_page(viewport=SIZE, reduced_motion="reduce")
        page.goto(url)
        page.locator("html[data-frames]").wait_for(state="attached")
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
    """The pictures as one WebP that repeats."""
    out = BytesIO()
    times = [PAUSE] * (len(pictures) - 1) + [LAST]
    pictures[0].save(
        out, "WEBP", save_all=True, append_images=pictures[1:], duration=times, loop=0, quality=quality, method=6
    )
    return out.getvalue()


def main() -> int:
    """Record, and write the best quality that fits."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "live.html")
        file.write_text(live_page(Experiment.from_dict(EXPERIMENT)), encoding="utf-8")
        pictures = record(file.as_uri() + FRAGMENT)
    for quality in QUALITIES:
        made = animated(pictures, quality)
        if len(made) <= MOST:
            FILE.write_bytes(made)
            print(
                f"{FILE.name}: {len(pictures)} frames of {SIZE['width']} × {SIZE['height']}, {len(made):,} bytes, quality {quality}"
            )
            return 0
    print(f"no quality of {QUALITIES} fits {MOST:,} bytes", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())

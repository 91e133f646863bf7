"""``python -m tests.sizes``: the size of every lesson as one live file, raw and compressed, beside the limits.

With names, these lessons alone; with ``--site FOLDER`` the size of the course in that folder, as ``sgmcmc-lab --site
FOLDER`` has made it. The command exits 1 where a size is above its limit.
"""

import argparse
import gzip
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from sgmcmc_lab.app.live_page import lesson_page
from sgmcmc_lab.lessons.lesson import Lesson
from sgmcmc_lab.lessons.library import load_all

MOST_BYTES, MOST_COMPRESSED = 2_200_000, 980_000
"""The limits of a file, and of the same file as a web server sends it."""


MOST_OF_SITE = 15_500_000
"""The limit of all files of a course together."""


def measured(text: str) -> tuple[int, int]:
    """A file's bytes, raw and compressed by gzip."""
    raw = text.encode()
    return len(raw), len(gzip.compress(raw, 9))


def fits(sizes: tuple[int, int]) -> bool:
    """Whether a file is within both limits."""
    return sizes[0] <= MOST_BYTES and sizes[1] <= MOST_COMPRESSED


def of(lessons: Sequence[Lesson]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Each lesson's key, and the sizes of its file."""
    for lesson in lessons:
        yield lesson.key, measured(lesson_page(lesson))


def main() -> int:
    """Print the table, and say whether each file is within the limits."""
    parser = argparse.ArgumentParser(prog="python -m tests.sizes", description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="a lesson; without one, all")
    parser.add_argument("--site", type=Path, metavar="FOLDER", help="the folder of a course, instead of lessons")
    options = parser.parse_args()
    if options.site is not None:
        size = sum(path.stat().st_size for path in options.site.iterdir())
        print(f"{size:,} bytes of {MOST_OF_SITE:,}")
        return int(size > MOST_OF_SITE)
    names = options.names
    lessons = [one for one in load_all([]).lessons.values() if not names or one.key in names]
    print(f"{'lesson':<24}{'bytes':>11}{'gzip':>10}   of {MOST_BYTES:,} and {MOST_COMPRESSED:,}")
    good = True
    for key, sizes in of(lessons):
        good &= fits(sizes)
        print(f"{key:<24}{sizes[0]:>11,}{sizes[1]:>10,}{'' if fits(sizes) else '   too large'}", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

"""The lessons of the course by key. Each is read when it is first asked for: to read all takes seconds."""

from collections.abc import Iterator, Mapping

from sgmcmc_lab.lessons.lesson import Lesson, order_of
from sgmcmc_lab.lessons.library import COURSE, find, paths_of


class Course(Mapping[str, Lesson]):
    """Keys are those of the files' names, in the order of the course."""

    def __init__(self) -> None:
        self._keys = tuple(order_of(path)[1] for path in paths_of(COURSE))
        self._read: dict[str, Lesson] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, key: str) -> Lesson:
        if key not in self._read:
            lesson = find(key) if key in self._keys else None
            if lesson is None:
                raise KeyError(key)
            self._read[key] = lesson
        return self._read[key]


LESSONS = Course()

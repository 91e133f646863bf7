"""A registry: named classes, each added by one line."""

from collections import ChainMap
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, TypeVar

from samplers.parameters import SpecError

T = TypeVar("T")


class Named(Mapping[str, T]):
    """Classes by their ``key``, in the order in which a menu shows them."""

    what: str
    """What each of them is, for messages."""

    def find(self, field: str, key: Any) -> T:
        """The entry of that name, or :class:`SpecError` with the names there are."""
        if not isinstance(key, str) or key not in self:
            raise SpecError(field, key, f"there is no such {self.what}; there are: {', '.join(self)}")
        return self[key]


class Registry(Named[T]):
    """Classes that are added one by one."""

    def __init__(self, what: str, *entries: T):
        self.what = what
        self._entries: dict[str, T] = {}
        for entry in entries:
            self.add(entry)

    def add(self, entry: T) -> None:
        """One more, at the end of the menu."""
        key: str = entry.key  # type: ignore[attr-defined]
        if key in self._entries:
            raise ValueError(f"two {self.what}s are called {key}")
        self._entries[key] = entry

    def remove(self, key: str) -> None:
        """Take one out again."""
        del self._entries[key]

    def __getitem__(self, key: str) -> T:
        return self._entries[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


class Union(Named[Any]):
    """The entries of several registries, one after the other, whose keys differ. It follows what is added to them."""

    def __init__(self, what: str, *parts: Registry[Any]):
        self.what = what
        self._all: Mapping[str, Any] = ChainMap(*parts)  # type: ignore[arg-type]
        self._parts = parts

    def __getitem__(self, key: str) -> Any:
        return self._all[key]

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self._parts)

    def __len__(self) -> int:
        return len(self._all)

"""A registry: named classes, each added by one line, or by a package of somebody else's."""

import logging
from collections import ChainMap
from collections.abc import ItemsView, Iterator, Mapping
from difflib import get_close_matches
from importlib.metadata import entry_points
from itertools import chain
from typing import Any, ClassVar, TypeVar, cast

from sgmcmc_lab.samplers.parameters import SpecError

T = TypeVar("T")

LONGEST_LIST, NEAREST, LONGEST_NAME = 400, 5, 40
"""A list of names that is no longer is given whole, of another the nearest; and so much of a wrong name is compared."""


class Named(Mapping[str, T]):
    """Classes by their ``key``, in the order in which a menu shows them."""

    what: str
    """The noun for an entry, for messages."""

    def find(self, field: str, key: Any) -> T:
        """The entry of that name. Raises :meth:`unknown` where there is none."""
        if not isinstance(key, str) or key not in self:
            raise self.unknown(field, key)
        return self[key]

    def unknown(self, field: str, key: Any) -> SpecError:
        """The error of a name that no entry has, with the names there are; of many with those most like it."""
        names = ", ".join(self)
        if len(names) <= LONGEST_LIST:
            return SpecError(field, key, f"there is no such {self.what}; there are: {names}")
        # To compare a long text with every name takes long.
        like = ", ".join(get_close_matches(str(key)[:LONGEST_NAME], list(self), NEAREST, 0.0))
        return SpecError(field, key, f"there is no such {self.what}; of {len(self)} most like it are: {like}")


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

    def add_installed(self, group: str, base: type) -> None:
        """Add what installed packages name among their entry points of this group, as subclasses of ``base``.

        One that cannot be loaded is passed over, and a line of the log says why: a fault of one package stops no other.
        """
        for point in entry_points(group=group):
            try:
                entry = point.load()
                if not (isinstance(entry, type) and issubclass(entry, base)):
                    raise TypeError(f"it is no subclass of {base.__module__}.{base.__name__}")
                texts = [name for name, kind in base.__annotations__.items() if kind == ClassVar[str]]
                missing = [name for name in texts if not isinstance(getattr(entry, name, None), str)]
                if missing:
                    raise TypeError(f"it declares no {', no '.join(missing)}")
                self.add(cast(T, entry))
            except Exception as error:
                where = f"{point.value} of the entry points {group}"
                logging.getLogger(__name__).warning("%s is left out: %s: %s", where, type(error).__name__, error)

    def remove(self, key: str) -> None:
        """Take one out again."""
        del self._entries[key]

    def __getitem__(self, key: str) -> T:
        return self._entries[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def items(self) -> ItemsView[str, T]:
        """As of every mapping, without a call of Python for each: a link that is read asks some thousand times."""
        return self._entries.items()


MODELS: Registry[Any] = Registry("model")
METHODS: Registry[Any] = Registry("method")
"""Models of data and their methods, which :mod:`samplers.models` adds: experiments know their declarations alone."""


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

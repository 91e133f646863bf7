"""The nodes of an expression, each with its parts."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Self


class Kind(IntEnum):
    """The kinds of nodes."""

    CONSTANT = 0
    NAME = 1
    SUM = 2
    PRODUCT = 3
    CALL = 4


@dataclass(frozen=True, eq=False, repr=False)
class Node:
    """A node, and with it all that is below it.

    ============ ========================== ==========================================
    kind         value, label               parts
    ============ ========================== ==========================================
    CONSTANT     value                      none
    NAME         label: the name            none
    SUM          value + Σ c·t              (c, t), t neither a constant nor a sum
    PRODUCT      Π bᵉ                       (e, b), b neither a constant nor a product
    CALL         label: the function        (1, argument)
    ============ ========================== ==========================================
    """

    kind: Kind
    value: float
    label: str
    parts: tuple[tuple[float, Self], ...]
    digest: bytes
    """A digest of the whole normal form: two expressions with one digest are equal."""
    degree: float
    """As a polynomial; it orders the terms of a sum."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def constant(self) -> float | None:
        """The number that this expression is, or None."""
        return self.value if self.kind == Kind.CONSTANT else None

    @property
    def is_zero(self) -> bool:
        """Whether this is the number 0."""
        return self.kind == Kind.CONSTANT and self.value == 0

    @cached_property
    def names(self) -> frozenset[str]:
        """The names that it depends on."""
        return frozenset(node.label for node in self.postorder([self]) if node.kind == Kind.NAME)

    @property
    def size(self) -> int:
        """Its different nodes, and the terms, factors and arguments in them."""
        return sum(1 + len(node.parts) for node in self.postorder([self]))

    @classmethod
    def postorder(cls, roots: Iterable[Self]) -> list[Self]:
        """All different nodes, each after its parts."""
        done: dict[Self, None] = {}
        stack = [(root, False) for root in reversed(list(roots))]
        while stack:
            node, ready = stack.pop()
            if ready:
                done[node] = None
            elif node not in done:
                stack.append((node, True))
                stack.extend((part, False) for _, part in reversed(node.parts) if part not in done)
        return list(done)

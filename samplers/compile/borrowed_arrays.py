"""Arrays that a compiled function lends to another for the time of a call.

Numba hands an array over as its reference count's address, its owner, its size, its shape, its strides and its first
element's address: nine numbers for two dimensions, twenty-five for a gradient. A caller writes them all before every
call, and while it does, the processor cannot look ahead to the next step's random numbers. A borrowed array goes
over as its first element's address and its shape, which fit in the processor's registers; the rest follows from
these, and what is not read is never computed. (SGLD with one chain on the 2-D quartic: 15 ns a step, where it was 18.)

A function that borrows an array counts no references and keeps none: no compiled function of the engine returns an
array, or stores one for longer than the call.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.datamodel.models import ArrayModel
from numba.extending import intrinsic, lower_cast, register_model


class BorrowedArray(types.Array):
    """The type of a borrowed C-contiguous array. A slice of one is an ordinary array."""

    def __init__(self, dtype: Any, ndim: int) -> None:
        super().__init__(dtype, ndim, "C", name=f"borrowed({dtype}, {ndim}d)")


@register_model(BorrowedArray)
class BorrowedModel(ArrayModel):
    """An array in all but how it is handed over."""

    def _sent(self) -> list[tuple[str, Any]]:
        return [(name, self.get_model(self.get_field_position(name))) for name in ("data", "shape")]

    def get_argument_type(self) -> tuple[Any, ...]:
        """The types of the arguments that a caller passes."""
        return tuple(model.get_argument_type() for _, model in self._sent())

    def as_argument(self, builder: Any, value: Any) -> tuple[Any, ...]:
        """The part of an array that is handed over."""
        return tuple(model.as_argument(builder, self.get(builder, value, name)) for name, model in self._sent())

    def from_argument(self, builder: Any, value: tuple[Any, ...]) -> Any:
        """The array again, of what was handed over; it has no owner and counts no references."""
        data, shape = (model.from_argument(builder, part) for (_, model), part in zip(self._sent(), value, strict=True))
        integer = shape.type.element
        itemsize = stride = ir.Constant(integer, self.fe_type.dtype.bitwidth // 8)
        n_items, strides = ir.Constant(integer, 1), shape
        for k in reversed(range(self.fe_type.ndim)):
            strides = builder.insert_value(strides, stride, k)
            length = builder.extract_value(shape, k)
            stride, n_items = builder.mul(stride, length), builder.mul(n_items, length)
        array = ir.Constant(self.get_value_type(), None)
        known = {"nitems": n_items, "itemsize": itemsize, "data": data, "shape": shape, "strides": strides}
        for name, part in known.items():
            array = self.set(builder, array, part, name)
        return array


@lower_cast(types.Array, BorrowedArray)
def lend(context: Any, builder: Any, owned: Any, borrowed: Any, value: Any) -> Any:
    """A borrowed array: the two differ in how they are handed over only."""
    return value


def _without_owners(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """The value, with no owner of an array that it is or contains."""
    if isinstance(kind, types.BaseTuple):
        parts = [
            _without_owners(context, builder, part, builder.extract_value(value, k)) for k, part in enumerate(kind)
        ]
        return context.make_tuple(builder, kind, parts)
    if not isinstance(kind, types.Array):
        context.nrt.incref(builder, kind, value)
        return value
    model = context.data_model_manager[kind]
    for name in ("meminfo", "parent"):
        value = model.set(builder, value, ir.Constant(model.get(builder, value, name).type, None), name)
    return value


@intrinsic
def borrowed(typing: Any, value: Any) -> Any:
    """An array without its owner, or a tuple of such arrays: slices and calls then count no references.

    A count is 5 ns, as much as a small step's arithmetic, and a tuple has one for each of its arrays. An owner that is
    no argument of the function must be kept alive by :func:`keep_alive`.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _without_owners(context, builder, value, args[0])

    return value(value), generate


@intrinsic
def keep_alive(typing: Any, owners: Any) -> Any:
    """Keep the owners of :func:`borrowed` arrays until this call."""
    return types.void(owners), lambda context, builder, signature, args: context.get_dummy_value()

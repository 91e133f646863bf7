"""Programs as native code: the second tier, which does what the stack machine does, bit for bit.

A :class:`Loop` writes LLVM's assembly for a function of arrays (chains, width), one row a chain, that goes over the
chains. It is made of the instructions of :class:`~samplers.expressions.program.Op`, in the machine's order and without
the licence to reorder sums, so that every number comes out as the machine's; what is no arithmetic is a call of the C
function that the machine calls, never one that LLVM knows and might replace. Common subexpressions are computed once.
LLVM makes vector instructions of the loop where there is nothing but arithmetic in it.

:func:`samplers.expressions.inspection.inspect` reads the text before it is compiled, and
:mod:`samplers.expressions.compiler` compiles it beside the run. Kernels reach the code by its address, an integer in a
slot of their packed parameters, 0 until there is one: nothing of theirs is compiled again, and as both tiers
draw the same, neither a spec nor a trace says which of them ran.
"""

import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from sgmcmc_lab.samplers.expressions.functions import Array
from sgmcmc_lab.samplers.expressions.machine import HEADER
from sgmcmc_lab.samplers.expressions.program import Op

FUNCTIONS = {
    op: op.name.lower()
    for op in (Op.EXP, Op.LOG, Op.SIN, Op.COS, Op.TAN, Op.SINH, Op.COSH, Op.TANH, Op.ATAN, Op.EXPM1, Op.LOG1P)
}
"""The C functions of one number that generated code may call; of two there is pow."""
LAB = "lab_"
"""The prefix of the names of the machine's own functions, which generated code calls, too."""
FUNCTIONS |= {
    op: LAB + op.name.lower()
    for op in (
        Op.LGAMMA,
        Op.DIGAMMA,
        Op.TRIGAMMA,
        Op.LOG_I0,
        Op.I1_OVER_I0,
        Op.LOG1M_EXP,
        Op.LOG1P_SQUARE,
        Op.LOG_I0E,
        Op.LOG_I0E_SLOPE,
        Op.LGAMMA_HALF_STEP,
        Op.LGAMMA_HALF_STEP_SLOPE,
        Op.LOG_NDTR,
        Op.LOG_NDTR_SLOPE,
    )
}
OF_TWO = {op: LAB + op.name.lower() for op in (Op.LOG_SUM_EXP, Op.LOG_GAMMA_DENSITY)}
"""And those of two numbers."""

_BINARY = {Op.ADD: "fadd", Op.SUB: "fsub", Op.MUL: "fmul", Op.DIV: "fdiv"}
_DECLARED = "\n".join(
    [
        "declare double @llvm.sqrt.f64(double)",
        "declare double @llvm.fabs.f64(double)",
        "declare double @pow(double, double) #1",
        *(f"declare double @{name}(double) #1" for name in FUNCTIONS.values()),
        *(f"declare double @{name}(double, double) #1" for name in OF_TWO.values()),
    ]
)
_ATTRIBUTES = """\
attributes #0 = { nounwind }
attributes #1 = { nounwind willreturn nobuiltin memory(none) }"""


class Loop:
    """A function ``name(shared..., arrays..., chains)`` that is being written.

    ``arrays`` have a row for each chain, ``shared`` one for all, of so many numbers. Values are the names of LLVM's
    registers; what is loaded is as it was before anything was stored, and only what is used is in the code.
    """

    def __init__(self, name: str, arrays: dict[str, int], shared: dict[str, int] | None = None):
        self.name, self.arrays, self.shared = name, arrays, shared or {}
        self.operations = 0
        self._lines: list[str] = []
        self._known: dict[str, str] = {}
        self._stores: dict[tuple[str, int], str] = {}

    def load(self, array: str, column: int) -> str:
        """A number of the array's row."""
        return self._value(f"load double, ptr {self._place(array, column)}")

    def store(self, array: str, column: int, value: str) -> None:
        """Leave a number in the chain's row, at the end."""
        self._stores[array, column] = value

    def constant(self, value: float) -> str:
        """A number as it is written: to the last bit."""
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"

    def binary(self, op: Op, a: str, b: str) -> str:
        """a + b, a − b, a·b or a/b."""
        return self._value(f"{_BINARY[op]} double {a}, {b}")

    def below_zero(self, a: str) -> str:
        """Whether a < 0."""
        return self._value(f"fcmp olt double {a}, {self.constant(0.0)}")

    def choose(self, condition: str, a: str, b: str) -> str:
        """One of two numbers."""
        return self._value(f"select i1 {condition}, double {a}, double {b}")

    def run(self, program: Array, given: Callable[[int], str]) -> list[str]:
        """The outputs of a program of the stack machine, whose inputs are ``given`` by their numbers."""
        stack: list[str] = []
        slots: dict[int, str] = {}
        outputs: dict[int, str] = {}
        n = int(program[0])
        for number, x in program[HEADER : HEADER + 2 * n].reshape(-1, 2):
            op = Op(int(number))
            if op in _BINARY:
                b, a = stack.pop(), stack.pop()
                stack.append(self.binary(op, a, b))
            elif op == Op.ADDM:
                b, a = stack.pop(), stack.pop()
                stack.append(self.binary(Op.ADD, a, self.binary(Op.MUL, self.constant(x), b)))
            elif op in OF_TWO:
                b, a = stack.pop(), stack.pop()
                stack.append(self._value(f"call double @{OF_TWO[op]}(double {a}, double {b}) #1"))
            elif op == Op.ZERO_TIMES:
                u, w = stack.pop(), stack.pop()
                distance = self._value(f"call double @llvm.fabs.f64(double {w})")
                other = self._value(f"fcmp ogt double {distance}, {self.constant(0.0)}")
                stack.append(self.choose(other, self.binary(Op.MUL, w, u), w))
            elif op == Op.IF_NONNEGATIVE:
                u, c = stack.pop(), stack.pop()
                stack.append(self.choose(self.below_zero(c), self.constant(-math.inf), u))
            elif op == Op.NAME:
                stack.append(given(int(x)))
            elif op == Op.CONST:
                stack.append(self.constant(x))
            elif op == Op.LOAD:
                stack.append(slots[int(x)])
            elif op == Op.STORE:
                slots[int(x)] = stack[-1]
            elif op == Op.OUT:
                outputs[int(x)] = stack.pop()
            else:
                stack.append(self._unary(op, stack.pop(), x))
        return [outputs[k] for k in range(len(outputs))]

    def text(self) -> str:
        """The function's definition."""
        stores = [f"store double {value}, ptr {self._place(*at)}" for at, value in self._stores.items()]
        given = ", ".join(f"ptr noalias nocapture %{array}" for array in (*self.shared, *self.arrays))
        body = "\n".join(f"  {line}" for line in (*self._lines, *stores))
        return (
            f"define void @{self.name}({given}, i64 %chains) #0 {{\n"
            "entry:\n  %some = icmp sgt i64 %chains, 0\n  br i1 %some, label %chain, label %end\n"
            "chain:\n  %c = phi i64 [ 0, %entry ], [ %next, %chain ]\n"
            f"{body}\n"
            "  %next = add nuw nsw i64 %c, 1\n  %more = icmp slt i64 %next, %chains\n"
            "  br i1 %more, label %chain, label %end\n"
            "end:\n  ret void\n}\n"
        )

    def _unary(self, op: Op, a: str, x: float) -> str:
        if op == Op.ADDC:
            return self.binary(Op.ADD, a, self.constant(x))
        if op == Op.MULC:
            return self.binary(Op.MUL, a, self.constant(x))
        if op == Op.NEG:
            return self._value(f"fneg double {a}")
        if op == Op.SQUARE:
            return self.binary(Op.MUL, a, a)
        if op == Op.POW_INT:
            return self._power(a, int(x))
        if op == Op.POW:
            return self._value(f"call double @pow(double {a}, double {self.constant(x)}) #1")
        if op == Op.SIGN:
            zero = self.constant(0.0)
            above = self._value(f"fcmp ogt double {a}, {zero}")
            rest = self.choose(self.below_zero(a), self.constant(-1.0), a)
            return self.choose(above, self.constant(1.0), rest)
        if op in (Op.SQRT, Op.ABS):
            name = "sqrt" if op == Op.SQRT else "fabs"
            return self._value(f"call double @llvm.{name}.f64(double {a})")
        if op in (Op.LOG1P_EXP, Op.INV_LOGIT):
            return self._logistic(op, a)
        return self._value(f"call double @{FUNCTIONS[op]}(double {a}) #1")

    def _logistic(self, op: Op, a: str) -> str:
        # As the machine does it, of a choice of numbers where that has one of ways: the processor cannot guess those.
        distance = self._value(f"call double @llvm.fabs.f64(double {a})")
        e = self._value(f"call double @exp(double {self._value(f'fneg double {distance}')}) #1")
        one = self.constant(1.0)
        if op == Op.INV_LOGIT:
            above = self.choose(self.below_zero(a), e, one)
            return self.binary(Op.DIV, above, self.binary(Op.ADD, one, e))
        rest = self._value(f"call double @log1p(double {e}) #1")
        above = self._value(f"fcmp ogt double {a}, {self.constant(0.0)}")
        return self.choose(above, self.binary(Op.ADD, a, rest), rest)

    def _power(self, base: str, exponent: int) -> str:
        # As the machine does it; its first factor is 1.
        result = ""
        while exponent > 0:
            if exponent & 1:
                result = self.binary(Op.MUL, result, base) if result else base
            base = self.binary(Op.MUL, base, base)
            exponent >>= 1
        return result

    def _place(self, array: str, column: int) -> str:
        row, width = ("%c", self.arrays[array]) if array in self.arrays else ("0", self.shared[array])
        return self._value(f"getelementptr [{width} x double], ptr %{array}, i64 {row}, i64 {column}")

    def _value(self, line: str) -> str:
        if line not in self._known:
            self.operations += 1
            self._known[line] = f"%v{len(self._known)}"
            self._lines.append(f"{self._known[line]} = {line}")
        return self._known[line]


def module(loops: Sequence[Loop]) -> str:
    """The functions as the text of one module."""
    return "\n".join([*(loop.text() for loop in loops), _DECLARED, _ATTRIBUTES, ""])


@intrinsic
def call(typing: Any, address: Any, arrays: Any, begin: Any, chains: Any) -> Any:
    """Call what a :class:`Loop` was compiled to: ``call(address, arrays, begin, chains)`` in a compiled function.

    With C-contiguous arrays in its order, the last one from its number ``begin`` on: a view of it would count
    references, which costs as much as the rest of the call.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address, given, first, n = args
        pointers = [
            context.make_array(kind)(context, builder, builder.extract_value(given, i)).data
            for i, kind in enumerate(signature.args[1])
        ]
        pointers[-1] = builder.gep(pointers[-1], [first])
        kind = ir.FunctionType(ir.VoidType(), [*(pointer.type for pointer in pointers), n.type])
        builder.call(builder.inttoptr(address, kind.as_pointer()), [*pointers, n])
        return context.get_dummy_value()

    return types.void(types.int64, arrays, types.int64, types.int64), generate

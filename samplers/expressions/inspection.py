"""Inspection of generated code: its text is checked before it is compiled.

Only few of LLVM's instructions are allowed: arithmetic of registers, a comparison and a choice, reading and writing a
number of an array that the function was given, at a constant column of the current chain's row, and calls of the
functions in a list. So code can neither reach other memory, nor other functions, nor run longer than once over the
chains. The patterns are written by themselves, not taken from what writes the text.
"""

import re

MAY_CALL = {
    "llvm.sqrt.f64": 1, "llvm.fabs.f64": 1, "exp": 1, "log": 1, "sin": 1, "cos": 1, "tan": 1, "sinh": 1, "cosh": 1,
    "tanh": 1, "atan": 1, "log1p": 1, "expm1": 1, "pow": 2, "lab_log1m_exp": 1, "lab_log1p_square": 1, "lab_log_sum_exp": 2, "lab_log_gamma_density": 2,
    "lab_log_i0e": 1, "lab_log_i0e_slope": 1, "lab_lgamma_half_step": 1, "lab_lgamma_half_step_slope": 1, "lab_lgamma": 1, "lab_digamma": 1,
    "lab_log_ndtr": 1, "lab_log_ndtr_slope": 1, "lab_trigamma": 1, "lab_log_i0": 1, "lab_i1_over_i0": 1,
}  # fmt: skip
"""The functions that generated code may call, and how many numbers each takes."""

_X = r"(?:%v\d+|0x[0-9A-F]{16})"
_DEFINE = re.compile(r"define void @(\w+)\(((?:ptr noalias nocapture %\w+, )+)i64 %chains\) #0 \{")
_AT = re.compile(r"%v\d+ = getelementptr \[(\d+) x double\], ptr %(\w+), i64 (%c|0), i64 (\d+)")
_REACH = re.compile(r"%v\d+ = load double, ptr (%v\d+)|store double (?:%v\d+|0x[0-9A-F]{16}), ptr (%v\d+)")
_CALL = re.compile(rf"%v\d+ = call double @([\w.]+)\((double {_X}(?:, double {_X})*)\)(?: #1)?")
_PLAIN = re.compile(
    rf"%v\d+ = (?:f(?:add|sub|mul|div) double {_X}, {_X}|fneg double {_X}|fcmp o[lg]t double {_X}, {_X}"
    rf"|select i1 %v\d+, double {_X}, double {_X})"
)
_BEFORE = (
    "entry:",
    "%some = icmp sgt i64 %chains, 0",
    "br i1 %some, label %chain, label %end",
    "chain:",
    "%c = phi i64 [ 0, %entry ], [ %next, %chain ]",
)
_AFTER = (
    "%next = add nuw nsw i64 %c, 1",
    "%more = icmp slt i64 %next, %chains",
    "br i1 %more, label %chain, label %end",
    "end:",
    "ret void",
    "}",
)
_DECLARE = re.compile(r"declare double @([\w.]+)\((double(?:, double)*)\)(?: #1)?")
_FIXED = {
    "attributes #0 = { nounwind }",
    "attributes #1 = { nounwind willreturn nobuiltin memory(none) }",
}


class ForbiddenError(Exception):
    """Generated code that does what it must not; with the line."""


def inspect(text: str, functions: dict[str, tuple[dict[str, int], dict[str, int]]]) -> None:
    """Look at every line of a module of these functions.

    Each is given by the width of its arrays with a row for each chain, and of those with one row for all, in order.
    Raises :class:`ForbiddenError`.
    """
    lines = iter([line.strip() for line in text.split("\n") if line.strip()])
    for line in lines:
        defined = _DEFINE.fullmatch(line)
        if defined is None:
            declared = _DECLARE.fullmatch(line)
            known = declared and MAY_CALL.get(declared[1]) == declared[2].count("double")
            if not (known or line in _FIXED):
                raise ForbiddenError(line)
            continue
        arrays, shared = functions.get(defined[1], ({}, {}))
        if re.findall(r"%(\w+)", defined[2]) != [*shared, *arrays]:
            raise ForbiddenError(line)
        for expected in _BEFORE:
            _must(next(lines, ""), expected)
        places: set[str] = set()
        for inside in lines:
            if inside == _AFTER[0]:
                break
            _look_at(inside, arrays, shared, places)
        for expected in _AFTER[1:]:
            _must(next(lines, ""), expected)


def _must(line: str, expected: str) -> None:
    if line != expected:
        raise ForbiddenError(line)


def _look_at(line: str, arrays: dict[str, int], shared: dict[str, int], places: set[str]) -> None:
    """Look at a line of the loop; ``places`` are the registers so far that hold the place of a number."""
    if at := _AT.fullmatch(line):
        good = int(at[4]) < int(at[1]) == (arrays if at[3] == "%c" else shared).get(at[2])
        places.add(line.split(" ", maxsplit=1)[0])
    elif reached := _REACH.fullmatch(line):
        good = (reached[1] or reached[2]) in places
    elif called := _CALL.fullmatch(line):
        good = MAY_CALL.get(called[1]) == called[2].count("double")
    else:
        good = _PLAIN.fullmatch(line) is not None
    if not good:
        raise ForbiddenError(line)

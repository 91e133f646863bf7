"""The content of a compiled function: everything of the lab that its machine code follows from, in one digest.

That is its own bytecode; the helpers, constants and classes that it reaches by name, through any number of calls; its
default arguments and the values of its closure; the options of Numba; its signature; and the lab's extension of Numba.
Lines, comments, docstrings and annotations are not, for Numba makes no code of them. Functions of Python, NumPy and
Numba count by their names: the versions are part of a file's key in :mod:`samplers.compile.cache`.

Nothing is left out: where a function reaches something whose content is unknown, it has no digest and is not kept.

Bytecode is what Numba compiles in this process, and each release of Python has another one. The digest of the *source*
has the syntax tree in its place and is the same for all of them: a file that is made once and used everywhere holds it.
"""

import ast
import dis
import hashlib
import sys
from collections.abc import Callable, Iterable
from enum import Enum
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba import types
from numba.core.dispatcher import Dispatcher
from numba.core.typing.templates import Signature, builtin_registry

from sgmcmc_lab.samplers.compile import borrowed_arrays

LIBRARIES = {*sys.stdlib_module_names, "numpy", "numba", "llvmlite"}
"""Their versions are in the key of each file."""
LAB = __name__.partition(".")[0]
PLAIN = (bool, int, float, complex, str, bytes, range, type(None), type(...))
_EXTENSION = ast.unparse(ast.parse(Path(borrowed_arrays.__file__).read_bytes())).encode()
"""The file without its comments. Numba finds what it declares by the type of a value, not by a name."""
_COMPILED_OF: dict[Any, tuple[str, list[Any]]] = {}
"""The content of each function when it was first compiled in this process."""


class UnknownContentError(Exception):
    """A function reaches something whose content is unknown."""


def digest_of(function: Any, signature: Any, told: dict[Any, tuple[str, list[Any]]] | None = None) -> str:
    """The digest of a function compiled for its signature. Raises :class:`UnknownContentError`.

    For several functions at once ``told`` keeps what is found of those that they share.
    """
    return _digest(function, signature, _EXTENSION, _overloads(), _told, {} if told is None else told)


def source_digest_of(function: Any, signature: Any, told: dict[Any, tuple[str, list[Any]]]) -> str:
    """The digest of a function's source, for its signature; for ``told`` see :func:`digest_of`.

    It is of the files as they are now. Overloads that other packages declare are not in it, for they are not where the
    file is made. Raises :class:`UnknownContentError`.
    """
    return _digest(function, signature, _source_of_extension(), [], _told_by_source, told)


def _digest(
    function: Any,
    signature: Any,
    extension: bytes,
    beside: Iterable[Any],
    tell: Callable[[Any], tuple[str, list[Any]]],
    told: dict[Any, tuple[str, list[Any]]],
) -> str:
    digest = hashlib.sha256(extension)
    links: list[Any] = []
    digest.update(repr(_described(signature, links)).encode())
    # Each function is told once, and named by its number, for functions may call each other in a circle.
    reached = [function, *links, *beside]
    numbers = {id(each): k for k, each in enumerate(reached)}
    for each in reached:
        if each not in told:
            told[each] = tell(each)
        text, links = told[each]
        for link in links:
            if id(link) not in numbers:
                numbers[id(link)] = len(reached)
                reached.append(link)
        digest.update(repr((text, [numbers[id(link)] for link in links])).encode())
    return digest.hexdigest()


def _overloads() -> list[Any]:
    """The functions that others than Numba have declared to stand for some function or method in compiled code.

    The lab's own are in the file whose source counts, or are reached by name.
    """
    found = (getattr(each, "__func__", each) for template in _templates() for each in vars(template).values())
    functions = [each for each in found if isinstance(each, FunctionType) and not _of_library(each)]
    return [each for each in functions if (each.__module__ or "").partition(".")[0] != LAB]


def _templates() -> Iterable[Any]:
    return [*builtin_registry.functions, *builtin_registry.attributes]


def _told(function: Any) -> tuple[str, list[Any]]:
    """The content of this function by itself, and the functions that it reaches, in order."""
    plain = _plain(function)
    text, links = _with_values(function, *_of_code(plain.__code__))
    if isinstance(function, Dispatcher):
        # Numba goes on with what it has compiled, even where a name has another value by now.
        if not function.overloads:
            _COMPILED_OF[function] = text, links
        elif _COMPILED_OF.setdefault(function, (text, links)) != (text, links):
            raise UnknownContentError(f"{plain.__qualname__} was compiled before something that it reaches was changed")
    return text, links


def _told_by_source(function: Any) -> tuple[str, list[Any]]:
    """The same by the function's source."""
    return _with_values(function, *_of_source(_plain(function).__code__))


def _plain(function: Any) -> Any:
    """The function of Python."""
    return getattr(function, "py_func", None) or getattr(function, "__wrapped__", None) or function


def _with_values(function: Any, own: str, names: list[tuple[str, ...]]) -> tuple[str, list[Any]]:
    """Its own content with the values of the names that it looks up, and the functions among these."""
    links: list[Any] = []
    plain = _plain(function)
    options = [function.targetoptions, function.locals] if isinstance(function, Dispatcher) else type(function).__name__
    cells = {}
    for name, cell in zip(plain.__code__.co_freevars, plain.__closure__ or (), strict=True):
        try:
            cells[name] = cell.cell_contents
        except ValueError:
            raise UnknownContentError(f"{name} of {plain.__qualname__} has no value yet") from None
    values = []
    for name, *attributes in names:
        if name in cells:
            value = cells[name]
        elif name in plain.__globals__:
            value = plain.__globals__[name]
        else:
            value = plain.__builtins__.get(name)
        while isinstance(value, ModuleType) and attributes:
            value = getattr(value, attributes.pop(0), None)
        values.append(value)
    return repr(_described((own, options, plain.__defaults__, plain.__kwdefaults__, values), links)), links


@cache
def _of_code(code: CodeType) -> tuple[str, list[tuple[str, ...]]]:
    """The digest of a code object with those within it, and the names that it looks up, each with its attributes."""
    constants: list[Any] = []
    names: list[tuple[str, ...]] = []
    steps = [step for step in dis.get_instructions(code) if step.opname not in ("EXTENDED_ARG", "NOP", "PUSH_NULL")]
    follows = False
    for step in steps:
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_CLOSURE"):
            names.append((step.argval,))
            follows = True
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD") and follows:
            names[-1] += (step.argval,)
        else:
            follows = False
        if step.opcode in dis.hasconst:
            constants.append(code.co_consts[step.arg or 0])
    told = []
    for constant in constants:
        if isinstance(constant, CodeType):
            inner, inner_names = _of_code(constant)
            told.append(inner)
            # A variable of the function itself is no name that it looks up.
            names += [name for name in inner_names if name[0] not in code.co_cellvars]
        else:
            told.append(_described(constant, []))
    names = [name for name in names if name[0] not in code.co_cellvars]
    shape = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    variables = (code.co_names, code.co_varnames, code.co_cellvars, code.co_freevars)
    table = getattr(code, "co_exceptiontable", b"")
    own = repr((code.co_code, table, shape, variables, told))
    return hashlib.sha256(own.encode()).hexdigest(), names


_UNSAID = {"type_ignores", "type_comment", "type_params", "kind", "ctx", "annotation", "returns"}
"""Fields of a syntax tree of which Numba makes no code, or which the rest says."""


@cache
def _of_source(code: CodeType) -> tuple[str, list[tuple[str, ...]]]:
    """The digest of a function's syntax tree, and the names that it may look up, each with its attributes.

    A name that it binds nowhere but in a function or a comprehension within it counts as looked up.
    """
    node = _defined(code.co_filename).get((code.co_firstlineno, code.co_name))
    if node is None:
        raise UnknownContentError(f"the source of {code.co_qualname} cannot be read")
    told = repr(_told_of_tree(node.args)), [repr(_told_of_tree(part)) for part in _without_docstring(node)]
    chains: dict[tuple[str, ...], None] = {}
    own = {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)} | _bound(node.body)
    inner = (part for top in _without_docstring(node) for part in ast.walk(top))
    beyond = {id(part.value) for part in ast.walk(node) if isinstance(part, ast.Attribute)}
    for part in inner:
        if isinstance(part, ast.Name | ast.Attribute) and id(part) not in beyond:
            attributes: list[str] = []
            root: ast.expr = part
            while isinstance(root, ast.Attribute):
                attributes.insert(0, root.attr)
                root = root.value
            if isinstance(root, ast.Name) and root.id not in own:
                chains[root.id, *attributes] = None
    return hashlib.sha256(repr(told).encode()).hexdigest(), list(chains)


@cache
def _defined(path: str) -> dict[tuple[int, str], ast.FunctionDef]:
    """The functions that a file defines, by the line where each begins with its decorators, and its name."""
    try:
        tree = ast.parse(Path(path).read_bytes())
    except (OSError, SyntaxError):
        return {}
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return {(min([node.lineno, *(each.lineno for each in node.decorator_list)]), node.name): node for node in found}


_WITHIN = (ast.FunctionDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
"""Nodes with names of their own."""


def _bound(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that these nodes bind, without those bound in a function or a comprehension within them."""
    out: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            out.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            out.add(node.id)
        if not isinstance(node, _WITHIN):
            out |= _bound(ast.iter_child_nodes(node))
    return out


def _without_docstring(node: ast.FunctionDef) -> list[ast.stmt]:
    return node.body[ast.get_docstring(node, clean=False) is not None :]


def _told_of_tree(node: Any) -> Any:
    """A syntax tree in plain data, the same in each release of Python: fields that are empty are not in it."""
    if isinstance(node, list):
        return [_told_of_tree(part) for part in node]
    if not isinstance(node, ast.AST):
        return type(node).__name__, repr(node)
    parts = {name: part for name, part in ast.iter_fields(node) if name not in _UNSAID and part not in (None, [])}
    if isinstance(node, ast.FunctionDef):
        parts["body"] = _without_docstring(node)
    return type(node).__name__, [(name, _told_of_tree(part)) for name, part in sorted(parts.items())]


@cache
def _source_of_extension() -> bytes:
    return repr(_told_of_tree(ast.parse(_EXTENSION))).encode()


def _described(value: Any, links: list[Any]) -> Any:
    """A value in plain data whose ``repr`` tells it apart from every other; functions are put among ``links``."""
    kind = type(value).__name__
    if type(value) in PLAIN:
        return kind, repr(value)
    if isinstance(value, tuple | list):
        of = None if type(value) in (tuple, list) else _described(type(value), links)
        return kind, of, [_described(each, links) for each in value]
    if isinstance(value, dict):
        return kind, [(_described(key, links), _described(each, links)) for key, each in value.items()]
    if isinstance(value, set | frozenset):
        return kind, sorted(repr(_described(each, links)) for each in value)
    if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
        layout = value.flags.c_contiguous, value.flags.f_contiguous, value.flags.writeable
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return kind, repr(value.dtype.descr), value.shape, layout, digest
    if isinstance(value, np.dtype | np.ufunc):
        return kind, repr(value)
    if isinstance(value, Enum):
        return kind, _described(type(value), links), value.name
    if _of_library(value):
        return kind, f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, Dispatcher | FunctionType) or isinstance(getattr(value, "__wrapped__", None), FunctionType):
        links.append(value)
        return "function"
    if isinstance(value, type):
        return kind, value.__qualname__, _of_class(value, links)
    if isinstance(value, types.Type | Signature):
        return _of_type(value, links)
    raise UnknownContentError(f"the content of {value!r} is unknown"[:200])


def _of_type(kind: Any, links: list[Any]) -> Any:
    """A type of Numba; the names of a tuple's fields are not in its own name."""
    if isinstance(kind, Signature):
        return "signature", [_of_type(each, links) for each in (kind.return_type, *kind.args)]
    if isinstance(kind, types.FunctionType):
        return "function of", _of_type(kind.signature, links)
    if isinstance(kind, types.BaseTuple):
        named = getattr(kind, "instance_class", None)
        return str(kind), [_of_type(each, links) for each in kind], named and _described(named, links)
    return type(kind).__name__, str(kind)


def _of_class(kind: type, links: list[Any]) -> Any:
    """A named tuple by its fields, another class by the file that declares it."""
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return kind._fields, _described(kind._field_defaults, links)  # type: ignore[attr-defined]
    return _of_file(getattr(sys.modules.get(kind.__module__), "__file__", None) or kind.__qualname__)


@cache
def _of_file(path: str) -> str:
    """The digest of a source file. Raises :class:`UnknownContentError` where there is none."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        raise UnknownContentError(f"{path} cannot be read") from None


def _of_library(value: Any) -> bool:
    """Whether it is a function or a class of a library; what a library has made for the lab has no name of its own."""
    named = getattr(value, "__qualname__", None) is not None
    return named and (getattr(value, "__module__", None) or "").partition(".")[0] in LIBRARIES

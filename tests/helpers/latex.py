"""Numbers from displayed formulas: a reader of the LaTeX that the lab shows, by the conventions of its typesetting.

A formula becomes a function of an environment, a mapping from symbols as LaTeX writes them to numbers, vectors and
matrices. A product without a sign binds closer than a slash, ``a/2b`` is a/(2b); a sum, like a product, ends at the
next plus or minus; a function without brackets takes one factor. ``env["over"]`` holds, for the text below a sum's
sign, the symbols of each term.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import special, stats

from sgmcmc_lab.samplers.parameters import declared

Env = Mapping[str, Any]
Value = Callable[[Env], Any]

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    r"\log": np.log,
    r"\exp": np.exp,
    r"\cos": np.cos,
    r"\sin": np.sin,
    r"\tanh": np.tanh,
    r"\Phi": special.ndtr,
    r"\operatorname{diag}": np.diag,
    "I_0": special.i0,
    r"\invlogit": special.expit,
    r"\sign": np.sign,
}
LAWS: dict[str, Callable[..., Any]] = {
    "N": lambda mean, variance: stats.norm(mean, variance**0.5),
    "Student": stats.t,
    "Cauchy": stats.cauchy,
    "Laplace": stats.laplace,
    "Exp": lambda rate: stats.expon(scale=1 / rate),
    "Gamma": lambda shape, rate: stats.gamma(shape, scale=1 / rate),
    "Beta": stats.beta,
    "LogNormal": lambda mean, variance: stats.lognorm(variance**0.5, scale=np.exp(mean)),
    "Weibull": lambda shape, scale: stats.weibull_min(shape, scale=scale),
    "Bernoulli": stats.bernoulli,
    "Binomial": stats.binom,
    "Poisson": stats.poisson,
    "NegBinomial": lambda mean, phi: stats.nbinom(phi, phi / (phi + mean)),
    "vonMises": lambda mean, kappa: stats.vonmises(kappa, mean),
}
"""Distributions by the names that densities have in formulas, with their parameters behind a semicolon."""


def _of_law(law: Callable[..., Any], kind: str) -> Callable[[Any], float]:
    def value(given: Any) -> float:
        made = law(*given[1:])
        if kind:
            return float((made.logcdf if kind == "F" else made.logsf)(given[0]))
        return float((made.logpmf if hasattr(made.dist, "logpmf") else made.logpdf)(given[0]))

    return value


FUNCTIONS |= {rf"\law{kind}{key}": _of_law(law, kind) for key, law in LAWS.items() for kind in ("", "F", "S")}
BLANK = {r"\,", r"\;", r"\:", r"\!", r"\ ", r"\quad", r"\qquad", r"\textstyle", " ", "\n"}
"""Signs that only set distances and sizes."""
SIZES = re.compile(r"\\(?:[bB]ig{1,2}[lr]?|left|right)(?![a-zA-Z])")
TOKEN = re.compile(
    r"\\operatorname\{\w+\}|\\mathrm\{\w+\}|\\begin\{\w+\}|\\end\{\w+\}|\\[a-zA-Z]+|\\\\|\\.|.", re.DOTALL
)
MODIFIERS = (r"\tilde", r"\hat", r"\mathcal", r"\mathbb", r"\mathsf", r"\dot", r"\bar")
SUMS = {r"\sum": np.add, r"\prod": np.multiply}
RELATIONS = ("=", r"\leftarrow", r"\sim", r"\propto", r"\in", r"\ge", r"\le", r"\ni")
STOPS = (",", "&", ")", "]", "}", ";", r"\\", "|", r"\rVert", "+", "-", "/", "<", ">", *RELATIONS, r"\end{pmatrix}", "")


class UnreadError(ValueError):
    """A formula has something that this reader does not know."""


def symbols(thing: Any) -> dict[str, Any]:
    """The values of the symbols that the parameters of a target or a sampler have in formulas."""
    out = {r"\pi": np.pi}
    for name, parameter in declared(type(thing)):
        if tex := getattr(parameter, "tex", ""):
            value = getattr(thing, name)
            symbol, squared, _ = tex.partition("^2")
            if value != ():  # not set: the formula says what is taken then
                out[symbol] = np.sqrt(value) if squared else value
    return out


def typed(text: str) -> str:
    """A formula that somebody typed, with one sign for each density, for each function in words and for each name."""
    text = re.sub(r"\\log(?: ([FS])_)?\{?\\(?:mathcal|mathrm\{)? ?(\w+)\}*\\left\(", r"\\law\1\2(", text)
    text = text.replace(";", ",").replace(r"\operatorname{logit}^{-1}", r"\invlogit")
    text = text.replace(r"\operatorname{sign}", r"\sign").replace(r"\log\lvert J\rvert", "J")
    return re.sub(r"\\mathrm\{(\w+)\}", r"\\w\1", text)


def tokens(text: str) -> list[str]:
    """The signs of a formula, without those that only set how it looks, and without remarks in words at its end."""
    text = text.replace(r"\text{geodesic}", r"\geodesic").replace(r"\ \text{unless given}", "")
    text = re.sub(r"\\text\{[^{}]*\}", r"\\words", text)
    text = SIZES.sub("", text).replace(r"\begin{aligned}", "").replace(r"\end{aligned}", "").replace("{}", "")
    signs = [one for one in TOKEN.findall(text) if one not in BLANK]
    inside = 0
    out = []
    for one in signs:
        inside += (one == r"\begin{pmatrix}") - (one == r"\end{pmatrix}")
        # Outside of a matrix it only aligns lines.
        if one != "&" or inside:
            out.append(one)
    return out


def statements(text: str) -> list[list[str]]:
    """The parts of a formula between commas, semicolons and line ends that stand in no bracket."""
    found: list[list[str]] = [[]]
    depth = 0
    matrix = 0
    for one in tokens(text):
        matrix += (one == r"\begin{pmatrix}") - (one == r"\end{pmatrix}")
        depth += (one in "([{" or one == r"\{") - (one in ")]}" or one == r"\}")
        if depth == 0 and not matrix and one in (",", ";", r"\\"):
            found.append([])
        else:
            found[-1].append(one)
    # A line that begins with a sign goes on with the sum of the one before.
    joined: list[list[str]] = []
    for one in filter(None, found):
        if one[0] in "+-" and joined:
            joined[-1] += one
        else:
            joined.append(one)
    return joined


def split(statement: list[str]) -> tuple[list[str], str, list[str]]:
    """The left side of a statement, its relation, and the right side. Raises :class:`UnreadError` where it has none."""
    depth = 0
    for i, one in enumerate(statement):
        depth += (one in "([{") - (one in ")]}")
        if depth == 0 and one in RELATIONS:
            return statement[:i], one, statement[i + 1 :]
    raise UnreadError(f"no relation in {''.join(statement)}")


def read(signs: list[str]) -> Value:
    """The function of a whole expression. Raises :class:`UnreadError`."""
    reader = _Reader(signs)
    value = reader.expression()
    if reader.next:
        raise UnreadError(f"{reader.next} in {''.join(signs)}")
    return value


def with_definitions(text: str, given: Env) -> tuple[Value, dict[str, Any]]:
    """The right side of the first statement, and the environment with the definitions that follow it.

    Given symbols are not defined again; conditions, such as a domain, define nothing.
    """
    first, *rest = statements(text)
    env = dict(given)
    for statement in rest:
        try:
            left, relation, right = split(statement)
        except UnreadError:
            continue
        name, index = _name(left)
        if relation != "=" or not name or name in env or "".join(left) in env:
            continue
        value = read(right)
        if index and not index.isdigit():
            env[name] = _Indexed(value, index, env)
        else:
            env["".join(left)] = value(env)
    return read(split(first)[2]), env


def program(text: str) -> list[tuple[list[str], Value]]:
    """The assignments of a displayed step, in order: the names on the left, and the value.

    It is the step of a proposal that is accepted, with one leapfrog step, without adaptation and without swaps. Raises
    :class:`UnreadError` for a part in words.
    """
    for words in (r"\text{accept with probability }", r"\text{adapt }"):
        text = text.replace(words, r"\otherwise ")
    # Of one leapfrog step, and of the coldest rung.
    for words in (r"\text{then } L \text{ times:}", r"\text{L times: }", r",\quad k = K, \dots, 1"):
        text = text.replace(words, " ")
    out = []
    for statement in statements(text.partition(r"\\&\text{swap }")[0]):
        if statement[0] == r"\otherwise" or r"\bmod" in statement:
            continue
        left, relation, right = split(statement)
        if relation not in ("=", r"\leftarrow") and (relation != r"\sim" or "N" not in right):
            raise UnreadError(f"{relation} in {''.join(statement)}")
        if left[0] == "(":
            names = "".join(left)[1:-1].split(",")
        else:
            names = ["".join(left)]
        out.append((names, read(right)))
    return out


def execute(step: list[tuple[list[str], Value]], env: dict[str, Any]) -> None:
    """Make the assignments in the environment. One that needs a symbol which is defined below it waits for that.

    A given symbol with an index stays as it is; ``r_i`` on the left stands for all coordinates of r.
    """
    waiting = list(step)
    while waiting:
        later = []
        for names, value in waiting:
            try:
                found = _of_all(names[0], value, env)
            except UnreadError:
                later.append((names, value))
                continue
            for name, one in zip(names, found if len(names) > 1 else [found], strict=True):
                env[name.removesuffix("_i")] = one
                if name.endswith("_{t+1}"):
                    env[name.removesuffix("_{t+1}")] = one
        if len(later) == len(waiting):
            later[0][1](env)  # it says what is missing
        waiting = later


def _of_all(name: str, value: Value, env: dict[str, Any]) -> Any:
    if not name.endswith("_i"):
        return value(env)
    n, normals = len(env[name.removesuffix("_i")]), env["normals"]
    return np.array([value({**env, "i": i + 1, "normals": lambda: normals()[0]}) for i in range(n)])


class _Indexed:
    """A definition for every value of an index."""

    def __init__(self, value: Value, index: str, env: Env):
        self.value, self.index, self.env = value, index, env

    def at(self, number: int) -> Any:
        return self.value({**self.env, self.index: number})


def _name(signs: list[str]) -> tuple[str, str]:
    """A symbol and its index; two empty texts where it is anything else."""
    match = re.fullmatch(r"((?:\\tilde|\\hat)?(?:\\[a-zA-Z]+|[a-zA-Z]))(?:_(?:\{(\w+)\}|(\w)))?", "".join(signs))
    return (match[1], match[2] or match[3] or "") if match else ("", "")


def times(a: Any, b: Any) -> Any:
    """The product of numbers, vectors and matrices, a column by a row or a row by a column."""
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return a * b
    found = np.asarray(a) @ np.asarray(b)
    return found[0] if found.shape == (1,) else found


def dot(a: Any, b: Any) -> Any:
    return float(np.dot(a, b)) if np.ndim(a) == np.ndim(b) == 1 else times(a, b)


def power(base: Any, exponent: Any) -> Any:
    if np.ndim(base) == 2 and exponent == -1:
        return np.linalg.inv(base)
    if np.size(base) > 1:
        raise UnreadError("a power of a vector")
    return base**exponent


def transposed(a: Any) -> Any:
    """A column becomes a row."""
    return np.atleast_2d(a) if np.ndim(a) == 1 else a.T


BETWEEN: dict[str, Callable[[Any, Any], Any]] = {r"\cdot": dot, r"\circ": np.multiply, r"\oslash": np.divide}


def _applied(how: Callable[..., Any], *values: Value) -> Value:
    return lambda env: how(*(value(env) for value in values))


class _Reader:
    """Recursive descent; each method returns a function of the environment."""

    def __init__(self, signs: list[str]):
        self.signs, self.at = signs, 0
        self.bars = 0
        """Absolute values that are open: the next bar closes one."""

    @property
    def next(self) -> str:
        return self.signs[self.at] if self.at < len(self.signs) else ""

    def take(self, wanted: str = "") -> str:
        one = self.next
        if (wanted and one != wanted) or not one:
            raise UnreadError(f"{one or 'the end'} in place of {wanted or 'more'} in {''.join(self.signs)}")
        self.at += 1
        return one

    def expression(self) -> Value:
        sign = -1 if self.next == "-" else 1
        if self.next in ("-", "+"):
            self.take()
        parts = [(sign, self.quotient())]
        while self.next in ("+", "-"):
            sign = -1 if self.take() == "-" else 1
            parts.append((sign, self.quotient()))
        if len(parts) == 1 and sign == 1:
            return parts[0][1]
        # Some displays begin a matrix or a list with a sign.
        return lambda env: _sum([sign * value(env) for sign, value in parts])

    def quotient(self) -> Value:
        top = self.product()
        while self.next == "/":
            self.take()
            top = _applied(np.divide, top, self.product())
        return top

    def product(self) -> Value:
        parts = [self.dotted()]
        while self.next not in STOPS or (self.next == "|" and not self.bars):
            parts.append(self.dotted())

        def value(env: Env) -> Any:
            found = parts[0](env)
            for part in parts[1:]:
                found = times(found, part(env))
            return found

        return value

    def dotted(self) -> Value:
        value = self.factor()
        while self.next in BETWEEN:
            value = _applied(BETWEEN[self.take()], value, self.factor())
        return value

    def factor(self) -> Value:
        value = self.atom()
        while self.next == "^":
            self.take()
            raw, exponent = self.argument()
            if raw in (r"\top", r"\mathsfT"):
                value = _applied(transposed, value)
            else:
                value = _applied(power, value, exponent)
        return value

    def argument(self) -> tuple[str, Value]:
        """The argument of a command, one sign or the contents of braces, as text too."""
        if self.next != "{":
            one = self.take()
            if one in MODIFIERS or one in (r"\frac", r"\tfrac", r"\sqrt"):
                self.at -= 1
                begin = self.at
                value = self.atom()
                return "".join(self.signs[begin : self.at]), value
            return one, (lambda env: float(one)) if one.isdigit() else _symbol(one)
        self.take("{")
        begin = self.at
        depth = 1
        while depth:
            depth += {"{": 1, "}": -1}.get(self.take(), 0)
        inner = self.signs[begin : self.at - 1]
        raw = "".join(inner)
        if raw in (r"\top", r"\mathsfT", "") or "=" in inner:
            return raw, _symbol(raw)
        try:
            return raw, read(inner)
        except UnreadError:  # an index in words or signs, such as k,-i
            return raw, _symbol(raw)

    def atom(self) -> Value:
        one = self.next
        if one.isdigit() or one == ".":
            text = ""
            while self.next.isdigit() or (self.next == "." and self.at + 1 < len(self.signs)):
                text += self.take()
            return lambda env: float(text)
        if one in ("(", "["):
            return self.bracket(self.take())
        if one == "{":
            return self.argument()[1]
        if one == "|":
            self.take()
            self.bars += 1
            inner = self.expression()
            self.bars -= 1
            self.take("|")
            return lambda env: abs(inner(env))
        if one == r"\lVert":
            self.take()
            inner = self.expression()
            self.take(r"\rVert")
            return lambda env: float(np.linalg.norm(inner(env)))
        if one in (r"\frac", r"\tfrac"):
            self.take()
            (_, top), (_, bottom) = self.argument(), self.argument()
            return lambda env: top(env) / bottom(env)
        if one == r"\sqrt":
            self.take()
            _, inner = self.argument()
            return lambda env: np.sqrt(inner(env))
        if one in SUMS:
            return self.sum(SUMS[self.take()])
        if one == r"\begin{pmatrix}":
            return self.matrix()
        if one in (r"\nabla", r"\partial"):
            return self.slope()
        if one == r"\geodesic":
            return self.geodesic()
        if one == r"\mathcal" and self.signs[self.at + 1 : self.at + 2] == ["N"]:
            return self.normal()
        if one == r"\mathbb" and self.signs[self.at + 1 : self.at + 2] == ["1"]:
            return self.indicator()
        if one.startswith(r"\mathrm{"):
            return self.named()
        return self.symbol()

    def bracket(self, opened: str) -> Value:
        parts = [self.expression()]
        while self.next == ",":
            self.take()
            parts.append(self.expression())
        self.take({"(": ")", "[": "]"}[opened])
        return parts[0] if len(parts) == 1 else lambda env: np.concatenate([np.atleast_1d(part(env)) for part in parts])

    def matrix(self) -> Value:
        self.take(r"\begin{pmatrix}")
        rows = [[self.expression()]]
        while self.next != r"\end{pmatrix}":
            if self.take() == "&":
                rows[-1].append(self.expression())
            else:
                rows.append([self.expression()])
        self.take()
        return lambda env: np.array([[value(env) for value in row] for row in rows])

    def sum(self, how: Any) -> Value:
        self.take("_")
        raw, _ = self.argument()
        index, _, first = raw.partition("=")
        last: Value | None = None
        if self.next == "^":
            self.take()
            _, last = self.argument()
        body = self.product()

        def value(env: Env) -> Any:
            if raw in env.get("over", {}):
                return how.reduce([body({**env, **given}) for given in env["over"][raw](env)])
            begin = int(first or 1)
            end = int(last(env)) if last is not None else len(env[r"\theta"])
            return how.reduce([body({**env, index: number}) for number in range(begin, end + 1)])

        return value

    def normal(self) -> Value:
        """A normal draw with a mean and a variance; its standard normal numbers come from ``env["normals"]``."""
        self.take(r"\mathcal")
        self.take("N")
        self.take("(")
        mean = self.expression()
        self.take(",")
        variance = self.expression()
        self.take(")")

        def value(env: Env) -> Any:
            shift, spread = mean(env), variance(env)
            if "root" in env:  # of some coordinates only
                return shift + env["root"](spread)
            z = env["normals"]()
            if np.ndim(spread) == 2:  # of several coordinates at once
                return shift + np.linalg.cholesky(spread) @ z
            return shift + np.sqrt(spread) * z

        return value

    def indicator(self) -> Value:
        """1 where one value is above another, else 0."""
        for one in (r"\mathbb", "1", "("):
            self.take(one)
        small = self.expression()
        above = self.take() == ">"
        large = self.expression()
        self.take(")")
        return lambda env: float(small(env) > large(env) if above else small(env) < large(env))

    def named(self) -> Value:
        """A distribution or a function by its name: what ``env`` holds under it, of its parameters."""
        name = self.take()
        if self.next == "_":
            self.take()
            name += f"_{self.argument()[0]}"
        self.take("(")
        parts = [self.expression()]
        while self.next in (",", ";"):
            self.take()
            parts.append(self.expression())
        self.take(")")
        return lambda env: env[name](*(part(env) for part in parts))

    def slope(self) -> Value:
        """∇U at a point, with a tilde the estimate; of one coordinate behind ∂."""
        which: Value | None = None
        if self.take() == r"\partial":
            self.take("_")
            _, which = self.argument()
        noisy = self.next == r"\tilde"
        if noisy:
            self.take()
        self.take("U")
        at = self.bracket(self.take("("))

        def value(env: Env) -> Any:
            found = env["slope"](at(env), noisy)
            return found if which is None else found[int(which(env)) - 1]

        return value

    def geodesic(self) -> Value:
        """The place and the velocity after a time along a geodesic."""
        self.take()
        self.take("_")
        _, time = self.argument()
        self.take("(")
        x = self.expression()
        self.take(",")
        v = self.expression()
        self.take(")")
        return lambda env: env["geodesic"](time(env), x(env), v(env))

    def symbol(self) -> Value:
        name = self.take()
        while name in MODIFIERS:
            name += self.take()
        if not re.fullmatch(r"(?:\\[a-zA-Z]+(?:\{\w+\})?)*(?:\\[a-zA-Z]+(?:\{\w+\})?|[a-zA-Z])'*", name):
            raise UnreadError(f"{name} in {''.join(self.signs)}")
        while self.next == "'":
            name += self.take()
        index, number = "", None
        if self.next == "_":
            self.take()
            index, number = self.argument()
        full = f"{name}_{index}" if index else name
        if name == r"\exp" and number is not None:
            at, inner = number, self.factor()
            return lambda env: env["exponential"](at(env), inner(env))
        if name == r"\Lambda":
            place = self.bracket(self.take()) if self.next == "(" else _symbol("x")
            return lambda env: env["projection"](place(env))
        if name in FUNCTIONS or full in FUNCTIONS:
            how = FUNCTIONS[full if full in FUNCTIONS else name]
            inner = self.factor()
            return lambda env: how(inner(env))
        if name == "e" and not index and self.next == "^":
            self.take()
            _, exponent = self.argument()
            return lambda env: np.exp(exponent(env))
        return _symbol(name, index, number)


def _sum(values: list[Any]) -> Any:
    found = values[0]
    for one in values[1:]:
        found = found + one
    return found


def _symbol(name: str, index: str = "", number: Value | None = None) -> Value:
    def value(env: Env) -> Any:
        full = f"{name}_{index}" if index else name
        if full in env:
            return env[full]() if callable(env[full]) else env[full]
        if f"{name}_{{{index}}}" in env:
            return env[f"{name}_{{{index}}}"]
        if name not in env:
            raise UnreadError(f"what is {full}?")
        if not index:
            return env[name]
        assert number is not None
        held = env[name]
        if np.ndim(held) == len(index) == 2:
            return held[tuple(int(env.get(one, one)) - 1 for one in index)]
        at = int(number(env))
        return held.at(at) if isinstance(held, _Indexed) else held[at - 1]

    return value

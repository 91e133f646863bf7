"""A choice: a registered name with its parameters, as plain data, as a part of a link, and checked."""

import json
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, cast
from urllib.parse import parse_qsl

import param

from sgmcmc_lab.samplers.migrations import VERSION, migrated, version_of
from sgmcmc_lab.samplers.parameters import SpecError, Value, check, check_all, declared, nearest, written
from sgmcmc_lab.samplers.registry import Named

# A saved experiment is a few kB, a link at most what servers and chat programs pass on.
MAX_JSON, MAX_QUERY = 1_000_000, 8_000
MAX_FIELDS = 64
"""Of a link; the page writes fewer than half of that."""


class Choice(NamedTuple):
    """A registered name with all of its parameters."""

    key: str
    params: tuple[tuple[str, Value], ...]

    def values(self) -> dict[str, Value]:
        """The parameters by name."""
        return dict(self.params)


class Reader:
    """Reads plain data. It raises at the first problem, or, given a list, mends it and says so there."""

    def __init__(self, messages: list[str] | None):
        self.messages = messages

    def problem(self, error: SpecError, used: Any) -> None:
        """Raise the error, or say that ``used`` takes its place."""
        if self.messages is None:
            raise error
        used = written(used) if isinstance(used, int) and not isinstance(used, bool) else used
        used = "none" if used == () else used
        self.messages.append(f"{str(error).removesuffix('.')}; {used} is used instead.")

    def migrated(self, kind: str, data: Mapping[str, Any]) -> dict[str, Any]:
        """Data of any version, without its number, in today's format."""
        version = 0
        if "version" in data:
            try:
                version = version_of(data["version"])
            except SpecError as error:
                version = VERSION
                self.problem(error, f"version {version}")
        rest = {name: value for name, value in data.items() if name != "version"}
        return cast(dict[str, Any], migrated(kind, rest, version))

    def choice(self, registry: Named[Any], field: str, data: Any, fallback: str) -> Choice:
        """A registered name with its parameters; ``fallback`` where the name is none."""
        data = {"key": data} if isinstance(data, str) else data
        if not isinstance(data, Mapping):
            self.problem(
                SpecError(
                    field, data, "this field is needed" if data is None else f"allowed is one of {', '.join(registry)}"
                ),
                fallback,
            )
            return default_choice(registry, fallback)
        for name in data:
            if name not in ("key", "params"):
                self.problem(SpecError(f"{field}.{name}", data[name], "there are only key and params"), "nothing")
        try:
            cls = registry.find(field, data.get("key"))
        except SpecError as error:
            self.problem(error, fallback)
            return default_choice(registry, fallback)
        values = mapping(f"{field}.params", data.get("params", {}))
        if self.messages is None:
            return Choice(cls.key, check_all(cls, field, values))
        known = dict(declared(cls))
        for name in values:
            if name not in known:
                names = ", ".join(known) or "none"
                self.problem(
                    SpecError(f"{field}.{name}", values[name], f"there is no such parameter; there are: {names}"),
                    "nothing",
                )
        return Choice(cls.key, tuple(
            (name, self.value(p, f"{field}.{name}", values[name]) if name in values else p.default)
            for name, p in known.items()
        ))  # fmt: skip

    def value(self, parameter: param.Parameter, field: str, value: Any) -> Value:
        """A parameter's value, or the nearest allowed one."""
        try:
            return check(parameter, field, value)
        except SpecError as error:
            used = nearest(parameter, value)
            self.problem(error, used)
            return used


def default_choice(registry: Named[Any], key: str) -> Choice:
    """That entry with its defaults."""
    return Choice(key, check_all(registry[key], "", {}))


def mapping(field: str, data: Any) -> Mapping[str, Any]:
    """The data, if it has named fields. Raises :class:`SpecError`."""
    if not isinstance(data, Mapping):
        raise SpecError(field, data, "allowed is an object with named fields")
    return data


def parse_json(text: str) -> Any:
    """What untrusted JSON holds. Raises :class:`SpecError`."""
    if len(text) > MAX_JSON:
        raise SpecError("spec", f"{len(text):,} characters", f"allowed are at most {MAX_JSON:,}")
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise SpecError(
            "spec",
            text[max(error.pos - 20, 0) : error.pos + 20],
            f"it is not JSON: {error.msg} at line {error.lineno}, column {error.colno}",
        ) from None
    except ValueError:
        raise SpecError("spec", text[:40], "it holds a whole number of thousands of digits") from None
    except RecursionError:
        raise SpecError("spec", text[:40], "its brackets are nested too deeply") from None


def link_fields(query: str) -> list[tuple[str, str]]:
    """The fields of a link of any version, in order.

    Raises :class:`SpecError` where it is too long, before it is taken apart.
    """
    query = query.lstrip("?")
    if len(query) > MAX_QUERY:
        raise SpecError("link", f"{len(query):,} characters", f"allowed are at most {MAX_QUERY:,}")
    if (fields := query.count("&") + 1) > MAX_FIELDS:
        raise SpecError("link", f"{fields:,} fields", f"allowed are at most {MAX_FIELDS}")
    listed = parse_qsl(query, keep_blank_values=True)
    # What is wrong with the version is said by the reader of the experiment.
    with suppress(SpecError):
        listed = migrated("link", listed, version_of(dict(listed).get("v", 0)))
    return listed


def given_again(fields: Sequence[tuple[str, str]], names: Container[str]) -> list[str]:
    """A sentence for each of these fields that a link gives more than once."""
    counts = Counter(name for name, _ in fields)
    last = dict(fields)
    return [
        f"{SpecError(name, last[name], 'the link holds it more than once; the last one is used')}"
        for name, count in counts.items()
        if count > 1 and name in names
    ]


def choice_dict(choice: Choice) -> dict[str, Any]:
    """Plain data."""
    return {"key": choice.key, "params": {name: list(v) if isinstance(v, tuple) else v for name, v in choice.params}}


def choice_text(registry: Named[Any], choice: Choice) -> str:
    """A part of a link: ``key(name:value;name:value)``, without the lists that are empty as they are at first."""
    first = {name: parameter.default for name, parameter in declared(registry[choice.key])}
    written = [f"{name}:{value_text(value)}" for name, value in choice.params if value != () or first[name] != ()]
    return f"{choice.key}({';'.join(written)})" if written else choice.key


def value_text(value: Value) -> str:
    """A parameter's value in a link."""
    if isinstance(value, tuple):
        # One empty formula is not the same as none.
        return ",".join(map(str, value)) or " " * len(value)
    return str(value).lower() if isinstance(value, bool) else repr(value) if isinstance(value, float) else str(value)


def parse_choice(field: str, text: str, messages: list[str]) -> dict[str, Any]:
    """The inverse of :func:`choice_text`, for untrusted text; what is wrong with its form is told in ``messages``."""
    key, bracket, inside = text.partition("(")
    params: dict[str, str] = {}
    if bracket:
        if not inside.endswith(")"):
            messages.append(str(SpecError(field, text, "its closing bracket is missing; what is there is read")))
        for part in inside.removesuffix(")").split(";"):
            name, colon, value = part.partition(":")
            if not colon and part:
                messages.append(str(SpecError(field, part, "allowed is name:value; it is passed over")))
            elif part:
                if name in params:
                    messages.append(
                        str(SpecError(f"{field}.{name}", value, "it is given more than once; the last value is used"))
                    )
                params[name] = value
    return {"key": key, "params": params}

"""``python -m tests.hostile_models``: 100,000 random and hostile models for the typed posterior.

Parameters with bounds, priors, rows and curves are random words, letters, mutated presets, and models that are grown
from the grammar to be large; tables are those of the presets and one of 60,000 rows. Each is read to the end: names,
derivatives, programs. Their climbs and runs, which a count of instructions bounds, are left out. The command
exits 1 where one raises anything but :class:`SpecError` or takes more than 100 ms of a core, and prints the slowest.
"""

import argparse
import gc
import heapq
import json
import random
import time
from collections.abc import Iterator

import numpy as np

from sgmcmc_lab.samplers.expressions.densities import DENSITIES
from sgmcmc_lab.samplers.expressions.functions import FUNCTIONS
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.targets.base import Array
from sgmcmc_lab.samplers.targets.own import Table, keep
from sgmcmc_lab.samplers.targets.posterior import TypedPosterior
from sgmcmc_lab.samplers.targets.posterior_data import PRESETS
from tests.hostile import BITS

ALLOWED = 0.1
"""Seconds of a core that a model may take to be read."""
LETTERS = "abesty0123456789.+-*/^() _<>,;:'\"\\[]{}\0\n\tθξ₁₂−·×²аé½∞\u202e\u2028\ud800😀"
NAMES = ("a", "b", "s", "t", "m", "y", "x", "error", "e1", "theta", "theta1", "pi", "exp", "normal_lpdf", "N", "_", "a" * 20, "a" * 21, "é", "inf", "nan", "e", "E5")  # fmt: skip
NUMBERS = (
    "0",
    "1",
    "2",
    "-1",
    ".5",
    "1e12",
    "1e13",
    "1e-300",
    "1e400",
    "9" * 40,
    "0.5",
    "20",
    "400",
    "401",
    "1e",
    "0x1",
    "nan",
    "inf",
)
Model = dict[str, str]


def tables() -> tuple[Table, ...]:
    """Somebody's own: one of 60,000 rows, and one whose titles are hostile."""
    rng = np.random.default_rng(0)
    long = Table(("x", "x2"), rng.standard_normal((60_000, 2)), "y", rng.standard_normal(60_000))
    titles = ("exp", "normal lpdf", "θ", "a", "pi", "theta1", "1", "x" * 30)
    odd = Table(titles, 1e6 * rng.standard_normal((20, len(titles))), "y", np.where(np.arange(20) % 2, 1e6, -1e-300))
    return keep(long), keep(odd)


def number(rng: random.Random) -> str:
    return rng.choice(NUMBERS) if rng.random() < 0.1 else f"{rng.uniform(0, 5):.3g}"


def grown(rng: random.Random, depth: int, names: tuple[str, ...]) -> str:
    """A formula from the grammar."""
    pick = rng.random()
    if depth == 0 or pick < 0.12:
        return rng.choice(names) if rng.random() < 0.7 else number(rng)
    if pick < 0.45:
        key = rng.choice(list(DENSITIES))
        return f"{key}({', '.join(grown(rng, depth - 1, names) for _ in DENSITIES[key].arguments)})"
    if pick < 0.6:
        return f"{rng.choice(list(FUNCTIONS))}({grown(rng, depth - 1, names)})"
    if pick < 0.7:
        return f"({grown(rng, depth - 1, names)})^{rng.choice([2, 3, 0.5, -1, 7, 20, 400, 0.333, '(1/3)'])}"
    return f"({grown(rng, depth - 1, names)}){rng.choice('+-*/')}({grown(rng, depth - 1, names)})"


def declared(rng: random.Random, names: tuple[str, ...]) -> str:
    """Names with bounds of every kind."""
    low, high = number(rng), number(rng)
    return ", ".join(
        rng.choice((n, n, f"{n} > {low}", f"{n}<{high}", f"0 < {n} < 1", f"-{low} < {n} < {high}")) for n in names
    )


def model_of(rng: random.Random, table: str, columns: tuple[str, ...]) -> Model:
    """A model of up to ten parameters, as long as may be."""
    names = tuple(f"a{k}" for k in range(rng.choice((1, 2, 3, 5, 10))))
    depth = rng.choice((1, 2, 3, 3, 4, 5))
    # Every parameter in it, so that it is not refused before there is work.
    linear = " + ".join(names)
    row = grown(rng, depth, (*names, *columns))
    row = rng.choice((row, f"{row} + normal_lpdf({columns[-1]}, {linear}, 1)", f"log_mix(0.5, {row}, {linear})"))
    prior = rng.choice(
        (f"normal_lpdf({linear}, 0, 1)", grown(rng, depth, names), " + ".join(f"normal_lpdf({n}, 0, 1)" for n in names))
    )
    return {
        "table": table,
        "parameters": declared(rng, names),
        "prior": prior,
        "row": row,
        "curve": rng.choice(("", "", grown(rng, 2, (*names, columns[0])))),
    }


def explosive(rng: random.Random, table: str, columns: tuple[str, ...]) -> Model:
    """A model whose derivatives are as large as the grammar lets them be."""
    names = tuple(f"a{k}" for k in range(10))
    bound = rng.choice(("{} > 0", "0 < {} < 1", "{}", "-1 < {} < 1", "{} < 0"))
    y = columns[-1]
    total = "+".join(names)
    key = rng.choice([k for k, d in DENSITIES.items() if len(d.arguments) > 1])
    n = len(DENSITIES[key].arguments)
    inner = rng.choice((total, "*".join(names), f"({total})^2", f"exp({total})"))
    row = inner
    while True:
        arguments = [row, *rng.choices([*names, y, "1", f"{y}*a0"], k=n - 1)]
        rng.shuffle(arguments)
        wrapped = rng.choice(
            (
                f"{key}({','.join(arguments)})",
                f"{rng.choice(list(FUNCTIONS))}({row})",
                f"({row})*({y}+a1)",
                f"({row})^{rng.choice(('2', '3', '-1', '.5'))}",
            )
        )
        if len(wrapped) > rng.choice((150, 300, 400)):
            break
        row = wrapped
    products = "*".join(f"({n}+{k}*{y})" for k, n in enumerate(names)) + f"*({total})^2"
    row = rng.choice(
        (row, row, products, "*".join(f"exp({n}*{y})" for n in names), f"({total}+{y})^20*({total})^3", f"{row} + {y}")
    )
    return {
        "table": table,
        "parameters": ", ".join(map(bound.format, names)),
        "prior": rng.choice((f"normal_lpdf({total}, 0, 1)", products.replace(y, "a1"), f"log({row.replace(y, 'a2')})")),
        "row": row,
        "curve": "",
    }


def mutated(rng: random.Random, text: str) -> str:
    """The text with one to three slips in it."""
    words = [*FUNCTIONS, *DENSITIES, *NAMES, *NUMBERS, "(", ")", ",", "<", ">", " ", *BITS]
    for _ in range(rng.randint(1, 3)):
        i, j = sorted((rng.randint(0, len(text)), rng.randint(0, len(text))))
        j = min(j, i + rng.choice((1, 3, 12, 400)))
        text = rng.choice(
            (
                text[:i] + text[j:],
                text[:i] + rng.choice(words) + text[j:],
                text[i:] + text[:i],
                text[:j] + text[i:j] * rng.choice((1, 2, 30)) + text[j:],
            )
        )[:60_000]
    return text


def models(n: int, seed: int, own: tuple[Table, ...]) -> Iterator[Model]:
    """Models that a person, or nobody, would type."""
    rng = random.Random(seed)
    known = {key: preset.table() for key, preset in PRESETS.items()} | {table.key: table for table in own}
    fields = ("parameters", "prior", "row", "curve")
    for k in range(n):
        key = rng.choice(list(known))
        columns = tuple(c for c in (*known[key].names, known[key].answer) if c.isidentifier() and c.isascii())[-3:]
        words = [*FUNCTIONS, *DENSITIES, *NAMES, *NUMBERS, *columns, *"+-*/^(),<>", "((", "))", ", ", " "]
        preset = PRESETS.get(key, PRESETS["outliers"])
        good = {"table": key, **{field: str(getattr(preset, field)) for field in fields}}
        kind = (0, 0, 1, 1, 1, 2, 2, 2, 3, 4)[k % 10]
        if kind == 0:
            for field in rng.sample(fields, rng.choice((1, 1, 4))):
                good[field] = "".join(rng.choices(LETTERS, k=rng.randint(0, 60)))
        elif kind == 1:
            for field in rng.sample(fields, rng.choice((1, 1, 4))):
                good[field] = "".join(rng.choices(words, k=rng.randint(1, 80)))
        elif kind == 2:
            for field in rng.sample(fields, rng.choice((1, 1, 2))):
                good[field] = mutated(rng, good[field])
        elif kind == 3:
            good = model_of(rng, key, columns)
        else:
            good = explosive(rng, key, columns)
        yield good


def read(model: Model) -> str:
    """Read a model to the end; what was wrong with it, or nothing. Raises what is not a :class:`SpecError`."""
    try:
        _OnlyRead(**model)
    except SpecError as error:
        return str(error)
    except _ReadError:
        return ""
    raise AssertionError("it was not read to the end")


class _ReadError(Exception):
    """It has been read, and would be climbed now."""


class _OnlyRead(TypedPosterior):
    """A model that is read, and not climbed."""

    def _at(self, theta: Array) -> tuple[float, Array]:
        raise _ReadError


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile_models", description=__doc__.split("\n")[0])
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    words = parser.parse_args()
    slowest: list[tuple[float, int, str]] = []
    own, wrong, taken = tables(), 0, 0
    gc.disable()
    for k, model in enumerate(models(words.n, words.seed, own)):
        if k % 100 == 0:
            gc.collect()
        began = time.process_time()
        try:
            taken += read(model) == ""
        except Exception as error:
            wrong += 1
            print(f"{type(error).__name__}: {error}: {json.dumps(model)[:2000]}", flush=True)
        spent = time.process_time() - began
        heapq.heappush(slowest, (spent, k, json.dumps(model)[:3000]))
        if len(slowest) > 20:
            heapq.heappop(slowest)
        if spent > ALLOWED:
            print(f"{spent:.3f} s: {json.dumps(model)[:3000]}", flush=True)
        if k % 5000 == 4999:
            print(f"{k + 1:,} models, {taken:,} taken, {wrong} wrong, slowest {max(slowest)[0]:.3f} s", flush=True)
    for spent, k, text in sorted(slowest, reverse=True):
        print(f"{1000 * spent:.0f} ms, {k}: {text}")
    return int(wrong > 0 or max(slowest)[0] > ALLOWED)


if __name__ == "__main__":
    raise SystemExit(main())

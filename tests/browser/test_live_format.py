"""Numbers in the words of a live page are those of Python, ties among them."""

import random

import pytest

from tests.browser.hosts import CHROMIUM, LIVE, open_page


@pytest.fixture(scope="module")
def page():
    with open_page(CHROMIUM) as made:
        yield made


def numbers():
    """Exact ties in binary, their neighbours, and others of all sizes."""
    rng = random.Random(5)
    ties = [k / 2**n for n in range(1, 12) for k in (1, 3, 5, 7, 29, 1001)]
    ties += [0.453125, 2.5, 1234.5, 12345.5, 1e6 + 0.5, 0.0625, 1e20]
    sizes = [rng.choice((-1, 1)) * rng.random() * 10.0 ** rng.randint(-9, 9) for _ in range(300)]
    return [0.0, *ties, *(-x for x in ties), *(x * (1 + 2e-16) for x in ties), *sizes]


FORMATS = [
    ("general", 2, ".2g"),
    ("general", 5, ".5g"),
    ("general", 1, ".1g"),
    ("fixed", 0, ".0f"),
    ("fixed", 3, ".3f"),
]


def differences(page, script):
    """The first number of each format that the script writes otherwise than Python."""
    given, out = numbers(), []
    for name, digits, python in FORMATS:
        call = f"(xs) => {{ {script}; return xs.map((x) => {name}(x, {digits})) }}"
        found = page.evaluate(call, given)
        wrong = [(x, a, format(x, python)) for x, a in zip(given, found, strict=True) if a != format(x, python)]
        out += [(name, digits, *wrong[0])] if wrong else []
    grouped = page.evaluate(f"(xs) => {{ {script}; return xs.map((x) => fixed(x, 1, true)) }}", given)
    return out + [(x, a) for x, a in zip(given, grouped, strict=True) if a != f"{x:,.1f}"][:1]


def test_numbers_are_written_as_python_writes_them(page):
    """Fault: ties rounded up, as JavaScript does by itself."""
    script = (LIVE / "format.js").read_text(encoding="utf-8").replace("export ", "")
    assert differences(page, script) == []
    upward = script.replace('/^50*$/.test(exact.slice(end)) && "02468".includes(cut.slice(-1))', "false")
    assert upward != script and len(differences(page, upward)) >= 4

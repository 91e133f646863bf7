"""The numbers of an English sentence, with the precision to which it gives them."""

import re
from dataclasses import dataclass

WORDS = {
    word: float(number)
    for number, word in enumerate(
        [
            "no",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
        ]
    )
} | {"a": 1.0, "twenty": 20.0, "thirty": 30.0, "hundred": 100.0, "thousand": 1000.0}
FEW = "|".join(word for word in WORDS if word != "a")
PARTS = {"half": 2, "third": 3, "quarter": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "tenth": 10}
PARTS |= {"twentieth": 20, "thirtieth": 30, "hundredth": 100, "thousandth": 1000, "millionth": 1_000_000}
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
NUMBER = r"[-−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[-−]?\d+)?"
PATTERN = re.compile(
    rf"(?P<power>10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)|(?P<over>{NUMBER}/{NUMBER})|(?P<number>{NUMBER})(?P<percent> %| percent)?"
    rf"|\b(?P<few>{FEW}) (?:\w+ )?(?:in|of) (?:a )?(?P<all>[1-9]\d*(?!\.?\d)|five|hundred|thousand)"
    rf"|(?:(?P<times>\w+) )?(?P<part>{'|'.join(PARTS)})s?\b|(?P<twice>twice)|(?P<word>\w+)"
)


@dataclass(frozen=True)
class Number:
    """A number of a sentence; it stands for all that rounds to it."""

    value: float
    half_unit: float = 0.0
    share: bool = False
    """Whether it is a part of something, by which something else may be larger or smaller."""

    def means(self, wanted: float) -> bool:
        """Whether this is the wanted number, or that of a thing that is larger or smaller by this share."""
        meant = [self.value]
        if self.share and self.value < 1:
            meant += [1 + self.value, 1 - self.value, 1 / (1 + self.value), 1 / (1 - self.value)]
        # Bounds are given to three digits: .967 and 1.033 for a thirtieth.
        margin = 1e-3 if self.share else 1e-9
        return any(abs(wanted - one) <= self.half_unit * (1 + 1e-9) + margin * abs(one) for one in meant)


def numbers(sentence: str) -> list[Number]:
    """All that may be read as a number; “a” and “one” by themselves are none."""
    found = []
    for match in PATTERN.finditer(sentence):
        if match["power"]:
            found.append(Number(10.0 ** int(match["power"][2:].translate(SUPERSCRIPTS))))
        elif match["over"]:
            top, bottom = match["over"].split("/")
            found.append(Number(float(top.replace("−", "-")) / float(bottom), share=True))
        elif match["number"]:
            text = match["number"].replace("−", "-").replace(",", "")
            digits, _, power = text.partition("e")
            scale = 10.0 ** int(power or 0) * (0.01 if match["percent"] else 1.0)
            places = len(digits.partition(".")[2])
            # A whole number is one; the decimals of another were cut where they say least.
            half = 0.5 * 10.0**-places * scale if places or match["percent"] else 0.0
            found.append(Number(float(digits) * scale, half, share=bool(match["percent"])))
        elif match["all"] and match["few"].lower() in WORDS:
            of = WORDS.get(match["all"]) or float(match["all"])
            found.append(Number(WORDS[match["few"].lower()] / of, share=True))
        elif match["part"]:
            found.append(Number(WORDS.get((match["times"] or "a").lower(), 1.0) / PARTS[match["part"]], share=True))
        elif match["twice"]:
            found.append(Number(2.0))
        elif (match["word"] or "").lower() in WORDS.keys() - {"a", "one"}:
            found.append(Number(WORDS[match["word"].lower()]))
    return found

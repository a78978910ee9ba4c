r"""Numbers in text, and the scorer that compares them.

A number is written with ASCII digits: `42`, `-3.5`, `.5`, `1e6`, `1.5 x 10^6`, with thousands separators (`1,234`,
`12,34,567`, `1'234`, a no-break space), a currency sign before or after it (`$5`, `-€5`, `5 €`), a per cent sign or a
scale word after it (`1.2 million`, `5million`, `3bn`, `5k`, `7 dozen`). The minus is `-`, `−`, or the word minus or
negative; between two numbers (`3-5`) it is a dash. What looks like a number and is not one of these (`1.2.3`, `12,34`,
`2½`, `10⁶`, `0x10`, `5e3kg`) is unreadable and never right. Other words after a number (`5 kg`) are units and not
looked at.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Literal

from skillopt.errors import ConfigError
from skillopt.scoring.base import RIGHT, Score, Scorer, expected_got
from skillopt.scoring.normalize import casefold_text

_SCALES = {
    "dozen": 12,
    "hundred": 10**2,
    "thousand": 10**3,
    "lakh": 10**5,
    "million": 10**6,
    "crore": 10**7,
    "billion": 10**9,
    "trillion": 10**12,
}
_SUFFIXES = {"k": 10**3, "mn": 10**6, "m": 10**6, "bn": 10**9, "b": 10**9, "tn": 10**12}
_SEPARATORS = "'’_\u00a0\u202f"
_NUMBER = re.compile(
    r"(?P<minus>(?<![\w.)])[-−]|\b(?:minus|negative)\s+)?"
    r"(?:(?P<currency>[$€£¥₹])(?P<inner>[-−])?\s?)?"
    rf"(?<![\w.,])(?P<digits>\.?[0-9](?:[0-9.,{_SEPARATORS}]*[0-9])?)"
    r"(?P<exponent>[eE][-+]?[0-9]{1,4}(?!\w)|\s?[x×*]\s?10(?:\^|\*\*)[-+]?[0-9]{1,4}(?!\w))?"
    r"(?P<unit>\s?%|\s?per\s?cent\b|(?:mn|bn|tn|[kKMmBb])(?![\w]))?"
    rf"(?P<scales>(?:[\s-]{{0,2}}(?:{'|'.join(_SCALES)})s?\b)*)"
    r"(?:\s?(?P<after>[$€£¥₹])(?!\s?[0-9]))?",
    re.IGNORECASE,
)
_MORE_DIGITS = re.compile(r"[eE][-+]?[0-9]|[x×*][0-9]")
"""What goes on with a number that was not read to its end, such as `5e3kg` or `0x10`."""
_CONTEXT = Context(prec=60)
_MAX_DIGITS = 2_000
_MAX_EXPONENT = 400
_MAX_SCALE = 10**30


@dataclass(frozen=True, slots=True)
class Number:
    """A number found in a text.

    `value` is None if it cannot be read, and has `scale`, the factor of `million` and the like, in it already;
    `percent`: a per cent sign follows it.
    """

    value: Decimal | None
    percent: bool = False
    currency: str = ""
    scale: int = 1


def find_numbers(text: str, decimal_mark: str = ".") -> list[Number]:
    """Every number in `text`, in order; see the module for what counts as one."""
    return [number for _, _, number in locate_numbers(text, decimal_mark)]


def locate_numbers(text: str, decimal_mark: str = ".") -> list[tuple[int, int, Number]]:
    """Where each number starts and ends in `text`, sign, currency and scale words included, and the number."""
    return [(match.start(), match.end(), _read(match, text, decimal_mark)) for match in _NUMBER.finditer(text)]


def within(given: Decimal, wanted: Decimal, absolute: float = 0.0, relative: float = 0.0) -> bool:
    """Whether `|given - wanted| <= max(absolute, relative * |wanted|)`, computed in decimal (0.1 is exactly 0.1)."""
    if given == wanted:
        return True
    allowed = max(_exact(absolute), _CONTEXT.multiply(_exact(relative), _CONTEXT.abs(wanted)))
    return allowed > 0 and _CONTEXT.abs(_CONTEXT.subtract(given, wanted)) <= allowed


def check_tolerances(scorer: str, absolute: float, relative: float) -> None:
    """Raise ConfigError, naming `scorer`, for a tolerance below 0."""
    for name, value in (("absolute_tolerance", absolute), ("relative_tolerance", relative)):
        if value < 0:
            raise ConfigError(f"scorer {scorer!r}: {name} is {value}; expected 0 or more.")


def _read(match: re.Match[str], text: str, decimal_mark: str) -> Number:
    unit = (match["unit"] or "").strip()
    currency = match["currency"] or match["after"] or ""
    percent = unit == "%" or unit.lower().startswith("per")
    digits = _plain_digits(match["digits"], decimal_mark)
    scale = _scale("" if percent else unit, match["scales"] or "", currency)
    exponent = int(re.split(r"[eE^*]", match["exponent"])[-1]) if match["exponent"] else 0
    follow = text[match.end("digits") : match.end("digits") + 1]
    cut = not match["exponent"] and _MORE_DIGITS.match(text, match.end("digits"))
    if digits is None or scale is None or cut or follow.isnumeric() or abs(exponent) > _MAX_EXPONENT:
        return Number(None, percent, currency)
    value = Decimal(f"{'-' if match['minus'] or match['inner'] else ''}{digits}e{exponent}")
    return Number(value if scale == 1 else _CONTEXT.multiply(value, Decimal(scale)), percent, currency, scale)


def _scale(suffix: str, words: str, currency: str) -> int | None:
    """Factor of `k`, `million` and the like. A small m or b alone is metres or bytes, unless it is money."""
    small = suffix in ("m", "b") and not currency
    scale = 1 if small else _SUFFIXES.get(suffix.lower(), 1)
    for word in re.findall(r"[^\s-]+", words.lower()):
        factor = _SCALES.get(word.removesuffix("s"))
        if factor is None or scale > _MAX_SCALE:
            return None
        scale *= factor
    return scale


def _plain_digits(run: str, decimal_mark: str) -> str | None:
    """Digits and at most one point, or None if separators stand where no convention puts them."""
    comma = "," if decimal_mark == "." else "."
    whole, _, fraction = run.partition(decimal_mark)
    if fraction and not fraction.isdigit():
        return None
    for mark in (comma, *_SEPARATORS):
        if mark in whole:
            western = rf"[0-9]{{1,3}}(?:{re.escape(mark)}[0-9]{{3}})+"
            indian = rf"[0-9]{{1,2}}(?:{re.escape(mark)}[0-9]{{2}})+{re.escape(mark)}[0-9]{{3}}"
            if not re.fullmatch(f"{western}|{indian}", whole):
                return None
            whole = whole.replace(mark, "")
            break
    plain = f"{whole or '0'}.{fraction or '0'}"
    return plain if (whole or "0").isdigit() and len(plain) <= _MAX_DIGITS else None


@dataclass(frozen=True, slots=True)
class Numeric(Scorer):
    """The number in the answer equals the reference, within a tolerance.

    Right if `|answer - reference| <= max(absolute_tolerance, relative_tolerance * |reference|)`, computed in decimal
    (0.1 is exactly 0.1); both tolerances are 0 by default. `pick`: which number of the answer counts, `only` (default;
    several different numbers are wrong), `first` or `last`. `percent`: `unit` (default; the sign is a unit, 50% equals
    50) or `fraction` (50% equals 0.5). `decimal_mark`: `.` (default) or `,`. Two different currency signs never match.
    The same text as the reference is always right.
    """

    absolute_tolerance: float = 0.0
    relative_tolerance: float = 0.0
    pick: Literal["only", "first", "last"] = "only"
    percent: Literal["unit", "fraction"] = "unit"
    decimal_mark: Literal[".", ","] = "."

    def __post_init__(self) -> None:
        check_tolerances("numeric", self.absolute_tolerance, self.relative_tolerance)

    def _refuse(self, reference: str) -> str:
        number, _ = self._pick(reference)
        return "" if number is not None else "holds no single number that can be read"

    def _pick(self, text: str) -> tuple[Number | None, str]:
        """The number of `text` that counts, or None and the reason."""
        found = find_numbers(text, self.decimal_mark)
        if not found:
            return None, "no number in it"
        if self.pick == "only":
            if len({self._value(number) for number in found}) > 1 or len({n.currency for n in found} - {""}) > 1:
                return None, f"{len(found)} numbers in it; give one only"
            found = sorted(found, key=lambda number: bool(number.currency))
        number = found[0] if self.pick == "first" else found[-1]
        return (number, "") if number.value is not None else (None, "the number cannot be read")

    def _value(self, number: Number) -> Decimal | None:
        if number.value is not None and number.percent and self.percent == "fraction":
            return _CONTEXT.divide(number.value, Decimal(100))
        return number.value

    def _compare(self, answer: str, reference: str) -> Score:
        if casefold_text(answer) == casefold_text(reference):
            return RIGHT
        given, why = self._pick(answer)
        wanted, _ = self._pick(reference)
        if given is None or wanted is None:
            return Score(0.0, 0.0, expected_got(reference, answer, why or "the reference is not a number"))
        if given.currency and wanted.currency and given.currency != wanted.currency:
            return Score(0.0, 0.0, expected_got(reference, answer, "another currency"))
        left, right = self._value(given), self._value(wanted)
        if left is None or right is None:
            return Score(0.0, 0.0, expected_got(reference, answer))
        if within(left, right, self.absolute_tolerance, self.relative_tolerance):
            return RIGHT
        return Score(0.0, 0.0, expected_got(reference, answer))


def _exact(value: float) -> Decimal:
    """The decimal number that a person wrote, not its binary neighbour."""
    return Decimal(repr(float(value)))

"""The scorer of OfficeQA: amounts with signs and units compared as numbers, everything else word by word."""

from __future__ import annotations

import re
import string
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Literal, TypeAlias

from skillopt.scoring.base import RIGHT, BenchmarkScorer, Score, best_of, expected_got
from skillopt.scoring.normalize import casefold_text
from skillopt.scoring.numeric import Number, check_tolerances, locate_numbers, within
from skillopt.scoring.text import token_f1

Token: TypeAlias = "Number | str"

_CONTEXT = Context(prec=60)
_DASHES = str.maketrans(dict.fromkeys("−﹣－‐‑‒–—", "-"))
_PLUS = re.compile(r"(?<![\w)+])\+(?=[$€£¥₹.0-9])")
_BRACKETED = re.compile(
    r"(?P<before>[$€£¥₹])?\s?\(\s?(?P<inside>[$€£¥₹])?\s?(?P<number>\.?[0-9][0-9.,]{0,60}"
    r"\s?(?:%|percent|per cent|thousands?|millions?|billions?|trillions?)?)\s?\)",
    re.IGNORECASE,
)
_ANY_BRACKETS = re.compile(r"\([^()]*\)")
_PIECES = re.compile(r"[^\W_]+(?:['’&.-][^\W_]+)*|[^\w\s.,;!?()\[\]{}\"'`“”‘’*_|$=~≈]")
_WITH_NUMBERS = {"dollar", "dollars", "usd", "us", "u.s", "nominal", "about", "around", "roughly", "approx"}
_WITH_NUMBERS |= {"approximately"}
_ASKED_SCALES = {10**3, 10**6, 10**9, 10**12}
_PAPER_DELETED = str.maketrans("", "", "".join(set(string.punctuation) - set(".-%")))
_PAPER_UNITS = re.compile(r"\b(?:millions?|billions?|dollars?|nominal)\b")


@dataclass(frozen=True, slots=True)
class Amount(BenchmarkScorer):
    """The answer is the same amount as the reference, or else the same words.

    Numbers are read as in the scorer `numeric`, with their sign (`-5`, `−5`, `(5)`, `minus 5`), scale (`1.5 billion`
    equals `1500 million` and `1,500,000,000`) and unit. They are equal if their values are: `12.0` equals `12`. No
    difference is tolerated unless asked for: right if `|answer - reference|` is at most the larger of
    `absolute_tolerance` and `relative_tolerance * |reference|`, both 0 by default. A number word that stands alone is
    a word: "million" is not "billion".

    `units`: with `optional` (default) a unit that only one of the two writes is taken to be the one that the question
    asked for: `12%` and `12` are equal, and `$1,234 million` equals `1234`; where both write one they must agree: `5
    million` is not `5 billion`, `$5` not `€5`. With `required`, `12%` is not `12`, and `1,234 million` is 1,234,000,000
    only. A per cent sign never divides by 100.

    Words beside the numbers must be the same, save for dollars, nominal, about and the like. `hard` is 1 if all tokens
    are equal in order, `soft` is else the F1 of the tokens, each number being one.

    `mode: paper` is the published formula: lower-case, commas and punctuation but `.-%` deleted, the words million,
    billion, dollar and nominal deleted, then equality as `hard` and token F1 as `soft`; no number is read.
    """

    absolute_tolerance: float = 0.0
    relative_tolerance: float = 0.0
    units: Literal["optional", "required"] = "optional"

    def __post_init__(self) -> None:
        check_tolerances("amount", self.absolute_tolerance, self.relative_tolerance)

    def _compare(self, answer: str, reference: str) -> Score:
        if casefold_text(answer) == casefold_text(reference):
            return RIGHT
        given, wanted = read_tokens(answer), read_tokens(reference)
        if not given or not wanted:
            return Score(0.0, 0.0, expected_got(reference, answer))
        if len(given) == len(wanted) and all(map(self._same, given, wanted)):
            return RIGHT
        soft = token_f1([_key(token) for token in given], [_key(token) for token in wanted])
        return Score(0.0, min(soft, 0.99), expected_got(reference, answer, f"F1 {soft:.2f}" if soft else ""))

    def _same(self, given: Token, wanted: Token) -> bool:
        if isinstance(given, str) or isinstance(wanted, str):
            return given == wanted
        if given.currency and wanted.currency and given.currency != wanted.currency:
            return False
        if given.percent != wanted.percent and (self.units == "required" or given.currency or wanted.currency):
            return False
        if self._close(given.value, wanted.value):
            return True
        asked = given.percent == wanted.percent and self.units == "optional"
        one_sided = (given.scale == 1) != (wanted.scale == 1) and given.scale * wanted.scale in _ASKED_SCALES
        return asked and one_sided and self._close(_without_scale(given), _without_scale(wanted))

    def _close(self, given: Decimal | None, wanted: Decimal | None) -> bool:
        if given is None or wanted is None:
            return False
        return within(given, wanted, self.absolute_tolerance, self.relative_tolerance)

    def _published(self, answer: str, references: Sequence[str]) -> Score:
        if not answer.strip():
            return Score(0.0, 0.0, "the answer is empty.")
        golds = [references] if isinstance(references, str) else references
        return best_of(_published_score(answer, gold) for gold in golds)


def read_tokens(text: str) -> list[Token]:
    """Words and numbers of `text` in order, without punctuation and without words that say nothing beside a number."""
    plain = _signs_in_front(text.translate(_DASHES))
    tokens: list[Token] = []
    end = 0
    for start, stop, number in locate_numbers(plain):
        tokens += _words(plain[end:start])
        end = stop
        if number.value is None:
            tokens.append(casefold_text(plain[start:stop]))
        elif not (_bracketed(plain, start, stop) and tokens and _same_value(tokens[-1], number)):
            tokens.append(number)
    tokens += _words(plain[end:])
    if any(isinstance(token, Number) for token in tokens):
        tokens = [token for token in tokens if token not in _WITH_NUMBERS]
    return tokens


def _words(text: str) -> list[str]:
    return _PIECES.findall(casefold_text(text))


def _bracketed(text: str, start: int, stop: int) -> bool:
    return text[max(0, start - 3) : start].rstrip(" $€£¥₹").endswith("(") and text[stop : stop + 2].strip()[:1] == ")"


def _same_value(token: Token, number: Number) -> bool:
    """Whether `number`, in brackets, only says again what stands before it, as in 5 million (5,000,000)."""
    return isinstance(token, Number) and token.value == number.value


def _signs_in_front(text: str) -> str:
    """`text` without plus signs, and with a bookkeeper's (5) as -5 where all numbers stand in brackets."""
    text = _PLUS.sub("", text)
    if re.search(r"[0-9]", _ANY_BRACKETS.sub("", text)):
        return text
    return _BRACKETED.sub(lambda match: f" -{match['before'] or match['inside'] or ''}{match['number']} ", text)


def _without_scale(number: Number) -> Decimal | None:
    return None if number.value is None else _CONTEXT.divide(number.value, Decimal(number.scale))


def _key(token: Token) -> Hashable:
    return token if isinstance(token, str) else token.value


def _published_text(text: str) -> str:
    bare = text.lower().strip().translate(_PAPER_DELETED)
    return " ".join(_PAPER_UNITS.sub("", bare).split())


def _published_score(answer: str, gold: str) -> Score:
    given, wanted = _published_text(answer), _published_text(gold)
    if given == wanted:
        return RIGHT
    soft = token_f1(given.split(), wanted.split())
    return Score(0.0, soft, expected_got(gold, answer, f"F1 {soft:.2f}" if soft else ""))

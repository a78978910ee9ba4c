"""Scorers that compare words: exact match, token F1, containment, regular expressions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from skillopt.errors import ConfigError
from skillopt.scoring.base import RIGHT, Score, Scorer, expected_got, shorten
from skillopt.scoring.normalize import Normalization, normalize, squad_text


def token_f1(given: Sequence[Hashable], wanted: Sequence[Hashable]) -> float:
    """F1 of two bags of tokens, `2 * common / (given + wanted)`, counted with repetition; two empty bags are equal."""
    if not given and not wanted:
        return 1.0
    common = sum((Counter(given) & Counter(wanted)).values())
    return 2 * common / (len(given) + len(wanted))


@dataclass(frozen=True, slots=True)
class Exact(Scorer):
    """Exact match of the normalised texts (SQuAD EM, Rajpurkar et al. 2016, with `normalize: squad`).

    `normalize`: `squad` (default), `casefold` or `none`; see `skillopt.scoring.normalize`.
    """

    normalize: Normalization = "squad"

    def _compare(self, answer: str, reference: str) -> Score:
        if normalize(answer, self.normalize) == normalize(reference, self.normalize):
            return RIGHT
        return Score(0.0, 0.0, expected_got(reference, answer))


@dataclass(frozen=True, slots=True)
class F1(Scorer):
    """Token F1 of SQuAD (Rajpurkar et al. 2016): `2 * common / (tokens of answer + tokens of reference)`.

    Tokens are the words of the `squad` normal form, counted with repetition. `soft` is F1; `hard` is 1 if F1 reaches
    `threshold` (0 < threshold <= 1, default 1).
    """

    threshold: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 < self.threshold <= 1.0:
            raise ConfigError(f"scorer 'f1': threshold is {self.threshold}; expected more than 0 and at most 1.")

    def _compare(self, answer: str, reference: str) -> Score:
        value = token_f1(squad_text(answer).split(), squad_text(reference).split())
        if value >= self.threshold:
            return Score(1.0, value, "correct.")
        return Score(0.0, value, expected_got(reference, answer, f"F1 {value:.2f}"))


@dataclass(frozen=True, slots=True)
class Contains(Scorer):
    """The normalised reference occurs in the normalised answer.

    `normalize` as in `exact`, default `casefold`. `whole_words` (default on): the occurrence must not be a part of a
    longer word or number, so "cat" is not in "concatenate" and "5" is not in "1.5"; it does not apply to scripts
    written without spaces. A long answer that lists every possibility contains the right one too: use it where the
    answer is short, or extract the answer first.
    """

    normalize: Normalization = "casefold"
    whole_words: bool = True

    def _compare(self, answer: str, reference: str) -> Score:
        text, part = normalize(answer, self.normalize), normalize(reference, self.normalize)
        pattern = re.escape(part)
        if self.whole_words:
            pattern = _left_edge(part[0]) + pattern + _right_edge(part[-1])
        if re.search(pattern, text):
            return RIGHT
        return Score(0.0, 0.0, f"expected an answer that contains {shorten(reference)}, got {shorten(answer)}.")


def _spaced(character: str) -> bool:
    """Whether words in the script of this letter or digit are set apart by spaces."""
    code = ord(character)
    unspaced = 0x0E00 <= code < 0x1100 or 0x1780 <= code < 0x1800 or code >= 0x2E80
    return character.isalnum() and not unspaced


def _left_edge(first: str) -> str:
    if not _spaced(first):
        return ""
    return r"(?<!\w)(?<![0-9][.,])" if first.isdigit() else r"(?<!\w)"


def _right_edge(last: str) -> str:
    if not _spaced(last):
        return ""
    return r"(?!\w)(?![.,][0-9])" if last.isdigit() else r"(?!\w)"


@dataclass(frozen=True, slots=True)
class Regex(Scorer):
    """The answer matches a regular expression (Python syntax).

    The pattern is the option `pattern`, or each reference where the option is empty. `ignore_case`; `full_match`: the
    pattern must cover the whole answer, else it may match anywhere. `^` and `$` match at line ends. An invalid
    `pattern` raises ConfigError at once, an invalid reference is found by `check_references` and scores 0.

    Only the first 20,000 characters of an answer are searched. Python's matcher backtracks and cannot be interrupted:
    nested repetition such as `(a+)+$` takes time exponential in the answer's length. Write patterns in which each
    character can be matched in one way only.
    """

    pattern: str = ""
    ignore_case: bool = False
    full_match: bool = False

    def __post_init__(self) -> None:
        reason = self._refuse(self.pattern)
        if reason:
            raise ConfigError(f"scorer 'regex': the pattern {self.pattern!r} {reason}.")

    def _without_references(self) -> list[str]:
        return [self.pattern] if self.pattern else []

    def _refuse(self, reference: str) -> str:
        try:
            re.compile(self.pattern or reference, self._flags())
        except (re.error, OverflowError, RecursionError, Warning) as error:
            return f"is not a valid regular expression: {error}"
        return ""

    def _flags(self) -> re.RegexFlag:
        return re.MULTILINE | (re.IGNORECASE if self.ignore_case else re.RegexFlag(0))

    def _compare(self, answer: str, reference: str) -> Score:
        wanted = self.pattern or reference
        reason = self._refuse(reference)
        if reason:
            return Score(0.0, 0.0, f"the pattern {wanted!r} {reason}.")
        expression = re.compile(wanted, self._flags())
        text = answer[:20_000]
        found = expression.fullmatch(text) if self.full_match else expression.search(text)
        if found:
            return RIGHT
        note = "the whole answer must match" if self.full_match else "no match"
        return Score(0.0, 0.0, expected_got(wanted, answer, note))

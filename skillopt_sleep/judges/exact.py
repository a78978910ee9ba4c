"""Comparison of an answer with the reference of an `exact` task.

`exact_score` asks whether the reference occurs anywhere in the answer; the mock backend's published figures rest on it.
It gives marks for nothing ("no" occurs in "I do not know"), so answers of real models are scored by `score_exact`: the
reference has to stand there in whole words, a number as the same number, and a yes or no where the answer begins or
ends, and not the other one at its other end. Text in `<answer>` tags, if there is any, is the answer. A task may name
the comparison in `judge.compare`.
"""

from __future__ import annotations

import re
from decimal import Decimal

from skillopt_sleep.judges.checks import Undecidable
from skillopt_sleep.types import TaskRecord

COMPARISONS = ("auto", "equal", "span", "number", "set")

_NOT_WORD = re.compile(r"\W+")
_ANSWER = re.compile(r"<answer>(.*?)</answer>", re.IGNORECASE | re.DOTALL)
_NUMBER = re.compile(r"(?<![\w.,-])[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?![\w]|[.,]\d)")
_NUMERIC_REFERENCE = re.compile(r"[+-]?(?:0|[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d*)(?:\.\d{1,3})?")
_ITEM_END = re.compile(r"[,;\r\n]+")
_BOOLEANS = frozenset({"yes", "no", "true", "false"})
_SHORTEST_KEYWORD = 3


def normalise(text: str) -> str:
    """Lower case, everything that is no word character as one space, none at the ends."""
    return _NOT_WORD.sub(" ", text.lower()).strip()


def exact_score(reference: str, response: str) -> float:
    """1 if the normalised reference occurs in the normalised answer, else 0; 0 without a reference."""
    wanted = normalise(reference)
    return 1.0 if wanted and wanted in normalise(response) else 0.0


def keyword_soft_score(reference: str, response: str) -> float:
    """The share of the reference's distinct words of three letters and more that occur in the answer; 0 without any."""
    words = {word for word in normalise(reference).split() if len(word) >= _SHORTEST_KEYWORD}
    said = normalise(response)
    return sum(word in said for word in words) / len(words) if words else 0.0


def score_exact(task: TaskRecord, response: str) -> tuple[float, float, str]:
    """(hard, soft, rationale) of an answer to an `exact` task; soft is the share of keywords when hard is 0."""
    hard = 1.0 if matches(task.reference, response, comparison_of(task)) else 0.0
    soft = max(hard, keyword_soft_score(task.reference, response))
    return hard, soft, "" if hard else "the answer does not state the reference"


def comparison_of(task: TaskRecord) -> str:
    """How a task wants its answer compared: `judge.compare`, else `auto`. Raises Undecidable for an unknown way."""
    chosen = task.judge.get("compare", "auto") if isinstance(task.judge, dict) else "auto"
    if chosen not in COMPARISONS:
        raise Undecidable(f"task {task.id}: judge.compare is {chosen!r}; expected one of {', '.join(COMPARISONS)}.")
    return str(chosen)


def matches(reference: str, response: str, comparison: str = "auto") -> bool:
    """Whether an answer states the reference; see the module for `auto`. False without a reference."""
    tagged = _ANSWER.findall(response)
    said = tagged[-1] if tagged else response
    if comparison == "auto":
        comparison = "number" if _NUMERIC_REFERENCE.fullmatch(reference.strip()) else "span"
    if not normalise(reference):
        return False
    if comparison == "equal":
        return normalise(reference) == normalise(said)
    if comparison == "number":
        return _same_number(reference, said)
    if comparison == "set":
        return _items(reference) == _items(said)
    return _whole_words(normalise(reference), normalise(said))


def _whole_words(wanted: str, said: str) -> bool:
    words = said.split()
    if wanted in _BOOLEANS:
        return bool(words) and {words[0], words[-1]} & _BOOLEANS == {wanted}
    return f" {wanted} " in f" {said} "


def _same_number(reference: str, said: str) -> bool:
    wanted = _NUMBER.fullmatch(reference.strip())
    if wanted is None:
        return False
    return any(_value(found) == _value(wanted.group()) for found in _NUMBER.findall(said))


def _value(text: str) -> Decimal:
    return Decimal(text.replace(",", ""))


def _items(text: str) -> frozenset[str]:
    return frozenset(filter(None, (normalise(item) for item in _ITEM_END.split(text))))

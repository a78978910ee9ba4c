"""Audit of multiple-choice items: does the text of an option give the answer away?"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from skillopt.scoring.normalize import squad_text
from skillopt.types import Item

_OPTION_FIELDS = ("options", "choices")
_ANSWER_FIELDS = ("answer", "answers", "label", "correct", "reference", "gold", "ground_truth")
_LEAST = 4
_SHARE = 0.8
_CHANCE = 0.01


def audit_choices(items: Sequence[Item], *, options_field: str = "", answer_field: str = "") -> list[str]:
    """Notices about option texts that predict the label.

    An option text (SQuAD normal form) is named when it stands in at least 4 items, is right in at least 80 % of them,
    and would be right that often with a probability below 1 % if the right option were drawn evenly (binomial tail at
    the mean of 1 / number of options). Options are a list, or a mapping of labels to texts; an answer is a label, a
    position as a number from 0, a letter, or the text. Items without options are left out. A skill can learn such a
    cue instead of the task, and a gate on items of the same kind rewards it.
    """
    seen: dict[str, list[tuple[bool, float]]] = defaultdict(list)
    shown: dict[str, str] = {}
    for item in items:
        options = _options(_first(item.data, (options_field,) if options_field else _OPTION_FIELDS))
        right = _right(_first(item.data, (answer_field,) if answer_field else _ANSWER_FIELDS), options)
        if right is None:
            continue
        for text in {squad_text(text): text for text in options.values()}.values():
            shown.setdefault(squad_text(text), text)
            seen[squad_text(text)].append((squad_text(text) == right, 1 / len(options)))
    return [_notice(shown[key], rows) for key, rows in seen.items() if _predicts(rows)]


def _first(data: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((data[name] for name in names if data.get(name) is not None), None)


def _options(value: Any) -> dict[str, str]:
    """Label to text; lists get the labels A, B, C, ..."""
    if isinstance(value, Mapping):
        return {str(label).strip().upper(): str(text) for label, text in value.items()}
    if isinstance(value, (list, tuple)) and len(value) <= 26:
        return {chr(ord("A") + index): str(text) for index, text in enumerate(value)}
    return {}


def _right(answer: Any, options: Mapping[str, str]) -> str | None:
    """Normal form of the right option's text, or None if it cannot be told."""
    if isinstance(answer, (list, tuple)):
        answer = answer[0] if answer else None
    if answer is None or len(options) < 2:
        return None
    if isinstance(answer, int) and not isinstance(answer, bool) and str(answer) not in options:
        return squad_text(list(options.values())[answer]) if 0 <= answer < len(options) else None
    label = str(answer).strip().strip("().:").upper()
    text = squad_text(options.get(label, str(answer)))
    return text if text in {squad_text(option) for option in options.values()} else None


def _predicts(rows: Sequence[tuple[bool, float]]) -> bool:
    count, right = len(rows), sum(hit for hit, _ in rows)
    if count < _LEAST or right < _SHARE * count:
        return False
    chance = math.fsum(share for _, share in rows) / count
    return math.fsum(_binomial(count, hits, chance) for hits in range(right, count + 1)) < _CHANCE


def _binomial(count: int, hits: int, chance: float) -> float:
    """Probability of exactly `hits` in `count` draws, through logarithms so that large counts do not overflow."""
    ways = math.lgamma(count + 1) - math.lgamma(hits + 1) - math.lgamma(count - hits + 1)
    return math.exp(ways + hits * math.log(chance) + (count - hits) * math.log1p(-chance))


def _notice(text: str, rows: Sequence[tuple[bool, float]]) -> str:
    right = sum(hit for hit, _ in rows)
    return (
        f"the option '{text}' stands in {len(rows)} items and is right in {right} of them; a skill can learn this cue "
        "instead of the task, so balance the items."
    )

"""Choices of a question: read from every form that the data have, and shuffled by a seed. Pure functions."""

from __future__ import annotations

import hashlib
import random
import re
import string
from collections.abc import Mapping
from typing import Any

from skillopt.errors import DataError

Row = dict[str, Any]
Choice = dict[str, str]
_MOST = len(string.ascii_uppercase)
_LABEL = re.compile(r"[A-Z0-9]{1,2}")
_TEXT_FIELDS = ("text", "content")


class MissingPartError(DataError):
    """A row without question, choices or right choice: no task at all, rather than a broken one."""


def read_choices(value: Any, where: str) -> list[Choice]:
    """Choices as `{label, text}`.

    `value`: a list of texts or of objects with `text` or `content` and perhaps a `label`, or one object of texts by
    label. What has no label gets that of its position: A, B, C, ...
    """
    if not value:
        raise MissingPartError(f"{where}: field 'choices' is missing or empty.")
    if isinstance(value, Mapping):
        value = [{"label": label, "text": text} for label, text in value.items()]
    if not isinstance(value, list) or len(value) > _MOST:
        raise DataError(f"{where}: field 'choices' is not a list of at most {_MOST} choices.")
    choices = [_choice(entry, label, where) for label, entry in zip(string.ascii_uppercase, value, strict=False)]
    labels = [choice["label"] for choice in choices]
    twice = next((label for label in labels if labels.count(label) > 1), "")
    if twice:
        raise DataError(f"{where}: field 'choices' has two choices with the label {twice!r}.")
    return choices


def read_correct(value: Any, choices: list[Choice], where: str) -> Choice:
    """The right choice: one of `choices`, or one that they lack.

    `value`: a label, a text of a choice, or an object with `label`, `text` or both.
    """
    label, text = _label_and_text(value, choices)
    if not label and not text:
        raise MissingPartError(f"{where}: field 'correct_choice' is missing or empty.")
    by_text = next((choice for choice in choices if text and _same(choice["text"], text)), None)
    by_label = next((choice for choice in choices if choice["label"] == label), None)
    if by_label and by_text and not _same(by_label["text"], by_text["text"]):
        raise DataError(f"{where}: field 'correct_choice' has label {label!r} but the text of {by_text['label']!r}.")
    found = by_label or by_text
    if found:
        return found
    if not (label and text):
        raise DataError(f"{where}: field 'correct_choice' is {label or text!r}, which is none of the choices.")
    return _choice({"label": label, "text": text}, label, where)


def read_question(row: Row) -> tuple[str, list[Choice], Choice]:
    """Question, choices and right choice of a row, which holds them itself or under `mcq`.

    A right choice that is missing among the choices is put to them, in the order of labels. Raises MissingPartError,
    or DataError for what cannot be a question.
    """
    where, mcq = f"item {row.get('id')!r}", row.get("mcq")
    inner = {**row, **mcq} if isinstance(mcq, Mapping) else row
    question = inner.get("question")
    if not isinstance(question, str) or not question.strip():
        raise MissingPartError(f"{where}: field 'question' is missing or empty.")
    choices = read_choices(inner.get("choices"), where)
    correct = read_correct(inner.get("correct_choice"), choices, where)
    if correct not in choices:
        choices = sorted([*choices, correct], key=lambda choice: choice["label"])
    if not 2 <= len(choices) <= _MOST:
        raise DataError(f"{where}: field 'choices' holds {len(choices)} choice(s); expected 2 to {_MOST}.")
    return question, choices, correct


def shuffle_choices(row: Row, seed: int) -> Row:
    """The row with its choices in the order that `seed` and its id give, labelled A, B, C, ... from the top.

    The order is that of `random.Random(n).shuffle`, where n is the number in the first 16 hex digits of the SHA-256 of
    `<seed>:<id>`: the rule of the published benchmark.
    """
    number = int(hashlib.sha256(f"{seed}:{row['id']}".encode()).hexdigest()[:16], 16)
    order = list(row["choices"])
    random.Random(number).shuffle(order)
    shown = [{"label": label, "text": old["text"]} for label, old in zip(string.ascii_uppercase, order, strict=False)]
    right = [old["label"] for old in order].index(row["correct_choice"]["label"])
    return {**row, "choices": shown, "correct_choice": shown[right]}


def _choice(entry: Any, position: str, where: str) -> Choice:
    given = entry if isinstance(entry, Mapping) else {"text": entry}
    label = _plain_label(given.get("label")) or position
    text = _text(given)
    if not text:
        raise DataError(f"{where}: field 'choices', choice {label}: there is no text.")
    if not _LABEL.fullmatch(label):
        raise DataError(f"{where}: field 'choices' has the label {label!r}; expected one or two letters or digits.")
    return {"label": label, "text": text}


def _label_and_text(value: Any, choices: list[Choice]) -> tuple[str, str]:
    if isinstance(value, Mapping):
        return _plain_label(value.get("label")), _text(value)
    label = _plain_label(value)
    if any(choice["label"] == label for choice in choices) or not isinstance(value, str):
        return label, ""
    return "", value.strip()


def _plain_label(value: Any) -> str:
    return "" if value is None else str(value).strip(" .():").upper()


def _text(entry: Mapping[str, Any]) -> str:
    value = next((entry[name] for name in _TEXT_FIELDS if entry.get(name) is not None), "")
    return value.strip() if isinstance(value, str) else str(value)


def _same(one: str, other: str) -> bool:
    return one.split() == other.split()

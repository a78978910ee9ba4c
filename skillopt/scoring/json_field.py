"""The scorer that reads one field of a JSON object and hands it to another scorer."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from skillopt.errors import ConfigError, ReplyError
from skillopt.scoring.base import Score, Scorer, shorten
from skillopt.types import canonical_json


@dataclasses.dataclass(frozen=True, slots=True)
class JsonField(Scorer):
    """One field of the JSON object in the answer is right by another scorer.

    `field`: name of the field, dotted for nested objects, numbers for list positions (`answer.items.0`); required.
    `scorer` and `options` choose the scorer of the value. Text is compared as it is, `null` as empty, numbers, lists
    and objects by their JSON text, `true` and `false` as these words. The object may stand in prose or in a code
    fence. An answer without an object, or whose object lacks the field, scores 0.
    """

    field: str = ""
    scorer: str = "exact"
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    _inner: Scorer = dataclasses.field(init=False, repr=False)

    def __post_init__(self) -> None:
        from skillopt.scoring.registry import get_scorer

        if not self.field or not all(self.field.split(".")):
            raise ConfigError(
                f"scorer 'json_field': field is {self.field!r}; expected a name such as 'answer' or 'a.b'."
            )
        if self.scorer == "json_field":
            raise ConfigError("scorer 'json_field': scorer cannot be json_field again; use a dotted field.")
        object.__setattr__(self, "_inner", get_scorer(self.scorer, **self.options))

    def __call__(self, answer: str, references: Sequence[str]) -> Score:
        """Score the field's text against the best of `references`, by the inner scorer."""
        from skillopt.utils.json_reply import read_reply

        if not answer.strip():
            return self._inner(answer, references)
        try:
            value = read_reply(answer).value
        except ReplyError as error:
            wanted = f"expected a JSON object with the field '{self.field}'"
            return Score(0.0, 0.0, f"{wanted}, got {shorten(answer)} ({error.outcome}).")
        text, problem = self._lookup(value)
        if problem:
            return Score(0.0, 0.0, problem)
        score = self._inner(text, references)
        return (
            score
            if score.hard == 1.0
            else dataclasses.replace(score, feedback=f"field '{self.field}': {score.feedback}")
        )

    def check_references(self, references: Sequence[str], where: str = "item") -> None:
        """Raise DataError if the inner scorer cannot use these references."""
        self._inner.check_references(references, where)

    def _lookup(self, value: object) -> tuple[str, str]:
        """Text of the field, or what is missing."""
        seen = ""
        for name in self.field.split("."):
            if isinstance(value, dict) and name in value:
                value = value[name]
            elif (
                isinstance(value, list)
                and name.isascii()
                and name.isdigit()
                and len(name) < 9
                and int(name) < len(value)
            ):
                value = value[int(name)]
            else:
                return "", _missing(name, seen, value)
            seen = f"{seen}.{name}".strip(".")
        if isinstance(value, str):
            return value, ""
        return "" if value is None else canonical_json(value), ""


def _missing(name: str, seen: str, value: object) -> str:
    where = f"'{seen}'" if seen else "the JSON object"
    keys = [str(key) for key in value] if isinstance(value, dict) else []
    near = get_close_matches(name, keys, n=1)
    hint = f"; it has {shorten(near[0])}" if near else (f"; it has {shorten(', '.join(keys))}" if keys else "")
    return f"{where} has no field '{name}'{hint}."

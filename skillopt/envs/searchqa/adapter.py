"""The environment `searchqa`: a question with search results, answered in a few words, scored by words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, cast

from skillopt.datasets.readers import is_row_id
from skillopt.envs.answers import AnswerTag
from skillopt.envs.benchmark import BenchmarkEnv, Row, headed, materialize_command
from skillopt.envs.searchqa.context import shorten_context
from skillopt.errors import DataError
from skillopt.scoring import Score, get_scorer
from skillopt.scoring.base import Mode
from skillopt.scoring.squad import squad_scores
from skillopt.types import Item, JsonObject


@dataclass(eq=False)
class SearchQAEnv(BenchmarkEnv):
    """Items with `question`, `context` (search results, each after the mark `[DOC]`) and `answers`.

    `hard` is exact match, `soft` token F1, both against the best of the accepted answers.
    """

    workers: int = 64
    tag: ClassVar[AnswerTag] = AnswerTag()

    def __post_init__(self) -> None:
        super().__post_init__()
        self._scorer = get_scorer("squad", mode=self.scoring)

    def normalize(self, row: Row) -> Row:
        """The row with its id from the column `key` of the public data, and with answers as a list.

        A text in `answers` is one answer, or a list in JSON, as a cell of a CSV file holds it. With `scoring: paper`
        it stays a text.
        """
        key, answers = row.get("key"), row.get("answers")
        if is_row_id(row["id"]) and isinstance(key, str) and key.strip():
            row = {**row, "id": key}
        return {**row, "answers": _listed(answers)} if isinstance(answers, str) and self.scoring == "strict" else row

    def check(self, item: Item) -> None:
        """Raise DataError for an item without question or answer."""
        if not {"question", "context", "answers"} & item.data.keys():
            raise DataError(
                f"item {item.id!r} is an id without a task; `{materialize_command(type(self))}` looks up what belongs "
                "to the ids."
            )
        self.text_of(item, "question", required=True)
        for name in ("question", "context"):
            value = item.data.get(name)
            if value is not None and not isinstance(value, str):
                raise DataError(f"item {item.id!r}: field {name!r} is a {type(value).__name__}; expected a text.")
        if not self.references(item):
            raise DataError(f"item {item.id!r}: field 'answers' holds no answer; expected a list of texts.")

    def messages(self, item: Item, skill: str) -> list[JsonObject]:
        """Instructions and skill, then the search results and the question."""
        context = shorten_context(self.text_of(item, "context"))
        task = headed({"Context": context, "Question": self.question(item)})
        return [
            {"role": "system", "content": self.with_skill("system", skill)},
            {"role": "user", "content": task},
        ]

    def answer(self, reply_text: str) -> str:
        """The text of the last answer tag, else the last line."""
        return self.tag(reply_text)

    def answered(self, reply_text: str) -> bool:
        """Whether a reply holds an answer tag with something in it."""
        return bool(self.tag.find(reply_text))

    def score(self, item: Item, answer: str) -> Score:
        """Exact match as `hard`, F1 as `soft`."""
        return self._scorer(answer, self._golds(item))

    def task_type(self, item: Item) -> str:
        """`qa`, unless the item says otherwise."""
        return super().task_type(item) or "qa"

    def reference(self, item: Item) -> str:
        """The accepted answers, joined by ` | `."""
        return " | ".join(self.references(item))

    def references(self, item: Item) -> list[str]:
        """The accepted answers. Raises DataError for anything else than texts."""
        value = item.data.get("answers")
        answers = [value] if isinstance(value, str) else [] if value is None else value
        if not isinstance(answers, list) or not all(isinstance(answer, str) for answer in answers):
            raise DataError(f"item {item.id!r}: field 'answers' is {value!r}; expected a list of texts.")
        return [answer for answer in answers if answer.strip()]

    def extras(self, item: Item, answer: str) -> Mapping[str, Any]:
        """`em`, `f1`, `sub_em` and `gold_answers`."""
        scores = asdict(squad_scores(answer, self._golds(item), cast(Mode, self.scoring)))
        return {**scores, "gold_answers": self.references(item)}

    def _golds(self, item: Item) -> Sequence[str]:
        """What an answer is compared with: as it is in the data for `paper`, which reads a text letter by letter."""
        return cast(Sequence[str], item.data["answers"]) if self.scoring == "paper" else self.references(item)


def _listed(text: str) -> list[Any]:
    """The list that a cell of a table holds: the one it is in JSON, or the text alone."""
    if text.lstrip().startswith("["):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return [text]
        if isinstance(value, list):
            return value
    return [text]

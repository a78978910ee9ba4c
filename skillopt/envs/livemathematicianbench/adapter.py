"""The environment `livemathematicianbench`: a question about a theorem, answered with the label of a choice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from skillopt.datasets.audit import audit_choices
from skillopt.datasets.base import SplitDataLoader
from skillopt.envs.answers import AnswerTag
from skillopt.envs.benchmark import BenchmarkEnv, Row, headed, materialize_command
from skillopt.envs.livemathematicianbench.choices import MissingPartError, read_question
from skillopt.envs.livemathematicianbench.loader import ChoiceLoader, own_id
from skillopt.errors import DataError
from skillopt.scoring import Score
from skillopt.scoring.base import Mode
from skillopt.scoring.labels import read_label, score_label
from skillopt.types import Item, JsonObject

NO_TYPE = "math_mcq"
"""Task type of items without a theorem type."""


@dataclass(eq=False)
class LiveMathematicianBenchEnv(BenchmarkEnv):
    """Items with `question`, `choices`, `correct_choice`, and the theorem behind them.

    `shuffle_choices`: show the choices in an order that the seed of the batch gives (in training another one in each
    batch, in evaluations that of the run's seed). `use_theorem`, `use_sketch`: show the theorem, and the sketch of its
    proof, beside the question.
    """

    shuffle_choices: bool = True
    use_theorem: bool = False
    use_sketch: bool = False
    workers: int = 64
    exec_timeout: float = 600
    tag: ClassVar[AnswerTag] = AnswerTag()

    def make_loader(self, **settings: Any) -> SplitDataLoader:
        """A loader that shuffles the choices of each batch."""
        return ChoiceLoader(self.normalize, shuffle=self.shuffle_choices, **settings)

    def setup(self, cfg: Mapping[str, Any]) -> None:
        """Load the splits, check every item, and say it when the text of a choice gives answers away."""
        super().setup(cfg)
        plain = [
            Item(item.id, {"options": labels_of(item), "answer": item.data["correct_choice"]["label"]})
            for item in self.all_items()
        ]
        self._rows.notices += audit_choices(plain)

    def normalize(self, row: Row) -> Row:
        """The row in the form `{id, question, choices, correct_choice, theorem_type, ...}`, from that or the raw form.

        The id of a raw row is `<month>:<no>`, or `<no>`. Raises DataError for a row that is no question.
        """
        row = {**row, "id": own_id(row)}
        try:
            question, choices, correct = read_question(row)
        except MissingPartError as error:
            hint = f" If the file holds ids only, `{materialize_command(type(self))}` looks up what belongs to them."
            raise MissingPartError(f"{error}{hint}") from None
        types = row.get("theorem_type")
        kinds = [types] if isinstance(types, str) else types or []
        if not isinstance(kinds, list):
            raise DataError(f"item {row['id']!r}: field 'theorem_type' is {types!r}; expected a list of texts.")
        kept = {name: value for name, value in row.items() if name != "mcq"}
        named = [str(kind).strip() for kind in kinds if str(kind).strip()]
        return {**kept, "question": question, "choices": choices, "correct_choice": correct, "theorem_type": named}

    def check(self, item: Item) -> None:
        """Raise DataError for an item that lacks the text which the settings ask to show."""
        for wanted, name in ((self.use_theorem, "theorem"), (self.use_sketch, "sketch")):
            if wanted:
                self.text_of(item, name, required=True)

    def messages(self, item: Item, skill: str) -> list[JsonObject]:
        """Instructions and skill, then question, choices, and what the settings show of the theorem."""
        shown = {
            "Question": self.question(item),
            "Choices": "\n".join(f"{label}. {text}" for label, text in labels_of(item).items()),
            "Theorem": self.text_of(item, "theorem") if self.use_theorem else "",
            "Proof sketch": self.text_of(item, "sketch") if self.use_sketch else "",
        }
        return [
            {"role": "system", "content": self.with_skill("system", skill)},
            {"role": "user", "content": headed(shown)},
        ]

    def answer(self, reply_text: str) -> str:
        """The text of the last answer tag, else the last line."""
        return self.tag(reply_text)

    def answered(self, reply_text: str) -> bool:
        """Whether a reply holds an answer tag with something in it."""
        return bool(self.tag.find(reply_text))

    def score(self, item: Item, answer: str) -> Score:
        """1 if the answer names the right choice, else 0."""
        return score_label(answer, item.data["correct_choice"]["label"], labels_of(item), self._mode)

    def task_type(self, item: Item) -> str:
        """The first theorem type."""
        return next(iter(item.data.get("theorem_type") or ()), NO_TYPE)

    def get_task_types(self) -> list[str]:
        """Task types of all items, sorted."""
        return sorted(super().get_task_types())

    def reference(self, item: Item) -> str:
        """Theorem and proof sketch, as far as the item has them."""
        return headed({"Theorem": self.text_of(item, "theorem"), "Proof sketch": self.text_of(item, "sketch")})

    def references(self, item: Item) -> list[str]:
        """The text of the right choice, and theorem and sketch, which tell it."""
        texts = [item.data["correct_choice"]["text"], self.text_of(item, "theorem"), self.text_of(item, "sketch")]
        return [text for text in texts if text.strip()]

    def extras(self, item: Item, answer: str) -> Mapping[str, Any]:
        """Label and text of the given and of the right choice."""
        given, right = read_label(answer, labels_of(item), self._mode), item.data["correct_choice"]
        named = {"predicted_label": given.label, "predicted_text": given.text}
        wanted = {"correct_label": right["label"], "correct_text": right["text"]}
        return {**named, **wanted}

    @property
    def _mode(self) -> Mode:
        return cast(Mode, self.scoring)


def labels_of(item: Item) -> dict[str, str]:
    """Text of each choice, by its label."""
    return {choice["label"]: choice["text"] for choice in item.data["choices"]}

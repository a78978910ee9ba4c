"""The environment `jsonl`: one prompt template over the rows of a data file, one way to read the answer, one scorer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from skillopt.datasets.base import SplitDataLoader
from skillopt.envs.jsonl.extract import Extractor, get_extractor
from skillopt.envs.jsonl.template import Template
from skillopt.envs.splits import SplitEnv
from skillopt.errors import ConfigError, DataError
from skillopt.scoring import Score, Scorer, get_scorer, scorer_fingerprint
from skillopt.types import Item, JsonObject, content_hash
from skillopt.utils.files import read_text

QUESTION_FIELDS = ("question", "input", "prompt", "text", "query")
ANSWER_FIELDS = ("answer", "answers", "label", "target", "output", "reference")
_MARKED_NUMBER = re.compile(r"(?=.*[-.%])[-+]?[\d,]*\.?\d+ ?%?")
_RULES_VERSION = 1  # raise it whenever the same row, settings and reply could end in another result


@dataclass(eq=False)
class JsonlEnv(SplitEnv):
    """Tasks from a CSV, JSON or JSON Lines file, or from split folders. The fields are the `env.*` keys.

    The skill goes into the system message, after `system_prompt`; with neither there is no system message.
    `prompt` is the user message: `{field}` stands for a field of the row, `{question}` also for `question_field`.
    Both prompts may be the name of a `.md` or `.txt` file that holds the text.
    `answer_field` holds a text, a number, a list of accepted texts, or, with `references_separator`, several in one
    text. `extract` (`last_line`, `all`, `tag`, `regex`, `json_field`) takes the answer out of the reply, `scorer`
    compares it. `exec_timeout`: seconds for one item.

    Raises ConfigError for wrong settings at once, and DataError for wrong rows in `setup`, before any call.
    """

    prompt: str = "{question}"
    system_prompt: str = ""
    question_field: str = "question"
    answer_field: str = "answer"
    id_field: str = "id"
    task_type_field: str = ""
    extract: str = "last_line"
    extract_arg: str = ""
    scorer: str = "exact"
    scorer_options: Mapping[str, Any] | None = None
    references_separator: str = ""

    def __post_init__(self) -> None:
        self.prompt = _text_or_file("prompt", self.prompt)
        self.system_prompt = _text_or_file("system_prompt", self.system_prompt)
        self._template = Template.parse(self.prompt)
        self._extract: Extractor = get_extractor(self.extract, self.extract_arg)
        self._score: Scorer = get_scorer(self.scorer, **(self.scorer_options or {}))
        super().__post_init__()

    def make_loader(self, **settings: Any) -> SplitDataLoader:
        """A loader that reads ids from `id_field`."""
        return SplitDataLoader(id_field=self.id_field, **settings)

    def setup(self, cfg: Mapping[str, Any]) -> None:
        """Load the splits, settle which fields are meant, and check every row."""
        super().setup(cfg)
        items = self.all_items()
        self._choose_fields(list(dict.fromkeys(key for item in items for key in item.data)))
        references: list[str] = []
        for item in items:
            if not self._template.render(item, self._names).strip():
                raise DataError(f"item {item.id!r}: the prompt is empty; fill in the fields that it uses.")
            accepted = self.references(item)
            self._score.check_references(accepted, f"item {item.id!r}, field {self.answer_field!r}")
            references += accepted
        self._notice_numbers(references)

    def messages(self, item: Item, skill: str) -> list[JsonObject]:
        """System message (instructions, then skill) if there is any, then the filled-in template."""
        system = "\n\n".join(text.strip("\n") for text in (self.system_prompt, skill) if text.strip())
        user: JsonObject = {"role": "user", "content": self._template.render(item, self._names)}
        return [{"role": "system", "content": system}, user] if system else [user]

    def answer(self, reply_text: str) -> str:
        """The answer inside a reply, as `extract` says."""
        return self._extract(reply_text)

    def score(self, item: Item, answer: str) -> Score:
        """Compare an answer with the best of the item's references."""
        return self._score(answer, self.references(item))

    def question(self, item: Item) -> str:
        """The question field, or the filled-in template where rows have no such field."""
        value = item.data.get(self.question_field)
        return value if isinstance(value, str) else self._template.render(item, self._names)

    def task_type(self, item: Item) -> str:
        """The row's type, from `task_type_field`, else `task_type`."""
        return str(item.data.get(self.task_type_field or "task_type") or "")

    def reference(self, item: Item) -> str:
        """The accepted answers, joined by ` | `."""
        return " | ".join(self.references(item))

    def references(self, item: Item) -> list[str]:
        """The accepted answers of an item. Raises DataError when it has none."""
        value = item.data.get(self.answer_field)
        if isinstance(value, str) and value.strip():
            parts = value.split(self.references_separator) if self.references_separator else [value]
            return [part.strip() for part in parts if part.strip()] if self.references_separator else parts
        if isinstance(value, Sequence) and not isinstance(value, str) and value:
            return [_as_text(entry) for entry in value]
        if isinstance(value, (bool, int, float, Mapping)):
            return [_as_text(value)]
        raise DataError(
            f"item {item.id!r}: field {self.answer_field!r} holds no answer; fill it in or leave the row out."
        )

    def grader_patterns(self) -> Sequence[str]:
        """The pattern of the scorer `regex`, or the references of all items where each is a pattern."""
        if self.scorer != "regex":
            return ()
        pattern = str((self.scorer_options or {}).get("pattern") or "")
        return [pattern] if pattern else self._all_references()

    def grader_literals(self) -> Sequence[str]:
        """The references of all items for the scorer `contains`."""
        return self._all_references() if self.scorer == "contains" else ()

    def _notice_numbers(self, references: Sequence[str]) -> None:
        """Say it when answers are numbers whose points, signs and per cents the scorer does not look at."""
        squad = self.scorer in ("exact", "f1") and (self.scorer_options or {}).get("normalize", "squad") == "squad"
        numbers = sum(bool(_MARKED_NUMBER.fullmatch(reference.strip())) for reference in references)
        if squad and 2 * numbers >= len(references):
            self._rows.notices.append(
                f"Most answers are numbers, but the scorer {self.scorer} ignores punctuation: 1.5 is as good as 15, "
                "and -5 as 5; env.scorer=numeric compares their values."
            )

    def _all_references(self) -> list[str]:
        return [reference for item in self.all_items() for reference in self.references(item)]

    def extras(self, item: Item, answer: str) -> Mapping[str, Any]:  # noqa: ARG002
        """The list of accepted answers, where there are several."""
        accepted = self.references(item)
        return {"references": accepted} if len(accepted) > 1 else {}

    def fingerprint(self) -> str:
        """Hash of templates, fields, extraction, scorer and token limit."""
        return content_hash(
            "jsonl",
            _RULES_VERSION,
            [self.prompt, self.system_prompt, self.question_field, self.answer_field, self.task_type_field],
            [self.extract, self.extract_arg, self.references_separator, self.max_completion_tokens],
            scorer_fingerprint(self.scorer, self.scorer_options or {}),
        )

    @property
    def _names(self) -> Mapping[str, str]:
        return {"question": self.question_field}

    def _choose_fields(self, fields: Sequence[str]) -> None:
        choose = partial(_choose, fields, self._rows.notices)
        for key, usual in (("question_field", "question"), ("answer_field", "answer")):
            if getattr(self, key) not in (usual, *fields):  # asked for by name, so nothing else will do
                raise DataError(_no_field(key, getattr(self, key), fields))
        if self.question_field not in fields and _asks(self._template, "question", self.question_field, fields):
            self.question_field = choose("question_field", self.question_field, QUESTION_FIELDS)
        if self.answer_field not in fields:
            self.answer_field = choose("answer_field", self.answer_field, ANSWER_FIELDS)
        if self.task_type_field and self.task_type_field not in fields:
            raise DataError(_no_field("task_type_field", self.task_type_field, fields))
        if self.answer_field in (*self._template.fields, self.question_field):
            raise ConfigError(f"env.prompt shows {self.answer_field!r}, the field of the right answer; leave it out.")


def _asks(template: Template, placeholder: str, name: str, fields: Sequence[str]) -> bool:
    return any(used in (placeholder, name) and used not in fields for used in template.fields)


def _choose(fields: Sequence[str], notices: list[str], key: str, wanted: str, usual: Sequence[str]) -> str:
    found = [name for name in usual if name in fields]
    if len(found) != 1:
        raise DataError(_no_field(key, wanted, fields))
    notices.append(f"The data has no field {wanted!r}; env.{key}={found[0]} is used.")
    return found[0]


def _no_field(key: str, wanted: str, fields: Sequence[str]) -> str:
    """What is wrong, and the fields to choose from; not `id`, which the reader may have made up."""
    alike = next((name for name in fields if name.casefold() == wanted.casefold()), "")
    if alike:
        return f"env.{key}: the data has no field {wanted!r}, but {alike!r}, and case counts; set env.{key}={alike}."
    named = ", ".join(name for name in fields if name != "id")
    return f"env.{key}: the data has no field {wanted!r}; set it to one of {named}."


def _text_or_file(key: str, value: str) -> str:
    """The text itself, or that of the file it names: one line that ends in .md or .txt."""
    if "\n" in value or not value.endswith((".md", ".txt")):
        return value
    path = Path(value)
    if not path.is_file():
        raise ConfigError(f"env.{key}: there is no file {value}; write the text itself or the name of a text file.")
    return read_text(path).removeprefix("\ufeff").rstrip("\r\n")


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

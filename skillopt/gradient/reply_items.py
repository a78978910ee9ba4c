"""One item of a reply as a model wrote it, for every update mode: what is forgiven, what is refused, and why.

Lenient where a slip is harmless (case of a word, a null where nothing is needed, a count as text), strict where
guessing would change the meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, StrictStr, ValidationError, field_validator, model_validator

from skillopt.types import Edit, PatchItem, SkillCandidate, Suggestion

_SOURCES = ("failure", "success", "mixed")
_KINDS = ("add_rule", "remove_rule", "merge_rules", "reorganize", "compress", "clarify")
_PRIORITIES = ("high", "medium", "low")


def count_or_none(value: object) -> int | None:
    """A whole number of at least 1, also given as text or as a float without a fraction; anything else is None."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return int(number) if 1 <= number < 1e9 and number == int(number) else None


def _word(value: object, known: tuple[str, ...], otherwise: str) -> str:
    """`value` as one of the known words, whatever its case and its separators; else the other one."""
    word = value.strip().lower().replace(" ", "_").replace("-", "_") if isinstance(value, str) else ""
    return word if word in known else otherwise


class _ItemReply(BaseModel):
    """What items of all kinds have."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    support_count: int | None = None
    source_type: Literal["failure", "success", "mixed", ""] = ""

    @field_validator("support_count", mode="before")
    @classmethod
    def _count(cls, value: object) -> int | None:
        return count_or_none(value)

    @field_validator("source_type", mode="before")
    @classmethod
    def _known_source(cls, value: object) -> str:
        return _word(value, _SOURCES, "")


class EditReply(_ItemReply):
    """One edit as a model wrote it."""

    op: Literal["append", "insert_after", "replace", "delete"]
    content: StrictStr = ""
    target: StrictStr = ""

    @field_validator("op", mode="before")
    @classmethod
    def _any_case(cls, value: object) -> object:
        return value.strip().lower() if isinstance(value, str) else value

    @field_validator("target", mode="before")
    @classmethod
    def _null_target(cls, value: object) -> object:
        return "" if value is None else value

    @model_validator(mode="before")
    @classmethod
    def _delete_needs_no_content(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and data.get("content") is None and _is_delete(data.get("op")):
            return {**data, "content": ""}
        return data

    @model_validator(mode="after")
    def _complete(self) -> EditReply:
        if self.op in ("append", "insert_after") and not self.content.strip():
            raise ValueError(f"content: {self.op} needs text")
        if self.op == "replace" and "content" not in self.model_fields_set:
            raise ValueError("content: replace needs text")
        if self.op in ("replace", "delete") and not self.target:
            raise ValueError(f"target: {self.op} needs the text to look for")
        return self

    def to_item(self) -> Edit:
        """The edit as the other rooms know it."""
        return Edit(self.op, self.content, self.target, self.support_count, self.source_type)


def _is_delete(op: object) -> bool:
    return isinstance(op, str) and op.strip().lower() == "delete"


class SuggestionReply(_ItemReply):
    """One suggestion as a model wrote it. Only `instruction` must be there."""

    type: str = ""
    title: StrictStr = ""
    motivation: StrictStr = ""
    instruction: StrictStr
    priority_hint: str = "medium"

    @field_validator("type", mode="before")
    @classmethod
    def _known_type(cls, value: object) -> str:
        return _word(value, _KINDS, "")

    @field_validator("priority_hint", mode="before")
    @classmethod
    def _known_priority(cls, value: object) -> str:
        return _word(value, _PRIORITIES, "medium")

    @field_validator("title", "motivation", mode="before")
    @classmethod
    def _null_text(cls, value: object) -> object:
        return "" if value is None else value

    @model_validator(mode="after")
    def _complete(self) -> SuggestionReply:
        if not self.instruction.strip():
            raise ValueError("instruction: a suggestion needs text")
        return self

    def to_item(self) -> Suggestion:
        """The suggestion as the other rooms know it."""
        return Suggestion(
            self.type,
            self.title.strip(),
            self.motivation.strip(),
            self.instruction.strip(),
            self.priority_hint,
            self.support_count,
            self.source_type,
        )


class SkillCandidateReply(_ItemReply):
    """One whole new skill as a model wrote it. Only `new_skill` must be there."""

    title: StrictStr = ""
    change_summary: tuple[str, ...] = ()
    new_skill: StrictStr

    @field_validator("title", mode="before")
    @classmethod
    def _null_text(cls, value: object) -> object:
        return "" if value is None else value

    @field_validator("change_summary", mode="before")
    @classmethod
    def _texts(cls, value: object) -> tuple[str, ...]:
        return texts_of(value)

    @model_validator(mode="after")
    def _complete(self) -> SkillCandidateReply:
        if not self.new_skill.strip():
            raise ValueError("new_skill: a candidate needs the whole text")
        return self

    def to_item(self) -> SkillCandidate:
        """The candidate as the other rooms know it."""
        return SkillCandidate(
            self.title.strip(), self.change_summary, self.new_skill, self.support_count, self.source_type
        )


def texts_of(value: object) -> tuple[str, ...]:
    """A list of texts with what is no text left out; one text alone is a list of one; anything else is empty."""
    rows = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return tuple(row.strip() for row in rows if isinstance(row, str) and row.strip())


_READERS: Mapping[type[PatchItem], type[EditReply] | type[SuggestionReply] | type[SkillCandidateReply]] = {
    Edit: EditReply,
    Suggestion: SuggestionReply,
    SkillCandidate: SkillCandidateReply,
}


def read_reply_item(row: object, kind: type[PatchItem]) -> PatchItem | str:
    """The item of this kind, or what is wrong with it."""
    try:
        return _READERS[kind].model_validate(row).to_item()
    except ValidationError as error:
        return _first_problem(error)


def _first_problem(error: ValidationError) -> str:
    """The first thing that is wrong, without a copy of the input."""
    problem = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in problem["loc"])
    message = str(problem["msg"]).removeprefix("Value error, ")
    return f"{place}: {message}" if place else message

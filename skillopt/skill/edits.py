"""Apply edits to a skill document and report what became of each.

Every anchor is looked up in the body as it was before the first edit, and must stand there exactly once. Edits reach
the body only. What cannot be applied is refused with a status that says why; nothing here raises because of an edit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from skillopt.skill.document import Skill
from skillopt.skill.edit_fields import PREVIEW_CHARS, EditFields, EditValueError, preview, read_fields
from skillopt.skill.edit_plan import EditPlan, InsertFallback, Verdict
from skillopt.types import JsonObject, Patch
from skillopt.utils.invisible import escape_invisible


@dataclass(frozen=True, slots=True)
class EditRow:
    """What became of one edit. `index` counts from 1; `detail` says why, `notice` what was changed or is unusual."""

    index: int
    op: str
    target: str
    content_preview: str
    status: str
    detail: str = ""
    notice: str = ""

    @property
    def applied(self) -> bool:
        """True when the edit changed the text."""
        return self.status.startswith("applied")

    def to_dict(self) -> JsonObject:
        """The row of `edit_apply_report.json`."""
        row: JsonObject = {
            "index": self.index,
            "op": self.op,
            "target": self.target,
            "content_preview": self.content_preview,
            "status": self.status,
        }
        if self.status == "error":
            row["error"] = self.detail
        row.update({key: value for key, value in (("detail", self.detail), ("notice", self.notice)) if value})
        return row


@dataclass(frozen=True, slots=True)
class EditOutcome:
    """The skill after the edits, and one row for each edit. `changed` is False when the new text says the same."""

    skill: Skill
    rows: tuple[EditRow, ...]
    changed: bool

    def summary(self) -> dict[str, int]:
        """Numbers of edits: total, applied, skipped, errors."""
        applied = sum(row.applied for row in self.rows)
        errors = sum(row.status == "error" for row in self.rows)
        skipped = len(self.rows) - applied - errors
        return {"total": len(self.rows), "applied": applied, "skipped": skipped, "errors": errors}


def apply_edits(skill: Skill, edits: Iterable[object], *, insert_fallback: InsertFallback = "refuse") -> EditOutcome:
    """Apply edits (`Edit` values or mappings) to the body of `skill`.

    `insert_fallback="append"` appends the content of an insert_after whose anchor is missing instead of refusing it.
    Whatever the edits hold, there is exactly one row for each, in order.
    """
    given = list(edits)
    read = [_read(edit) for edit in given]
    plan = EditPlan(skill, [fields for fields in read if isinstance(fields, EditFields)], insert_fallback)
    for fields in read:
        if isinstance(fields, Verdict):
            plan.verdicts.append(fields)
        else:
            plan.add(fields)
    rows = tuple(_row(*numbered) for numbered in enumerate(zip(given, read, plan.verdicts, strict=True), 1))
    return EditOutcome(plan.skill, rows, not plan.skill.same_as(skill))


def apply_patch_with_report(
    skill_text: str, patch: object, *, insert_fallback: InsertFallback = "refuse"
) -> tuple[str, list[JsonObject]]:
    """Apply a patch (`Patch` or mapping with `edits`) to a document's text; the new text and the report's rows.

    Raises SkillFormatError when the document itself cannot be read.
    """
    edits: Any = patch.edits if isinstance(patch, Patch) else patch.get("edits") if isinstance(patch, Mapping) else None
    if edits is None and isinstance(patch, Mapping):
        edits = ()
    skill = Skill.parse(skill_text)
    if not isinstance(edits, list | tuple):
        found = type(patch if edits is None else edits).__name__
        row = EditRow(1, "", "", "", "error", f"the patch holds a {found}; expected a list of edits")
        return skill.text, [row.to_dict()]
    outcome = apply_edits(skill, edits, insert_fallback=insert_fallback)
    return outcome.skill.text, [row.to_dict() for row in outcome.rows]


def apply_patch(skill_text: str, patch: object, *, insert_fallback: InsertFallback = "refuse") -> str:
    """The document's text after a patch; see `apply_patch_with_report`."""
    return apply_patch_with_report(skill_text, patch, insert_fallback=insert_fallback)[0]


def apply_edit(skill_text: str, edit: object, *, insert_fallback: InsertFallback = "refuse") -> str:
    """The document's text after one edit (`Edit` or mapping); see `apply_edits`."""
    return apply_edits(Skill.parse(skill_text), [edit], insert_fallback=insert_fallback).skill.text


def _read(edit: object) -> EditFields | Verdict:
    try:
        return read_fields(edit)
    except EditValueError as error:
        return Verdict("error", str(error))


def _row(index: int, parts: tuple[object, EditFields | Verdict, Verdict]) -> EditRow:
    edit, read, verdict = parts
    op = escape_invisible(read.op[:PREVIEW_CHARS]) if isinstance(read, EditFields) else preview(edit, "op")
    target, content = preview(edit, "target"), preview(edit, "content")
    return EditRow(index, op, target, content, verdict.status, verdict.detail, verdict.notice)

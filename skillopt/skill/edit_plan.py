"""Decide about edits one after another: where each goes in the original body, or why it is refused."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from skillopt.errors import SkillFormatError
from skillopt.skill.document import Skill, Splice
from skillopt.skill.edit_fields import OPS, EditFields

InsertFallback = Literal["refuse", "append"]
_CODE_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$", re.MULTILINE)
_BULLET = re.compile(r"^[-*+]\s+")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one edit."""

    status: str
    detail: str = ""
    notice: str = ""


@dataclass(frozen=True, slots=True)
class _Step:
    """One accepted edit: a splice of the original body, or content to append (`splice` is None)."""

    index: int
    content: str
    splice: Splice | None = None

    @property
    def adds_only(self) -> bool:
        return self.splice is None or self.splice.start == self.splice.end


class _RefusedError(Exception):
    def __init__(self, status: str, detail: str = "") -> None:
        super().__init__(detail)
        self.status = f"skipped_{status}"


class EditPlan:
    """Takes edits one by one; `skill` is the document with all accepted ones, `verdicts` has one entry for each.

    `wanted` lists all edits that will come, because a line that another edit removes is no reason to refuse the
    same line elsewhere.
    """

    def __init__(self, original: Skill, wanted: Iterable[EditFields], insert_fallback: InsertFallback) -> None:
        self.skill = original
        self.verdicts: list[Verdict] = []
        self._original = original
        self._whole = original.text.replace("\r\n", "\n")
        self._insert_fallback = insert_fallback
        self._steps: list[_Step] = []
        self._staying = _plain_lines(self._without_doomed(wanted))

    def add(self, fields: EditFields) -> None:
        """Apply one edit or refuse it."""
        index = len(self.verdicts)
        try:
            status, step = self._resolve(fields, index)
            notice = "inside code block" if self._is_in_code(step) else ""
            self._accept(step)
            notices = "; ".join(part for part in (fields.notice, notice) if part)
            self.verdicts.append(Verdict(status, notice=notices))
        except _RefusedError as refused:
            self.verdicts.append(Verdict(refused.status, str(refused), fields.notice))

    def _resolve(self, fields: EditFields, index: int) -> tuple[str, _Step]:
        if fields.op not in OPS:
            raise _RefusedError("unknown_op", f"expected one of {', '.join(OPS)}")
        if fields.op == "append":
            if fields.target and fields.target not in self._original.body:
                self._refuse_frozen(fields.target)
            return self._append(fields, index, "applied_append", "applied_append_before_protected_region")
        if fields.op == "insert_after":
            return self._insert(fields, index)
        if fields.op == "replace":
            return self._replace(fields, index)
        return self._delete(fields, index)

    def _append(self, fields: EditFields, index: int, plain: str, before_region: str) -> tuple[str, _Step]:
        self._check_content(fields.content)
        return before_region if self._original.regions else plain, _Step(index, fields.content)

    def _insert(self, fields: EditFields, index: int) -> tuple[str, _Step]:
        try:
            start, _ = self._match(fields)
        except _RefusedError as refused:
            missing = refused.status.endswith(("_missing_target", "_not_found"))
            if not missing or self._insert_fallback != "append":
                raise
            prefix = "applied_insert_after_fallback_"
            return self._append(fields, index, prefix + "append", prefix + "before_protected_region")
        self._check_content(fields.content)
        body = self._original.body
        line_end = body.find("\n", start + len(fields.target.rstrip("\n")))
        at = len(body) if line_end < 0 else line_end + 1
        before = "" if body[:at].endswith("\n") and _ends_in_code(body[:at]) else "\n"
        return "applied_insert_after", _Step(index, fields.content, Splice(at, at, f"{before}{fields.content}\n"))

    def _replace(self, fields: EditFields, index: int) -> tuple[str, _Step]:
        start, end = self._match(fields)
        core = fields.target.strip("\n")
        if core and fields.content:
            start += fields.target.index(core)
            end = start + len(core)
        if self._original.body[start:end] == fields.content:
            raise _RefusedError("no_change", "the content equals the anchor")
        return "applied_replace", _Step(index, fields.content, Splice(start, end, fields.content))

    def _delete(self, fields: EditFields, index: int) -> tuple[str, _Step]:
        try:
            start, end = self._match(fields)
        except _RefusedError as refused:
            if refused.status.endswith("_not_found"):
                self._cancel(fields.target.strip(), index)
            raise
        return "applied_delete", _Step(index, "", Splice(start, end, ""))

    def _match(self, fields: EditFields) -> tuple[int, int]:
        """Start and end of the only place in the original body where the anchor stands."""
        target, body = fields.target, self._original.body
        if not target:
            raise _RefusedError(f"{fields.op}_missing_target")
        start = body.find(target)
        if start < 0:
            self._refuse_frozen(target)
            raise _RefusedError(f"{fields.op}_target_not_found", "the anchor stands nowhere in the text")
        end = start + len(target)
        if body.find(target, start + 1) >= 0:
            places = max(2, body.count(target))
            raise _RefusedError(f"{fields.op}_target_ambiguous", f"matches {places} places")
        if any(start < region.at < end for region in self._original.regions):
            raise _RefusedError("protected_region", "the anchor runs across a protected region")
        return start, end

    def _refuse_frozen(self, target: str) -> None:
        at = self._whole.find(target)
        if at < 0:
            return
        front = len(self._original.front_matter.replace("\r\n", "\n")) + self._original.bom
        if at < front:
            raise _RefusedError("front_matter", "the anchor touches the front matter, which is frozen")
        raise _RefusedError("protected_region", "the anchor touches a protected region")

    def _check_content(self, content: str) -> None:
        if not content:
            raise _RefusedError("empty_content")
        block = _plain_lines(content)
        if any(block in lines for lines in (self._staying, *(_plain_lines(step.content) for step in self._steps))):
            raise _RefusedError("duplicate", "the text has these lines already")

    def _without_doomed(self, wanted: Iterable[EditFields]) -> str:
        """The original body without the places that a later or earlier edit asks to replace or delete."""
        spans = []
        for fields in wanted:
            if fields.op in ("replace", "delete"):
                try:
                    spans.append(self._match(fields))
                except _RefusedError:
                    continue
        body, parts, position = self._original.body, [], 0
        for start, end in sorted(spans):
            parts.append(body[position:start])
            position = max(position, end)
        return "".join((*parts, body[position:]))

    def _cancel(self, content: str, index: int) -> None:
        """Withdraw an earlier addition of exactly `content`; the delete and the addition then do nothing together."""
        for step in self._steps:
            if content and step.adds_only and step.content == content:
                steps = [other for other in self._steps if other is not step]
                self.skill, self._steps = self._checked(steps), steps
                self.verdicts[step.index] = Verdict("skipped_cancelled", f"edit {index + 1} deletes it again")
                raise _RefusedError("cancelled", f"takes back edit {step.index + 1}")

    def _accept(self, step: _Step) -> None:
        if step.splice is not None and any(_overlap(step.splice, s.splice) for s in self._steps if s.splice):
            raise _RefusedError("overlap", "an earlier edit changes the same place")
        steps = [*self._steps, step]
        self.skill, self._steps = self._checked(steps), steps

    def _checked(self, steps: list[_Step]) -> Skill:
        """The document with these steps. Refuses one that would touch what is frozen or leave nothing."""
        try:
            trial = self._build(steps)
        except SkillFormatError:
            raise _RefusedError("protected_region", "the new text would form a protected marker") from None
        old = self._original
        if [r.text for r in trial.regions] != [r.text for r in old.regions]:
            raise _RefusedError("protected_region", "the new text would change a protected region")
        if trial.front_matter.rstrip("\r\n") != old.front_matter.rstrip("\r\n") or trial.bom != old.bom:
            raise _RefusedError("front_matter", "the new text would change or form front matter")
        if not trial.body.strip() and old.body.strip():
            raise _RefusedError("would_be_empty", "nothing would be left of the skill")
        return trial

    def _build(self, steps: list[_Step]) -> Skill:
        splices = [step.splice for step in steps if step.splice is not None]
        skill = self._original.spliced(splices) if splices else self._original
        appended = [step.content for step in steps if step.splice is None]
        return _with_appended(skill, "\n\n".join(appended)) if appended else skill

    def _is_in_code(self, step: _Step) -> bool:
        if not step.adds_only:
            return False
        if step.splice is not None:
            return _ends_in_code(self._original.body[: step.splice.start])
        return _ends_in_code(self.skill.body[: _append_place(self.skill)])


def _append_place(skill: Skill) -> int:
    return skill.regions[0].at if skill.regions else len(skill.body)


def _with_appended(skill: Skill, content: str) -> Skill:
    end = _append_place(skill)
    start = len(skill.body[:end].rstrip())
    before = "\n\n" if start or skill.front_matter else ""
    if start and skill.body[start:end].startswith("\n"):
        start, before = start + 1, "\n"
    elif not start and skill.front_matter.endswith("\n"):
        before = "\n"
    after = "\n" if skill.regions and not skill.regions[0].lead else ""
    return skill.spliced([Splice(start, end, f"{before}{content}\n{after}")])


def _overlap(one: Splice, other: Splice) -> bool:
    return one.start < other.end and other.start < one.end


def _plain_lines(text: str) -> str:
    """The lines with their words only: no bullets, no empty lines, single spaces; a line end before and after each."""
    lines = (" ".join(_BULLET.sub("", line.strip(), count=1).split()) for line in text.split("\n"))
    return "\n" + "".join(f"{line}\n" for line in lines if line)


def _ends_in_code(text: str) -> bool:
    """True when a code fence is open at the end of `text`."""
    fence = ""
    for match in _CODE_FENCE.finditer(text):
        mark, rest = match.groups()
        if not fence:
            fence = mark if mark[0] == "~" or "`" not in rest else ""
        elif mark.startswith(fence) and not rest.strip():
            fence = ""
    return bool(fence)

"""The memory of an epoch: what its earlier steps tried and what became of it, as values and as text for the optimizer.

Pure. The entries of an epoch are rebuilt from the stored step digests, so a resumed run shows the optimizer the same
text as one that was never stopped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from skillopt.skill.edits import EditOutcome
from skillopt.types import Edit, JsonObject, RawPatch, RolloutResult

_TIE = 1e-9
_MOST_IDS = 8
_MOST_TEXT = 400  # characters of a description, an anchor or an edit's content


@dataclass(frozen=True, slots=True)
class FailurePattern:
    """A kind of failure and the tasks it concerns.

    `origin` tells where it comes from: `results` (grouped by the failure reasons of the results; `count` tasks) or
    `analyst` (an analyst's summary of its own group, whose tasks are `task_ids`; `count` as the analyst states it).
    """

    pattern: str
    count: int
    task_ids: tuple[str, ...] = ()
    description: str = ""
    origin: str = "results"

    def to_dict(self) -> JsonObject:
        """The pattern as JSON."""
        return {**{f.name: getattr(self, f.name) for f in fields(self)}, "task_ids": list(self.task_ids)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> FailurePattern:
        """Read what `to_dict` wrote."""
        known = {f.name for f in fields(cls)}
        return cls(**{**{k: v for k, v in data.items() if k in known}, "task_ids": tuple(data.get("task_ids") or ())})


@dataclass(frozen=True, slots=True)
class UnmatchedEdit:
    """An edit that could not apply, and why."""

    op: str
    target: str
    status: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class StepEntry:
    """One step as the optimizer remembers it: evaluated, or skipped with the reason in `action`.

    `n_total` and `n_fail` count the scored rollouts of the step. Scores before and after, and the edits, are there
    for a rejected candidate; `unmatched_edits` for any step.
    """

    step: int
    action: str
    n_total: int = 0
    n_fail: int = 0
    failure_patterns: tuple[FailurePattern, ...] = ()
    score_before: float | None = None
    score_after: float | None = None
    rejected_edits: tuple[Edit, ...] = ()
    unmatched_edits: tuple[UnmatchedEdit, ...] = ()

    @classmethod
    def of_step(  # noqa: PLR0913 - one argument for each thing that a step knows at its end
        cls,
        *,
        step: int,
        action: str,
        results: Sequence[RolloutResult],
        patterns: Sequence[FailurePattern] = (),
        score_before: float | None = None,
        score_after: float | None = None,
        outcome: EditOutcome | None = None,
        success_threshold: float = 1.0,
    ) -> StepEntry:
        """The entry of a finished step.

        `outcome` is what became of the step's edits, None when it had none. Scores and rejected edits (those that
        did apply) are kept for a rejected candidate only; what could not apply is kept in any case.
        """
        scored = [result for result in results if result.ok]
        rows = outcome.rows if outcome is not None else ()
        rejected = "reject" in action
        return cls(
            step=step,
            action=action,
            n_total=len(scored),
            n_fail=sum(result.hard < success_threshold - _TIE for result in scored),
            failure_patterns=tuple(patterns),
            score_before=score_before if rejected else None,
            score_after=score_after if rejected else None,
            rejected_edits=tuple(
                Edit(row.op, row.content_preview, row.target) for row in rows if rejected and row.applied
            ),
            unmatched_edits=tuple(
                UnmatchedEdit(row.op, row.target, row.status, row.detail) for row in rows if not row.applied
            ),
        )

    def to_dict(self) -> JsonObject:
        """The entry as JSON; fields of a rejection are left out where there was none."""
        out: JsonObject = {"step": self.step, "action": self.action, "n_total": self.n_total, "n_fail": self.n_fail}
        out["failure_patterns"] = [pattern.to_dict() for pattern in self.failure_patterns]
        if self.score_before is not None:
            out["score_before"] = self.score_before
        if self.score_after is not None:
            out["score_after"] = self.score_after
        if self.rejected_edits:
            out["rejected_edits"] = [edit.to_dict() for edit in self.rejected_edits]
        if self.unmatched_edits:
            out["unmatched_edits"] = [
                {f.name: getattr(edit, f.name) for f in fields(edit)} for edit in self.unmatched_edits
            ]
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> StepEntry:
        """Read what `to_dict` wrote."""
        return cls(
            step=int(data["step"]),
            action=str(data["action"]),
            n_total=int(data.get("n_total") or 0),
            n_fail=int(data.get("n_fail") or 0),
            failure_patterns=tuple(FailurePattern.from_dict(p) for p in data.get("failure_patterns") or ()),
            score_before=data.get("score_before"),
            score_after=data.get("score_after"),
            rejected_edits=tuple(Edit.from_dict(edit) for edit in data.get("rejected_edits") or ()),
            unmatched_edits=tuple(UnmatchedEdit(**edit) for edit in data.get("unmatched_edits") or ()),
        )


def failure_patterns(
    results: Sequence[RolloutResult],
    raw_patches: Sequence[RawPatch] = (),
    *,
    success_threshold: float = 1.0,
) -> tuple[FailurePattern, ...]:
    """The kinds of failure of a step: those that the results state, then those that analysts saw.

    Failed results (hard score below `success_threshold`) are grouped by the text of `fail_reason` before its first
    colon, or `unknown`, in order of first appearance. Each entry of an analyst's summary follows with the tasks of
    that analyst's group; the two kinds are never mixed.
    """
    groups: dict[str, list[str]] = {}
    for result in results:
        if result.ok and result.hard < success_threshold - _TIE:
            name = str(result.fail_reason or "").split(":", 1)[0].strip() or "unknown"
            groups.setdefault(name, []).append(result.id)
    stated = [FailurePattern(name, len(ids), tuple(ids)) for name, ids in groups.items()]
    seen = [
        FailurePattern(entry.failure_type or "unnamed", entry.count, raw.item_ids, entry.description, "analyst")
        for raw in raw_patches
        for entry in raw.failure_summary
    ]
    return (*stated, *seen)


def render(entries: Sequence[StepEntry]) -> str:
    """The memory as text for a prompt; empty without entries."""
    if not entries:
        return ""
    intro = (
        "What the steps before this one did. Do not propose again what was rejected, "
        "and do not aim at text that could not be found."
    )
    return "\n\n".join([intro, *(_render_entry(entry) for entry in entries)])


def _render_entry(entry: StepEntry) -> str:
    lines = [f"### Step {entry.step}: {entry.action.upper()} ({entry.n_fail} of {entry.n_total} tasks failed)"]
    lines.extend(_render_pattern(pattern) for pattern in entry.failure_patterns)
    if entry.score_before is not None and entry.score_after is not None:
        lines.append(f"Score on held-out tasks: {entry.score_before:.4f} before, {entry.score_after:.4f} after.")
    if entry.rejected_edits:
        lines.append("Rejected edits:")
        lines.extend(_render_edit(number, edit) for number, edit in enumerate(entry.rejected_edits, 1))
    if entry.unmatched_edits:
        lines.append("Edits that could not apply:")
        lines.extend(_render_unmatched(edit) for edit in entry.unmatched_edits)
    return "\n".join(lines)


def _render_pattern(pattern: FailurePattern) -> str:
    ids = ", ".join(pattern.task_ids[:_MOST_IDS])
    more = len(pattern.task_ids) - _MOST_IDS
    tasks = f" [tasks: {ids}{f' and {more} more' if more > 0 else ''}]" if ids else ""
    who = "analyst of a group" if pattern.origin == "analyst" else "failed"
    what = f": {_short(pattern.description)}" if pattern.description else ""
    return f"- {who}: {_short(pattern.pattern)} x{pattern.count}{what}{tasks}"


def _render_edit(number: int, edit: Edit) -> str:
    target = f" at {_short(edit.target)!r}" if edit.target else ""
    content = f": {_short(edit.content)}" if edit.content else ""
    return f"{number}. {edit.op}{target}{content}"


def _render_unmatched(edit: UnmatchedEdit) -> str:
    target = f" at {_short(edit.target)!r}" if edit.target else ""
    detail = f" ({_short(edit.detail)})" if edit.detail else ""
    return f"- {edit.op}{target}: {edit.status}{detail}"


def _short(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 3] + "..."

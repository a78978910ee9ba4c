"""The memory of a run: what its earlier steps tried and what became of it, as values and as text for the optimizer.

Pure. The entries are rebuilt from the stored step digests, so a resumed run shows the optimizer the same text as one
that was never stopped. The text is bounded: the latest steps in full, and of older ones what was rejected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from skillopt.prompts.modes import summarize_item
from skillopt.prompts.tokens import count_tokens, shorten_middle
from skillopt.skill.edits import EditOutcome, EditRow
from skillopt.types import Edit, JsonObject, PatchItem, RawPatch, RolloutResult, SkillCandidate, read_item

RECENT_TOKENS = 4_000
"""What the latest steps may take in the text."""

REJECTED_TOKENS = 1_800
"""What the rejected proposals of older steps may take in the text."""

_TIE = 1e-9
_MOST_IDS = 8
_MOST_TEXT = 400  # characters of a description, an anchor or an edit's content
_MOST_IN_SHORT = 160  # characters of a rejected proposal of an older step


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

    `n_total` and `n_fail` count the scored rollouts of the step. Scores before and after are there for a rejected
    candidate; `rejected_edits` are the items (edits, suggestions or candidates) that were tried and turned down;
    `unmatched_edits` can come from any step. `refused`: why the candidate was not even tried, in words for the
    optimizer; what it held is then not remembered, because it must not be repeated.
    """

    step: int
    action: str
    n_total: int = 0
    n_fail: int = 0
    failure_patterns: tuple[FailurePattern, ...] = ()
    score_before: float | None = None
    score_after: float | None = None
    rejected_edits: tuple[PatchItem, ...] = ()
    unmatched_edits: tuple[UnmatchedEdit, ...] = ()
    refused: tuple[str, ...] = ()

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
        rejected: Sequence[PatchItem] | None = None,
        refused: Sequence[str] = (),
        success_threshold: float = 1.0,
    ) -> StepEntry:
        """The entry of a finished step.

        `outcome` is what became of the step's edits, None when it had none. `rejected` is what was turned down; None
        stands for the edits that did apply, if the candidate was rejected. Scores are kept for a rejected candidate
        only; what could not apply is kept in any case. `refused`: why the candidate was not tried; then no item is
        kept.
        """
        scored = [result for result in results if result.ok]
        rows = outcome.rows if outcome is not None else ()
        was_rejected = "reject" in action
        if rejected is None:
            rejected = _applied(rows) if was_rejected else ()
        return cls(
            step=step,
            action=action,
            n_total=len(scored),
            n_fail=sum(result.hard < success_threshold - _TIE for result in scored),
            failure_patterns=tuple(patterns),
            score_before=score_before if was_rejected else None,
            score_after=score_after if was_rejected else None,
            rejected_edits=() if refused else tuple(_remembered(item) for item in rejected),
            unmatched_edits=_unmatched(rows),
            refused=tuple(refused),
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
        if self.refused:
            out["refused"] = list(self.refused)
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
            rejected_edits=tuple(read_item(item) for item in data.get("rejected_edits") or ()),
            unmatched_edits=tuple(UnmatchedEdit(**edit) for edit in data.get("unmatched_edits") or ()),
            refused=tuple(data.get("refused") or ()),
        )


def _applied(rows: Sequence[EditRow]) -> list[Edit]:
    return [Edit(row.op, row.content_preview, row.target) for row in rows if row.applied]


def _unmatched(rows: Sequence[EditRow]) -> tuple[UnmatchedEdit, ...]:
    return tuple(UnmatchedEdit(row.op, row.target, row.status, row.detail) for row in rows if not row.applied)


def _remembered(item: PatchItem) -> PatchItem:
    """An item without the whole text of a skill, which nobody reads again."""
    return replace(item, new_skill="") if isinstance(item, SkillCandidate) else item


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


def render(
    entries: Sequence[StepEntry], *, recent_tokens: int = RECENT_TOKENS, rejected_tokens: int = REJECTED_TOKENS
) -> str:
    """The memory as text for a prompt; empty without entries.

    As many of the latest entries as `recent_tokens` holds, at least one; of those before them only what was rejected,
    within `rejected_tokens`.
    """
    if not entries:
        return ""
    blocks = [_render_entry(entry) for entry in entries]
    first = len(blocks) - 1
    left = recent_tokens - count_tokens(blocks[first])
    while first > 0 and count_tokens(blocks[first - 1]) <= left:
        first -= 1
        left -= count_tokens(blocks[first])
    intro = (
        "What the steps before this one did. Do not propose again what was rejected, "
        "and do not aim at text that could not be found."
    )
    older = _render_older(entries[:first], rejected_tokens)
    recent = [shorten_middle(block, recent_tokens) for block in blocks[first:]]
    return "\n\n".join(part for part in (intro, older, *recent) if part)


def _render_older(entries: Sequence[StepEntry], max_tokens: int) -> str:
    """Steps in short: how they ended, and each rejected proposal once, the latest first in line for the room."""
    if not entries:
        return ""
    counts = Counter(entry.action.upper() for entry in entries)
    heading = f"### Steps {entries[0].step} to {entries[-1].step} in short: "
    heading += ", ".join(f"{action} x{number}" for action, number in counts.items())
    lines = {
        _short(summarize_item(item), _MOST_IN_SHORT): entry.step for entry in entries for item in entry.rejected_edits
    }
    kept: list[str] = []
    left = max_tokens - count_tokens(heading)
    for line, step in sorted(lines.items(), key=lambda pair: -pair[1]):
        shown = f"- step {step}: {line}"
        left -= count_tokens(shown) + 1
        if left < 0:
            break
        kept.insert(0, shown)
    missing = len(lines) - len(kept)
    note = [f"Rejected then{f' (and {missing} earlier ones)' if missing else ''}:"] if lines else []
    return "\n".join([heading, *note, *kept])


def _render_entry(entry: StepEntry) -> str:
    lines = [f"### Step {entry.step}: {entry.action.upper()} ({entry.n_fail} of {entry.n_total} tasks failed)"]
    lines.extend(_render_pattern(pattern) for pattern in entry.failure_patterns)
    if entry.score_before is not None and entry.score_after is not None:
        lines.append(f"Score on held-out tasks: {entry.score_before:.4f} before, {entry.score_after:.4f} after.")
    if entry.refused:
        lines.append(f"The candidate was not tried: {'; '.join(_short(reason) for reason in entry.refused)}.")
    if entry.rejected_edits:
        lines.append("Rejected:")
        lines.extend(f"{number}. {_summary(item)}" for number, item in enumerate(entry.rejected_edits, 1))
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


def _render_unmatched(edit: UnmatchedEdit) -> str:
    target = f" at {_short(edit.target)!r}" if edit.target else ""
    detail = f" ({_short(edit.detail)})" if edit.detail else ""
    return f"- {edit.op}{target}: {edit.status}{detail}"


def _summary(item: PatchItem) -> str:
    if isinstance(item, Edit):
        item = replace(item, target=_short(item.target), content=_short(item.content))
    return _short(summarize_item(item), 2 * _MOST_TEXT)


def _short(text: str, most: int = _MOST_TEXT) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."

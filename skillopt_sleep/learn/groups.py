"""One consolidation for each named skill. What belongs to a named skill does not also teach the managed one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from skillopt_sleep.errors import BudgetSpent, CallFailed, PendingCalls
from skillopt_sleep.mining import group_tasks_by_skill_hint
from skillopt_sleep.redact import redact_secrets
from skillopt_sleep.types import ConsolidationResult, GroupConsolidation, SkillGroup, SkillGroupReport, TaskRecord

_REASON_CHARS = 300

ConsolidateFn = Callable[..., ConsolidationResult]
KwargsFn = Callable[[SkillGroup], Mapping[str, Any]]


def split_by_skill(tasks: Iterable[TaskRecord], managed: str) -> tuple[list[TaskRecord], dict[str, list[TaskRecord]]]:
    """(tasks of the managed skill, tasks of each named skill), as copies: the partition that comes before learning.

    The managed skill gets the tasks that no skill can claim for sure, and no others.
    """
    groups = group_tasks_by_skill_hint(tasks, managed)
    own = groups.pop(managed, [])
    return own, groups


def history_of(name: str, history: Iterable[TaskRecord | Mapping[str, Any]]) -> list[TaskRecord | Mapping[str, Any]]:
    """The archived tasks that carry this skill's name ("": those that carry none), which is all its group recalls."""
    return [row for row in history if _hint(row) == name.strip()]


def consolidate_groups(
    backend: Any,
    groups: Iterable[SkillGroup],
    memory: str = "",
    *,
    consolidate_fn: ConsolidateFn,
    group_kwargs_fn: KwargsFn | None = None,
    **options: Any,
) -> list[GroupConsolidation]:
    """Consolidate each group with its own skill text; the memory is read and never changed.

    `consolidate_fn` is `consolidate` or `dream_consolidate`; `options` go to it, and what `group_kwargs_fn` gives for
    the group. A group without a name or without tasks is skipped, a repeated name counts once, and a group that fails
    is reported as failed beside the others. Raises PendingCalls (with the waiting calls of all groups), BudgetSpent and
    CallFailed of a fatal kind.
    """
    done: list[GroupConsolidation] = []
    waiting: dict[str, Any] = {}
    seen: set[str] = set()
    for group in groups:
        name = group.skill_name.strip()
        if name in seen and name:
            continue
        seen.add(name)
        skipped = _why_skipped(name, group)
        if skipped:
            done.append(GroupConsolidation(name, "skipped", reason=skipped, n_tasks=len(group.tasks)))
            continue
        rejected = getattr(backend, "rejected_edits", None)
        own = {**options, **(group_kwargs_fn(group) if group_kwargs_fn is not None else {}), "evolve_memory": False}
        try:
            done.append(_consolidated(backend, group, memory, consolidate_fn, own))
        except PendingCalls as error:
            waiting.update(error.pending)
        finally:  # what one skill's gate refused says nothing about another skill
            if rejected is not None:
                backend.rejected_edits = rejected
    if waiting:
        raise PendingCalls(waiting)
    return done


def skill_group_reports(results: Iterable[GroupConsolidation]) -> list[SkillGroupReport]:
    """The rows of the report, with secrets taken out."""
    return [_report(one) for one in results]


def accepted_group_skills(results: Iterable[GroupConsolidation]) -> dict[str, str]:
    """The new text of each skill whose change was accepted, by name."""
    return {
        one.skill_name: one.result.new_skill
        for one in results
        if one.accepted and one.skill_name and one.result is not None
    }


def _why_skipped(name: str, group: SkillGroup) -> str:
    if not name:
        return "the group has no skill name"
    return "" if group.tasks else "there are no tasks for it"


def _consolidated(
    backend: Any, group: SkillGroup, memory: str, consolidate_fn: ConsolidateFn, options: Mapping[str, Any]
) -> GroupConsolidation:
    name, count = group.skill_name.strip(), len(group.tasks)
    try:
        result = consolidate_fn(backend, list(group.tasks), group.skill, memory, **options)
    except (PendingCalls, BudgetSpent):
        raise
    except Exception as error:  # recorded: one group must not take the others down
        if isinstance(error, CallFailed) and error.fatal:
            raise
        words = " ".join(f"{type(error).__name__}: {redact_secrets(str(error))}".split())
        return GroupConsolidation(name, "failed", reason=words[:_REASON_CHARS], n_tasks=count)
    return GroupConsolidation(name, "consolidated", result, result.gate_detail.get("reason", ""), count)


def _report(one: GroupConsolidation) -> SkillGroupReport:
    row = SkillGroupReport(
        str(redact_secrets(one.skill_name)),
        one.status,
        accepted=one.accepted,
        n_tasks=one.n_tasks,
        reason=str(redact_secrets(one.reason)),
    )
    if one.result is not None:
        row.gate_action = one.result.gate_action
        row.baseline_score = one.result.baseline_score
        row.candidate_score = one.result.candidate_score
        row.n_applied_edits = len(one.result.applied_edits)
        row.n_rejected_edits = len(one.result.rejected_edits)
        row.no_edits_reason = one.result.no_edits_reason
    return row


def _hint(row: TaskRecord | Mapping[str, Any]) -> str:
    hint = row.skill_hint if isinstance(row, TaskRecord) else row.get("skill_hint", "")
    return str(hint or "").strip()

"""The report of a night for people: report.md. Everything that models or transcripts wrote is shown as inert text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from skillopt_sleep.config import SleepConfig
from skillopt_sleep.show import DASH, counted, prose, score_text, scores_text, table_cell
from skillopt_sleep.types import EditRecord, SkillGroupReport, SleepReport

_FILES = 4

STATUS_WORDS = {
    "completed": "the night did all that it set out to do",
    "no_tasks": "there was nothing to learn from",
    "degraded": "too much failed to learn from it",
    "inconclusive": "the validation tasks were not enough to decide",
    "budget_spent": "a cap was reached before the end",
    "failed": "the night could not be finished",
}
REASON_WORDS = {
    "too_many_errors": "too many results have no score, because their calls failed",
    "reflect_failed": "the call that proposes rules failed",
    "all_held": "every proposed rule is held for a person to look at",
    "no_proposals": "no rule was proposed",
    "no_failures": "no training task failed",
    "nothing_applied": "the proposed edits changed nothing",
    "no_training_tasks": "there were no training tasks",
    "too_few_to_decide": "nothing could have been accepted, so nothing was tried",
    "nothing_may_change": "neither the skill nor the memory may change",
}

UNMEASURED = ("too_few_to_decide", "too_many_errors", "no_training_tasks", "nothing_may_change")
"""Reasons for no edits that leave no held-out score behind."""


def render_report(report: SleepReport, config: SleepConfig, *, backend: str) -> str:
    """report.md as text; `backend` is the name of what answered."""
    gated = config.gate_on
    parts = [
        f"# SkillOpt-Sleep, night {report.night}\n",
        _summary(report, config, backend),
        _banner(report, gated=gated),
        *(_trial(row) for row in report.gate_trials),
        _edits("Accepted edits", report.edits),
        _edits(_rejected_title(report), report.rejected_edits),
        _held(report),
        _edits("Edits that changed nothing", report.unmatched_edits, anchors=True),
        _groups(report.skill_groups),
        _list("Notes", report.notes),
        _closing(report),
    ]
    return "\n".join(part for part in parts if part)


def held_out_scores(report: SleepReport) -> str:
    """The held-out scores of a night; `not measured` where nothing was."""
    action = "" if report.no_edits_reason in UNMEASURED else report.gate_action
    return scores_text(report.baseline_score, report.candidate_score, action=action, status=report.status)


def _summary(report: SleepReport, config: SleepConfig, backend: str) -> str:
    rows = [
        ("Project", prose(report.project)),
        ("Backend", f"{prose(backend)}{_label(backend, str(config.get('replay_mode')))}"),
        ("Status", _status(report)),
        ("Sessions", str(report.n_sessions)),
        ("Tasks (replayed)", f"{report.n_tasks} ({report.n_replayed}){_modes(report)}"),
        ("Held-out score", held_out_scores(report)),
        ("Gate", f"{prose(report.gate_action) or DASH} (accepted: {_yes(report.accepted)})"),
        ("No-regression rule", "on" if report.gate_no_regression else "off"),
        ("Results without a score", str(report.n_errors)),
        ("Tokens", _tokens(report)),
    ]
    if report.test_baseline is not None or report.test_candidate is not None:
        rows.append(("Test tasks", f"{score_text(report.test_baseline)} -> {score_text(report.test_candidate)}"))
    reason = str(report.gate_detail.get("reason") or "")
    if reason:
        rows.append(("Why", prose(reason)))
    return "".join(f"- {name}: {value}\n" for name, value in rows)


def _label(backend: str, label: str) -> str:
    """The replay label, unless it is the built-in one and the night was no mock."""
    return "" if label == "mock" and backend != "mock" else f" (replay: {prose(label)})"


def _modes(report: SleepReport) -> str:
    done, told = (report.usage.get(f"tasks_in_{name}") for name in ("checkouts", "text"))
    return "" if done is None else f", {done} in a checkout, {told} answered in text"


def _status(report: SleepReport) -> str:
    why = REASON_WORDS.get(report.no_edits_reason, prose(report.no_edits_reason))
    words = STATUS_WORDS.get(report.status, "")
    return f"{prose(report.status)}: {words}" + (f"; {why}" if why else "") if words else prose(report.status)


def _tokens(report: SleepReport) -> str:
    about = "about " if report.usage.get("estimated") else ""
    calls = report.usage.get("calls")
    made = f", in {counted(calls, 'call')}" if calls is not None else ""
    return f"{about}{report.tokens_used}, price unknown{made}"


def _banner(report: SleepReport, *, gated: bool) -> str:
    if report.holdout_leaked and gated and report.no_edits_reason != "too_few_to_decide":
        return (
            "> **Not validated.** The tasks that decide are the tasks that teach, so the scores prove nothing and "
            "nothing is proposed for adoption.\n"
        )
    if report.gate_detail.get("low_trust"):
        return "> **Low trust.** Every validation task checks only the shape of an answer.\n"
    return ""


def _trial(row: Mapping[str, Any]) -> str:
    deltas = row.get("task_deltas") or []
    if not deltas:
        return ""
    verdict = "accepted" if row.get("accepted") else str(row.get("verdict") or "rejected")
    verdict = {"reject": "rejected"}.get(verdict, verdict)
    blocked = ", blocked by a task that got worse" if row.get("blocked_by_regression") else ""
    scores = f"{score_text(row.get('baseline_score'))} -> {score_text(row.get('candidate_score'))}"
    head = f"## Held-out task changes: {prose(row.get('target'))} ({verdict}{blocked}), {scores}\n"
    table = ["| Task | Tags | Baseline | Candidate | Change |", "|---|---|---|---|---|"]
    for delta in deltas:
        cells = (
            table_cell(_task(delta)),
            table_cell(", ".join(map(str, delta.get("tags") or []))),
            score_text(delta.get("baseline_score")),
            score_text(delta.get("candidate_score")),
            table_cell(delta.get("status")),
        )
        table.append("| " + " | ".join(cells) + " |")
    files = [f"{prose(_task(row))}: {_changed(row['files'])}" for row in deltas if row.get("files")]
    work = "\nFiles that the work in checkouts changed:\n\n" + "".join(f"- {one}\n" for one in files) if files else ""
    return head + "\n" + "\n".join(table) + "\n" + work


def _task(row: Mapping[str, Any]) -> str:
    """A task's id and the first words of its request."""
    words = str(row.get("request") or "")
    return f"{row.get('task_id')} {DASH} {words}" if words else str(row.get("task_id"))


def _changed(files: Mapping[str, Sequence[str]]) -> str:
    """`before -> after`, each a few names; one side alone where both are the same or only one was scored."""
    sides = [_names(files[side]) for side in ("baseline", "candidate") if side in files]
    return " -> ".join(dict.fromkeys(sides))


def _names(files: Sequence[str]) -> str:
    more = f" and {len(files) - _FILES} more" if len(files) > _FILES else ""
    return (", ".join(prose(name) for name in files[:_FILES]) or "none") + more


def _edits(title: str, edits: Sequence[EditRecord], *, anchors: bool = False) -> str:
    rows = []
    for edit in edits:
        anchor = f" (anchor: {prose(edit.anchor)})" if edit.anchor and (anchors or edit.op != "add") else ""
        why = f" {DASH} {prose(edit.rationale)}" if edit.rationale else ""
        rows.append(f"[{prose(edit.target)}/{prose(edit.op)}] {prose(edit.content)}{anchor}{why}")
    return _bullets(title, rows)


def _rejected_title(report: SleepReport) -> str:
    return "Unverified suggestions" if report.holdout_leaked else "Rejected edits (negative feedback)"


def _held(report: SleepReport) -> str:
    reasons = {
        (str(row.get("target")), str(row.get("content"))): ", ".join(map(str, row.get("reasons") or []))
        for row in report.gate_detail.get("held") or []
    }
    rows = [
        f"[{prose(edit.target)}/{prose(edit.op)}] {prose(edit.content)} {DASH} "
        f"{prose(reasons.get((edit.target, edit.content)) or 'see the policy')}"
        for edit in report.held_edits
    ]
    return _bullets("Held for review: in no proposal, never adopted by itself", rows)


def _groups(groups: Sequence[SkillGroupReport]) -> str:
    if not groups:
        return ""
    table = ["| Skill | Decision | Gate | Tasks | Held-out | Edits |", "|---|---|---|---|---|---|"]
    for group in groups:
        done = group.status == "consolidated"
        scores = _group_scores(group) if done else DASH
        decision = ("accepted" if group.accepted else "not accepted") if done else group.status
        reason = f": {group.reason}" if group.reason else ""
        edits = f"+{group.n_applied_edits} / -{group.n_rejected_edits}" if done else DASH
        gate = table_cell(group.gate_action) if done and group.gate_action else DASH
        name = table_cell(group.skill_name)
        table.append(f"| {name} | {table_cell(decision + reason)} | {gate} | {group.n_tasks} | {scores} | {edits} |")
    return "## Per-skill groups\n\n" + "\n".join(table) + "\n"


def _group_scores(group: SkillGroupReport) -> str:
    action = "" if group.no_edits_reason in UNMEASURED else group.gate_action
    unsure = " (unvalidated)" if action == "reject_unverified" else ""
    return scores_text(group.baseline_score, group.candidate_score, action=action, status="") + unsure


def _closing(report: SleepReport) -> str:
    if report.accepted or any(group.accepted for group in report.skill_groups):
        return "`skillopt-sleep diff` shows the change, `adopt` makes it, `undo` takes it back.\n"
    return "Nothing is proposed for adoption.\n"


def _list(title: str, lines: Iterable[str]) -> str:
    return _bullets(title, [prose(line) for line in lines])


def _bullets(title: str, rows: Sequence[str]) -> str:
    return f"## {title}\n\n" + "".join(f"- {row}\n" for row in rows) if rows else ""


def _yes(value: bool) -> str:
    return "yes" if value else "no"

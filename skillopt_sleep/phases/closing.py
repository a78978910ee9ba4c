"""The decision of a night: its report, and a record of everything that is left to carry out.

Once the record is on disk no model is asked any more, and a kill changes nothing of the outcome.
"""

from __future__ import annotations

from typing import Any

from skillopt_sleep import paths
from skillopt_sleep.learn import refused_edits, skill_group_reports, slow_note
from skillopt_sleep.phases.coding import modes_of
from skillopt_sleep.phases.context import LiveDocument, Night
from skillopt_sleep.phases.holdout import holdout_record
from skillopt_sleep.phases.learning import SLOW_NOTE
from skillopt_sleep.redact import redact_secrets
from skillopt_sleep.report import render_report
from skillopt_sleep.show import json_safe, terminal_line
from skillopt_sleep.types import ConsolidationResult, TaskRecord

_RAW_HEAD = 1200
_UNDECIDED = ("inconclusive", "reject_unverified")
_FAILED = ("too_many_errors", "reflect_failed")


def decide(night: Night) -> dict[str, Any]:
    """Complete the report and return the closing record."""
    report, result = night.report, night.result
    if result is not None:
        _take_result(night, result)
    report.skill_groups = skill_group_reports(night.groups)
    report.notes += [
        f"Skill {terminal_line(one.skill_name)}: {one.reason}" for one in night.groups if one.status != "consolidated"
    ]
    report.n_replayed = len(night.replayed)
    report.tokens_used, report.usage = _usage(night)
    if report.usage.get("tasks_in_checkouts"):
        done, told = report.usage["tasks_in_checkouts"], report.usage["tasks_in_text"]
        report.notes.append(f"Tasks done in a checkout: {done}; answered in text: {told}.")
    report.ended_at = night.clock().isoformat(timespec="seconds")
    report.status = report.status or _status(night)
    if night.seed is None and report.status == "inconclusive" and not _worked(night):
        report.notes.append("The sessions of this night wait: the next one takes them together with new ones.")
    report.notes = list(dict.fromkeys(str(redact_secrets(note)) for note in report.notes))
    return _record(night)


def _take_result(night: Night, result: ConsolidationResult) -> None:
    report = night.report
    report.baseline_score, report.candidate_score = result.baseline_score, result.candidate_score
    report.accepted, report.gate_action = result.accepted, result.gate_action
    report.holdout_leaked, report.no_edits_reason = result.holdout_leaked, result.no_edits_reason
    report.edits, report.rejected_edits = result.applied_edits, result.rejected_edits
    report.unmatched_edits, report.held_edits = result.unmatched_edits, result.held_edits
    report.gate_trials = redact_secrets(list(json_safe(result.gate_trials)))
    report.gate_detail = redact_secrets(dict(json_safe(result.gate_detail)))
    report.n_errors += result.n_errors
    if result.call_error:
        report.notes.append(f"The last call that failed: {result.call_error}")


def _usage(night: Night) -> tuple[int, dict[str, Any]]:
    meter = getattr(night.backend, "meter", None)
    usage = meter.to_dict() if meter is not None else {}
    usage["estimated"] = bool(getattr(night.backend, "tokens_estimated", False))
    usage.update(modes_of(night, night.replayed))
    tokens = getattr(night.backend, "tokens_used", None)
    return max(int(usage.get("tokens", 0)), int(tokens()) if callable(tokens) else 0), usage


def _status(night: Night) -> str:
    """One word for how the night went: stopped by a limit, without tasks, with too many failures, undecided, done.

    Undecided is a night in which nothing was decided, neither for the managed skill nor for any named one; it had too
    many failures when a named skill failed outright.
    """
    if night.stopped:
        return "budget_spent"
    if not night.tasks:
        return "no_tasks"
    own = night.result
    if own is not None and own.no_edits_reason in _FAILED:
        return "degraded"
    if any(row.get("verdict") == "inconclusive" and row.get("n_errors") for row in night.report.gate_trials):
        return "degraded"
    results = [one for one in (own, *(group.result for group in night.groups)) if one is not None]
    if any(map(_decided, results)):
        return "completed"
    if any(one.no_edits_reason in _FAILED for one in results) or any(one.status == "failed" for one in night.groups):
        return "degraded"
    return "inconclusive" if results else "completed"


def _decided(result: ConsolidationResult) -> bool:
    return result.gate_action not in _UNDECIDED and result.no_edits_reason not in _FAILED


def _record(night: Night) -> dict[str, Any]:
    report, result = night.report, night.result
    staged = report.status != "no_tasks"
    worked = _worked(night)
    slow = night.trace.slow
    record = {
        "report": report.to_dict(),
        "report_md": render_report(report, night.config, backend=str(getattr(night.backend, "name", ""))),
        "stage": staged,
        "skill": _proposal(night.skill, _changed(result, "new_skill", night.start)),
        "memory": _proposal(night.memory, _changed(result, "new_memory", night.memory.text)),
        "proposals": [proposal.to_dict() for proposal in night.proposals],
        "skill_roots": night.skill_roots,
        "receipt": night.receipt.to_dict() if night.receipt is not None and worked else None,
        "tasks": [_archived(night, task) for task in _own_tasks(night)],
        "holdout": holdout_record(night),
        "worked": worked,
        "refused": [edit.to_dict() for edit in refused_edits(result)] if result is not None else [],
        "slow_note": {SLOW_NOTE: slow_note(night.trace.train_pairs, night.start)} if night.trace.train_pairs else {},
        "slow_memory": slow.guidance if slow.accepted and report.accepted else None,
        "model_key": str(getattr(night.backend, "model_key", "")),
        "diagnostics": _diagnostics(night),
        "adopt": bool(night.config.get("auto_adopt")) and report.accepted,
    }
    return dict(json_safe(record))


def _own_tasks(night: Night) -> list[TaskRecord]:
    """The tasks that tonight brought: no dreams, and none that is archived already."""
    return [task for task in night.tasks if task.origin != "dream" and task.id not in night.helpers]


def _worked(night: Night) -> bool:
    """Whether the night is done with its sessions. Too few to decide by wait for more, while there is room.

    Answers that were paid for are kept with the sessions, so that waiting costs nothing.
    """
    report = night.report
    if report.status != "inconclusive":
        return report.status in ("completed", "no_tasks") or (report.status == "degraded" and report.accepted)
    tasks = int(night.config.get("max_tasks_per_night"))
    full = report.n_tasks >= tasks or report.n_sessions >= night.config.session_limit
    return night.seed is not None or full


def _changed(result: ConsolidationResult | None, name: str, before: str) -> str | None:
    """The accepted new text of a document; None when there is none or it is what was there."""
    text = getattr(result, name, None) if result is not None and result.accepted else None
    return text if text is not None and text != before else None


def _proposal(live: LiveDocument, text: str | None) -> dict[str, Any]:
    return {"path": live.path, "real": live.real, "sha256": live.sha256, "text": text}


def _archived(night: Night, task: TaskRecord) -> dict[str, Any]:
    """A task for the archive of its own project; a task of a folder in this project belongs to this one."""
    here = night.config.project
    project = paths.expand(task.project) if task.project else here
    inside = night.seed is not None or project == here or here in project.parents
    return {**task.to_dict(), "project": str(here if inside else project)}


def _diagnostics(night: Night) -> dict[str, Any]:
    report, result = night.report, night.result
    value = {
        "night": report.night,
        "backend": str(getattr(night.backend, "name", "")),
        "opencode_tool_replay": bool(night.config.get("opencode_tool_replay")),
        "gate_mode": str(night.config.get("gate_mode")),
        "gate_no_regression": report.gate_no_regression,
        "status": report.status,
        "n_tasks": report.n_tasks,
        "n_replayed": report.n_replayed,
        "n_errors": report.n_errors,
        "baseline_score": report.baseline_score,
        "candidate_score": report.candidate_score,
        "accepted": report.accepted,
        "gate_action": report.gate_action,
        "holdout_leaked": report.holdout_leaked,
        "n_applied_edits": len(report.edits),
        "n_rejected_edits": len(report.rejected_edits),
        "n_unmatched_edits": len(report.unmatched_edits),
        "call_error": result.call_error if result is not None else "",
        "reflect_raw_head": result.reflect_raw[:_RAW_HEAD] if result is not None else "",
        "holdout_detail": result.holdout_detail if result is not None else [],
        "gate_trials": report.gate_trials,
    }
    return dict(json_safe(redact_secrets(value)))

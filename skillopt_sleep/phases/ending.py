"""Carrying a decided night out: stage, move the cursor, save the state, adopt, tidy up. Each step may be done twice.

The state is saved before anything is adopted, and nothing that was paid for is forgotten before the state is saved.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from skillopt_sleep import evidence, paths, staging
from skillopt_sleep.backends import CallCache
from skillopt_sleep.errors import SleepError, StagingError
from skillopt_sleep.evidence import EvidenceLog
from skillopt_sleep.harvest import Receipt, commit
from skillopt_sleep.mining import SplitMemory
from skillopt_sleep.phases.context import Night, handoff_in, parts_of
from skillopt_sleep.phases.journal import Journal
from skillopt_sleep.report import UNMEASURED
from skillopt_sleep.staging import disk, manifest
from skillopt_sleep.types import CycleOutcome, SkillProposal, SleepReport, TaskRecord

LAST_FAILURE = "last_failure"
_MANIFEST = manifest.FILE


def carry_out(night: Night) -> CycleOutcome:
    """Do everything that the closing record of the open night says, and close it."""
    journal = _open(night)
    closing = dict(journal.closing or {})
    night.report = SleepReport.from_dict(closing["report"])
    if closing["stage"]:
        stage(night, closing)
    if not journal.committed:
        move_cursor(night, closing)
        save_state(night, closing)
    adopted = adopt(night, closing)
    tidy_up(night, closing, adopted=bool(adopted))
    return CycleOutcome(night.report, journal.staging_dir, bool(adopted), adopted)


def stage(night: Night, closing: dict[str, Any]) -> None:
    """Publish the proposal with its report, evidence and diagnostics; nothing when that was done before the kill."""
    journal = _open(night)
    if not journal.staging_dir or not Path(journal.staging_dir).is_dir():
        journal.staging_dir = staging.new_staging_dir(night.project)
        journal.write()
    folder = Path(journal.staging_dir)
    if (folder / _MANIFEST).exists():
        return
    night.say(f"staging in {folder}")
    _move_evidence(night, folder / "evidence.jsonl")
    skill, memory = closing["skill"], closing["memory"]
    staging.write_staging(
        night.project,
        report=closing["report"],
        proposed_skill=skill["text"],
        proposed_memory=memory["text"],
        live_skill_path=skill["path"],
        live_memory_path=memory["path"],
        live_skill_sha256=skill["sha256"],
        live_memory_sha256=memory["sha256"],
        live_skill_realpath=skill["real"],
        live_memory_realpath=memory["real"],
        report_md=closing["report_md"],
        out_dir=folder,
        skill_proposals=[SkillProposal.from_dict(row) for row in closing["proposals"]],
        skill_roots=closing["skill_roots"],
        cfg=night.config,
    )
    night.record(
        "stage",
        "staged",
        staging_dir=str(folder),
        has_skill=skill["text"] is not None,
        has_memory=memory["text"] is not None,
        accepted=night.report.accepted,
    )
    with contextlib.suppress(OSError):  # a help for whoever looks for a fault, nothing that anything depends on
        paths.write_private_json(folder / "diagnostics.json", closing["diagnostics"])


def move_cursor(night: Night, closing: dict[str, Any]) -> None:
    """The sessions of this night have been worked with."""
    if closing["receipt"] is not None:
        commit(Receipt.from_dict(closing["receipt"]))
        night.state.set_last_harvest(night.project, float(closing["receipt"]["harvested_at"]))


def save_state(night: Night, closing: dict[str, Any]) -> None:
    """The one point from which on this night counts."""
    journal, state = _open(night), night.state
    tasks = [TaskRecord.from_dict(row) for row in closing["tasks"]]
    _count_night(night, journal)
    state.record_night(history_row(night.report, journal))
    if closing.get("holdout"):
        state.record_holdout(night.project, journal.night, **closing["holdout"])
    if closing["worked"]:
        state.add_to_archive(tasks)
    SplitMemory(state, night.project).remember(tasks)
    if closing["refused"]:
        state.add_rejected_edits(night.project, closing["refused"])
    for name, value in closing["slow_note"].items():
        state.set_note(night.project, name, value)
    if closing["slow_memory"] is not None:
        state.set_slow_memory(closing["slow_memory"], night.project)
    if closing["model_key"] and closing["stage"]:
        state.set_last_model_key(closing["model_key"])
    state.set_note(night.project, LAST_FAILURE, None)
    state.save()
    journal.committed = True
    journal.write()


def adopt(night: Night, closing: dict[str, Any]) -> list[str]:
    """Adopt an accepted managed proposal when the person wants that; what is held for review stays staged.

    Raises StagingError when it cannot be adopted; the proposal then stays pending.
    """
    if not closing["adopt"]:
        return []
    folder = _open(night).staging_dir
    rows = [row for row in staging.view(folder, cfg=night.config).rows if row.row.kind == "managed"]
    if rows and all(row.status == "adopted" for row in rows):
        return [row.row.live_realpath for row in rows]
    try:
        return staging.adopt(folder, auto=True, cfg=night.config)
    except staging.AdoptionRefused as refused:
        if "held for review" not in str(refused):
            raise
        night.note(f"Not adopted: {refused}")
        return []


def tidy_up(night: Night, closing: dict[str, Any], *, adopted: bool) -> None:
    """Forget what only an interrupted night needs, and prune old nights. The journal goes last."""
    journal, report = _open(night), night.report
    night.record(
        "cycle",
        "end",
        outcome=report.status,
        night=report.night,
        accepted=report.accepted,
        gate_action=report.gate_action,
        baseline=report.baseline_score,
        candidate=report.candidate_score,
        n_tasks=report.n_tasks,
        tokens_used=report.tokens_used,
        adopted=adopted,
    )
    evidence.attach(night.backend, None)
    if not closing["stage"]:
        _move_evidence(night, paths.evidence_folder(night.config.state_dir) / f"night-{report.night}.jsonl")
    if closing["worked"]:
        _forget_calls(night, journal)
    handoff = handoff_in(night.backend)
    if handoff is not None and closing["stage"] and closing["worked"]:
        handoff.folder.archive(report.night)
    else:
        if handoff is not None:
            handoff.folder.write_pending({})  # every prompt of this night has its answer
        drop_pins(night)
    with contextlib.suppress(SleepError, OSError):  # old nights can be pruned another time
        staging.gc(night.project, keep=int(night.config.get("retention_nights")), cfg=night.config)
    journal.remove()


def record_failure(night: Night, error: BaseException) -> None:
    """Close a night that failed: it is in the history and in `status`; its sessions wait for the next night."""
    journal = night.journal
    if journal is None:
        return
    if journal.committed:
        note_failure(night, error, journal.night)
        tidy_up(night, dict(journal.closing or {}), adopted=False)
        return
    night.report.status = "failed"
    night.report.n_replayed = night.report.n_replayed or len(night.replayed)
    _count_night(night, journal)
    night.state.record_night({**history_row(night.report, journal), "reason": str(error)})
    note_failure(night, error, journal.night)
    night.record("cycle", "end", outcome="failed", night=journal.night, error=str(error))
    _move_evidence(night, paths.evidence_folder(night.config.state_dir) / f"night-{journal.night}.jsonl")
    _give_folder_back(journal)
    drop_pins(night)
    journal.remove()


def note_failure(night: Night, error: BaseException, number: int) -> None:
    """Keep what went wrong where `status` shows it."""
    row = {"night": number, "at": night.clock().timestamp(), "message": str(error), "error": getattr(error, "code", "")}
    night.state.set_note(night.project, LAST_FAILURE, row)
    night.state.save()


def history_row(report: SleepReport, journal: Journal) -> dict[str, Any]:
    """The row of a night in the history."""
    row = {
        "night": journal.night,
        "accepted": report.accepted,
        "baseline": report.baseline_score,
        "candidate": report.candidate_score,
        "n_tasks": report.n_tasks,
        "n_replayed": report.n_replayed,
        "staging": journal.staging_dir,
        "project": journal.project,
        "status": report.status,
        "gate_action": report.gate_action,
        "began": journal.began,
    }
    if report.no_edits_reason in UNMEASURED:
        row.update(baseline=None, candidate=None)
    if report.status == "no_tasks":
        row = {key: row[key] for key in ("night", "accepted", "n_tasks", "project", "status", "began")}
    return row


def drop_pins(night: Night) -> None:
    """The next night harvests anew."""
    if night.pins is not None:
        night.pins.drop_pins()


def _count_night(night: Night, journal: Journal) -> None:
    while night.state.night < journal.night:
        night.state.begin_night(night.clock)


def _forget_calls(night: Night, journal: Journal) -> None:
    for part in parts_of(night.backend):
        cache = getattr(part, "cache", None)
        if isinstance(cache, CallCache) and cache.path == journal.calls:
            cache.clear()
    journal.calls.unlink(missing_ok=True)


def _move_evidence(night: Night, target: Path) -> None:
    """Take the evidence to where it stays; later events go there too."""
    journal = night.journal
    if night.log is None or journal is None or night.log.path == target:
        return
    source = night.log.path
    seen = disk.look(source)
    if seen is not None:
        paths.write_private(target, seen.data)
    night.log = EvidenceLog(target, max_chars=night.log.max_chars, redact=bool(night.config.get("redact_secrets")))
    evidence.attach(night.backend, night.log)
    if source == journal.evidence:
        source.unlink(missing_ok=True)


def _give_folder_back(journal: Journal) -> None:
    """Remove the reserved night folder when nothing was published in it."""
    folder = Path(journal.staging_dir)
    if journal.staging_dir and not (folder / _MANIFEST).exists():
        with contextlib.suppress(OSError):  # something else is in it: it stays
            (folder / "evidence.jsonl").unlink(missing_ok=True)
            folder.rmdir()


def _open(night: Night) -> Journal:
    if night.journal is None:
        raise StagingError("A dry run carries nothing out.")
    return night.journal

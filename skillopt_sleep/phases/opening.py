"""Opening a night: everything that can go wrong for nothing goes wrong here, before a single call is paid for."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from skillopt_sleep import evidence, paths, staging
from skillopt_sleep.backends import CallCache, HandoffFolder, backend_for_config
from skillopt_sleep.config import SleepConfig
from skillopt_sleep.errors import StagingError
from skillopt_sleep.evidence import EvidenceLog
from skillopt_sleep.learn import check_document
from skillopt_sleep.phases.coding import close_workshop, open_workshop_for, placed_seed, preflight
from skillopt_sleep.phases.context import Clock, LiveDocument, Night, parts_of, pins_of, read_document, scaffolded
from skillopt_sleep.phases.journal import (
    CALLS,
    Journal,
    begin_journal,
    differing,
    drop_old_calls,
    marks_of,
    next_number,
    read_journal,
)
from skillopt_sleep.phases.models import tell_change
from skillopt_sleep.prompts import override_problem
from skillopt_sleep.staging.signing import load_seal
from skillopt_sleep.state import SleepState
from skillopt_sleep.types import EditRecord, SleepReport, TaskRecord

LOGGED = (
    *("backend", "model", "optimizer_backend", "target_backend", "judge_backend", "transcript_source", "projects"),
    *("max_tasks_per_night", "max_tokens_per_night", "max_calls_per_night", "gate_mode", "gate_metric", "gate_min_val"),
    *("gate_no_regression", "edit_budget", "dream_rollouts", "dream_factor", "recall_k", "evolve_skill", "seed"),
    *("preferences", "replay_mode", "replay_checks"),
)


def utc_now() -> datetime:
    """The usual clock of a night."""
    return datetime.now(timezone.utc)


def open_night(
    config: SleepConfig,
    *,
    seed: Sequence[TaskRecord] | None,
    dry_run: bool,
    clock: Clock,
    backend: Any = None,
    preview: bool = False,
) -> Night:
    """A night that can begin, or go on where a killed one stopped. For a `preview` none of the person's commands runs.

    Whoever opens a night closes its workshop, with `close_workshop`. Raises StateBroken, StagingError, UsageProblem or
    CallFailed (setup, auth) with what has to be mended.
    """
    night = _new_night(config, backend, clock, dry_run=dry_run)
    night.seed = [TaskRecord.from_dict(task.to_dict()) for task in seed] if seed is not None else None
    model, finished = night.backend, night.journal
    key = str(getattr(model, "model_key", "") or f"{getattr(model, 'name', '')}::{getattr(model, 'model', '')}")
    _prepare(model, config, night.state)
    marks = marks_of(config, key, night.seed)
    night.outdated = finished is not None and bool(differing(finished.marks, marks))
    try:
        anew = _begin(night, marks, preview=preview)
        _give_cache(model, config)
        _start_evidence(night, key, resumed=_restore(model, night.journal))
        if finished is None:
            tell_change(night, key, aloud=anew and not preview)
    except BaseException:
        close_workshop(night)
        raise
    return night


def _new_night(config: SleepConfig, backend: Any, clock: Clock, *, dry_run: bool) -> Night:
    """A night with its documents and its models; one that is decided already comes with its journal."""
    state = SleepState.load(config.state_path)
    notes: list[str] = [*config.notices, *state.notices, *filter(None, [override_problem()])]
    finished = _decided(config, dry_run=dry_run)
    skill, memory, evolve = _documents(config, notes, finished)
    model = backend if backend is not None else backend_for_config(config, checked=finished is None)
    report = SleepReport(0, str(config.project), notes=notes)
    report.gate_no_regression = bool(config.get("gate_no_regression"))
    return Night(
        config=config,
        state=state,
        backend=model,
        clock=clock,
        report=report,
        skill=skill,
        memory=memory,
        start=scaffolded(config, skill),
        dry_run=dry_run,
        journal=finished,
        pins=pins_of(config, model, dry_run=dry_run),
        evolve_skill=evolve["skill"],
        evolve_memory=evolve["memory"],
    )


def _begin(night: Night, marks: dict[str, str], *, preview: bool) -> bool:
    """Find or open the journal, and before that everything that coding tasks need. False for a night that goes on."""
    config, state = night.config, night.state
    began, anew = night.clock(), False
    if night.journal is None:
        night.workshop = open_workshop_for(config, night.backend)
        night.seed = placed_seed(night.workshop, night.seed)
        if not night.dry_run:
            night.journal = _going_on(config, state, marks, night.report.notes, night.pins)
        if night.journal is None and night.workshop is not None and not preview:
            night.say("trying the commands that the work is judged by")
            preflight(night.workshop, config, night.seed)
        anew = night.journal is None
        if night.journal is None and not night.dry_run:
            number = next_number(config.state_dir, state.night)
            night.journal = begin_journal(config, number, began.timestamp(), marks)
        if night.workshop is not None:
            night.backend.workshop, night.backend.say = night.workshop, night.say
    journal = night.journal
    night.report.night = journal.night if journal is not None else next_number(config.state_dir, state.night)
    at = datetime.fromtimestamp(journal.began, timezone.utc) if journal is not None else began
    night.report.started_at = at.isoformat(timespec="seconds")
    return anew


def _decided(config: SleepConfig, *, dry_run: bool) -> Journal | None:
    """The open night that has been decided and only waits to be carried out."""
    journal = None if dry_run else read_journal(config.night_folder)
    return journal if journal is not None and journal.closing is not None else None


def _documents(
    config: SleepConfig, notes: list[str], finished: Journal | None
) -> tuple[LiveDocument, LiveDocument, dict[str, bool]]:
    """Both live documents, and which of them this night may change."""
    evolve = {"skill": bool(config.get("evolve_skill")), "memory": bool(config.get("evolve_memory"))}
    skill, memory = read_document(config.managed_skill_path), read_document(config.memory_path)
    if finished is not None:
        return skill, memory, evolve
    _check_writable(config)
    check_document(skill.text, name=skill.real)
    check_document(memory.text, name=memory.real)
    problems = staging.preflight(config)
    for problem in problems:
        evolve[problem.target] = False
        notes.append(f"The {problem.target} is left alone tonight: {problem.message}")
    if problems and not any(evolve.values()) and not config.fanout:
        raise StagingError(f"Nothing could be staged, so nothing was spent. {problems[0].message}")
    return skill, memory, evolve


def _check_writable(config: SleepConfig) -> None:
    for folder in (config.state_dir, config.staging_root):
        there = next(path for path in (folder, *folder.parents) if path.exists())
        if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
            raise StagingError(
                f"{there} cannot be written by this user, so {folder} cannot be kept; nothing was spent."
            )


def _prepare(backend: Any, config: SleepConfig, state: SleepState) -> None:
    """Give the backend the person's wishes and what did not help before, and let it count anew."""
    backend.preferences = str(config.get("preferences") or "")
    refused = [EditRecord.from_dict({"target": "", "op": "", **row}) for row in state.rejected_edits(config.project)]
    seal = load_seal(config.state_dir, create=False)
    turned_down = [EditRecord("", "add", rule) for rule in staging.rejected_rules(config.project, seal=seal)]
    backend.rejected_edits = (*refused, *turned_down)
    backend.replayed = set()


def _going_on(
    config: SleepConfig, state: SleepState, marks: dict[str, str], notes: list[str], pins: HandoffFolder | None
) -> Journal | None:
    """The journal of the night that was interrupted; None when there is none, or other settings hold now."""
    old = read_journal(config.night_folder)
    if old is None:
        return None
    changed = differing(old.marks, marks)
    if not changed:
        notes.append(f"Night {old.night} was interrupted and went on; what it had paid for was not paid again.")
        return old
    notes.append(
        f"Night {old.night} was interrupted and given up, because {', '.join(changed)} changed. Its answers stay "
        "and are not paid for again where they still fit."
    )
    state.record_night(_abandoned(old, changed))
    if pins is not None:
        pins.drop_pins()
    return None


def _abandoned(old: Journal, changed: list[str]) -> dict[str, Any]:
    reason = f"interrupted, then given up because {', '.join(changed)} changed"
    return {"night": old.night, "project": old.project, "accepted": False, "status": "abandoned", "reason": reason}


def _give_cache(backend: Any, config: SleepConfig) -> None:
    """Let each part of the backend keep its answers on disk."""
    drop_old_calls(config.night_folder)
    cache = CallCache(config.night_folder / CALLS)
    for part in parts_of(backend):
        if getattr(part, "cache", cache) is None:
            part.cache = cache


def _restore(backend: Any, journal: Journal | None) -> bool:
    """Count what the interrupted part of this night has spent against the same caps; whether there was such a part."""
    spent = journal.spent() if journal is not None else {"kinds": {}, "minutes": 0.0}
    if not spent["kinds"] and not spent["minutes"]:
        return False
    meter = getattr(backend, "meter", None)
    if meter is not None:
        meter.restore(spent)
    return True


def _start_evidence(night: Night, key: str, *, resumed: bool) -> None:
    evidence.attach(night.backend, None)
    if not night.config.get("evidence_log"):
        return
    if night.dry_run:
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(night.clock().timestamp()))
        path = _free(paths.evidence_folder(night.config.state_dir) / f"dryrun-{stamp}.jsonl")
    else:
        path = _evidence_path(night)
    chars, redact = int(night.config.get("evidence_max_chars")), bool(night.config.get("redact_secrets"))
    night.log = EvidenceLog(path, max_chars=chars, redact=redact)
    evidence.attach(night.backend, night.log)
    night.record(
        "cycle",
        "resumed" if resumed else "start",
        night=night.report.night,
        project=night.project,
        backend=str(getattr(night.backend, "name", "")),
        model=str(getattr(night.backend, "model", "")),
        models=key,
        config={name: night.config.get(name) for name in LOGGED},
    )


def _evidence_path(night: Night) -> Path:
    if night.journal is None:
        raise AssertionError("only a dry run has no journal")
    staged = Path(night.journal.staging_dir) / "evidence.jsonl" if night.journal.staging_dir else None
    return staged if staged is not None and staged.exists() else night.journal.evidence


def _free(path: Path) -> Path:
    number, free = 1, path
    while free.exists():
        number += 1
        free = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return free

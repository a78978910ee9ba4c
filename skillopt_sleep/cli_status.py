"""`status`: nights so far, what waits, what went wrong."""

from __future__ import annotations

import argparse
import contextlib
import shlex
import time
from pathlib import Path
from typing import Any

from skillopt_sleep import paths, staging
from skillopt_sleep.backends import HandoffFolder
from skillopt_sleep.cli_arguments import overrides_of
from skillopt_sleep.cli_output import line, notice, print_json, replayed_tasks, text_block, waiting_prompts
from skillopt_sleep.config import SleepConfig, load_config
from skillopt_sleep.errors import NightBusy
from skillopt_sleep.locks import holder, night_lock
from skillopt_sleep.phases.ending import LAST_FAILURE
from skillopt_sleep.phases.journal import read_journal
from skillopt_sleep.schedule import last_night
from skillopt_sleep.show import scores_text
from skillopt_sleep.staging import NightView
from skillopt_sleep.state import SleepState

_TAIL = 5


def status(args: argparse.Namespace) -> int:
    """Say how things stand; change nothing but what a kill left behind."""
    config = load_config(**overrides_of(args))
    recover_first(config)
    state = SleepState.load(config.state_path)
    document = _document(config, state)
    if args.json:
        print_json(document)
    else:
        for notice_ in state.notices:
            notice(notice_)
        _show(document)
    return 1 if document.get("staging_error") else 0


def recover_first(config: SleepConfig) -> None:
    """Clean up after a killed adoption, and say so."""
    for one in staging.recover(config.project, cfg=config):
        if one.status == "rolled_back":
            notice(f"An adoption of {Path(one.night).name} had been interrupted; everything is as before it.")
        elif one.status == "blocked":
            notice(one.message)


def _document(config: SleepConfig, state: SleepState) -> dict[str, Any]:
    project = config.project
    latest = staging.latest_staging(project)
    waiting = staging.pending_nights(project, cfg=config)
    night = str(waiting[0].folder) if waiting else latest
    seen = staging.view(night, cfg=config) if night else None
    problem = staging.view(latest, cfg=config).problem if latest else ""
    named = [one for one in seen.rows if one.row.kind == "named"] if seen is not None else []
    journal = read_journal(config.night_folder)
    document: dict[str, Any] = {
        "night": state.night,
        "state_path": str(config.state_path),
        "project": str(project),
        "history_tail": state.history[-_TAIL:],
        "latest_staging": latest,
        "slow_memory_chars": len(state.slow_memory_for(project) or state.slow_memory),
        "staged_skills": [one.row.name for one in named if one.status in ("pending", "stale")],
        "adopted_skills": [one.row.name for one in named if one.status == "adopted"],
        "has_managed_proposal": any(row.kind == "managed" for row in seen.pending) if seen is not None else False,
        "pending": [_pending(one) for one in waiting],
        "running": _running(config),
        "interrupted_night": journal.night if journal is not None else None,
        "handoff_pending": _handoff(project) if journal is not None else None,
        "last_failure": state.note(project, LAST_FAILURE),
        "last_scheduled": _scheduled(project),
    }
    if problem:
        document["staging_error"] = problem
    return document


def _pending(one: NightView) -> dict[str, Any]:
    return {
        "staging_dir": str(one.folder),
        "accepted": one.accepted,
        "proposals": [row.name for row in one.pending],
        "held": list(one.held),
        "created": one.created,
    }


def _running(config: SleepConfig) -> dict[str, Any] | None:
    """Who works with the state folder now; None when nobody does, whatever an old lock file says."""
    lock = night_lock(config.state_dir)
    if not lock.path.exists():
        return None
    owner = holder(lock.path)
    try:
        with lock:
            return None
    except NightBusy:
        return owner


def _handoff(project: Path) -> dict[str, Any] | None:
    """The prompts of a handoff that still have no answer; None when there are none."""
    folder = HandoffFolder(paths.handoff_folder(project))
    keys = folder.waiting()
    return {"count": len(keys), "prompts": str(folder.prompts_file)} if keys else None


def _scheduled(project: Path) -> dict[str, Any] | None:
    last = last_night(project)
    if last is None:
        return None
    return {"began": last.began, "ended": last.ended, "exit_code": last.exit_code, "message": last.message}


def _show(document: dict[str, Any]) -> None:
    line(f"project {document['project']}: nights so far: {document['night']} (state: {document['state_path']})")
    for row in document["history_tail"]:
        action = row.get("gate_action", row.get("candidate") is not None)  # rows of older versions have none
        scores = scores_text(row.get("baseline"), row.get("candidate"), action=action, status=row.get("status"))
        word = row.get("status") or ("accepted" if row.get("accepted") else "rejected")
        accepted = ", accepted" if row.get("accepted") else ""
        tasks = replayed_tasks(row.get("n_tasks", 0), row.get("n_replayed", row.get("n_tasks", 0)))
        line(f"  night {row.get('night')}: {word}{accepted}, {tasks}, {scores}")
    _show_trouble(document)
    for one in document["pending"]:
        held = f"; held for review: {'; '.join(one['held'])}" if one["held"] else ""
        line(f"waits: {', '.join(map(ascii, one['proposals']))} in {one['staging_dir']}{held}")
    if document["adopted_skills"]:
        line(f"adopted skills: {', '.join(map(ascii, document['adopted_skills']))}")
    _show_report(document["latest_staging"], document["project"])


def _show_trouble(document: dict[str, Any]) -> None:
    if document["running"]:
        line(f"a night is running (process {document['running']['pid']})")
    elif document["handoff_pending"]:
        asked = document["handoff_pending"]
        line(f"night {document['interrupted_night']}: {waiting_prompts(asked['count'])}: {asked['prompts']}")
    elif document["interrupted_night"] is not None:
        line(f"night {document['interrupted_night']} was interrupted; `skillopt-sleep run` goes on with it")
    failure = document["last_failure"]
    if failure:
        line(f"the last night failed ({_time(failure.get('at'))}): {failure.get('message')}")
    last = document["last_scheduled"]
    if last and last["exit_code"] != 0:
        how = "did not end" if last["exit_code"] is None else f"ended with exit code {last['exit_code']}"
        line(f"the last scheduled night ({_time(last['began'])}) {how}: {last['message']}")
    if document.get("staging_error"):
        line(f"the latest staging cannot be read: {document['staging_error']}")


def nothing_staged(project: str | Path) -> str:
    """That a project has no night, and which folder above it has some."""
    above = paths.project_above(project)
    hint = f"; there are nights of {above}: pass --project {shlex.quote(str(above))}" if above is not None else ""
    return f"nothing is staged here{hint}"


def _show_report(latest: str | None, project: str) -> None:
    if latest is None:
        line(nothing_staged(project))
        return
    line(f"latest staging: {latest}")
    with contextlib.suppress(OSError):
        report = Path(latest) / "report.md"
        if not report.is_symlink():
            text_block(report.read_bytes().decode("utf-8", "replace"))


def _time(at: Any) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at)) if isinstance(at, (int, float)) else "unknown time"

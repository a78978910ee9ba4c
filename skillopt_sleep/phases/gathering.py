"""Gathering: the sessions that no night has worked with yet, and the tasks in them."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from skillopt_sleep import evidence
from skillopt_sleep.errors import UsageProblem
from skillopt_sleep.harvest import Receipt, harvest, hold_window
from skillopt_sleep.mining import SplitMemory, make_llm_miner, mine
from skillopt_sleep.phases.coding import place_tasks
from skillopt_sleep.phases.context import Night, mocked
from skillopt_sleep.phases.holdout import arrange_holdout, tell_holdout
from skillopt_sleep.show import counted, terminal_line
from skillopt_sleep.types import SessionDigest, TaskRecord

_PROMPTS, _PROMPT_CHARS, _FINAL_CHARS = 6, 200, 300
_INTENT_CHARS = 300


def gather_sessions(night: Night) -> None:
    """Harvest what is new; pinned sessions or tasks of an interrupted night are taken instead, given tasks as well."""
    if night.seed is not None or _pinned_tasks(night):
        return
    pinned = _pinned(night, "digests")
    if pinned is not None:
        night.digests, about = pinned
        night.receipt = _receipt(about.get("receipt"))
    else:
        night.say(f"reading the sessions of {night.project}")
        found = harvest(night.config, now=night.clock().timestamp())
        night.digests, night.receipt = found.digests, found.receipt
        night.report.notes += found.notes
        if not night.dry_run:
            hold_window(found.receipt)
        if night.pins is not None:
            night.pins.pin_digests(night.digests, receipt=json.dumps(found.receipt.to_dict()), notes=found.notes)
    night.report.n_sessions = len(night.digests)
    for digest in night.digests:
        _log_session(night, digest)


def find_tasks(night: Night) -> None:
    """The tasks of the night, with their splits. Without a task the night is over."""
    if night.seed is not None:
        night.tasks = night.seed
        arrange_holdout(night)
    else:
        pinned = bool(night.tasks)
        if not pinned:
            night.tasks = _mined(night)
        place_tasks(night)
        if not pinned:
            arrange_holdout(night)
        if night.pins is not None and night.tasks and not pinned:
            receipt = json.dumps(night.receipt.to_dict()) if night.receipt is not None else ""
            holdout = json.dumps({"moved": night.moved, "helpers": night.helpers})
            night.pins.pin_tasks(night.tasks, receipt=receipt, n_sessions=night.report.n_sessions, holdout=holdout)
    night.report.n_tasks = len(night.tasks) - len(night.helpers)
    for task in night.tasks:
        _log_task(night, task)
    if not night.tasks:
        night.over = True
        where = "the tasks file holds none" if night.seed is not None else "no new session holds one"
        night.note(f"There are no tasks tonight: {where}.")
    elif night.seed is None and mocked(night.backend):
        night.note("The backend mock calls no model and learns nothing from sessions; choose another with --backend.")
    night.say(counted(len(night.tasks), "task"))
    tell_holdout(night)


def asks_miner(night: Night) -> bool:
    """Whether a model is asked for the tasks in tonight's sessions."""
    return bool(night.config.get("llm_mine")) and not mocked(night.backend) and bool(night.digests)


def _pinned_tasks(night: Night) -> bool:
    pinned = _pinned(night, "tasks")
    if pinned is None or not pinned[0]:
        return False
    night.tasks, about = pinned
    night.receipt = _receipt(about.get("receipt"))
    night.moved, night.helpers = _arranged(about.get("holdout"))
    count = about.get("n_sessions")
    night.report.n_sessions = count if isinstance(count, int) else 0
    return True


def _arranged(text: Any) -> tuple[dict[str, str], list[str]]:
    """Who changed sides and who helps, as it was pinned."""
    try:
        about = json.loads(text)
        moved = {str(name): str(split) for name, split in about["moved"].items()}
        return moved, [str(name) for name in about["helpers"]]
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}, []


def _pinned(night: Night, what: str) -> Any:
    """What an earlier run of this night has pinned; what cannot be read is found anew."""
    if night.pins is None:
        return None
    try:
        return night.pins.pinned_tasks() if what == "tasks" else night.pins.pinned_digests()
    except UsageProblem as error:
        night.note(f"{error} It is done anew.")
        sys.stderr.write(f"[sleep] {terminal_line(error)} It is done anew.\n")
        return None


def _mined(night: Night) -> list[TaskRecord]:
    config = night.config
    most = int(config.get("max_tasks_per_night"))
    target = str(config.managed_skill_path) if config.get("target_skill_path") else ""
    filtered = bool(config.get("target_task_filter") and target and night.skill.text.strip())
    candidates = 3 * most if filtered else most
    val, test = config.fractions
    evidence.set_phase(night.backend, "mine")
    by_model = asks_miner(night)
    miner = _Miner(night, most)
    found: list[TaskRecord] = []
    tasks = mine(
        night.digests,
        max_tasks=most,
        candidate_limit=candidates,
        val_fraction=val,
        test_fraction=test,
        seed=int(config.get("seed")),
        llm_miner=miner if by_model else None,
        target_skill_text=night.skill.text if filtered else "",
        target_skill_path=target if filtered else "",
        memory=SplitMemory(night.state, night.project),
        notes=night.report.notes,
        found=found,
    )
    _keep_backlog(night, found, most if miner.found else candidates)
    return tasks


class _Miner:
    """The model's miner, which remembers what it found."""

    def __init__(self, night: Night, most: int) -> None:
        self.found: list[TaskRecord] = []
        self._miner = make_llm_miner(night.backend, max_sessions=max(1, len(night.digests)), max_tasks=most)

    @property
    def failures(self) -> list[str]:
        """See LlmMiner."""
        return self._miner.failures

    def __call__(self, digests: Sequence[SessionDigest]) -> list[TaskRecord]:
        self.found = self._miner(digests)
        return self.found


def _keep_backlog(night: Night, mined: Sequence[TaskRecord], limit: int) -> None:
    """Sessions behind the last one that the miner came to stay for another night."""
    if night.receipt is None or len(mined) < limit:
        return
    last = set(mined[-1].source_sessions)
    reached = max(
        (at for at, digest in enumerate(night.digests) if digest.session_id in last), default=len(night.digests)
    )
    left = {digest.raw_path for digest in night.digests[reached + 1 :]}
    if left:
        taken = {path: turns for path, turns in night.receipt.taken.items() if path not in left}
        night.receipt = replace(night.receipt, taken=taken)
        wait, enough = "waits" if len(left) == 1 else "wait", "is" if limit == 1 else "are"
        why = f"{counted(limit, 'task')} {enough} enough for one"
        night.note(f"{counted(len(left), 'session')} {wait} for the next night, because {why}.")


def _receipt(text: Any) -> Receipt | None:
    try:
        return Receipt.from_dict(json.loads(text))
    except (ValueError, TypeError):
        return None


def _log_session(night: Night, digest: SessionDigest) -> None:
    night.record(
        "harvest",
        "session",
        session_id=digest.session_id,
        project=digest.project,
        n_user_prompts=len(digest.user_prompts),
        prompts=[prompt[:_PROMPT_CHARS] for prompt in digest.user_prompts[:_PROMPTS]],
        final=digest.assistant_finals[-1][:_FINAL_CHARS] if digest.assistant_finals else "",
        feedback_signals=digest.feedback_signals,
    )


def _log_task(night: Night, task: TaskRecord) -> None:
    night.record(
        "mine",
        "task_ready",
        task_id=task.id,
        split=task.split,
        origin=task.origin,
        intent=task.intent[:_INTENT_CHARS],
        reference_kind=task.reference_kind,
        checks=task.judge.get("checks", []) if isinstance(task.judge, dict) else [],
        rubric=task.reference,
        source_sessions=task.source_sessions,
    )

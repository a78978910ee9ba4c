"""Finds tasks in sessions with a model: what would come back, and how a good answer can be told."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from skillopt_sleep.errors import CallFailed, PendingCalls
from skillopt_sleep.judges import clean_checks
from skillopt_sleep.mining.heuristic import INTENT_CHARS, says_something, session_skill_hint, short_hash
from skillopt_sleep.prompts import render
from skillopt_sleep.replay.asking import ask
from skillopt_sleep.show import clip
from skillopt_sleep.types import SessionDigest, TaskRecord
from skillopt_sleep.vendored.errors import ReplyError
from skillopt_sleep.vendored.utils.json_reply import read_reply

MAX_TOKENS = 800
_PROMPTS, _PROMPT_CHARS = 6, 240
_FINAL_CHARS = 400
_SIGNALS = 6
_OBJECTS = 3


def make_llm_miner(backend: Any, *, max_sessions: int = 20, max_tasks: int = 40) -> LlmMiner:
    """A function from sessions to tasks that asks `backend` about one session at a time."""
    return LlmMiner(backend, max_sessions=max_sessions, max_tasks=max_tasks)


class LlmMiner:
    """Callable: the tasks in the first `max_sessions` sessions that hold a request, at most `max_tasks`.

    `failures` holds one line for each session that the last call could get no usable reply for.
    """

    def __init__(self, backend: Any, *, max_sessions: int = 20, max_tasks: int = 40) -> None:
        self.backend = backend
        self.max_sessions = max_sessions
        self.max_tasks = max_tasks
        self.failures: list[str] = []

    def __call__(self, digests: Iterable[SessionDigest]) -> list[TaskRecord]:
        """The tasks, in the order of the sessions.

        A failed call loses one session. Raises CallFailed of a fatal kind and BudgetSpent at once, and PendingCalls
        after every session has been asked about.
        """
        self.failures = []
        tasks: list[TaskRecord] = []
        waiting: dict[str, Any] = {}
        talked = [digest for digest in digests if any(prompt.strip() for prompt in digest.user_prompts)]
        for digest in talked[: self.max_sessions]:
            if len(tasks) >= self.max_tasks:
                break
            try:
                tasks += self._session(digest)
            except PendingCalls as error:
                waiting.update(error.pending)
            except CallFailed as error:
                if error.fatal:
                    raise
                self.failures.append(f"session {digest.session_id}: {error}")
        if waiting:
            raise PendingCalls(waiting)
        return tasks[: self.max_tasks]

    def _session(self, digest: SessionDigest) -> list[TaskRecord]:
        prompt = miner_prompt(digest)
        reply = ask(self.backend, prompt, kind="mine", max_tokens=MAX_TOKENS)
        rows = read_rows(reply)
        usable = [row for row in rows or [] if isinstance(row, dict)][:_OBJECTS]
        made = [_task(digest, row) for row in usable]
        tasks = [task for task in made if task is not None]
        if rows is None:
            self.failures.append(f"session {digest.session_id}: the reply holds no JSON array")
        self._log(digest, prompt, reply, tasks, parsed=rows is not None, n_candidates=len(usable))
        return tasks

    def _log(self, digest: SessionDigest, prompt: str, reply: str, tasks: list[TaskRecord], **counts: Any) -> None:
        log = getattr(self.backend, "evidence", None)
        if log is None:
            return
        log.log(
            "mine",
            "miner_exchange",
            session_id=digest.session_id,
            project=digest.project,
            prompt=prompt,
            raw_reply=reply,
            parse_ok=counts["parsed"],
            n_candidates=counts["n_candidates"],
            n_tasks=len(tasks),
            n_dropped_uncheckable=counts["n_candidates"] - len(tasks),
        )
        for task in tasks:
            log.log(
                "mine",
                "task_mined",
                task_id=task.id,
                session_id=digest.session_id,
                intent=task.intent,
                reference_kind=task.reference_kind,
                checks=task.judge.get("checks", []),
                rubric=task.reference,
                outcome=task.outcome,
            )


def miner_prompt(digest: SessionDigest) -> str:
    """What the model is asked about one session: its first six requests, the last answer, the signs of approval."""
    requests = [f"- {clip(' '.join(prompt.split()), _PROMPT_CHARS)}" for prompt in digest.user_prompts[:_PROMPTS]]
    values = {
        "__PROJECT__": clip(" ".join(digest.project.split()), _PROMPT_CHARS),
        "__PROMPTS__": "\n".join(requests),
        "__FINAL__": clip(digest.assistant_finals[-1], _FINAL_CHARS) if digest.assistant_finals else "",
        "__FEEDBACK__": "\n".join(digest.feedback_signals[:_SIGNALS]),
    }
    return render("miner", values)


def read_rows(reply: str) -> list[Any] | None:
    """The array in a miner's reply; None when there is none."""
    try:
        return list(read_reply(reply, expect=list).value)
    except (ReplyError, ImportError):
        pass
    try:
        value = json.loads(reply[reply.find("[") : reply.rfind("]") + 1])
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list) else None


def _task(digest: SessionDigest, row: dict[str, Any]) -> TaskRecord | None:
    """The task in one object of a reply; None when it asks for nothing or cannot be judged."""
    intent = row.get("intent")
    if not isinstance(intent, str) or not says_something(intent):
        return None
    intent = clip(intent.strip(), INTENT_CHARS)
    rubric = row.get("rubric")
    checks = clean_checks(row.get("checks"))
    task = TaskRecord(
        id="llm_" + short_hash(digest.project, intent),
        project=digest.project,
        intent=intent,
        outcome="success" if _yes(row.get("satisfied")) else "fail",
        tags=["mined:llm"],
        source_sessions=[digest.session_id],
        skill_hint=session_skill_hint(digest),
    )
    if isinstance(rubric, str) and rubric.strip():
        task.reference_kind, task.reference = "rubric", rubric.strip()
    elif checks:
        task.reference_kind, task.judge = "rule", {"kind": "rule", "checks": checks}
    else:
        return None
    return task


def _yes(value: Any) -> bool:
    return value.strip().lower() in ("true", "yes") if isinstance(value, str) else bool(value)

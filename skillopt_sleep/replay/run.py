"""One task attempted and graded, and many.

A task with a workspace is done in a checkout when the backend has a workshop to make one in, else it is answered in
text. A failed call is an error result: it has no score and enters no mean. What no later call can mend ends the batch:
wrong credentials, a spent budget, an error of the program. Calls that wait for an answer are collected over the batch.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from skillopt_sleep.backends.base import Backend
from skillopt_sleep.errors import CallFailed
from skillopt_sleep.judges import Undecidable, grade, required_tools, shown_answer
from skillopt_sleep.replay.workers import run_all, worker_count
from skillopt_sleep.show import clip, counted
from skillopt_sleep.types import ReplayResult, TaskRecord

Pair = tuple[TaskRecord, ReplayResult]

_CHARS_PER_TOKEN = 4
_HEAD = 400
_NO_REASON = "the answer was graded below 1 without a reason"


@dataclass(frozen=True, slots=True)
class _Attempt:
    """An attempt: its last message, the tools whose call was recorded, what it changed (as in `ReplayResult`)."""

    message: str
    called: list[str] = field(default_factory=list)
    work: dict[str, Any] = field(default_factory=dict)


def replay_one(
    backend: Any,
    task: TaskRecord,
    skill: str,
    memory: str,
    sample_id: int = 0,
    *,
    fresh: bool = False,
    counted: bool = True,
) -> ReplayResult:
    """Attempt `task` once and grade the answer.

    `sample_id` numbers attempts that shall differ; `fresh` asks for an attempt and a grade that are not from the cache.
    `counted`: the backend's count of tokens belongs to this attempt alone, so its difference is exact; otherwise, and
    where the backend counts none, the tokens are estimated from the lengths of the texts.

    A failed call gives a result with `error`. Raises CallFailed of a fatal kind, BudgetSpent and PendingCalls.
    """
    began = time.perf_counter()
    before = _count(backend)
    result = ReplayResult(id=task.id, task_type=task.tags[0] if task.tags else "task")
    try:
        done = _attempt(backend, task, skill, memory, sample_id, fresh=fresh)
        result.response, result.tools_called = shown_answer(done.message, done.work), done.called
        result.work = done.work
        hard, soft, why = grade(backend, task, done.message, done.called, fresh=fresh, work=done.work or None)
    except Undecidable as error:
        result.error = str(error)
    except CallFailed as error:
        if error.fatal:
            raise
        result.error = f"{error.kind}: {error}"
    else:
        result.hard, result.soft, result.judge_rationale = hard, soft, why
        result.fail_reason = "" if hard >= 1 else why or _NO_REASON
    result.latency_ms = (time.perf_counter() - began) * 1000
    used = _count(backend) - before if counted else 0
    result.tokens = used if used > 0 else _estimate(skill, memory, task.intent, result.response)
    _log(backend, task, result, sample_id)
    _tell(backend, task, result)
    return result


def replay_batch(
    backend: Any,
    tasks: Sequence[TaskRecord],
    skill: str,
    memory: str,
    *,
    workers: int = 0,
    fresh: bool = False,
) -> list[Pair]:
    """Attempt every task once; (task, result) pairs in the order of `tasks`.

    `workers` attempts at a time; 0 takes SKILLOPT_SLEEP_WORKERS, or 1. Raises what `replay_one` raises.
    """
    results = replay_samples(backend, [(task, 0) for task in tasks], skill, memory, workers=workers, fresh=fresh)
    return list(zip(tasks, results, strict=True))


def replay_samples(
    backend: Any,
    samples: Sequence[tuple[TaskRecord, int]],
    skill: str,
    memory: str,
    *,
    workers: int = 0,
    fresh: bool = False,
) -> list[ReplayResult]:
    """One result for each (task, sample number), in their order; as `replay_batch`."""
    count = worker_count(workers)
    counted = min(count, len(samples)) <= 1 or _counts_by_thread(backend)

    def one(sample: tuple[TaskRecord, int]) -> ReplayResult:
        task, number = sample
        return replay_one(backend, task, skill, memory, number, fresh=fresh, counted=counted)

    return run_all(one, samples, workers=count)


def _tell(backend: Any, task: TaskRecord, result: ReplayResult) -> None:
    """Count the task as replayed, and say to whoever watches how one in a checkout went: such a one takes minutes."""
    replayed: set[str] | None = getattr(backend, "replayed", None)
    if replayed is not None:
        replayed.add(task.id)
    say = getattr(backend, "say", None)
    if say is None or not task.workspace:
        return
    files, checks = result.work.get("files", ()), result.work.get("checks", ())
    held = sum(bool(check["passed"]) for check in checks)
    how = (
        f"{counted(len(files), 'file')} changed, {held} of {len(checks)} conditions hold" if result.work else "no work"
    )
    said = f"; no score: {result.error}" if result.error else ""
    say(f"{task.id} in a checkout, {result.latency_ms / 1000:.0f} s: {how}{said}")


def _attempt(backend: Any, task: TaskRecord, skill: str, memory: str, sample_id: int, *, fresh: bool) -> _Attempt:
    options: dict[str, Any] = {"fresh": True} if fresh else {}
    if sample_id:
        options["sample_id"] = sample_id
    if task.workspace and getattr(backend, "workshop", None) is not None:
        message, work = backend.attempt_in_checkout(task, skill, memory, **options)
        return _Attempt(str(message), work=dict(work.to_dict()))
    tools = required_tools(task.judge) if task.reference_kind == "rule" else []
    if not tools:
        return _Attempt(str(backend.attempt(task, skill, memory, **options)))
    message, called = backend.attempt_with_tools(task, skill, memory, tools, **options)
    return _Attempt(str(message), [str(name) for name in called])


def _count(backend: Any) -> int:
    own = getattr(backend, "tokens_here", None) or getattr(backend, "tokens_used", None)
    return int(own()) if own is not None else 0


def _counts_by_thread(backend: Any) -> bool:
    own = getattr(type(backend), "tokens_here", None)
    return own is not None and own is not Backend.tokens_here


def _estimate(*texts: str) -> int:
    return sum(len(text) for text in texts) // _CHARS_PER_TOKEN


def _log(backend: Any, task: TaskRecord, result: ReplayResult, sample_id: int) -> None:
    log = getattr(backend, "evidence", None)
    if log is None:
        return
    log.log(
        "replay",
        "result",
        phase=str(getattr(backend, "evidence_phase", "") or ""),
        task_id=task.id,
        split=task.split,
        origin=task.origin,
        reference_kind=task.reference_kind,
        sample_id=sample_id,
        hard=result.hard if result.scored else None,
        soft=result.soft if result.scored else None,
        why=result.fail_reason or result.judge_rationale,
        response_head=clip(result.response, _HEAD),
        tools_called=result.tools_called,
        tokens=result.tokens,
        latency_ms=round(result.latency_ms, 1),
        error=result.error,
        **_told(result.work),
    )


def _told(work: dict[str, Any]) -> dict[str, Any]:
    """What the evidence says about work in a checkout; nothing about a text answer."""
    if not work:
        return {}
    return {"files": list(work.get("files") or ()), "conditions": list(work.get("checks") or ())}

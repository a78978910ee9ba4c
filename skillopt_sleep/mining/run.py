"""The way from sessions to the tasks of a night."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from skillopt_sleep.errors import BudgetSpent, CallFailed, PendingCalls
from skillopt_sleep.mining.heuristic import heuristic_mine
from skillopt_sleep.mining.merge import dedup_tasks
from skillopt_sleep.mining.splits import SplitMemory, assign_splits, split_fractions
from skillopt_sleep.mining.target import filter_tasks_for_target
from skillopt_sleep.show import counted
from skillopt_sleep.types import SessionDigest, TaskRecord


def mine(  # noqa: PLR0913 - the published signature
    digests: Sequence[SessionDigest],
    *,
    max_tasks: int = 40,
    candidate_limit: int = 0,
    val_fraction: float | None = None,
    test_fraction: float | None = None,
    holdout_fraction: float | None = None,
    seed: int = 42,
    llm_miner: Callable[[Sequence[SessionDigest]], list[TaskRecord]] | None = None,
    target_skill_text: str = "",
    target_skill_path: str = "",
    memory: SplitMemory | None = None,
    notes: list[str] | None = None,
    found: list[TaskRecord] | None = None,
) -> list[TaskRecord]:
    """At most `max_tasks` tasks of the sessions, each once, with their splits.

    The model's tasks are taken if `llm_miner` finds any; otherwise those of the heuristic miner, up to
    `candidate_limit` of them before the filter (0: `max_tasks`). With a `target_skill_text` the tasks that fit that
    skill come first. `memory` keeps earlier splits and learns the new ones; `notes` gets a line for everything that
    went wrong on the way, and `found` the tasks as the miner found them.

    Raises UsageProblem for impossible fractions (before any call), CallFailed of a fatal kind, BudgetSpent and
    PendingCalls.
    """
    fractions = split_fractions(val_fraction, test_fraction, holdout_fraction)
    tasks = _candidates(digests, llm_miner, candidate_limit or max_tasks, notes if notes is not None else [])
    if found is not None:
        found += tasks
    tasks = dedup_tasks(tasks)
    if target_skill_text.strip():
        tasks = filter_tasks_for_target(tasks, target_skill_text, target_skill_path)
    return _split(tasks[:max_tasks], fractions, seed, memory)


def _candidates(
    digests: Sequence[SessionDigest],
    miner: Callable[[Sequence[SessionDigest]], list[TaskRecord]] | None,
    limit: int,
    notes: list[str],
) -> list[TaskRecord]:
    """What the model finds, or else the sessions' own requests."""
    tasks: list[TaskRecord] = _by_model(miner, digests, notes) if miner is not None else []
    return tasks or heuristic_mine(digests, max_tasks=limit)


def _split(
    tasks: list[TaskRecord], fractions: tuple[float, float], seed: int, memory: SplitMemory | None
) -> list[TaskRecord]:
    val, test = fractions
    if memory is None:
        return assign_splits(tasks, val_fraction=val, test_fraction=test, seed=seed)
    assigned, known = memory.assigned, memory.known
    tasks = assign_splits(tasks, val_fraction=val, test_fraction=test, seed=seed, assigned=assigned, known=known)
    memory.remember(tasks)
    return tasks


def _by_model(
    miner: Callable[[Sequence[SessionDigest]], Any], digests: Sequence[SessionDigest], notes: list[str]
) -> Any:
    try:
        tasks = list(miner(digests))
    except (BudgetSpent, PendingCalls):
        raise
    except CallFailed as error:
        if error.fatal:
            raise
        notes.append(f"The model found no tasks ({error}); the sessions' first requests are taken instead.")
        return []
    except Exception as error:  # noqa: BLE001 - noted; a miner of one's own must not end the night
        notes.append(f"The miner failed ({type(error).__name__}: {error}); the sessions' first requests are taken.")
        return []
    failures = list(getattr(miner, "failures", ()))
    if failures:
        notes.append(f"The model gave nothing usable for {counted(len(failures), 'session')}, first: {failures[0]}")
    return tasks

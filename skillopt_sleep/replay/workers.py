"""How many attempts run at a time, and the one way to run them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from skillopt_sleep.config import WORKERS_VARIABLE
from skillopt_sleep.config_check import check
from skillopt_sleep.errors import BudgetSpent, PendingCalls
from skillopt_sleep.vendored.utils.parallel import map_ordered

T = TypeVar("T")
R = TypeVar("R")


def worker_count(workers: int = 0) -> int:
    """`workers`, or for 0 what SKILLOPT_SLEEP_WORKERS says, or 1. Raises UsageProblem for anything else."""
    if workers:
        return int(check("workers", workers, "workers"))
    text = os.environ.get(WORKERS_VARIABLE, "").strip()
    value: Any = int(text) if text.isdecimal() and len(text) < 10 else text
    return int(check("workers", value, WORKERS_VARIABLE)) if text else 1


def run_all(fn: Callable[[T], R], items: Sequence[T], *, workers: int) -> list[R]:
    """The results of `fn` in the order of `items`.

    A call that waits for an answer does not keep the others from being made: PendingCalls with all of them is raised
    at the end. Any other error starts no further item and is raised as it is; a spent budget only when the calls that
    were being made have ended, because they are paid for.
    """
    waiting = _Waiting()
    if workers == 1 or len(items) <= 1:
        results: list[Any] = [waiting.guard(fn, item) for item in items]
    else:
        results = map_ordered(lambda item: waiting.guard(fn, item), items, workers=workers, on_done=_raise)
    waiting.finish()
    return results


class _Waiting:
    """Collects the calls that have no answer yet, and what ended the budget."""

    def __init__(self) -> None:
        self._found: list[PendingCalls] = []
        self._spent: BudgetSpent | None = None

    def guard(self, fn: Callable[[T], R], item: T) -> R | None:
        if self._spent is not None:
            return None
        try:
            return fn(item)
        except PendingCalls as error:
            self._found.append(error)
        except BudgetSpent as error:
            self._spent = self._spent or error
        return None

    def finish(self) -> None:
        if self._spent is not None:
            raise self._spent
        if self._found:
            raise PendingCalls({key: call for error in self._found for key, call in error.pending.items()})


def _raise(_index: int, outcome: object) -> None:
    if isinstance(outcome, Exception):
        raise outcome

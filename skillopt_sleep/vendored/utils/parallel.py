# A copy of skillopt/utils/parallel.py, made by scripts/vendor.py: change the original, then run that.
"""The one way to run a function over many things at once.

Threads are daemons: a process that is told to end does not wait for a model that is slow to answer.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from skillopt_sleep.vendored.utils.cancel import CancelToken

T = TypeVar("T")
R = TypeVar("R")

_POLL_SECONDS = 0.1  # how soon a stop is noticed while no result arrives


def map_ordered(
    fn: Callable[[T], R],
    items: Sequence[T],
    *,
    workers: int,
    on_done: Callable[[int, R | Exception], None] | None = None,
    stop: CancelToken | None = None,
) -> list[R | Exception]:
    """Results of `fn` for each item, in the order of `items`; an exception is the result of its item
    (SystemExit and the like as a RuntimeError).

    `workers` threads at most. `on_done(index, result)` runs in the caller's thread as each result arrives; when it
    raises, no further item is started and its exception is raised here. When `stop` ends, no further item is
    started and what `stop` stands for is raised (DeadlineError, InterruptedRunError).
    """
    if workers < 1:
        raise ValueError(f"workers must be at least 1, not {workers}")
    pending: queue.SimpleQueue[int] = queue.SimpleQueue()
    for index in range(len(items)):
        pending.put(index)
    done: queue.SimpleQueue[tuple[int, R | Exception]] = queue.SimpleQueue()
    halt = threading.Event()
    results: dict[int, R | Exception] = {}
    try:
        for _ in range(min(workers, len(items))):
            threading.Thread(target=_work, args=(fn, items, pending, done, halt), daemon=True).start()
        while len(results) < len(items):
            if stop is not None:
                stop.raise_if_cancelled()
            try:
                index, outcome = done.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                continue
            results[index] = outcome
            if on_done is not None:
                on_done(index, outcome)
    finally:
        halt.set()
    return [results[index] for index in range(len(items))]


def _work(
    fn: Callable[[T], R],
    items: Sequence[T],
    pending: queue.SimpleQueue[int],
    done: queue.SimpleQueue[tuple[int, R | Exception]],
    halt: threading.Event,
) -> None:
    while not halt.is_set():
        try:
            index = pending.get_nowait()
        except queue.Empty:
            return
        outcome: R | Exception
        try:
            outcome = fn(items[index])
        except Exception as error:  # noqa: BLE001 - handed to the caller as this item's result
            outcome = error
        except BaseException as error:  # noqa: BLE001 - `sys.exit()` would end this thread and leave its item open
            outcome = RuntimeError(f"{type(error).__name__}: {error}")
            outcome.__cause__ = error
        done.put((index, outcome))

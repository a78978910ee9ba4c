"""The one way to run items: bounded workers, deadlines that cancel, retries, storage at once, results in item order.

An error is never a score. A failed item is tried again after all others; what still fails comes back as a result
with `status: error`, which is never stored, so that the next run tries it again. Errors that no other item can
escape (wrong credentials, a used-up budget, an interruption) end the run; what is finished by then is kept.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from skillopt.envs.base import EnvAdapter, TaskEnv
from skillopt.envs.chat import Chat
from skillopt.envs.foreign import run_foreign_batch, run_foreign_env
from skillopt.envs.ledger import Ledger, Outcome, RolloutStore, RunContext, rollout_key, scope_key
from skillopt.envs.rows import checked, error_result
from skillopt.errors import (
    BudgetExceededError,
    ConfigError,
    DeadlineError,
    InterruptedRunError,
    MissingExtraError,
    ModelError,
    RunError,
    TooManyErrorsError,
)
from skillopt.types import Item, RolloutResult
from skillopt.utils.cancel import CancelToken
from skillopt.utils.parallel import map_ordered

if TYPE_CHECKING:
    from skillopt.datasets.base import BatchSpec

__all__ = [
    "RolloutStore",
    "RunContext",
    "check_error_rate",
    "rollout_key",
    "run_batch",
    "run_items",
    "scope_key",
    "split_errors",
]

_GRACE_SECONDS = 1.0  # how long a cancelled item may take to unwind before its thread is left behind
_SHOWN = 200  # characters of the most common reason


def run_batch(
    env: EnvAdapter, batch: BatchSpec, skill_text: str, ctx: RunContext, out_dir: Path
) -> list[RolloutResult]:
    """Results of a batch, in item order, from the store where it has them.

    Environments without a loader draw their own tasks; their results are ordered by id. `out_dir` is where custom
    environments write. Raises the fatal error that ended the run; other failures are results with status `error`.
    """
    if env.requires_ray():
        raise ConfigError(
            f"Environment {type(env).__name__} asks for ray, which this version cannot start; "
            "let its requires_ray() return False to run it in threads."
        )
    if batch.phase == "train":
        told = env.train_options if isinstance(env, TaskEnv) else {"use_eval_feedback": True}
        ctx = replace(ctx, rollout_options={**told, **ctx.rollout_options})
    if not _has_items(batch):
        return run_foreign_env(env, batch, skill_text, ctx, out_dir)
    items = [row if isinstance(row, Item) else Item.from_dict(row) for row in batch.payload or ()]
    if isinstance(env, TaskEnv):
        return run_items(env, items, skill_text, ctx)
    return run_foreign_batch(env, batch, items, skill_text, ctx, out_dir)


def run_items(env: TaskEnv, items: Sequence[Item], skill_text: str, ctx: RunContext) -> list[RolloutResult]:
    """Results of `items`, in their order; only those that the store does not have are run."""
    ledger = Ledger(env, items, ctx)
    ledger.start()
    for attempt in range(ctx.item_retries + 1):
        todo = ledger.todo()
        if not todo:
            break
        _ItemPass(env, skill_text, ctx, ledger).run(todo, last=attempt == ctx.item_retries)
    return ledger.finish()


def split_errors(results: Sequence[RolloutResult]) -> tuple[list[RolloutResult], list[RolloutResult]]:
    """(graded, errors), each in the given order."""
    return [r for r in results if r.ok], [r for r in results if not r.ok]


def check_error_rate(results: Sequence[RolloutResult], max_error_rate: float) -> None:
    """Raise TooManyErrorsError when the share of errors is above `max_error_rate` (0..1)."""
    _, errors = split_errors(results)
    if not errors or len(errors) <= max_error_rate * len(results):
        return
    by_reason: dict[str, list[str]] = {}
    for error in errors:
        by_reason.setdefault(error.error.replace(repr(error.id), "…"), []).append(error.id)
    reason, ids = max(by_reason.items(), key=lambda pair: len(pair[1]))
    raise TooManyErrorsError(
        f"{len(errors)} of {len(results)} items ({len(errors) / len(results):.0%}) could not be graded, more than "
        f"env.max_error_rate={max_error_rate} allows. Most common reason ({len(ids)}x, e.g. item {ids[0]!r}): "
        f"{reason[:_SHOWN].rstrip('.')}. Mend the cause and run the same command again; finished items are kept."
    )


class _ItemPass:
    """One try of a list of items."""

    def __init__(self, env: TaskEnv, skill: str, ctx: RunContext, ledger: Ledger) -> None:
        self._env = env
        self._skill = skill
        self._ctx = ctx
        self._ledger = ledger
        self._live = CancelToken(parent=ctx.stop)
        self._lock = threading.Lock()
        self._fatal: Exception | None = None

    def run(self, todo: Sequence[Item], *, last: bool) -> None:
        """Run the items; raise the error that ended the run, if any did."""
        try:
            map_ordered(
                self._work,
                todo,
                workers=self._ctx.workers,
                on_done=partial(self._settle, todo, last=last),
                stop=self._ctx.stop,
            )
        finally:
            self._live.cancel()
        if self._fatal is not None:
            raise self._fatal

    def _settle(self, todo: Sequence[Item], index: int, outcome: Outcome | Exception | None, *, last: bool) -> None:
        """Book what became of item number `index`: in the ledger, or as the end of the run."""
        if isinstance(outcome, Outcome):
            self._ledger.settle(todo[index], outcome, last=last)
        elif isinstance(outcome, Exception):
            self._end_run(outcome)

    def _work(self, item: Item) -> Outcome | None:
        """Do one item within its time; None when the run ends before or by it."""
        if self._fatal is not None:
            return None
        token = CancelToken(timeout=self._ctx.item_timeout or None, parent=self._live)
        chat = Chat(self._ctx.session, token, self._env.call_options, self._ctx.rollout_options)
        try:
            result = _within(token, partial(self._env.run_item, item, self._skill, chat))
            token.raise_if_cancelled()
        except Exception as error:  # noqa: BLE001 - recorded as the item's error, or raised by `run`
            if _ends_run(error):
                self._end_run(error)
                return None
            return Outcome(error_result(item.id, self._reason(error, token)), retry=_may_pass(error))
        return Outcome(self._ledger.keep(item, checked(result, item.id)))

    def _reason(self, error: Exception, token: CancelToken) -> str:
        if isinstance(error, DeadlineError) and token.remaining() == 0.0:
            return f"DeadlineError: not finished within {self._ctx.item_timeout:g} s"
        return f"{type(error).__name__}: {error}"

    def _end_run(self, error: Exception) -> None:
        with self._lock:
            self._fatal = self._fatal or error
        if not isinstance(error, BudgetExceededError):
            self._live.cancel()  # under a used-up budget, what is already paid for may still finish


def _within(token: CancelToken, work: Callable[[], RolloutResult]) -> RolloutResult:
    """Result of `work`, in a thread of its own that is left behind when it does not end with its token."""
    box: list[RolloutResult | Exception] = []
    finished, wake = threading.Event(), threading.Event()

    def body() -> None:
        try:
            box.append(work())
        except Exception as error:  # noqa: BLE001 - raised again in the worker
            box.append(error)
        except BaseException as error:  # noqa: BLE001 - `sys.exit()` in an item ends that item, not the run
            box.append(RuntimeError(f"{type(error).__name__}: {error}"))
        finished.set()
        wake.set()

    thread = threading.Thread(target=contextvars.copy_context().run, args=(body,), daemon=True)
    with token.on_cancel(wake.set):
        thread.start()
        wake.wait()
    if not finished.wait(_GRACE_SECONDS):
        token.raise_if_cancelled()
    if isinstance(box[0], Exception):
        raise box[0]
    return box[0]


def _ends_run(error: Exception) -> bool:
    if isinstance(error, ModelError):
        return error.fatal
    return isinstance(error, (BudgetExceededError, InterruptedRunError, ConfigError, MissingExtraError, RunError))


def _may_pass(error: Exception) -> bool:
    return isinstance(error, ModelError) and (error.retryable or isinstance(error, DeadlineError))


def _has_items(batch: BatchSpec) -> bool:
    payload = batch.payload
    return isinstance(payload, (list, tuple)) and all(
        isinstance(row, Item) or (isinstance(row, dict) and row.get("id") not in (None, "")) for row in payload
    )

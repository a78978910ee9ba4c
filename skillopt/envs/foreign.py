"""Custom environments that run their items themselves: their batches, their folders, their result rows."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillopt.envs.base import EnvAdapter
from skillopt.envs.ledger import Ledger, Outcome, RunContext, mean_hard, scope_key
from skillopt.envs.rows import error_result, plain, result_from_row, with_prediction_files
from skillopt.errors import DataError, ModelError, RunError, SkillOptError
from skillopt.types import Item, RolloutResult, content_hash

if TYPE_CHECKING:
    from skillopt.datasets.base import BatchSpec

_MARKER = ".rollout_key"


def run_foreign_batch(
    env: EnvAdapter, batch: BatchSpec, items: Sequence[Item], skill_text: str, ctx: RunContext, out_dir: Path
) -> list[RolloutResult]:
    """Results of the items of a loader's batch, in item order. Only items that the store lacks are handed over."""
    ledger = Ledger(env, items, ctx)
    ledger.start()
    for attempt in range(ctx.item_retries + 1):
        todo = ledger.todo()
        if not todo:
            break
        shown = items if batch.metadata else todo  # metadata may describe the payload by position
        part = replace(batch, payload=[item.to_dict() for item in shown], batch_size=len(shown))
        folder = _folder(out_dir, scope_key(env, ctx), fresh=attempt > 0)
        rows, reason = _rollout(env, env.build_env_from_batch(part, out_root=str(out_dir)), skill_text, ctx, folder)
        last = attempt == ctx.item_retries
        for item in todo:
            result = rows.get(item.id, error_result(item.id, reason))
            ledger.settle(item, Outcome(ledger.keep(item, result), retry=True), last=last)
    return ledger.finish()


def run_foreign_env(
    env: EnvAdapter, batch: BatchSpec, skill_text: str, ctx: RunContext, out_dir: Path
) -> list[RolloutResult]:
    """Results of an environment that draws its own tasks, ordered by id.

    They are kept together: the store answers only when every row of the same draw was graded.
    """
    scope = scope_key(env, ctx)
    key = content_hash("batch", *scope, batch.phase, batch.split, batch.seed, batch.batch_size)
    results = _stored(ctx, key)
    ctx.tell("rollout_started", done=len(results), total=len(results) or batch.batch_size, cached=len(results))
    cached = len(results)
    for attempt in range(ctx.item_retries + 1):
        if results and all(result.ok for result in results):
            break
        folder = _folder(out_dir, (*scope, key), fresh=attempt > 0)
        rows, reason = _rollout(env, _built(env, batch, out_dir), skill_text, ctx, folder)
        if not rows and attempt == ctx.item_retries:
            raise RunError(f"Environment {type(env).__name__} returned no result for split {batch.split!r}: {reason}.")
        results = [plain(rows[item_id]) for item_id in sorted(rows)]
        _store(ctx, key, results)
    errors = sum(not result.ok for result in results)
    number = len(results)
    counts = {"done": number, "total": number, "ok": number - errors, "errors": errors, "cached": cached}
    ctx.tell("rollout_finished", **counts, hard=mean_hard(results))
    return results


def _built(env: EnvAdapter, batch: BatchSpec, out_dir: Path) -> Any:
    if env.get_dataloader() is not None:
        return env.build_env_from_batch(batch, out_root=str(out_dir))
    if batch.phase == "train":
        return env.build_train_env(batch.batch_size, batch.seed, out_root=str(out_dir))
    return env.build_eval_env(batch.batch_size, batch.split, batch.seed, out_root=str(out_dir))


def _rollout(
    env: EnvAdapter, manager: Any, skill_text: str, ctx: RunContext, folder: Path
) -> tuple[dict[str, RolloutResult], str]:
    """Rows by item id, and why an item has none. The first row of an id counts."""
    if ctx.stop is not None:
        ctx.stop.raise_if_cancelled()
    name = type(env).__name__
    try:
        with _as_active_session(ctx.session):
            rows = env.rollout(manager, skill_text, str(folder), **ctx.rollout_options)
    except ModelError as error:
        if error.fatal:
            raise
        return {}, f"{type(error).__name__}: {error}"
    except SkillOptError:
        raise
    except Exception as error:
        raise RunError(f"Environment {name} raised {type(error).__name__} in rollout: {error}") from error
    if not isinstance(rows, (list, tuple)):
        raise DataError(f"Environment {name} returned {type(rows).__name__} from rollout, not a list of result dicts.")
    results: dict[str, RolloutResult] = {}
    for row in rows:
        result = result_from_row(row)
        results.setdefault(result.id, with_prediction_files(result, folder))
    return results, f"environment {name} returned no result for it"


def _as_active_session(session: object) -> contextlib.AbstractContextManager[object]:
    """The run's session behind the public functions of `skillopt.model`, by which custom environments call models."""
    from skillopt.model.active import use_session
    from skillopt.model.session import Session

    return use_session(session) if isinstance(session, Session) else contextlib.nullcontext()


def _folder(out_dir: Path, scope: Sequence[str], *, fresh: bool) -> Path:
    """The folder to run in, made and marked with what it is for.

    A folder that holds rows of other work, or failed rows, is not handed over again: many environments answer with
    whatever rows they find there.
    """
    mark = content_hash(*scope)
    folder = out_dir
    if not fresh and not _marked(folder, mark):
        folder = out_dir / f"rerun_{mark[:12]}" if _used(folder) else folder
    if fresh:
        number = 1
        while (folder := out_dir / f"retry_{number}").exists():
            number += 1
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _MARKER).write_text(mark + "\n", encoding="utf-8")
    return folder


def _marked(folder: Path, mark: str) -> bool:
    path = folder / _MARKER
    return path.is_file() and path.read_text(encoding="utf-8").strip() == mark


def _used(folder: Path) -> bool:
    return any((folder / name).exists() for name in (_MARKER, "results.jsonl", "predictions"))


def _stored(ctx: RunContext, key: str) -> list[RolloutResult]:
    index = ctx.store.get_reply(key) if ctx.store is not None else None
    if ctx.store is None or index is None:
        return []
    found = [ctx.store.get_rollout(content_hash(key, item_id)) for item_id in index["ids"]]
    return [result for result in found if result is not None] if None not in found else []


def _store(ctx: RunContext, key: str, results: Sequence[RolloutResult]) -> None:
    if ctx.store is None or not results or not all(result.ok for result in results):
        return
    for result in results:
        ctx.store.put_rollout(content_hash(key, result.id), result, skill_hash=ctx.skill_hash, split=ctx.split)
    ctx.store.put_reply(key, "rollout_batch", {"ids": [result.id for result in results]})

"""What a run of items knows: which are done, which failed, which came from the store, and who is told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from skillopt.envs.rows import plain
from skillopt.types import Item, JsonObject, RolloutResult, content_hash

if TYPE_CHECKING:
    from skillopt.envs.base import EnvAdapter, TaskEnv
    from skillopt.envs.chat import CallSession
    from skillopt.tracking.events import Emit
    from skillopt.utils.cancel import CancelToken


class RolloutStore(Protocol):
    """What running items needs of the store."""

    def get_rollout(self, key: str) -> RolloutResult | None:
        """The finished rollout under `key`, or None."""
        ...

    def put_rollout(self, key: str, result: RolloutResult, *, skill_hash: str, split: str) -> None:
        """Keep a finished rollout."""
        ...

    def get_reply(self, key: str) -> JsonObject | None:
        """A small record under `key`, or None."""
        ...

    def put_reply(self, key: str, stage: str, payload: Mapping[str, Any]) -> None:
        """Keep a small record."""
        ...


@dataclass(frozen=True, slots=True)
class RunContext:
    """Where and how items are run.

    `skill_hash` stands for the whole skill in the key of a result. `split` and `purpose` say what the run is for,
    in events and in the store. `item_timeout`: seconds an item may take; None or 0: no limit. `item_retries`:
    further tries of items that failed in a way that may pass. `sample`: number of the draw, for targets that are
    sampled. `rollout_options`: further keyword arguments of a custom environment's `rollout`. `stop` ends the run.
    """

    session: CallSession
    store: RolloutStore | None = None
    skill_hash: str = ""
    split: str = ""
    purpose: str = "rollout"
    emit: Emit | None = None
    workers: int = 1
    item_timeout: float | None = None
    item_retries: int = 1
    sample: int = 0
    stop: CancelToken | None = None
    rollout_options: Mapping[str, Any] = field(default_factory=dict)

    def tell(self, kind: str, **data: Any) -> None:
        """Emit an event about this run."""
        if self.emit is not None:
            self.emit(kind, purpose=self.purpose, split=self.split, **data)

    @classmethod
    def of_active_session(cls, env: TaskEnv, skill_text: str) -> RunContext:
        """A context around the active model session, without a store. Raises ConfigError when none is active."""
        from skillopt.model.active import active_session
        from skillopt.skill.document import skill_hash

        workers, timeout = getattr(env, "workers", 1), getattr(env, "exec_timeout", 0)
        return cls(active_session(), skill_hash=skill_hash(skill_text), workers=workers, item_timeout=float(timeout))


def scope_key(env: EnvAdapter, ctx: RunContext) -> tuple[str, ...]:
    """What, besides the item, decides a result: skill, models, environment, sample, rollout options."""
    roles = [ctx.session.roles[role].fingerprint for role in env.result_roles if role in ctx.session.roles]
    return (
        ctx.skill_hash,
        content_hash(*roles),
        env.fingerprint(),
        str(ctx.sample),
        content_hash(dict(ctx.rollout_options)),
    )


def rollout_key(scope: Sequence[str], item: Item) -> str:
    """The content key under which the result of one item is kept."""
    return content_hash("rollout", *scope, item.to_dict())


@dataclass(frozen=True, slots=True)
class Outcome:
    """One try of one item. `retry`: another try may end otherwise."""

    result: RolloutResult
    retry: bool = False


def mean_hard(results: Iterable[RolloutResult]) -> float | None:
    """Mean hard score of the graded results, None when there is none."""
    scores = [result.hard for result in results if result.ok]
    return sum(scores) / len(scores) if scores else None


class Ledger:
    """Results of one run by content key. `keep` is called from workers, everything else from the run's thread.

    Two entries of `items` with the same content are one task: it is run once and its result given twice.
    """

    def __init__(self, env: EnvAdapter, items: Sequence[Item], ctx: RunContext) -> None:
        self._ctx = ctx
        scope = scope_key(env, ctx)
        self._keys = [rollout_key(scope, item) for item in items]
        self._items = dict(zip(self._keys, items, strict=True))
        self._key_of = {id(item): key for key, item in self._items.items()}
        self._results: dict[str, RolloutResult] = {}
        self._retry: set[str] = set()
        if ctx.store is not None:
            found = ((key, ctx.store.get_rollout(key)) for key in self._items)
            self._results = {key: result for key, result in found if result is not None}
        self.cached = self._settled = len(self._results)
        self._errors = 0

    def start(self) -> None:
        """Tell that the run begins."""
        self._ctx.tell("rollout_started", done=self.cached, total=len(self._items), cached=self.cached)

    def todo(self) -> list[Item]:
        """Items without a result, and items whose latest error may pass; in item order."""
        return [item for key, item in self._items.items() if key not in self._results or key in self._retry]

    def keep(self, item: Item, result: RolloutResult) -> RolloutResult:
        """Store a graded result at once and return it in its stored form."""
        stored = plain(result)
        if self._ctx.store is not None and stored.ok:
            key = self._key_of[id(item)]
            self._ctx.store.put_rollout(key, stored, skill_hash=self._ctx.skill_hash, split=self._ctx.split)
        return stored

    def settle(self, item: Item, outcome: Outcome, *, last: bool) -> None:
        """Take the outcome of a try; tell about it unless the item will be tried again."""
        key = self._key_of[id(item)]
        self._results[key] = outcome.result
        self._retry.discard(key)
        if outcome.retry and not outcome.result.ok and not last:
            self._retry.add(key)
            return
        self._settled += 1
        self._errors += not outcome.result.ok
        self._ctx.tell("item_done", id=item.id, **self._counts())

    def finish(self) -> list[RolloutResult]:
        """Tell that the run ended; the results in the order of the items."""
        self._ctx.tell("rollout_finished", **self._counts(), hard=mean_hard(self._results.values()))
        return [self._results[key] for key in self._keys]

    def _counts(self) -> dict[str, int]:
        return {
            "done": self._settled,
            "total": len(self._items),
            "ok": self._settled - self._errors,
            "errors": self._errors,
            "cached": self.cached,
        }

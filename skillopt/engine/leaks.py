"""The leak guard of a run: candidates that hold ids, held-out answers or secrets are refused before the gate."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from skillopt.datasets.base import SPLIT_NAMES, SplitDataLoader
from skillopt.envs.base import EnvAdapter
from skillopt.evaluation.leaks import HeldOut, KnownItem, Leak, find_new_leaks
from skillopt.skill.document import Skill
from skillopt.types import Item, JsonObject, RoleConfig
from skillopt.utils.files import atomic_write_json, read_json

if TYPE_CHECKING:
    from skillopt.engine.kit import Kit

REFUSED = "reject_leak"
"""The action of a step whose candidate was refused."""

_SHORTEST_SECRET = 8  # shorter ones, such as "none" or "local", stand for having no secret


class LeakGuard:
    """The tables of one run. They are built when they are first asked for, then kept."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held_out: HeldOut | None = None

    def held_out(self, adapter: EnvAdapter, roles: Mapping[str, RoleConfig]) -> HeldOut:
        """What the run's new texts must not hold."""
        with self._lock:
            if self._held_out is None:
                self._held_out = held_out_of(adapter, _secrets(roles))
            return self._held_out


def held_out_of(adapter: EnvAdapter, secrets: Sequence[str] = ()) -> HeldOut:
    """The tables over every item of the environment's loader; without a loader only secrets are known."""
    items = tuple(_known_items(adapter))
    patterns, literals = adapter.grader_patterns(), adapter.grader_literals()
    return HeldOut.of_items(items, patterns=patterns, literals=literals, secrets=secrets)


def find_leaks(kit: Kit, candidate: Skill, current: Skill) -> tuple[Leak, ...]:
    """Why `candidate` must not take the place of `current`; empty when it may, or when the guard is off."""
    if not kit.config.optimizer.leak_guard:
        return ()
    found = find_new_leaks(candidate, current, kit.guard.held_out(kit.adapter, kit.config.roles))
    notices = [leak.reason for leak in found if not leak.refuses]
    if notices:
        kit.emit("possible_leak", stage="update", group="candidate", found=notices)
    return tuple(leak for leak in found if leak.refuses)


def refuse_leaks(kit: Kit, current: Skill, candidate: Skill, step: int) -> tuple[Leak, ...]:
    """`find_leaks` for the candidate of a step; reasons are added to its report of edits and told as an event."""
    leaks = find_leaks(kit, candidate, current)
    if leaks:
        reasons = list(leak_reasons(leaks))
        path = kit.folder.edit_report(step)
        rows = read_json(path) if path.exists() else []
        atomic_write_json(path, [*rows, {"status": REFUSED, "detail": "; ".join(reasons)}])
        kit.emit("leak_refused", step=step, found=reasons)
    return leaks


def leak_reasons(leaks: Sequence[Leak]) -> tuple[str, ...]:
    """What the person who reads the run is told, each reason once."""
    return tuple(dict.fromkeys(leak.reason for leak in leaks))


def leak_advice(leaks: Sequence[Leak]) -> tuple[str, ...]:
    """What the optimizer is told, each advice once. It names no item and quotes no answer."""
    return tuple(dict.fromkeys(leak.advice for leak in leaks))


def leak_record(leaks: Sequence[Leak]) -> JsonObject:
    """The field of the step record that says why a candidate was refused; nothing without leaks."""
    return {"leak_reasons": list(leak_reasons(leaks))} if leaks else {}


def _known_items(adapter: EnvAdapter) -> Iterator[KnownItem]:
    loader = adapter.get_dataloader()
    if not isinstance(loader, SplitDataLoader):
        return
    for split in SPLIT_NAMES:
        for item in loader.items(split):
            yield KnownItem(split, item.id, tuple(adapter.references(item)), _question(adapter, item))


def _question(adapter: EnvAdapter, item: Item) -> str:
    ask = getattr(adapter, "question", None)
    return str(ask(item)) if callable(ask) else str(item.data.get("question") or "")


def _secrets(roles: Mapping[str, RoleConfig]) -> tuple[str, ...]:
    values = (role.settings.get(name) for role in roles.values() for name in sorted(role.secrets))
    return tuple(value for value in values if isinstance(value, str) and len(value) >= _SHORTEST_SECRET)

"""Whether a run may become so large that a person should be asked first. Reckons with the plan; spends nothing."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from skillopt.engine.plan import Plan, RolePlan, make_plan
from skillopt.engine.run_dir import RunDir
from skillopt.model.registry import load_backend

if TYPE_CHECKING:
    from skillopt.config.run_config import RunConfig
    from skillopt.envs.base import EnvAdapter

ASK_KEYS = ("ask_above_usd", "ask_above_calls")
"""The limits, keys of the section `budget`."""


@dataclass(frozen=True, slots=True)
class Excess:
    """A run that may become larger than the limit `budget.<name>` of `limit`.

    `paid` holds the plans of the roles whose models may cost something. `source` says where the limit is from;
    `chosen` is False for a limit that nobody set.
    """

    name: str
    limit: float
    source: str
    plan: Plan
    paid: Mapping[str, RolePlan]

    @property
    def chosen(self) -> bool:
        """Whether somebody set this limit."""
        return self.source != "default"


def excess_of(config: RunConfig, plan: Plan | None = None, adapter: EnvAdapter | None = None) -> Excess | None:
    """The limit that a run may exceed, reckoned with the most that it can take; None when there is nothing to ask.

    A limit that somebody set counts in any case. The defaults count where nobody set a budget for calls, tokens or
    money, that of `budget.ask_above_calls` only where the price of a model is unknown. Calls of models on this machine
    cost nothing. Of two, one that somebody set is told first. Raises ConfigError, DataError or MissingExtraError as a
    run would.
    """
    remote = {role for role, settings in config.roles.items() if load_backend(settings.backend).remote}
    limits = _limits(config)
    if not remote or not limits:
        return None
    plan = plan or make_plan(config, adapter)
    paid = {name: role for name, role in plan.roles.items() if name in remote and not _costs_nothing(role)}
    most = _most(config, paid)
    found = [Excess(name, limit, _source(config, name), plan, paid) for name, limit in limits.items()]
    exceeded = [excess for excess in found if most[excess.name] > excess.limit]
    return min(exceeded, key=lambda excess: not excess.chosen, default=None)


def was_answered(config: RunConfig) -> bool:
    """Whether the run in this folder was begun, for at least as many epochs: nobody is asked a second time."""
    folder = RunDir(Path(config.env.out_root))
    if not folder.store.exists():
        return False
    try:
        begun = json.loads(folder.config.read_text(encoding="utf-8"))["num_epochs"]
    except (OSError, ValueError, KeyError, TypeError):
        return False  # it ended before it wrote what it was asked for, so before its first item
    return isinstance(begun, int) and config.train.num_epochs <= begun


def _limits(config: RunConfig) -> dict[str, float]:
    """The limits that count, by name."""
    settled = any(getattr(config.budget, name) is not None for name in ("max_calls", "max_tokens", "max_cost_usd"))
    given = {name: float(getattr(config.budget, name)) for name in ASK_KEYS}
    return {n: limit for n, limit in given.items() if limit > 0 and not (settled and _source(config, n) == "default")}


def _source(config: RunConfig, name: str) -> str:
    return config.source(f"budget.{name}")


def _most(config: RunConfig, paid: Mapping[str, RolePlan]) -> dict[str, float]:
    """What the paid models can take at most within the budget, by the name of the limit on it."""
    costs = [role.cost_usd[1] for role in paid.values() if role.cost_usd is not None]
    counts = len(costs) < len(paid) or _source(config, "ask_above_calls") != "default"
    calls = sum(_most_calls(role) for role in paid.values()) if counts else 0
    return {
        "ask_above_usd": min(sum(costs), config.budget.max_cost_usd or math.inf),
        "ask_above_calls": min(calls, config.budget.max_calls or math.inf),
    }


def _most_calls(role: RolePlan) -> int:
    """Calls at most; where a rollout may take any number of calls, one for each rollout."""
    return role.calls.high if role.calls is not None else sum(part.high for part in role.parts.values())


def _costs_nothing(role: RolePlan) -> bool:
    """Whether its price is known, and is zero."""
    return role.price is not None and not (role.price.prompt or role.price.completion)

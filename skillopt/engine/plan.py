"""What a run will take, reckoned before anything is spent: calls, tokens, price, and what a budget allows.

Calls are counted exactly (see `plan_counts`). Tokens are an estimate: prompts are rendered for the actual items and
measured with `count_tokens`; how long replies are and how far the skill grows is assumed (see `plan_sizes`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skillopt.config.run_config import RunConfig
from skillopt.engine import setup
from skillopt.engine.extent import Extent
from skillopt.engine.plan_counts import Range, Shape, exactly, sizes_of, smallest_gain
from skillopt.engine.plan_sizes import OPTIMIZER_REPLY_TOKENS, PromptSizes
from skillopt.errors import ConfigError
from skillopt.model.cost import Price
from skillopt.model.prices import known_prices
from skillopt.model.registry import load_backend
from skillopt.model.session import distinct_models
from skillopt.model.usage import UsageKey, price_of
from skillopt.types import JsonObject, Usage

if TYPE_CHECKING:
    from skillopt.envs.base import EnvAdapter
    from skillopt.skill.document import Skill

_ROLES = ("target", "optimizer")


@dataclass(frozen=True, slots=True)
class RolePlan:
    """What one role will be asked. `parts`: the target's rollouts by purpose, the optimizer's calls by stage.

    `calls` is None when a rollout may take any number of calls; `prompt_tokens`, `completion_tokens` and `cost_usd`
    (low, high) are None when unknown. `price`: what the costs are reckoned with, and where that is from.
    """

    model: str
    calls: Range | None
    parts: Mapping[str, Range]
    prompt_tokens: Range | None
    completion_tokens: Range | None
    cost_usd: tuple[float, float] | None
    price: Price | None = None

    def to_dict(self) -> JsonObject:
        """For `--json`: ranges as `[low, high]`, what is unknown as null."""
        return {
            "model": self.model,
            "calls": _listed(self.calls),
            "parts": {name: part.to_list() for name, part in self.parts.items()},
            "prompt_tokens": _listed(self.prompt_tokens),
            "completion_tokens": _listed(self.completion_tokens),
            "cost_usd": None if self.cost_usd is None else [round(bound, 6) for bound in self.cost_usd],
            "price": None if self.price is None else self.price.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run will take. `items` in use by split; `roles` has `target` and `optimizer`.

    `smallest_gain`: (items, share) by which a candidate must be better for the gate to see it, None when no gain on so
    few items is enough. `proposals`: complete steps that the budget allows; `budget`: the limits that are set.
    """

    items: Mapping[str, int]
    epochs: int
    steps: int
    roles: Mapping[str, RolePlan]
    gate_policy: str
    looks: int
    smallest_gain: tuple[int, float] | None
    proposals: Range
    budget: Mapping[str, float]
    needed: Mapping[str, float]
    """What baseline and one complete step take at least, by the name of the limit."""

    def to_dict(self) -> JsonObject:
        """For `--json`."""
        gain = self.smallest_gain
        return {
            "items": dict(self.items),
            "epochs": self.epochs,
            "steps": self.steps,
            "roles": {name: role.to_dict() for name, role in self.roles.items()},
            "cost_usd": self.cost_usd,
            "gate_policy": self.gate_policy,
            "looks": self.looks,
            "smallest_gain": None if gain is None else {"items": gain[0], "share": round(gain[1], 6)},
            "proposals": self.proposals.to_list(),
            "budget": dict(self.budget),
        }

    @property
    def cost_usd(self) -> list[float] | None:
        """Price of the whole run, [low, high]; None when that of a role is unknown."""
        costs = [role.cost_usd for role in self.roles.values()]
        known = [cost for cost in costs if cost is not None]
        if len(known) < len(costs):
            return None
        return [round(sum(cost[0] for cost in known), 6), round(sum(cost[1] for cost in known), 6)]


def make_plan(config: RunConfig, adapter: EnvAdapter | None = None, initial: Skill | None = None) -> Plan:
    """The plan of a run with these settings. Calls no model and writes nothing.

    Raises ConfigError, DataError or MissingExtraError as a run would.
    """
    return _Planner(config, adapter or setup.prepare(_without_folders(config)), initial).plan()


def refuse_too_small(config: RunConfig, adapter: EnvAdapter | None = None, initial: Skill | None = None) -> None:
    """Raise ConfigError when a budget is set that ends before the first proposal could be judged: the baseline, one
    training batch, one analyst and one full look at the validation items. Nothing is read when there is no budget."""
    budget = config.budget
    if budget.max_calls is None and budget.max_tokens is None and budget.max_cost_usd is None:
        return
    plan = make_plan(config, adapter, initial)
    for name, needed in plan.needed.items():
        limit = plan.budget.get(name)
        if limit is not None and limit < needed and plan.steps:
            about = "" if name == "max_calls" else "about "
            raise ConfigError(
                f"{config.source(f'budget.{name}')}: budget.{name} = {limit:g} supports 0 complete proposals: the "
                f"baseline and one step take at least {about}{needed:g}; raise it, or use fewer items."
            )


def _without_folders(config: RunConfig) -> RunConfig:
    """The same settings, under which an environment keeps a generated split in memory."""
    return replace(config, env=config.env.model_copy(update={"out_root": "", "split_output_dir": ""}))


class _Planner:
    def __init__(self, config: RunConfig, adapter: EnvAdapter, initial: Skill | None) -> None:
        self.config, self.adapter = config, adapter
        skill = initial if initial is not None else setup.initial_skill(config)
        items, fixed = sizes_of(adapter, config)
        self.extent = Extent.of(config, items["train"])
        self.shape = Shape(config, items, self.extent.steps_per_epoch, fixed)
        self.prices = known_prices(config.model)
        self.sizes = PromptSizes(self.shape, adapter, skill.text)

    def plan(self) -> Plan:
        shape, evaluation = self.shape, self.config.evaluation
        roles = {"target": self._target(), "optimizer": self._optimizer()}
        budget = {
            name: float(value)
            for name in ("max_calls", "max_tokens", "max_cost_usd", "max_seconds")
            if (value := getattr(self.config.budget, name)) is not None
        }
        needed, baseline, dearest = self._needs()
        looks = self.extent.looks
        return Plan(
            items=shape.items,
            epochs=shape.epochs,
            steps=shape.steps,
            roles=roles,
            gate_policy=evaluation.gate_policy if evaluation.use_gate else "off",
            looks=looks,
            smallest_gain=smallest_gain(
                shape.items["val"], policy=evaluation.gate_policy, alpha=evaluation.gate_alpha, looks=looks
            ),
            proposals=_proposals(shape.steps, budget, needed, baseline, dearest),
            budget=budget,
            needed=needed,
        )

    def _target(self) -> RolePlan:
        parts = {name: part for name, part in self.shape.target().items() if part.high}
        if self.sizes.prompts is None:
            model = self.config.roles["target"].model
            return RolePlan(model, None, parts, None, None, None, self._price("target"))
        prompt = completion = exactly(0)
        shortest, longest = self.sizes.target_reply()
        for name, part in parts.items():
            size = self.sizes.prompts["val" if name in ("baseline", "gate") else "test" if name == "test" else "train"]
            prompt += Range(part.low * size, part.high * (size + self.sizes.growth))
            completion += Range(part.low * shortest, part.high * longest)
        return self._role("target", parts, prompt, completion)

    def _optimizer(self) -> RolePlan:
        parts = {name: part for name, part in self.shape.optimizer().items() if part.high}
        prompt = completion = exactly(0)
        for name, part in parts.items():
            low, high = self.sizes.optimizer_prompt(name)
            prompt += Range(part.low * low, part.high * high)
            completion += Range(part.low * OPTIMIZER_REPLY_TOKENS[0], part.high * OPTIMIZER_REPLY_TOKENS[1])
        return self._role("optimizer", parts, prompt, completion)

    def _role(self, role: str, parts: Mapping[str, Range], prompt: Range, completion: Range) -> RolePlan:
        settings = self.config.roles[role]
        preflight = {"preflight": exactly(1)} if role in _preflights(self.config) else {}
        price = self._price(role)
        ends = ((prompt.low, completion.low), (prompt.high, completion.high))
        costs = None if price is None else [price.of(Usage(0, *tokens)) for tokens in ends]
        return RolePlan(
            model=settings.model,
            calls=sum(parts.values(), sum(preflight.values(), exactly(0))),
            parts={**preflight, **parts},
            prompt_tokens=prompt,
            completion_tokens=completion,
            cost_usd=None if costs is None else (costs[0], costs[1]),
            price=price,
        )

    def _price(self, role: str) -> Price | None:
        settings = self.config.roles[role]
        backend = load_backend(settings.backend)
        free = not backend.remote
        if not free and "usage" not in backend.row.capabilities:
            return None  # whatever a million tokens cost: nobody will know how many there were
        return price_of(UsageKey(role, settings.backend, settings.model, "", free), self.prices)

    def _needs(self) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
        """By limit: what baseline and cheapest step take at least, the baseline alone, and the dearest step."""
        cheapest, dearest = self.shape.cheapest_step(), self.shape.dearest_step()
        first = len(_preflights(self.config)) if self.sizes.prompts is not None else 0
        baseline = self._cost_of(self.shape.look, 0, end=0)
        baseline["max_calls"] += first
        step = self._cost_of(*cheapest, end=0)
        return (
            {name: baseline[name] + step[name] for name in baseline},
            baseline,
            self._cost_of(*dearest, end=1),
        )

    def _cost_of(self, rollouts: int, asked: int, *, end: int) -> dict[str, float]:
        """Calls, tokens and (if prices are known) dollars of so many rollouts and optimizer calls."""
        made = rollouts if self.sizes.prompts is not None else 0
        known_sizes = [size for size in (self.sizes.prompts or {}).values() if size] or [0]
        size = (min, max)[end](known_sizes)
        target = Usage(0, made * (size + end * self.sizes.growth), made * self.sizes.target_reply()[end])
        analyst = self.sizes.optimizer_prompt("analyst")[end]
        optimizer = Usage(0, asked * analyst, asked * OPTIMIZER_REPLY_TOKENS[end])
        spent: dict[str, float] = {
            "max_calls": made + asked,
            "max_tokens": target.total_tokens + optimizer.total_tokens,
        }
        prices = [self._price(role) for role in _ROLES]
        known = [price.of(usage) for price, usage in zip(prices, (target, optimizer), strict=True) if price]
        return {**spent, "max_cost_usd": sum(known)} if len(known) == len(prices) else spent


def _proposals(
    steps: int, budget: Mapping[str, float], needed: Mapping[str, float], *parts: Mapping[str, float]
) -> Range:
    """Complete steps within the budget: `floor((limit - baseline) / step)` with the dearest step for the low end and
    the cheapest for the high end, the least of all limits, and never more than the run has."""
    baseline, dearest = parts
    low = high = steps
    for name in baseline:
        if name not in budget:
            continue
        left, cheapest = budget[name] - baseline[name], needed[name] - baseline[name]
        low = min(low, _times(left, dearest[name]))
        high = min(high, _times(left, cheapest))
    return Range(max(0, low), max(0, high))


def _times(left: float, step: float) -> int:
    return int(left // step) if step > 0 else 10**9


def _preflights(config: RunConfig) -> set[str]:
    """Roles whose model is tried out before the first item; one of two that share an endpoint and a model."""
    return {role.role for role in distinct_models(config.roles.values()) if load_backend(role.backend).remote}


def _listed(value: Range | None) -> list[int] | None:
    return None if value is None else value.to_list()

"""From a resolved configuration to the tools of a run. Everything that can be wrong is found here, before any call."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from skillopt.config.resolve import check_available, check_env_keys
from skillopt.config.run_config import RunConfig
from skillopt.engine.kit import Kit
from skillopt.engine.run_dir import RunDir
from skillopt.envs.base import EnvAdapter
from skillopt.envs.registry import accepted_keys, available, make_adapter
from skillopt.errors import ConfigError, RunError
from skillopt.model.budget import Budget, Spent
from skillopt.model.limiter import Limits
from skillopt.model.session import Session
from skillopt.model.usage import Price, read_prices
from skillopt.skill.document import Skill
from skillopt.store import Store
from skillopt.tracking.console import ConsoleSink
from skillopt.tracking.events import EventLog, Sink
from skillopt.tracking.jsonl import JsonlSink
from skillopt.types import content_hash
from skillopt.utils.cancel import CancelToken
from skillopt.utils.files import RunLock, atomic_write_json, read_text

__all__ = ["ConsoleSink", "initial_skill", "open_kit", "prepare"]


def prepare(config: RunConfig) -> EnvAdapter:
    """Check the configuration against backends and environment, and read the data. Calls no model.

    Raises ConfigError, DataError or MissingExtraError.
    """
    if not config.env.name:
        raise ConfigError(f"env.name is not set; choose one of: {', '.join(available())}.")
    check_env_keys(config, accepted_keys(config.env.name))
    check_available(config)
    flat = config.flat()
    adapter = make_adapter(flat)
    adapter.setup(flat)
    return adapter


def initial_skill(config: RunConfig) -> Skill:
    """The skill that training starts from; empty when `env.skill_init` is blank. Raises DataError, SkillFormatError."""
    path = config.env.skill_init
    return Skill.parse(read_text(Path(path)) if path else "")


@contextlib.contextmanager
def open_kit(
    config: RunConfig, adapter: EnvAdapter, *, sinks: Sequence[Sink] = (), stop: CancelToken | None = None
) -> Iterator[Kit]:
    """Hold the run folder and everything in it open. Raises RunLockedError, or RunError when it cannot be written."""
    root = Path(config.env.out_root)
    folder = RunDir(root)
    try:
        root.mkdir(parents=True, exist_ok=True)
        with RunLock(root), contextlib.closing(Store(folder.store)) as store:
            log = EventLog((*sinks, JsonlSink(folder.events)))
            with contextlib.closing(log):
                session = _session(config, store, log)
                yield Kit(config, adapter, session, store, folder, log.emit, stop or CancelToken())
    except OSError as error:
        raise RunError(
            f"{error.filename or root}: cannot be written ({error.strerror}); "
            "make room or choose another --out_root, then run the same command again."
        ) from error


def _session(config: RunConfig, store: Store, log: EventLog) -> Session:
    model = config.model
    prices = read_prices(model.prices)
    limits = Limits(
        max_concurrency=model.max_concurrency,
        requests_per_minute=model.requests_per_minute,
        tokens_per_minute=model.tokens_per_minute,
        retries=model.retries,
        timeout_seconds=model.timeout_seconds,
        retry_after_ceiling_seconds=model.retry_after_ceiling_seconds,
    )
    budget = Budget(
        max_calls=config.budget.max_calls,
        max_tokens=config.budget.max_tokens,
        max_cost_usd=config.budget.max_cost_usd,
        max_seconds=config.budget.max_seconds,
        used=_spent(config, store, prices),
    )
    return Session(config.roles, limits=limits, budget=budget, prices=prices, store=store, emit=log.emit)


def _spent(config: RunConfig, store: Store, prices: Mapping[str, Price]) -> Spent:
    """What earlier processes of this run paid for and kept."""
    spent = Spent()
    for role, usage in (("target", store.rollout_usage()), ("optimizer", store.reply_usage())):
        price = prices.get(config.roles[role].model)
        cost = price.of(usage) if price is not None else 0.0
        spent = Spent(spent.calls + usage.calls, spent.tokens + usage.total_tokens, spent.cost_usd + cost)
    return spent


def write_config(kit: Kit, derived: dict[str, object]) -> None:
    """Write `config.json`: every setting in force, secrets as `set` or `unset` with their source."""
    atomic_write_json(kit.folder.config, {**kit.config.public(), **derived})


def fingerprint(kit: Kit, skill: Skill) -> dict[str, object]:
    """What must be the same for a run to go on: result-changing settings, data, environment and initial skill."""
    loader = kit.adapter.get_dataloader()
    data = getattr(loader, "fingerprint", None)
    return {
        **kit.config.fingerprint_parts(),
        "data": data if isinstance(data, str) else "",
        "environment": kit.adapter.fingerprint(),
        "initial_skill": content_hash(skill.text),
    }

"""From a resolved configuration to the tools of a run. Everything that can be wrong is found here, before any call."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from skillopt.config.providers import PROVIDERS
from skillopt.config.resolve import check_available, check_env_keys
from skillopt.config.run_config import RunConfig
from skillopt.engine.kit import Kit
from skillopt.engine.model_notes import kept_notes
from skillopt.engine.run_dir import RunDir
from skillopt.envs.base import EnvAdapter
from skillopt.envs.registry import accepted_keys, available, make_adapter
from skillopt.errors import ConfigError, RunError, SkillFormatError
from skillopt.model.budget import Budget, Spent
from skillopt.model.in_force import qwen_thinking_modes
from skillopt.model.limiter import Limits
from skillopt.model.prices import known_prices
from skillopt.model.registry import load_backend
from skillopt.model.session import Session
from skillopt.model.usage import UsageKey, UsageTracker
from skillopt.skill.document import Skill
from skillopt.store import Store
from skillopt.tracking.console import ConsoleSink
from skillopt.tracking.events import EventLog, Sink
from skillopt.tracking.jsonl import JsonlSink
from skillopt.types import Usage, content_hash
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
    root = _usable_root(config)
    flat = config.flat()
    if not config.env.split_output_dir and not RunDir(root).state.exists():
        flat["split_reset"] = True  # nothing was scored here yet: a split left by a failed start may be cut again
    adapter = make_adapter(flat)
    _check_needs(config, adapter)
    adapter.setup(flat)
    return adapter


def _check_needs(config: RunConfig, adapter: EnvAdapter) -> None:
    """Raise ConfigError when the environment cannot use the target's backend, or it cannot carry what is sent."""
    usable = [row for row in PROVIDERS.values() if row.serves("target") and adapter.needs <= row.capabilities]
    able = [row.name for row in usable if adapter.runs_agents() or not row.is_agent("target")]
    backend = config.roles["target"].backend
    if PROVIDERS[backend].is_agent("target") and not adapter.runs_agents():
        instead = f"{adapter.agents_with}, or " if adapter.agents_with else ""
        raise ConfigError(
            f"env.name={config.env.name} cannot run a coding agent with these settings, and the backend {backend} (for "
            f"the target) is one; set {instead}model.target_backend to one of: {', '.join(able)}."
        )
    if missing := sorted(adapter.needs - PROVIDERS[backend].capabilities):
        raise ConfigError(
            f"env.name={config.env.name} sends {' and '.join(missing)}, which the backend {backend} (for the target) "
            f"cannot carry; set model.target_backend to one of: {', '.join(able)}."
        )


def _usable_root(config: RunConfig) -> Path:
    """The run folder. Raises ConfigError when it is, or lies under, a file, or holds files to lose."""
    root = Path(config.env.out_root)
    for path in (root, *root.parents):
        if path.exists():
            if not path.is_dir():
                raise ConfigError(f"env.out_root: {path} is a file; name a folder for the run.")
            break
    if config.env.out_root and root.is_dir():
        _check_foreign(RunDir(root))
    return root


def _check_foreign(folder: RunDir) -> None:
    """Warn of a folder that holds other files and no run. Raises ConfigError when a run would write over one."""
    if any(path.exists() for path in (folder.store, folder.state, folder.events, folder.step(1).parent)):
        return
    names = sorted(path.name for path in folder.root.iterdir() if not path.name.startswith((".", "_generated_splits")))
    ours = {path.name for path in (folder.config, folder.history, folder.summary, folder.best_skill)}
    if lost := [name for name in names if name in ours]:
        raise ConfigError(
            f"env.out_root: {folder.root} holds no run, but {', '.join(lost)}, which a run would write over; name "
            "another folder."
        )
    if names:
        warnings.warn(
            f"env.out_root: {folder.root} holds other files ({names[0]} …) and no run; a new run is put beside them.",
            UserWarning,
            stacklevel=4,
        )


def initial_skill(config: RunConfig) -> Skill:
    """The skill that training starts from; empty when `env.skill_init` is blank. Raises DataError, SkillFormatError."""
    path = config.env.skill_init
    return parse_skill(Path(path)) if path else Skill.parse("")


def parse_skill(path: Path) -> Skill:
    """The skill in a file. Raises DataError or SkillFormatError, naming the file."""
    try:
        return Skill.parse(read_text(path))
    except SkillFormatError as error:
        raise SkillFormatError(f"{path}: {error}") from error


@contextlib.contextmanager
def open_kit(
    config: RunConfig, adapter: EnvAdapter, *, sinks: Sequence[Sink] = (), stop: CancelToken | None = None
) -> Iterator[Kit]:
    """Hold the run folder and everything in it open. Raises RunLockedError, or RunError when it cannot be written."""
    root = Path(config.env.out_root)
    folder, stop = RunDir(root), stop or CancelToken()
    try:
        root.mkdir(parents=True, exist_ok=True)
        with RunLock(root), contextlib.closing(Store(folder.store)) as store:
            log = EventLog((*sinks, JsonlSink(folder.events)))
            with contextlib.closing(log), contextlib.closing(_session(config, store, log, stop)) as session:
                yield Kit(config, adapter, session, store, folder, log.emit, stop)
    except OSError as error:
        raise RunError(
            f"{error.filename or root}: cannot be written ({error.strerror}); "
            "make room or choose another --out_root, then run the same command again."
        ) from error


def _session(config: RunConfig, store: Store, log: EventLog, stop: CancelToken) -> Session:
    model = config.model
    prices = known_prices(model)
    usage = UsageTracker(prices, store)
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
        used=_spent(usage),
    )
    return Session(
        config.roles, limits=limits, budget=budget, prices=prices, store=store, emit=log.emit, usage=usage, stop=stop
    )


def _spent(usage: UsageTracker) -> Spent:
    """What earlier processes of this run asked for, kept or not."""
    calls = sum(row.calls + row.failures for row in usage.rows().values())
    return Spent(calls, usage.total.total_tokens, usage.total_cost().usd)


def paid(config: RunConfig, store: Store) -> list[tuple[UsageKey, Usage]]:
    """What the kept results of this run took, by the model that was paid for it."""
    used = (("target", store.rollout_usage()), ("optimizer", store.reply_usage()))
    roles = [(config.roles[name], usage) for name, usage in used]
    return [(UsageKey(r.role, r.backend, r.model, "", not load_backend(r.backend).remote), usage) for r, usage in roles]


def write_config(kit: Kit, derived: dict[str, object]) -> None:
    """Write `config.json`: every setting in force, secrets as `set` or `unset` with their source."""
    modes = qwen_thinking_modes(kit.config.roles)
    thinking = {"resolved_qwen_thinking_modes": modes} if modes else {}
    atomic_write_json(kit.folder.config, {**kit.config.public(), **thinking, **kept_notes(kit.folder), **derived})


def fingerprint(kit: Kit, skill: Skill) -> dict[str, object]:
    """What must be the same for a run to go on: result-changing settings, data, environment and initial skill."""
    return fingerprint_of(kit.config, kit.adapter, skill)


def fingerprint_of(config: RunConfig, adapter: EnvAdapter, skill: Skill) -> dict[str, object]:
    """`fingerprint` of a run that is not open."""
    data = getattr(adapter.get_dataloader(), "fingerprint", None)
    return {
        **config.fingerprint_parts(),
        "data": data if isinstance(data, str) else "",
        "environment": adapter.fingerprint(),
        "initial_skill": content_hash(skill.text, *sorted(skill.files.items())),
    }

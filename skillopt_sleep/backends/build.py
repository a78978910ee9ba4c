"""Makes backends by name, and says what a configuration would reach.

A backend is one row here and one module, which is imported when the backend is made.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from skillopt_sleep.backends.base import Backend
from skillopt_sleep.backends.cache import CallCache
from skillopt_sleep.budget import Meter
from skillopt_sleep.config import SleepConfig, canonical_backend
from skillopt_sleep.config_keys import BACKEND_ALIASES
from skillopt_sleep.errors import UsageProblem
from skillopt_sleep.nearest import suggestion


@dataclass(frozen=True, slots=True)
class Row:
    """Where a backend's class is, and which of the common settings it takes, each under the name it has there."""

    module: str
    cls: str
    takes: Mapping[str, str]


ROWS: Mapping[str, Row] = MappingProxyType(
    {
        "mock": Row("mock", "MockBackend", {}),
        "claude": Row("claude", "ClaudeBackend", {"claude_path": "path"}),
        "codex": Row("codex", "CodexBackend", {"codex_path": "path", "project_dir": "project_dir"}),
        "handoff": Row("handoff", "HandoffBackend", {"project_dir": "project_dir", "handoff_dir": "handoff_dir"}),
        "azure_openai": Row("openai_api", "OpenAIBackend", {"azure_endpoint": "endpoint"}),
    }
)
ROLES = ("optimizer", "target", "judge")
SETTINGS = (
    *("claude_path", "codex_path", "pi_path", "cursor_path", "opencode_path", "opencode_tool_replay"),
    *("azure_endpoint", "project_dir", "handoff_dir"),
)
"""The settings of single backends; a backend ignores those of others."""


def get_backend(
    name: str, *, model: str = "", meter: Meter | None = None, cache: CallCache | None = None, **settings: Any
) -> Backend:
    """The backend `name` (or an alias of it). `settings`: see `SETTINGS`.

    Raises UsageProblem for a name that does not exist, with the nearest that does, and for a blank one.
    """
    own = canonical_backend(name)
    row = ROWS.get(own)
    if row is None:
        raise _unknown(name, own)
    unknown = next((key for key in settings if key not in SETTINGS), None)
    if unknown is not None:
        raise TypeError(f"get_backend() knows no setting {unknown!r}{suggestion(unknown, SETTINGS)}")
    options = {row.takes[key]: value for key, value in settings.items() if key in row.takes and value}
    module = importlib.import_module(f"skillopt_sleep.backends.{row.module}")
    backend: Backend = getattr(module, row.cls)(model, meter=meter, cache=cache, **options)
    return backend


def build_backend(  # noqa: PLR0913 - the published signature
    *,
    backend: str = "",
    model: str = "",
    optimizer_backend: str = "",
    optimizer_model: str = "",
    target_backend: str = "",
    target_model: str = "",
    judge_backend: str = "",
    judge_model: str = "",
    preferences: str = "",
    **settings: Any,
) -> Backend:
    """One backend, or a pair when any setting of a role is given; a role without its own inherits the common ones.

    The judge inherits the optimizer's. A role with another backend than the common one does not inherit its model.
    """
    roles = {
        "optimizer": (optimizer_backend, optimizer_model),
        "target": (target_backend, target_model),
        "judge": (judge_backend, judge_model),
    }
    if not any(part for role in roles.values() for part in role):
        made = get_backend(backend, model=model, **settings)
    else:
        made = _pair(roles, (backend, model), settings)
    made.preferences = preferences
    return made


def backend_for_config(
    config: SleepConfig, *, meter: Meter | None = None, cache: CallCache | None = None, checked: bool = True
) -> Backend:
    """The backend that a configuration asks for, with a meter of its caps unless one is given.

    `checked`: whether it could make calls is found out here, before anything is spent.
    """
    chosen = {f"{role}_{part}": config.get(f"{role}_{part}") for role in ROLES for part in ("backend", "model")}
    settings = {name: config.get(name) for name in SETTINGS if config.get(name)}
    made = build_backend(
        backend=config.get("backend"),
        model=config.get("model"),
        preferences=config.get("preferences"),
        meter=meter if meter is not None else meter_for_config(config),
        cache=cache,
        project_dir=str(config.project),
        **chosen,
        **settings,
    )
    if checked:
        made.check()
    return made


def meter_for_config(config: SleepConfig) -> Meter:
    """A meter with the caps of a configuration."""
    return Meter(
        max_tokens=config.get("max_tokens_per_night"),
        max_calls=config.get("max_calls_per_night"),
        max_minutes=config.get("max_minutes_per_night"),
    )


def reaches_network(config: SleepConfig) -> bool:
    """True when any role in effect gives text to something outside this program, a handoff session included."""
    return config.calls_a_model


def _pair(roles: Mapping[str, tuple[str, str]], common: tuple[str, str], settings: Mapping[str, Any]) -> Backend:
    from skillopt_sleep.backends.dual import DualBackend

    meter = settings.get("meter") or Meter()  # one for all roles
    shared = {**settings, "meter": meter}

    def make(role: str, base: tuple[str, str]) -> tuple[Backend, tuple[str, str]]:
        name, model = (part.strip() for part in roles[role])
        same = not name or canonical_backend(name) == canonical_backend(base[0])
        chosen = (name or base[0], model or (base[1] if same else ""))
        return get_backend(chosen[0], model=chosen[1], **shared), chosen

    target, _ = make("target", common)
    optimizer, optimizers = make("optimizer", common)
    judger = make("judge", optimizers)[0] if any(roles["judge"]) else None
    return DualBackend(target, optimizer, judger)


def _unknown(name: str, own: str) -> UsageProblem:
    known = ", ".join(ROWS)
    if not own:
        return UsageProblem(
            f"No backend is chosen; pass --backend with one of {known}. `mock` calls no model and learns from prepared "
            "tasks only."
        )
    if own in BACKEND_ALIASES.values():
        return UsageProblem(f"The backend {own!r} is not part of this version; choose one of {known}.")
    near = suggestion(name, [*ROWS, *BACKEND_ALIASES])
    return UsageProblem(f"Unknown backend {name!a}{near}; choose one of {known}.")

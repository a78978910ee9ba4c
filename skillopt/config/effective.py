"""Every effective setting of a resolved configuration, and where it came from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from skillopt.config.keys import KEYS, PROVIDER_KEYS
from skillopt.config.providers import PROVIDERS
from skillopt.config.run_config import RunConfig
from skillopt.types import JsonObject, RoleConfig

_PROVIDER_NAMES = frozenset(key.name for key in PROVIDER_KEYS)
_BY_ROLE = frozenset({"optimizer", "target", "optimizer_backend", "target_backend"})


@dataclass(frozen=True, slots=True)
class Effective:
    """One setting: its name in its section, or of its role, its value as JSON, and where the value came from.

    A credential's value is `set` or `unset`.
    """

    name: str
    value: Any
    source: str


def effective_settings(config: RunConfig) -> dict[str, list[Effective]]:
    """The settings by section, then those of each role by `role optimizer` and `role target`.

    A backend's own settings stand with the roles that use it.
    """
    public = config.public()
    groups: dict[str, list[Effective]] = {}
    for key in KEYS:
        if key.section == "model" and (key.name in _PROVIDER_NAMES or key.name in _BY_ROLE):
            continue
        setting = Effective(key.name, public.get(key.flat_name), config.source(key.dotted))
        groups.setdefault(key.section, []).append(setting)
    for name in config.env_extras:
        groups["env"].append(Effective(name, public[name], config.source(f"env.{name}")))
    for name, role in config.roles.items():
        groups[f"role {name}"] = list(_of_role(config, role))
    return groups


def _of_role(config: RunConfig, role: RoleConfig) -> Iterator[Effective]:
    row = PROVIDERS[role.backend]
    yield Effective("backend", role.backend, config.source(f"{role.role}.backend"))
    yield Effective("model", role.model, config.source(f"{role.role}.model"))
    own = any(field.name == "effort" for field in row.fields)
    effort_source = config.source("model.reasoning_effort" if own else f"{role.role}.effort")
    idle = "" if "effort" in row.capabilities else f"; {row.name} takes none"
    yield Effective("reasoning effort", role.effort, effort_source + idle)
    shown = config.role_settings(role)
    for field in row.fields:
        yield Effective(f"{row.name} {field.name}", shown[field.name], config.source(f"{role.role}.{field.name}"))


def effective_json(config: RunConfig) -> JsonObject:
    """The same as JSON: `{"label", "settings": {section: {name: {value, source}}}, "roles": {role: {name: …}}}`."""
    found = {
        group: {item.name: {"value": item.value, "source": item.source} for item in items}
        for group, items in effective_settings(config).items()
    }
    roles = {name: found.pop(f"role {name}") for name in config.roles}
    return {"label": config.label, "settings": found, "roles": roles}

"""The resolved configuration: one frozen value that a run is built from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillopt.config.key import Key
from skillopt.config.keys import KEYS, find_key, is_secret
from skillopt.config.providers import PROVIDERS
from skillopt.types import JsonObject, RoleConfig
from skillopt.utils.redact import hide_in_addresses, is_secret_name


@dataclass(frozen=True, slots=True)
class RunConfig:
    """Every setting of a run, checked, with its source.

    The sections are read by attribute, e.g. `config.train.batch_size`. `roles` holds the optimizer's and the
    target's RoleConfig, the only place with credentials. `label` is the high-level backend.
    """

    command: str
    config_path: Path | None
    label: str
    model: Any
    train: Any
    gradient: Any
    optimizer: Any
    evaluation: Any
    env: Any
    budget: Any
    roles: Mapping[str, RoleConfig]
    sources: Mapping[str, str]

    def source(self, name: str) -> str:
        """Where a value came from: `flag --seed`, `configs/x.yaml:12`, `env NAME`, `default`.

        `name` is a dotted or flat name, or `<role>.<field>` for a backend's setting, e.g. `target.api_key`.
        """
        key = find_key(name)
        return self.sources.get(key.dotted if key else name, "default")

    @property
    def env_extras(self) -> Mapping[str, Any]:
        """Keys of the section `env` that no table knows; a custom environment may use them."""
        return dict(self.env.model_extra or {})

    def flat(self) -> JsonObject:
        """Every setting by its flat name, without credentials and without what is unset."""
        out: JsonObject = {}
        for key in KEYS:
            value = _plain(getattr(getattr(self, key.section), key.name))
            if value is not None and not key.secret:
                out[key.flat_name] = value
        out.update({name: _plain(value) for name, value in self.env_extras.items() if not is_secret(name)})
        return out

    def public(self) -> JsonObject:
        """What may be written to disk: `flat()` with credentials shown as `set (where from)` or `unset`."""
        out = {name: _without_credentials(value) for name, value in self.flat().items()}
        for role, config in self.roles.items():
            for field in PROVIDERS[config.backend].fields:
                if field.secret:
                    state = "set" if config.settings.get(field.name) else "unset"
                    out[_role_name(role, field.keys_for(role))] = self._state(state, f"{role}.{field.name}")
        for key in KEYS:
            if key.secret and getattr(self.model, key.name):
                out.setdefault(key.flat_name, self._state("set", key.dotted))
        for name, value in self.env_extras.items():
            if is_secret(name):
                out[name] = self._state("set" if value else "unset", f"env.{name}")
        return out

    def role_settings(self, role: RoleConfig) -> JsonObject:
        """The backend's settings of a role as they may be shown: a credential is `set` or `unset`."""
        return {
            name: ("set" if value else "unset") if name in role.secrets else _without_credentials(_plain(value))
            for name, value in role.settings.items()
        }

    def _state(self, state: str, source_name: str) -> str:
        return f"set ({self.sources.get(source_name, 'default')})" if state == "set" else "unset"

    def fingerprint_parts(self) -> JsonObject:
        """The settings that can change a result, by name, and what each role's replies depend on."""
        parts = {
            key.dotted: _without_credentials(_plain(getattr(getattr(self, key.section), key.name)))
            for key in KEYS
            if _changes_results(key)
        }
        for name, value in self.env_extras.items():
            if not is_secret(name):
                parts[f"env.{name}"] = _without_credentials(_plain(value))
        for role, config in self.roles.items():
            parts[f"roles.{role}"] = _role_parts(config)
        return parts


_ROLE_COVERED = frozenset({"backend", "optimizer", "target", "optimizer_backend", "target_backend", "reasoning_effort"})


def _changes_results(key: Key) -> bool:
    return key.affects_results and not key.secret and not (key.section == "model" and key.name in _ROLE_COVERED)


def _role_parts(config: RoleConfig) -> JsonObject:
    shown = sorted(config.result_settings - config.secrets)
    settings = {name: _without_credentials(_plain(config.settings.get(name))) for name in shown}
    return {"backend": config.backend, "model": config.model, "effort": config.effort, "settings": settings}


def _role_name(role: str, names: tuple[str, ...]) -> str:
    return next((name for name in names if name.startswith(role)), f"{role}_{names[0] if names else 'api_key'}")


def _plain(value: Any) -> Any:
    """JSON's own types."""
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value


def _without_credentials(value: Any) -> Any:
    """A value without texts named like credentials in it, and without the credentials in addresses."""
    if isinstance(value, Mapping):
        shown = {name: "[hidden]" for name, inner in value.items() if _is_credential(name, inner)}
        return {name: shown.get(name) or _without_credentials(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_without_credentials(inner) for inner in value]
    return hide_in_addresses(value) if isinstance(value, str) else value


def _is_credential(name: str, value: Any) -> bool:
    return isinstance(value, str) and bool(value) and is_secret_name(name)

"""From a backend's name to its functions. The module behind a row is imported on first use, never before."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from skillopt.config.provider_row import Provider
from skillopt.config.providers import available_backends, get_provider
from skillopt.errors import ConfigError
from skillopt.model.values import CallContext, ModelCall, ModelReply
from skillopt.types import RoleConfig

Complete = Callable[[ModelCall, RoleConfig, CallContext], ModelReply]


@dataclass(frozen=True, slots=True)
class Backend:
    """What the call path needs of a backend: its one function and its row in the table of providers."""

    row: Provider
    complete: Complete

    @property
    def remote(self) -> bool:
        """True when it talks to a service: worth a preflight call, its tokens cost money, an empty reply is a fault."""
        return "remote" in self.row.capabilities


def load_backend(name: str) -> Backend:
    """The backend of this name or alias.

    Raises ConfigError when it is unknown or not part of this version, MissingExtraError when a package is missing.
    """
    row = get_provider(name)
    if row.module is None:
        raise ConfigError(
            f"The backend {row.name!r} is not part of this version; available: {', '.join(available_backends())}."
        )
    module = importlib.import_module(row.module)
    return Backend(row, module.complete)


def credentials_hint(role: RoleConfig) -> str:
    """What to set for a role's credentials, in words: the YAML keys and the environment variables of its row."""
    secret = [field for field in get_provider(role.backend).fields if field.secret]
    keys = [f"model.{key}" for field in secret for key in reversed(field.keys_for(role.role))]
    variables = [name for field in secret for name in reversed(field.env_for(role.role))]
    if not keys and not variables:
        return "the credentials of this backend"
    return f"{' or '.join(keys)} in the configuration, or the environment variable {' or '.join(variables)}"


def setting_default(role: RoleConfig, name: str) -> object:
    """What a setting of the role's backend is when nobody sets it; an empty text for one that it does not have."""
    return next((field.default for field in get_provider(role.backend).fields if field.name == name), "")


def setting_hint(role: RoleConfig, name: str) -> str:
    """Where a role's setting is changed, in words: the YAML keys and the environment variables of its field."""
    for field in get_provider(role.backend).fields:
        if field.name == name:
            keys = " or ".join(f"model.{key}" for key in reversed(field.keys_for(role.role)))
            variables = " or ".join(reversed(field.env_for(role.role)))
            return " or ".join(part for part in (keys, f"the environment variable {variables}") if part)
    return name

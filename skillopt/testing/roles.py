"""Roles that point at a server of a test."""

from __future__ import annotations

from typing import Any

from skillopt.config.providers import get_provider
from skillopt.types import RoleConfig

DEFAULT_BACKEND = "openai_compatible"
_PLAIN_MODES = frozenset({"openai_compatible", "compat", "openai"})


def role(
    url: str,
    role: str = "target",
    *,
    backend: str = DEFAULT_BACKEND,
    model: str = "loopback",
    **settings: Any,
) -> RoleConfig:
    """A role at `url`, which is a base address that ends in `/v1`.

    `settings` win over what the backend's row says. A role of `openai_chat` gets the auth mode `api_key` and the key
    `loopback-key`, and its endpoint is `url` without `/v1`, as Azure's paths want it.
    """
    row = get_provider(backend)
    given = _settings(url, backend, {field.name: field.default for field in row.fields}, settings)
    return RoleConfig(
        role=role,
        backend=row.name,
        model=model,
        settings={**given, **settings},
        secrets=frozenset(field.name for field in row.fields if field.secret),
        result_settings=frozenset(field.name for field in row.fields if field.changes_result),
    )


def _settings(url: str, backend: str, defaults: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    if backend == DEFAULT_BACKEND:
        return {"base_url": url, "api_key": "", "timeout_seconds": 10.0}
    if "endpoint" in defaults:
        mode = str(given.get("auth_mode") or "api_key")
        address = url if mode in _PLAIN_MODES else url.removesuffix("/v1")
        return {**defaults, "endpoint": address, "auth_mode": mode, "api_key": "loopback-key"}
    address_field = {"base_url": url} if "base_url" in defaults else {}
    return {**defaults, **address_field, "timeout_seconds": 10.0}

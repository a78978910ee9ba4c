"""Configuration: what can be set (`keys`, `providers`), how files are read (`load`), what a run gets (`resolve`).

Importing this package imports neither pydantic nor YAML; its submodules do when they are needed.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "RunConfig": "run_config",
    "apply_overrides": "load",
    "check_available": "resolve",
    "check_env_keys": "resolve",
    "flatten_config": "load",
    "is_structured": "load",
    "json_schema": "schema",
    "load_config": "load",
}

__all__ = [
    "RunConfig",
    "apply_overrides",
    "check_available",
    "check_env_keys",
    "flatten_config",
    "is_structured",
    "json_schema",
    "load_config",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"skillopt.config.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'skillopt.config' has no attribute {name!r}")

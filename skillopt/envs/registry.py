"""Finds an environment by its name: built in, of another package (entry point), or `module:Class`.

Nothing is imported before it is asked for.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
import inspect
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skillopt.envs.base import EnvAdapter
from skillopt.errors import ConfigError, MissingExtraError

ENTRY_POINT_GROUP = "skillopt.envs"
BUILT_IN: Mapping[str, str] = {
    "jsonl": "skillopt.envs.jsonl.adapter:JsonlEnv",
    "alfworld": "skillopt.envs.alfworld.adapter:AlfworldEnv",
    "docvqa": "skillopt.envs.docvqa.adapter:DocVQAEnv",
    "livemathematicianbench": "skillopt.envs.livemathematicianbench.adapter:LiveMathematicianBenchEnv",
    "officeqa": "skillopt.envs.officeqa.adapter:OfficeQAEnv",
    "searchqa": "skillopt.envs.searchqa.adapter:SearchQAEnv",
    "spreadsheetbench": "skillopt.envs.spreadsheetbench.adapter:SpreadsheetBenchEnv",
}


def available() -> list[str]:
    """Names of all environments that are built in or installed, sorted."""
    return sorted(_targets())


def get_env_class(name: str) -> type[EnvAdapter]:
    """The class of an environment. `name` may also be `module:Class`, also of a module in the working directory.

    Raises ConfigError for an unknown name, and when the environment cannot be imported (with the real reason).
    """
    if ":" in name:
        here = str(Path.cwd())
        if not {here, ""} & set(sys.path):
            sys.path.append(here)  # last, so that nothing there hides an installed package
        return _load(name, name)
    targets = _targets()
    if name not in targets:
        near = difflib.get_close_matches(name, targets, 1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        known = ", ".join(sorted(targets))
        raise ConfigError(f"env.name: unknown environment {name!r}{hint} Available: {known}; or module:Class.")
    return _load(name, targets[name])


def accepted_keys(name: str) -> frozenset[str]:
    """Configuration keys that the environment's constructor takes."""
    return frozenset(_parameters(get_env_class(name)))


def make_adapter(cfg: Mapping[str, Any]) -> EnvAdapter:
    """The environment named by the flat key `env`, made with exactly the keys that its constructor takes.

    Raises ConfigError when `env` is missing or a required constructor parameter has no value.
    """
    name = str(cfg.get("env") or "")
    if not name:
        raise ConfigError(f"env.name is missing. Available: {', '.join(available())}.")
    cls = get_env_class(name)
    parameters = _parameters(cls)
    settings = {key: cfg[key] for key in parameters if cfg.get(key) is not None}
    missing = [k for k, p in parameters.items() if p.default is p.empty and k not in settings]
    if missing:
        raise ConfigError(f"Environment {name!r} needs {', '.join('env.' + key for key in missing)}; none is set.")
    adapter = cls(**settings)
    adapter.settings = settings
    return adapter


def _targets() -> dict[str, str]:
    found = importlib.metadata.entry_points(group=ENTRY_POINT_GROUP)
    return {**{entry.name: entry.value for entry in found}, **BUILT_IN}


def _load(name: str, target: str) -> type[EnvAdapter]:
    module_name, _, attribute = target.partition(":")
    try:
        cls = getattr(importlib.import_module(module_name.strip()), attribute.strip())
    except MissingExtraError:
        raise
    except Exception as error:
        kind = "" if isinstance(error, (ImportError, AttributeError)) else f"{type(error).__name__}: "
        raise ConfigError(f"env.name: {name!r} ({target}) cannot be imported: {kind}{error}") from error
    if not (isinstance(cls, type) and issubclass(cls, EnvAdapter)):
        raise ConfigError(f"env.name: {target} is not a subclass of skillopt.envs.base.EnvAdapter.")
    return cls


def _parameters(cls: type[EnvAdapter]) -> dict[str, inspect.Parameter]:
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {key: p for key, p in inspect.signature(cls).parameters.items() if p.kind in named}

"""Warnings about what was given: retired keys and credentials outside the environment."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

from skillopt.config.key import Key
from skillopt.config.keys import RETIRED_NAMES, find_key, is_secret
from skillopt.config.provider_row import ROLES
from skillopt.config.provider_rows import ROWS
from skillopt.config.settings import Collected


def warn_retired(retired: Mapping[str, Sequence[str]]) -> None:
    """One FutureWarning that names each retired key and every place that gave it."""
    if not retired:
        return
    parts = [
        f"{name} has no effect any more ({RETIRED_NAMES[name].note}); it was given by {' and '.join(places)}"
        for name, places in retired.items()
    ]
    warnings.warn("; ".join(parts) + ". Remove it.", FutureWarning, stacklevel=3)


def warn_credentials(given: Collected) -> None:
    """A DeprecationWarning for each credential outside the environment, with the variable to use instead."""
    for dotted, setting in given.settings.items():
        if not is_secret(dotted) or not setting.value:
            continue
        key = find_key(dotted)
        advice = _advice(key) if key else "keep it in an environment variable"
        name = key.name if key else dotted
        warnings.warn(f"{setting.source}: {name} is a credential; {advice}", DeprecationWarning, stacklevel=3)


def _advice(key: Key) -> str:
    for row in ROWS:
        for field in row.fields:
            names = (field.key, field.legacy_key)
            if field.secret and key.name in names:
                return _use(field.env[-1], row.name)
            for role in ROLES if field.secret and field.role_key else ():
                if key.name == field.role_key.format(role=role):
                    return _use(field.env_for(role)[0], row.name)
    return "keep it in an environment variable"


def _use(variable: str, backend: str) -> str:
    other = " or sign in with azure_openai_auth_mode managed_identity" if backend == "openai_chat" else ""
    return f"set the environment variable {variable} instead{other}"

"""The text of `.env.example`: every environment variable that a backend's row names."""

from __future__ import annotations

from collections.abc import Iterator

from skillopt.config.provider_row import ROLES, Provider, ProviderField
from skillopt.config.providers import PROVIDERS

_HEAD = """\
# Environment variables that SkillOpt reads. Copy this file to .env, fill in what you need, and load it into your shell:
#   set -a; . ./.env; set +a
# Flags and configuration files win over these; a blank variable counts as not set unless it says
# otherwise. Lines with # show the default.
# A variable that begins with OPTIMIZER_ or TARGET_ is for that role only and wins over the shared one.

# Backend of a role, where neither a flag nor a file names one.
# OPTIMIZER_BACKEND=
# TARGET_BACKEND=
"""


def env_example() -> str:
    """`.env.example`, generated from the rows of the backends."""
    seen: set[str] = set()
    parts = [_HEAD]
    for row in PROVIDERS.values():
        lines = list(_row_lines(row, seen))
        if lines:
            state = "" if row.available else " (not part of this version)"
            parts.append("\n".join([f"# --- {row.name}: {row.doc}{state}", *lines]) + "\n")
    return "\n".join(parts)


def _row_lines(row: Provider, seen: set[str]) -> Iterator[str]:
    for field in row.all_fields:
        names = [name for name in variables(field) if name not in seen]
        seen.update(names)
        if names:
            yield f"# {field.doc}"
        for name in names:
            yield f"{name}=" if field.secret else f"# {name}={_shown(field.default)}"


def variables(field: ProviderField) -> tuple[str, ...]:
    """Every environment variable of a field, for both roles, the shared ones first."""
    names = [name for role in ROLES for name in field.env_for(role)]
    shared = [name for name in field.env if "{ROLE}" not in name]
    return tuple(dict.fromkeys([*shared, *names]))


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(str(part).replace("\n", "\\n") for part in value)
    return f"{value:g}" if isinstance(value, float) else str(value)

"""Settings that replace an older one of the same backend: which of the two holds. Pure functions."""

from __future__ import annotations

from typing import Any

from skillopt.config.provider_row import Provider, ProviderField
from skillopt.errors import ConfigError

_GIVEN = 2


def settle_older(row: Provider, role: str, settings: dict[str, Any], sources: dict[str, str]) -> None:
    """Fill each field that has an older form from it where that is what was given; the older form becomes None.

    `settings` and `sources` are those of one role and are changed in place. Raises ConfigError when both were given in
    files, options or flags and mean different things.
    """
    for field in row.fields:
        if not field.older_field:
            continue
        mine, older = f"{role}.{field.name}", f"{role}.{field.older_field}"
        value, source = settled(
            field, (settings[field.name], sources[mine]), (settings[field.older_field], sources[older])
        )
        settings.update({field.name: value, field.older_field: None})
        sources[mine] = source


def settled(field: ProviderField, mine: tuple[Any, str], older: tuple[Any, str]) -> tuple[Any, str]:
    """The (value, source) that holds, of a field's own and its older form's.

    None is "not given". What was given in files, options or flags beats the environment, which beats the default;
    within the environment the field beats its older form.
    """
    if older[0] is None:
        return mine
    meant = (field.older_values[older[0]], older[1])
    if mine[0] is None or _rank(mine[1]) < _rank(meant[1]):
        return meant
    if _rank(mine[1]) == _rank(meant[1]) == _GIVEN and mine[0] != meant[0]:
        raise ConfigError(
            f"Conflicting {field.title} settings: {mine[1]} says {field.name} {mine[0]}, {older[1]} says "
            f"{field.older_field} {str(older[0]).lower()}, which means {meant[0]}; remove {field.older_field}"
        )
    return mine


def _rank(source: str) -> int:
    """0: a default, 1: the environment, 2: given in files, options or flags."""
    if source == "default":
        return 0
    return 1 if source.startswith("env ") else _GIVEN

"""All keys together, and how to find one by any of its names. Imports neither pydantic nor YAML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from skillopt.config.env_table import ENV
from skillopt.config.key import Key, Retired
from skillopt.config.model_table import MODEL
from skillopt.config.provider_row import ROLES, Provider, ProviderField
from skillopt.config.provider_rows import ROWS
from skillopt.config.tables import BUDGET, EVALUATION, GRADIENT, OPTIMIZER, RETIRED, TRAIN

SECTIONS = ("model", "train", "gradient", "optimizer", "evaluation", "env", "budget")
"""Names of the sections of a structured file."""

SECRET_ENDINGS = ("api_key", "api-key", "token", "secret", "password")
"""A key whose last part ends like this holds a credential, known or not."""


def _provider_key(row: Provider, field: ProviderField, name: str, doc: str) -> Key:
    return Key(
        "model",
        name,
        field.type,
        None,
        f"{row.name}: {doc}",
        choices=field.choices,
        synonyms=field.synonyms,
        minimum=field.minimum,
        aliases=field.key_aliases if name == field.key else (),
        nullable=True,
        lenient=True,
        omit_words=field.omit_words,
        secret=field.secret,
        affects_results=False,
        in_eval=True,
        group=f"backend {row.name}",
    )


def _provider_keys() -> Iterator[Key]:
    for row in ROWS:
        for field in row.all_fields:
            if field.key:
                yield _provider_key(row, field, field.key, field.doc)
            if field.role_key:
                for role in ROLES:
                    yield _provider_key(row, field, field.role_key.format(role=role), f"{field.doc} ({role} only)")
            if field.legacy_key:
                yield _provider_key(row, field, field.legacy_key, f"Older name of {field.key}.")


def _distinct(keys: Iterator[Key]) -> tuple[Key, ...]:
    return tuple({key.name: key for key in reversed(list(keys))}.values())[::-1]


PROVIDER_KEYS: tuple[Key, ...] = _distinct(_provider_keys())
"""The keys of the section `model` that the rows of the backends bring."""

KEYS: tuple[Key, ...] = (*MODEL, *PROVIDER_KEYS, *TRAIN, *GRADIENT, *OPTIMIZER, *EVALUATION, *ENV, *BUDGET)
"""Every key."""

BY_DOTTED: Mapping[str, Key] = MappingProxyType({key.dotted: key for key in KEYS})
BY_FLAT: Mapping[str, Key] = MappingProxyType({key.flat_name: key for key in KEYS})
RETIRED_NAMES: Mapping[str, Retired] = MappingProxyType(
    {name: item for item in RETIRED for name in (item.dotted, item.flat, f"{item.section}.{item.flat}")}
)

SHORT_FLAGS: Mapping[str, str] = MappingProxyType({"skill": "skill_init", "data": "data_path"})
"""Flags that are another name of a setting on a command line only, with the flat name of the setting."""


def section_keys(section: str) -> tuple[Key, ...]:
    """The keys of one section, in order."""
    return tuple(key for key in KEYS if key.section == section)


_ALIASES: Mapping[str, str] = MappingProxyType(
    {
        spelling: key.dotted
        for key in KEYS
        for alias in key.aliases
        for spelling in (alias, f"{key.section}.{alias}")
        if spelling not in BY_DOTTED and spelling not in BY_FLAT
    }
)


def find_key(name: str) -> Key | None:
    """The key with this dotted name, flat name or alias, or None."""
    return BY_DOTTED.get(name) or BY_FLAT.get(name) or BY_DOTTED.get(_ALIASES.get(name, ""))


def is_secret(name: str) -> bool:
    """True for known credentials and for every name that ends like one."""
    key = find_key(name)
    if key is not None:
        return key.secret
    return name.rpartition(".")[2].lower().endswith(SECRET_ENDINGS)

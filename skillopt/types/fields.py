"""How a record goes to JSON and comes back: unknown keys ignored, empty fields left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from skillopt.types.canonical import JsonObject


def known_fields(cls: type, data: Mapping[str, Any]) -> JsonObject:
    """The entries of `data` that are fields of the dataclass `cls`."""
    names = {f.name for f in fields(cls)}
    return {key: value for key, value in data.items() if key in names}


def without_empty(data: JsonObject, optional: tuple[str, ...]) -> JsonObject:
    """`data` less the keys among `optional` whose value is None or an empty text."""
    return {k: v for k, v in data.items() if not (k in optional and (v is None or v == ""))}

"""Prompt templates: text with `{field}` placeholders; `{{` and `}}` are literal braces."""

from __future__ import annotations

import json
import string
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from skillopt.errors import ConfigError, DataError
from skillopt.types import Item


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed template: pairs of literal text and the field that follows it (None at the end)."""

    parts: tuple[tuple[str, str | None], ...]

    @classmethod
    def parse(cls, text: str) -> Template:
        """Read a template. Raises ConfigError for unbalanced braces and for anything but a field name in them."""
        try:
            raw = list(string.Formatter().parse(text))
        except ValueError as error:
            raise ConfigError(f"env.prompt: {error}; write {{{{ and }}}} for literal braces.") from None
        for _, field, form, conversion in raw:
            if field is not None and (not field.strip() or form or conversion):
                shown = "{" + field + (f"!{conversion}" if conversion else "") + (f":{form}" if form else "") + "}"
                raise ConfigError(
                    f"env.prompt: {shown} is not a placeholder; write {{field}} for a field of the data, "
                    "and {{ }} for literal braces."
                )
        return cls(tuple((literal, field) for literal, field, _, _ in raw))

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the fields used, each once, in order."""
        return tuple(dict.fromkeys(field for _, field in self.parts if field is not None))

    def render(self, item: Item, names: Mapping[str, str] | None = None) -> str:
        """The prompt of an item. `names` maps a placeholder to the field that stands for it.

        Raises DataError naming the item and the field when the item lacks it.
        """
        out: list[str] = []
        for literal, placeholder in self.parts:
            out.append(literal)
            if placeholder is not None:
                out.append(_value(item, placeholder, names or {}))
        return "".join(out)


def _value(item: Item, placeholder: str, names: Mapping[str, str]) -> str:
    field = placeholder if placeholder in item.data else names.get(placeholder, placeholder)
    value: Any = item.data.get(field)
    if value is None:
        known = ", ".join(sorted(name for name in item.data if name != "id"))
        raise DataError(f"item {item.id!r}: no field {field!r}, which env.prompt uses. It has: {known}.")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

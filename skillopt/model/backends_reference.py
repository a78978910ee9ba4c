"""The text of `docs/reference/backends.md`: every backend, generated from its row and its module."""

from __future__ import annotations

import importlib
import shlex
from collections.abc import Iterable, Iterator, Mapping

from skillopt.config.envfile import variables
from skillopt.config.provider_row import Provider, ProviderField
from skillopt.config.providers import LABELS, PROVIDERS
from skillopt.errors import MissingExtraError

_HEAD = """\
# Every backend

Generated from the table of backends that the program reads; `make docs` writes it again.

A backend serves the role `optimizer`, the role `target`, or both. `model.backend` (flag `--backend`) takes a label that
chooses both; `model.optimizer_backend` and `model.target_backend` choose one. Names and aliases may be written with `-`
for `_`. A setting is looked up in this order: the role's key, the shared key, the role's variable, the shared variable,
the default. `skillopt config show --config FILE` tells what holds and why; `skillopt doctor --config FILE` tries it.
"""

_CAPABILITIES: Mapping[str, str] = {
    "remote": "sends to a service; tried out before the first item",
    "tools": "carries tools",
    "images": "carries images",
    "effort": "takes a reasoning effort",
    "token_cap": "limits the tokens of a reply",
    "usage": "tells tokens",
    "system": "takes a system message",
    "structured": "replies by a schema",
    "web_search": "can search the web by itself",
}


def backends_page() -> str:
    """The whole page."""
    parts = [_HEAD, "\n".join(_overview()) + "\n", "\n".join(_labels()) + "\n"]
    parts += ["\n".join(_section(row)) + "\n" for row in PROVIDERS.values()]
    return "\n".join(parts)


def _overview() -> Iterator[str]:
    yield "| backend | roles | kind | default model | what it is |"
    yield "|---|---|---|---|---|"
    for row in PROVIDERS.values():
        name = f"[`{row.name}`](#{row.name})" if row.available else f"[`{row.name}`](#{row.name}) (not in this version)"
        yield _line(name, ", ".join(row.roles), row.kind, f"`{row.default_model}`", row.doc)


def _labels() -> Iterator[str]:
    yield "## Labels\n"
    yield "| `model.backend` | optimizer | target |"
    yield "|---|---|---|"
    for label, (optimizer, target) in LABELS.items():
        yield _line(f"`{label}`", f"`{optimizer}`", f"`{target}`")


def _section(row: Provider) -> Iterator[str]:
    yield f"## {row.name}\n"
    yield row.doc + ("" if row.available else " **Known by name, not part of this version.**")
    yield ""
    if row.aliases:
        yield f"- Also called: {_code(row.aliases)}"
    told = [text for name, text in _CAPABILITIES.items() if name in row.capabilities]
    told += sorted(row.capabilities - set(_CAPABILITIES))
    yield f"- What it does: {'; '.join(told) or 'text in, text out'}"
    yield from _program(row)
    if row.all_fields:
        yield ""
        yield "| setting | `model.` key | key of one role | environment variable | default | meaning |"
        yield "|---|---|---|---|---|---|"
        yield from map(_setting, row.all_fields)


def _setting(field: ProviderField) -> str:
    role_key = field.role_key.replace("{role}", "ROLE")
    secret = " **Secret**: give it as a variable." if field.secret else ""
    meaning = field.doc + (f" One of {_code(field.choices)}." if field.choices else "") + secret
    keys = tuple(name for name in (field.key, field.legacy_key, *field.key_aliases) if name)
    return _line(f"`{field.name}`", _code(keys), _code((role_key,)), _code(variables(field)), _default(field), meaning)


def _program(row: Provider) -> Iterator[str]:
    """The command line that a backend starts, and what it is given."""
    path = next((field for field in row.fields if field.name == "path"), None)
    if path is None:
        return
    yield f"- Starts the program `{path.default}`"
    try:
        module = importlib.import_module(row.module) if row.module else None
    except MissingExtraError:
        module = None
    environment, flags = getattr(module, "ENVIRONMENT", ()), getattr(module, "FLAGS", ())
    if environment:
        yield f"- Of our environment the program sees what every program needs and {_code(environment)}"
    if flags:
        groups = flags.values() if isinstance(flags, Mapping) else flags
        words = (group if isinstance(group, str) else shlex.join(group) for group in groups)
        yield f"- Flags that it may be given: {_code(words)}"


def _default(field: ProviderField) -> str:
    if field.default is None:
        return "unset"
    if isinstance(field.default, bool):
        return f"`{str(field.default).lower()}`"
    return f"`{field.default}`" if field.default != "" else "blank"


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names if name)


def _line(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

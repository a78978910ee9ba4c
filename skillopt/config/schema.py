"""The typed sections: one pydantic model each, built from the tables of keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model

from skillopt.config.casting import check_value
from skillopt.config.key import Key
from skillopt.config.keys import SECTIONS, find_key, section_keys
from skillopt.config.providers import backend_names, nearest

JSON_SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"

_PLAIN: Mapping[str, Any] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "list": tuple[str, ...],
    "map": dict[str, Any],
    "prices": dict[str, dict[str, float]],
}
_SECTION_DOCS: Mapping[str, str] = {
    "model": "Models, backends and how they are called.",
    "train": "Epochs, batches, seed.",
    "gradient": "How failures and successes become proposed edits.",
    "optimizer": "How many edits are applied and how.",
    "evaluation": "Gate and test.",
    "env": "Environment, data and splits.",
    "budget": "What a run may spend.",
}


class Section(BaseModel):
    """Base of every section: frozen, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=(), allow_inf_nan=False)


class OpenSection(Section):
    """A section in which unknown keys are kept; the environment decides about them."""

    model_config = ConfigDict(frozen=True, extra="allow", protected_namespaces=(), allow_inf_nan=False)


def _checker(key: Key) -> Callable[[object], object]:
    return partial(check_value, key)


def _annotation(key: Key) -> Any:
    plain: Any = Literal[key.choices] if key.choices else _PLAIN[key.type]
    if key.default is None:
        plain = plain | None
    return Annotated[plain, BeforeValidator(_checker(key))]


def _field(key: Key) -> Any:
    default: Any = dict(key.default) if isinstance(key.default, Mapping) else key.default
    return Field(default=default, description=key.doc, repr=not key.secret)


@cache
def section_model(section: str) -> type[BaseModel]:
    """The pydantic model of one section."""
    fields: dict[str, Any] = {key.name: (_annotation(key), _field(key)) for key in section_keys(section)}
    return create_model(
        section.capitalize(),
        __base__=OpenSection if section == "env" else Section,
        __doc__=_SECTION_DOCS[section],
        **fields,
    )


def build_section(section: str, values: Mapping[str, object]) -> tuple[BaseModel | None, list[tuple[str, str]]]:
    """The section's model, or None and its problems as (key, what is wrong)."""
    try:
        return section_model(section).model_validate(dict(values)), []
    except ValidationError as error:
        return None, [_problem(section, details) for details in error.errors(include_url=False)]


def _problem(section: str, details: Any) -> tuple[str, str]:
    name = str(details["loc"][0]) if details["loc"] else section
    if details["type"] == "extra_forbidden":
        return name, unknown_key(f"{section}.{name}")
    cause = details.get("ctx", {}).get("error")
    key = find_key(f"{section}.{name}")
    expected = key.expected if key else "something else"
    return name, f"{section}.{name} {cause if cause is not None else f'must be {expected}'}"


def unknown_key(name: str) -> str:
    """What is said about a key that does not exist: with the nearest name, or where it belongs."""
    section, dot, rest = name.partition(".")
    elsewhere = find_key(rest or name)
    if elsewhere is not None:
        return f"unknown key {name}; did you mean {elsewhere.dotted}?"
    names = {key.name: key.dotted for key in section_keys(section)} if dot else {}
    near = nearest(rest or name, names)
    if near:
        return f"unknown key {name}; did you mean {names[near]}?"
    everywhere = {spelling: key.dotted for s in SECTIONS for key in section_keys(s) for spelling in _spellings(key)}
    near = nearest(rest or name, everywhere)
    suffix = f"did you mean {everywhere[near]}?" if near else "`skillopt config schema` lists the keys"
    if section in SECTIONS or near:
        return f"unknown key {name}; {suffix}"
    near_section = nearest(section, SECTIONS)
    return f"unknown key {name}; " + (f"did you mean {near_section}?" if near_section else suffix)


def _spellings(key: Key) -> tuple[str, ...]:
    return (key.name, key.flat_name)


def json_schema() -> dict[str, Any]:
    """JSON schema of a structured configuration file, for editors."""
    properties: dict[str, Any] = {
        "_base_": {"type": "string", "description": "File that this one is merged over, relative to this file."}
    }
    for section in SECTIONS:
        part = section_model(section).model_json_schema(mode="validation")
        for key in section_keys(section):
            part["properties"][key.name] = _loosened(key, part["properties"][key.name])
        properties[section] = {**part, "type": ["object", "null"]}
    return {
        "$schema": JSON_SCHEMA_DIALECT,
        "title": "SkillOpt configuration",
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
    }


def _loosened(key: Key, prop: dict[str, Any]) -> dict[str, Any]:
    """What a file may hold: null for "not given", and the other spellings of a choice."""
    kept: dict[str, Any] = {"description": prop["description"], "x-flag": f"--{key.flag_name}"}
    if prop.get("default") is not None:
        kept["default"] = prop["default"]
    if key.secret:
        kept["x-secret"] = True
    if key.choices:
        return {**kept, "enum": [*key.choices, *key.synonyms, *_blank(key)]}
    if key.name.endswith("backend") and key.section == "model":
        kept["examples"] = list(backend_names())
    types: dict[str, Any] = {
        "str": {"type": ["string", "null"]},
        "int": {"type": ["integer", "null"]},
        "float": {"type": ["number", "null"]},
        "bool": {"type": ["boolean", "null"]},
        "list": {"type": ["array", "string", "null"], "items": {"type": "string"}},
        "map": {"type": ["object", "null"]},
        "prices": {"type": ["object", "null"], "additionalProperties": _PRICE_SCHEMA},
    }
    shape: dict[str, Any] = dict(types[key.type])
    if key.lenient and key.type in ("int", "float", "bool"):
        shape["type"] = [*shape["type"], "string"]
    limits = {"minimum": key.minimum, "maximum": key.maximum, "exclusiveMinimum": key.above}
    shape.update({name: limit for name, limit in limits.items() if limit is not None})
    return {**kept, **shape}


def _blank(key: Key) -> list[object]:
    return ["", None] if key.lenient and "" not in key.choices else [None]


_PRICE_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "required": ["input", "output"],
    "additionalProperties": False,
    "properties": {name: {"type": "number", "minimum": 0} for name in ("input", "output", "cached")},
}

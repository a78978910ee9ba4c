"""Configuration files: layers joined by `_base_`, the structured and the flat form, overrides.

Everything here works on the plain values of the files; types and ranges are checked in `resolve`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skillopt.config.casting import cast_for
from skillopt.config.key import Key
from skillopt.config.keys import BY_FLAT, KEYS, SECTIONS, find_key
from skillopt.config.shipped import find_config
from skillopt.config.yaml_reader import ConfigFileNotFoundError, ConfigTypeError, read_yaml
from skillopt.errors import ConfigError

__all__ = [
    "ConfigFileNotFoundError",
    "ConfigTypeError",
    "Loaded",
    "apply_overrides",
    "flatten_config",
    "is_structured",
    "load_config",
    "read_config",
    "read_mapping",
    "split_option",
]

Data = dict[str, Any]


@dataclass(slots=True)
class Loaded:
    """The merged values of a file and its bases; `where` gives `file:line` by the spelling used in the file."""

    data: Data
    where: dict[str, str] = field(default_factory=dict)


def load_config(path: str | Path, overrides: Sequence[str] | None = None) -> Data:
    """Read a YAML file with its `_base_` chain and apply `key=value` overrides.

    Raises ConfigError for everything that is wrong with a file: also a ValueError for cycles and bad YAML, a
    TypeError for a wrong kind of value, a FileNotFoundError for a missing file.
    """
    return apply_overrides(read_config(Path(path)).data, overrides or ())


def is_structured(cfg: Mapping[str, Any]) -> bool:
    """True when at least one of the sections is present as a mapping; a flat file has every key at top level."""
    return any(isinstance(cfg.get(section), Mapping) for section in SECTIONS)


def flatten_config(cfg: Mapping[str, Any]) -> Data:
    """Every setting under its flat name. Values of a known key win over unknown keys of the same name."""
    if not is_structured(cfg):
        return _rename_aliases(dict(cfg))
    flat: Data = {name: value for name, value in cfg.items() if name not in SECTIONS}
    extras: Data = {}
    for section in SECTIONS:
        values = cfg.get(section)
        for name, value in values.items() if isinstance(values, Mapping) else ():
            key = find_key(f"{section}.{name}")
            if key is not None:
                flat[key.flat_name] = value
            else:
                extras[name if section == "env" else f"{section}.{name}"] = value
    known = {name for name in flat if name in BY_FLAT}
    flat.update({name: value for name, value in extras.items() if name not in known})
    return flat


def split_option(word: str) -> tuple[str, str]:
    """Split `key=value` at the first `=`. Raises ConfigError without one."""
    name, equals, value = word.partition("=")
    if not equals or not name.strip():
        raise ConfigError(f"--cfg-options: expected key=value, not {word!r}")
    return name.strip(), value


def apply_overrides(cfg: Data, overrides: Sequence[str]) -> Data:
    """Apply `key=value` texts to a structured or flat mapping, in place, and return it."""
    structured = is_structured(cfg)
    for word in overrides:
        name, text = split_option(word)
        key = find_key(name)
        value = cast_for(key, text)
        if structured:
            _set_structured(cfg, key, name, value)
        elif key is not None:
            cfg[key.flat_name] = value
        else:
            cfg[name.removeprefix("env.")] = value
    return cfg


def _set_structured(cfg: Data, key: Key | None, name: str, value: object) -> None:
    section, dot, rest = (key.dotted if key is not None else name).partition(".")
    if not dot:
        cfg[name] = value
        return
    if key is not None and not isinstance(cfg.get(key.flat_name), Mapping):
        cfg.pop(key.flat_name, None)
    if not isinstance(cfg.get(section), MutableMapping):
        cfg[section] = {}
    cfg[section][rest] = value


def read_config(path: Path, _chain: tuple[Path, ...] = ()) -> Loaded:
    """Read a file and merge it over its bases. `_chain` holds the files that led here.

    One that is not there may be among those that are installed with the package; see `find_config`.
    """
    path = path if _chain else find_config(path)
    chain = (*_chain, path)
    resolved = path.resolve()
    if resolved in [earlier.resolve() for earlier in _chain]:
        raise ConfigError("_base_ leads in a circle: " + " -> ".join(str(step) for step in chain))
    data, lines = _read_layer(path, chain)
    base = data.pop("_base_", None)
    where = {name: f"{os.path.normpath(path)}:{line}" for name, line in lines.items()}
    layer = _tidy(Loaded(data, where))
    if base is None:
        return layer
    if not isinstance(base, str):
        raise ConfigTypeError(f"{where['_base_']}: _base_ must be one file name, not a {type(base).__name__}")
    return _merge(read_config(path.parent / base, chain), layer)


def read_mapping(settings: Mapping[str, Any]) -> Loaded:
    """Settings from Python, in the structured or the flat form of a file; `_base_` may name a file to start from.

    The mapping itself is not changed. Raises ConfigError as `read_config` does.
    """
    data = _own_copy(settings)
    base = data.pop("_base_", None)
    layer = _tidy(Loaded(data))
    if base is None:
        return layer
    if not isinstance(base, str | Path):
        raise ConfigTypeError(f"_base_ must be one file name, not a {type(base).__name__}")
    return _merge(read_config(Path(base)), layer)


def _own_copy(settings: Mapping[str, Any]) -> Data:
    return {name: _own_value(value) for name, value in settings.items()}


def _own_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _own_copy(value)
    return str(value) if isinstance(value, Path) else value


def _read_layer(path: Path, chain: tuple[Path, ...]) -> tuple[Data, dict[str, int]]:
    try:
        return read_yaml(path)
    except ConfigFileNotFoundError:
        if len(chain) == 1:
            raise
        steps = " -> ".join(str(step) for step in chain)
        raise ConfigFileNotFoundError(f"{chain[-2]}: its _base_ does not exist: {path} (chain: {steps})") from None


def _rename_aliases(data: Data) -> Data:
    """Give every aliased key of one mapping its canonical flat name; the canonical spelling wins."""
    return _rename(data, "", {})


def _rename(data: Data, section: str, where: dict[str, str]) -> Data:
    prefix = f"{section}." if section else ""
    for key in KEYS:
        if section not in ("", key.section):
            continue
        canonical = key.name if section else key.flat_name
        for alias in key.aliases:
            if alias not in data or alias == canonical:
                continue
            value, place = data.pop(alias), where.pop(prefix + alias, "")
            if canonical not in data:
                data[canonical] = value
                where[prefix + canonical] = place
    return data


def _tidy(layer: Loaded) -> Loaded:
    """Canonical names, and no flat key beside its structured twin."""
    _rename(layer.data, "", layer.where)
    for section in SECTIONS:
        if isinstance(layer.data.get(section), dict):
            _rename(layer.data[section], section, layer.where)
    for key in _given(layer.data):
        twin = layer.data.get(key.flat_name)
        values = layer.data.get(key.section)
        if isinstance(values, dict) and key.name in values and not isinstance(twin, Mapping):
            _drop(layer, key.flat_name)
    return layer


def _given(data: Data) -> list[Key]:
    """The known keys that a layer gives, in either spelling."""
    return [key for key in KEYS if _gives_flat(data, key) or _gives_structured(data, key)]


def _gives_flat(data: Data, key: Key) -> bool:
    return key.flat_name in data and not isinstance(data[key.flat_name], dict)


def _gives_structured(data: Data, key: Key) -> bool:
    return isinstance(data.get(key.section), dict) and key.name in data[key.section]


def _drop(layer: Loaded, name: str) -> None:
    layer.data.pop(name, None)
    layer.where.pop(name, None)


def _merge(base: Loaded, child: Loaded) -> Loaded:
    """The child over its base: mappings key by key, everything else replaced, whatever the spelling."""
    if isinstance(child.data.get("env"), dict) or isinstance(base.data.get("env"), dict):
        _nest_env_name(base)
        _nest_env_name(child)
    for section in SECTIONS:
        if child.data.get(section, "") is None:
            _drop(child, section)
    for key in KEYS:
        if _gives_structured(child.data, key) and _gives_flat(base.data, key):
            _drop(base, key.flat_name)
        elif _gives_flat(child.data, key) and _gives_structured(base.data, key):
            del base.data[key.section][key.name]
            base.where.pop(key.dotted, None)
    return Loaded(_deep_merge(base.data, child.data), {**base.where, **child.where})


def _nest_env_name(layer: Loaded) -> None:
    """`env: name` becomes `env: {name: name}`, so that it can meet a section `env`."""
    if isinstance(layer.data.get("env"), str):
        layer.data["env"] = {"name": layer.data["env"]}
        if "env" in layer.where:
            layer.where["env.name"] = layer.where["env"]


def _deep_merge(base: Mapping[str, Any], child: Mapping[str, Any]) -> Data:
    merged = dict(base)
    for name, value in child.items():
        old = merged.get(name)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        merged[name] = _deep_merge(old, value) if both else value  # type: ignore[arg-type]
    return merged

"""One YAML file to plain values, with the line of every key. Scalars follow YAML 1.2's core schema.

`012` is twelve, `1e3` a number, and `yes`, `no`, `on`, `off` are text (which a true/false key accepts as such).
Dates stay text. A key that stands twice in one mapping is an error.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from skillopt.errors import ConfigError


class ConfigTypeError(ConfigError, TypeError):
    """A value of a configuration file has the wrong kind."""


class ConfigFileNotFoundError(ConfigError, FileNotFoundError):
    """A configuration file does not exist."""


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader with the core schema's scalars and unique keys."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen: dict[str, int] = {}
        for key_node, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            line = key_node.start_mark.line + 1
            if key_node.tag != "tag:yaml.org,2002:merge" and isinstance(key_node, yaml.ScalarNode):
                if key_node.value in seen:
                    raise _DuplicateKey(key_node.value, seen[key_node.value], line)
                seen[key_node.value] = line
        return super().construct_mapping(node, deep)


class _DuplicateKey(Exception):
    def __init__(self, key: str, first: int, second: int) -> None:
        super().__init__(key)
        self.key, self.first, self.second = key, first, second


_CORE = (
    ("tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), "tTfF"),
    ("tag:yaml.org,2002:null", re.compile(r"^(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""]),
    ("tag:yaml.org,2002:int", re.compile(r"^(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$"), "-+0123456789"),
    (
        "tag:yaml.org,2002:float",
        re.compile(
            r"^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
        ),
        "-+.0123456789",
    ),
    ("tag:yaml.org,2002:merge", re.compile(r"^(?:<<)$"), "<"),
)


def _construct_int(loader: _Loader, node: Any) -> int:
    text = str(loader.construct_scalar(node))
    if text.startswith(("0o", "0x")):
        return int(text, 0)
    return int(text)


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in _CORE:
    _Loader.add_implicit_resolver(_tag, _pattern, list(_first))
_Loader.add_constructor("tag:yaml.org,2002:int", _construct_int)


def read_yaml(path: Path) -> tuple[dict[str, Any], dict[str, int]]:
    """The file's mapping ({} when empty) and the line of each key, by `key` and `section.key`.

    Raises ConfigFileNotFoundError, ConfigTypeError (not a mapping), ConfigError (unreadable, with file and line).
    """
    text = _read_text(path)
    loader = _Loader(text)
    try:
        node: Any = loader.get_single_node()
        data = loader.construct_document(node) if node is not None else {}
    except _DuplicateKey as error:
        raise ConfigError(
            f"{path}:{error.second}: {error.key} is given twice (first in line {error.first}); keep one of them"
        ) from None
    except yaml.YAMLError as error:
        raise ConfigError(_yaml_problem(path, error, text)) from None
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ConfigError(f"{path}: not valid YAML: {reason}") from None
    finally:
        loader.dispose()
    if data is None:
        return {}, {}
    if not isinstance(data, dict):
        kind = type(data).__name__
        raise ConfigTypeError(f"{path}: the file must hold a mapping of sections or keys, not a {kind}")
    if not all(isinstance(key, str) for key in data):
        wrong = next(key for key in data if not isinstance(key, str))
        raise ConfigTypeError(f"{path}: a key must be text, not {wrong!r}")
    return data, _lines(node)


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigFileNotFoundError(f"{path}: this configuration file does not exist") from None
    except IsADirectoryError:
        raise ConfigError(f"{path}: this is a folder; name a YAML file in it") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: the file is not UTF-8 (byte {error.start}); save it as UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{path}: the file cannot be read: {error.strerror}") from None


def _yaml_problem(path: Path, error: yaml.YAMLError, text: str) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    where = f"{path}:{mark.line + 1}" if mark else str(path)
    lines = text.splitlines()
    line = lines[mark.line] if mark and mark.line < len(lines) else ""
    if "\\t" in problem or "\t" in line[: len(line) - len(line.lstrip())]:
        return f"{where}: a tab is used for indentation; use spaces"
    return f"{where}: not valid YAML: {problem}"


def _lines(node: Any, prefix: str = "") -> dict[str, int]:
    found: dict[str, int] = {}
    for key_node, value_node in node.value if isinstance(node, yaml.MappingNode) else ():
        name = f"{prefix}{key_node.value}"
        found[name] = key_node.start_mark.line + 1
        if not prefix and isinstance(value_node, yaml.MappingNode):
            found.update(_lines(value_node, f"{name}."))
    return found

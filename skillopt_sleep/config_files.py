"""Reads a configuration file (JSON or YAML) strictly: broken files and keys given twice are errors, never ignored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from skillopt_sleep.errors import UsageProblem

NAMES = ("config.json", "config.yaml", "config.yml")


def find_config(folder: Path) -> tuple[Path | None, list[str]]:
    """The first of `NAMES` in `folder`, and a notice for each further one, which is not read."""
    there = [folder / name for name in NAMES if (folder / name).exists()]
    notices = [f"{other}: not read, because {there[0].name} is there too." for other in there[1:]]
    return (there[0] if there else None), notices


def read_config(path: Path) -> dict[str, Any]:
    """The mapping that `path` holds; {} for an empty file.

    Raises UsageProblem naming the file and, where it is known, the line.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageProblem(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8.") from None
    except OSError as error:
        raise UsageProblem(f"{path}: cannot be read ({error.strerror}).") from None
    if not text.strip():
        return {}
    value = _json(path, text) if path.suffix == ".json" else _yaml(path, text)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise UsageProblem(f"{path}: a mapping of settings is expected, not {type(value).__name__}.")
    return value


def _json(path: Path, text: str) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise UsageProblem(f"{path}: the key {key!r} stands twice; keep one of them.")
            found[key] = value
        return found

    try:
        return json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise UsageProblem(f"{path}:{error.lineno}: not valid JSON ({error.msg}).") from None
    except RecursionError:
        raise UsageProblem(f"{path}: nested too deeply.") from None


def _yaml(path: Path, text: str) -> Any:
    try:
        import yaml
    except ImportError:
        raise UsageProblem(f"{path}: reading YAML needs `pip install pyyaml`; or write config.json.") from None
    try:
        _refuse_repeated_keys(path, yaml.compose(text, Loader=yaml.SafeLoader))
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark is not None else str(path)
        problem = getattr(error, "problem", None) or "it cannot be read"
        raise UsageProblem(f"{where}: not valid YAML ({problem}).") from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, UsageProblem):
            raise
        raise UsageProblem(f"{path}: not valid YAML ({error}).") from None


def _refuse_repeated_keys(path: Path, node: Any) -> None:
    if node is None or node.id != "mapping":
        return
    seen: set[str] = set()
    for key, _ in node.value:
        if key.value in seen:
            raise UsageProblem(f"{path}:{key.start_mark.line + 1}: the key {key.value!r} stands twice; keep one.")
        seen.add(key.value)

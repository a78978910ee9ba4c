"""Reads and writes state.json: versions, checks, the copy before the last write, and what happens to a damaged file."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from skillopt_sleep import paths
from skillopt_sleep.errors import StateBroken

VERSION = 2
JsonObject = dict[str, Any]
HOLDOUT: JsonObject = {"decided": {}, "moved": {}, "written": []}


def empty_state() -> JsonObject:
    """A state before the first night."""
    return {
        "version": VERSION,
        "night": 0,
        "slow_memory": "",
        "last_model_key": "",
        "last_model_key_format": 1,
        "history": [],
        "projects": {},
    }


def read_state(path: Path) -> tuple[JsonObject, tuple[str, ...]]:
    """(state, notices) of `path`, upgraded to this version.

    Raises StateBroken when the file is damaged (it is set aside), of a later version or unreadable (it stays).
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return _without_file(path)
    except OSError as error:
        raise StateBroken(f"{path}: cannot be read ({error.strerror}); mend its permissions.") from None
    try:
        return _parsed(raw), ()
    except _Later as error:
        raise StateBroken(f"{path}: {error}") from None
    except ValueError as error:
        raise StateBroken(_set_aside(path, str(error))) from None


def write_state(path: Path, data: JsonObject) -> None:
    """Write a state, mode 0600, all or nothing; the file that was there becomes `.bak` first."""
    try:
        before = path.read_bytes()
    except FileNotFoundError:
        before = b""
    if before:
        paths.write_private(backup_path(path), before)
    paths.write_private_json(path, data)


def backup_path(path: Path) -> Path:
    """The copy of the file before the last write."""
    return path.with_name(path.name + ".bak")


def project_of(data: JsonObject, project: str | Path) -> JsonObject:
    """The entry of a project, made when it is missing."""
    entry: JsonObject = data["projects"].setdefault(str(paths.expand(project)), {})
    return entry


def archive(data: JsonObject, rows: Iterable[JsonObject], cap: int) -> None:
    """Add tasks to the archives of their projects: one row for each id, newest last, at most `cap`."""
    for row in rows:
        entry = project_of(data, str(row.get("project") or "/"))
        kept = [old for old in entry.get("archive", []) if old.get("id") != row.get("id")]
        entry["archive"] = [*kept, row][-cap:] if cap > 0 else []


def note_holdout(
    entry: JsonObject, night: int, decided: Iterable[str], moved: Mapping[str, str], written: Iterable[str]
) -> None:
    """See `SleepState.record_holdout`; `entry` is a project's."""
    nights = entry.setdefault("decided", {})
    nights.update({name: sorted({*nights.get(name, ()), night}) for name in decided})
    entry.setdefault("splits", {}).update(moved)
    entry.setdefault("moved", {}).update(dict.fromkeys(moved, night))
    entry["written"] = sorted({*entry.get("written", ()), *written})
    for row in entry.get("archive", []):
        row["split"] = moved.get(str(row.get("id")), row.get("split", "train"))


def edit_identity(row: Mapping[str, Any]) -> tuple[str, ...]:
    """What makes two edits the same: target, op, content and anchor, spaces and case aside."""
    return tuple(" ".join(str(row.get(name, "")).split()).lower() for name in ("target", "op", "content", "anchor"))


def epoch_of(text: str) -> float:
    """Epoch seconds of ISO-8601 text; without an offset it is local time. Raises ValueError."""
    normal = text.strip()
    normal = f"{normal[:-1]}+00:00" if normal[-1:] in ("Z", "z") else normal
    return datetime.fromisoformat(normal).timestamp()


def upgraded(data: Mapping[str, Any]) -> JsonObject:
    """`data` in this version's form, everything unknown kept. Raises ValueError naming what is not as it should be."""
    version = data.get("version", 1)
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise ValueError(f"its version is {version!r}")
    if version > VERSION:
        raise _Later(f"it was written by a later version (format {version}); update skillopt.")
    merged = {**empty_state(), **data}
    _checked(merged)
    if version < VERSION:
        _from_version_1(merged)
    merged["version"] = VERSION
    return merged


class _Later(ValueError):
    """The file is whole, but of a version that this program does not know."""


def _parsed(raw: bytes) -> JsonObject:
    try:
        data = json.loads(raw.decode("utf-8-sig"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(data, dict):
        raise ValueError("it holds no object")
    return upgraded(data)


_SHAPES: dict[str, type] = {
    "night": int,
    "slow_memory": str,
    "last_model_key": str,
    "last_model_key_format": int,
    "history": list,
    "projects": dict,
}
_PROJECT_SHAPES: dict[str, type] = {
    "cursors": dict,
    "archive": list,
    "splits": dict,
    "rejected": list,
    "notes": dict,
    "slow_memory": str,
    "decided": dict,
    "moved": dict,
    "written": list,
}


def _checked(data: JsonObject) -> None:
    _check_shapes(data, _SHAPES, "")
    for project, entry in data["projects"].items():
        if not isinstance(entry, dict):
            raise ValueError(f"projects[{project!r}] is no object")
        _check_shapes(entry, _PROJECT_SHAPES, f"projects[{project!r}].")
        nights = [*entry.get("moved", {}).values(), *entry.get("decided", {}).values()]
        if not all(isinstance(night, int) for row in nights for night in (row if isinstance(row, list) else [row])):
            raise ValueError(f"projects[{project!r}]: a night in decided or moved is no number")
    rows = [*data["history"], *(row for entry in data["projects"].values() for row in entry.get("archive", []))]
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError("a row of history or archive is no object")


def _check_shapes(data: JsonObject, shapes: Mapping[str, type], prefix: str) -> None:
    for name, shape in shapes.items():
        if name in data and (not isinstance(data[name], shape) or isinstance(data[name], bool)):
            raise ValueError(f"{prefix}{name} is no {shape.__name__}")


def _from_version_1(data: JsonObject) -> None:
    """One table of local times and one mixed archive become entries of projects."""
    harvests, tasks = data.pop("last_harvest", {}), data.pop("task_archive", [])
    if not isinstance(harvests, dict) or not isinstance(tasks, list):
        raise ValueError("last_harvest or task_archive is not as version 1 writes it")
    for project, when in harvests.items():
        project_of(data, project)["last_harvest"] = epoch_of(str(when)) if when else None
    archive(data, [task for task in tasks if isinstance(task, dict)], 300)


def _set_aside(path: Path, problem: str) -> str:
    """Move a damaged file out of the way and say what to do."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    aside = path.with_name(f"{path.name}.corrupt-{stamp}")
    count = 2
    while aside.exists():
        aside = path.with_name(f"{path.name}.corrupt-{stamp}-{count}")
        count += 1
    path.rename(aside)
    backup = backup_path(path)
    then = (
        f"the next run goes on from {backup.name}, the state before the last write"
        if backup.exists()
        else "there is no earlier copy, so the next run begins at night 1"
    )
    return f"{path}: damaged ({problem}). It was set aside as {aside.name}; mend it and move it back, or else {then}."


def _without_file(path: Path) -> tuple[JsonObject, tuple[str, ...]]:
    """No file: a fresh state, or the earlier copy when a damaged file was set aside."""
    aside = sorted(path.parent.glob(f"{path.name}.corrupt-*")) if path.parent.is_dir() else []
    try:
        raw = backup_path(path).read_bytes()
    except OSError:
        note = f"{path}: starting afresh; the damaged state lies in {aside[-1].name}." if aside else ""
        return empty_state(), (note,) if note else ()
    try:
        data = _parsed(raw)
    except ValueError as error:
        raise StateBroken(
            f"{backup_path(path)}: damaged too ({error}); mend or remove it, then run this again."
        ) from None
    return data, (f"{path}: missing; going on from {backup_path(path).name}, the state before the last write.",)

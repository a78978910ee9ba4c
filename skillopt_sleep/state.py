"""What the nights remember: counter, history, and for each project its cursors, archive, splits and refused rules.

Every change is kept as an operation. `save` takes the state lock, reads the file again, applies the operations to what
is there now and writes it, so that two processes never lose each other's changes. Times are UTC epoch seconds. The
file before the last write stays beside it as state.json.bak.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from skillopt_sleep import paths, state_file
from skillopt_sleep.locks import state_lock
from skillopt_sleep.redact import redact_secrets
from skillopt_sleep.state_file import JsonObject, empty_state, project_of

ARCHIVE_CAP = 300
HISTORY_CAP = 1000
REJECTED_CAP = 200
_Operation = Callable[[JsonObject], None]


class SleepState:
    """The state of one state folder. Nothing is on disk before `save`."""

    def __init__(self, path: Path | str, data: Mapping[str, Any] | None = None) -> None:
        self.path = Path(path)
        self.notices: tuple[str, ...] = ()
        self._data = state_file.upgraded(dict(data)) if data is not None else empty_state()
        self._operations: list[_Operation] = []
        if data is not None:
            given = copy.deepcopy(self._data)
            self._operations.append(lambda current: current.update(copy.deepcopy(given)))

    @classmethod
    def load(cls, path: Path | str) -> SleepState:
        """The state in `path`; a fresh one when there is no file.

        Raises StateBroken when the file is damaged: it is then set aside as `state.json.corrupt-<time>` and the next
        load goes on from the copy before the last write, saying so in `notices`.
        """
        state = cls(path)
        state._data, state.notices = state_file.read_state(state.path)
        return state

    def save(self) -> None:
        """Bring this object's changes into the file, under the state lock. Raises NightBusy, StateBroken or OSError."""
        with state_lock(self.path.parent):
            current, _ = state_file.read_state(self.path)
            for operation in self._operations:
                operation(current)
            state_file.write_state(self.path, current)
            self._data = current
            self._operations = []

    @property
    def night(self) -> int:
        """Number of the last night that began, over all projects."""
        return int(self._data["night"])

    @property
    def history(self) -> list[JsonObject]:
        """One row for each recorded night, oldest first."""
        return copy.deepcopy(list(self._data["history"]))

    def begin_night(self, clock: Callable[[], datetime] | None = None) -> int:
        """Count one more night and return its number; with `clock`, note when it began."""
        number = self.night + 1
        began = clock().timestamp() if clock is not None else None

        def begin(data: JsonObject) -> None:
            data["night"] = max(number, int(data["night"]))
            if began is not None:
                data["last_began"] = began

        self._apply(begin)
        return number

    def record_night(self, row: Mapping[str, Any]) -> None:
        """Append a row to the history; a row of the same night and project is replaced."""
        new = copy.deepcopy(redact_secrets(dict(row)))

        def record(data: JsonObject) -> None:
            same = (new.get("night"), new.get("project"))
            kept = [old for old in data["history"] if (old.get("night"), old.get("project")) != same]
            data["history"] = [*kept, new][-HISTORY_CAP:]

        self._apply(record)

    def last_harvest_for(self, project: str | Path) -> float | None:
        """When the sessions of a project were last processed, in epoch seconds; None: never."""
        value = self._project(project).get("last_harvest")
        return None if value is None else float(value)

    def set_last_harvest(self, project: str | Path, when: float | str) -> None:
        """Set it, as epoch seconds or as ISO-8601 text (without an offset: local time)."""
        value = state_file.epoch_of(when) if isinstance(when, str) else float(when)
        self._set(project, "last_harvest", value)

    def cursor(self, source: str, project: str | Path) -> JsonObject:
        """What was consumed of a source for a project, in the source's own terms; {} at first."""
        cursor = self._project(project).get("cursors", {}).get(source, {})
        return copy.deepcopy(dict(cursor))

    def set_cursor(self, source: str, project: str | Path, cursor: Mapping[str, Any]) -> None:
        """Set it. Call this only when what it passes over has been processed."""
        value = copy.deepcopy(dict(cursor))
        self._apply(lambda data: project_of(data, project).setdefault("cursors", {}).update({source: value}))

    def task_archive(self, project: str | Path | None = None) -> list[JsonObject]:
        """Archived tasks of one project, or of all, newest last."""
        if project is not None:
            return copy.deepcopy(list(self._project(project).get("archive", [])))
        rows = [row for entry in self._data["projects"].values() for row in entry.get("archive", [])]
        return copy.deepcopy(rows)

    def add_to_archive(self, tasks: Iterable[Any], cap: int = ARCHIVE_CAP) -> None:
        """Add tasks (records or mappings) to the archives of their projects, redacted.

        A task that is there already moves to the end; each project keeps its newest `cap`.
        """
        rows = [redact_secrets(task if isinstance(task, dict) else task.to_dict()) for task in tasks]

        def add(data: JsonObject) -> None:
            state_file.archive(data, copy.deepcopy(rows), cap)

        self._apply(add)

    def splits_for(self, project: str | Path) -> dict[str, str]:
        """The split that each known task of a project was given, by task id."""
        return dict(self._project(project).get("splits", {}))

    def set_splits(self, project: str | Path, splits: Mapping[str, str]) -> None:
        """Add assignments; those that are there already stay as they are (see `record_holdout`)."""
        new = dict(splits)

        def assign(data: JsonObject) -> None:
            entry = project_of(data, project)
            entry["splits"] = {**new, **entry.get("splits", {})}

        self._apply(assign)

    def holdout(self, project: str | Path) -> JsonObject:
        """Who decided: `decided`, nights by task id; `moved`, the night of a task's last change of sides, by id;
        `written`, ids of tasks whose split a person wrote.
        """
        entry = self._project(project)
        return copy.deepcopy({name: entry.get(name, empty) for name, empty in state_file.HOLDOUT.items()})

    def record_holdout(
        self,
        project: str | Path,
        night: int,
        *,
        decided: Iterable[str],
        moved: Mapping[str, str],
        written: Iterable[str],
    ) -> None:
        """Note which tasks decided in a night, the new splits of those that changed sides, and whose split is written.

        Archived tasks that changed sides change there too. Noting the same night again changes nothing.
        """
        ids, splits, fixed = list(decided), dict(moved), list(written)
        self._apply(lambda data: state_file.note_holdout(project_of(data, project), night, ids, splits, fixed))

    def rejected_edits(self, project: str | Path) -> list[JsonObject]:
        """Edits that the gate or the person refused, oldest first, so that they do not come back as new."""
        return copy.deepcopy(list(self._project(project).get("rejected", [])))

    def add_rejected_edits(self, project: str | Path, rows: Iterable[Mapping[str, Any]]) -> None:
        """Remember refused edits; one with the same target, op, content and anchor moves to the end."""
        new = [redact_secrets(dict(row)) for row in rows]

        def add(data: JsonObject) -> None:
            entry = project_of(data, project)
            found = {state_file.edit_identity(row): row for row in entry.get("rejected", [])}
            for row in copy.deepcopy(new):
                found.pop(state_file.edit_identity(row), None)
                found[state_file.edit_identity(row)] = row
            entry["rejected"] = list(found.values())[-REJECTED_CAP:]

        self._apply(add)

    @property
    def slow_memory(self) -> str:
        """Lasting guidance that belongs to no project."""
        return str(self._data["slow_memory"])

    def set_slow_memory(self, text: str, project: str | Path | None = None) -> None:
        """Set the lasting guidance, of a project when one is given."""
        value = redact_secrets(text)
        if project is not None:
            self._set(project, "slow_memory", value)
        else:
            self._apply(lambda data: data.update(slow_memory=value))

    def slow_memory_for(self, project: str | Path) -> str:
        """Lasting guidance of a project."""
        return str(self._project(project).get("slow_memory", ""))

    def note(self, project: str | Path, name: str) -> Any:
        """A further value that is kept for a project under `name`; None when there is none."""
        return copy.deepcopy(self._project(project).get("notes", {}).get(name))

    def set_note(self, project: str | Path, name: str, value: Any) -> None:
        """Keep a further JSON value for a project."""
        kept = copy.deepcopy(redact_secrets(value))
        self._apply(lambda data: project_of(data, project).setdefault("notes", {}).update({name: kept}))

    @property
    def last_model_key(self) -> str:
        """The models of the last night."""
        return str(self._data["last_model_key"])

    @property
    def last_model_key_format(self) -> int:
        """1: raw configuration text, 2: resolved names."""
        return int(self._data["last_model_key_format"])

    def set_last_model_key(self, key: str, key_format: int = 2) -> None:
        """Remember the models of this night."""
        self._apply(lambda data: data.update(last_model_key=key, last_model_key_format=key_format))

    def to_dict(self) -> JsonObject:
        """A copy of everything, as the file holds it."""
        return copy.deepcopy(self._data)

    def _project(self, project: str | Path) -> JsonObject:
        found: JsonObject = self._data["projects"].get(str(paths.expand(project)), {})
        return found

    def _set(self, project: str | Path, name: str, value: Any) -> None:
        self._apply(lambda data: project_of(data, project).update({name: value}))

    def _apply(self, operation: _Operation) -> None:
        operation(self._data)
        self._operations.append(operation)

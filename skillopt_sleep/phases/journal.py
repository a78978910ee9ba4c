"""The journal of a project's night in progress: what a killed night needs to go on as the same night.

    night.json     number, beginning, settings, and once the night is decided everything that is left to carry out
    calls.jsonl    every answer that was paid for
    digests.json   the sessions of this night   (a handoff keeps these two in its own folder)
    tasks.json     the tasks of this night
    evidence.jsonl until the night is staged

A night is open while night.json is there. Up to the decision it can be done again: sessions and tasks are pinned and
answers are kept, so it comes to the same. From then on only what `closing` says is carried out, each step of which may
be done twice.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skillopt_sleep import paths
from skillopt_sleep.backends.wire import estimate
from skillopt_sleep.config import USER_KEYS, SleepConfig
from skillopt_sleep.types import TaskRecord

FORMAT = "skillopt_sleep.night.v1"
FILE = "night.json"
CALLS = "calls.jsonl"
EVIDENCE = "evidence.jsonl"
KEPT_CALLS_SECONDS = 7 * 86_400.0
_NO_MATTER = frozenset(
    """
    progress workers evidence_log evidence_max_chars redact_secrets retention_nights replay_minutes state_dir auto_adopt
    allow_ungated_auto_adopt max_tokens_per_night max_calls_per_night max_minutes_per_night codex_path pi_path
    cursor_path opencode_path
    """.split()  # noqa: SIM905 - a list of words reads better as one text
)


@dataclass(slots=True)
class Journal:
    """See the module. `marks` stand for the settings that decide what the night does, one hash for each.

    `calls_from`: where this night's answers begin in calls.jsonl. `minutes`: time that earlier runs of it took.
    `staging_dir`: the folder that was reserved for it. `committed`: state and cursor are saved.
    """

    folder: Path
    night: int
    project: str
    began: float
    marks: dict[str, str] = field(default_factory=dict)
    calls_from: int = 0
    minutes: float = 0.0
    staging_dir: str = ""
    committed: bool = False
    closing: dict[str, Any] | None = None

    @property
    def calls(self) -> Path:
        """The answers that were paid for."""
        return self.folder / CALLS

    @property
    def evidence(self) -> Path:
        """The evidence while the night is not staged."""
        return self.folder / EVIDENCE

    def write(self) -> None:
        """Put it on disk, all or nothing."""
        names = ("night", "project", "began", "marks", "calls_from", "minutes", "staging_dir", "committed", "closing")
        paths.write_private_json(
            self.folder / FILE, {"format": FORMAT, **{name: getattr(self, name) for name in names}}
        )

    def remove(self) -> None:
        """The night is over; its evidence is elsewhere by now, and what killed writers left behind goes too."""
        for left in [*self.folder.glob(".tmp-*"), self.evidence, self.folder / FILE]:
            left.unlink(missing_ok=True)

    def spent(self) -> dict[str, Any]:
        """What earlier runs of this night have paid, in the form that `Meter.restore` takes."""
        kinds: dict[str, dict[str, int]] = {}
        for row in self._rows():
            entry = kinds.setdefault(str(row.get("kind") or "call"), {"calls": 0, "tokens": 0})
            entry["calls"] += 1
            entry["tokens"] += _tokens(row)
        return {"kinds": kinds, "minutes": self.minutes}

    def _rows(self) -> Iterator[dict[str, Any]]:
        try:
            with self.calls.open("rb") as stream:
                stream.seek(self.calls_from)
                lines = stream.read().decode("utf-8", "replace").splitlines()
        except OSError:
            return
        for line in lines:
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if isinstance(row, dict):
                yield row


def read_journal(folder: Path) -> Journal | None:
    """The journal in a project's night folder; None when no night is open or the file cannot be read."""
    try:
        data = json.loads((folder / FILE).read_bytes())
        if data["format"] != FORMAT:
            return None
        return Journal(
            folder,
            int(data["night"]),
            str(data["project"]),
            float(data["began"]),
            {str(key): str(value) for key, value in data["marks"].items()},
            int(data["calls_from"]),
            float(data["minutes"]),
            str(data["staging_dir"]),
            data["committed"] is True,
            dict(data["closing"]) if data["closing"] is not None else None,
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def begin_journal(config: SleepConfig, number: int, began: float, marks: dict[str, str]) -> Journal:
    """Open a night. Nothing of an earlier one stays but its answers, and those that are a week old go too."""
    folder = config.night_folder
    drop_old_calls(folder)
    for name in (FILE, "digests.json", "tasks.json", EVIDENCE):
        (folder / name).unlink(missing_ok=True)
    calls = folder / CALLS
    size = calls.stat().st_size if calls.exists() else 0
    journal = Journal(folder, number, str(config.project), began, marks, calls_from=size)
    journal.write()
    return journal


def next_number(state_dir: Path, last: int) -> int:
    """The number of a new night: above the last one that is recorded and above every night that is still open."""
    folders = (state_dir / "nights").glob(f"*/{FILE}")
    taken = [journal.night for journal in map(read_journal, (file.parent for file in folders)) if journal is not None]
    return max([last, *taken]) + 1


def drop_old_calls(folder: Path, now: float | None = None) -> None:
    """Remove answers that were kept for a next night which never came."""
    calls = folder / CALLS
    at = time.time() if now is None else now
    if calls.exists() and at - calls.stat().st_mtime > KEPT_CALLS_SECONDS:
        calls.unlink(missing_ok=True)


def marks_of(config: SleepConfig, model_key: str, seed: list[TaskRecord] | None) -> dict[str, str]:
    """A hash for each setting that decides what a night does, for the models, and for given tasks."""
    settings = {key: value for key, value in config.to_dict().items() if key not in _NO_MATTER and key != USER_KEYS}
    marks = {key: _mark(value) for key, value in settings.items()}
    marks["models"] = _mark(model_key)
    marks["tasks"] = _mark(None if seed is None else [task.to_dict() for task in seed])
    return marks


def differing(old: dict[str, str], new: dict[str, str]) -> list[str]:
    """The names whose marks are not the same."""
    return sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))


def _mark(value: object) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]


def _tokens(row: dict[str, Any]) -> int:
    counts = (row.get("prompt_tokens"), row.get("completion_tokens"))
    known = [count for count in counts if isinstance(count, int) and not isinstance(count, bool)]
    return sum(known) if len(known) == len(counts) else estimate(str(row.get("text") or ""))

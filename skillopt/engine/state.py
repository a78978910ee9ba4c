"""What a resume needs, and how it is read back from a folder that a kill may have left in any condition.

`runtime_state.json` is written last in a step, in one rename: it is what commits the step. Whatever else lies in the
folder is either older (and right) or belongs to a step that is done again, with finished work served by the store.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from skillopt.engine.run_dir import RunDir
from skillopt.errors import ResumeMismatchError
from skillopt.evaluation.evaluate import Evaluation
from skillopt.tracking.events import Emit
from skillopt.types import JsonObject
from skillopt.utils.files import atomic_write_json

STATE_VERSION = 1


@dataclass(frozen=True, slots=True)
class TrainState:
    """Where training stands after `last_completed_step`. Skill paths are relative to the run folder."""

    last_completed_step: int
    current_skill_path: str
    current_score: float
    current_origin: str
    best_skill_path: str
    best_score: float
    best_step: int
    best_origin: str
    baseline_hard: float = 0.0
    baseline_soft: float = 0.0
    wall_time_s: float = 0.0
    finished: bool = False
    version: int = STATE_VERSION

    def to_dict(self) -> JsonObject:
        """The state as JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TrainState:
        """Read a state; raises KeyError, TypeError or ValueError when it is not one of this version."""
        if data["version"] != STATE_VERSION:
            raise ValueError(f"format {data['version']}")
        known = {f.name: data[f.name] for f in fields(cls)}
        state = cls(**known)
        if not isinstance(state.last_completed_step, int) or not isinstance(state.current_score, (int, float)):
            raise TypeError("a number is missing")
        return state


@dataclass(frozen=True, slots=True)
class Progress:
    """A state, the scores of its current skill by item, and the records of the steps so far, oldest first."""

    state: TrainState
    scores: Evaluation
    history: tuple[JsonObject, ...] = ()


def save_progress(folder: RunDir, progress: Progress, fingerprint: Mapping[str, Any]) -> None:
    """Commit `progress`: the history first, then the state in one rename."""
    atomic_write_json(folder.history, list(progress.history))
    atomic_write_json(folder.state, {**progress.state.to_dict(), "fingerprint": dict(fingerprint)})


Saved = tuple[TrainState, tuple[JsonObject, ...]]


def load_progress(folder: RunDir, fingerprint: Mapping[str, Any], emit: Emit) -> Saved | None:
    """State and step records that the folder holds of an earlier run, or None when there is nothing to go on from.

    A file that cannot be read is put aside with a notice: the steps are then done again, with every finished call
    and rollout served by the store. Raises ResumeMismatchError when the folder holds a run with other settings.
    """
    raw = _read(folder.state, emit)
    if not isinstance(raw, dict):
        return None
    check_fingerprint(folder, raw.get("fingerprint") or {}, fingerprint)
    try:
        state = TrainState.from_dict(raw)
    except (KeyError, TypeError, ValueError) as error:
        _put_aside(folder.state, f"not a state of this version ({error})", emit)
        return None
    if not (folder.root / state.current_skill_path).exists() or not (folder.root / state.best_skill_path).exists():
        emit("notice", text=f"{folder.root}: a skill file of the state is missing; the steps are done again.")
        return None
    history = _read_history(folder, state.last_completed_step, emit)
    if history is None:
        return None
    return state, tuple(history)


def check_fingerprint(folder: RunDir, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Raise ResumeMismatchError, naming every difference, unless both say the same."""
    different = sorted(key for key in {*old, *new} if old.get(key) != new.get(key))
    if not different:
        return
    lines = [f"  {key}: was {_short(old.get(key))}, now {_short(new.get(key))}" for key in different]
    raise ResumeMismatchError(
        f"{folder.root} holds a run with other settings, so its scores cannot be compared with new ones:\n"
        + "\n".join(lines)
        + "\nUse a new --out_root, or give the old settings to go on."
    )


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 100 else text[:97] + "..."


def _read_history(folder: RunDir, last_step: int, emit: Emit) -> Sequence[JsonObject] | None:
    records = _read(folder.history, emit)
    if not _is_history(records, last_step):
        records = [_read(folder.step(step) / "step_record.json", emit) for step in range(1, last_step + 1)]
        if not _is_history(records, last_step):
            return None
        atomic_write_json(folder.history, records)
        emit("notice", text=f"{folder.history.name} was rebuilt from the step records.")
    return [record for record in records if record["step"] <= last_step]


def _is_history(records: object, last_step: int) -> bool:
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        return False
    return [record.get("step") for record in records][:last_step] == list(range(1, last_step + 1))


def _read(path: Path, emit: Emit) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        _put_aside(path, str(error), emit)
        return None


def _put_aside(path: Path, reason: str, emit: Emit) -> None:
    kept = path.with_name(path.name + ".broken")
    path.replace(kept)
    emit("notice", text=f"{path.name} could not be read ({reason}); it is kept as {kept.name}.")

"""What a resume needs, and how it is read back from a folder that a kill may have left in any condition.

`runtime_state.json` is written last, in one rename: it is what commits a step or the end of an epoch. Whatever else
lies in the folder is either older (and right) or belongs to work that is done again, with finished calls and rollouts
served by the store.
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
from skillopt.skill.document import Skill
from skillopt.tracking.events import Emit
from skillopt.types import JsonObject
from skillopt.utils.files import atomic_write_json, atomic_write_text, read_text

STATE_VERSION = 1


@dataclass(frozen=True, slots=True)
class Standing:
    """A skill that holds a place (current or best) with the score that won it.

    `path` is its file, relative to the run folder. `scores` are its results by item on the selection split; they are
    kept for the current skill, with which candidates are compared.
    """

    skill: Skill
    score: float
    origin: str
    path: str
    scores: Evaluation | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """Where training stands. `step` is the last completed one; `history` holds the records of all, oldest first.

    `epochs_closed` counts the epochs whose work at their end (slow update, meta skill) is done. `baseline` is the mean
    (hard, soft) of the initial skill on the selection split. `looks` counts candidates that were judged on the
    selection split, `alpha_spent` is what they took of the paired gate's error budget.
    """

    step: int
    current: Standing
    best: Standing
    best_step: int
    baseline: tuple[float, float]
    history: tuple[JsonObject, ...] = ()
    epochs_closed: int = 0
    looks: int = 0
    alpha_spent: float = 0.0
    wall_time_s: float = 0.0
    finished: bool = False

    def state(self) -> TrainState:
        """What is written of it."""
        return TrainState(
            last_completed_step=self.step,
            current_skill_path=self.current.path,
            current_score=self.current.score,
            current_origin=self.current.origin,
            best_skill_path=self.best.path,
            best_score=self.best.score,
            best_step=self.best_step,
            best_origin=self.best.origin,
            baseline_hard=self.baseline[0],
            baseline_soft=self.baseline[1],
            epochs_closed=self.epochs_closed,
            looks=self.looks,
            alpha_spent=self.alpha_spent,
            wall_time_s=round(self.wall_time_s, 3),
            finished=self.finished,
        )


@dataclass(frozen=True, slots=True)
class TrainState:
    """`runtime_state.json`. Skill paths are relative to the run folder."""

    last_completed_step: int
    current_skill_path: str
    current_score: float
    current_origin: str
    best_skill_path: str
    best_score: float
    best_step: int
    best_origin: str
    baseline_hard: float
    baseline_soft: float
    epochs_closed: int = 0
    looks: int = 0
    alpha_spent: float = 0.0
    wall_time_s: float = 0.0
    finished: bool = False
    version: int = STATE_VERSION

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TrainState:
        """Read a state; raises KeyError, TypeError or ValueError when it is not one of this version."""
        if data["version"] != STATE_VERSION:
            raise ValueError(f"format {data['version']}")
        state = cls(**{f.name: data[f.name] for f in fields(cls)})
        numbers = (state.last_completed_step, state.current_score, state.best_score, state.best_step)
        if not all(isinstance(number, (int, float)) for number in numbers):
            raise TypeError("a number is missing")
        return state


@dataclass(frozen=True, slots=True)
class Saved:
    """What a folder holds of an earlier run."""

    state: TrainState
    history: tuple[JsonObject, ...]
    current: Skill
    best: Skill

    def progress(self, scores: Evaluation) -> Progress:
        """The progress to go on from, given the results by item of the current skill."""
        state = self.state
        return Progress(
            step=state.last_completed_step,
            current=Standing(self.current, state.current_score, state.current_origin, state.current_skill_path, scores),
            best=Standing(self.best, state.best_score, state.best_origin, state.best_skill_path),
            best_step=state.best_step,
            baseline=(state.baseline_hard, state.baseline_soft),
            history=self.history,
            epochs_closed=state.epochs_closed,
            looks=state.looks,
            alpha_spent=state.alpha_spent,
            wall_time_s=state.wall_time_s,
        )


def save_progress(folder: RunDir, progress: Progress, fingerprint: Mapping[str, Any]) -> None:
    """Commit `progress`: best skill and history first, then the state in one rename."""
    atomic_write_text(folder.best_skill, progress.best.skill.text)
    atomic_write_json(folder.history, list(progress.history))
    atomic_write_json(folder.state, {**asdict(progress.state()), "fingerprint": dict(fingerprint)})


def load_progress(
    folder: RunDir, fingerprint: Mapping[str, Any], emit: Emit, *, files: Mapping[str, str] | None = None
) -> Saved | None:
    """What the folder holds of an earlier run, or None when there is nothing to go on from.

    `files`: the companion files of the skill, which training leaves alone.
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
    paths = [folder.root / path for path in (state.current_skill_path, state.best_skill_path)]
    if not all(path.exists() for path in paths):
        emit("notice", text=f"{folder.root}: a skill file of the state is missing; the steps are done again.")
        return None
    history = _read_history(folder, state.last_completed_step, emit)
    if history is None:
        return None
    current, best = (Skill.parse(read_text(path), files) for path in paths)
    return Saved(state, tuple(history), current, best)


def check_fingerprint(folder: RunDir, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Raise ResumeMismatchError, naming every difference, unless both say the same."""
    lines = _differences(old, new)
    if not lines:
        return
    raise ResumeMismatchError(
        f"{folder.root} holds a run with other settings, so its scores cannot be compared with new ones:\n"
        + "\n".join(lines)
        + "\nUse a new --out_root, or give the old settings to go on."
    )


def _differences(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> list[str]:
    """A line for each value that differs, down to the setting; hashes say nothing to a person and are left out."""
    lines = []
    for key in sorted(key for key in {*old, *new} if old.get(key) != new.get(key)):
        was, now = old.get(key), new.get(key)
        if isinstance(was, Mapping) and isinstance(now, Mapping):
            lines += _differences(was, now, f"{prefix}{key}.")
        elif not prefix and key in _HASHED:
            lines.append(f"  {key}: {_HASHED[key]}")
        else:
            lines.append(f"  {prefix}{key}: was {_short(was)}, now {_short(now)}")
    return lines


_HASHED = {
    "data": "the items of the splits are others",
    "environment": "prompts, extraction, scoring or the environment's own settings are others",
    "initial_skill": "the skill to start from is another",
}


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 100 else text[:97] + "..."


def _read_history(folder: RunDir, last_step: int, emit: Emit) -> Sequence[JsonObject] | None:
    records = _read(folder.history, emit)
    if not _is_history(records, last_step):
        records = [_read(folder.step_record(step), emit) for step in range(1, last_step + 1)]
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

"""Reads a benchmark of deficient skills in the `skillopt-v1` format of gbrain-evals.

A folder for each seed holds `SKILL.md` (the skill with its fault), `benchmark.jsonl` (what nights learn from and decide
by) and `held-out.jsonl` (what is only scored). A line is `{"task_id", "task", "judge": {"kind": "rule", "checks"}}`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from skillopt_sleep import paths
from skillopt_sleep.errors import UsageProblem
from skillopt_sleep.judges.validate import errors_of
from skillopt_sleep.mining import assign_splits
from skillopt_sleep.types import TaskRecord

BENCHMARK = "skillopt-v1"
SEEDS: Mapping[str, str] = MappingProxyType(
    {
        "brief-writer": "seed-missing-structure",
        "thorough-analyst": "seed-verbose",
        "advisor": "seed-no-verdict",
        "quick-answerer": "seed-no-brain-first",
    }
)
"""The folder of each seed."""

CLONES = ("~/gbrain-evals", "~/git/gbrain-evals", "~/src/gbrain-evals")
_WITHIN = ("", f"data/{BENCHMARK}", f"eval/data/{BENCHMARK}", BENCHMARK)


@dataclass(frozen=True, slots=True)
class Seed:
    """One deficient skill with its tasks; their splits are train, val and test."""

    name: str
    skill: str
    tasks: tuple[TaskRecord, ...]

    def split(self, name: str, limit: int = 0) -> list[TaskRecord]:
        """The tasks of a split, at most `limit` of them when that is not 0."""
        found = [task for task in self.tasks if task.split == name]
        return found[: limit or None]


def find_data(root: str = "") -> Path:
    """The folder that holds the seeds: below `root`, or in one of the usual places of a clone. Raises UsageProblem."""
    roots = [root] if root.strip() else list(CLONES)
    for place in (paths.expand(one) / within for one in roots for within in _WITHIN):
        if any((place / folder / "SKILL.md").is_file() for folder in SEEDS.values()):
            return place
    raise UsageProblem(
        f"There are no seeds of {BENCHMARK} in {', '.join(roots)}; clone gbrain-evals and pass its path as --data-root."
    )


def load_seed(root: Path, name: str, *, limit_replay: int = 0, limit_holdout: int = 0) -> Seed:
    """A seed with its splits assigned. A limit of 0 reads all tasks. Raises UsageProblem naming file and line."""
    folder = root / _folder(name)
    learn = list(_tasks(folder / "benchmark.jsonl", name))[: limit_replay or None]
    held = list(_tasks(folder / "held-out.jsonl", name))[: limit_holdout or None]
    if not learn or not held:
        raise UsageProblem(f"{folder}: both benchmark.jsonl and held-out.jsonl need at least one task.")
    shared = {task.id for task in learn} & {task.id for task in held}
    if shared:
        raise UsageProblem(
            f"{folder}: {', '.join(sorted(shared))} stand in both files, so held-out scores mean nothing."
        )
    assign_splits(learn, val_fraction=0.34, seed=42)
    for task in held:
        task.split = "test"
    try:
        skill = (folder / "SKILL.md").read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageProblem(f"{folder / 'SKILL.md'}: the skill cannot be read ({error}).") from None
    return Seed(name, skill, (*learn, *held))


def _folder(name: str) -> str:
    if name not in SEEDS:
        raise UsageProblem(f"There is no seed {name!r}; choose from {', '.join(SEEDS)}.")
    return SEEDS[name]


def _tasks(file: Path, seed: str) -> Iterator[TaskRecord]:
    try:
        lines = file.read_bytes().decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageProblem(f"{file}: the tasks cannot be read ({error}).") from None
    seen: set[str] = set()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        task = _task(line, seed, f"{file}:{number}")
        if task.id in seen:
            raise UsageProblem(f"{file}:{number}: the task {task.id} stands twice.")
        seen.add(task.id)
        yield task


def _task(line: str, seed: str, where: str) -> TaskRecord:
    try:
        row: Any = json.loads(line)
        name, intent, judge = row["task_id"], row["task"], row["judge"]
    except (ValueError, KeyError, TypeError) as error:
        raise UsageProblem(f"{where}: expected an object with task_id, task and judge ({error!r}).") from None
    if not isinstance(judge, dict) or judge.get("kind") != "rule" or not str(intent).strip():
        raise UsageProblem(f"{where}: expected a task with a judge of the kind `rule`.")
    task_id = f"{seed}:{name}"
    wrong, _ = errors_of([(task_id, judge)])
    if wrong:
        raise UsageProblem(f"{where}: {'; '.join(wrong)}.")
    return TaskRecord(task_id, f"/gbrain/{seed}", str(intent), reference_kind="rule", judge=judge, tags=[seed])

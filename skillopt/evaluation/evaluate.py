"""The only way a skill gets a score: run it on a split, once, and keep the result by item.

Baseline, gate, final checks and test runs all ask here. What the store holds is not run again, so the same skill on
the same items is never paid twice, whoever asks. An item that failed has no score: it is left out of the mean and
counted, and two skills are compared on the items that both were graded on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from skillopt.datasets.base import BatchSpec
from skillopt.envs.base import EnvAdapter
from skillopt.envs.runner import RunContext, check_error_rate, run_batch
from skillopt.errors import RunError
from skillopt.scoring import compute_score
from skillopt.skill.document import Skill
from skillopt.types import JsonObject, RolloutResult, Usage
from skillopt.utils.files import atomic_write_json, atomic_write_text

_RESULT_FIELDS = ("id", "status", "hard", "soft", "task_type", "predicted_answer", "fail_reason", "error", "n_turns")


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Scores of one skill on one split. `hard` and `soft` are means in 0..1 over the graded items only."""

    skill_hash: str
    split: str
    results: tuple[RolloutResult, ...]
    hard: float
    soft: float

    @property
    def graded(self) -> Mapping[str, RolloutResult]:
        """The results that have a score, by item id, in item order."""
        return {result.id: result for result in self.results if result.ok}

    @property
    def hard_by_item(self) -> Mapping[str, float]:
        """Hard score of each graded item."""
        return {item: result.hard for item, result in self.graded.items()}

    @property
    def n_errors(self) -> int:
        """Number of items without a score."""
        return sum(not result.ok for result in self.results)

    @property
    def usage(self) -> Usage:
        """What the rollouts cost, whenever they were paid."""
        return sum((result.usage for result in self.results), Usage())

    def on(self, ids: Sequence[str]) -> tuple[float, float]:
        """Mean (hard, soft) over the given graded items."""
        graded = self.graded
        return compute_score([graded[item] for item in ids])


def common_items(one: Evaluation, other: Evaluation) -> list[str]:
    """Ids graded in both evaluations, in item order."""
    graded = other.graded
    return [item for item in one.graded if item in graded]


@dataclass(frozen=True, slots=True)
class Evaluator:
    """Scores skills in one environment.

    `context` is the template of every rollout (session, store, workers, limits); `limits` maps a split to the number
    of items to use from its start (0 = all); `seed` is handed to environments that draw their own items.
    """

    adapter: EnvAdapter
    context: RunContext
    max_error_rate: float
    limits: Mapping[str, int]
    seed: int

    def evaluate(self, skill: Skill, split: str, *, purpose: str, out_dir: Path) -> Evaluation:
        """Score `skill` on `split` and write `results.jsonl` into `out_dir`.

        Raises TooManyErrorsError when more items fail than allowed, and RunError when no item can be graded.
        """
        batch = self._batch(split, out_dir)
        context = replace(self.context, split=split, purpose=purpose, skill_hash=skill.hash)
        results = tuple(run_batch(self.adapter, batch, skill.text, context, out_dir))
        check_error_rate(results, self.max_error_rate)
        graded = [result for result in results if result.ok]
        if not graded:
            raise RunError(f"{purpose}: not one item of split {split} could be graded; see `skillopt show`.")
        hard, soft = compute_score(graded)
        write_results(out_dir, results)
        return Evaluation(skill.hash, split, results, hard, soft)

    def _batch(self, split: str, out_dir: Path) -> BatchSpec:
        number = self.limits.get(split, 0)
        loader = self.adapter.get_dataloader()
        if loader is None:
            metadata: dict[str, Any] = {"out_root": str(out_dir)}
            return BatchSpec(phase="eval", split=split, seed=self.seed, batch_size=number, metadata=metadata)
        batch: BatchSpec = loader.build_eval_batch(env_num=number, split=split, seed=self.seed)
        return batch


def write_results(out_dir: Path, results: Sequence[RolloutResult]) -> None:
    """Write `results.jsonl`: one line an item, in item order; trajectories stay in the store."""
    import json

    rows = ({name: getattr(result, name) for name in _RESULT_FIELDS} for result in results)
    text = "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
    atomic_write_text(out_dir / "results.jsonl", text.encode("utf-8", "replace").decode("utf-8"))


def write_buckets(out_dir: Path, evaluation: Evaluation, task_types: Sequence[str]) -> None:
    """Write `summary.json` of a test evaluation: `bucket -> {total, hard_acc}` for each task type and `overall`."""
    atomic_write_json(out_dir / "summary.json", buckets(evaluation, task_types))


def buckets(evaluation: Evaluation, task_types: Sequence[str]) -> JsonObject:
    """Number of graded items and mean hard score for each task type, unknown types, and all."""
    groups: dict[str, list[RolloutResult]] = {name: [] for name in task_types}
    for result in evaluation.graded.values():
        groups.setdefault(result.task_type or "other", []).append(result)
    groups["overall"] = list(evaluation.graded.values())
    return {name: {"total": len(rows), "hard_acc": round(compute_score(rows)[0], 6)} for name, rows in groups.items()}

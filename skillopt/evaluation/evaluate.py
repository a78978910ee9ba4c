"""The only way a skill gets a score: run it on a split, once, and keep the result by item.

Baseline, gate, final checks and test runs all ask here. What the store holds is not run again, so the same skill on
the same items is never paid twice, whoever asks. An item that failed has no score: it is left out of the mean and
counted, and two skills are compared on the items that both were graded on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from skillopt.datasets.base import BatchSpec
from skillopt.envs.base import EnvAdapter, TaskEnv
from skillopt.envs.runner import RunContext, check_error_rate
from skillopt.errors import RunError
from skillopt.evaluation.early_stop import Bar, Means, Race, Verdict
from skillopt.evaluation.gate import flips
from skillopt.evaluation.samples import run_samples
from skillopt.evaluation.stats import Comparison, paired
from skillopt.scoring import compute_score
from skillopt.skill.document import Skill
from skillopt.types import Item, JsonObject, RolloutResult, Usage
from skillopt.utils.files import atomic_write_json, atomic_write_text

_RESULT_FIELDS = ("id", "status", "hard", "soft", "task_type", "predicted_answer", "fail_reason", "error", "n_turns")


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Scores of one skill on one split. `hard` and `soft` are means in 0..1 over the graded items only.

    An evaluation that stopped early, because its outcome against a bar was certain, has `skipped` items without a
    result. The others are no fair sample, so `hard` and `soft` are NaN; `bound` is the highest score that the skill
    could still have reached, in the measure of the gate. `decided` says what became of it against the bar.
    """

    skill_hash: str
    split: str
    results: tuple[RolloutResult, ...]
    hard: float
    soft: float
    skipped: int = 0
    bound: float | None = None
    decided: Verdict = ""

    @classmethod
    def of(cls, skill_hash: str, split: str, results: Sequence[RolloutResult]) -> Evaluation:
        """The evaluation that finished results give. Raises DataError when every one of them is an error."""
        hard, soft = compute_score(results)
        return cls(skill_hash, split, tuple(results), hard, soft)

    @property
    def complete(self) -> bool:
        """Whether every item was run."""
        return not self.skipped

    @property
    def total(self) -> int:
        """Number of items, those that were not run included."""
        return len(self.results) + self.skipped

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


def compare(
    before: Evaluation, after: Evaluation, *, measure: Callable[[Means], float] = lambda means: means[0]
) -> Comparison:
    """What the items graded in both say about `after` in place of `before`.

    `measure` makes one number of an item's (hard, soft); the hard score by default. Items gained and lost are those
    whose hard score reached or left 1. Raises ValueError for an evaluation that stopped early: its items are no fair
    sample.
    """
    if not (before.complete and after.complete):
        raise ValueError("an evaluation that stopped early cannot be compared item by item")
    was, now = before.graded, after.graded
    shared = common_items(before, after)
    gained, lost = flips(before.hard_by_item, after.hard_by_item)
    values = [measure((now[i].hard, now[i].soft)) - measure((was[i].hard, was[i].soft)) for i in shared]
    return paired(values, gained=len(gained), lost=len(lost))


@dataclass(frozen=True, slots=True)
class Evaluator:
    """Scores skills in one environment.

    `context` is the template of every rollout (session, store, workers, limits); `limits` maps a split to the number
    of items to use from its start (0 = all); `seed` is handed to environments that draw their own items. Every item
    is drawn `samples` times, and its score is the mean of its draws; `first_sample` numbers the first of them.
    """

    adapter: EnvAdapter
    context: RunContext
    max_error_rate: float
    limits: Mapping[str, int]
    seed: int
    samples: int = 1
    first_sample: int = 0

    def evaluate(
        self, skill: Skill, split: str, *, purpose: str, out_dir: Path, against: Bar | None = None
    ) -> Evaluation:
        """Score `skill` on `split` and write `results.jsonl` into `out_dir`.

        With `against`, items are left out once the outcome against that bar is certain. Raises TooManyErrorsError
        when more items fail than allowed, and RunError when no item can be graded.
        """
        evaluator = replace(self, context=replace(self.context, split=split))
        batch = self._batch(split, out_dir)
        return evaluator.evaluate_batch(skill, batch, purpose=purpose, out_dir=out_dir, against=against)

    def evaluate_batch(
        self, skill: Skill, batch: BatchSpec, *, purpose: str, out_dir: Path, against: Bar | None = None
    ) -> Evaluation:
        """Score `skill` on the items of a batch, as `evaluate` does on a split. The context names the split."""
        context = replace(self.context, purpose=purpose, skill_hash=skill.hash)
        work = _Work(self, batch, skill, context, out_dir)
        race = None if against is None or not against.stop else self._race(batch, against)
        done = work.run(batch, 0) if race is None else work.run_race(race)
        skipped = 0 if race is None else len(race.ids) - len(done)
        results = tuple(done)
        check_error_rate(results, self.max_error_rate)
        write_results(out_dir, results)
        if race is not None and skipped:
            bound, verdict = race.bound(work.scores), race.verdict(work.scores)
            return Evaluation(skill.hash, context.split, results, math.nan, math.nan, skipped, bound, verdict)
        graded = [result for result in results if result.ok]
        if not graded:
            raise RunError(f"{purpose}: not one item of split {context.split} could be graded; see `skillopt show`.")
        whole = Evaluation.of(skill.hash, context.split, graded)
        decided = against.verdict([(r.id, (r.hard, r.soft)) for r in graded]) if against is not None else ""
        return replace(whole, results=results, decided=decided)

    def _race(self, batch: BatchSpec, against: Bar) -> Race | None:
        """The race of a batch that can be run in parts: its items are known, and the bar knows all of them."""
        ids = item_ids(batch)
        if ids is None or len(set(ids)) != len(ids) or set(ids) != set(against.before):
            return None
        if batch.metadata and not isinstance(self.adapter, TaskEnv):
            return None  # it may describe the items by their positions
        return Race(against, ids)

    def _batch(self, split: str, out_dir: Path) -> BatchSpec:
        number = self.limits.get(split, 0)
        loader = self.adapter.get_dataloader()
        if loader is None:
            metadata: dict[str, Any] = {"out_root": str(out_dir)}
            return BatchSpec(phase="eval", split=split, seed=self.seed, batch_size=number, metadata=metadata)
        batch: BatchSpec = loader.build_eval_batch(env_num=number, split=split, seed=self.seed)
        return batch


class _Work:
    """The running of one evaluation, whole or in waves."""

    def __init__(
        self, evaluator: Evaluator, batch: BatchSpec, skill: Skill, context: RunContext, out_dir: Path
    ) -> None:
        self._evaluator = evaluator
        self._batch, self._skill, self._context, self._out_dir = batch, skill, context, out_dir
        self.scores: dict[int, Means] = {}

    def run(self, batch: BatchSpec, wave: int) -> list[RolloutResult]:
        """Results of a batch. Later waves get folders of their own, for environments that find old rows in one."""
        folder = self._out_dir if not wave else self._out_dir / f"wave_{wave + 1}"
        adapter, samples, first = self._evaluator.adapter, self._evaluator.samples, self._evaluator.first_sample
        return run_samples(adapter, batch, self._skill.text, self._context, folder, range(first, first + samples))

    def run_race(self, race: Race) -> list[RolloutResult]:
        """Results in item order of as many items as the race needs; of all, once one of them is an error."""
        results: dict[int, RolloutResult] = {}
        wave, failed = 0, False
        while len(results) < len(race.ids) and (failed or not race.over(self.scores)):
            left = [at for at in range(len(race.ids)) if at not in results]
            chosen = left if failed else sorted(race.wave(self.scores, self._smallest(len(race.ids))))
            rows = [self._batch.payload[at] for at in chosen]
            part = replace(self._batch, payload=rows, batch_size=len(rows))
            results.update(zip(chosen, self.run(part, wave), strict=True))
            failed = not all(result.ok for result in results.values())
            self.scores = {at: (result.hard, result.soft) for at, result in results.items()}
            wave += 1
        return [results[at] for at in sorted(results)]

    def _smallest(self, number: int) -> int:
        """Fewest items of a wave: every worker busy; a custom environment is not asked for many small batches."""
        workers = self._context.workers
        return workers if isinstance(self._evaluator.adapter, TaskEnv) else max(workers, -(-number // 4))


def item_ids(batch: BatchSpec) -> tuple[str, ...] | None:
    """Ids of a batch's items, in order; None for a batch whose items only its environment knows."""
    rows = batch.payload
    if not isinstance(rows, (list, tuple)) or not rows:
        return None
    ids = [row.id if isinstance(row, Item) else row.get("id") if isinstance(row, dict) else None for row in rows]
    return None if any(item in (None, "") for item in ids) else tuple(str(item) for item in ids)


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

"""The same training items under two skills: what the work at the end of an epoch looks at.

Rollouts that a step or an earlier comparison finished are served by the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from skillopt.datasets.base import BatchSpec, SplitDataLoader
from skillopt.engine.kit import Kit
from skillopt.gradient.trajectories import fmt_trajectory
from skillopt.optimizer.comparison import (
    Pair,
    build_comparison_pairs,
    filter_pairs,
    save_comparison_pairs,
    topup_order,
)
from skillopt.scoring import compute_score
from skillopt.skill.document import Skill
from skillopt.types import RolloutResult, Usage

TOPUP_BATCHES = 4
"""Most batches (of `slow_update_samples` items) that are run to find changed pairs."""

_SEED_STRIDE = 2000


@dataclass(frozen=True, slots=True)
class Comparison:
    """Pairs of two skills. `pairs` are those that the policy shows, `seen` all that were made.

    `prev_hard` and `curr_hard` are means over the sampled items that were graded under both skills (None without one);
    items of a top-up are not in them, because they were looked for.
    """

    pairs: tuple[Pair, ...]
    seen: tuple[Pair, ...]
    prev_hard: float | None
    curr_hard: float | None
    usage: Usage


def sample_seed(seed: int, epoch: int) -> int:
    """Seed of the items that the end of an epoch compares."""
    return seed + epoch * _SEED_STRIDE


def compare_skills(kit: Kit, previous: Skill, current: Skill, *, seed: int, out_dir: Path) -> Comparison:
    """Run the training items that `seed` samples under both skills, and pair the results up.

    With the policy `changed`, batches of further items are run until there are as many pairs as asked for, at most
    `TOPUP_BATCHES`. Writes results and pairs into `out_dir`. Raises TooManyErrorsError when too many items of one
    rollout fail.
    """
    optimizer = kit.config.optimizer
    wanted = optimizer.slow_update_samples
    run = _Paired(kit, previous, current, out_dir)
    sampled = run.pairs(_sample(kit, wanted, seed))
    prev_hard, curr_hard = run.means()
    seen = list(sampled)
    if optimizer.longitudinal_pair_policy == "changed":
        for number, batch in enumerate(_topups(kit, run.tried, wanted, seed), 1):
            if len(filter_pairs(seen, "changed")) >= wanted:
                break
            seen += run.pairs(batch, f"topup/batch_{number:02d}")
    pairs = filter_pairs(seen, optimizer.longitudinal_pair_policy)[:wanted]
    save_comparison_pairs(out_dir / "comparison_pairs.json", pairs)
    if optimizer.longitudinal_pair_policy != "mixed":
        save_comparison_pairs(out_dir / "comparison_pairs_all.json", seen)
    return Comparison(tuple(pairs), tuple(seen), prev_hard, curr_hard, run.usage)


class _Paired:
    """Runs batches under both skills; keeps which items were tried, what they scored and what they took."""

    def __init__(self, kit: Kit, previous: Skill, current: Skill, out_dir: Path) -> None:
        self._kit, self._out_dir = kit, out_dir
        self._skills = {"rollout_prev": previous, "rollout_curr": current}
        self.tried: list[str] = []
        self.usage = Usage()
        self._last: tuple[list[RolloutResult], list[RolloutResult]] = ([], [])

    def pairs(self, batch: BatchSpec, place: str = "") -> list[Pair]:
        previous, current = (
            self._kit.rollout(batch, skill, self._out_dir / name / place) for name, skill in self._skills.items()
        )
        self._last = previous, current
        self.tried += [result.id for result in previous]
        self.usage += sum((result.usage for result in (*previous, *current)), Usage())
        return build_comparison_pairs(
            previous,
            current,
            render=lambda result: fmt_trajectory(result.trajectory),
            success_threshold=self._kit.config.gradient.success_threshold,
        )

    def means(self) -> tuple[float | None, float | None]:
        """Mean hard scores of the last batch under both skills, over the items graded under both."""
        graded = [{result.id: result for result in results if result.ok} for results in self._last]
        shared = [item for item in graded[0] if item in graded[1]]
        if not shared:
            return None, None
        before, now = (compute_score([results[item] for item in shared])[0] for results in graded)
        return before, now


def _sample(kit: Kit, size: int, seed: int) -> BatchSpec:
    loader = kit.adapter.get_dataloader()
    if loader is None:
        return BatchSpec("train", "train", seed, size)
    batch: BatchSpec = loader.build_train_batch(size, seed)
    return batch


def _topups(kit: Kit, tried: Sequence[str], size: int, seed: int) -> list[BatchSpec]:
    """Batches of items not tried yet. None where the environment draws its own tasks and has no list of them."""
    loader = kit.adapter.get_dataloader()
    if not isinstance(loader, SplitDataLoader):
        return []
    order = topup_order(loader.items("train"), tried, seed)
    starts = range(0, min(len(order), TOPUP_BATCHES * size), size)
    return [loader.batch_of("train", "train", seed, order[start : start + size]) for start in starts]

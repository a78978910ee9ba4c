"""How often a run calls whom: counted from the settings and the sizes of the splits, before anything is spent.

Every count is a range. Its low end is a run in which nothing is ever proposed: the skill stays as it is, so no item is
run twice. Its high end is a run in which every step proposes and accepts all it may. Retries of failed calls and
requests to repair a reply come on top.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from skillopt.config.run_config import RunConfig
from skillopt.engine.epoch_pairs import TOPUP_BATCHES
from skillopt.optimizer.comparison import COMPARISON_TOKENS

PAIR_TOKENS = 4200
"""What one pair of trajectories takes at most in a comparison of two skills."""


@dataclass(frozen=True, slots=True)
class Range:
    """At least `low`, at most `high`."""

    low: int
    high: int

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.high + other.high)

    def __mul__(self, factor: int) -> Range:
        return Range(self.low * factor, self.high * factor)

    def to_list(self) -> list[int]:
        """`[low, high]`."""
        return [self.low, self.high]


def exactly(number: int) -> Range:
    """A range of one number."""
    return Range(number, number)


@dataclass(frozen=True, slots=True)
class Shape:
    """What decides the counts: items in use by split, steps, and the settings."""

    config: RunConfig
    items: Mapping[str, int]
    steps_per_epoch: int
    fixed_items: bool = True
    """Whether training batches are cut from a list of items, rather than drawn by the environment."""

    @property
    def epochs(self) -> int:
        """Passes over the training items."""
        return int(self.config.train.num_epochs)

    @property
    def steps(self) -> int:
        """Steps of the whole run."""
        return self.epochs * self.steps_per_epoch

    @property
    def samples(self) -> int:
        """How often each item is run wherever it is run."""
        return int(self.config.env.samples_per_item)

    @property
    def look(self) -> int:
        """Rollouts of one full evaluation on the validation items."""
        return self.items["val"] * self.samples

    @property
    def edits(self) -> int:
        """Edits that one step may apply: the learning rate, or all that its analysts may propose."""
        optimizer = self.config.optimizer
        if optimizer.lr_control_mode == "fixed" and optimizer.lr_scheduler != "autonomous":
            return int(optimizer.learning_rate)
        return int(optimizer.learning_rate * self._most_groups(max(self.batch_sizes, default=1)))

    @property
    def batch_sizes(self) -> tuple[int, ...]:
        """Items of each batch of an epoch: full ones, the rest of the items, then refilled ones."""
        size, number = int(self.config.train.batch_size), self.items["train"]
        batches = self.steps_per_epoch * int(self.config.train.accumulation)
        if not self.fixed_items:
            return (size,) * batches
        left = (number - index * size for index in range(batches))
        return tuple(min(size, rest) if rest > 0 else min(size, number) for rest in left)

    @property
    def step_sizes(self) -> tuple[int, ...]:
        """Items that each step of an epoch rolls out."""
        per_step = int(self.config.train.accumulation)
        sizes = self.batch_sizes
        return tuple(sum(sizes[start : start + per_step]) for start in range(0, len(sizes), per_step))

    def target(self) -> dict[str, Range]:
        """Rollouts by purpose, an item counted `env.samples_per_item` times.

        Baseline: one look. Training: at least every item once (equal skills share results), at most every batch, with
        each edit and their union once more under `screen_edits`. Gate: at most the looks of `looks_per_step` each
        step. Slow update and meta skill: both skills of an epoch on the sampled items, from the second epoch on.
        Test: initial, best and last skill.
        """
        evaluation, train = self.config.evaluation, self.items["train"]
        trials = self.edits + 1 if self.config.optimizer.screen_edits else 0
        rolled = self.epochs * sum(self.step_sizes) * self.samples
        tested = self.items["test"] * self.samples if evaluation.eval_test else 0
        once = self.samples * (train if self.fixed_items else int(self.config.train.batch_size))
        return {
            "baseline": exactly(self.look),
            "training": Range(min(rolled, once), rolled * (1 + trials)),
            "gate": Range(0, self.looks * self.look),
            "epoch end": Range(0, self._compared()),
            "test": Range(tested, 3 * tested),
        }

    @property
    def looks_per_step(self) -> int:
        """Full evaluations that one step may ask of the gate: the candidate, each edit alone after a refusal under
        `screen_edits`, and the skill with new notes under skill-aware reflection."""
        optimizer = self.config.optimizer
        one_by_one = self.edits if optimizer.screen_edits else 0
        return 1 + one_by_one + int(optimizer.use_skill_aware_reflection)

    @property
    def looks(self) -> int:
        """Full evaluations after the baseline: those of all steps, and one for each slow update."""
        slow = max(0, self.epochs - 1) if self.config.optimizer.use_slow_update else 0
        return self.steps * self.looks_per_step + slow

    def optimizer(self) -> dict[str, Range]:
        """Calls by stage.

        Analysts: one for each group of at most `minibatch_size` failures or successes of a batch of b; both kinds give
        at most `floor((b - 2) / m) + 2` groups. Merges: the tree over the groups of a step. Ranking, learning rate
        and rewrite: at most one a step. Slow update and meta skill, at the end of each epoch but the first: one, or one
        for each part into which the pairs are divided, and one to join the parts.
        """
        optimizer, later = self.config.optimizer, max(0, self.epochs - 1) * self._epoch_calls()
        analysts = sum((self._groups(size) for size in self.batch_sizes), exactly(0)) * self.epochs
        most = {
            "merge": self.epochs * sum(self._merges(groups) for groups in self._step_groups()),
            "ranking": self.steps if optimizer.learning_rate > 0 and optimizer.lr_control_mode != "none" else 0,
            "lr_autonomous": self.steps if optimizer.lr_control_mode == "autonomous" else 0,
            "rewrite": self.steps if optimizer.skill_update_mode == "rewrite_from_suggestions" else 0,
            "slow_update": later if optimizer.use_slow_update else 0,
            "meta_skill": later if optimizer.use_meta_skill else 0,
            "appendix_consolidate": self.steps
            if optimizer.use_skill_aware_reflection and optimizer.skill_aware_consolidate_threshold
            else 0,
        }
        return {"analyst": analysts, **{stage: Range(0, number) for stage, number in most.items() if number}}

    def cheapest_step(self) -> tuple[int, int]:
        """(rollouts, optimizer calls) of the smallest step that can end with an accepted proposal: one batch, one
        analyst, one full look."""
        return (min(self.step_sizes) * self.samples + self.look, 1) if self.steps else (0, 0)

    def dearest_step(self) -> tuple[int, int]:
        """(rollouts, optimizer calls) of a step at most."""
        if not self.steps:
            return 0, 0
        trials = self.edits + 1 if self.config.optimizer.screen_edits else 0
        calls = sum(stage.high for name, stage in self.optimizer().items() if name not in _EPOCH_STAGES)
        rolled = max(self.step_sizes) * self.samples * (1 + trials)
        return rolled + self.looks_per_step * self.look, math.ceil(calls / self.steps)

    def _epoch_calls(self) -> int:
        """Calls in which all pairs of an epoch fit, when every pair is as long as it may be."""
        pairs = min(int(self.config.optimizer.slow_update_samples), self.items["train"])
        parts = max(1, math.ceil(pairs / (COMPARISON_TOKENS // PAIR_TOKENS)))
        return parts + int(parts > 1)

    def _compared(self) -> int:
        optimizer = self.config.optimizer
        if not (optimizer.use_slow_update or optimizer.use_meta_skill) or self.epochs < 2:
            return 0
        batches = 1 + TOPUP_BATCHES if optimizer.longitudinal_pair_policy == "changed" else 1
        compared = min(batches * int(optimizer.slow_update_samples), self.items["train"])
        return (self.epochs - 1) * 2 * compared * self.samples

    def _groups(self, size: int) -> Range:
        group = int(self.config.gradient.minibatch_size)
        whole = math.ceil(size / group)
        if self.config.gradient.failure_only:
            return Range(0, whole)
        return Range(whole, self._most_groups(size))

    def _most_groups(self, size: int) -> int:
        group = int(self.config.gradient.minibatch_size)
        if self.config.gradient.failure_only or size < 2:
            return math.ceil(size / group)
        return (size - 2) // group + 2

    def _step_groups(self) -> list[int]:
        """Analyst groups of each step of an epoch at most."""
        per_step, sizes = int(self.config.train.accumulation), self.batch_sizes
        steps = (sizes[start : start + per_step] for start in range(0, len(sizes), per_step))
        return [sum(self._most_groups(size) for size in step) for step in steps]

    def _merges(self, patches: int) -> int:
        """Merge calls for `patches` patches at most, however they divide into failures and successes."""
        size = int(self.config.gradient.merge_batch_size)
        if self.config.gradient.failure_only:
            return _tree(patches, size)
        return max(
            _tree(failures, size) + _tree(patches - failures, size) + int(0 < failures < patches)
            for failures in range(patches + 1)
        )


_EPOCH_STAGES = frozenset({"slow_update", "meta_skill"})


def _tree(patches: int, size: int) -> int:
    """Calls that merge `patches` in batches of `size`, level by level; a batch of one needs none."""
    calls = 0
    while patches > 1:
        full, rest = divmod(patches, size)
        calls += full + int(rest > 1)
        patches = full + int(rest > 0)
    return calls


def smallest_gain(items: int, *, policy: str, alpha: float, looks: int) -> tuple[int, float] | None:
    """(items, share of the items) by which a candidate must be better, at least, for the gate to accept it, where an
    item is right or wrong.

    `strict`: one item, 1/n. `paired`: the smallest m with `2 ** -m <= alpha / looks`, the exact sign-flip p value of m
    items gained and none lost, where `alpha` is shared out over all `looks`. None: no gain on so few items is enough.
    """
    if items < 1:
        return None
    if policy != "paired":
        return 1, 1 / items
    needed = max(1, math.ceil(math.log2(max(1, looks) / alpha) - 1e-12))
    return (needed, needed / items) if needed <= items else None


def sizes_of(adapter: Any, config: RunConfig) -> tuple[dict[str, int], bool]:
    """(items in use by split, whether training batches are cut from a list). An unknown size is 0.

    `evaluation.sel_env_num` and `evaluation.test_env_num` count as the limits that they are.
    """
    from skillopt.datasets.base import SplitDataLoader

    loader, evaluation = adapter.get_dataloader(), config.evaluation
    limits = {"val": int(evaluation.sel_env_num), "test": int(evaluation.test_env_num)}
    if not isinstance(loader, SplitDataLoader):
        return {"train": int(config.train.train_size), **limits}, False
    items = {name: len(loader.items(name)) for name in ("train", "val", "test")}
    return {name: min(number, limits.get(name) or number) for name, number in items.items()}, True

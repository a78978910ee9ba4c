"""What one step is (`StepPlan`) and what it has produced so far (`Work`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from skillopt.datasets.base import BatchSpec
from skillopt.engine.kit import Kit
from skillopt.engine.metering import MeteredSession
from skillopt.gradient.reflect import Reflection
from skillopt.prompts.modes import UpdateMode, update_mode
from skillopt.scoring import compute_score
from skillopt.types import JsonObject, PatchItem, RawPatch, RolloutResult, Usage

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StepPlan:
    """Which step this is. `step` counts from 1 over all epochs, `step_in_epoch` from 1 within its epoch."""

    step: int
    total_steps: int
    epoch: int
    step_in_epoch: int
    batches: tuple[BatchSpec, ...]


@dataclass(slots=True)
class Work:
    """What one step has produced so far; becomes its record.

    `memory` and `advice` are what the optimizer is told of earlier steps and of earlier epochs. `rolled` holds the
    batches with their results, `reflections` what the engine's analysts gave for each of them, `fields` what the stages
    add to the record. `rewritten_from`: the items that a rewritten candidate was made of, None while there is no such
    candidate. `rejected`: the items to be remembered as rejected, None for those of a rejected candidate. `refused`:
    why the candidate was not even tried, in words for the optimizer.
    """

    plan: StepPlan
    optimizer: MeteredSession
    mode: UpdateMode
    memory: str = ""
    advice: str = ""
    started: float = field(default_factory=time.monotonic)
    timing: dict[str, float] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    rolled: list[tuple[BatchSpec, Sequence[RolloutResult]]] = field(default_factory=list)
    reflections: list[Reflection] = field(default_factory=list)
    patches: list[RawPatch] = field(default_factory=list)
    batches: list[JsonObject] = field(default_factory=list)
    fields: JsonObject = field(default_factory=dict)
    rewritten_from: tuple[PatchItem, ...] | None = None
    rejected: tuple[PatchItem, ...] | None = None
    refused: tuple[str, ...] = ()

    @classmethod
    def begin(cls, kit: Kit, plan: StepPlan, *, memory: str, advice: str) -> Work:
        """The empty work of a step."""
        mode = update_mode(kit.config.optimizer.skill_update_mode)
        return cls(plan, MeteredSession(kit.session), mode, memory, advice)

    @property
    def results(self) -> list[RolloutResult]:
        """The rollout results of all batches."""
        return [result for _, results in self.rolled for result in results]

    def side(self, source: str) -> list[RawPatch]:
        """The raw patches learned from failures, or from successes, that propose something."""
        return [patch for patch in self.patches if patch.source_type == source and patch.patch.edits]

    def scores(self) -> tuple[float, float]:
        """Mean (hard, soft) of the rollout, errors left out."""
        return compute_score([result for result in self.results if result.ok])

    def timed(self, name: str, action: Callable[[], T]) -> T:
        """The value of `action`; its seconds are added to `timing`."""
        start = time.monotonic()
        try:
            return action()
        finally:
            self.timing[name] = round(self.timing.get(name, 0.0) + time.monotonic() - start, 3)

    def took(self, index: int, batch: BatchSpec, results: Sequence[RolloutResult], patches: Sequence[RawPatch]) -> None:
        """Note a batch that was rolled out and reflected on."""
        self.rolled.append((batch, results))
        self.patches += patches
        self.usage += sum((result.usage for result in results), Usage())
        hard, soft = compute_score([result for result in results if result.ok])
        self.batches.append(
            {
                "batch_idx": index,
                "batch_seed": batch.seed,
                "n_envs": len(results),
                "hard": round(hard, 6),
                "soft": round(soft, 6),
                "n_failure_patches": sum(patch.source_type == "failure" for patch in patches),
                "n_success_patches": sum(patch.source_type == "success" for patch in patches),
            }
        )

    def tokens(self) -> JsonObject:
        """What the step cost, whenever it was paid."""
        usage = self.usage + self.optimizer.usage
        return {
            "calls": usage.calls,
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
        }

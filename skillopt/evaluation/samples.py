"""Several draws of each item, for targets that do not answer the same twice. The score of an item is their mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from skillopt.datasets.base import BatchSpec
from skillopt.envs.base import EnvAdapter
from skillopt.envs.runner import RunContext, run_batch
from skillopt.types import RolloutResult, Usage


def run_samples(
    env: EnvAdapter, batch: BatchSpec, skill_text: str, ctx: RunContext, out_dir: Path, draws: range
) -> list[RolloutResult]:
    """Results of a batch, each the mean of the draws whose numbers `draws` gives; the store keeps every draw apart.

    Custom environments get a folder of its own for each draw but the first. Raises what `run_batch` raises.
    """
    runs = []
    for draw in draws:
        folder = out_dir if draw == draws.start else out_dir / f"sample_{draw}"
        runs.append(run_batch(env, batch, skill_text, replace(ctx, sample=draw), folder))
    if len(runs) == 1:
        return runs[0]
    by_id = [{result.id: result for result in run} for run in runs]
    ids = [result.id for result in runs[0]]
    ids += sorted({item for run in by_id for item in run} - set(ids))
    return [_mean([run.get(item) or _missing(item) for run in by_id]) for item in ids]


def _missing(item: str) -> RolloutResult:
    return RolloutResult(id=item, status="error", error="the environment returned no result for it in one of the draws")


def _mean(draws: Sequence[RolloutResult]) -> RolloutResult:
    """One result for all draws of an item: an error if any is one, else the mean scores with the worst trajectory."""
    usage = sum((draw.usage for draw in draws), Usage())
    failed = next((draw for draw in draws if not draw.ok), None)
    if failed is not None:
        return replace(failed, usage=usage)
    worst = min(draws, key=lambda draw: (draw.hard, draw.soft))
    return replace(
        worst,
        hard=math.fsum(draw.hard for draw in draws) / len(draws),
        soft=math.fsum(draw.soft for draw in draws) / len(draws),
        usage=usage,
        extras={**worst.extras, "samples": [{"hard": draw.hard, "soft": draw.soft} for draw in draws]},
    )

"""The reflect stage of a step: the engine's analysts, or an environment's own `reflect`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from skillopt.engine.kit import Kit
from skillopt.engine.notes import skill_aware
from skillopt.engine.work import Work
from skillopt.envs.base import overrides_reflect
from skillopt.errors import ReplyError, RunError
from skillopt.gradient.reflect import AnalystPrompts, ReflectSettings, reflect
from skillopt.skill.document import Skill
from skillopt.types import RawPatch, RolloutResult
from skillopt.utils.files import atomic_write_json


def reflect_on(
    kit: Kit, work: Work, results: Sequence[RolloutResult], skill: Skill, folder: Path, *, seed: int
) -> list[RawPatch]:
    """Raw patches for one batch, written to `patches/`.

    Raises RunError when more than half of the analysts' calls failed: going on would pay for rollouts that nobody
    learns from.
    """
    patches = None
    if overrides_reflect(kit.adapter):
        patches = _own_reflect(kit, work, results, skill, folder, seed=seed)
    if patches is None:
        patches = _analysts(kit, work, results, skill, folder, seed=seed)
    _write(folder / "patches", patches)
    return patches


def _analysts(
    kit: Kit, work: Work, results: Sequence[RolloutResult], skill: Skill, folder: Path, *, seed: int
) -> list[RawPatch]:
    gradient = kit.config.gradient
    reflection = reflect(
        results,
        skill,
        session=work.optimizer,
        settings=ReflectSettings(
            minibatch_size=gradient.minibatch_size,
            edit_budget=kit.config.optimizer.learning_rate,
            failure_only=gradient.failure_only,
            workers=gradient.analyst_workers,
            success_threshold=gradient.success_threshold,
            mode=work.mode,
            skill_aware=skill_aware(kit.config, skill),
        ),
        seed=seed,
        step_buffer_context=work.memory,
        meta_skill_context=work.advice,
        prompts=AnalystPrompts(
            error=kit.adapter.get_error_minibatch_prompt(), success=kit.adapter.get_success_minibatch_prompt()
        ),
        prediction_dir=folder / "rollout" / "predictions",
        emit=kit.emit,
    )
    if 2 * len(reflection.failed) > reflection.groups:
        raise RunError(
            f"{len(reflection.failed)} of {reflection.groups} analyst calls failed (first: {reflection.failed[0]}); "
            "mend the optimizer model and run the same command again."
        )
    return list(reflection.patches)


def _own_reflect(
    kit: Kit, work: Work, results: Sequence[RolloutResult], skill: Skill, folder: Path, *, seed: int
) -> list[RawPatch] | None:
    from skillopt.gradient.replies import read_raw_patch

    rows = kit.adapter.reflect(
        [result.to_dict() for result in results if result.ok],
        skill.text,
        str(folder),
        prediction_dir=str(folder / "rollout" / "predictions"),
        patches_dir=str(folder / "patches"),
        random_seed=seed,
        step_buffer_context=work.memory,
        meta_skill_context=work.advice,
    )
    if rows is None:  # the environment leaves this batch to the engine
        return None
    patches = []
    takes_notes = skill_aware(kit.config, skill) is not None
    for row in rows:
        try:
            patches += [read_raw_patch(row, work.mode, takes_notes=takes_notes)] if row is not None else []
        except ReplyError as error:
            kit.emit("analyst_failed", stage="reflect", reason=f"{type(kit.adapter).__name__}: {error}")
    return patches


def _write(folder: Path, patches: Sequence[RawPatch]) -> None:
    for kind, source in (("fail", "failure"), ("succ", "success")):
        chosen = [patch for patch in patches if patch.source_type == source]
        for index, patch in enumerate(chosen):
            atomic_write_json(folder / f"minibatch_{kind}_{index:03d}.json", patch.to_dict())

"""The reflect stage of a step: the engine's analysts, or an environment's own `reflect`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skillopt.engine.kit import Kit
from skillopt.engine.notes import skill_aware
from skillopt.engine.work import Work
from skillopt.envs.adapter import overrides_reflect
from skillopt.errors import ReplyError, RunError, SkillOptError
from skillopt.gradient.reflect import AnalystPrompts, ReflectSettings, reflect
from skillopt.skill.document import Skill
from skillopt.types import JsonObject, RawPatch, RolloutResult, content_hash
from skillopt.utils.files import atomic_write_json


def reflect_on(
    kit: Kit, work: Work, results: Sequence[RolloutResult], skill: Skill, folder: Path, *, seed: int
) -> list[RawPatch]:
    """Raw patches for one batch, written to `patches/`."""
    patches = None
    if overrides_reflect(kit.adapter):
        patches = _own_reflect(kit, work, results, skill, folder, seed=seed)
    if patches is None:
        patches = _analysts(kit, work, results, skill, folder, seed=seed)
    _write(folder / "patches", patches)
    return patches


def check_analysts(work: Work) -> None:
    """Raise RunError when more than half of the step's analyst calls failed.

    Going on would pay for rollouts that nobody learns from. What the failed calls gave is forgotten, so that they are
    made again when the run goes on.
    """
    failed = [reason for reflection in work.reflections for reason in reflection.failed]
    groups = sum(reflection.groups for reflection in work.reflections)
    if 2 * len(failed) <= groups:
        return
    for reflection in work.reflections:
        for question in reflection.unanswered:
            work.optimizer.forget(question)
    raise RunError(
        f"{len(failed)} of {groups} analyst calls failed (first: {failed[0]}); "
        "mend the optimizer model and run the same command again."
    )


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
    work.reflections.append(reflection)
    return list(reflection.patches)


def _own_reflect(
    kit: Kit, work: Work, results: Sequence[RolloutResult], skill: Skill, folder: Path, *, seed: int
) -> list[RawPatch] | None:
    """What the environment's own `reflect` gives, kept in the store; None when it leaves the batch to the engine."""
    given = [result.to_dict() for result in results if result.ok]
    roles = {name: role.fingerprint for name, role in kit.session.roles.items()}
    asked = (skill.text, given, seed, work.memory, work.advice, work.mode.name)
    key = content_hash("own_reflect", kit.adapter.fingerprint(), roles, *asked)
    kept = kit.store.get_reply(key)
    if kept is not None:
        return [RawPatch.from_dict(row) for row in kept["patches"]]
    rows = _ask_environment(kit, work, given, skill, folder, seed=seed)
    if rows is None:
        return None
    patches = _read_rows(kit, work, rows, skill)
    if patches:
        kit.store.put_reply(key, "own_reflect", {"patches": [patch.to_dict() for patch in patches]})
    return patches


def _ask_environment(
    kit: Kit, work: Work, given: list[JsonObject], skill: Skill, folder: Path, *, seed: int
) -> Sequence[Any] | None:
    from skillopt.model.active import use_session

    try:
        with use_session(kit.session):
            return kit.adapter.reflect(
                given,
                skill.text,
                str(folder),
                prediction_dir=str(folder / "rollout" / "predictions"),
                patches_dir=str(folder / "patches"),
                random_seed=seed,
                step_buffer_context=work.memory,
                meta_skill_context=work.advice,
            )
    except SkillOptError:
        raise
    except Exception as error:
        name = type(kit.adapter).__name__
        raise RunError(f"Environment {name} raised {type(error).__name__} in reflect: {error}") from error


def _read_rows(kit: Kit, work: Work, rows: Sequence[Any], skill: Skill) -> list[RawPatch]:
    """The rows that can be used; what is wrong with another one is told."""
    from skillopt.gradient.replies import read_raw_patch

    patches: list[RawPatch] = []
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

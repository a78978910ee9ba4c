"""Reflection: groups of rollout results go to analysts, and patches come back.

It decides which results belong together, what an analyst is shown, and what of its reply can be used. It knows nothing
of gates and scores beyond telling a failure from a success.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Literal

from skillopt.gradient.leaks import find_leaks
from skillopt.gradient.skill_aware import SkillAware
from skillopt.gradient.trajectories import TRAJECTORY_TOKENS, fmt_minibatch_trajectories, load_trajectory
from skillopt.model.values import Material
from skillopt.prompts.asking import Asked, Asks, Question, ask_typed
from skillopt.prompts.modes import PATCH, UpdateMode
from skillopt.prompts.sections import advice_section, join_sections, memory_section, section, skill_section
from skillopt.skill.document import Skill
from skillopt.tracking.events import Emit
from skillopt.types import Patch, RawPatch, RolloutResult
from skillopt.utils.parallel import map_ordered

if TYPE_CHECKING:
    from skillopt.gradient.replies import AnalystReply

Side = Literal["failure", "success"]

_TIE = 1e-9
_PROMPTS: dict[Side, str] = {"failure": "analyst_error", "success": "analyst_success"}


@dataclass(frozen=True, slots=True)
class ReflectSettings:
    """How reflection groups results and what it may propose.

    `mode`: what analysts propose. `edit_budget`: most items an analyst may propose, in modes that limit them.
    `success_threshold`: results with a hard score below it are failures; with 1.0, the default, a partial success is a
    failure to learn from. `trajectory_tokens`: the room of one trajectory in a prompt. `skill_aware`: have analysts
    tell faults of the skill from faults in following it; None for reflection without that.
    """

    minibatch_size: int = 8
    edit_budget: int = 4
    failure_only: bool = False
    workers: int = 4
    success_threshold: float = 1.0
    trajectory_tokens: int = TRAJECTORY_TOKENS
    mode: UpdateMode = PATCH
    skill_aware: SkillAware | None = None

    def __post_init__(self) -> None:
        for name in ("minibatch_size", "workers"):
            if getattr(self, name) < 1:
                raise ValueError(f"reflection: {name} must be at least 1, not {getattr(self, name)}")


@dataclass(frozen=True, slots=True)
class AnalystPrompts:
    """System prompts of the analysts; None means the file in `skillopt/prompts`."""

    error: str | None = None
    success: str | None = None

    def of(self, side: Side, mode: UpdateMode = PATCH) -> str:
        """The system prompt for one kind of group."""
        given = self.error if side == "failure" else self.success
        return given if given is not None else mode.prompt(_PROMPTS[side])


@dataclass(frozen=True, slots=True)
class Reflection:
    """What the analysts gave.

    `patches` in the order of their groups, failures first; `calls` that were made; `failed`, a reason for each group
    that gave nothing because its analyst failed; `dropped`, a reason for each proposed edit that cannot be used;
    `groups`, how many there were; `unanswered`, the questions of the failed ones.
    """

    patches: tuple[RawPatch, ...] = ()
    calls: int = 0
    failed: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    groups: int = 0
    unanswered: tuple[Question, ...] = ()


@dataclass(frozen=True, slots=True)
class AnalystContext:
    """What all groups of one reflection share."""

    skill: Skill
    session: Asks
    settings: ReflectSettings = field(default_factory=ReflectSettings)
    prompts: AnalystPrompts = field(default_factory=AnalystPrompts)
    step_buffer: str = ""
    meta_skill: str = ""


def split_results(
    results: Sequence[RolloutResult], success_threshold: float = 1.0
) -> tuple[tuple[RolloutResult, ...], tuple[RolloutResult, ...]]:
    """(failures, successes) in the given order; results with status `error` are neither."""
    scored = [result for result in results if result.ok]
    failures = tuple(result for result in scored if result.hard < success_threshold - _TIE)
    successes = tuple(result for result in scored if result.hard >= success_threshold - _TIE)
    return failures, successes


def minibatches(results: Sequence[RolloutResult], size: int, seed: int) -> list[tuple[RolloutResult, ...]]:
    """The results shuffled with `Random(seed)` and cut into groups of `size`; the last may be smaller."""
    shuffled = list(results)
    Random(seed).shuffle(shuffled)
    return [tuple(shuffled[start : start + size]) for start in range(0, len(shuffled), size)]


def reflect(  # noqa: PLR0913 - a public signature
    results: Sequence[RolloutResult],
    skill: Skill,
    *,
    session: Asks,
    settings: ReflectSettings,
    seed: int,
    step_buffer_context: str = "",
    meta_skill_context: str = "",
    prompts: AnalystPrompts | None = None,
    prediction_dir: Path | None = None,
    emit: Emit | None = None,
) -> Reflection:
    """One analyst call for each group of results; the patches in the order of the groups.

    Results with status `error`, and results without a trajectory, are left out. Failures are shuffled with
    `Random(seed)`, successes with `Random(seed + 1)`; both are cut into groups of `settings.minibatch_size`.
    Raises fatal model errors, a used-up budget and an interruption; any other failure is in `Reflection.failed`.
    """
    context = AnalystContext(
        skill, session, settings, prompts or AnalystPrompts(), step_buffer_context, meta_skill_context
    )
    jobs = _jobs([load_trajectory(result, prediction_dir) for result in results], settings, seed)
    answers = map_ordered(
        lambda job: _ask_analyst(job[0], job[1], context), jobs, workers=settings.workers, on_done=_raise_error
    )
    return _collect(
        jobs, [answer for answer in answers if not isinstance(answer, Exception)], settings, emit or _silent
    )


run_minibatch_reflect = reflect


def _jobs(
    results: Sequence[RolloutResult], settings: ReflectSettings, seed: int
) -> list[tuple[Side, tuple[RolloutResult, ...]]]:
    failures, successes = split_results(results, settings.success_threshold)
    failures = tuple(result for result in failures if result.trajectory)
    successes = () if settings.failure_only else tuple(result for result in successes if result.trajectory)
    size = settings.minibatch_size
    jobs: list[tuple[Side, tuple[RolloutResult, ...]]] = []
    jobs.extend(("failure", group) for group in minibatches(failures, size, seed))
    jobs.extend(("success", group) for group in minibatches(successes, size, seed + 1))
    return jobs


def _silent(kind: str, **data: Any) -> None:
    """The `emit` of a caller who does not listen."""


def _raise_error(_index: int, outcome: object) -> None:
    if isinstance(outcome, Exception):
        raise outcome


def run_error_analyst_minibatch(group: Sequence[RolloutResult], context: AnalystContext) -> Asked[AnalystReply]:
    """Ask the analyst of failures about one group."""
    return _ask_analyst("failure", group, context)


def run_success_analyst_minibatch(group: Sequence[RolloutResult], context: AnalystContext) -> Asked[AnalystReply]:
    """Ask the analyst of successes about one group."""
    return _ask_analyst("success", group, context)


def _ask_analyst(side: Side, group: Sequence[RolloutResult], context: AnalystContext) -> Asked[AnalystReply]:
    from skillopt.gradient.replies import parse_analyst

    budget = context.settings.edit_budget
    material = Material(
        failures=tuple(group) if side == "failure" else (),
        successes=tuple(group) if side == "success" else (),
        budget=budget,
        skill=context.skill.text,
    )
    mode = context.settings.mode
    user = _user_message(side, group, context)
    system, aware = context.prompts.of(side, mode), context.settings.skill_aware
    if aware is not None:
        system = aware.augment(system, side)
    question = Question("analyst", system, user, material, mode.max_completion_tokens)
    takes_notes = aware is not None and aware.takes_notes(side)
    return ask_typed(context.session, question, partial(parse_analyst, mode=mode, takes_notes=takes_notes))


def _user_message(side: Side, group: Sequence[RolloutResult], context: AnalystContext) -> str:
    shown = fmt_minibatch_trajectories(group, max_tokens=context.settings.trajectory_tokens)
    ended = "failed" if side == "failure" else "succeeded"
    return join_sections(
        skill_section(context.skill.body),
        _request(context.settings),
        memory_section(context.step_buffer),
        advice_section(context.meta_skill),
        _notes_section(side, context.settings.skill_aware),
        f"## Trajectories ({len(group)}, all of them {ended})\n\n{shown}",
    )


def _notes_section(side: Side, aware: SkillAware | None) -> str:
    """The reminders that are there already, for an analyst that may add some."""
    return section("Reminders so far", aware.listed, "notes") if aware is not None and aware.takes_notes(side) else ""


def _request(settings: ReflectSettings) -> str:
    """How much an analyst may propose."""
    if not settings.mode.limited:
        return "## Form\n\nGive exactly one complete new text of the skill."
    return f"## Budget\n\nPropose at most {settings.mode.count(settings.edit_budget)}."


def _collect(
    jobs: Sequence[tuple[Side, tuple[RolloutResult, ...]]],
    answers: Sequence[Asked[AnalystReply]],
    settings: ReflectSettings,
    emit: Emit,
) -> Reflection:
    """Sort the answers of all groups, and tell what is worth telling about each."""
    patches: list[RawPatch] = []
    failed: list[str] = []
    dropped: list[str] = []
    for number, ((side, group), answer) in enumerate(zip(jobs, answers, strict=True), 1):
        name = f"group {number} ({side})"
        if answer.value is None:
            failed.append(f"{name}: {answer.reason}")
            emit("analyst_failed", stage="analyst", reason=failed[-1])
            continue
        for reason in answer.value.patch.dropped:
            dropped.append(f"{name}: {reason}")
            emit("edit_dropped", stage="analyst", reason=dropped[-1])
        patch = _raw_patch(side, group, answer.value, settings)
        if patch.patch.edits or patch.appendix_notes:
            patches.append(patch)
        if leaks := find_leaks(patch.patch.edits, group):
            emit("possible_leak", stage="analyst", group=name, found=list(leaks))
    return Reflection(
        tuple(patches),
        sum(answer.calls for answer in answers),
        tuple(failed),
        tuple(dropped),
        len(jobs),
        tuple(question for answer in answers for question in answer.unanswered),
    )


def _raw_patch(side: Side, group: Sequence[RolloutResult], reply: AnalystReply, settings: ReflectSettings) -> RawPatch:
    most = max(0, settings.edit_budget) if settings.mode.limited else 1
    items = tuple(replace(item, source_type=side, support_count=len(group)) for item in reply.patch.edits[:most])
    return RawPatch(
        patch=Patch(items, reply.patch.reasoning),
        source_type=side,
        batch_size=len(group),
        failure_summary=reply.failure_summary,
        item_ids=tuple(result.id for result in group),
        appendix_notes=reply.appendix_notes,
    )

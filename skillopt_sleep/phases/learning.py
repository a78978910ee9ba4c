"""Learning: the managed skill and the memory, then each named skill, then the tasks that are only reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from skillopt_sleep import evidence, staging
from skillopt_sleep.errors import StagingError
from skillopt_sleep.learn import (
    consolidate_groups,
    dream_consolidate,
    history_of,
    slow_history,
)
from skillopt_sleep.learn.gate import select_gate_score
from skillopt_sleep.learn.results import TOO_FEW
from skillopt_sleep.mining import normalize_legacy_split
from skillopt_sleep.phases.coding import placed_history
from skillopt_sleep.phases.context import LiveDocument, Night, is_here, read_document
from skillopt_sleep.phases.holdout import by_skill, stops
from skillopt_sleep.replay import replay_batch, summarize
from skillopt_sleep.show import counted
from skillopt_sleep.types import GroupConsolidation, SkillGroup, SkillProposal, TaskRecord

SLOW_NOTE = "slow_update"


def learn(night: Night) -> None:
    """One consolidation of the managed skill and the project's memory, on the tasks that no named skill claims."""
    own, _ = _partition(night)
    if not own:
        night.report.no_edits_reason = "no_training_tasks"
        night.note("Every task of tonight belongs to a named skill, so the managed one learns nothing.")
        return
    night.say(f"learning from {counted(len(own), 'task')}")
    foreign = {task.project for task in own if not is_here(night, task)}
    if foreign and night.evolve_memory:
        others = counted(len(foreign), "other project")
        night.note(
            f"The project's memory is left alone tonight, because tasks of {others} took part; run with --scope "
            "invoked to let it change."
        )
    slow = None
    if night.config.get("slow_update"):
        slow = slow_history(night.state.note(night.project, SLOW_NOTE), night.state.slow_memory_for(night.project))
    night.result = dream_consolidate(
        night.backend,
        own,
        night.start,
        night.memory.text,
        **_settings(night),
        evolve_skill=night.evolve_skill,
        evolve_memory=night.evolve_memory and not foreign,
        history_tasks=history_of("", _history(night)) if night.config.fanout else _history(night),
        slow_history=slow,
        trace=night.trace,
    )


def learn_named_skills(night: Night) -> None:
    """One consolidation for each skill that tasks name for certain."""
    _, named = _partition(night)
    if not named:
        return
    night.skill_roots = staging.skill_search_roots(night.config)
    found: dict[str, LiveDocument] = {}
    groups, skipped = [], []
    for name, tasks in named.items():
        document, reason = _resolved(night, name)
        if document is None:
            skipped.append(GroupConsolidation(name, "skipped", reason=reason, n_tasks=len(tasks)))
            continue
        found[name] = document
        groups.append(SkillGroup(name, document.text, tasks))
    night.say(f"learning for {counted(len(groups), 'named skill')}")
    night.groups = skipped
    history = _history(night)
    night.groups = [
        *consolidate_groups(
            night.backend,
            groups,
            night.memory.text,
            consolidate_fn=dream_consolidate,
            group_kwargs_fn=lambda group: {"history_tasks": history_of(group.skill_name, history)},
            **_settings(night),
            evolve_skill=True,
        ),
        *skipped,
    ]
    for one in night.groups:
        if one.result is not None and one.accepted:
            _propose(night, one, found[one.skill_name])


def measure_test(night: Night) -> None:
    """The scores of the reserved tasks before and after; they decide nothing."""
    own, _ = _partition(night)
    tasks = [task for task in own if task.origin != "dream" and normalize_legacy_split(task.split) == "test"]
    if not tasks or night.result is None or night.result.no_edits_reason == TOO_FEW:
        return
    evidence.set_phase(night.backend, "test")
    before = _score(night, tasks, night.start, night.memory.text)
    after = before
    if night.result.accepted:
        after = _score(night, tasks, night.result.new_skill, night.result.new_memory)
    night.report.test_baseline, night.report.test_candidate = before, after
    night.record(
        "test",
        "held_out_score",
        n_test=len(tasks),
        baseline=before,
        candidate=after,
        accepted=night.result.accepted,
        gate_action=night.result.gate_action,
    )


def _partition(night: Night) -> tuple[list[TaskRecord], dict[str, list[TaskRecord]]]:
    parts = by_skill(night, night.tasks)
    return list(parts.pop("")), {name: list(tasks) for name, tasks in parts.items()}


def _settings(night: Night) -> dict[str, Any]:
    config = night.config
    names = ("edit_budget", "gate_metric", "gate_mixed_weight", "gate_no_regression", "gate_mode", "gate_min_val")
    return {
        **{name: config.get(name) for name in (*names, "recall_k", "recall_all_projects", "dream_rollouts", "workers")},
        "dream_factor": config.get("dream_factor"),
        "night": night.report.night,
        "only_if_decidable": stops(night),
    }


def _history(night: Night) -> list[dict[str, Any]]:
    if not night.config.get("recall_k"):
        return []
    rows = night.state.task_archive(None if night.config.get("recall_all_projects") else night.project)
    rows = [{**row, "split": night.moved.get(str(row.get("id")), row.get("split", "train"))} for row in rows]
    return placed_history(night, rows)


def _resolved(night: Night, name: str) -> tuple[LiveDocument | None, str]:
    found = staging.resolve_skill(name, night.skill_roots)
    if not found.ok:
        return None, found.reason
    try:
        document = read_document(Path(found.path))
    except StagingError as error:
        return None, str(error)
    if document.real == night.skill.real:
        return None, "it is the managed skill"
    return document, ""


def _propose(night: Night, one: GroupConsolidation, live: LiveDocument) -> None:
    """Keep an accepted change of a named skill as a proposal, or say why it cannot be one."""
    if one.result is None or one.result.new_skill == live.text:
        return
    proposal = SkillProposal(one.skill_name, one.result.new_skill, live.real, live.sha256, live.real)
    try:
        staging.skill_proposal_rows([*night.proposals, proposal])
    except StagingError as error:
        night.note(f"The change of a named skill cannot be staged: {error}")
        return
    night.proposals.append(proposal)


def _score(night: Night, tasks: list[TaskRecord], skill: str, memory: str) -> float | None:
    pairs = replay_batch(night.backend, tasks, skill, memory, workers=int(night.config.get("workers")))
    scores = summarize(pairs)
    night.report.n_errors += scores.n_errors
    if not scores.n:
        return None
    metric, weight = str(night.config.get("gate_metric")), float(night.config.get("gate_mixed_weight"))
    return float(select_gate_score(scores.hard, scores.soft, metric, weight))

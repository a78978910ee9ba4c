"""Data classes: published field orders, JSON round trip, wrong data refused naming the field."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from skillopt_sleep import types
from skillopt_sleep.records import Record
from skillopt_sleep.types import (
    ConsolidationResult,
    CycleOutcome,
    EditRecord,
    GroupConsolidation,
    ReplayResult,
    RolloutSet,
    SessionDigest,
    SkillGroup,
    SkillGroupReport,
    SkillResolution,
    SleepReport,
    TaskRecord,
)

ORDERS = {
    "SessionDigest": "session_id project git_branch started_at ended_at user_prompts assistant_finals tools_used "
    "skills_used files_touched feedback_signals n_user_turns n_assistant_turns raw_path",
    "TaskRecord": "id project intent context_excerpt system attempted_solution outcome reference_kind reference judge "
    "tags source_sessions split origin derived_from skill_hint",
    "ReplayResult": "id hard soft response fail_reason task_type judge_rationale tools_called tokens latency_ms",
    "EditRecord": "target op content anchor rationale",
    "SkillGroupReport": "skill_name status accepted gate_action baseline_score candidate_score n_tasks n_applied_edits "
    "n_rejected_edits reason",
    "SleepReport": "night project started_at ended_at n_sessions n_tasks n_replayed baseline_score candidate_score "
    "accepted gate_action holdout_leaked no_edits_reason edits rejected_edits unmatched_edits skill_groups tokens_used "
    "notes gate_no_regression gate_trials",
    "ConsolidationResult": "accepted gate_action baseline_score candidate_score new_skill new_memory applied_edits "
    "rejected_edits holdout_baseline holdout_candidate unmatched_edits holdout_detail reflect_raw call_error "
    "holdout_leaked gate_trials",
    "CycleOutcome": "report staging_dir adopted adopted_paths",
    "SkillGroup": "skill_name skill tasks",
    "GroupConsolidation": "skill_name status result reason n_tasks",
    "SkillProposal": "skill_name proposed_skill live_skill_path live_sha256 live_realpath",
    "AdoptedSkill": "skill_name live_skill_path sha256_before sha256_after backup_path",
    "SkillResolution": "name status path candidates reason",
}


@pytest.mark.parametrize("name", sorted(ORDERS))
def test_fields_stand_in_the_published_order_and_additions_after_them(name: str) -> None:
    names = [field.name for field in dataclasses.fields(getattr(types, name))]
    assert names[: len(ORDERS[name].split())] == ORDERS[name].split()


RECORDS: list[Record] = [
    SessionDigest("s", "/p", user_prompts=["a"], feedback_signals=["neg:no"], n_user_turns=1),
    TaskRecord("t", "/p", "i", judge={"kind": "rule", "checks": []}, tags=["x"]),
    ReplayResult("t", 1, 0.5, tools_called=["Bash"], error="rate"),
    SleepReport(
        1, "/p", edits=[EditRecord("skill", "add", "x")], skill_groups=[SkillGroupReport("a")], test_baseline=0.5
    ),
    ConsolidationResult(True, "accept_new_best", 0.1, 0.2, "s", "m", [EditRecord("skill", "add")], [], 0.0, 1.0),
    CycleOutcome(SleepReport(1, "/p"), "/d", True, ["/x"]),
    SkillGroup("a", "text", [TaskRecord("t", "/p", "i")]),
    GroupConsolidation("a", "skipped", None, "no tasks", 0),
    RolloutSet(TaskRecord("t", "/p", "i"), [ReplayResult("t", 1.0)]),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_json_round_trip(record: Record) -> None:
    assert type(record).from_dict(json.loads(json.dumps(record.to_dict()))) == record


def test_unknown_fields_are_ignored() -> None:
    assert EditRecord.from_dict({"target": "skill", "op": "add", "later": 1}) == EditRecord("skill", "add")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([], "object is expected, not list"),
        ({"id": "t", "project": "/p"}, "'intent' is missing"),
        ({"id": 3, "project": "/p", "intent": "i"}, "'id' must be of type str, not int"),
        ({"id": "t", "project": "/p", "intent": "i", "tags": "x"}, "'tags' must be of type list, not str"),
        ({"id": "t", "project": "/p", "intent": "i", "judge": []}, "'judge' must be of type dict, not list"),
    ],
)
def test_what_is_missing_or_of_a_wrong_type_is_named(data: Any, words: str) -> None:
    with pytest.raises(ValueError, match="TaskRecord") as caught:
        TaskRecord.from_dict(data)
    assert words in str(caught.value)


def test_numbers_are_no_flags_and_nested_lists_are_checked() -> None:
    with pytest.raises(ValueError, match="'hard' must be of type float, not bool"):
        ReplayResult.from_dict({"id": "t", "hard": True})
    with pytest.raises(ValueError, match="'edits' must be of type list"):
        SleepReport.from_dict({"night": 1, "project": "/p", "edits": {}})
    with pytest.raises(ValueError, match="EditRecord: the field 'op' is missing"):
        SleepReport.from_dict({"night": 1, "project": "/p", "edits": [{"target": "skill"}]})


def test_an_attempt_with_an_error_has_no_score_and_counts_for_nothing() -> None:
    failed = ReplayResult("t", 1.0, error="auth")
    rollouts = RolloutSet(TaskRecord("t", "/p", "i"), [failed, ReplayResult("t", 0.0), ReplayResult("t", 0.5)])
    assert not failed.scored
    assert rollouts.best == ReplayResult("t", 0.5)
    assert rollouts.worst == ReplayResult("t", 0.0)
    assert (rollouts.spread, rollouts.pass_rate) == (0.5, 0.0)
    empty = RolloutSet(rollouts.task, [failed])
    assert (empty.best, empty.worst, empty.spread, empty.pass_rate) == (None, None, 0.0, 0.0)


def test_derived_properties() -> None:
    assert SkillResolution("a", "found").ok
    assert not SkillResolution("a", "ambiguous", candidates=("x", "y")).ok
    assert not GroupConsolidation("a", "failed").accepted
    result = ConsolidationResult(True, "accept_new_best", 0, 1, "", "", [], [], 0, 1)
    assert GroupConsolidation("a", "consolidated", result).accepted

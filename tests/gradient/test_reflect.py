"""Groups of results, analyst calls, and the patches that come back."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from skillopt.errors import AuthError, BudgetExceededError, TransientError, TruncatedError
from skillopt.gradient.reflect import (
    AnalystContext,
    AnalystPrompts,
    Reflection,
    ReflectSettings,
    minibatches,
    reflect,
    run_error_analyst_minibatch,
    run_minibatch_reflect,
    run_success_analyst_minibatch,
    split_results,
)
from skillopt.model.values import ModelReply
from skillopt.prompts import load_prompt
from skillopt.prompts.modes import FULL_REWRITE, SUGGESTIONS
from skillopt.skill.document import Skill
from skillopt.types import Edit, RolloutResult, SkillCandidate, Suggestion

SKILL = Skill.parse("# Cities\n\n- Answer in a sentence.\n")
APPEND = {"op": "append", "content": "- Answer with one word."}
REPLY = {"batch_size": "a few", "failure_summary": [{"failure_type": "form", "count": 2}], "patch": {"edits": [APPEND]}}


def result(item_id: str, hard: float = 0.0, **fields: Any) -> RolloutResult:
    return RolloutResult(
        item_id, hard=hard, trajectory=({"role": "assistant", "content": f"said {item_id}"},), **fields
    )


def run(session: Any, results: list[RolloutResult], **options: Any) -> Reflection:
    settings = ReflectSettings(**{"minibatch_size": 2, "edit_budget": 2, "workers": 3, **options.pop("settings", {})})
    return reflect(results, SKILL, session=session, settings=settings, seed=options.pop("seed", 11), **options)


def test_threshold_tells_failures_from_successes() -> None:  # C068
    results = [result(str(hard), hard) for hard in (0.0, 0.2, 0.79, 0.8, 1.0)]
    failures, successes = split_results(results, 0.8)
    assert [r.hard for r in failures] == [0.0, 0.2, 0.79]
    assert [r.hard for r in successes] == [0.8, 1.0]
    assert [r.hard for r in split_results(results)[0]] == [0.0, 0.2, 0.79, 0.8]


def test_errors_are_neither() -> None:
    assert split_results([RolloutResult("a", status="error", error="timeout")]) == ((), ())


def test_groups_are_seeded_and_in_order(make_session: Any) -> None:
    results = [result(f"f{i}") for i in range(5)] + [result(f"s{i}", 1.0) for i in range(3)]
    reflection = run(make_session(REPLY), results)
    expected = [f"f{i}" for i in range(5)]
    random.Random(11).shuffle(expected)
    wins = [f"s{i}" for i in range(3)]
    random.Random(12).shuffle(wins)
    wanted = [tuple(expected[:2]), tuple(expected[2:4]), tuple(expected[4:]), tuple(wins[:2]), tuple(wins[2:])]
    assert [patch.item_ids for patch in reflection.patches] == wanted
    assert [patch.source_type for patch in reflection.patches] == ["failure"] * 3 + ["success"] * 2
    assert (reflection.calls, reflection.groups, reflection.failed) == (5, 5, ())


def test_thread_timing_changes_nothing(make_session: Any) -> None:
    results = [result(f"f{i}") for i in range(9)]
    runs = [run(make_session(REPLY), results, settings={"workers": workers}) for workers in (1, 4)]
    assert runs[0] == runs[1]


def test_what_an_analyst_is_shown(make_session: Any) -> None:
    skill = Skill.parse(
        "# Cities\n\n- Answer in a sentence.\n\n<!-- SLOW_UPDATE_START -->\nsecret guidance\n<!-- SLOW_UPDATE_END -->\n"
    )
    session = make_session(REPLY)
    reflect(
        [result("q1")],
        skill,
        session=session,
        settings=ReflectSettings(edit_budget=3),
        seed=1,
        step_buffer_context="STEP MEMORY",
        meta_skill_context="META ADVICE",
    )
    (call,) = session.asked
    assert call.stage == "analyst"
    wanted = ["- Answer in a sentence.", "at most 3 edits", "STEP MEMORY", "META ADVICE", "[assistant] said q1"]
    places = [call.last_user.find(text) for text in wanted]
    assert -1 not in places
    assert places == sorted(places)
    assert "failed trajectories" in call.system or "agent failed" in call.system
    assert call.material.budget == 3
    assert [r.id for r in call.material.failures] == ["q1"]
    assert call.material.successes == ()
    assert call.material.skill == skill.text
    assert "secret guidance" not in call.last_user


def test_the_real_size_of_the_group_is_the_support(make_session: Any) -> None:  # defect 13
    (patch,) = run(make_session(REPLY), [result("a"), result("b")]).patches
    assert patch.batch_size == 2
    assert patch.patch.edits == (Edit("append", "- Answer with one word.", "", 2, "failure"),)
    assert patch.failure_summary[0].failure_type == "form"


def test_edits_above_the_budget_are_cut(make_session: Any) -> None:
    (patch,) = run(make_session({"edits": [APPEND] * 5}), [result("a")]).patches
    assert len(patch.patch.edits) == 2


def test_failure_only_leaves_successes_out(make_session: Any) -> None:
    reflection = run(make_session(REPLY), [result("a"), result("b", 1.0)], settings={"failure_only": True})
    assert [patch.source_type for patch in reflection.patches] == ["failure"]


def test_results_without_a_trajectory_cost_no_call(make_session: Any) -> None:
    session = make_session(REPLY)
    assert run(session, [RolloutResult("a"), RolloutResult("b", status="error")]) == Reflection()
    assert session.asked == []


def test_own_prompts_are_used(make_session: Any) -> None:
    session = make_session(REPLY)
    run(session, [result("a"), result("b", 1.0)], prompts=AnalystPrompts("E", "S"), settings={"workers": 1})
    assert [call.system for call in session.asked] == ["E", "S"]


def test_one_group_can_be_asked_about_alone(make_session: Any) -> None:
    session = make_session(REPLY)
    context = AnalystContext(SKILL, session, prompts=AnalystPrompts("E", "S"))
    for ask in (run_error_analyst_minibatch, run_success_analyst_minibatch):
        answer = ask([result("a")], context)
        assert answer.value is not None
        assert answer.value.patch.edits == (Edit("append", "- Answer with one word."),)
    assert [call.system for call in session.asked] == ["E", "S"]


def test_an_unusable_reply_gets_one_repair_request(make_session: Any) -> None:
    session = make_session("I would rather not.", REPLY)
    reflection = run(session, [result("a")])
    assert (len(reflection.patches), reflection.calls, reflection.failed) == (1, 2, ())
    first, second = session.asked
    assert second.last_user.startswith(first.last_user)
    assert "could not be used" in second.last_user
    assert "I would rather not." in second.last_user


def test_a_wrong_shape_is_told_to_the_model(make_session: Any) -> None:
    session = make_session({"edits": "append a"}, REPLY)
    assert len(run(session, [result("a")]).patches) == 1
    assert '"edits" must be a list' in session.asked[1].last_user


def test_two_objects_are_answered_with_one_object_only(make_session: Any) -> None:
    session = make_session(f"{json.dumps(REPLY)}\n\n{json.dumps({'edits': []})}", REPLY)
    assert len(run(session, [result("a")]).patches) == 1
    assert "one JSON object only" in session.asked[1].last_user


def test_a_reply_that_stops_in_the_middle_by_itself_is_told_so(make_session: Any) -> None:
    session = make_session('{"edits": [{"op"', REPLY)
    assert len(run(session, [result("a")]).patches) == 1
    assert [call.max_completion_tokens for call in session.asked] == [16384, 16384]
    assert "could not be used" in session.asked[1].last_user


@pytest.mark.parametrize("first", [ModelReply('{"edits": [{"op"', "length"), TruncatedError("cut at 16384 tokens")])
def test_a_truncated_reply_is_asked_for_with_more_room(make_session: Any, first: Any) -> None:
    session = make_session(first, REPLY)
    assert len(run(session, [result("a")]).patches) == 1
    assert [call.max_completion_tokens for call in session.asked] == [16384, 32768]
    assert session.asked[0].last_user == session.asked[1].last_user


def test_failed_groups_are_counted_with_their_reason(make_session: Any, events: Any) -> None:  # defect 10
    seen, emit = events
    reflection = run(
        make_session(lambda call: TransientError("503 from the server") if "said a" in call.last_user else REPLY),
        [result("a"), result("b", 1.0)],
        emit=emit,
    )
    assert reflection.failed == ("group 1 (failure): TransientError: 503 from the server",)
    assert [patch.source_type for patch in reflection.patches] == ["success"]
    assert seen == [("analyst_failed", {"stage": "analyst", "reason": reflection.failed[0]})]


def test_a_reply_that_stays_unusable_fails_the_group(make_session: Any) -> None:
    reflection = run(make_session("no"), [result("a")])
    assert reflection.calls == 2
    assert reflection.failed[0].startswith("group 1 (failure): ReplyError: ")


@pytest.mark.parametrize("error", [AuthError("401"), BudgetExceededError("max_calls"), ZeroDivisionError("bug")])
def test_errors_that_end_the_run_are_raised(make_session: Any, error: Exception) -> None:
    with pytest.raises(type(error)):
        run(make_session(error), [result("a"), result("b")])


def test_unusable_edits_are_reported(make_session: Any, events: Any) -> None:
    seen, emit = events
    reflection = run(make_session({"edits": [APPEND, {"op": "append", "content": None}]}), [result("a")], emit=emit)
    assert len(reflection.patches[0].patch.edits) == 1
    assert reflection.dropped[0].startswith("group 1 (failure): edits[1]: content")
    assert seen[0][0] == "edit_dropped"


def test_copied_tasks_are_reported_and_kept(make_session: Any, events: Any) -> None:  # defect 42
    seen, emit = events
    session = make_session({"edits": [{"op": "append", "content": "- For item-17 say yes."}]})
    assert len(run(session, [result("item-17")], emit=emit).patches) == 1
    assert seen == [
        ("possible_leak", {"stage": "analyst", "group": "group 1 (failure)", "found": ["edit 1 names item 'item-17'"]})
    ]


def test_nothing_to_change_is_no_failure(make_session: Any) -> None:
    reflection = run(make_session({"edits": []}), [result("a")])
    assert (reflection.patches, reflection.failed, reflection.calls) == ((), (), 1)


def test_conversation_files_are_read(make_session: Any, tmp_path: Any) -> None:
    (tmp_path / "q1").mkdir()
    (tmp_path / "q1" / "conversation.json").write_text(
        '[{"role": "assistant", "content": "from file"}]', encoding="utf-8"
    )
    session = make_session(REPLY)
    assert len(run(session, [RolloutResult("q1")], prediction_dir=tmp_path).patches) == 1
    assert "[assistant] from file" in session.asked[0].last_user


def test_settings_refuse_sizes_below_one() -> None:
    with pytest.raises(ValueError, match="minibatch_size must be at least 1"):
        ReflectSettings(minibatch_size=0)


def test_minibatches_keep_everything() -> None:
    results = [result(str(i)) for i in range(7)]
    groups = minibatches(results, 3, 5)
    assert [len(group) for group in groups] == [3, 3, 1]
    assert sorted(r.id for group in groups for r in group) == [str(i) for i in range(7)]
    assert run_minibatch_reflect is reflect


def test_suggestions_have_their_own_prompts_and_the_budget(make_session: Any) -> None:
    row = {"type": "clarify", "instruction": "Say it."}
    session = make_session({"patch": {"revise_suggestions": [row] * 5}})
    reflection = run(session, [result("a"), result("b", 1.0)], settings={"mode": SUGGESTIONS, "workers": 1})
    expected = Suggestion("clarify", instruction="Say it.", support_count=1, source_type="failure")
    assert reflection.patches[0].patch.edits == (expected, expected)
    names = ["analyst_error_rewrite", "analyst_success_rewrite"]
    assert [call.system for call in session.asked] == [load_prompt(name) for name in names]
    assert "Propose at most 2 suggestions." in session.asked[0].last_user
    assert session.asked[0].max_completion_tokens == 16384


def test_a_whole_rewrite_is_one_candidate_without_a_budget(make_session: Any) -> None:
    rows = [{"new_skill": "# A"}, {"new_skill": "# B"}]
    session = make_session({"patch": {"skill_candidates": rows}})
    reflection = run(session, [result("a")], settings={"mode": FULL_REWRITE, "edit_budget": 0})
    assert reflection.patches[0].patch.edits == (
        SkillCandidate(new_skill="# A", support_count=1, source_type="failure"),
    )
    (call,) = session.asked
    assert (call.system, call.max_completion_tokens) == (load_prompt("analyst_error_full_rewrite"), 64000)
    assert "exactly one complete new text" in call.last_user
    assert "Budget" not in call.last_user


def test_copied_tasks_in_whole_texts_are_reported(make_session: Any, events: Any) -> None:
    seen, emit = events
    session = make_session({"patch": {"skill_candidates": [{"new_skill": "For item-17 say yes."}]}})
    run(session, [result("item-17")], emit=emit, settings={"mode": FULL_REWRITE})
    assert seen[0][1]["found"] == ["proposal 1 names item 'item-17'"]

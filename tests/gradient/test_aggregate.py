"""Merging many patches into one."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skillopt.errors import AuthError, TransientError
from skillopt.gradient.aggregate import merge_patches, normalize
from skillopt.model.limiter import Limits
from skillopt.model.session import Session
from skillopt.prompts import load_prompt
from skillopt.prompts.modes import FULL_REWRITE, SUGGESTIONS
from skillopt.skill.document import Skill
from skillopt.testing import LoopbackServer, every, status
from skillopt.types import Edit, Patch, RawPatch, SkillCandidate, Suggestion

SKILL = Skill.parse("# Cities\n\n- Answer in a sentence.\n")


def raw(*contents: str, source: str = "failure", size: int = 2) -> RawPatch:
    return RawPatch(Patch(tuple(Edit("append", text) for text in contents), "why"), source, size)


def merged(*contents: str, **fields: Any) -> dict[str, Any]:
    return {"reasoning": "m", "edits": [{"op": "append", "content": text, **fields} for text in contents]}


def merge(session: Any, failures: list[Any], successes: list[Any] = (), **options: Any) -> Patch:  # type: ignore[assignment]
    options = {"merge_batch_size": 8, "workers": 3, **options}
    return merge_patches(failures, successes, SKILL, session=session, **options)


def contents(patch: Patch) -> list[str]:
    return [edit.content for edit in patch.edits]


def test_one_patch_needs_no_call(make_session: Any) -> None:
    session = make_session()
    patch = merge(session, [raw("a", "b")])
    assert patch == Patch((Edit("append", "a", "", 2, "failure"), Edit("append", "b", "", 2, "failure")), "why")
    assert merge(session, [], [raw("a", source="success")]).edits[0].source_type == "success"
    assert merge(session, []) == Patch()
    assert session.asked == []


def test_one_batch_is_one_call(make_session: Any) -> None:
    session = make_session(merged("ab", support_count=3))
    patch = merge(session, [raw(text) for text in "abcdefgh"])
    assert len(session.asked) == 1
    assert patch.edits == (Edit("append", "ab", "", 3, "failure", 1),)
    call = session.asked[0]
    assert call.stage == "merge"
    assert [edit.content for edit in call.material.edits] == list("abcdefgh")
    assert (call.material.budget, call.material.skill) == (0, SKILL.text)
    assert "- Answer in a sentence." in call.last_user


def test_levels_and_singles(make_session: Any) -> None:
    session = make_session(lambda call: merged("+".join(edit.content for edit in call.material.edits)))
    patch = merge(session, [raw(text) for text in "abcde"], merge_batch_size=2)
    assert contents(patch) == ["a+b+c+d+e"]
    assert patch.edits[0].merge_level == 3
    assert sorted([edit.content for edit in call.material.edits] for call in session.asked) == [
        ["a", "b"], ["a+b", "c+d"], ["a+b+c+d", "e"], ["c", "d"],
    ]  # fmt: skip


def test_both_sides_are_joined_in_a_last_call(make_session: Any) -> None:
    session = make_session(
        {"edits": [
            {"op": "append", "content": "f", "source_type": "failure", "support_count": 2},
            {"op": "append", "content": "?", "source_type": "other"},
        ]}
    )  # fmt: skip
    patch = merge(session, [raw("f")], [raw("s", source="success", size=3)], meta_skill_context="META")
    assert [(e.content, e.source_type, e.merge_level) for e in patch.edits] == [("f", "failure", 1), ("?", "mixed", 1)]
    (call,) = session.asked
    places = [
        call.last_user.find(text)
        for text in ("META", "- Answer in", "from failures (1 edits)", "from successes (1 edits)")
    ]
    assert -1 not in places
    assert places == sorted(places)


@pytest.mark.parametrize("size", [1, 0, -4])
def test_a_batch_size_below_two_terminates(make_session: Any, size: int) -> None:  # C028
    session = make_session(lambda call: {"edits": [edit.to_dict() for edit in call.material.edits]})
    assert contents(merge(session, [raw(text) for text in "abc"], merge_batch_size=size)) == ["a", "b", "c"]


def test_a_failed_call_keeps_all_edits_in_order(make_session: Any, events: Any) -> None:  # C029
    seen, emit = events
    with pytest.warns(UserWarning, match="fallback concatenation") as caught:
        patch = merge(make_session(TransientError("BODY OF THE PROVIDER")), [raw("a"), raw("b")], emit=emit)
    assert contents(patch) == ["a", "b"]
    assert patch.reasoning == "fallback concatenation"
    assert [edit.merge_level for edit in patch.edits] == [1, 1]
    assert "BODY" not in str(caught[0].message)
    assert seen == [("merge_fallback", {"stage": "merge", "reason": "TransientError", "level": 1, "n_patches": 2})]


def test_a_server_that_fails_three_times_stops_nothing() -> None:  # C029
    down = status(500, body='{"error": {"message": "BODY OF THE PROVIDER"}}')
    limits = Limits(retries=2, retry_first_wait_seconds=0.001)
    with LoopbackServer(faults=every(1, down)) as server:
        session = Session({"optimizer": server.role("optimizer")}, limits=limits)
        with pytest.warns(UserWarning, match="fallback concatenation") as caught:
            patch = merge(session, [raw("a"), raw("b")])
        assert len(server.requests) == 3
    assert contents(patch) == ["a", "b"]
    assert not any("BODY" in str(warning.message) for warning in caught)


def test_a_failed_last_call_puts_failures_first(make_session: Any) -> None:
    with pytest.warns(UserWarning, match="fallback: failure first, then success") as caught:
        patch = merge(make_session(TransientError("BODY")), [raw("f")], [raw("s", source="success")])
    assert contents(patch) == ["f", "s"]
    assert patch.reasoning == "fallback: failure first, then success"
    assert "BODY" not in str(caught[0].message)


def test_a_fallback_keeps_levels_that_are_there(make_session: Any) -> None:
    answers = iter([merged("ab"), TransientError("x")])
    session = make_session(lambda _call: next(answers))
    with pytest.warns(UserWarning, match="fallback"):
        patch = merge(session, [raw("a"), raw("b"), raw("c")], merge_batch_size=2)
    assert [(edit.content, edit.merge_level) for edit in patch.edits] == [("ab", 1), ("c", 2)]


@pytest.mark.parametrize("payload", [None, ["a", "b"], {"0": {}}])
def test_an_unusable_payload_is_repaired_once_then_given_up(make_session: Any, payload: Any) -> None:
    session = make_session({"edits": payload})
    with pytest.warns(UserWarning, match="fallback concatenation"):
        assert contents(merge(session, [raw("a"), raw("b")])) == ["a", "b"]
    assert len(session.asked) == 2


def test_support_never_exceeds_what_went_in(make_session: Any) -> None:
    session = make_session(merged("a", support_count=500))
    assert merge(session, [raw("a", size=2), raw("b", size=3)]).edits[0].support_count == 5


def test_errors_that_end_the_run_are_raised(make_session: Any) -> None:
    with pytest.raises(AuthError):
        merge(make_session(AuthError("401")), [raw("a"), raw("b")])


def test_normalize_fills_in_only_what_is_missing() -> None:
    given = RawPatch(Patch((Edit("append", "a", "", 7, "mixed"), Edit("append", "b"))), "success", 0)
    assert normalize(given).edits == (Edit("append", "a", "", 7, "mixed"), Edit("append", "b", "", 1, "success"))


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(st.integers(0, 9), st.integers(0, 9), st.integers(-1, 5), st.booleans())
def test_nothing_is_lost(make_session: Any, n_fail: int, n_ok: int, size: int, broken: bool) -> None:
    failures = [raw(f"f{i}") for i in range(n_fail)]
    successes = [raw(f"s{i}", source="success") for i in range(n_ok)]
    echo = make_session(lambda call: {"edits": [edit.to_dict() for edit in call.material.edits]})
    session = make_session(TransientError("down")) if broken else echo
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        patch = merge(session, failures, successes, merge_batch_size=size)
    assert contents(patch) == [f"f{i}" for i in range(n_fail)] + [f"s{i}" for i in range(n_ok)]


def test_suggestions_are_merged_with_their_own_prompts(make_session: Any) -> None:
    def suggested(text: str, source: str) -> RawPatch:
        return RawPatch(Patch((Suggestion("clarify", instruction=text),)), source, 2)

    session = make_session({"revise_suggestions": [{"type": "add_rule", "instruction": "all", "support_count": 99}]})
    failures, successes = [suggested("a", "failure"), suggested("b", "failure")], [suggested("c", "success")]
    patch = merge(session, failures, successes, mode=SUGGESTIONS)
    merged = Suggestion("add_rule", instruction="all", support_count=6, source_type="mixed", merge_level=2)
    assert patch.edits == (merged,)
    names = ["merge_failure_rewrite", "merge_final_rewrite"]
    assert [call.system for call in session.asked] == [load_prompt(name) for name in names]
    assert '"instruction": "a"' in session.asked[0].last_user
    assert "from failures (1 suggestions)" in session.asked[1].last_user


@pytest.mark.parametrize("broken", [False, True])
def test_whole_texts_are_merged_with_room_for_them(make_session: Any, broken: bool) -> None:
    rows = [RawPatch(Patch((SkillCandidate("t", (), f"# {n}"),)), "failure", 1) for n in range(2)]
    session = make_session(TransientError("x") if broken else {"skill_candidates": [{"new_skill": "# both"}]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        patch = merge(session, rows, mode=FULL_REWRITE)
    texts = [item.new_skill for item in patch.edits if isinstance(item, SkillCandidate)]
    assert texts == (["# 0", "# 1"] if broken else ["# both"])
    (call,) = session.asked
    assert (call.system, call.max_completion_tokens) == (load_prompt("merge_failure_full_rewrite"), 64000)


def test_many_whole_texts_share_the_room(make_session: Any) -> None:
    rows = [RawPatch(Patch((SkillCandidate(new_skill="x" * 90_000),)), "failure", 1) for _ in range(8)]
    session = make_session({"skill_candidates": [{"new_skill": "# one"}]})
    merge(session, rows, mode=FULL_REWRITE)
    assert len(session.asked[0].last_user) < 4 * 100_000

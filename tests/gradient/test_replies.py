"""Reading what analysts and merges reply."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.errors import ReplyError
from skillopt.gradient.replies import count_or_none, parse_analyst, parse_patch, read_raw_patch
from skillopt.prompts.modes import FULL_REWRITE, SUGGESTIONS
from skillopt.types import Edit, FailureSummaryEntry, SkillCandidate, Suggestion

GOOD = {"op": "append", "content": "a"}


def edits_of(*rows: Any) -> tuple[Edit, ...]:
    return parse_patch({"edits": list(rows)}).edits


def test_the_wrapper_and_the_bare_patch_are_read() -> None:  # C014
    assert parse_analyst({"patch": {"edits": [GOOD]}}).patch.edits == (Edit("append", "a"),)
    assert parse_analyst({"edits": [GOOD], "reasoning": "r"}).patch.reasoning == "r"


@pytest.mark.parametrize("edits", [{"0": GOOD}, "append a", None, 3, True])
def test_edits_that_are_no_list_are_refused_by_name(edits: Any) -> None:  # C014
    with pytest.raises(ReplyError, match='"edits" must be a list') as caught:
        parse_analyst({"edits": edits})
    assert caught.value.outcome == "wrong_shape"


def test_another_key_is_refused_and_named() -> None:  # C014
    with pytest.raises(ReplyError, match="'changes'"):
        parse_analyst({"patch": {"changes": [GOOD]}})
    with pytest.raises(ReplyError, match='"patch" must be an object'):
        parse_analyst({"patch": [GOOD]})


def test_the_case_of_the_operation_does_not_matter() -> None:  # C016
    assert edits_of({"op": " APPEND ", "content": "a"}) == (Edit("append", "a"),)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"op": "append", "content": None}, "content"),
        ({"op": "append", "content": " \n"}, "content: append needs text"),
        ({"op": "replace", "target": ["a"], "content": "b"}, "target"),
        ({"op": 1, "content": "a"}, "op"),
        ({"content": "a"}, "op"),
        ({"op": "prepend", "content": "a"}, "op"),
        ({"op": "replace", "target": "", "content": "b"}, "target: replace needs"),
        ({"op": "replace", "target": "a"}, "content: replace needs text"),
        ({"op": "replace", "target": "a", "content": None}, "content"),
        ({"op": "delete"}, "target: delete needs"),
        ("append a", ""),
        (None, ""),
    ],
)
def test_unusable_edits_are_left_out_with_the_reason(row: Any, reason: str) -> None:  # C016
    patch = parse_patch({"edits": [row, GOOD]})
    assert patch.edits == (Edit("append", "a"),)
    assert len(patch.dropped) == 1
    assert patch.dropped[0].startswith(f"edits[0]: {reason}")


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"op": "append", "content": "a", "target": None}, Edit("append", "a")),
        ({"op": "delete", "target": "x", "content": None}, Edit("delete", "", "x")),
        ({"op": "Delete", "target": "x"}, Edit("delete", "", "x")),
        ({"op": "replace", "target": "x", "content": ""}, Edit("replace", "", "x")),
        ({**GOOD, "support_count": "3", "source_type": "MIXED"}, Edit("append", "a", "", 3, "mixed")),
        ({"op": "append", "content": "a", "support_count": True, "source_type": 7}, Edit("append", "a")),
        ({"op": "append", "content": "a", "unknown": 1}, Edit("append", "a")),
    ],
)  # fmt: skip
def test_harmless_slips_are_forgiven(row: Any, expected: Edit) -> None:
    assert edits_of(row) == (expected,)


def test_a_reply_without_one_usable_edit_is_refused() -> None:
    with pytest.raises(ReplyError, match="no edit can be used: edits\\[0\\]"):
        parse_patch({"edits": [{"op": 1}, None]})


def test_an_empty_list_is_an_answer() -> None:
    assert parse_patch({"edits": []}).edits == ()


def test_failure_summaries_are_read_leniently() -> None:  # defect 13
    rows = [{"failure_type": "form", "count": "2", "description": " d "}, "text", {"failure_type": None, "count": []}]
    summary = parse_analyst({"edits": [], "failure_summary": rows, "batch_size": "many"}).failure_summary
    assert summary == (FailureSummaryEntry("form", 2, "d"), FailureSummaryEntry("", 0, ""))
    assert parse_analyst({"edits": [], "failure_summary": "none"}).failure_summary == ()


@pytest.mark.parametrize(
    ("value", "expected"),
    [(3, 3), ("3", 3), (3.0, 3), (2.5, None), (0, None), (-1, None), (True, None), (None, None), ("many", None),
     (float("nan"), None), (float("inf"), None), (10**400, None), ([], None)],
)  # fmt: skip
def test_counts(value: Any, expected: int | None) -> None:
    assert count_or_none(value) == expected


def test_raw_patches_of_an_environment() -> None:
    row = {"patch": {"edits": [GOOD]}, "source_type": "success", "batch_size": "text", "item_ids": [1, "b"]}
    raw = read_raw_patch(row)
    assert (raw.source_type, raw.batch_size, raw.item_ids) == ("success", 0, ("1", "b"))
    assert raw.patch.edits == (Edit("append", "a"),)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ["op", "content", "target", "support_count", "source_type"]


@given(
    st.lists(st.dictionaries(st.sampled_from(FIELDS), JSON | st.sampled_from(["append", "delete"])) | JSON, max_size=4)
)
def test_anything_is_either_read_or_refused(rows: list[Any]) -> None:
    try:
        patch = parse_patch({"edits": rows})
    except ReplyError as error:
        assert error.outcome == "wrong_shape"
    else:
        assert len(patch.edits) + len(patch.dropped) == len(rows)


def suggestions_of(*rows: Any) -> tuple[Any, ...]:
    return parse_patch({"revise_suggestions": list(rows)}, SUGGESTIONS).edits


def test_suggestions_are_read_leniently() -> None:  # C016
    full = {
        "type": " Merge-Rules ",
        "title": "t ",
        "motivation": None,
        "instruction": "do",
        "priority_hint": "HIGH",
        "support_count": "3",
        "source_type": "Success",
    }
    assert suggestions_of(full) == (Suggestion("merge_rules", "t", "", "do", "high", 3, "success"),)
    assert suggestions_of({"instruction": "do", "type": 7, "priority_hint": ["x"], "source_type": None}) == (
        Suggestion("", "", "", "do", "medium"),
    )


@pytest.mark.parametrize(
    "row",
    [{}, {"instruction": None}, {"instruction": " "}, {"instruction": ["a"]}, {"instruction": "a", "title": 3}, "x"],
)
def test_unusable_suggestions_are_left_out_with_the_reason(row: Any) -> None:  # C016
    reply = parse_patch({"revise_suggestions": [row, {"instruction": "do"}]}, SUGGESTIONS)
    assert len(reply.edits) == 1
    assert reply.dropped[0].startswith("revise_suggestions[0]: ")
    with pytest.raises(ReplyError, match="no suggestion can be used"):
        suggestions_of(row)


def test_skill_candidates_are_read() -> None:
    rows = [{"new_skill": " # A\n", "change_summary": "one", "title": None}, {"new_skill": ""}, {"title": "x"}]
    reply = parse_analyst({"patch": {"skill_candidates": rows}}, FULL_REWRITE).patch
    assert reply.edits == (SkillCandidate("", ("one",), " # A\n"),)
    assert len(reply.dropped) == 2
    listed = parse_patch({"skill_candidates": [{"new_skill": "a", "change_summary": ["x", None, " "]}]}, FULL_REWRITE)
    assert listed.edits[0] == SkillCandidate("", ("x",), "a")


def test_the_key_of_another_mode_is_refused_by_name() -> None:
    with pytest.raises(ReplyError, match="\"revise_suggestions\" is missing; found 'edits'"):
        parse_analyst({"patch": {"edits": [GOOD]}}, SUGGESTIONS)
    with pytest.raises(ReplyError, match='a list "skill_candidates"'):
        parse_analyst({"patch": "text"}, FULL_REWRITE)


def test_raw_patches_of_an_environment_follow_the_mode() -> None:
    raw = read_raw_patch({"patch": {"revise_suggestions": [{"instruction": "do"}]}, "batch_size": 3}, SUGGESTIONS)
    assert raw.patch.edits == (Suggestion(instruction="do"),)


@given(
    st.lists(st.dictionaries(st.sampled_from(["new_skill", "instruction", "title", "type"]), JSON) | JSON, max_size=3)
)
def test_any_suggestion_or_candidate_is_either_read_or_refused(rows: list[Any]) -> None:
    for mode in (SUGGESTIONS, FULL_REWRITE):
        try:
            patch = parse_patch({mode.payload_key: rows}, mode)
        except ReplyError as error:
            assert error.outcome == "wrong_shape"
        else:
            assert len(patch.edits) + len(patch.dropped) == len(rows)

"""Choosing the best edits within the budget."""

from __future__ import annotations

from typing import Any

import pytest

from skillopt.errors import AuthError, ReplyError, TransientError
from skillopt.optimizer.select import parse_ranking, rank_and_select
from skillopt.prompts import load_prompt
from skillopt.prompts.modes import SUGGESTIONS
from skillopt.skill.document import Skill
from skillopt.types import Edit, Patch, Suggestion

SKILL = Skill.parse("# Cities\n\n- Answer in a sentence.\n")
PATCH = Patch(tuple(Edit("append", f"rule {i}", "", i + 1, "failure", 1) for i in range(6)), "merged")


def select(session: Any, budget: int = 2, patch: Patch = PATCH, **options: Any) -> Patch:
    return rank_and_select(patch, budget, SKILL, session=session, **options)


def chosen(patch: Patch) -> list[int]:
    return [PATCH.edits.index(edit) for edit in patch.edits]


def test_no_call_when_there_is_nothing_to_choose(make_session: Any) -> None:
    session = make_session()
    assert select(session, 0).edits == ()
    assert select(session, -1).edits == ()
    assert select(session, 6) is PATCH
    assert select(session, 2, Patch()) == Patch()
    assert session.asked == []


def test_the_reply_decides_the_order(make_session: Any) -> None:
    session = make_session({"reasoning": "r", "selected_indices": [4, 1, 0]})
    patch = select(session, meta_skill_context="META")
    assert chosen(patch) == [4, 1]
    assert patch.ranking_details == {
        "fallback": False, "reasoning": "r", "selected_indices": [4, 1], "n_available": 6,
    }  # fmt: skip
    assert patch.reasoning == "merged\n[selected 2 of 6 edits]"
    (call,) = session.asked
    assert call.stage == "ranking"
    assert (call.material.edits, call.material.budget) == (PATCH.edits, 2)
    wanted = ["META", "- Answer in a sentence.", "[0] append, support 1, from failure, merge level 1", "at most 2"]
    places = [call.last_user.find(text) for text in wanted]
    assert -1 not in places
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("indices", "expected"),
    [
        (["1", "0"], [1, 0]),
        ([5, 5, 5], [5]),
        ([1.0, 2.7], [1]),
        ([9, 3, -1, 2], [3, 2]),
        ([True, 4], [4]),
        ([None, "x", [1], 3], [3]),
    ],
)
def test_odd_but_usable_replies(make_session: Any, indices: Any, expected: list[int]) -> None:  # C026
    patch = select(make_session({"selected_indices": indices}))
    assert chosen(patch) == expected


@pytest.mark.parametrize(
    "reply",
    [
        {"selected_indices": [-1, 99]},
        {"selected_indices": [True, False]},
        {"selected_indices": "0,1"},
        {"selected_indices": []},
        {"chosen": [1]},
        "garbage",
    ],
)
def test_unusable_replies_keep_the_first_edits_and_say_so(make_session: Any, events: Any, reply: Any) -> None:  # C026
    seen, emit = events
    session = make_session(reply)
    patch = select(session, emit=emit)
    assert chosen(patch) == [0, 1]
    assert len(session.asked) == 2
    assert patch.ranking_details is not None
    assert patch.ranking_details["fallback"] is True
    ((kind, data),) = seen
    assert kind == "ranking_fallback"
    assert data["reason"].startswith("ReplyError: ")


def test_ignored_entries_are_reported(make_session: Any, events: Any) -> None:
    seen, emit = events
    select(make_session({"selected_indices": [True, 99, 2]}), emit=emit)
    assert seen == [
        ("ranking_ignored", {"stage": "ranking", "ignored": ["'True' is not a whole number", "99 is out of range"]})
    ]


def test_a_failed_call_keeps_the_first_edits(make_session: Any) -> None:
    patch = select(make_session(TransientError("503")), 3)
    assert chosen(patch) == [0, 1, 2]


def test_a_fatal_error_is_raised(make_session: Any) -> None:
    with pytest.raises(AuthError):
        select(make_session(AuthError("401")))


@pytest.mark.parametrize("text", ["١", "1e0", "0x1", "", "--1", "1" * 400])
def test_text_that_is_no_plain_number_is_refused(text: str) -> None:
    with pytest.raises(ReplyError, match="names no item"):
        parse_ranking({"selected_indices": [text]}, 6)


def test_huge_and_infinite_numbers_are_refused() -> None:
    with pytest.raises(ReplyError):
        parse_ranking({"selected_indices": [float("inf"), float("nan"), 10**400]}, 6)


def test_suggestions_are_ranked_with_their_own_prompt(make_session: Any) -> None:
    session = make_session({"selected_indices": [1]})
    rows = tuple(Suggestion("clarify", f"T{i}", f"M{i}", f"I{i}", "low", i) for i in range(3))
    patch = select(session, 1, Patch(rows), mode=SUGGESTIONS)
    assert patch.edits == rows[1:2]
    (call,) = session.asked
    assert call.system == load_prompt("ranking_rewrite")
    assert "[2] clarify, priority low, support 2\ntitle: T2\nmotivation: M2\ninstruction: I2" in call.last_user
    assert "at most 1 of the 3 suggestions" in call.last_user
    assert call.material.edits == ()

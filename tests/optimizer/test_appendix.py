"""The notes of a skill: merged without doubles, replaced as a whole, compacted by the optimizer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.errors import AuthError, TransientError
from skillopt.optimizer.appendix import (
    CONSOLIDATE_TOKENS,
    LONGEST_NOTE,
    add_notes,
    consolidate_appendix_notes,
    has_appendix_field,
    notes_of,
    with_notes,
)
from skillopt.skill.document import Skill
from skillopt.skill.edits import apply_edits
from skillopt.types import Edit

PLAIN = Skill.parse("---\nname: x\n---\n# Skill\n\n- A rule.\n")
SLOW = "<!-- SLOW_UPDATE_START -->\nGo slowly.\n<!-- SLOW_UPDATE_END -->\n"


def test_an_empty_appendix_is_added_once() -> None:
    skill = with_notes(PLAIN, ())
    assert has_appendix_field(skill.text)
    assert notes_of(skill) == ()
    assert with_notes(skill, ()).text == skill.text
    assert skill.body.strip() == PLAIN.body.strip()


def test_notes_are_added_without_doubles() -> None:
    once = add_notes(PLAIN, ["Mind the unit.", "mind the unit", "  ", "Check  the sign"])
    assert once.added == 2
    assert notes_of(once.skill) == ("Mind the unit.", "Check the sign")
    twice = add_notes(once.skill, ["MIND THE UNIT;"])
    assert twice.added == 0
    assert twice.skill.text == once.skill.text


def test_a_note_that_is_no_reminder_is_left_out() -> None:
    merged = add_notes(PLAIN, ["x" * (LONGEST_NOTE + 1), "short"])
    assert (merged.added, merged.too_long) == (1, 1)


def test_notes_and_slow_update_live_side_by_side_and_edits_reach_neither() -> None:
    skill = add_notes(Skill.parse(PLAIN.text + "\n" + SLOW), ["Mind the unit."]).skill
    edited = apply_edits(skill, [Edit("append", "- New."), Edit("delete", "", "Mind the unit.")])
    assert [row.status for row in edited.rows][1] == "skipped_protected_region"
    assert edited.skill.text.index("- New.") < edited.skill.text.index("SLOW_UPDATE_START")
    assert edited.skill.text.index("- New.") < edited.skill.text.index("APPENDIX_START")
    assert notes_of(edited.skill) == ("Mind the unit.",)
    assert "Go slowly." in edited.skill.text


def test_notes_can_be_replaced_as_a_whole() -> None:
    skill = add_notes(Skill.parse(PLAIN.text + "\n" + SLOW), ["a", "b", "c"]).skill
    shorter = with_notes(skill, ["d"])
    assert notes_of(shorter) == ("d",)
    assert shorter.body.strip() == skill.body.strip()
    assert "Go slowly." in shorter.text
    assert notes_of(with_notes(skill, [])) == ()


@given(st.lists(st.text(max_size=80), max_size=8))
def test_adding_is_idempotent_and_never_touches_the_body(notes: list[str]) -> None:
    once = add_notes(PLAIN, notes).skill
    assert add_notes(once, notes).skill.text == once.text
    assert once.body.strip() == PLAIN.body.strip()
    assert once.front_matter == PLAIN.front_matter


def test_the_optimizer_makes_the_list_shorter(make_session: Callable[..., Any]) -> None:
    session = make_session({"appendix_notes": ["Both.", "both"]})
    assert consolidate_appendix_notes(["one", "two", "three"], session=session) == ("Both.",)
    call = session.asked[0]
    assert call.stage == "appendix_consolidate"
    assert call.max_completion_tokens == CONSOLIDATE_TOKENS
    assert "1. one\n2. two\n3. three" in call.messages[1]["content"]


@pytest.mark.parametrize(
    "answer",
    [
        {"appendix_notes": []},
        {"appendix_notes": ["a", "b"]},
        {"appendix_notes": ["a", "b", "c"]},
        {"appendix_notes": [" "]},
        {"appendix_notes": "a"},
        {"notes": ["a"]},
        "no JSON at all",
    ],
)
def test_what_is_not_strictly_shorter_is_not_used(
    make_session: Callable[..., Any], events: tuple[list[Any], Callable[..., None]], answer: Any
) -> None:
    seen, emit = events
    assert consolidate_appendix_notes(["one", "two"], session=make_session(answer), emit=emit) is None
    unusable = not (isinstance(answer, dict) and isinstance(answer.get("appendix_notes"), list))
    assert [kind for kind, _ in seen] == (["consolidation_failed"] if unusable else [])


def test_a_failed_call_changes_nothing_but_a_wrong_key_ends_the_run(make_session: Callable[..., Any]) -> None:
    assert consolidate_appendix_notes(["one", "two"], session=make_session(TransientError("down"))) is None
    with pytest.raises(AuthError):
        consolidate_appendix_notes(["one", "two"], session=make_session(AuthError("key")))

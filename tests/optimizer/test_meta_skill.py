"""The optimizer's notes for itself: what it is asked with, and how the notes are handed on."""

from __future__ import annotations

from typing import Any

from skillopt.errors import TransientError
from skillopt.optimizer.comparison import Attempt, Pair
from skillopt.optimizer.epoch_advice import Advice, EpochChange
from skillopt.optimizer.meta_skill import format_meta_skill_context, run_meta_skill
from skillopt.prompts.sections import CONTEXT_TOKENS
from skillopt.prompts.tokens import count_tokens
from skillopt.skill.document import Skill

PAIR = Pair("item-1", "the task", "regressed", Attempt(1, 1.0, "a", ""), Attempt(0, 0.0, "b", "wrong"))
CHANGE = EpochChange(Skill.parse("- Old rule.\n"), Skill.parse("- New rule.\n"), (PAIR,))


def test_one_call_sees_both_skills_the_notes_and_the_pairs(make_session: Any) -> None:
    session = make_session({"reasoning": "r", "meta_skill_content": "- Short rules work."})
    assert run_meta_skill(CHANGE, session=session, memory="- Earlier.") == Advice("- Short rules work.", "r", 1)
    (call,) = session.asked
    assert call.stage == "meta_skill"
    places = [call.last_user.find(text) for text in ("- Old rule.", "- New rule.", "- Earlier.", "the task")]
    assert -1 not in places
    assert places == sorted(places)


def test_a_failed_call_gives_no_notes_and_says_why(make_session: Any) -> None:
    session = make_session(TransientError("busy"))
    advice = run_meta_skill(CHANGE, session=session)
    assert (advice.content, advice.errors) == ("", ("part 1 of 1: TransientError: busy",))
    assert "There are none yet." in session.asked[0].last_user


def test_the_context_is_the_notes_within_their_room() -> None:
    assert format_meta_skill_context("  \n") == ""
    assert format_meta_skill_context(" - A note.\n") == "- A note."
    assert count_tokens(format_meta_skill_context("word " * 9000)) <= CONTEXT_TOKENS

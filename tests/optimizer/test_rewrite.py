"""Writing the whole body anew."""

from __future__ import annotations

from typing import Any

import pytest

from skillopt.errors import AuthError, ReplyError, TransientError
from skillopt.model.values import ModelReply
from skillopt.optimizer.rewrite import (
    Rewrite,
    RewriteSettings,
    first_candidate,
    parse_rewrite,
    rewrite_skill_from_suggestions,
)
from skillopt.skill.document import Skill
from skillopt.types import Patch, SkillCandidate, Suggestion

SKILL = Skill.parse("# Cities\n\n- A rule.\n\n<!-- APPENDIX_START -->\nhidden\n<!-- APPENDIX_END -->\n")
PATCH = Patch((Suggestion("clarify", "Say the rule", "unclear", "Write it out.", "high", 4, "failure"),))
REPLY = {"reasoning": "r", "change_summary": ["a", 3], "new_skill": "# Towns  \n\n"}


def rewrite(session: Any, patch: Patch = PATCH, **settings: Any) -> Rewrite:
    return rewrite_skill_from_suggestions(
        SKILL, patch, session=session, settings=RewriteSettings(**settings), step_buffer_context="MEMORY"
    )


def test_one_call_writes_the_body(make_session: Any) -> None:
    session = make_session(REPLY)
    assert rewrite(session, max_completion_tokens=64000, effort="high") == Rewrite("# Towns\n", "r", ("a",))
    (call,) = session.asked
    assert (call.stage, call.max_completion_tokens, call.effort) == ("rewrite", 64000, "high")
    places = [call.last_user.find(text) for text in ("- A rule.", "Suggestions (1)", "Write it out.", "MEMORY")]
    assert -1 not in places
    assert places == sorted(places)
    assert "hidden" not in call.last_user


def test_an_own_prompt_is_used_and_no_effort_means_that_of_the_role(make_session: Any) -> None:
    session = make_session(REPLY)
    rewrite(session, prompt="OWN")
    assert (session.asked[0].system, session.asked[0].effort) == ("OWN", "")


def test_no_suggestions_no_call(make_session: Any) -> None:
    session = make_session()
    assert rewrite(session, Patch()) == Rewrite(error="there are no suggestions")
    assert session.asked == []


@pytest.mark.parametrize("reply", ["no", {"new_skill": ""}, {"new_skill": ["a"]}, {}, TransientError("503")])
def test_a_failure_says_why(make_session: Any, reply: Any) -> None:
    made = rewrite(make_session(reply))
    assert made.new_skill == ""
    assert made.error.startswith(("ReplyError: ", "TransientError: "))


def test_a_text_that_was_cut_off_is_asked_for_again_and_never_used(make_session: Any) -> None:
    session = make_session(ModelReply('{"new_skill": "# Tow', "length"))
    assert rewrite(session, max_completion_tokens=100).new_skill == ""
    assert [call.max_completion_tokens for call in session.asked] == [100, 200]


def test_a_fatal_error_is_raised(make_session: Any) -> None:
    with pytest.raises(AuthError):
        rewrite(make_session(AuthError("401")))


def test_a_summary_that_is_no_list_is_empty() -> None:
    assert parse_rewrite({"new_skill": "x", "change_summary": "all"}).change_summary == ()
    with pytest.raises(ReplyError, match="new_skill"):
        parse_rewrite({"new_skill": " \n"})


def test_the_first_candidate_with_a_text_is_taken() -> None:
    rows = (SkillCandidate("a", (), " "), SkillCandidate("b", ("s",), "# B"), SkillCandidate("c", (), "# C"))
    made = first_candidate(Patch(rows, "why"))
    assert made == Rewrite("# B\n", "why", ("s",), candidate=rows[1])
    assert first_candidate(Patch(rows[:1])).error == "no candidate holds a text"

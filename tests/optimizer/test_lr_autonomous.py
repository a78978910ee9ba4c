"""The optimizer decides how many items a step applies."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.errors import AuthError, ReplyError, TransientError
from skillopt.optimizer.lr_autonomous import (
    Evidence,
    LrDecision,
    decide_autonomous_learning_rate,
    parse_learning_rate,
    read_number,
)
from skillopt.prompts.modes import SUGGESTIONS
from skillopt.skill.document import Skill
from skillopt.types import Edit, Patch, Suggestion

SKILL = Skill.parse("# Cities\n\n- Answer in a sentence.\n")
PATCH = Patch(tuple(Edit("append", f"rule {i}", "", i + 1, "failure") for i in range(5)))


def decide(session: Any, patch: Patch = PATCH, **options: Any) -> LrDecision:
    evidence = options.pop("evidence", Evidence(8, 0.25, 0.3125, "MEMORY", "ADVICE"))
    return decide_autonomous_learning_rate(patch, SKILL, evidence, session=session, **{"scheduled": 2, **options})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, 3),
        (0, 0),
        (-2, -2),
        (3.0, 3),
        (2.7, 2),
        (1e-7, 0),
        ("4", 4),
        ("about 3 edits, not 5", 3),
        ("-1", -1),
        pytest.param(10**400, 999_999_999, id="huge"),
        (-(10**12), -999_999_999),
        pytest.param("9" * 400, 999_999_999, id="huge text"),
        (True, None),
        (False, None),
        (None, None),
        ([3], None),
        ("many", None),
        ("", None),
        (float("nan"), None),
        (float("inf"), None),
    ],
)
def test_numbers(value: object, expected: int | None) -> None:
    assert read_number(value) == expected


@given(st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers()))
def test_anything_is_a_number_or_refused(value: object) -> None:
    try:
        reply = parse_learning_rate({"learning_rate": value, "risk_notes": value, "confidence": value})
    except ReplyError as error:
        assert error.outcome == "wrong_shape"
    else:
        assert not isinstance(value, bool)
        assert type(reply.learning_rate) is int


@pytest.mark.parametrize(
    ("rate", "decided", "clamped"), [(3, 3, False), (0, 0, False), (-4, 0, True), (99, 5, True), ("2 or so", 2, False)]
)
def test_the_decision_lies_between_nothing_and_everything(
    make_session: Any, rate: object, decided: int, clamped: bool
) -> None:
    decision = decide(make_session({"learning_rate": rate}))
    assert (decision.learning_rate, decision.clamped, decision.fallback) == (decided, clamped, False)
    assert decision.available_update_items == 5


def test_what_is_kept_of_the_reply(make_session: Any) -> None:
    reply = {"learning_rate": 2, "reasoning": "r", "confidence": " HIGH ", "risk_notes": ["a", 3, " "]}
    decision = decide(make_session(reply))
    assert (decision.reasoning, decision.confidence, decision.risk_notes) == ("r", "high", ("a",))
    assert json.loads(decision.raw_response) == reply
    assert json.loads(json.dumps(decision.to_dict()))["risk_notes"] == ["a"]
    odd = parse_learning_rate({"learning_rate": 1, "confidence": "sure", "risk_notes": "one"})
    assert (odd.confidence, odd.risk_notes) == ("", ("one",))


def test_what_the_optimizer_is_shown(make_session: Any) -> None:
    session = make_session({"learning_rate": 1})
    suggestions = Patch((Suggestion("clarify", "T1", "M1", "I1", "high", 3), Suggestion("compress", "T2", "", "I2")))
    decide(session, suggestions, mode=SUGGESTIONS)
    (call,) = session.asked
    assert call.stage == "lr_autonomous"
    wanted = [
        "ADVICE",
        "Answer in a sentence",
        "tried with the skill: 8",
        "hard score: 0.250000",
        "soft score: 0.312500",
        "2 suggestions",
        "[0] clarify, priority high, support 3",
        "instruction: I1",
        "MEMORY",
    ]
    places = [call.last_user.find(text) for text in wanted]
    assert -1 not in places, wanted[places.index(-1)]
    assert places == sorted(places)


@pytest.mark.parametrize("count", [0, 1])
def test_no_call_when_there_is_nothing_to_decide(make_session: Any, count: int) -> None:
    session = make_session()
    decision = decide(session, Patch(PATCH.edits[:count]))
    assert (decision.learning_rate, decision.asked) == (count, False)
    assert session.asked == []


@pytest.mark.parametrize("reply", ["no", {"learning_rate": True}, {"rate": 3}, TransientError("503")])
@pytest.mark.parametrize(("scheduled", "kept"), [(2, 2), (0, 0), (999, 5)])
def test_without_an_answer_the_schedule_decides(
    make_session: Any, events: Any, reply: Any, scheduled: int, kept: int
) -> None:  # defect 9
    seen, emit = events
    decision = decide(make_session(reply), scheduled=scheduled, emit=emit)
    assert (decision.learning_rate, decision.fallback, decision.raw_learning_rate) == (kept, True, None)
    assert decision.error
    assert [kind for kind, _ in seen] == ["lr_fallback"]


def test_a_fatal_error_is_raised(make_session: Any) -> None:
    with pytest.raises(AuthError):
        decide(make_session(AuthError("401")))

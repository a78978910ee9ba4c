"""Faults of the skill and faults in following it: what analysts are asked and what of their replies is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.errors import ReplyError
from skillopt.gradient.reflect import AnalystPrompts, ReflectSettings, reflect
from skillopt.gradient.replies import parse_analyst
from skillopt.gradient.skill_aware import (
    SkillAware,
    augment_error_prompt,
    augment_success_prompt,
    extract_appendix_notes,
)
from skillopt.gradient.trajectories import GROUP_TOKENS
from skillopt.prompts import load_prompt
from skillopt.prompts.sections import CONTEXT_TOKENS, MEMORY_TOKENS, SKILL_TOKENS
from skillopt.prompts.tokens import count_tokens
from skillopt.skill.document import Skill
from skillopt.types import RolloutResult

EDIT = {"op": "append", "content": "- A rule."}
SKILL = Skill.parse("# Skill\n\n- Answer shortly.\n")


def result(item: str, hard: float) -> RolloutResult:
    return RolloutResult(id=item, hard=hard, soft=hard, trajectory=({"role": "assistant", "content": "42"},))


def reply(call: Any, notes: Any = ("Mind the unit.",)) -> Mapping[str, Any]:
    del call
    return {"patch": {"reasoning": "", "edits": [EDIT]}, "appendix_notes": list(notes)}


def run(session: Any, aware: SkillAware | None, prompts: AnalystPrompts | None = None) -> Any:
    settings = ReflectSettings(minibatch_size=2, skill_aware=aware)
    results = [result("a", 0), result("b", 1)]
    return reflect(results, SKILL, session=session, settings=settings, seed=1, prompts=prompts)


def prompts_of(session: Any) -> list[tuple[str, str]]:
    return sorted((call.messages[0]["content"], call.messages[1]["content"]) for call in session.asked)


def test_off_is_the_plain_prompt_to_the_byte(make_session: Callable[..., Any]) -> None:
    session = make_session(reply)
    reflection = run(session, None)
    systems = [system for system, _ in prompts_of(session)]
    assert systems == sorted(load_prompt(name) for name in ("analyst_error", "analyst_success"))
    assert not any("eminders" in user for _, user in prompts_of(session))
    assert [patch.appendix_notes for patch in reflection.patches] == [(), ()]


def test_on_is_the_plain_prompt_with_something_added(make_session: Callable[..., Any]) -> None:
    session = make_session(reply)
    reflection = run(session, SkillAware(notes=("Look at the sign.",)))
    success, error = (
        (text for text, _ in prompts_of(session))
        if "succeeded" in prompts_of(session)[0][0]
        else (text for text, _ in reversed(prompts_of(session)))
    )
    assert error.startswith(load_prompt("analyst_error").rstrip())
    assert success.startswith(load_prompt("analyst_success").rstrip())
    for word in ("Defect", "Lapse", "appendix_notes"):
        assert word in error
    for word in ("DISCOVERY", "OPTIMIZATION", "appendix_notes"):
        assert word in success
    assert all("- Look at the sign." in user for _, user in prompts_of(session))
    assert [patch.appendix_notes for patch in reflection.patches] == [("Mind the unit.",)] * 2


def test_notes_of_successes_can_be_muted(make_session: Callable[..., Any]) -> None:
    session = make_session(reply)
    reflection = run(session, SkillAware(success_notes=False, notes=("Look.",)))
    assert {p.source_type: p.appendix_notes for p in reflection.patches} == {
        "failure": ("Mind the unit.",),
        "success": (),
    }
    success = augment_success_prompt("P", takes_notes=False)
    assert "DISCOVERY" in success
    assert "appendix_notes" not in success


def test_prompts_of_an_environment_are_augmented_too(make_session: Callable[..., Any]) -> None:
    session = make_session(reply)
    run(session, SkillAware(), AnalystPrompts(error="Own words.", success="Own too."))
    assert sorted(system for system, _ in prompts_of(session)) == sorted(
        [augment_error_prompt("Own words."), augment_success_prompt("Own too.")]
    )


def test_a_reply_with_notes_alone_is_carried_on_without_a_repair(make_session: Callable[..., Any]) -> None:
    session = make_session({"failure_summary": [], "appendix_notes": "Mind the unit."})
    reflection = run(session, SkillAware())
    assert len(session.asked) == 2
    assert [(p.patch.edits, p.appendix_notes) for p in reflection.patches] == [((), ("Mind the unit.",))] * 2
    assert not reflection.failed


def test_a_reply_with_notes_alone_is_no_reply_when_nobody_asked(make_session: Callable[..., Any]) -> None:
    session = make_session({"appendix_notes": ["Mind the unit."]})
    assert len(run(session, None).failed) == 2


@pytest.mark.parametrize("patch", [None, {"edits": []}])
def test_no_notes_and_no_edits_leave_nothing(make_session: Callable[..., Any], patch: Any) -> None:
    session = make_session({"patch": patch, "appendix_notes": []} if patch else {"edits": [], "appendix_notes": None})
    assert run(session, SkillAware()).patches == ()


def test_no_patch_and_no_notes_is_refused() -> None:
    with pytest.raises(ReplyError):
        parse_analyst({"appendix_notes": [" "]}, takes_notes=True)


@pytest.mark.parametrize(
    ("value", "notes"),
    [
        (["one", " two  words ", "one"], ("one", "two words")),
        ("one\nline", ("one line",)),
        ([{"note": "a"}, {"content": "b"}, {"text": "c"}, {"note": " ", "content": "d"}], ("a", "b", "d")),
        ({"note": "a"}, ("a",)),
        ([1, None, ["x"], True], ()),
        (None, ()),
        (7, ()),
        ("", ()),
        (["a\u200bb"], ("ab",)),
        ([f"note {n}" for n in range(99)], tuple(f"note {n}" for n in range(16))),
    ],
)
def test_what_can_be_read_as_notes(value: object, notes: tuple[str, ...]) -> None:
    assert extract_appendix_notes({"appendix_notes": value}) == notes


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda s: st.lists(s) | st.dictionaries(st.sampled_from(["note", "content", "x"]), s),
    )
)
def test_anything_is_read_without_an_error(value: object) -> None:
    notes = extract_appendix_notes({"appendix_notes": value})
    assert all(note == " ".join(note.split()) and note for note in notes)
    assert extract_appendix_notes({}) == ()


def test_an_analyst_prompt_has_a_largest_size_whatever_goes_in(make_session: Callable[..., Any]) -> None:
    session = make_session({"edits": []})
    long = "many words " * 60_000
    huge = [
        RolloutResult(id=f"i{n}", question=long, reference_text=long, trajectory=({"role": "user", "content": long},))
        for n in range(30)
    ]
    reflect(
        huge,
        Skill.parse(long),
        session=session,
        settings=ReflectSettings(minibatch_size=30, skill_aware=SkillAware(notes=(long,))),
        seed=1,
        step_buffer_context=long,
        meta_skill_context=long,
    )
    [call] = session.asked
    limit = SKILL_TOKENS + MEMORY_TOKENS + 2 * CONTEXT_TOKENS + GROUP_TOKENS
    assert limit - 3_000 < count_tokens(call.messages[1]["content"]) < limit + 2_000

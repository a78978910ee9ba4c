"""Whatever a provider says and however often it is asked: edits within the budget, and nothing paid for twice."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skillopt_sleep.backends import CallCache, HandoffBackend
from skillopt_sleep.backends.faults import ProviderFault
from skillopt_sleep.backends.judging import read_grade
from skillopt_sleep.backends.reflecting import read_edits
from skillopt_sleep.errors import CallFailed, PendingCalls
from skillopt_sleep.types import TaskRecord

VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["op", "content", "anchor", "rationale", "edits"]), inner, max_size=4),
    ),
    max_leaves=10,
)


@given(st.one_of(st.text(max_size=60), st.lists(VALUES, max_size=5).map(json.dumps)), st.integers(0, 4))
def test_a_reply_gives_edits_that_can_be_applied_and_never_more_than_allowed(reply: str, budget: int) -> None:
    edits = read_edits(reply, target="memory", edit_budget=budget)
    assert len(edits) <= budget
    for edit in edits:
        assert edit.target == "memory"
        assert edit.content or (edit.op == "delete" and edit.anchor)
        assert edit.op != "replace" or edit.anchor


NUMBERS = st.one_of(st.integers(), st.floats(), st.floats(-0.5, 1.5), st.text(alphabet="0123456789./%-e ", max_size=6))


@given(st.one_of(VALUES, NUMBERS), st.booleans())
def test_whatever_a_judge_says_is_a_grade_from_0_to_1_or_none(score: object, reason: bool) -> None:
    reply = json.dumps({"score": score, **({"reason": "because"} if reason else {})})
    try:
        hard, soft, _ = read_grade(reply)
    except CallFailed as error:
        assert error.kind == "unparsed"
        return
    assert 0.0 <= soft <= 1.0
    assert hard == float(soft >= 0.8)
    assert not isinstance(score, bool)
    if isinstance(score, (int, float)):
        assert abs(soft - score) < 1e-5


TASK = TaskRecord("t1", "/p", "Summarise the paper", reference_kind="rubric")
ASKED = st.tuples(st.integers(0, 2), st.integers(0, 1), st.booleans())
STEPS = st.lists(st.one_of(ASKED, st.just("restart")), max_size=14)


@settings(
    max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)  # the fixture is a class
@given(STEPS, st.sets(st.integers(1, 6), max_size=3))
def test_nothing_is_paid_for_twice_whatever_fails_and_whenever_it_starts_again(
    tmp_path_factory: pytest.TempPathFactory, scripted: Any, steps: list[Any], broken: set[int]
) -> None:
    path = tmp_path_factory.mktemp("c") / "calls.jsonl"
    sent = 0

    def answer(_: object) -> str | Exception:
        nonlocal sent
        sent += 1
        return ProviderFault("declined", kind="refused") if sent in broken else f"answer {sent}"

    def start() -> Any:
        return scripted(answer, cache=CallCache(path))

    backend = start()
    known: dict[tuple[int, int, int], str] = {}
    turns: Counter[tuple[int, int]] = Counter()
    for step in steps:
        if step == "restart":
            backend, turns = start(), Counter()
            continue
        which, sample, fresh = step
        turns[which, sample] += int(fresh)
        key = (which, sample, turns[which, sample] if fresh else 0)
        before = sent
        try:
            said = backend.attempt(TASK, f"skill {which}", "", sample, fresh=fresh)
        except CallFailed:
            assert key not in known
            turns[which, sample] -= int(fresh)
            continue
        if key in known:
            assert (said, sent) == (known[key], before)
        known[key] = said
    assert len(set(known.values())) == len(known)


@given(st.lists(st.text(max_size=12), min_size=1, max_size=5), st.data())
def test_an_answer_in_a_folder_answers_its_own_prompt_and_no_other(
    tmp_path_factory: pytest.TempPathFactory, prompts: list[str], data: st.DataObject
) -> None:
    place = tmp_path_factory.mktemp("h") / "handoff"
    backend = HandoffBackend(handoff_dir=str(place))
    keys: dict[str, str] = {}
    for prompt in prompts:
        with pytest.raises(PendingCalls) as pending:
            backend.call(prompt)
        (keys[prompt],) = pending.value.pending
    assert len(set(keys.values())) == len(set(keys))
    chosen = data.draw(st.sampled_from(prompts))
    backend.folder.write_answer(keys[chosen], "the answer")
    again = HandoffBackend(handoff_dir=str(place))
    for prompt in prompts:
        if prompt == chosen:
            assert again.call(prompt) == "the answer"
        else:
            with pytest.raises(PendingCalls):
                again.call(prompt)

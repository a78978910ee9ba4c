"""bootstrap_demos: training examples become edits, and every stage gets the JSON that it would get from a model."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.errors import InterruptedRunError
from skillopt.model.backends.bootstrap_demos import complete, count_demos, demo_of, pick_various
from skillopt.model.values import CallContext, Material, ModelCall
from skillopt.types import Edit, RoleConfig, RolloutResult
from skillopt.utils.cancel import CancelToken

PROMPT = "Text: {text}\nField: {field}\nAnswer:"


def failed(item_id: str, field: str, text: str, reference: str) -> RolloutResult:
    return RolloutResult(
        id=item_id,
        task_type=field,
        question=text,
        reference_text=reference,
        target_user_prompt=PROMPT.format(text=text, field=field),
        predicted_answer="no",
    )


OSLO = failed("1", "city", "Anna went to Oslo.", "Oslo")
ROME = failed("2", "city", "Tom and Maria Silva went to Rome.", "Rome")
BAD = failed("3", "sentiment", "The soup was cold.", "negative")
WORSE = failed("4", "sentiment", "Bad soup.", "negative")
GOOD = failed("5", "sentiment", "The soup was hot, and we loved it all.", "positive")
DATE = failed("6", "date", "It was on 3 May 2011.", "2011-05-03")


def ask(stage: str, material: Material | None, **settings: object) -> dict:
    role = RoleConfig("optimizer", "bootstrap_demos", "bootstrap", settings={"max_demos": 8, **settings})
    reply = complete(ModelCall((), stage=stage, material=material), role, CallContext(timeout=60.0))
    assert reply.finish_reason == "stop"
    return json.loads(reply.text)


def contents(body: dict) -> list[str]:
    assert all(edit["op"] == "append" for edit in body["patch"]["edits"])
    return [edit["content"] for edit in body["patch"]["edits"]]


def test_a_worked_example_is_the_prompt_continued_by_its_reference():
    body = ask("analyst", Material(failures=(OSLO,), budget=4))
    assert contents(body) == ["Text: Anna went to Oslo.\nField: city\nAnswer: Oslo"]
    assert body["batch_size"] == 1
    assert body["failure_summary"] == [
        {"failure_type": "city", "count": 1, "description": "The answer differs from the reference."}
    ]


def test_each_task_type_comes_once_before_any_comes_twice_and_short_ones_come_first():
    body = ask("analyst", Material(failures=(GOOD, ROME, WORSE, BAD, OSLO, DATE), budget=4))
    kinds = [content.splitlines()[1] for content in contents(body)]
    assert kinds[:3] == ["Field: city", "Field: sentiment", "Field: date"]
    assert "Oslo" in contents(body)[0] and "Bad soup." in contents(body)[1]


def test_among_one_task_type_an_answer_that_was_not_shown_comes_first():
    body = ask("analyst", Material(failures=(WORSE, BAD, GOOD), budget=2))
    assert [content.rsplit(" ", 1)[1] for content in contents(body)] == ["negative", "positive"]


def test_a_kind_that_the_skill_lacks_comes_before_one_that_it_has():
    skill = "Text: Lima is far.\nField: city\nAnswer: Lima"
    body = ask("analyst", Material(failures=(OSLO, GOOD), budget=1, skill=skill))
    assert contents(body)[0].endswith("positive")


def test_examples_of_the_skill_are_not_proposed_again():
    skill = demo_of(OSLO).text
    assert contents(ask("analyst", Material(failures=(OSLO,), budget=4, skill=skill))) == []


def test_never_more_edits_than_the_budget_nor_examples_than_max_demos():
    everything = (OSLO, ROME, BAD, WORSE, GOOD, DATE)
    assert len(contents(ask("analyst", Material(failures=everything, budget=3)))) == 3
    skill = "\n\n".join(demo_of(result).text for result in (OSLO, BAD))
    body = ask("analyst", Material(failures=everything, budget=4, skill=skill), max_demos=3)
    assert len(contents(body)) == 1
    assert contents(ask("analyst", Material(failures=everything, budget=4, skill=skill), max_demos=2)) == []


def test_demos_per_edit_bundles_examples():
    body = ask("analyst", Material(failures=(OSLO, ROME, BAD, DATE, GOOD), budget=2), demos_per_edit=2)
    assert [content.count("Answer:") for content in contents(body)] == [2, 2]


def test_items_without_a_usable_reference_are_left_out():
    two_lines = failed("8", "list", "Name two.", "a\nb")
    nothing = failed("9", "city", "Nowhere.", "")
    assert contents(ask("analyst", Material(failures=(two_lines, nothing), budget=4))) == []


def test_the_first_of_several_accepted_answers_is_shown():
    assert demo_of(failed("7", "city", "NYC it is.", "New York | NYC")).text.endswith("Answer: New York")


def test_rules_are_deduced_only_when_asked_for_and_only_from_clear_shapes():
    dates = tuple(failed(f"d{n}", "date", f"On {n} May.", f"2011-05-0{n}") for n in range(1, 5))
    cities = tuple(failed(f"c{n}", "city", f"Place {n}", name) for n, name in enumerate(("Oslo", "Rome", "Lima")))
    material = Material(failures=(*dates, *cities, BAD, WORSE, GOOD), budget=3)
    rules = contents(ask("analyst", material, rules=True))
    assert rules[:2] == [
        "- date: answer in the form YYYY-MM-DD.",
        "- sentiment: answer with one of: negative, positive.",
    ]
    assert rules[2].startswith("Text:")
    assert not any(text.startswith("-") for text in contents(ask("analyst", material)))
    again = Material(failures=dates, budget=1, skill=rules[0])
    assert contents(ask("analyst", again, rules=True))[0].startswith("Text:")


def test_merge_joins_repetitions_and_adds_up_their_support():
    edits = (Edit("append", "a"), Edit("append", "b", support_count=2), Edit("append", "a", support_count=3))
    body = ask("merge", Material(edits=edits))
    assert [(edit["content"], edit["support_count"]) for edit in body["edits"]] == [("a", 4), ("b", 2)]


def test_merge_and_ranking_put_different_kinds_first():
    edits = tuple(Edit("append", demo_of(result).text) for result in (OSLO, ROME, BAD, WORSE, DATE))
    merged = ask("merge", Material(edits=edits))["edits"]
    assert [edit["content"].splitlines()[1][7:] for edit in merged[:3]] == ["city", "sentiment", "date"]
    assert len(merged) == 5
    assert ask("ranking", Material(edits=edits, budget=3))["selected_indices"] == [0, 2, 4]
    skill = "Text: x\nField: city\nAnswer: Lima"
    assert ask("ranking", Material(edits=edits, budget=2, skill=skill))["selected_indices"] == [2, 4]


@pytest.mark.parametrize("stage", ["analyst", "merge", "ranking", "slow_update", ""])
def test_no_material_is_answered_with_nothing(stage):
    body = ask(stage, None)
    assert not body.get("edits")
    assert not body.get("patch", {}).get("edits")
    assert not body.get("selected_indices")


def test_a_cancelled_call_is_not_answered():
    token = CancelToken()
    token.cancel()
    with pytest.raises(InterruptedRunError):
        complete(ModelCall(()), RoleConfig("optimizer", "bootstrap_demos", ""), CallContext(timeout=60.0, cancel=token))


def test_examples_are_counted_by_the_shared_last_line_else_by_paragraph():
    demos = [demo_of(OSLO), demo_of(DATE)]
    assert count_demos("# Title\n\nText: x\nAnswer: y\n\nText: z\nAnswer: w\n", demos) == 2
    plain = [demo_of(RolloutResult(id=str(n), question=f"{n} and 1?", reference_text="1")) for n in (1, 2)]
    assert count_demos("3 and 1? 4\n\n4 and 1? 5\n", plain) == 2
    assert count_demos("", demos) == 0


@given(
    texts=st.lists(st.text(alphabet="ab\n ", max_size=6), max_size=8), count=st.integers(-1, 10), skill=st.text("ab\n")
)
def test_pick_various_gives_each_number_at_most_once(texts, count, skill):
    chosen = pick_various(texts, count, skill)
    assert len(chosen) == len(set(chosen)) == min(max(0, count), len(texts))
    assert all(0 <= number < len(texts) for number in chosen)
    assert chosen == pick_various(texts, count, skill)

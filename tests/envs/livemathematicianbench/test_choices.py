"""Every form of choices that the data have, and the shuffle of the published rule."""

from __future__ import annotations

import hashlib
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.envs.livemathematicianbench.choices import (
    MissingPartError,
    read_choices,
    read_correct,
    read_question,
    shuffle_choices,
)
from skillopt.errors import DataError

AB = [{"label": "A", "text": "x = 1"}, {"label": "B", "text": "x = 2"}]


@pytest.mark.parametrize(
    "value",
    [
        AB,
        ["x = 1", "x = 2"],
        {"A": "x = 1", "b": "x = 2"},
        [{"content": "x = 1"}, {"label": "(B)", "content": " x = 2 "}],
        [{"label": "a.", "text": "x = 1"}, "x = 2"],
    ],
)
def test_every_form_of_choices(value: Any) -> None:
    assert read_choices(value, "item 'i'") == AB


def test_choices_without_labels_go_beyond_g() -> None:
    choices = read_choices([f"choice {n}" for n in range(10)], "item 'i'")
    assert [choice["label"] for choice in choices] == list("ABCDEFGHIJ")


def test_numbers_are_texts_too() -> None:
    assert read_choices([4, 2.5], "item 'i'") == [{"label": "A", "text": "4"}, {"label": "B", "text": "2.5"}]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "field 'choices' is missing or empty"),
        ([], "field 'choices' is missing or empty"),
        ("A) one B) two", "field 'choices' is not a list"),
        (["x"] * 27, "at most 26"),
        ([{"label": "A", "text": "x"}, {"label": "a", "text": "y"}], "two choices with the label 'A'"),
        (["x", ""], "choice B: there is no text"),
        ([{"label": "A"}], "choice A: there is no text"),
        ([{"label": "first", "text": "x"}], "label 'FIRST'"),
    ],
)
def test_choices_that_cannot_be_shown_are_refused(value: Any, words: str) -> None:
    with pytest.raises(DataError, match=f"item 'i': .*{words}|{words}"):
        read_choices(value, "item 'i'")


@pytest.mark.parametrize(
    ("value", "label"),
    [
        ("B", "B"),
        ("(b)", "B"),
        ("x = 2", "B"),
        ({"label": "B", "text": "x = 2"}, "B"),
        ({"label": "B"}, "B"),
        ({"text": "x  =  2"}, "B"),
        ({"label": "B", "text": "$x = 2$"}, "B"),  # written in another way
        ({"label": "C", "content": "x = 3"}, "C"),  # missing among the choices
        ({"label": "F", "text": "x = 1"}, "A"),
    ],
)
def test_every_form_of_the_right_choice(value: Any, label: str) -> None:
    assert read_correct(value, AB, "item 'i'")["label"] == label


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "field 'correct_choice' is missing or empty"),
        ({}, "field 'correct_choice' is missing or empty"),
        ("C", "field 'correct_choice' is 'C', which is none of the choices"),
        ({"label": "C"}, "is 'C', which is none of the choices"),
        ({"text": "x = 3"}, "is 'x = 3', which is none of the choices"),
        ({"label": "B", "text": "x = 1"}, "has label 'B' but the text of 'A'"),
    ],
)
def test_a_right_choice_that_is_none_is_refused(value: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        read_correct(value, AB, "item 'i'")


def test_a_right_choice_that_is_missing_is_put_in_its_place() -> None:
    mcq = {"question": "q", "choices": {"B": "x = 2", "C": "x = 3"}, "correct_choice": {"label": "A", "text": "x = 1"}}
    question, choices, correct = read_question({"id": "1", "mcq": mcq})
    assert (question, correct) == ("q", AB[0])
    assert [choice["label"] for choice in choices] == ["A", "B", "C"]


def test_a_question_may_stand_at_the_top_level() -> None:
    row = {"id": "1", "question": "q", "choices": ["x = 1", "x = 2"], "correct_choice": "B"}
    assert read_question(row) == ("q", AB, AB[1])
    with pytest.raises(MissingPartError, match="item '1': field 'question'"):
        read_question({**row, "question": ""})
    with pytest.raises(DataError, match="holds 1 choice"):
        read_question({**row, "choices": ["x = 2"], "correct_choice": "A"})
    with pytest.raises(DataError, match="holds 27 choice"):
        many = [f"x = {n}" for n in range(26)]
        read_question({**row, "choices": many, "correct_choice": {"label": "AA", "text": "x = 26"}})


def test_the_order_is_that_of_the_published_rule() -> None:
    row = {"id": "202511:7", "choices": [{"label": c, "text": f"t{c}"} for c in "ABCDE"]}
    row["correct_choice"] = row["choices"][3]
    shown = shuffle_choices(row, 42)
    seed = int(hashlib.sha256(b"42:202511:7").hexdigest()[:16], 16)
    order = list("ABCDE")
    random.Random(seed).shuffle(order)
    assert [choice["text"] for choice in shown["choices"]] == [f"t{label}" for label in order]
    assert [choice["label"] for choice in shown["choices"]] == list("ABCDE")
    assert shown["correct_choice"]["text"] == "tD"
    assert row["correct_choice"]["label"] == "D"  # the row itself stays


@given(st.lists(st.text(min_size=1), min_size=2, max_size=26), st.integers(), st.text(max_size=8), st.data())
def test_shuffling_moves_labels_and_keeps_texts(texts: list[str], seed: int, item_id: str, data: st.DataObject) -> None:
    choices = [{"label": chr(65 + n), "text": text} for n, text in enumerate(texts)]
    right = data.draw(st.sampled_from(choices))
    row = {"id": item_id, "choices": choices, "correct_choice": right}
    shown = shuffle_choices(row, seed)
    assert sorted(choice["text"] for choice in shown["choices"]) == sorted(texts)
    assert [choice["label"] for choice in shown["choices"]] == [choice["label"] for choice in choices]
    assert shown["correct_choice"]["text"] == right["text"]
    assert shown["correct_choice"] in shown["choices"]
    assert shuffle_choices(row, seed) == shown

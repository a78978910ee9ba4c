"""Columns of DocVQA as fields of an item; plain values stay as they are."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.envs.docvqa.rows import normal_row, read_list, split_question
from skillopt.errors import DataError


def item(**row: Any) -> dict[str, Any]:
    return normal_row({"id": "a", "question": "Q?", "answer": "x", "image_path": "p.png", **row})


def test_columns_of_the_public_data() -> None:
    row = {
        "questionId": "49153",
        "question": "What is the date? document_path: data/docvqa_images/q49153_d14465.png",
        "answer": "['1/8/93', ' 1/8/93 ', '']",
        "docId": "14465",
        "ucsf_document_id": "ffbw0217",
        "ucsf_document_page_no": "1",
        "topic": "handwritten|form",
        "source_split": "validation",
        "question_types": "left out",
    }
    made = normal_row({**row, "id": "row-0123456789"})
    assert made == {
        "id": "49153",
        "questionId": "49153",
        "docId": "14465",
        "ucsf_document_id": "ffbw0217",
        "ucsf_document_page_no": "1",
        "source_split": "validation",
        "question": "What is the date?",
        "answers": ["1/8/93"],
        "image_paths": ["data/docvqa_images/q49153_d14465.png"],
        "task_type": "handwritten|form",
    }
    assert normal_row(made) == made


@pytest.mark.parametrize(
    "value", ["1,234", "1.50", "(1,2)", "007", "None", "$1,000", "[12]", "[sic]", "{'a': 1}", "'x'"]
)
def test_a_plain_value_is_the_answer_as_it_stands(value: str) -> None:  # W18
    assert item(answer=value)["answers"] == [value]


@pytest.mark.parametrize(
    ("value", "answers"),
    [
        ('["a", "b"]', ["a", "b"]),
        ("['a', \"it's\"]", ["a", "it's"]),
        ("['1/8/93' '1/8/94']", ["1/8/93", "1/8/94"]),  # as numpy prints arrays
        ("['a'\n 'b']", ["a", "b"]),
        ("['1,234', 1.50]", ["1,234", "1.50"]),
        ('["1", 1.50]', ["1", "1.50"]),
        (r"['O\'Neil', 'a\\b', 'caf\xe9']", ["O'Neil", "a\\b", "café"]),
        ('["a, b"]', ["a, b"]),
        (["a", " b ", "a", ""], ["a", "b"]),
        ([12, 1.5], ["12", "1.5"]),
        (12, ["12"]),
        ("[]", []),
        (None, []),
        ("  ", []),
        ([], []),
    ],
)
def test_a_list_is_a_list(value: Any, answers: list[str]) -> None:
    assert item(answer=value)["answers"] == answers


@pytest.mark.parametrize("column", ["answer", "answers", "ground_truth", "ground_truths"])
def test_each_usual_column_holds_the_answers(column: str) -> None:  # W18: `answers` was ignored
    row = {"id": "a", "question": "Q?", "image_path": "p.png", column: "['x', 'y']"}
    assert normal_row(row)["answers"] == ["x", "y"]


def test_an_answer_of_another_type_is_refused() -> None:
    with pytest.raises(DataError, match="item 'a': field 'answer' is an object"):
        item(answer={"text": "x"})
    with pytest.raises(DataError, match="item 'a': field 'answer' is a list"):
        item(answer=[["x"]])
    with pytest.raises(DataError, match="item 'a': field 'image_path'"):
        item(image_path=7)


def test_the_path_column_wins_over_the_mark_in_the_question() -> None:
    made = item(question="Q?\ndocument_path: other.png\nand more", image_path="own.png")
    assert (made["question"], made["image_paths"]) == ("Q?", ["own.png"])
    assert split_question("Which document path: left or right?") == ("Which document path: left or right?", "")
    assert split_question("Q? document_path:") == ("Q?", "")


def test_the_type_is_topic_else_category_else_the_benchmark() -> None:
    assert item(topic="form", category="x")["task_type"] == "form"
    assert item(topic="", category="x")["task_type"] == "x"
    assert item(topic=["form", "layout"])["task_type"] == "form|layout"
    assert item()["task_type"] == "docvqa"


TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)


@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_lists_come_back_from_json_and_from_python(texts: list[str]) -> None:
    assert read_list(json.dumps(texts)) == texts
    assert read_list(json.dumps(texts, ensure_ascii=False)) == texts
    assert read_list(repr(texts)) == texts


@given(st.text(max_size=40))
def test_no_text_breaks_it(text: str) -> None:
    found = read_list(text)
    assert found is None or all(isinstance(entry, str) for entry in found)
    once = item(answer=text, question=text)
    assert normal_row(once)["answers"] == once["answers"]

from __future__ import annotations

import time

import pytest

from skillopt.errors import ConfigError
from skillopt.scoring import get_scorer

RIGHT = [
    ("B", ["B"]),
    ("b", ["B"]),
    ("(B)", ["B"]),
    ("(b)", ["B"]),
    ("B.", ["B"]),
    ("**B**", ["B"]),
    ("Answer: B", ["B"]),
    ("**Answer:** B", ["B"]),
    ("Answer:\nB", ["B"]),
    ("The answer is (B).", ["B"]),
    ("the correct option is b", ["B"]),
    ("the answer is option b", ["B"]),
    ("Answer: option B.\r\nThat is all.", ["B"]),
    ("I think it is B because it fits.", ["B"]),
    ("A is wrong, C is wrong.\nAnswer: B", ["B"]),
    (r"So \boxed{C}", ["C"]),
    ("The answer is a", ["A"]),
    ("Answer: A because Paris is the capital", ["A"]),
    ("B. Paris", ["B"]),
    ("B. Paris", ["Paris"]),
    ("(B) Paris", ["B. Paris"]),
    ("Paris", ["(B) Paris"]),
    ("paris.", ["B", "Paris"]),
    ("Vitamin A", ["(C) Vitamin A"]),
    ("Answer: the Paris", ["Paris"]),
]
WRONG = [
    ("C", ["B"]),
    ("B or C", ["B"]),
    ("B and C", ["B"]),
    ("(A) (B)", ["B"]),
    ("Answer: A\nAnswer: B", ["B"]),
    ("A dog", ["A"]),
    ("I think so", ["I"]),
    ("C. Paris", ["B. Paris"]),
    ("London", ["B. Paris"]),
    ("", ["B"]),
    ("B", ["Paris"]),
    ("Because", ["B"]),
]


@pytest.mark.parametrize(("answer", "references"), RIGHT)
def test_right(answer, references):
    assert get_scorer("choice")(answer, references).hard == 1


@pytest.mark.parametrize(("answer", "references"), WRONG)
def test_wrong(answer, references):
    assert get_scorer("choice")(answer, references).hard == 0


def test_two_letters_are_explained():
    assert "names B, C; give one letter only" in get_scorer("choice")("B or C", ["B"]).feedback


def test_letters_option():
    assert get_scorer("choice", letters="AB")("C", ["C"]).hard == 1
    assert get_scorer("choice", letters="AB")("it is C or B", ["B"]).hard == 1
    with pytest.raises(ConfigError, match="letters"):
        get_scorer("choice", letters="abc")


def test_long_hostile_texts_are_read_quickly():
    start = time.thread_time()
    for text in ("answer x " * 20_000, "answer" + " " * 100_000, "\\boxed{" * 10_000, "(" * 100_000, "A " * 50_000):
        assert get_scorer("choice")(text, ["B"]).hard == 0
    assert time.thread_time() - start < 20


@pytest.mark.parametrize(
    ("answer", "reference"),
    [("x = 2", "x = -2"), ("1.5", "15"), ("x < 2", "x > 2"), ("a + b", "a - b"), ("B) 5%", "A) 5"), (".5", "5")],
)
def test_signs_of_arithmetic_count(answer, reference):
    assert get_scorer("choice")(answer, [reference]).hard == 0


def test_a_sentence_is_not_read_by_its_first_letter():
    assert get_scorer("choice")("A good choice is B", ["A"]).hard == 0
    assert get_scorer("choice")("A good choice is B", ["B"]).hard == 1

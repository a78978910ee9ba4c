from __future__ import annotations

import pytest

from skillopt.errors import ConfigError, DataError
from skillopt.scoring import get_scorer


@pytest.mark.parametrize(
    ("answer", "reference", "hard", "f1"),
    [
        ("The Beatles", "beatles", 1, 1),
        ("Abraham Lincoln", "Lincoln", 0, 2 / 3),
        ("big big cat", "big cat", 0, 0.8),
        ("a", "A", 1, 1),
        ("New-York", "New York", 0, 0),
        ("U.S.A.", "usa", 1, 1),
        ("“Paris”", "Paris", 0, 0),
        ("café", "cafe", 0, 0),
        ("cafe\u0301", "caf\u00e9", 1, 1),
        ("the", "A", 0, 0),
        ("!!!", "???", 0, 0),
        ("  the   cat ", "Cat.", 1, 1),
    ],
)
def test_exact_and_f1_follow_the_squad_script(answer, reference, hard, f1):
    assert get_scorer("exact")(answer, [reference]).hard == hard
    assert get_scorer("f1")(answer, [reference]).soft == pytest.approx(f1)


def test_exact_forms():
    assert get_scorer("exact", normalize="casefold")(" The  CAT", ["the cat"]).hard == 1
    assert get_scorer("exact", normalize="casefold")("cat.", ["cat"]).hard == 0
    assert get_scorer("exact", normalize="none")("Cat", ["cat"]).hard == 0


def test_f1_threshold_decides_hard():
    assert get_scorer("f1", threshold=0.8)("big big cat", ["big cat"]).hard == 1
    assert get_scorer("f1")("cat big", ["big cat"]).hard == 1
    for bad in (0, 1.5, -1):
        with pytest.raises(ConfigError, match="threshold"):
            get_scorer("f1", threshold=bad)


@pytest.mark.parametrize(
    ("answer", "reference", "hard"),
    [
        ("I like the cat.", "Cat", 1),
        ("concatenate", "cat", 0),
        ("it costs 1.5 dollars", "5", 0),
        ("it costs 5.", "5", 1),
        ("it costs 5,000", "5", 0),
        ("C++ is old", "c++", 1),
        ("我在北京", "北京", 1),
        ("Paris", "Paris, France", 0),
    ],
)
def test_contains_whole_words(answer, reference, hard):
    assert get_scorer("contains")(answer, [reference]).hard == hard


def test_contains_parts_of_words_when_asked():
    assert get_scorer("contains", whole_words=False)("concatenate", ["cat"]).hard == 1
    assert "contains 'dog'" in get_scorer("contains")("cat", ["dog"]).feedback


def test_regex_from_reference_or_option():
    assert get_scorer("regex")("on 2024-05-01", [r"\d{4}-\d{2}-\d{2}"]).hard == 1
    assert get_scorer("regex", full_match=True)("on 2024", [r"\d{4}"]).hard == 0
    assert get_scorer("regex", pattern="^yes$")("no\nyes", []).hard == 1
    assert get_scorer("regex", pattern="YES", ignore_case=True)("yes", ["unused"]).hard == 1
    assert get_scorer("regex", pattern=".*")("", ["x"]).hard == 0


def test_an_invalid_pattern_is_refused_with_the_reason():
    with pytest.raises(ConfigError, match=r"'\(' is not a valid regular expression: missing \)"):
        get_scorer("regex", pattern="(")
    assert "not a valid" in get_scorer("regex")("x", ["("]).feedback
    with pytest.raises(DataError, match="item q7: the reference '\\('"):
        get_scorer("regex").check_references(["("], "item q7")


def test_references_are_checked_before_a_run():
    get_scorer("exact").check_references(["", "x"])
    get_scorer("regex", pattern="x").check_references([])
    with pytest.raises(DataError, match="item q1: there is no reference"):
        get_scorer("exact").check_references([], "item q1")


def test_feedback_is_short_and_names_both():
    feedback = get_scorer("exact")("y" * 5000, ["Paris"]).feedback
    assert feedback.startswith("expected 'Paris', got 'yyy") and len(feedback) < 130

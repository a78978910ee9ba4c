"""Edits that copy single tasks."""

from __future__ import annotations

from skillopt.gradient.leaks import find_leaks
from skillopt.types import Edit, RolloutResult

RESULTS = [
    RolloutResult("train-017", reference_text="The  Treaty of\nWestphalia"),
    RolloutResult("1", reference_text="Paris"),
    RolloutResult("red"),
]


def leaks(content: str) -> tuple[str, ...]:
    return find_leaks([Edit("append", "- harmless"), Edit("append", content)], RESULTS)


def test_ids_and_references_are_found() -> None:
    assert leaks("As in TRAIN-017, say so.") == ("edit 2 names item 'train-017'",)
    assert leaks("Answer: the treaty of westphalia.") == ("edit 2 holds the reference of item 'train-017'",)


def test_ordinary_words_are_not() -> None:
    assert leaks("Give 1 red answer such as Paris.") == ()
    assert leaks("See train-0171.") == ()

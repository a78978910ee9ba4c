"""Texts that are nothing but a refusal."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.scoring.refusal import is_refusal


@pytest.mark.parametrize(
    "text",
    [
        "> I'm sorry, I can't help with that.",
        ">" * 200 + " I'm sorry, I can't help with that.",
        "> > *Sorry*, but I can’t comply.",
        "**I’m sorry, but I cannot assist with that request.**",
        "# I'm not able to help with that",
        "I cannot help with that.",
        "I am unable to help with this request.",
        "Unfortunately, I won't be able to help.",
        "As an AI language model, I cannot provide that.",
        "I'm sorry, but as an AI I can't do that.",
        "I apologize, but I cannot fulfill this request.",
        "Sorry for the inconvenience, but I can't continue with this conversation.",
        "I must decline.",
        '"I\u2019m sorry, but I can\u2019t help with that."',
    ],
)
def test_refusals(text: str) -> None:  # C136
    assert is_refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        "Sorry, I can help: the answer is 4.",
        "I can help with that.",
        "",
        ">" * 200,
        "No",
        "42",
        "I'm sorry for the delay. The answer is Paris.",
        "Unfortunately, the test failed.",
        '{"edits": []}',
        "I'm sorry, I can't help with that. {\"edits\": []}",
        "I can't help with that:\n```json\n[]\n```",
        "The agent said: I'm sorry, I can't help with that.",
        "I cannot find the file in the trajectory; add a rule.",
        "I cannot find any answer in the log, so add a rule about it.",
        "I can't help with that. " + "But here is what I would change in the skill instead. " * 20,
    ],
)
def test_answers(text: str) -> None:
    assert not is_refusal(text)


@given(st.text(alphabet=" >*_i'mcantshelpwithrfuod.,:\n", max_size=200))
def test_marks_before_a_text_change_nothing(text: str) -> None:
    assert is_refusal(text) == is_refusal("> " * 20 + text)


@pytest.mark.parametrize("text", [">" * 10**6, "I'm sorry " * 10**5, "sorry for " + "a" * 10**6, " " * 10**6 + "x"])
def test_a_long_text_takes_no_time(text: str) -> None:
    begun = time.thread_time()
    assert not is_refusal(text)
    assert time.thread_time() - begun < 5

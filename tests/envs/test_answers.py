from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.envs.answers import AnswerTag, last_line


@pytest.mark.parametrize(
    ("reply", "last", "first", "outer"),
    [
        ("I think <answer> Paris </answer>.", "Paris", "Paris", "Paris"),
        ("<ANSWER>a\nb</Answer>", "a\nb", "a\nb", "a\nb"),
        ("<answer>A</answer><answer>B</answer>", "B", "A", "B"),
        ("<answer>a</answer> junk </answer>", "a", "a", "a</answer> junk"),
        ("<answer>no, wait <answer>two</answer>", "two", "two", "two"),
        ("<answer>one</answer> then <answer>cut off", "one", "one", None),
        ("<answer></answer>", "", "", ""),
        ("<answer>cut off", None, None, None),
        ("</answer> x <answer>", None, None, None),
        ("nothing", None, None, None),
        ("<answer >x</answer\n>", "x", "x", "x"),
        ("<answers>x</answers>", None, None, None),
    ],
)
def test_which_tag_counts(reply, last, first, outer):
    assert AnswerTag().find(reply) == last
    assert AnswerTag(which="first").find(reply) == first
    assert AnswerTag(which="outer").find(reply) == outer


@pytest.mark.parametrize(("fallback", "answer"), [("last_line", "two"), ("whole", "one\n two"), ("none", "")])
def test_a_reply_without_a_tag(fallback, answer):
    assert AnswerTag(fallback=fallback)(" one\n two \n\n") == answer


def test_an_empty_tag_is_an_empty_answer():
    assert AnswerTag()("Paris\n<answer> </answer>") == ""


def test_an_unterminated_tag_is_a_part_of_the_last_line():
    assert AnswerTag()("<answer>unterminated") == "<answer>unterminated"
    assert AnswerTag(fallback="none")("<answer>unterminated") == ""


def test_other_names():
    assert AnswerTag("c.ty")("<city>a</city><c.ty>b</c.ty>") == "b"


def test_last_line():
    assert last_line("a\n b \n \n") == "b" and last_line(" \n") == ""


@given(st.text(max_size=30), st.sampled_from(["last", "first", "outer"]))
def test_what_is_put_in_comes_out(text, which):
    if "<" not in text:
        assert AnswerTag(which=which)(f"so: <answer>{text}</answer>") == text.strip()
    assert isinstance(AnswerTag(which=which)(text), str)


def test_long_hostile_replies_are_read_quickly():
    start = time.thread_time()
    for reply in (
        "<answer>" * 50_000,
        "<answer" + " " * 200_000,
        "</answer>" * 50_000,
        "<answer>x" * 30_000 + "</answer>",
    ):
        AnswerTag()(reply)
        AnswerTag(which="outer")(reply)
    assert time.thread_time() - start < 10

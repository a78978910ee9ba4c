"""Reading Chat Completions bodies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.model.chat_reply import TOOL_PARSER_OFF, ThinkTags, read_completion, split_thinking, text_in
from skillopt.model.values import ModelCall
from skillopt.testing import chat_completion

WITH_TOOLS = ModelCall(messages=({"role": "user", "content": "x"},), tools=[{"type": "function"}])


@pytest.mark.parametrize(
    ("tags", "text", "thought", "answer"),
    [
        ("none", "<think>a</think>b", "", "<think>a</think>b"),
        ("written", "<think>a</think>b", "a", "b"),
        ("written", "\n<think>\na\n</think>\n\nb\n", "a", "b\n"),
        ("written", "<think></think>b", "", "b"),
        ("written", "<think>cut off here", "cut off here", ""),
        ("written", "say <think>a</think>b", "", "say <think>a</think>b"),
        ("written", "a\n</think>\nb", "", "a\n</think>\nb"),
        ("written", "<think>a</think>b</think>c", "a", "b</think>c"),
        ("opened", "a\nmore\n</think>\n\nb", "a\nmore", "b"),
        ("opened", "a </think> closes thinking", "", "a </think> closes thinking"),
        ("opened", "write <think>x\n</think>\ny", "", "write <think>x\n</think>\ny"),
        ("opened", "<think>a</think>b", "a", "b"),
        ("opened", "plain", "", "plain"),
    ],
)
def test_thinking_in_the_text(tags: ThinkTags, text: str, thought: str, answer: str) -> None:
    assert split_thinking(text, tags) == (thought, answer)


@given(st.text(), st.sampled_from(["none", "written", "opened"]))
def test_text_without_tags_is_the_answer_whole(text: str, tags: ThinkTags) -> None:
    if "think>" not in text:
        assert split_thinking(text, tags) == ("", text)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("a", "a"),
        ([{"type": "text", "text": "a"}, "b", {"type": "x"}, 3], "ab"),
        ({"answer": "é"}, '{"answer": "é"}'),
        (42, "42"),
    ],
)
def test_content_of_any_shape_becomes_text(content: object, text: str) -> None:
    assert text_in(content) == text


@pytest.mark.parametrize(
    ("word", "finish"),
    [
        ("stop", "stop"),
        (None, "stop"),
        ("STOP", "stop"),
        ("end_turn", "stop"),
        ("length", "length"),
        ("max_tokens", "length"),
        ("tool_calls", "tool_calls"),
        ("function_call", "tool_calls"),
        ("content_filter", "content_filter"),
        ("sensitive", "content_filter"),
        ("refusal", "refusal"),
        ("quota_day", "quota_day"),
    ],
)
def test_finish_reasons_have_one_spelling(word: str, finish: str) -> None:
    assert read_completion(chat_completion("x", finish_reason=word), "none", "call_").finish_reason == finish


def test_reasoning_is_found_under_its_names_and_never_the_answer() -> None:
    for name in ("reasoning_content", "reasoning"):
        reply = read_completion(chat_completion(None, **{name: "hm"}), "none", "call_")
        assert (reply.text, reply.reasoning) == ("", "hm")
    parts = [{"type": "reasoning.text", "text": "a"}, {"text": "b"}]
    assert read_completion(chat_completion("x", reasoning_details=parts), "none", "call_").reasoning == "ab"
    both = read_completion(chat_completion("<think>b</think>x", reasoning="a"), "written", "call_")
    assert (both.text, both.reasoning) == ("x", "a\n\nb")


def test_arguments_given_as_an_object_become_json_text() -> None:
    body = chat_completion("", tool_calls=[{"id": "1", "function": {"name": "f", "arguments": {"q": "é"}}}])
    assert read_completion(body, "none", "call_").tool_calls[0].function.arguments == '{"q": "é"}'


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name":"search"}</tool_call>',
        '<tool_call>\n{"name": "search", "arguments": {}}\n</tool_call>',
        "<tool_call>\n<function=search>\n<parameter=q>x</parameter></function></tool_call>",
        '[TOOL_CALLS] [{"name": "f"}]',
        '<minimax:tool_call>\n<invoke name="f">',
    ],
)
def test_a_tool_call_as_text_is_noticed_only_where_tools_were_offered(text: str) -> None:  # C143
    assert read_completion(chat_completion(text), "none", "call_", WITH_TOOLS).notice == TOOL_PARSER_OFF
    assert not read_completion(chat_completion(text), "none", "call_").notice
    structured = chat_completion(text, tool_calls=[{"id": "1", "function": {"name": "f"}}])
    assert not read_completion(structured, "none", "call_", WITH_TOOLS).notice


def test_words_about_tool_calls_are_not_noticed() -> None:
    for text in ("I made no tool_call.", "Use <tool_call> tags.", '{"name": "search"}'):
        assert not read_completion(chat_completion(text), "none", "call_", WITH_TOOLS).notice

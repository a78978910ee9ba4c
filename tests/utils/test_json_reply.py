from __future__ import annotations

import json
import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.errors import ReplyError
from skillopt.utils.json_reply import extract_json, extract_json_array, flag_invisible, read_reply, strip_invisible

OBJECT = '{"reasoning":"r","edits":[{"op":"append","content":"- Check units."}]}'
PARSED = json.loads(OBJECT)


def outcome(text: str, **options: object) -> str:
    with pytest.raises(ReplyError) as caught:
        read_reply(text, **options)  # type: ignore[arg-type]
    return caught.value.outcome


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(OBJECT, id="c001"),
        pytest.param(f"Here is it:\n\n```json\n{OBJECT}\n```\nLet me know {{soon}}.", id="c002"),
        pytest.param(f"Here is it: ```json{OBJECT}``` done", id="fence-inline"),
        pytest.param(f"```\n{OBJECT}\n```", id="plain-fence"),
        pytest.param(f'<think>maybe {{"edits": []}}</think>\n{OBJECT}', id="closed-reasoning"),
        pytest.param(f'maybe {{"edits": []}}\n</think>\n{OBJECT}', id="reasoning-without-start"),
        pytest.param(f"{OBJECT}\nand again\n{OBJECT}", id="same-object-twice"),
        pytest.param(f"{OBJECT}}}", id="stray-closing-brace"),
        pytest.param(f"{OBJECT} {{", id="stray-opening-brace"),
        pytest.param(f"{{{{ not this\n{OBJECT}", id="unmatched-before"),
        pytest.param(f'He said "use {{braces}}" and: {OBJECT}', id="quoted-braces"),
        pytest.param(f"As [1] shows: {OBJECT}", id="citation"),
        pytest.param(f"`{OBJECT}`", id="whole-reply-in-backticks"),
        pytest.param(f"```json\n{{broken\n```\n{OBJECT}", id="broken-fence"),
        pytest.param(f'```json\n{{"a": \n```\n{OBJECT}', id="unfinished-fence"),
        pytest.param(f'{{"other": 1}}\n```json\n{OBJECT}\n```', id="fence-beats-bare"),
        pytest.param(f"```python\nx = {{1}}\n```\n```json\n{OBJECT}\n```", id="other-fence-before"),
    ],
)
def test_one_object_is_found(text: str) -> None:
    reply = read_reply(text)
    assert reply.value == PARSED
    assert not reply.repaired
    assert extract_json(text) == PARSED


def test_c004_content_with_a_fence_is_exact() -> None:
    content = 'Reply as:\n```json\n{"k":1}\n```\nDone'
    assert read_reply("```json\n" + json.dumps({"content": content}) + "\n```").value == {"content": content}
    raw = read_reply('```json\n{"content": "Use:\n```json\n{}\n```\n<think>"}\n```')
    assert raw.value == {"content": "Use:\n```json\n{}\n```\n<think>"}
    assert raw.repaired


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param(
            '{"edits":[{"op":"append","content":"a"},],}', {"edits": [{"op": "append", "content": "a"}]}, id="c005"
        ),
        ('so: {"a": "it\'s `x`, }",} ok', {"a": "it's `x`, }"}),
        ('{"a": "say "hi" now"}', {"a": 'say "hi" now'}),
        ('```json\n{"a": 1,}\n```', {"a": 1}),
    ],
)
def test_one_complete_object_is_repaired(text: str, value: object) -> None:
    reply = read_reply(text)
    assert (reply.value, reply.repaired) == (value, True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("I would set `{op: delete}` on '{x: 1}' here, nothing else.", "unparsed", id="c007"),
        pytest.param('{"edits":[{"op":"append","content":"A"}]} or {"edits":[]}', "ambiguous", id="c008"),
        pytest.param('<think>I will write {"edits":[{"op":"delete","target":"- keep me"}]}', "truncated", id="c010"),
        pytest.param(f"<think>{OBJECT}", "truncated", id="c010-whole"),
        pytest.param('{"edits":[{"op":"replace","target":"- a","content":"- b and the res', "truncated", id="c011"),
        pytest.param('{"edits":[{"op":"delete","target":"- a"},{"op":"repl', "truncated", id="c011-list"),
        pytest.param(f'{OBJECT} or {{"edits":[', "truncated", id="second-cut-off"),
        pytest.param('```json\n{"edits":[{"op":"delete","target":"- a"},\n```', "unparsed", id="cut-off-in-fence"),
        pytest.param("[1, 2]", "wrong_shape", id="c012"),
        pytest.param('{"op":"append","op":"delete","target":"- a"}', "ambiguous", id="c017"),
        pytest.param('{"op":"append","op":"delete","target":"- a",}', "ambiguous", id="c017-repair"),
        pytest.param('{"op":"append","op":"delete"} {"a":1}', "ambiguous", id="c017-two"),
        pytest.param('{"a": 1,} {"b": 2,}', "unparsed", id="two-malformed"),
        pytest.param("{'a': 1}", "unparsed", id="single-quotes"),
        pytest.param('{"a": NaN}', "unparsed", id="nan"),
        pytest.param('{"a": 1e999}', "unparsed", id="infinite"),
        pytest.param('{"a": [1}', "unparsed", id="wrong-bracket"),
        pytest.param("Use {} as a mark, or say `{}` here", "", id="empty-object"),
        pytest.param("no braces", "unparsed", id="prose"),
        pytest.param("```\nx = 1\n```", "unparsed", id="fence-without-object"),
        pytest.param(" \n", "unparsed", id="blank"),
    ],
)
def test_what_is_not_one_object_is_refused(text: str, expected: str) -> None:
    if not expected:
        assert extract_json(text) == {}
        return
    assert outcome(text) == expected
    assert extract_json(text) is None


def test_length_means_truncated() -> None:
    assert outcome("I will now", finish_reason="length") == "truncated"
    assert outcome("", finish_reason="length") == "truncated"
    assert outcome('{"a": 1', finish_reason="length") == "truncated"
    assert read_reply(OBJECT, finish_reason="length").value == PARSED


def test_c019_huge_number_names_its_reason() -> None:
    for number in ("9" * 5000, "-" + "9" * 5000, "0." + "9" * 5000 + "e1"):
        for tail in ("}", ",}"):
            with pytest.raises(ReplyError, match="number too large") as caught:
                read_reply('{"edits":[], "n": ' + number + tail)
            assert caught.value.outcome == "unparsed"


def test_c020_deep_nesting_names_its_reason() -> None:
    started = time.thread_time()
    with pytest.raises(ReplyError, match="too deep") as caught:
        read_reply('{"a":' * 3000 + "1" + "}" * 3000)
    assert caught.value.outcome == "unparsed"
    assert time.thread_time() - started < 10
    assert extract_json_array("[" * 3000 + "]" * 3000) is None
    assert extract_json_array("[" * 100_000) is None


@pytest.mark.parametrize(
    "alphabet",
    ["{[", "{}[]", '{["', '{[}"]', ["{}"], ["[1],"], ['{"a":1}'], ['```json\n{"'], ["<think>{</think>"], ['"{']],
)
@pytest.mark.parametrize("shuffled", [True, False])
def test_c025_megabyte_of_brackets_is_read_in_linear_time(alphabet: list[str], shuffled: bool) -> None:
    rng = random.Random(1)
    size = 1_000_000 // len(alphabet[0])
    text = (
        "".join(rng.choice(alphabet) for _ in range(size)) if shuffled else "".join(alphabet) * (size // len(alphabet))
    )
    started = time.thread_time()
    assert extract_json(text) is None
    assert time.thread_time() - started < 10


def test_arrays() -> None:
    assert outcome('```json\n{"a":1}\n```', expect=list) == "wrong_shape"  # C013
    assert extract_json_array('```json\n["1", "0"]\n``` or [2]') == ["1", "0"]
    assert extract_json_array("I choose [see below]: [2, 0]") == [2, 0]
    assert extract_json_array("[1] or [2]") is None
    assert extract_json_array('{"a": [1]}') is None
    assert extract_json_array("{ unfinished [1, 2]") == [1, 2]
    assert extract_json_array("{ " * 1000 + "[1, 2]") == [1, 2]
    assert extract_json_array("[1, 2,]") == [1, 2]
    assert extract_json_array("[a, b]") is None
    assert extract_json_array("[]") == []
    assert outcome("[1, 2", expect=list) == "truncated"


def test_c022_lone_surrogate_is_left_to_the_reader_of_the_value() -> None:
    value = read_reply('{"content": "bad \\ud800 char"}').value
    assert value == {"content": "bad \ud800 char"}
    assert extract_json('{"content": "bad \\ud800 char",}') == value


def test_what_is_no_text_is_unparsed() -> None:
    assert extract_json(None) is None  # type: ignore[arg-type]
    assert extract_json_array(b"[]") is None  # type: ignore[arg-type]


@given(st.text(alphabet='{}[]":,\\`ajson<>/think \n1', max_size=60))
def test_never_another_exception(text: str) -> None:
    assert isinstance(extract_json(text), dict | None)
    assert isinstance(extract_json_array(text), list | None)
    try:
        read_reply(text, finish_reason="length")
    except ReplyError as error:
        assert error.outcome in ("unparsed", "truncated", "ambiguous", "wrong_shape")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text(max_size=5), values, max_size=4),
    st.sampled_from(["", "Here: ", "```json\n", "<think>{</think>"]),
)
def test_every_object_is_read_back(value: dict[str, object], before: str) -> None:
    after = "\n```" if before.startswith("```") else " done."
    reply = read_reply(before + json.dumps(value, ensure_ascii=False) + after)
    assert reply.value == value
    assert not reply.repaired


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=8), min_size=1, max_size=4), st.data())
def test_a_cut_object_is_never_completed(value: dict[str, object], data: st.DataObject) -> None:
    whole = json.dumps(value)
    cut = data.draw(st.integers(min_value=2, max_value=len(whole) - 1))
    assert outcome(whole[:cut]) in ("truncated", "unparsed")


def test_c023_hidden_characters_are_named_and_removed() -> None:
    text = "do\u200b it\u202e now\U000e0041\x1b"
    assert flag_invisible(text) == ("U+200B", "U+202E", "U+E0041", "U+001B")
    assert strip_invisible(text) == "do it now"
    for kept in ("می\u200cخواهم", "👩\u200d💻", "❤\ufe0f\u200d🔥", "tab\tand\nline"):
        assert flag_invisible(kept) == ()
        assert strip_invisible(kept) == kept
    assert strip_invisible("a\u200db\u200d") == "ab"
    assert strip_invisible("x\ufe00\ufe01\ufe02y") == "xy"

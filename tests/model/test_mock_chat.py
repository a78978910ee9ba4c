"""Scripted replies: lists, functions, files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from skillopt import errors
from skillopt.model import Limits, ModelReply, Session
from skillopt.model.backends.mock_chat import complete
from skillopt.model.values import CallContext, ModelCall
from skillopt.testing import ScriptedModel
from skillopt.types import RoleConfig

QUICK = Limits(retries=1, retry_first_wait_seconds=0.001)


def ask(role: RoleConfig, *texts: str) -> list[str]:
    session = Session({"target": role}, limits=QUICK)
    return [session.ask("target", "", text, stage="s").text for text in texts]


def test_a_list_answers_in_order_and_matches_first() -> None:
    model = ScriptedModel(["one", {"text": "Paris", "match": "France"}, "two"])
    assert ask(model.role(), "a", "capital of France?", "b", "France") == ["one", "Paris", "two", "Paris"]
    assert [call.last_user for call in model.calls] == ["a", "capital of France?", "b", "France"]


def test_a_used_up_list_says_so_and_a_loop_goes_on() -> None:
    with pytest.raises(errors.ModelSetupError, match=r"no reply left for call 2 .*'b'"):
        ask(ScriptedModel(["one"]).role(), "a", "b")
    assert ask(ScriptedModel(["1", "2"], loop=True).role(), *"abc") == ["1", "2", "1"]


def test_a_function_sees_the_call() -> None:
    model = ScriptedModel(lambda call: ModelReply(call.last_user[::-1] + call.stage))
    assert ask(model.role(), "abc") == ["cbas"]


def test_what_a_function_raises_is_a_model_error() -> None:
    with pytest.raises(errors.ModelError, match="raised ZeroDivisionError: division by zero"):
        ask(ScriptedModel(lambda _: 1 / 0).role(), "a")


def test_errors_are_raised_and_retried_like_real_ones() -> None:
    model = ScriptedModel([{"error": "rate_limit", "retry_after": 0.001}, "ok", ValueError("boom")])
    assert ask(model.role(), "a") == ["ok"]
    with pytest.raises(ValueError, match="boom"):
        ask(model.role(), "b")
    with pytest.raises(errors.EmptyReplyError):
        ask(ScriptedModel(["", ""]).role(), "x")


@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
def test_a_file_is_read_once_a_session(tmp_path: Path, suffix: str) -> None:
    replies = ["eins", {"text": "zwei", "usage": {"prompt_tokens": 3}}]
    text = json.dumps(replies) if suffix == ".json" else "\n".join(json.dumps(reply) for reply in replies)
    path = tmp_path / f"script{suffix}"
    path.write_text(text, encoding="utf-8")
    role = RoleConfig("target", "mock_chat", "m", settings={"script": str(path)})
    session = Session({"target": role})
    assert [session.ask("target", "", "x", stage="s").text for _ in range(2)] == ["eins", "zwei"]
    assert session.usage.total.prompt_tokens == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not readable as JSON"),
        ('{"a": 1}', "expected a list"),
        ('[{"txt": "a"}]', "unknown field 'txt'"),
        ('["a", 3]', "reply 2: expected a text or an object"),
        ('[{"error": "odd"}]', "unknown error 'odd'"),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "script.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(errors.DataError, match=message) as caught:
        ScriptedModel.from_file(path)
    assert "script.json" in str(caught.value)


def test_without_a_script_the_key_is_named() -> None:
    role = replace(ScriptedModel([]).role(), settings={})
    with pytest.raises(errors.ConfigError, match="mock_chat_script"):
        complete(ModelCall(messages=()), role, CallContext(1.0))


@pytest.mark.parametrize("line", [None, '{"match": "(", "text": "x"}', '{"foo": 1}', "not json"])
def test_a_script_that_cannot_be_used_ends_the_run(tmp_path: Path, line: str | None) -> None:
    path = tmp_path / "script.jsonl"
    if line is not None:
        path.write_text(line, encoding="utf-8")
    role = RoleConfig(role="target", backend="mock_chat", model="m", settings={"script": str(path)})
    with pytest.raises(errors.ConfigError, match=r"model.mock_chat_script: .*script.jsonl"):
        ask(role, "hello")


def test_a_line_of_a_script_may_hold_any_character_of_a_text(tmp_path: Path) -> None:
    path = tmp_path / "script.jsonl"
    path.write_text('"one\u2028line"\n"two"\n', encoding="utf-8")
    session = Session({"target": ScriptedModel.from_file(path).role("target")})
    assert session.ask("target", "", "?", stage="s").text == "one\u2028line"

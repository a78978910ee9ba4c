"""The fake Codex and Copilot: what they print and write."""

from __future__ import annotations

import json

import pytest

from skillopt.testing import codex_turn, copilot_turn


def events(output: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in output.splitlines()]


def test_a_codex_turn_ends_with_its_usage_and_leaves_its_answer_in_the_file() -> None:
    turn = codex_turn({"content": "é"})
    assert turn.files == {"--output-last-message": '{"content": "é"}'}
    assert events(turn.stdout)[-1] == {
        "type": "turn.completed",
        "usage": {"input_tokens": 11, "cached_input_tokens": 3, "output_tokens": 5, "reasoning_output_tokens": 2},
    }
    assert "usage" not in events(codex_turn("x", usage=None).stdout)[-1]


def test_a_codex_turn_that_fails_says_why_and_leaves_nothing() -> None:
    turn = codex_turn("x", error="boom", daemons=2)
    assert (turn.code, turn.files, turn.daemons) == (1, {}, 2)
    assert events(turn.stdout)[-1] == {"type": "turn.failed", "error": {"message": "boom"}}


def test_a_copilot_turn_repeats_what_it_heard_and_answers_or_fails() -> None:
    kinds = [event["type"] for event in events(copilot_turn("x", heard="y").stdout)]
    assert kinds == ["user.message", "assistant.message", "result"]
    failed = copilot_turn(error="no", status_code=401)
    assert failed.code == 1
    assert events(failed.stdout)[0]["data"] == {"errorType": "query", "message": "no", "statusCode": 401}


def test_fields_of_a_turn_replace_what_is_made() -> None:
    assert copilot_turn("x", stdout="noise", code=3).stdout == "noise"
    with pytest.raises(TypeError):
        codex_turn("x", unknown=1)

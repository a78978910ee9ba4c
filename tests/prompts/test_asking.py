"""When a second call is made, and when it would be in vain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from skillopt.errors import ContentFilterError, ModelError, RefusedError, TruncatedError
from skillopt.model import Limits, Session
from skillopt.prompts.asking import Question, ask_typed
from skillopt.testing import LoopbackServer, ScriptedModel, chat_completion


def parse(data: Mapping[str, Any]) -> int:
    return int(data["n"])


QUESTION = Question(stage="reflect", system="s", user="u")


@pytest.mark.parametrize(
    ("error", "calls"),
    [
        (TruncatedError("cut"), 2),
        (TruncatedError("cut", final=True), 1),
        (RefusedError("no"), 1),
        (ContentFilterError("no"), 1),
    ],
)
def test_only_what_may_be_mended_is_asked_again(error: ModelError, calls: int) -> None:
    class Asks:
        made = 0

        def ask(self, *_: Any, **__: Any) -> Any:
            self.made += 1
            raise error

    session = Asks()
    answer = ask_typed(session, QUESTION, parse)
    assert (session.made, answer.calls, answer.error) == (calls, calls, error)


def test_a_refusal_in_words_costs_one_call() -> None:  # C136
    model = ScriptedModel(lambda _: "> I'm sorry, I can't help with that.")
    answer = ask_typed(Session({"optimizer": model.role("optimizer")}), QUESTION, parse)
    assert answer.reason.startswith("RefusedError") and len(model.calls) == 1


def test_a_reply_that_is_always_cut_off_costs_two_requests() -> None:
    with LoopbackServer(chat_completion('{"n": ', finish_reason="length")) as server:
        session = Session({"optimizer": server.role("optimizer")}, limits=Limits(retries=1))
        answer = ask_typed(session, QUESTION, parse)
        assert isinstance(answer.error, TruncatedError) and answer.error.final
        assert [request.body["max_tokens"] for request in server.requests] == [16384, 32768]

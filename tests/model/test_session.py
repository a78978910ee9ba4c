"""The one path of a call: retries, limits, kept replies, budgets, usage, events; on a real server where it matters."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from patience import given_time

from skillopt import errors
from skillopt.model import Budget, Limits, ModelCall, ModelReply, Price, Session
from skillopt.model.usage import UsageTracker
from skillopt.store import Store
from skillopt.testing import LoopbackServer, ScriptedModel, chat_completion, hang, reset, role, status
from skillopt.types import Usage
from skillopt.utils.cancel import CancelToken
from skillopt.utils.parallel import map_ordered

QUICK = Limits(retry_first_wait_seconds=0.002, retry_longest_wait_seconds=0.01)


class Heard:
    """Collects events."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, kind: str, **data: Any) -> None:
        self.events.append((kind, data))

    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.events]


def session_for(server: LoopbackServer, *, limits: Limits = QUICK, settings: dict[str, Any] | None = None, **more: Any):
    roles = {name: server.role(name, **(settings or {})) for name in ("optimizer", "target")}
    return Session(roles, limits=limits, **more)


def ask(session: Session, text: str = "hi", role_name: str = "target", **options: Any) -> ModelReply:
    return session.ask(role_name, "system", text, stage="rollout", **options)


def test_reply_and_usage() -> None:
    with LoopbackServer("42") as server, session_for(server) as session:
        reply = ask(session)
    assert (reply.text, reply.usage.total_tokens, reply.usage.calls) == ("42", 15, 1)
    assert session.usage.summary()["rollout"] == {
        "calls": 1,
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 15,
    }


def test_reset_twice_then_fine() -> None:  # C131
    heard = Heard()
    faults = {17: reset(), 18: reset()}
    with LoopbackServer("ok", faults=faults.get) as server:
        session = session_for(server, emit=heard)
        replies = [ask(session, f"item {n}").text for n in range(40)]
    assert replies == ["ok"] * 40
    assert heard.kinds() == ["model_retry", "model_retry"]
    assert heard.events[0][1]["stage"] == "rollout" and heard.events[0][1]["error"] == "TransientError"
    assert len(server.requests) == 42
    assert session.usage.total.calls == 40


def test_a_call_that_failed_before_leaves_no_current_error() -> None:  # C149
    with LoopbackServer("ok", faults=[status(400)]) as server:
        session = session_for(server)
        with pytest.raises(errors.BadRequestError):
            ask(session)
        assert session.usage.details()[0]["last_error"].startswith("BadRequestError")
        ask(session)
    (row,) = session.usage.details()
    assert (row["last_error"], row["failures"], row["calls"]) == ("", 1, 1)


def test_401_stops_everything_with_one_request() -> None:
    heard = Heard()
    with LoopbackServer(key="right") as server:
        session = session_for(server, settings={"api_key": "wrong-key-9"}, emit=heard)
        with pytest.raises(errors.AuthError) as first:
            ask(session)
        with pytest.raises(errors.AuthError) as second:
            ask(session, role_name="optimizer")
    assert len(server.requests) == 1
    assert str(first.value) == str(second.value)
    assert heard.kinds() == ["model_error"] and heard.events[0][1]["fatal"]
    assert "wrong-key-9" not in repr(heard.events)


@pytest.mark.parametrize(("code", "error"), [(400, errors.BadRequestError), (404, errors.ModelSetupError)])
def test_what_cannot_succeed_is_not_tried_again(code: int, error: type[Exception]) -> None:
    with LoopbackServer(faults=lambda _: status(code)) as server, pytest.raises(error):
        ask(session_for(server))
    assert len(server.requests) == 1


def test_retries_zero_is_one_request() -> None:  # C128
    limits = Limits(retries=0)
    with LoopbackServer(faults=lambda _: status(429)) as server, pytest.raises(errors.RateLimitError):
        ask(session_for(server, limits=limits))
    assert len(server.requests) == 1


def test_retries_are_counted_and_end() -> None:
    limits = Limits(retries=3, retry_first_wait_seconds=0.001)
    with LoopbackServer(faults=lambda _: status(503)) as server:
        session = session_for(server, limits=limits)
        with pytest.raises(errors.TransientError):
            ask(session)
    assert len(server.requests) == 4
    row = session.usage.details()[0]
    assert (row["retries"], row["failures"], row["calls"]) == (3, 1, 0)


def test_retry_after_is_honoured() -> None:
    heard = Heard()
    with LoopbackServer("ok", faults=[status(429, {"retry-after-ms": "80"})]) as server:
        assert ask(session_for(server, emit=heard)).text == "ok"
    first, second = server.requests
    assert second.time - first.time >= 0.08
    assert heard.kinds() == ["rate_limited", "model_retry"]


@pytest.mark.parametrize("asked", ["86400", "Wed, 21 Oct 2099 07:28:00 GMT"])
def test_a_wait_above_the_ceiling_stops_the_run(asked: str) -> None:  # C127
    with LoopbackServer(faults=lambda _: status(429, {"Retry-After": asked})) as server:
        session = session_for(server)
        with pytest.raises(errors.RateLimitedUntilError, match="Rate limited until 20"):
            ask(session)
        with pytest.raises(errors.RateLimitedUntilError):
            ask(session)
    assert len(server.requests) == 1


def test_empty_reply_is_tried_again_then_an_error() -> None:  # C133
    limits = Limits(retries=2, retry_first_wait_seconds=0.001)
    with LoopbackServer(chat_completion("  ")) as server:
        session = session_for(server, limits=limits)
        with pytest.raises(errors.EmptyReplyError, match="empty"):
            ask(session)
    assert len(server.requests) == 3
    assert session.usage.total.total_tokens == 45  # what failed attempts took is counted


def test_reasoning_is_never_the_answer() -> None:  # C134
    body = chat_completion(None, finish_reason="length", reasoning_content="The answer is 42")
    with (
        LoopbackServer(body) as server,
        pytest.raises(errors.TruncatedError, match=r"no final answer.*raise max_tokens"),
    ):
        ask(session_for(server))
    assert len(server.requests) == 2


def test_a_cut_answer_is_returned_and_says_so() -> None:  # C142
    with LoopbackServer(chat_completion("half an ans", finish_reason="length")) as server:
        reply = ask(session_for(server))
    assert (reply.text, reply.finish_reason) == ("half an ans", "length")


def test_content_filter_is_no_empty_reply() -> None:
    body = chat_completion("", finish_reason="content_filter")
    with LoopbackServer(body) as server, pytest.raises(errors.BadRequestError, match="content filter"):
        ask(session_for(server))
    assert len(server.requests) == 1


def test_a_refused_parameter_is_dropped_once_and_remembered() -> None:  # C137
    heard = Heard()

    def reply(request: dict[str, Any]) -> str:
        return "ok"

    def faults(number: int) -> Any:
        return (
            status(400, body='{"error": {"message": "Unsupported parameter: \'temperature\'"}}')
            if number == 1
            else None
        )

    with LoopbackServer(reply, faults=faults) as server:
        session = session_for(server, settings={"temperature": 0.2}, emit=heard)
        assert [ask(session).text for _ in range(3)] == ["ok"] * 3
    assert ["temperature" in request.body for request in server.requests] == [True, False, False, False]
    assert heard.kinds() == ["parameter_dropped"]
    assert heard.events[0][1]["parameter"] == "temperature"
    assert session.usage.details()[0]["retries"] == 0


def test_max_tokens_goes_out_under_its_newer_name_when_refused() -> None:
    refusal = '{"error": {"message": "Unsupported parameter: \'max_tokens\'. Use \'max_completion_tokens\' instead."}}'
    with LoopbackServer("ok", faults=[status(400, body=refusal)]) as server:
        session = session_for(server)
        ask(session)
    assert "max_completion_tokens" in server.requests[1].body and "max_tokens" not in server.requests[1].body
    assert session.notes[0].endswith("does not take the parameter max_tokens; max_completion_tokens is sent instead.")


def test_another_model_in_the_reply_is_said_once_a_pair() -> None:  # C152
    heard = Heard()
    models = iter(["m-1", "m-1", "m-2", "m-2", "m-3"])
    with LoopbackServer(lambda _: chat_completion("ok", model=next(models))) as server:
        session = session_for(server, emit=heard)
        for _ in range(5):
            ask(session)
    assert [(kind, data["first"], data["now"]) for kind, data in heard.events] == [
        ("model_changed", "m-1", "m-2"),
        ("model_changed", "m-1", "m-3"),
    ]


def test_a_hung_attempt_is_tried_again_within_the_call() -> None:
    with LoopbackServer("ok", faults=[hang(30)]) as server:
        assert ask(session_for(server, settings={"timeout_seconds": 0.2})).text == "ok"
    assert len(server.requests) >= 2


def after_one_that_hung(call: float, attempt: float | None) -> tuple[str, int, int]:
    """What a call gives within its seconds when its first attempt hangs: text, requests, calls that count."""
    limits = Limits(timeout_seconds=call, retry_first_wait_seconds=0.001)
    with LoopbackServer("ok", faults=[hang(30)]) as server:
        session = session_for(server, limits=limits, settings={"timeout_seconds": attempt})
        try:
            text = ask(session).text
        except errors.DeadlineError as error:
            text = str(error)
    return text, len(server.requests), session.usage.total.calls


@pytest.mark.parametrize("share", [2.0, 0.25])  # a call's time is at least that of two attempts
def test_a_call_has_time_for_an_attempt_after_one_that_hung(share: float) -> None:
    made = given_time(lambda each: after_one_that_hung(share * each, each), lambda made: made[0] == "ok", 0.2)
    assert made == ("ok", 2, 1)


def test_without_a_time_of_its_own_an_attempt_takes_half_of_its_calls() -> None:
    made = given_time(lambda call: after_one_that_hung(call, None), lambda made: made[0] == "ok", 0.6)
    assert made == ("ok", 2, 1)


def test_after_two_attempts_that_hung_no_time_is_left_for_a_third() -> None:
    def once(seconds: float) -> tuple[int, bool]:
        limits = Limits(timeout_seconds=0.05, retry_first_wait_seconds=0.001)
        words = f"within 2 times the backend's timeout_seconds = {2 * seconds:g}."
        with LoopbackServer("ok", faults=lambda _: hang(30)) as server:
            with pytest.raises(errors.DeadlineError) as caught:
                ask(session_for(server, limits=limits, settings={"timeout_seconds": seconds}))
            return len(server.requests), words in str(caught.value)

    assert given_time(once, lambda made: made[0] >= 2, 0.2) == (2, True)


def test_all_attempts_together_have_a_limit() -> None:
    limits = Limits(timeout_seconds=0.5, retry_first_wait_seconds=0.001)
    with LoopbackServer("ok", faults=lambda _: hang(30)) as server:
        started = time.monotonic()
        with pytest.raises(errors.DeadlineError, match=r"model\.timeout_seconds"):
            ask(session_for(server, limits=limits, settings={"timeout_seconds": 0.2}))
        assert time.monotonic() - started < 15


def test_a_backend_that_may_take_longer_than_a_call_gets_that_time() -> None:
    with LoopbackServer("ok", latency=0.3) as server:
        session = session_for(server, limits=Limits(timeout_seconds=0.05), settings={"timeout_seconds": 60.0})
        assert ask(session).text == "ok"


def test_timeout_and_cancel_end_a_call() -> None:
    with LoopbackServer("ok", faults=lambda _: status(503)) as server:
        session = session_for(server, limits=Limits(retries=50, retry_first_wait_seconds=5))
        token = CancelToken()
        threading.Timer(0.1, token.cancel).start()
        started = time.monotonic()
        with pytest.raises(errors.InterruptedRunError):
            ask(session, cancel=token)
        with pytest.raises(errors.DeadlineError, match="target model"):
            ask(session, timeout=0.1)
        assert time.monotonic() - started < 15


def test_concurrency_settles_where_the_server_bears_it() -> None:  # C151
    limits = Limits(max_concurrency=5, retries=8, retry_first_wait_seconds=0.005, retry_longest_wait_seconds=0.05)
    heard = Heard()
    with LoopbackServer("ok", latency=0.01, max_in_flight=2, retry_after_ms=10) as server:
        session = session_for(server, limits=limits, emit=heard)
        with ThreadPoolExecutor(8) as pool:
            replies = list(pool.map(lambda n: ask(session, str(n)).text, range(60)))
    assert replies == ["ok"] * 60
    assert max(request.in_flight for request in server.requests[-20:]) <= 3
    assert session.usage.total.calls == 60


def test_a_crowd_of_workers_starves_nobody() -> None:  # C151
    limits = Limits(retries=2, retry_first_wait_seconds=0.005, retry_longest_wait_seconds=0.05)
    with LoopbackServer("ok", latency=0.005, max_in_flight=2) as server:
        session = session_for(server, limits=limits)
        with ThreadPoolExecutor(32) as pool:
            replies = list(pool.map(lambda n: ask(session, str(n)).text, range(96)))
    assert replies == ["ok"] * 96


def test_usage_is_exact_with_threads() -> None:  # C256
    def reply(request: dict[str, Any]) -> dict[str, Any]:
        n = int(request["messages"][-1]["content"])
        return chat_completion(str(n), usage={"prompt_tokens": n, "completion_tokens": 2 * n})

    with LoopbackServer(reply) as server:
        session = session_for(server)
        with ThreadPoolExecutor(8) as pool:
            replies = list(pool.map(lambda n: ask(session, str(n)), range(1, 81)))
    assert [r.usage.prompt_tokens for r in replies] == list(range(1, 81))
    total = session.usage.total
    assert (total.calls, total.prompt_tokens, total.completion_tokens) == (80, 3240, 6480)
    assert sum((r.usage for r in replies), Usage()) == total


def test_equal_optimizer_calls_are_sent_once(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with LoopbackServer(lambda r: r["messages"][-1]["content"].upper(), latency=0.05) as server:
        store = Store(path)
        session = session_for(server, store=store)
        with ThreadPoolExecutor(6) as pool:
            texts = list(pool.map(lambda _: ask(session, "same", "optimizer").text, range(6)))
        store.close()
        assert (texts, len(server.requests)) == (["SAME"] * 6, 1)
        assert session.usage.total.calls == 1
        assert session.usage.details()[0]["cached_calls"] == 5

        store = Store(path)  # another process of the same run
        later = session_for(server, store=store)
        reply = ask(later, "same", "optimizer")
        assert (reply.text, reply.usage.total_tokens, len(server.requests)) == ("SAME", 15, 1)
        assert later.usage.total == Usage()
        assert ask(later, "other", "optimizer").text == "OTHER"
        store.close()


def test_target_replies_are_not_shared() -> None:
    with LoopbackServer("ok") as server:
        session = session_for(server)
        ask(session), ask(session)
    assert len(server.requests) == 2


def test_a_kept_reply_needs_no_budget(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.sqlite")
    with LoopbackServer("ok") as server:
        session = session_for(server, store=store, budget=Budget(max_calls=1))
        ask(session, "a", "optimizer")
        assert ask(session, "a", "optimizer").text == "ok"
        with pytest.raises(errors.BudgetExceededError):
            ask(session, "b", "optimizer")
    store.close()
    assert len(server.requests) == 1


def test_a_failed_leader_gives_its_error_to_those_who_wait() -> None:
    with LoopbackServer(faults=lambda _: status(400), latency=0.0) as server:
        session = session_for(server)
        with ThreadPoolExecutor(4) as pool:
            futures = [pool.submit(ask, session, "same", "optimizer") for _ in range(4)]
        assert all(isinstance(f.exception(), errors.BadRequestError) for f in futures)


def test_calls_are_never_more_than_the_budget() -> None:
    model = ScriptedModel(lambda call: "ok")
    session = Session({"target": model.role()}, budget=Budget(max_calls=7))

    def one(_: int) -> str:
        try:
            return ask(session).text
        except errors.BudgetExceededError as error:
            return str(error.exit_code)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(one, range(30)))
    assert len(model.calls) == 7
    assert sorted(answers) == ["3"] * 23 + ["ok"] * 7


@pytest.mark.parametrize("limit", ["max_calls", "max_tokens", "max_cost_usd", "max_seconds"])
def test_a_budget_of_zero_sends_nothing(limit: str) -> None:  # C253
    with LoopbackServer("ok") as server:
        session = session_for(server, budget=Budget(**{limit: 0}), prices={"loopback": Price(1, 1)})
        with pytest.raises(errors.BudgetExceededError, match=limit):
            ask(session)
    assert server.requests == []


def test_cost_is_counted_and_unknown_is_not_zero() -> None:  # C254
    with LoopbackServer("ok") as server:
        priced = session_for(
            server, prices={"loopback": {"input": 1.0, "output": 10.0}}, budget=Budget(max_cost_usd=1e-4)
        )
        ask(priced)
        assert priced.usage.cost() == pytest.approx(6e-5)
        ask(priced)
        with pytest.raises(errors.BudgetExceededError, match="max_cost_usd"):
            ask(priced)
        unpriced = session_for(server)
        ask(unpriced)
        assert unpriced.usage.cost() is None
        assert unpriced.usage.details()[0]["cost_usd"] is None


def test_a_money_budget_without_a_price_is_refused_before_any_call() -> None:
    with pytest.raises(errors.ConfigError, match=r"model\.prices"):
        Session({"target": role("http://127.0.0.1:9")}, budget=Budget(max_cost_usd=1.0))


def test_a_local_model_costs_nothing() -> None:
    model = ScriptedModel(lambda call: {"text": "ok", "usage": {"prompt_tokens": 5, "completion_tokens": 5}})
    session = Session({"target": model.role()}, budget=Budget(max_cost_usd=1.0))
    ask(session)
    assert session.usage.cost() == 0.0


def test_preflight_passes_once_for_equal_endpoints() -> None:
    with LoopbackServer(chat_completion("", finish_reason="length", reasoning_content="hm")) as server:
        session = session_for(server)
        session.preflight()
    assert len(server.requests) == 1
    assert server.requests[0].body["max_tokens"] == 16


def test_preflight_of_some_roles_asks_no_other() -> None:
    with LoopbackServer() as server:
        roles = {name: server.role(name, model=f"the-{name}") for name in ("target", "optimizer")}
        Session(roles).preflight("target")
    assert [request.body["model"] for request in server.requests] == ["the-target"]


def test_preflight_skips_models_on_this_machine() -> None:
    model = ScriptedModel([])
    Session({"target": model.role()}).preflight()
    assert model.calls == []


def test_preflight_says_at_once_that_nothing_answers() -> None:
    session = Session({"target": role("http://127.0.0.1:9")})
    started = time.monotonic()
    with pytest.raises(errors.ModelSetupError, match=r"Nothing answers at http://127\.0\.0\.1:9") as caught:
        session.preflight()
    assert "Start the server, or set its address: model.openai_compatible_base_url or" in str(caught.value)
    assert time.monotonic() - started < 15


def test_a_proxy_on_the_way_to_what_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://me:word@127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://me:word@127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.setenv("no_proxy", "")
    with pytest.raises(errors.ModelSetupError, match=r"through the proxy 127\.0\.0\.1:9 of this environment") as caught:
        Session({"target": role("http://model.invalid/v1")}).preflight()
    assert "word" not in str(caught.value)


def test_in_a_run_a_server_that_is_away_is_waited_for() -> None:
    heard = Heard()
    session = Session(
        {"target": role("http://127.0.0.1:9")}, limits=Limits(2, retries=2, retry_first_wait_seconds=0.001), emit=heard
    )
    with pytest.raises(errors.TransientError, match="Nothing answers"):
        ask(session)
    assert heard.kinds() == ["model_retry", "model_retry", "model_error"]


def test_preflight_makes_a_refusal_fatal() -> None:  # C130
    with LoopbackServer(faults=lambda _: status(400, body='{"error": {"message": "odd"}}')) as server:
        session = session_for(server)
        with pytest.raises(errors.ModelSetupError, match="odd"):
            session.preflight()


def test_two_sessions_share_nothing() -> None:
    with LoopbackServer("one", key="key-one-111") as one, LoopbackServer("two", key="key-two-222") as two:
        first = session_for(one, settings={"api_key": "key-one-111"})
        second = session_for(two, settings={"api_key": "key-two-222"})
        broken = session_for(two, settings={"api_key": "key-one-111"})
        with pytest.raises(errors.AuthError):
            ask(broken)
        assert (ask(first).text, ask(second).text, ask(second).text) == ("one", "two", "two")
    assert (first.usage.total.calls, second.usage.total.calls, broken.usage.total.calls) == (1, 2, 0)


def test_secrets_are_in_no_repr_error_or_event() -> None:  # C242
    key = "very-secret-key-77"
    heard = Heard()
    echo = f'{{"error": {{"message": "header was Authorization: Bearer {key}"}}}}'
    with LoopbackServer("ok", faults=[status(500, body=echo), status(429, {"retry-after-ms": "1"}, echo)]) as server:
        session = session_for(server, settings={"api_key": key}, emit=heard)
        ask(session)
    shown = repr((heard.events, session.roles, session.usage.details(), session))
    assert len(heard.events) == 3 and key not in shown


def test_roles_of_a_session_cannot_be_changed_and_unknown_ones_are_named() -> None:
    session = Session({"target": ScriptedModel([]).role()})
    with pytest.raises(TypeError):
        session.roles["target"] = None  # type: ignore[index]
    with pytest.raises(errors.ConfigError, match="'judge'"):
        session.call("judge", ModelCall(messages=()))


def test_unknown_and_missing_backends_are_named() -> None:
    from dataclasses import replace

    base = ScriptedModel([]).role()
    with pytest.raises(errors.ConfigError, match="did you mean mock_chat"):
        ask(Session({"target": replace(base, backend="mock_chatt")}))


def test_who_waits_for_a_turn_hears_at_once_that_the_session_has_ended() -> None:
    with LoopbackServer("ok", faults=[status(429, {"Retry-After": "3600"})]) as server:
        session = Session({"target": server.role()}, limits=Limits(max_concurrency=1))
        call = ModelCall(messages=({"role": "user", "content": "x"},))
        started = time.monotonic()
        said = map_ordered(lambda _: session.call("target", call, timeout=30), range(4), workers=4)
        assert time.monotonic() - started < 25
        assert [type(error) for error in said] == [errors.RateLimitedUntilError] * 4
        assert len(server.requests) == 1
        session.close()


def test_a_call_that_cannot_be_carried_takes_nothing_from_the_budget() -> None:
    session = Session({"target": role("http://127.0.0.1:9", backend="copilot_chat")}, budget=Budget(max_calls=1))
    tool = {"type": "function", "function": {"name": "f"}}
    with pytest.raises(errors.UnsupportedCallError):
        session.call("target", ModelCall(({"role": "user", "content": "x"},), tools=[tool]))
    assert session.budget.spent.calls == 0


def test_what_backends_keep_and_say_once_goes_on_in_a_session_with_other_roles() -> None:
    with LoopbackServer() as server, pytest.warns(RuntimeWarning, match="thinks") as said:
        session = Session({"target": role(server.url, backend="qwen_chat")})
        ask(session)
        ask(session.with_roles({"target": role(server.url, backend="qwen_chat", model="another")}))
    assert len(said) == 1
    assert session.usage.total.calls == 2


def test_the_error_of_a_session_that_has_ended_holds_no_trace_of_its_callers() -> None:
    with LoopbackServer(faults=lambda _: status(401)) as server:
        session = session_for(server)
        for _ in range(20):
            with pytest.raises(errors.AuthError) as caught:
                ask(session)
    assert len(caught.traceback) < 10


@pytest.mark.parametrize(
    ("said", "sent"),
    [
        ("Unknown parameter: 'seed'.", 1),
        ("unexpected words about temperature", 1),
        ("Unknown parameter: 'reasoning'.", 2),
    ],
)
def test_a_refusal_about_what_was_not_sent_drops_nothing(said: str, sent: int) -> None:
    body = json.dumps({"error": {"message": said}})
    heard = Heard()
    with LoopbackServer(faults=lambda _: status(400, body=body)) as server:
        session = session_for(server, emit=heard)
        with pytest.raises(errors.BadRequestError):
            session.call("target", ModelCall(({"role": "user", "content": "x"},), effort="low"))
    assert len(server.requests) == sent
    assert heard.kinds().count("parameter_dropped") == sent - 1


def test_what_a_call_used_is_kept_also_when_the_run_ends_in_it(tmp_path: Path) -> None:
    store, prices = Store(tmp_path / "store.sqlite"), {"loopback": Price(1.0, 1.0)}
    body = chat_completion("ok", usage={"prompt_tokens": 7})
    with LoopbackServer(body) as server:
        usage = UsageTracker(prices, store)
        session = session_for(server, budget=Budget(max_cost_usd=1.0), prices=prices, usage=usage)
        with pytest.raises(errors.ConfigError, match="cost is unknown"):
            ask(session)
    assert UsageTracker(prices, store).total.prompt_tokens == 7


def test_a_service_that_is_down_for_good_ends_the_run_and_one_that_stumbles_does_not() -> None:
    with LoopbackServer(faults=lambda number: None if number % 20 == 0 else status(503)) as server:
        session = Session({"target": server.role()}, limits=Limits(retries=0))
        for _ in range(60):
            with contextlib.suppress(errors.TransientError):
                session.ask("target", "", "x", stage="rollout")
        assert len(server.requests) == 60
    with LoopbackServer(faults=lambda _: status(503)) as server:
        session = Session({"target": server.role()}, limits=Limits(retries=0))
        for _ in range(20):
            with pytest.raises(errors.TransientError):
                session.ask("target", "", "x", stage="rollout")
        with pytest.raises(errors.ModelSetupError, match=r"20 calls in a row did not get through.*HTTP 503"):
            session.ask("target", "", "x", stage="rollout")
        assert len(server.requests) == 20

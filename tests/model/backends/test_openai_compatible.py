"""The backend for servers that speak Chat Completions, against a real one on loopback."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from dataclasses import replace

import pytest

from skillopt import errors
from skillopt.model.backends.openai_compatible import complete
from skillopt.model.session import Session
from skillopt.model.values import CallContext, ModelCall
from skillopt.testing import LoopbackServer, garbage, hang, reset, role, status, trickle
from skillopt.utils.cancel import CancelToken

HELLO = ModelCall(messages=({"role": "system", "content": "Be brief."}, {"role": "user", "content": "Grüße 東京"}))


def ask(server: LoopbackServer, call: ModelCall = HELLO, *, timeout: float = 5.0, **settings: object):
    return complete(call, server.role(**settings), CallContext(timeout))


def test_request_carries_model_messages_and_key_only_where_they_belong() -> None:
    with LoopbackServer("hi", key="sk-test-key-123") as server:
        reply = ask(server, api_key="sk-test-key-123", temperature=None, max_tokens=None)
    request = server.requests[0]
    assert reply.text == "hi"
    assert request.path == "/v1/chat/completions"
    assert request.body == {"model": "loopback", "messages": [dict(m) for m in HELLO.messages], "max_tokens": 16384}
    assert request.headers["Authorization"] == "Bearer sk-test-key-123"


def test_without_a_key_no_authorization_header_is_sent() -> None:
    with LoopbackServer("hi") as server:
        ask(server)
    assert "Authorization" not in server.requests[0].headers


@pytest.mark.parametrize(
    ("code", "body", "expected"),
    [
        (401, '{"error": {"message": "Incorrect API key"}}', errors.AuthError),
        (403, "Forbidden", errors.AuthError),
        (402, "pay", errors.AuthError),
        (404, '{"error": {"code": "model_not_found"}}', errors.ModelSetupError),
        (400, '{"error": {"message": "The requested model is not supported on this account"}}', errors.ModelSetupError),
        (403, '{"error": {"message": "Project does not have access to model `x`"}}', errors.ModelSetupError),
        (307, "", errors.ModelSetupError),
        (400, '{"error": {"message": "bad field"}}', errors.BadRequestError),
        (422, '{"detail": "bad"}', errors.BadRequestError),
        (400, '{"error": {"code": "context_length_exceeded", "message": "x"}}', errors.ContextTooLongError),
        (413, "", errors.ContextTooLongError),
        (429, "slow down", errors.RateLimitError),
        (429, '{"error": {"code": "insufficient_quota"}}', errors.AuthError),
        (408, "", errors.TransientError),
        (409, "", errors.TransientError),
        (500, "oops", errors.TransientError),
        (503, "", errors.TransientError),
    ],
)
def test_each_status_has_its_class(code: int, body: str, expected: type[Exception]) -> None:  # C130
    with LoopbackServer(faults=[status(code, body=body or " ")]) as server, pytest.raises(expected) as caught:
        ask(server)
    assert caught.type is expected
    assert "loopback" in str(caught.value)
    assert len(server.requests) == 1


def test_auth_error_names_key_and_variable() -> None:
    with LoopbackServer(key="right") as server, pytest.raises(errors.AuthError) as caught:
        ask(server, api_key="wrong-key-123")
    text = str(caught.value)
    assert "model.openai_compatible_api_key" in text and "OPENAI_COMPATIBLE_API_KEY" in text
    assert "model.target_openai_compatible_api_key" in text


def test_secrets_and_long_bodies_stay_out_of_errors() -> None:  # C242
    key = "plain-secret-0042"
    echo = json.dumps({"error": {"message": f"Authorization: Bearer {key} refused; key={key} " + "x" * 50_000}})
    with LoopbackServer(faults=[status(500, body=echo)]) as server, pytest.raises(errors.TransientError) as caught:
        ask(server, api_key=key)
    assert key not in repr(caught.value)
    assert len(str(caught.value)) < 2500


def test_password_in_the_address_is_not_shown() -> None:
    target = role("http://user:hunter2-secret@127.0.0.1:9/v1")
    with pytest.raises(errors.TransientError) as caught:
        complete(HELLO, target, CallContext(60.0))
    assert "hunter2" not in str(caught.value) and "127.0.0.1:9" in str(caught.value)


@pytest.mark.parametrize("body", ["<html>", "[]", '{"choices": []}', '{"choices": [{}]}', "null", '{"error": "x"}'])
def test_a_body_that_is_no_completion_is_transient(body: str) -> None:
    with LoopbackServer(faults=[garbage(body)]) as server, pytest.raises(errors.TransientError, match="without a chat"):
        ask(server)


def test_reset_is_transient() -> None:
    with LoopbackServer(faults=[reset()]) as server, pytest.raises(errors.TransientError, match="broke"):
        ask(server)


@pytest.mark.parametrize("fault", [trickle(0.05), hang(30)])
def test_the_deadline_is_true(fault: object) -> None:
    with LoopbackServer(faults=[fault]) as server:
        started = time.monotonic()
        with pytest.raises(errors.DeadlineError):
            ask(server, timeout=0.3)
        assert time.monotonic() - started < 15


def test_the_deadline_holds_while_headers_trickle() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                connection, _ = listener.accept()
                with connection:
                    for byte in b"HTTP/1.1 200 OK\r\nX-Long: " + b"a" * 3000:
                        connection.sendall(bytes([byte]))
                        time.sleep(0.02)

        threading.Thread(target=serve, daemon=True).start()
        started = time.monotonic()
        with pytest.raises(errors.DeadlineError):
            complete(HELLO, role(f"http://127.0.0.1:{listener.getsockname()[1]}"), CallContext(0.3))
        assert time.monotonic() - started < 15


def test_an_error_sent_as_200_keeps_its_class() -> None:
    body = '{"error": {"code": 429, "message": "busy"}}'
    with LoopbackServer(faults=[garbage(body)]) as server, pytest.raises(errors.RateLimitError, match="busy"):
        ask(server)


def test_cancelling_ends_a_hanging_request() -> None:
    with LoopbackServer(faults=[hang(30)]) as server:
        token = CancelToken()
        threading.Timer(0.1, token.cancel).start()
        started = time.monotonic()
        with pytest.raises(errors.InterruptedRunError):
            complete(HELLO, server.role(), CallContext(60.0, token))
        assert time.monotonic() - started < 15


def test_a_kept_connection_is_cut_too_and_the_next_call_works() -> None:
    with LoopbackServer("hi", faults=[None, hang(30)]) as server:
        context = CallContext(60.0)
        assert complete(HELLO, server.role(), context).text == "hi"
        with pytest.raises(errors.DeadlineError):
            complete(HELLO, server.role(), replace(context, timeout=0.3))
        assert complete(HELLO, server.role(), context).text == "hi"


def test_a_body_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skillopt.model.transport_http.MAX_BODY_BYTES", 1 << 20)
    with LoopbackServer("x" * (2 << 20)) as server, pytest.raises(errors.BadRequestError, match="larger than 1 MiB"):
        ask(server)


@pytest.mark.parametrize("base_url", ["http://u:hunt@er2@127.0.0.1:1/v1", "http://u:hunter2@127.0.0.1:99999/v1"])
def test_no_error_shows_the_password_of_an_address(base_url: str) -> None:
    with pytest.raises(errors.ModelError) as caught:
        complete(HELLO, role(base_url), CallContext(60.0))
    assert "er2" not in str(caught.value)


@pytest.mark.parametrize("key", ["sk-0123456789\nTAIL", "sk-0123456789…", "two words"])
def test_a_key_that_no_header_can_hold_is_refused_unsent_and_unshown(key: str) -> None:
    with LoopbackServer("ok") as server, pytest.raises(errors.AuthError) as caught:
        ask(server, api_key=key)
    assert not server.requests
    assert key not in str(caught.value)
    assert "TAIL" not in str(caught.value)
    assert "model.openai_compatible_api_key" in str(caught.value)


def test_token_counts_that_are_no_numbers_are_unknown() -> None:
    body = '{"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": 1e400, "completion_tokens": NaN}}'
    with LoopbackServer("ok", faults=[garbage(body)]) as server:
        reply = ask(server)
    assert reply.text == "x"
    assert not reply.usage.known


@pytest.mark.parametrize("body", ["[" * 100_000, '{"choices":' * 5_000], ids=["lists", "objects"])
@pytest.mark.parametrize("code", [200, 400])
def test_a_body_nested_without_end_is_an_error_of_ours(body: str, code: int) -> None:
    with LoopbackServer("ok", faults=[status(code, body=body)]) as server, pytest.raises(errors.ModelError):
        ask(server)


def test_a_server_that_says_nothing_during_the_tls_handshake_is_left_when_asked() -> None:
    token = CancelToken()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}/v1"
        timer = threading.Timer(0.2, token.cancel)
        timer.start()
        started = time.monotonic()
        with pytest.raises(errors.InterruptedRunError):
            complete(HELLO, role(url), CallContext(30.0, token))
        timer.join()
    assert time.monotonic() - started < 15


def test_an_effort_that_a_server_refuses_is_left_out_from_then_on() -> None:  # C137
    refusal = '{"error": {"message": "Unrecognized request argument supplied: reasoning_effort"}}'
    with LoopbackServer("ok", faults=[status(400, body=refusal)]) as server:
        session = Session({"target": replace(server.role(), effort="high")})
        assert [session.call("target", HELLO).text for _ in range(2)] == ["ok", "ok"]
    assert ["reasoning_effort" in r.body for r in server.requests] == [True, False, False]


def test_thinking_written_into_the_text_is_not_the_answer() -> None:
    with LoopbackServer("<think>\nhm\n</think>\n\n42") as server:
        reply = ask(server)
    assert (reply.text, reply.reasoning) == ("42", "hm")

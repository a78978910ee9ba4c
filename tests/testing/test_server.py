"""The loopback server itself, seen through a plain client."""

from __future__ import annotations

import threading
import time

import pytest
import requests
from patience import until

from skillopt.testing import (
    LoopbackServer,
    chat_completion,
    every,
    garbage,
    hang,
    reset,
    responses_body,
    role,
    stall,
    status,
)


def post(
    server: LoopbackServer, text: str = "hi", path: str = "/chat/completions", **headers: str
) -> requests.Response:
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    return requests.post(server.url + path, json=body, headers=headers, timeout=60)


def test_it_answers_and_records() -> None:
    with LoopbackServer(lambda request: request["messages"][-1]["content"] + "!") as server:
        answer = post(server, "hé").json()
        post(server, "second")
    assert answer["choices"][0]["message"]["content"] == "hé!"
    assert [request.last_user for request in server.requests] == ["hé", "second"]
    assert server.requests[1].number == 2 and server.requests[1].time >= server.requests[0].time


def test_whole_bodies_keys_and_paths() -> None:
    with LoopbackServer(chat_completion("x", model="special"), key="k") as server:
        assert post(server).status_code == 401
        assert post(server, Authorization="Bearer k").json()["model"] == "special"
        assert post(server, path="/other", Authorization="Bearer k").status_code == 404


def test_faults_in_order() -> None:
    with LoopbackServer("ok", faults=[status(503, {"Retry-After": "1"}), garbage(), reset(), None]) as server:
        first = post(server)
        assert (first.status_code, first.headers["Retry-After"]) == (503, "1")
        assert post(server).text.startswith("<html>")
        with pytest.raises(requests.ConnectionError):
            post(server)
        assert post(server).status_code == 200


def test_every_nth() -> None:
    with LoopbackServer("ok", faults=every(3, status(500))) as server:
        assert [post(server).status_code for _ in range(6)] == [200, 200, 500, 200, 200, 500]


def test_more_at_once_than_allowed_are_refused() -> None:
    codes: list[int] = []

    def once_two_are_refused(_: object) -> str:
        until(lambda: len(codes) == 2)
        return "ok"

    with LoopbackServer(once_two_are_refused, max_in_flight=1, retry_after_ms=20) as server:
        threads = [threading.Thread(target=lambda: codes.append(post(server).status_code)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(codes) == [200, 429, 429]
    assert server.most_in_flight >= 2


def test_closing_ends_what_hangs() -> None:
    server = LoopbackServer(faults=[hang(60)])
    with server:
        failures: list[Exception] = []

        def wait_for_it() -> None:
            try:
                post(server)
            except requests.ConnectionError as error:
                failures.append(error)

        thread = threading.Thread(target=wait_for_it)
        thread.start()
        while not server.requests:
            time.sleep(0.005)
    thread.join(timeout=30)
    assert not thread.is_alive() and len(failures) == 1


def test_role_points_at_the_server_and_hides_the_key() -> None:
    made = role("http://h/v1", "optimizer", model="m", api_key="very-secret")
    assert (made.role, made.backend, made.settings["base_url"]) == ("optimizer", "openai_compatible", "http://h/v1")
    assert "very-secret" not in repr(made)
    assert made.fingerprint == role("http://h/v1", "target", model="m", api_key="other").fingerprint


AZURE_PATH = "/openai/deployments/my%20model/chat/completions?api-version=2024-12-01-preview"


def azure_post(server: LoopbackServer, path: str, body: dict[str, object], **headers: str) -> requests.Response:
    return requests.post(server.url.removesuffix("/v1") + path, json=body, headers=headers, timeout=60)


def test_azure_paths_and_both_kinds_of_key() -> None:
    body = {"messages": [{"role": "user", "content": "hi"}]}
    with LoopbackServer("hello", key="k") as server:
        answer = azure_post(server, AZURE_PATH, body, **{"api-key": "k"})
        assert answer.json()["choices"][0]["message"]["content"] == "hello"
        assert azure_post(server, AZURE_PATH, body, Authorization="Bearer k").status_code == 200
        for headers in (
            {"api-key": "other"},
            {"Authorization": "k"},
            {"Authorization": "Bearer other", "api-key": "k"},
        ):
            assert azure_post(server, AZURE_PATH, body, **headers).status_code == 401
    first = server.requests[0]
    assert (first.path, first.route, first.query, first.key, first.responses) == (
        AZURE_PATH,
        AZURE_PATH.partition("?")[0],
        {"api-version": "2024-12-01-preview"},
        "k",
        False,
    )


@pytest.mark.parametrize("path", ["/v1/responses", "/openai/responses?api-version=1"])
def test_responses_paths(path: str) -> None:
    body = {"input": [{"role": "user", "content": "hi"}, {"type": "function_call", "call_id": "c"}]}
    with LoopbackServer(lambda request: "hello") as server:
        answer = azure_post(server, path, body).json()
    assert answer == responses_body("hello")
    assert answer["output"][0]["content"][0]["text"] == "hello"
    assert server.requests[0].last_user == "hi" and server.requests[0].responses


@pytest.mark.parametrize("backend", ["openai_compatible", "openai_chat", "qwen_chat", "minimax_chat"])
def test_roles_of_every_dialect(backend: str) -> None:
    with LoopbackServer() as server:
        made = server.role("optimizer", backend=backend, api_key="very-secret")
    address = made.settings["endpoint" if backend == "openai_chat" else "base_url"]
    assert address == server.url.removesuffix("/v1" if backend == "openai_chat" else "")
    assert (made.backend, made.role, made.model) == (backend, "optimizer", "loopback")
    assert "very-secret" not in repr(made) and made.secrets == {"api_key"}


def test_a_role_of_a_compatible_azure_mode_gets_the_base_address() -> None:
    made = role("http://h/v1", backend="openai_chat", auth_mode="compat")
    assert (made.settings["endpoint"], made.settings["auth_mode"]) == ("http://h/v1", "compat")


def test_half_of_a_body_and_then_nothing() -> None:
    with LoopbackServer("ok", faults=[stall(0.05)]) as server:
        with pytest.raises(requests.exceptions.RequestException):
            post(server)
        assert post(server).status_code == 200


def test_what_is_above_its_room_is_told_when_to_come_again() -> None:
    with LoopbackServer("ok", max_in_flight=0, retry_after=2) as server:
        answer = post(server)
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "2")

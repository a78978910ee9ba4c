"""The loopback server itself, seen through a plain client."""

from __future__ import annotations

import threading
import time

import pytest
import requests

from skillopt.testing import LoopbackServer, chat_completion, every, garbage, hang, reset, role, status


def post(
    server: LoopbackServer, text: str = "hi", path: str = "/chat/completions", **headers: str
) -> requests.Response:
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    return requests.post(server.url + path, json=body, headers=headers, timeout=5)


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
    with LoopbackServer("ok", latency=0.1, max_in_flight=1, retry_after_ms=20) as server:
        codes: list[int] = []
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
    thread.join(timeout=2)
    assert not thread.is_alive() and len(failures) == 1


def test_role_points_at_the_server_and_hides_the_key() -> None:
    made = role("http://h/v1", "optimizer", model="m", api_key="very-secret")
    assert (made.role, made.backend, made.settings["base_url"]) == ("optimizer", "openai_compatible", "http://h/v1")
    assert "very-secret" not in repr(made)
    assert made.fingerprint == role("http://h/v1", "target", model="m", api_key="other").fingerprint

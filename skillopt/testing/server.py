"""A real HTTP server on 127.0.0.1 that speaks Chat Completions, Azure's paths and the Responses API, with faults."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from skillopt.testing.bodies import chat_completion, responses_body
from skillopt.testing.faults import Fault, Faults
from skillopt.testing.roles import role
from skillopt.types import JsonObject, RoleConfig

Reply = str | Mapping[str, Any]
ReplyFunction = Callable[[JsonObject], Reply]


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One request as it arrived. `in_flight`: requests being served at that moment, this one included.

    `path` holds the query too; `route` is the part before it and `query` its names and values.
    """

    number: int
    path: str
    headers: Mapping[str, str]
    body: JsonObject
    time: float
    in_flight: int

    @property
    def route(self) -> str:
        """The path without the query."""
        return urlsplit(self.path).path

    @property
    def query(self) -> dict[str, str]:
        """Names and values of the query."""
        return dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True))

    @property
    def key(self) -> str:
        """The key that came with it, as `Authorization: Bearer` or as `api-key`; empty when none did."""
        headers = {name.lower(): value for name, value in self.headers.items()}
        bearer = headers.get("authorization", "")
        return bearer.removeprefix("Bearer ") if bearer.startswith("Bearer ") else headers.get("api-key", "")

    @property
    def responses(self) -> bool:
        """True for a request to the Responses API, False for Chat Completions."""
        return self.route.endswith("/responses")

    @property
    def last_user(self) -> str:
        """Content of the last user message."""
        messages = self.body.get("messages") or self.body.get("input") or []
        return next((str(m.get("content")) for m in reversed(messages) if m.get("role") == "user"), "")


class LoopbackServer:
    """A server for tests that answers `…/chat/completions` and `…/responses`, below `/v1` and below Azure's paths.

    `reply`: function of the request's JSON, giving a text or a whole body (see `chat_completion` and
    `responses_body`). `faults`: what goes wrong, as a list (first request, second, …; None for a proper reply) or a
    function of the request's number.
    `latency`: seconds before each reply. `max_in_flight`: more requests at once are answered 429, with `retry-after-ms`
    or `Retry-After` (whole seconds) when one is given. `key`: other keys are answered 401.

        with LoopbackServer(lambda request: "42", faults=[reset()]) as server:
            session = Session({"target": server.role("target")})
            assert session.ask("target", "", "6 x 7?", stage="rollout").text == "42"
        assert len(server.requests) == 2
    """

    def __init__(
        self,
        reply: ReplyFunction | Reply = "ok",
        *,
        faults: Sequence[Fault | None] | Faults = (),
        latency: float = 0.0,
        max_in_flight: int | None = None,
        retry_after_ms: int | None = None,
        retry_after: int | None = None,
        key: str | None = None,
    ) -> None:
        self._reply, self._faults, self._latency = reply, faults, latency
        self._max_in_flight, self._key = max_in_flight, key
        waits = {"retry-after-ms": retry_after_ms, "Retry-After": retry_after}
        self._asked = {name: str(value) for name, value in waits.items() if value is not None}
        self._lock = threading.Lock()
        self._in_flight = 0
        self._closing = threading.Event()
        self.requests: list[RecordedRequest] = []
        self._http = _HttpServer(("127.0.0.1", 0), _Handler)
        self._http.owner = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> LoopbackServer:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    @property
    def url(self) -> str:
        """The base URL, `http://127.0.0.1:<port>/v1`."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    @property
    def most_in_flight(self) -> int:
        """The largest number of requests that were served at one time."""
        return max((request.in_flight for request in self.requests), default=0)

    def role(self, role_name: str = "target", *, model: str = "loopback", **settings: Any) -> RoleConfig:
        """A role at this server: of `openai_compatible`, or of another backend named as `backend="qwen_chat"`."""
        return role(self.url, role_name, model=model, **settings)

    def close(self) -> None:
        """Stop serving and end what hangs."""
        self._closing.set()
        self._http.shutdown()
        self._http.server_close()

    def enter(self, path: str, headers: Mapping[str, str], body: JsonObject) -> tuple[RecordedRequest, Fault | None]:
        """Record a request; what is wrong with it, if anything."""
        with self._lock:
            self._in_flight += 1
            number = len(self.requests) + 1
            request = RecordedRequest(number, path, dict(headers), body, time.monotonic(), self._in_flight)
            self.requests.append(request)
        return request, self._refusal(request) or self._scripted(number)

    def leave(self) -> None:
        """A request has been served."""
        with self._lock:
            self._in_flight -= 1

    def answer(self, request: RecordedRequest) -> JsonObject:
        """The body of the proper reply."""
        self.pause(self._latency)
        reply = self._reply(request.body) if callable(self._reply) else self._reply
        make = responses_body if request.responses else chat_completion
        return make(reply) if isinstance(reply, str) else dict(reply)

    def pause(self, seconds: float) -> bool:
        """Wait; True when the server is closing."""
        return self._closing.wait(seconds) if seconds > 0 else self._closing.is_set()

    def _refusal(self, request: RecordedRequest) -> Fault | None:
        if self._key is not None and request.key != self._key:
            return Fault("status", 401, {}, '{"error": {"message": "Incorrect API key provided"}}')
        if self._max_in_flight is not None and request.in_flight > self._max_in_flight:
            return Fault("status", 429, self._asked, '{"error": {"message": "Too many requests at once"}}')
        return None

    def _scripted(self, number: int) -> Fault | None:
        if callable(self._faults):
            return self._faults(number)
        return self._faults[number - 1] if number <= len(self._faults) else None


class _HttpServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    owner: LoopbackServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _HttpServer

    def do_POST(self) -> None:
        owner = self.server.owner
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length) or b"{}")
        request, fault = owner.enter(self.path, dict(self.headers.items()), body)
        try:
            answer = self._break(fault) if fault is not None else self._answer(request)
        finally:
            owner.leave()  # before the client has the answer and sends the next request
        if answer is not None:
            self._send(*answer)

    def _answer(self, request: RecordedRequest) -> tuple[int, Mapping[str, str], str]:
        if not request.route.endswith(("/chat/completions", "/responses")):
            return 404, {}, '{"error": {"message": "no such path"}}'
        return 200, {}, json.dumps(self.server.owner.answer(request), ensure_ascii=False)

    def _break(self, fault: Fault) -> tuple[int, Mapping[str, str], str] | None:
        """Act out a fault; what is left to send, if anything."""
        if fault.kind in ("status", "garbage"):
            return fault.code, fault.headers, fault.body
        if fault.kind == "hang":
            self.server.owner.pause(fault.seconds)
        if fault.kind == "trickle":
            self._trickle(fault.seconds)
        if fault.kind == "stall":
            self._stall(fault.seconds)
        self.close_connection = True
        # Linger of zero: the client sees a reset, not an orderly end.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        return None

    def _stall(self, seconds: float) -> None:
        half = json.dumps(chat_completion("half")).encode()[:100]
        self._begin(2 * len(half))
        self.wfile.write(half)
        self.wfile.flush()
        self.server.owner.pause(seconds)

    def _begin(self, length: int) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def _trickle(self, pause: float) -> None:
        self._begin(1_000_000)
        while not self.server.owner.pause(pause):
            self.wfile.write(b" ")
            self.wfile.flush()

    def _send(self, code: int, headers: Mapping[str, str], text: str) -> None:
        data = text.encode("utf-8", "replace")
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

"""One HTTP POST with a true deadline, on the standard library alone.

A socket time-out only bounds one wait for the next byte, so a server that sends a byte now and then holds a caller for
ever. Here the end of the time shuts the connection down. Redirects are not followed: a key goes to the address that
somebody chose, and nowhere else. Resolving a host name is the one step that cannot be cut short.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from skillopt_sleep.backends.faults import ProviderFault, shown
from skillopt_sleep.vendored.utils.cancel import CancelToken

MAX_BODY_BYTES = 32 * 1024 * 1024
_CONNECT_SECONDS = 10.0
_ERROR_BYTES = 64 * 1024
_CHUNK = 64 * 1024


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """Status, headers and body as text (UTF-8, undecodable bytes replaced)."""

    status: int
    headers: Mapping[str, str]
    text: str


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A JSON body for `url`. `who` is how messages call the server; `secrets` never show in one."""

    url: str
    who: str
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)


def post(request: HttpRequest, *, seconds: float) -> HttpAnswer:
    """Send once and read the answer, whatever its status, within `seconds`.

    Raises ProviderFault: transient for a network fault and the end of the time, setup for an address that is no URL.
    """
    token, cutter = CancelToken(seconds), _Cutter()
    try:
        with token.on_cancel(cutter.cut):
            answer = _exchange(request, cutter, seconds)
    except (ValueError, http.client.InvalidURL) as error:
        said = shown(str(error), request.secrets)
        raise ProviderFault(f"The endpoint is not an http(s) address ({said}).", kind="setup") from None
    except (OSError, http.client.HTTPException) as error:
        if token.cancelled or cutter.was_cut:
            raise _late(request, seconds) from None
        raise _broken(request, error) from None
    finally:
        cutter.close()
    if cutter.was_cut:
        raise _late(request, seconds)
    return answer


def _exchange(request: HttpRequest, cutter: _Cutter, seconds: float) -> HttpAnswer:
    message = urllib.request.Request(
        request.url,
        data=request.body,
        headers={"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "SkillOpt-Sleep"},
        method="POST",
    )
    for name, value in request.headers.items():
        message.add_unredirected_header(name, value)
    opener = urllib.request.OpenerDirector()
    for handler in (urllib.request.ProxyHandler(), _Plain(cutter), _Secure(cutter)):
        opener.add_handler(handler)
    response = opener.open(message, timeout=seconds + 1.0)
    if response is None:
        raise ValueError("unknown kind of address")
    with response:
        good = 200 <= response.status < 300
        body = response.read(MAX_BODY_BYTES + 1 if good else _ERROR_BYTES)
    if len(body) > MAX_BODY_BYTES:
        raise ProviderFault(f"The answer of {request.who} is larger than {MAX_BODY_BYTES >> 20} MiB.", kind="refused")
    return HttpAnswer(response.status, dict(response.headers.items()), body.decode("utf-8", "replace"))


def _late(request: HttpRequest, seconds: float) -> ProviderFault:
    return ProviderFault(f"{request.who} did not answer within {seconds:.3g} s.")


def _broken(request: HttpRequest, error: Exception) -> ProviderFault:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    said = shown(str(reason), request.secrets) or type(reason).__name__
    return ProviderFault(f"The connection to {request.who} failed: {said}.", detail=said)


class _Cutter:
    """Holds the socket of a running request a second time, so that it can be shut down from another thread."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._twin: socket.socket | None = None
        self.was_cut = False

    def connect(self, address: tuple[str, int], timeout: float, source: Any = None) -> socket.socket:
        sock = socket.create_connection(address, min(_CONNECT_SECONDS, timeout), source)
        sock.settimeout(timeout)
        with self._lock:
            self._twin = sock.dup()
            if self.was_cut:
                self.cut()
        return sock

    def cut(self) -> None:
        with self._lock:
            self.was_cut = True
            if self._twin is not None:
                with contextlib.suppress(OSError):
                    self._twin.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with self._lock:
            if self._twin is not None:
                self._twin.close()
                self._twin = None


class _Plain(urllib.request.HTTPHandler):
    def __init__(self, cutter: _Cutter) -> None:
        super().__init__()
        self._cutter = cutter

    def http_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(_connection(http.client.HTTPConnection, self._cutter), req)


class _Secure(urllib.request.HTTPSHandler):
    def __init__(self, cutter: _Cutter) -> None:
        super().__init__()
        self._cutter = cutter

    def https_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(_connection(http.client.HTTPSConnection, self._cutter), req)


def _connection(kind: Any, cutter: _Cutter) -> Any:
    def make(host: str, **options: Any) -> http.client.HTTPConnection:
        connection: Any = kind(host, **options)
        connection._create_connection = cutter.connect  # where http.client makes its socket
        return connection  # type: ignore[no-any-return]

    return make

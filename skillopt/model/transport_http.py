"""One HTTP request with a true deadline.

A socket time-out only bounds one wait for the next byte, so a server that sends a byte now and then holds a caller for
ever. Here the connection of a running request is known, and the end of its time or a cancellation shuts it down.
Resolving a host name is the one step that cannot be cut short. Knows no provider and makes one attempt.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from skillopt.errors import BadRequestError, ModelSetupError, TransientError
from skillopt.model.classify import MAX_ERROR_CHARS, Where, network_error
from skillopt.utils.cancel import CancelToken
from skillopt.utils.redact import redact

MAX_BODY_BYTES = 32 * 1024 * 1024
CONNECT_SECONDS = 10.0
_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json",
    "Accept-Encoding": "gzip, deflate",
    "User-Agent": "SkillOpt",
}
_CHUNK = 64 * 1024


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A JSON POST. The header `key_header` says `<scheme> <key>`, or the key alone; without a key there is none."""

    url: str
    body: bytes = field(repr=False)
    where: Where = field(repr=False)
    key: str = field(default="", repr=False)
    key_header: str = "Authorization"
    scheme: str = "Bearer"

    @property
    def headers(self) -> dict[str, str]:
        """The headers that are this request's own."""
        length = {"Content-Length": str(len(self.body))}
        return {**length, self.key_header: f"{self.scheme} {self.key}".lstrip()} if self.key else length


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """Status, headers and body as text (UTF-8, undecodable bytes replaced)."""

    status: int
    headers: Mapping[str, str]
    text: str


class HttpPool:
    """Kept-open connections of one session, safe to use from many threads."""

    def __init__(self, size: int = 64) -> None:
        self._session = requests.Session()
        self._ways: dict[str, _Way] = {}
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, _CuttableAdapter(pool_connections=8, pool_maxsize=size, max_retries=0))

    def post(self, request: HttpRequest, *, timeout: float, cancel: CancelToken | None = None) -> HttpAnswer:
        """Send once and read the answer, whatever its status.

        Raises DeadlineError or InterruptedRunError when `timeout` or `cancel` ends it, TransientError for a network
        fault, BadRequestError for a body above 32 MiB, ModelSetupError for an address that is no URL.
        """
        token = CancelToken(timeout=timeout, parent=cancel)
        token.raise_if_cancelled()
        cutter = _Cutter()
        with _watched(cutter), token.on_cancel(cutter.cut):
            if token.cancelled:
                cutter.cut()
            try:
                answer = self._exchange(request, timeout)
            except (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema) as error:
                said = redact(str(error), request.where.secrets)
                raise ModelSetupError(f"{request.where.url!r} is not an http(s) address: {said}") from None
            except (requests.exceptions.RequestException, urllib3.exceptions.HTTPError, OSError, ValueError) as error:
                token.raise_if_cancelled()
                proxy = requests.utils.select_proxy(request.url, self._way(request.url).settings.get("proxies"))
                raise network_error(error, request.where, reached=cutter.connected, proxy=proxy or "") from None
        if cutter.was_cut:
            token.raise_if_cancelled()
            raise TransientError(f"The connection to {request.where.short} was cut.")
        return answer

    def close(self) -> None:
        """Close all idle connections."""
        self._session.close()

    def _exchange(self, request: HttpRequest, timeout: float) -> HttpAnswer:
        way = self._way(request.url)
        response = way.adapter.send(
            way.message(request), timeout=(min(CONNECT_SECONDS, timeout), timeout + 1.0), **way.settings
        )
        with response:
            limit = MAX_BODY_BYTES if response.ok else 16 * MAX_ERROR_CHARS
            body = _read(response, limit)
        if len(body) > MAX_BODY_BYTES:
            raise BadRequestError(f"The answer of {request.where.short} is larger than {MAX_BODY_BYTES >> 20} MiB.")
        return HttpAnswer(response.status_code, dict(response.headers), body.decode("utf-8", "replace"))

    def _way(self, url: str) -> _Way:
        """How messages get to an address, found out once: it takes as long as sending one."""
        if url not in self._ways:
            head = requests.Request("POST", url, _HEADERS, data=b"", auth=_no_other_sign_in).prepare()
            settings = dict(self._session.merge_environment_settings(url, {}, True, None, None))
            self._ways[url] = _Way(self._session.get_adapter(url), head, settings)
        return self._ways[url]


@dataclass(frozen=True, slots=True)
class _Way:
    """The adapter of an address, what all messages to it share, and proxies and certificates from the environment."""

    adapter: requests.adapters.BaseAdapter = field(repr=False)
    head: requests.PreparedRequest = field(repr=False)
    settings: Mapping[str, Any] = field(repr=False)

    def message(self, request: HttpRequest) -> requests.PreparedRequest:
        """The message of one request."""
        message = self.head.copy()
        message.body = request.body
        message.headers.update(request.headers)
        return message


def _read(response: requests.Response, limit: int) -> bytes:
    """The body up to a little more than `limit` bytes."""
    body = bytearray()
    for chunk in response.raw.stream(_CHUNK, decode_content=True):
        body += chunk
        if len(body) > limit:
            break
    return bytes(body)


def _no_other_sign_in(message: requests.PreparedRequest) -> requests.PreparedRequest:
    """Our key is the only sign-in: none is taken from the address."""
    return message


class _Cutter:
    """Knows the socket of a running request and can shut it down from another thread."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal handler may cut while its own thread attaches
        self._socket: Any = None
        self.was_cut = False
        self.connected = False

    def attach(self, sock: Any, *, connected: bool) -> None:
        if sock is None:
            return
        with self._lock:
            self._socket, self.connected = sock, connected
            if self.was_cut:
                _shut_down(sock)

    def detach(self) -> None:
        with self._lock:
            self._socket = None

    def cut(self) -> None:
        with self._lock:
            self.was_cut = True
            if self._socket is not None:
                _shut_down(self._socket)


def _shut_down(sock: Any) -> None:
    with contextlib.suppress(OSError, ValueError):
        sock.shutdown(socket.SHUT_RDWR)


_CURRENT: ContextVar[_Cutter | None] = ContextVar("skillopt_http_cutter", default=None)


@contextlib.contextmanager
def _watched(cutter: _Cutter) -> Iterator[None]:
    """While inside, connections used by this thread report their socket to `cutter`."""
    mark = _CURRENT.set(cutter)
    try:
        yield
    finally:
        _CURRENT.reset(mark)
        cutter.detach()


def _report(sock: Any, *, connected: bool = True) -> None:
    """Tell the current request which socket it uses."""
    cutter = _CURRENT.get()
    if cutter is not None:
        cutter.attach(sock, connected=connected)


class _Connection(HTTPConnection):
    def connect(self) -> None:
        super().connect()
        _report(self.sock)

    def request(self, *args: Any, **kwargs: Any) -> None:
        _report(self.sock)
        super().request(*args, **kwargs)


class _SecureConnection(HTTPSConnection):
    _twin: socket.socket | None = None

    def _new_conn(self) -> socket.socket:
        sock = super()._new_conn()
        self._twin = sock.dup()  # TLS takes the socket away from us while it shakes hands
        _report(self._twin, connected=False)
        return sock

    def connect(self) -> None:
        try:
            super().connect()
        finally:
            if self._twin is not None:
                self._twin.close()
        _report(self.sock)

    def request(self, *args: Any, **kwargs: Any) -> None:
        _report(self.sock)
        super().request(*args, **kwargs)


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


_POOLS = {"http": _Pool, "https": _SecurePool}


class _CuttableAdapter(HTTPAdapter):
    """An adapter whose connections report their sockets, with and without a proxy."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = _POOLS

    def proxy_manager_for(self, *args: Any, **kwargs: Any) -> Any:
        manager = super().proxy_manager_for(*args, **kwargs)
        manager.pool_classes_by_scheme = _POOLS
        return manager

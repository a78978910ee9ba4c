"""Loaded GGUF models, each with one slot and one thread, and the steps that make replies independent of history.

One thread for a model, and several models at once, rather than several threads in one: llama.cpp's threads wait for
each other by spinning, which on a busy machine turns a tenth of a second into minutes, and the number of threads
changes the last bits of a sum. Knows xllamacpp; does not know messages, roles or settings.
"""

from __future__ import annotations

import http.client
import json
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

_HTTP_SECONDS = 60.0
_POLL_SECONDS = 0.2
_SILENT = -1


class LocalServerError(Exception):
    """The model server refused or failed. `kind` is its own name for the fault, or an empty text."""

    def __init__(self, message: str, kind: str = "") -> None:
        super().__init__(message)
        self.kind = kind


class EnginePool:
    """Up to `size` engines, loaded when they are needed, each lent to one thread at a time."""

    def __init__(self, make: Callable[[], Engine], size: int) -> None:
        self._make = make
        self._size = size
        self._loaded = 0
        self._free: list[Engine] = []
        self._changed = threading.Condition()

    @contextmanager
    def borrow(self, check: Callable[[], None]) -> Iterator[Engine]:
        """A free engine, the one used last first. While none is free, `check` is called now and then; it may raise."""
        engine = self._take(check)
        try:
            yield engine
        finally:
            with self._changed:
                self._free.append(engine)
                self._changed.notify()

    def _take(self, check: Callable[[], None]) -> Engine:
        with self._changed:
            while not self._free and self._loaded >= self._size:
                check()
                self._changed.wait(_POLL_SECONDS)
            if self._free:
                return self._free.pop()
            self._loaded += 1
        try:
            return self._make()
        except BaseException:
            with self._changed:
                self._loaded -= 1
                self._changed.notify()
            raise


class Engine:
    """A model in memory, for one thread at a time."""

    def __init__(self, path: Path, *, context_size: int) -> None:
        self.path = path
        self._key = secrets.token_hex(16)
        self._server = _load(path, context_size, self._key)
        self._address = urlsplit(self._server.listening_address)
        self._slot_prefix: tuple[int, ...] = ()
        self._last_prefix: tuple[str, bool, tuple[int, ...]] = ("", False, ())

    def tokenize(self, text: str, *, start: bool, special: bool = False) -> tuple[int, ...]:
        """Token ids of `text`. `start`: add the model's start token. `special`: read `<|...|>` as control tokens."""
        body = {"content": text, "add_special": start, "parse_special": special}
        return tuple(self._post("/tokenize", body)["tokens"])

    def tokenize_prefix(self, text: str, *, special: bool) -> tuple[int, ...]:
        """Like `tokenize` at the start of a prompt; the last one is remembered, since it comes with every item."""
        if self._last_prefix[:2] != (text, special):
            self._last_prefix = (text, special, self.tokenize(text, start=True, special=special))
        return self._last_prefix[2]

    def apply_template(self, messages: Sequence[Mapping[str, str]]) -> str:
        """The chat prompt that the template in the model file makes of `messages`."""
        return str(self._post("/apply-template", {"messages": list(messages)})["prompt"])

    def generate(self, prefix: tuple[int, ...], rest: tuple[int, ...], sampling: Mapping[str, Any]) -> dict[str, Any]:
        """Continue `prefix + rest`, from a slot state that is a function of `prefix` alone.

        Raises LocalServerError; the slot then counts as unknown and is filled anew by the next call.
        """
        known, self._slot_prefix = self._slot_prefix, ()
        if prefix:
            if prefix != known:
                self._run(prefix, {"max_tokens": 0}, reuse=False)
            self._run(prefix, {"max_tokens": 0}, reuse=True)  # cuts the slot back to the prefix, repeats its last token
        body = self._run(prefix + rest, sampling, reuse=bool(prefix))
        self._slot_prefix = prefix
        return body

    def _run(self, tokens: tuple[int, ...], sampling: Mapping[str, Any], *, reuse: bool) -> dict[str, Any]:
        body = self._server.handle_completions({**sampling, "prompt": list(tokens), "cache_prompt": reuse})
        return _checked(body)

    def _post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Ask the loopback address of the in-process server; proxies of the environment do not apply."""
        link = http.client.HTTPConnection(self._address.hostname or "", self._address.port, timeout=_HTTP_SECONDS)
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._key}"}
        try:
            link.request("POST", path, json.dumps(body).encode("utf-8"), headers)
            return _checked(json.loads(link.getresponse().read()))
        except (OSError, http.client.HTTPException, ValueError) as exc:
            raise LocalServerError(f"{path}: {type(exc).__name__}: {exc}") from exc
        finally:
            link.close()


def _checked(body: Any) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise LocalServerError(f"unexpected reply of type {type(body).__name__}")
    error = body.get("error")
    if error:
        raise LocalServerError(str(error.get("message", error)), str(error.get("type", "")))
    return body


def _load(path: Path, context_size: int, key: str) -> Any:
    """A silent xllamacpp server on the CPU: one slot, one thread, no cache that is shared or kept on the side."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = context_size
    params.n_parallel = 1
    params.n_gpu_layers = 0
    params.n_cache_reuse = 0
    params.cache_ram_mib = 0
    params.n_ctx_checkpoints = 0
    params.fit_params = False
    params.warmup = False
    params.verbosity = _SILENT
    params.ui = False
    params.endpoint_slots = False
    params.api_keys = [key]
    for pool in (params.cpuparams, params.cpuparams_batch):
        pool.n_threads = 1
    try:
        return xllamacpp.Server(params)
    except RuntimeError as exc:
        raise LocalServerError(f"{path}: {exc}") from exc

"""What a server can do wrong. A fault is a value; `LoopbackServer` acts it out instead of replying.

LoopbackServer(faults=[status(429, {"retry-after-ms": "50"}), None, reset()])   # first, second, third request
LoopbackServer(faults=every(10, reset()))                                      # each tenth request
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["status", "reset", "hang", "trickle", "stall", "garbage"]


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. `seconds`: how long to hang or stall, or the pause between two bytes of a trickle."""

    kind: Kind
    code: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    seconds: float = 0.0


Faults = Callable[[int], Fault | None]
"""The fault for request number n (from 1), or None for a proper reply."""


def status(code: int, headers: Mapping[str, str] | None = None, body: str = "") -> Fault:
    """Answer with this status, these headers and this body (a JSON error by default)."""
    text = body or f'{{"error": {{"message": "status {code} as scripted"}}}}'
    return Fault("status", code, headers or {}, text)


def reset() -> Fault:
    """Break the connection without an answer."""
    return Fault("reset")


def hang(seconds: float = 60.0) -> Fault:
    """Say nothing for so long, then break the connection."""
    return Fault("hang", seconds=seconds)


def trickle(pause: float = 0.3) -> Fault:
    """Send the headers, then one byte after each pause, without end."""
    return Fault("trickle", seconds=pause)


def stall(seconds: float = 60.0) -> Fault:
    """Send the headers and half of the body, say nothing for so long, then break the connection."""
    return Fault("stall", seconds=seconds)


def garbage(body: str = "<html>not JSON</html>") -> Fault:
    """Answer 200 with a body that is no chat completion."""
    return Fault("garbage", body=body)


def every(nth: int, fault: Fault) -> Faults:
    """`fault` on each nth request."""
    return lambda number: fault if number % nth == 0 else None

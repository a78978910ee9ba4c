"""One call of one's own to whatever backend there is."""

from __future__ import annotations

from typing import Any

from skillopt_sleep.backends.base import Backend


def ask(backend: Any, prompt: str, *, kind: str, max_tokens: int) -> str:
    """The backend's answer to `prompt`; `kind` is what it is booked under.

    A backend that has only the raw `_call(prompt, max_tokens=...)` is asked through that. Raises what the call raises.
    """
    raw = getattr(type(backend), "_call", None)
    if raw is not None and raw is not Backend._call:
        return str(backend._call(prompt, max_tokens=max_tokens))
    return str(backend.call(prompt, kind=kind, max_tokens=max_tokens))

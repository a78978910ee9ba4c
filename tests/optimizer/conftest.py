"""The fixtures of a session whose optimizer says what a script says."""

from __future__ import annotations

from scripted import events, make_session

__all__ = ["events", "make_session"]

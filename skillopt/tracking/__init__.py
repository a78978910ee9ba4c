"""What happened in a run, as typed events, and the places they go to: the console and `events.jsonl`."""

from __future__ import annotations

from skillopt.tracking.events import Emit, Event, EventLog, Sink

__all__ = ["Emit", "Event", "EventLog", "Sink"]

"""`events.jsonl`: every event of a run, one JSON line each, append-only."""

from __future__ import annotations

from pathlib import Path

from skillopt.tracking.events import Event
from skillopt.utils.files import append_jsonl

_TRANSIENT = frozenset({"item_done"})  # for progress bars; the store holds the items themselves


class JsonlSink:
    """Appends events to a file. Progress ticks are left out: they would be most of the file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, event: Event) -> None:
        """Append one line with `time`, `kind` and the event's data."""
        if event.kind not in _TRANSIENT:
            append_jsonl(self._path, {"time": round(event.time, 3), "kind": event.kind, **event.data})

    def close(self) -> None:
        """Nothing is kept open."""

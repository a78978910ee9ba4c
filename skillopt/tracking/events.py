"""Events and the log that hands them to its sinks.

| kind | data |
|---|---|
| run_started | out_root, resumed_from, total_steps, epochs, plan |
| baseline_started, test_started | purpose |
| epoch_started | epoch, epochs |
| step_started | step, total_steps, epoch |
| phase | name (`1/6 ROLLOUT` … `6/6 EVALUATE`), detail |
| rollout_started, item_done, rollout_finished | purpose, split, done, total, ok, errors, cached, hard (at the end) |
| model_retry, model_error, rate_limited, parameter_dropped, model_changed | stage, role, wait_s, error … |
| analyst_failed, merge_fallback, ranking_fallback, edit_dropped | stage, reason |
| possible_leak | stage, group, found |
| edits_screened | edits, status, passed, evaluated, gained, lost |
| leak_refused | step, found |
| notes_added | step, added, score, score_before |
| consolidation_failed | stage, reason |
| ranking_ignored | stage, ignored |
| gate | action, current, candidate, best, metric |
| step_finished | the step record |
| notice | text |
| run_finished, run_stopped | summary fields; reason |

An event says what happened; it holds no secret and nothing that a run needs to go on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened. `time` is in seconds since the epoch."""

    kind: str
    data: Mapping[str, Any] = field(default_factory=dict)
    time: float = 0.0


class Emit(Protocol):
    """How a room says that something happened: `emit("notice", text="...")`."""

    def __call__(self, kind: str, **data: Any) -> None:
        """Hand one event to every sink."""


class Sink(Protocol):
    """A place that events go to."""

    def write(self, event: Event) -> None:
        """Take one event; called from one thread at a time."""

    def close(self) -> None:
        """Called once, after the last event."""


class EventLog:
    """Hands each event to every sink, one at a time, in the order in which they happened."""

    def __init__(self, sinks: Sequence[Sink] = ()) -> None:
        self._sinks = tuple(sinks)
        self._lock = threading.Lock()

    def emit(self, kind: str, **data: Any) -> None:
        """Make an event and hand it to every sink."""
        event = Event(kind, data, time.time())
        with self._lock:
            for sink in self._sinks:
                sink.write(event)

    def close(self) -> None:
        """Close every sink."""
        with self._lock:
            for sink in self._sinks:
                sink.close()

"""The evidence of a night: one JSON line for each thing that happened, redacted, private and in order."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from skillopt_sleep import paths
from skillopt_sleep.redact import redact_secrets
from skillopt_sleep.show import json_safe

_SHORTEST = 200
_PARTS = ("target", "optimizer", "judger")


class EvidenceLog:
    """Appends events to `path`. Texts are redacted first (unless `redact` is False), then cut to `max_chars`.

    A failed write does not end the night; `problem` then holds its reason.
    """

    def __init__(self, path: Path | str, *, max_chars: int = 4000, redact: bool = True) -> None:
        self.path = Path(path)
        self.max_chars = max(_SHORTEST, int(max_chars))
        self.problem = ""
        self._redact = redact
        self._lock = threading.Lock()
        self._seq = max((event.get("seq", 0) for event in read_events(self.path)), default=0)

    def log(self, stage: str, event: str, **data: Any) -> None:
        """Append one event with its time (UTC) and the next `seq` of this file."""
        payload = self._cut(redact_secrets(data) if self._redact else data)
        with self._lock:
            row = {
                "ts": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
                "stage": stage,
                "event": event,
                **payload,
                "seq": self._seq + 1,
            }
            try:
                paths.append_private(self.path, json.dumps(json_safe(row), ensure_ascii=False, allow_nan=False))
                self._seq += 1
            except OSError as error:
                self.problem = f"{self.path}: evidence is not written ({error.strerror})."

    def _cut(self, value: Any) -> Any:
        if isinstance(value, str):
            dropped = len(value) - self.max_chars
            return value if dropped <= 0 else f"{value[: self.max_chars]}\u2026 [{dropped} more characters]"
        if isinstance(value, dict):
            return {key: self._cut(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._cut(item) for item in value]
        return value


def attach(backend: Any, log: EvidenceLog | None) -> None:
    """Give `backend`, and the halves of a dual one, this log; None takes the old one away."""
    for part in _parts(backend):
        part.evidence = log
        part.evidence_phase = ""


def get(backend: Any) -> EvidenceLog | None:
    """The log that is attached to `backend`."""
    log = getattr(backend, "evidence", None)
    return log if isinstance(log, EvidenceLog) else None


def set_phase(backend: Any, label: str) -> None:
    """Say which part of the night the next calls belong to."""
    for part in _parts(backend):
        part.evidence_phase = label


def phase(backend: Any) -> str:
    """The part of the night that calls belong to now."""
    return str(getattr(backend, "evidence_phase", "") or "")


def read_events(path: Path | str) -> list[dict[str, Any]]:
    """The events of a file by `seq`; lines that are no JSON objects are skipped. [] when there is no such file."""
    events = []
    try:
        with Path(path).open(encoding="utf-8", errors="replace") as stream:
            for line in stream:
                event = _event(line)
                if event is not None:
                    events.append(event)
    except OSError:
        return []
    return sorted(events, key=lambda event: event["seq"])


def _event(line: str) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict):
        return None
    seq = event.get("seq")
    return {**event, "seq": seq if isinstance(seq, int) and not isinstance(seq, bool) else 0}


def _parts(backend: Any) -> Iterator[Any]:
    seen: list[int] = []
    waiting = [backend]
    while waiting:
        part = waiting.pop()
        if part is None or id(part) in seen:
            continue
        seen.append(id(part))
        yield part
        waiting += [getattr(part, name, None) for name in _PARTS if not isinstance(getattr(part, name, None), str)]

"""The answers of a night by content, on disk, so that an interrupted night pays for nothing twice.

One JSON line for each answer, in a file of mode 0600. A line that a kill cut off is skipped. Only answers are kept:
a failed call is made again.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillopt_sleep import paths
from skillopt_sleep.backends.wire import Reply

if TYPE_CHECKING:
    from skillopt_sleep.worktrees import Work

_VERSION = 1


class CallCache:
    """Answers by key, safe to use from many threads. Without `path` they live as long as the object.

    One file serves all backends of a night: keys hold backend, model and prompt.
    """

    def __init__(self, path: Path | str | None = None) -> None:
        self.path = Path(path) if path is not None else None
        self._lock = threading.Lock()
        self._replies: dict[str, Reply] = dict(_read(self.path)) if self.path is not None else {}

    def __len__(self) -> int:
        return len(self._replies)

    def get(self, key: str) -> Reply | None:
        """The answer that is kept under `key`."""
        with self._lock:
            return self._replies.get(key)

    def put(self, key: str, reply: Reply, *, kind: str = "") -> None:
        """Keep an answer. It is on disk when this returns; raises OSError when it cannot be written."""
        with self._lock:
            if self.path is not None:
                paths.append_private(self.path, json.dumps(_row(key, reply, kind)))
            self._replies[key] = reply

    def clear(self) -> None:
        """Forget everything, also on disk: the night is over."""
        with self._lock:
            self._replies.clear()
            if self.path is not None:
                with contextlib.suppress(FileNotFoundError):
                    self.path.unlink()


def _row(key: str, reply: Reply, kind: str) -> dict[str, Any]:
    return {
        "version": _VERSION,
        "key": key,
        "kind": kind,
        "text": reply.text,
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "model": reply.model,
        "tools_called": list(reply.tools_called),
        "cut": reply.cut,
        **({"work": reply.work.to_dict()} if reply.work is not None else {}),
    }


def _read(path: Path) -> Iterator[tuple[str, Reply]]:
    try:
        stream = path.open(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return
    with stream:
        for line in stream:
            try:
                row: Any = json.loads(line)
                if row["version"] == _VERSION and isinstance(row["text"], str):
                    yield str(row["key"]), _reply(row)
            except (ValueError, KeyError, TypeError, RecursionError):
                continue


def _reply(row: dict[str, Any]) -> Reply:
    return Reply(
        row["text"],
        row.get("prompt_tokens"),
        row.get("completion_tokens"),
        str(row.get("model") or ""),
        tuple(str(tool) for tool in row.get("tools_called") or ()),
        bool(row.get("cut")),
        work=_work(row["work"]) if row.get("work") is not None else None,
    )


def _work(data: dict[str, Any]) -> Work:
    from skillopt_sleep.worktrees import Work

    return Work.from_dict(data)

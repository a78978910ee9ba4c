"""A backend without a model process: every call becomes a prompt on disk, which an interactive session answers.

A call that has no answer yet raises `PendingCalls`, so nothing can score, quote or stage a stand-in for it. Whoever
replays a batch goes on with the other tasks of it and raises at the end; then all prompts of a phase wait together.
Running the same command again makes the same calls, and the answers on disk act as a cache.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from skillopt_sleep import paths
from skillopt_sleep.backends.base import Backend
from skillopt_sleep.backends.cli import CliBackend
from skillopt_sleep.backends.dual import DualBackend
from skillopt_sleep.backends.egress import content_key
from skillopt_sleep.backends.handoff_folder import HandoffFolder
from skillopt_sleep.backends.wire import Outgoing, Reply
from skillopt_sleep.errors import PendingCalls
from skillopt_sleep.redact import redact_secrets

_KEY_LENGTH = 16


class HandoffBackend(CliBackend):
    """Calls that wait for answers in `handoff_dir` (default: SKILLOPT_SLEEP_HANDOFF_DIR, else below the project).

    `pending`: the calls of this run that have no answer, by key, in the order in which they came; each is
    `{"prompt", "max_tokens", "kind", "sample"}`.
    """

    name = "handoff"
    tries = 1

    def __init__(self, model: str = "", handoff_dir: str | Path = "", *, project_dir: str = "", **options: Any) -> None:
        super().__init__(model, **options)
        place = Path(handoff_dir) if str(handoff_dir) else paths.handoff_folder(project_dir or Path.cwd())
        self.folder = HandoffFolder(place)
        self._answers = _Answers(self.folder)
        self.pending: dict[str, dict[str, Any]] = {}
        self._lock = threading.Lock()

    @property
    def cache(self) -> Any:
        """The answers in the folder. No other cache can take their place."""
        return self._answers

    @cache.setter
    def cache(self, value: Any) -> None:
        """A cache that is given to all backends of a night is not used here."""

    @property
    def identity(self) -> str:
        """Who answers is not known here, so it is no part of a key."""
        return self.name

    def answer_path(self, key: str) -> Path:
        """Where the answer to a call belongs."""
        return self.folder.answer_path(key)

    def key_of(self, outgoing: Outgoing) -> str:
        """16 hex digits of the prompt as it is shown, and of the sample when it is not the first."""
        parts = (outgoing.prompt, outgoing.sample) if outgoing.sample else (outgoing.prompt,)
        return content_key(*parts)[:_KEY_LENGTH]

    def send(self, outgoing: Outgoing) -> Reply:
        """Note the call as pending and raise PendingCalls with it."""
        record = {
            "prompt": outgoing.prompt,
            "max_tokens": outgoing.max_tokens,
            "kind": outgoing.kind,
            "sample": outgoing.sample,
        }
        with self._lock:
            self.pending.setdefault(outgoing.key, record)
        raise PendingCalls({outgoing.key: record})

    def raise_if_pending(self) -> None:
        """Raise PendingCalls with all calls that wait. Ask it before anything is scored, staged or saved."""
        with self._lock:
            if self.pending:
                raise PendingCalls(self.pending)

    def flush_pending(self) -> Path | None:
        """Write pending.json and PROMPTS.md, or remove them when nothing waits; the path of PROMPTS.md, if any."""
        with self._lock:
            return self.folder.write_pending(self.pending)


def handoff_of(backend: Backend) -> HandoffBackend | None:
    """The handoff backend that `backend` is or has as one of its roles, or None."""
    parts = backend.parts if isinstance(backend, DualBackend) else (backend,)
    return next((part for part in parts if isinstance(part, HandoffBackend)), None)


class _Answers:
    """The answers of the folder in place of the cache; nothing is ever put into it from here."""

    def __init__(self, folder: HandoffFolder) -> None:
        self._folder = folder

    def get(self, key: str) -> Reply | None:
        text = self._folder.answer(key)
        return Reply(str(redact_secrets(text))) if text else None

    def put(self, key: str, reply: Reply, *, kind: str = "") -> None:
        """Answers come from outside."""

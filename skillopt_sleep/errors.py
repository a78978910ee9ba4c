"""Every error that a night raises on purpose, in one tree.

    SleepError                       exit code 1
    ├── UsageProblem                 the person must change something first: a flag, a key, a file      (2)
    ├── StagingError                 a proposal cannot be staged or adopted as it is                    (1)
    │   └── StagingRecoveryError     an adoption could not be rolled back alone; journal and backups kept (1)
    ├── CallFailed                   a model call failed; it is never a score                           (1)
    ├── BudgetSpent                  a cap of the night is reached; what was paid for is kept           (1)
    ├── StateBroken                  a state file cannot be read; it was set aside                      (1)
    ├── NightBusy                    another night works with the same state folder                     (2)
    └── PendingCalls                 model calls of a handoff night wait for answers                    (3)

A message says what happened, where, and what to do. `code` is the `error` of a JSON failure document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

FailureKind = Literal["auth", "setup", "rate", "transient", "refused", "empty", "unparsed"]


class SleepError(Exception):
    """Root of the tree. `exit_code` is what the command line ends with."""

    exit_code: ClassVar[int] = 1
    code: ClassVar[str] = "sleep_failed"


class UsageProblem(SleepError, ValueError):
    """Something that the person who started the command has to change first."""

    exit_code: ClassVar[int] = 2
    code: ClassVar[str] = "usage"


class StagingError(SleepError, ValueError):
    """A proposal cannot be staged or adopted as it is; nothing live was changed."""

    code: ClassVar[str] = "staging_refused"


class StagingRecoveryError(StagingError):
    """An adoption failed and could not be rolled back without touching somebody else's change.

    `primary` is the failure that started the roll back, `recovery_errors` what stood in its way. Journal and backups
    are kept.
    """

    code: ClassVar[str] = "recovery_failed"

    def __init__(
        self, message: str, *, primary: BaseException | None = None, recovery_errors: Sequence[object] = ()
    ) -> None:
        super().__init__(message)
        self.primary = primary
        self.recovery_errors = tuple(recovery_errors)


class CallFailed(SleepError):
    """A model call gave no usable answer. `fatal` kinds stop the night; the others exclude one result.

    `kind`: auth (credentials), setup (program, model or address missing), rate (asked to wait too long), transient
    (network, 5xx, time over), refused (declined by the model or its filter), empty (no text), unparsed (not the JSON
    that was asked for). `detail` is redacted provider text for the evidence.
    """

    code: ClassVar[str] = "backend_failed"
    FATAL: ClassVar[frozenset[str]] = frozenset({"auth", "setup"})

    def __init__(self, message: str, *, kind: FailureKind = "transient", detail: str = "") -> None:
        super().__init__(message)
        self.kind: FailureKind = kind
        self.detail = detail

    @property
    def fatal(self) -> bool:
        """True when no later call can succeed either."""
        return self.kind in self.FATAL


class BudgetSpent(SleepError):
    """A hard cap of the night (`limit`: tokens, calls or minutes) does not allow one more call."""

    code: ClassVar[str] = "budget_spent"

    def __init__(self, message: str, *, limit: str = "") -> None:
        super().__init__(message)
        self.limit = limit


class StateBroken(SleepError):
    """A state file is unreadable. It was set aside, never overwritten; the message says where it lies."""

    code: ClassVar[str] = "state_broken"


class NightBusy(SleepError):
    """Another process holds the lock; the message names its process id and since when."""

    exit_code: ClassVar[int] = 2
    code: ClassVar[str] = "night_busy"


class PendingCalls(SleepError):
    """Calls of a handoff night wait for answers. `pending` maps the key of each to its record."""

    exit_code: ClassVar[int] = 3
    code: ClassVar[str] = "handoff_pending"

    def __init__(self, pending: Mapping[str, Any] | None = None) -> None:
        self.pending: dict[str, Any] = dict(pending or {})
        super().__init__(f"{len(self.pending)} model calls wait for an answer.")

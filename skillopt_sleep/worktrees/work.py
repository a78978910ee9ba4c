"""What an attempt in a checkout changed, and which conditions on it hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from skillopt_sleep.redact import redact_text

MOST_DIFF = 60_000
_READ = 8 * MOST_DIFF  # of a longer diff, what is redacted before it is cut
_EDGE = 4_000  # at the end of it, where a secret may have been cut in two
_MOST_NOTE = 1_500


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether one condition on the work holds. `note`: the redacted end of a command's output."""

    op: str
    arg: str
    passed: bool
    note: str = ""


@dataclass(frozen=True, slots=True)
class Work:
    """What an attempt changed: `diff` (unified, redacted, at most 60,000 characters), `files`, outcomes in order."""

    diff: str = ""
    files: tuple[str, ...] = ()
    checks: tuple[Outcome, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """JSON values, as `ReplayResult.work` holds them."""
        return {"diff": self.diff, "files": list(self.files), "checks": [asdict(check) for check in self.checks]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Work:
        """The work that `to_dict` wrote. Raises ValueError for what is none."""
        try:
            rows = [
                Outcome(str(row["op"]), str(row["arg"]), row["passed"] is True, str(row.get("note", "")))
                for row in data.get("checks", ())
            ]
            return cls(str(data.get("diff", "")), tuple(str(name) for name in data.get("files", ())), tuple(rows))
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"Work: this is none ({error}).") from error


def shown_diff(text: str) -> str:
    """The diff without secrets, cut to `MOST_DIFF` characters; its last line then says so."""
    head = text if len(text) <= _READ else text[: _READ - _EDGE]
    clean = redact_text(head)
    if len(clean) <= MOST_DIFF and len(head) == len(text):
        return clean
    said = f"\n[diff cut: it has {len(text):,} characters]\n"
    return clean[: MOST_DIFF - len(said)] + said


def said_last(output: str) -> str:
    """The redacted end of a command's output."""
    clean = redact_text(output[-4 * _MOST_NOTE :]).strip()
    return clean if len(clean) <= _MOST_NOTE else "\u2026 " + clean[-_MOST_NOTE:].lstrip()

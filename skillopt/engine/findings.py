"""What a check of the set-up says: how bad it is, what it is about, and what mends it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from skillopt.types import JsonObject

_INSTALL = re.compile(r"pip install (?:\"[^\"]+\"|[^\s;,]+)")

Level = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `fail` would stop a run. `fix`: the command, key or variable that mends it."""

    level: Level
    check: str
    what: str
    fix: str = ""

    def to_dict(self) -> JsonObject:
        """`{level, check, what, fix}`."""
        return {"level": self.level, "check": self.check, "what": self.what, "fix": self.fix}


def as_findings(check: str, error: Exception, fix: str) -> Iterator[Finding]:
    """A failure for each line of an error's text. A `pip install` in it is the fix, else `fix`."""
    for line in str(error).splitlines() or [type(error).__name__]:
        if line.strip():
            install = _INSTALL.search(line)
            yield Finding("fail", check, f"{check}: {line.strip()}", install[0] if install else fix)

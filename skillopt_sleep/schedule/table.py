"""The managed block in the text of a crontab: found, changed line by line, and nothing else touched.

Lines in the block that are not this program's (a comment, a variable) are kept. A text whose markers do not make
exactly one block is refused.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from skillopt_sleep import paths
from skillopt_sleep.errors import UsageProblem

BEGIN = "# >>> skillopt-sleep (managed) >>>"
END = "# <<< skillopt-sleep (managed) <<<"
_MARK = re.compile(r"# project-sha256=[0-9a-f]{64}\s*$")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True, slots=True)
class Table:
    """A crontab cut at the block: lines with their ends. `block` is None without one."""

    before: tuple[str, ...]
    block: tuple[str, ...] | None = None
    after: tuple[str, ...] = ()

    @property
    def entries(self) -> list[str]:
        """This program's lines, without line ends."""
        return [line.rstrip("\r\n") for line in self.block or () if _is_entry(line)]

    @property
    def others(self) -> list[str]:
        """What else stands in the block."""
        return [line.rstrip("\r\n") for line in self.block or () if line.strip() and not _is_entry(line)]


def mark_of(project: str | Path) -> str:
    """The comment that ends a project's line: a digest of its path and nothing of the path itself."""
    digest = hashlib.sha256(str(paths.expand(project)).encode("utf-8", "surrogatepass")).hexdigest()
    return f"# project-sha256={digest}"


def parse(text: str) -> Table:
    """The text cut at its block. Raises UsageProblem, with line numbers, when the markers do not make one block."""
    lines = _LINE.findall(text)
    starts = [number for number, line in enumerate(lines) if line.strip() == BEGIN]
    ends = [number for number, line in enumerate(lines) if line.strip() == END]
    if not starts and not ends:
        return Table(tuple(lines))
    if len(starts) != 1 or len(ends) != 1 or ends[0] < starts[0]:
        where = [f"start in line {number + 1}" for number in starts] + [f"end in line {number + 1}" for number in ends]
        raise UsageProblem(
            f"The crontab's skillopt-sleep markers do not make one block ({', '.join(where)}). Nothing was changed; "
            "put them right with `crontab -e`, leaving one start with one end after it, then run this again."
        )
    start, end = starts[0], ends[0]
    return Table(tuple(lines[: start + 1]), tuple(lines[start + 1 : end]), tuple(lines[end:]))


def with_entry(text: str, mark: str, entry: str) -> tuple[str, list[str]]:
    """(text with exactly one line of `mark` in its block, that line being `entry`; the lines that it replaced)."""
    table = parse(text)
    if table.block is None:
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        return f"{text}{gap}{BEGIN}\n{entry}\n{END}\n", []
    own = [number for number, line in enumerate(table.block) if _has(line, mark)]
    at = own[0] if own else len(table.block)
    kept = [line for number, line in enumerate(table.block) if number not in own]
    kept.insert(at, f"{entry}\n")
    replaced = [table.block[number].rstrip("\r\n") for number in own]
    return "".join((*table.before, *kept, *table.after)), replaced


def without_entries(text: str, mark: str | None) -> tuple[str, list[str]]:
    """(text without the lines of `mark`, or without any of this program's for None; the lines that were removed).

    A block in which nothing stands any more goes too, with the blank line before it.
    """
    table = parse(text)
    if table.block is None:
        return text, []
    gone = [line for line in table.block if (_is_entry(line) if mark is None else _has(line, mark))]
    if not gone:
        return text, []
    kept = [line for line in table.block if line not in gone]
    removed = [line.rstrip("\r\n") for line in gone]
    if any(line.strip() for line in kept):
        return "".join((*table.before, *kept, *table.after)), removed
    before = list(table.before[:-1])
    if before and not before[-1].strip():
        before.pop()
    return "".join((*before, *table.after[1:])), removed


def _is_entry(line: str) -> bool:
    return not line.lstrip().startswith("#") and bool(_MARK.search(line))


def _has(line: str, mark: str) -> bool:
    return _is_entry(line) and line.rstrip().endswith(mark)

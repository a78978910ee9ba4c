"""The regions of a document that this program may write: found by offsets, spliced in place.

A region is what stands between a start and an end marker, each alone on its line and outside of code fences. All bytes
outside it stay as they are: blank lines, line ends, the byte order mark, a missing newline at the end. A document whose
markers do not make exactly one region is refused, never repaired.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from skillopt_sleep.errors import UsageProblem

LEARNED_START = "<!-- SKILLOPT-SLEEP:LEARNED START -->"
LEARNED_END = "<!-- SKILLOPT-SLEEP:LEARNED END -->"
BOM = "\ufeff"

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_FENCE = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,})(?P<info>.*)")
_DEEPEST_MARKER = 3  # four spaces make a line code


class MalformedBlock(UsageProblem):
    """The markers of a document do not make one region, so nothing can be written into it safely."""

    code = "malformed_block"


@dataclass(frozen=True, slots=True)
class Markers:
    """The two lines around a region, and what to call it."""

    start: str
    end: str
    name: str


LEARNED = Markers(LEARNED_START, LEARNED_END, "learned block")


@dataclass(frozen=True, slots=True)
class Region:
    """Offsets into a document: `start` to `end` is the region with its marker lines, `inner` to `inner_end` is what
    stands between them. `newline` is the line end of the start marker's line.
    """

    start: int
    inner: int
    inner_end: int
    end: int
    newline: str


@dataclass(frozen=True, slots=True)
class _Found:
    kind: str
    number: int
    begin: int
    after: int


def find_region(document: str, markers: Markers = LEARNED, *, name: str = "the document") -> Region | None:
    """Where the region lies; None when there is none.

    Raises MalformedBlock, with line numbers and what to do, when a marker is missing, twice or in the wrong order, and
    when a code fence that is never closed hides where the document ends. `name` is the document's name in messages.
    """
    found, open_fence = _scan(document, markers)
    if [one.kind for one in found] == ["start", "end"]:
        first, last = found
        return Region(first.begin, first.after, last.begin, last.after, _line_end(document, first.after))
    if found:
        raise MalformedBlock(f"{name}: {_problem(found, markers)}")
    if open_fence:
        raise MalformedBlock(
            f"{name}: the code fence in line {open_fence} is never closed, so a {markers.name} cannot be added after "
            "it; close the fence."
        )
    return None


def check_document(document: str, *, name: str = "the document") -> None:
    """Raise MalformedBlock when rules could not be written into `document`. For the start of a night, before a call."""
    find_region(document, LEARNED, name=name)


def with_region(document: str, content: str, markers: Markers = LEARNED, *, name: str = "the document") -> str:
    """The document with `content` (LF line ends) between the markers; everything else is unchanged.

    A document without the region gets it at its end, after a blank line. Raises MalformedBlock as `find_region` does.
    """
    region = find_region(document, markers, name=name)
    if region is not None:
        inner = content.replace("\n", region.newline)
        return document[: region.inner] + inner + document[region.inner_end :]
    newline = newline_of(document)
    block = f"{markers.start}\n{content}{markers.end}\n".replace("\n", newline)
    return document + _gap(document, newline) + block


def without_region(document: str, markers: Markers, *, name: str = "the document") -> str:
    """The document without the region and its markers; unchanged when it has none."""
    region = find_region(document, markers, name=name)
    return document if region is None else document[: region.start] + document[region.end :]


def newline_of(document: str) -> str:
    """The line end that most lines of the document have; LF when it has none."""
    windows = document.count("\r\n")
    return "\r\n" if windows * 2 > document.count("\n") else "\n"


def lines_of(text: str) -> list[str]:
    """The lines of a text with their line ends; only LF ends a line (a CR before it belongs to it)."""
    return _LINE.findall(text)


def fence_after(line: str, fence: str) -> str:
    """The fence that is open after `line`, when `fence` ("" for none) is open before it."""
    match = _FENCE.match(line.rstrip("\r\n"))
    if match is None:
        return fence
    mark, info = match["mark"], match["info"]
    if fence:
        closes = mark[0] == fence[0] and len(mark) >= len(fence) and not info.strip()
        return "" if closes else fence
    return "" if mark[0] == "`" and "`" in info else mark


def _scan(document: str, markers: Markers) -> tuple[list[_Found], int]:
    """The markers in order, and the line number of a fence that is still open at the end (0: none).

    Between the markers fences do not count: that part is this program's, and its end must be found.
    """
    found: list[_Found] = []
    fence, opened, at, inside = "", 0, 0, False
    for number, line in enumerate(lines_of(document), start=1):
        kind = "" if fence else _marker_in(line, markers)
        if kind:
            found.append(_Found(kind, number, at + (len(BOM) if line.startswith(BOM) else 0), at + len(line)))
            inside = kind == "start"
        elif not inside:
            before, fence = fence, fence_after(line.removeprefix(BOM), fence)
            opened = number if fence and not before else opened
        at += len(line)
    return found, opened if fence else 0


def _marker_in(line: str, markers: Markers) -> str:
    text = line.removeprefix(BOM).rstrip()
    indent = len(text) - len(text.lstrip(" "))
    if indent > _DEEPEST_MARKER:
        return ""
    return {markers.start: "start", markers.end: "end"}.get(text[indent:], "")


def _problem(found: list[_Found], markers: Markers) -> str:
    starts = [one.number for one in found if one.kind == "start"]
    ends = [one.number for one in found if one.kind == "end"]
    if not ends:
        return (
            f"line {starts[0]} starts a {markers.name} and no later line ends it; put `{markers.end}` on a line of its "
            f"own after the last learned rule, or remove line {starts[0]}. Nothing was written."
        )
    if not starts:
        return (
            f"line {ends[0]} ends a {markers.name} that no earlier line starts; put `{markers.start}` on a line of its "
            f"own before the first learned rule, or remove line {ends[0]}. Nothing was written."
        )
    shown = ", ".join(f"{one.kind} in line {one.number}" for one in found)
    return f"the markers of the {markers.name} do not pair up ({shown}); keep one start with one end after it."


def _line_end(document: str, after: int) -> str:
    """The line end before offset `after`; for a last line without one, the document's."""
    if document[:after].endswith("\r\n"):
        return "\r\n"
    return "\n" if document[after - 1 : after] == "\n" else newline_of(document)


def _gap(document: str, newline: str) -> str:
    """What has to stand between a document and a region behind it: at least one blank line."""
    if not document.removeprefix(BOM):
        return ""
    lines = lines_of(document)
    if not lines[-1].endswith("\n"):
        return newline * 2
    return "" if not lines[-1].strip() else newline

"""The two protected regions of a skill document, and the functions that read and write them in plain text.

`SLOW_UPDATE` holds free text that only the slow update writes. `APPENDIX` holds a heading and `- note` lines that
only skill-aware reflection writes. The functions here repair: a marker without its partner is dropped when a region
is written. `skillopt.skill.document` is the strict reader.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

SLOW_UPDATE_START = "<!-- SLOW_UPDATE_START -->"
SLOW_UPDATE_END = "<!-- SLOW_UPDATE_END -->"
APPENDIX_START = "<!-- APPENDIX_START -->"
APPENDIX_END = "<!-- APPENDIX_END -->"
APPENDIX_HEADING = "## Execution Notes Appendix"
MARKERS = (SLOW_UPDATE_START, SLOW_UPDATE_END, APPENDIX_START, APPENDIX_END)

RegionKind = Literal["slow_update", "appendix"]
_SLOW_UPDATE = (SLOW_UPDATE_START, SLOW_UPDATE_END)
_APPENDIX = (APPENDIX_START, APPENDIX_END)
_MARKER_LIKE = re.compile(r"<!--\s*(?:SLOW_UPDATE|APPENDIX)_(?:START|END)\s*-->", re.IGNORECASE)
_NOTE_KEY_TAIL = " .;:,_-"


@dataclass(frozen=True, slots=True)
class Region:
    """One protected region. `text` runs from start to end marker, as in the file; `at` is its place in the body.

    `lead` is the empty line before the start marker and `trail` the line end after the end marker, as in the file.
    """

    kind: RegionKind
    text: str
    at: int
    lead: str = ""
    trail: str = ""

    @property
    def raw(self) -> str:
        """All characters of the file that belong to the region."""
        return self.lead + self.text + self.trail

    @property
    def content(self) -> str:
        """The stripped text between the markers."""
        return _between(self.text, _SLOW_UPDATE if self.kind == "slow_update" else _APPENDIX)


def neutralize_markers(text: str) -> str:
    """`text` without anything that reads as a protected marker, also where removing one would form another."""
    while True:
        cleaned = _MARKER_LIKE.sub("", text)
        if cleaned == text:
            return text
        text = cleaned


def has_slow_update_field(text: str) -> bool:
    """True when both slow update markers are in the text."""
    return SLOW_UPDATE_START in text and SLOW_UPDATE_END in text


def inject_empty_slow_update_field(text: str) -> str:
    """The text with an empty slow update region at its end; unchanged when both markers are there already."""
    return text if has_slow_update_field(text) else replace_slow_update_field(text, "")


def extract_slow_update_field(text: str) -> str:
    """The stripped text between the first start and the first end marker of the slow update; "" without them."""
    return _between(text, _SLOW_UPDATE)


def replace_slow_update_field(text: str, content: str) -> str:
    """The text with one slow update region, holding `content`, at its end; all earlier ones are removed.

    Markers in `content` are dropped. Lines away from the removed regions stay as they are.
    """
    return _write_at_end(text, neutralize_markers(content).strip(), _SLOW_UPDATE)


def has_appendix_field(text: str) -> bool:
    """True when both appendix markers are in the text."""
    return APPENDIX_START in text and APPENDIX_END in text


def inject_empty_appendix_field(text: str) -> str:
    """The text with an appendix that has a heading and no notes; unchanged when both markers are there already."""
    return text if has_appendix_field(text) else _write_at_end(text, APPENDIX_HEADING, _APPENDIX)


def extract_appendix_notes(text: str) -> list[str]:
    """The notes of the appendix in order, without their dash; [] without an appendix."""
    lines = (line.strip() for line in _between(text, _APPENDIX).splitlines())
    notes = (line[2:].strip() if line.startswith("- ") else line for line in lines if line != APPENDIX_HEADING)
    return [note for note in notes if note and note != "-"]


def append_to_appendix_field(text: str, notes: Iterable[str]) -> str:
    """The text with one appendix that holds the notes it had and the new ones, at its end.

    Whitespace in a note is collapsed and markers are dropped. Two notes are the same when they differ only in case
    or in punctuation at their end; the first spelling stays. Nothing new to store leaves the text unchanged.
    """
    existing = extract_appendix_notes(text)
    merged: dict[str, str] = {}
    for note in (*existing, *notes):
        plain = " ".join(neutralize_markers(note).split()) if isinstance(note, str) else ""
        key = plain.rstrip(_NOTE_KEY_TAIL).casefold()
        if key:
            merged.setdefault(key, plain)
    if list(merged.values()) == existing and (not existing or _is_single(text, _APPENDIX)):
        return text
    lines = "".join(f"\n- {note}" for note in merged.values())
    return _write_at_end(text, f"{APPENDIX_HEADING}\n{lines}", _APPENDIX)


def _between(text: str, markers: tuple[str, str]) -> str:
    start, end = text.find(markers[0]), text.find(markers[1])
    return text[start + len(markers[0]) : end].strip() if 0 <= start < end else ""


def _is_single(text: str, markers: tuple[str, str]) -> bool:
    start, end = markers
    return text.count(start) == 1 and text.count(end) == 1 and text.index(start) < text.index(end)


def _write_at_end(text: str, content: str, markers: tuple[str, str]) -> str:
    newline = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
    kept = _without(text, markers, newline).rstrip()
    block = "\n".join(part for part in (markers[0], content, markers[1]) if part) + "\n"
    block = block.replace("\r\n", "\n").replace("\r", "\n").replace("\n", newline)
    return f"{kept}{newline}{newline}{block}" if kept.strip("\ufeff") else kept + block


def _without(text: str, markers: tuple[str, str], newline: str) -> str:
    """The text without the regions and without single markers; at most one empty line stays at each removed place."""
    start, end = markers
    single = re.compile("|".join(map(re.escape, markers)))
    outside: list[str] = []
    position = 0
    while True:
        begin = text.find(start, position)
        stop = text.find(end, begin) if begin >= 0 else -1
        if stop < 0:
            break
        outside += single.split(text[position:begin])
        position = stop + len(end)
    kept = ""
    for part in (*outside, *single.split(text[position:])):
        kept = _join(kept, part, newline)
    return kept


def _join(before: str, after: str, newline: str) -> str:
    if not before:
        return after
    head, tail = before.rstrip("\r\n"), after.lstrip("\r\n")
    seam = (before[len(head) :] + after[: len(after) - len(tail)]).count("\n")
    return head + newline * min(seam, 2) + tail

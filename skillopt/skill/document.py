"""A skill document as a value: front matter, editable body and protected regions, held apart.

Reading a text and writing it again gives the same characters. Changes go through the body only, so front matter,
protected regions, byte order mark and line ends survive every change.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from skillopt.errors import SkillFormatError
from skillopt.skill.regions import MARKERS, SLOW_UPDATE_START, Region, RegionKind, neutralize_markers

_BOM = "\ufeff"
_MARKER = re.compile("|".join(map(re.escape, MARKERS)))
_FENCE = re.compile(r"---[ \t]*\r?\n")
_FENCE_END = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\r?\n|\r?\Z)", re.MULTILINE)
_LINE_END = re.compile(r"\r?\n")


class Splice(NamedTuple):
    """Put `text` in the place of `body[start:end]`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Skill:
    r"""One skill document, and the files that belong to it.

    `front_matter` is the YAML block with its fences, as in the file. `body` is the text that is trained: `\n` line
    ends, no front matter, no protected regions. `newline` is the line end that most lines of the file have;
    `other_ends` lists the body positions whose line end is the other one. `files` maps relative paths to texts.
    """

    front_matter: str
    body: str
    regions: tuple[Region, ...]
    newline: str
    bom: bool
    files: Mapping[str, str] = field(default_factory=dict, hash=False)
    other_ends: tuple[int, ...] = ()

    @classmethod
    def parse(cls, text: str, files: Mapping[str, str] | None = None) -> Skill:
        """Read a document. `Skill.parse(text).text == text` for every text that can be read.

        Raises SkillFormatError, with line numbers, when a protected marker has no partner, or when a region stands
        twice, inside another region or inside the front matter.
        """
        bom = text.startswith(_BOM)
        start = 1 if bom else 0
        front = _front_matter_end(text, start)
        newline = "\r\n" if 2 * text.count("\r\n") > text.count("\n") else "\n"
        body, position = "", front
        regions: list[Region] = []
        other_ends: list[int] = []
        for begin, end in _region_spans(text, front):
            lead, trail = _region_edges(text, position, begin, end)
            body = _append_segment(body, text[position : begin - len(lead)], newline, other_ends)
            kind: RegionKind = "slow_update" if text.startswith(SLOW_UPDATE_START, begin) else "appendix"
            regions.append(Region(kind, text[begin:end], len(body), lead, trail))
            position = end + len(trail)
        body = _append_segment(body, text[position:], newline, other_ends)
        return cls(text[start:front], body, tuple(regions), newline, bom, dict(files or {}), tuple(other_ends))

    @property
    def text(self) -> str:
        """The whole document, as it belongs in the file."""
        parts, position = [_BOM if self.bom else "", self.front_matter], 0
        for region in self.regions:
            parts += (self._raw(position, region.at), region.raw)
            position = region.at
        parts.append(self._raw(position, len(self.body)))
        return "".join(parts)

    def _raw(self, start: int, end: int) -> str:
        if self.newline == "\n" and not self.other_ends:
            return self.body[start:end]
        other = "\n" if self.newline == "\r\n" else "\r\n"
        parts: list[str] = []
        for position in self.other_ends:
            if start <= position < end:
                parts += (self.body[start:position].replace("\n", self.newline), other)
                start = position + 1
        parts.append(self.body[start:end].replace("\n", self.newline))
        return "".join(parts)

    @property
    def hash(self) -> str:
        """First 16 hex digits of the SHA-256 of the text, and of the files when there are any."""
        if not self.files:
            return skill_hash(self.text)
        parts = [self.text, *(part for name in sorted(self.files) for part in (name, self.files[name]))]
        return skill_hash("\0".join(f"{len(part)}:{part}" for part in parts))

    @property
    def normalized(self) -> str:
        """The text without what changes no meaning: line ends, spaces at line ends, repeated and outer empty lines."""
        lines = (line.rstrip() for line in self.text.lstrip(_BOM).replace("\r\n", "\n").split("\n"))
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")

    def same_as(self, other: Skill) -> bool:
        """True when both documents say the same: equal normalized texts and equal files."""
        return self.normalized == other.normalized and dict(self.files) == dict(other.files)

    def metadata(self) -> dict[str, Any]:
        """The front matter as YAML values; empty without one. Raises SkillFormatError when it is not valid YAML."""
        import yaml

        lines = self.front_matter.splitlines()
        try:
            value = yaml.safe_load("".join(f"{line}\n" for line in lines[1:-1]))
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise SkillFormatError(f"The front matter of the skill is not valid YAML ({reason}); mend it.") from error
        return value if isinstance(value, dict) else {}

    def with_body(self, new: str) -> Skill:
        """This document with another body. Regions keep their text, and their place where the text around them stays.

        Protected markers in `new` are dropped, and so is a copy of the front matter at its start. An empty line keeps
        `new` from being read as front matter.
        """
        new = neutralize_markers(new.replace("\r\n", "\n")).lstrip(_BOM)
        new = new.removeprefix(self.front_matter.replace("\r\n", "\n"))
        if new == self.body:
            return self
        front_matter_begins = not self.front_matter and new.split("\n", 1)[0].rstrip() == "---"
        front_matter_goes_on = self.front_matter and not self.front_matter.endswith("\n") and new[:1] != "\n"
        if front_matter_begins or front_matter_goes_on:
            new = "\n" + new
        start, end, text = _line_difference(self.body, new)
        region_follows = any(start < r.at <= end or r.at == end for r in self.regions)
        if region_follows and text and not text.endswith("\n"):
            text += "\n"
        return self.spliced([Splice(start, end, text)])

    def spliced(self, splices: Sequence[Splice]) -> Skill:
        """This document with parts of the body replaced; all positions are those of the present body.

        The splices must not overlap. Several at one place take effect in their order, before a region that stands
        there. Raises SkillFormatError when the new text would form a protected marker.
        """
        ordered = sorted(splices, key=lambda s: (s.start, s.end))
        parts: list[str] = []
        position = 0
        for start, end, text in ordered:
            parts += (self.body[position:start], text)
            position = end
        body = "".join((*parts, self.body[position:]))
        regions = tuple(replace(region, at=_moved(region.at, ordered)) for region in self.regions)
        ends = (p for p in self.other_ends if not any(start <= p < end for start, end, _ in ordered))
        moved_ends = tuple(_moved(p, ordered) for p in ends)
        changed = replace(self, body=body, regions=regions, other_ends=moved_ends)
        return Skill.parse(_keep_line_starts(self, changed).text, self.files)


def skill_hash(text: str) -> str:
    """First 16 hex digits of the SHA-256 of `text` in UTF-8."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def shrink_ratio(old: str, new: str) -> float:
    """Share of the old text's non-blank characters that the new text has fewer, in 0..1; 0 when it did not shrink."""
    before, after = len("".join(old.split())), len("".join(new.split()))
    return max(0.0, 1 - after / before) if before else 0.0


def _front_matter_end(text: str, start: int) -> int:
    """Position after the YAML block that begins at `start`, or `start` when none does."""
    opened = _FENCE.match(text, start)
    closed = _FENCE_END.search(text, opened.end()) if opened else None
    return closed.end() if closed else start


def _region_spans(text: str, front: int) -> list[tuple[int, int]]:
    """Start and end of every protected region, in order. Raises SkillFormatError on markers that do not pair up."""
    spans: list[tuple[int, int]] = []
    opened: re.Match[str] | None = None
    seen: dict[str, int] = {}
    for match in _MARKER.finditer(text):
        marker, line = match.group(), text.count("\n", 0, match.start()) + 1
        if match.start() < front:
            raise SkillFormatError(f"Line {line}: {marker} stands inside the front matter; remove it.")
        if marker in seen:
            raise SkillFormatError(
                f"Line {line}: {marker} stands there again (first in line {seen[marker]}); keep one."
            )
        if opened is None and not marker.endswith("_START -->"):
            raise SkillFormatError(f"Line {line}: {marker} has no start marker before it; add one or remove it.")
        if opened is not None and marker != opened.group().replace("_START", "_END"):
            first = seen[opened.group()]
            raise SkillFormatError(
                f"Line {line}: {marker} stands inside the region that begins in line {first}; "
                f"put {opened.group().replace('_START', '_END')} before it."
            )
        seen[marker] = line
        if opened is not None:
            spans.append((opened.start(), match.end()))
        opened = match if opened is None else None
    if opened is not None:
        missing = opened.group().replace("_START", "_END")
        raise SkillFormatError(f"Line {seen[opened.group()]}: {opened.group()} is never closed; {missing} is missing.")
    return spans


def _region_edges(text: str, position: int, begin: int, end: int) -> tuple[str, str]:
    """The empty line before a region and the line end after it; each "" when the region does not stand on own lines.

    `position` is where the text before the region begins.
    """
    first = 1 if text.startswith(_BOM) else 0
    if begin > first and text[begin - 1] != "\n":
        return "", ""
    gap = text[position:begin]
    lead = gap[-2:] if gap.endswith("\r\n") else "\n" if gap.endswith("\n") else ""
    before = begin - len(lead)
    if before > first and text[before - 1] != "\n":
        lead = ""
    trail = _LINE_END.match(text, end)
    return lead, trail.group() if trail else ""


def _append_segment(body: str, raw: str, newline: str, other_ends: list[int]) -> str:
    """`body` with a part of the file added to it; line ends that differ from `newline` are noted in `other_ends`."""
    parts, position, length = [body], 0, len(body)
    for match in _LINE_END.finditer(raw):
        parts += (raw[position : match.start()], "\n")
        length += match.start() - position
        if match.group() != newline:
            other_ends.append(length)
        length += 1
        position = match.end()
    return "".join((*parts, raw[position:]))


def _moved(position: int, splices: Sequence[Splice]) -> int:
    """Where `position` is after the splices; a place inside replaced text goes to the end of what replaced it."""
    moved = position
    for start, end, text in splices:
        if start < position or end <= position:
            moved += len(text) - (min(end, position) - start)
    return moved


def _keep_line_starts(old: Skill, new: Skill) -> Skill:
    """`new` with a line end put before each region that stood at the start of a line in `old` and does so no more."""
    body, added = new.body, 0
    regions: list[Region] = []
    ends = list(new.other_ends)
    for before, region in zip(old.regions, new.regions, strict=True):
        at = region.at + added
        starts_line = before.at == 0 or old.body[before.at - 1] == "\n"
        glued = at > 0 and body[at - 1] != "\n" and not (regions and regions[-1].at == at and regions[-1].trail)
        if starts_line and glued and not region.lead:
            body = f"{body[:at]}\n{body[at:]}"
            ends = [p + (p >= at) for p in ends]
            added, at = added + 1, at + 1
        regions.append(replace(region, at=at))
    return replace(new, body=body, regions=tuple(regions), other_ends=tuple(ends))


def _line_difference(old: str, new: str) -> Splice:
    """The one splice, made of whole lines, that turns `old` into `new`."""
    old_lines, new_lines = old.splitlines(keepends=True), new.splitlines(keepends=True)
    limit = min(len(old_lines), len(new_lines))
    first = next((i for i in range(limit) if old_lines[i] != new_lines[i]), limit)
    limit -= first
    last = next((i for i in range(limit) if old_lines[-1 - i] != new_lines[-1 - i]), limit)
    start, end = sum(map(len, old_lines[:first])), len(old) - sum(map(len, old_lines[len(old_lines) - last :]))
    return Splice(start, end, "".join(new_lines[first : len(new_lines) - last]))

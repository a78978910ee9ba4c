# A copy of skillopt/utils/json_scan.py, made by scripts/vendor.py: change the original, then run that.
"""Find the JSON objects and arrays that stand in a model's text, in one pass.

The scan knows strings, code fences and reasoning blocks; it does not know whether what it found is valid JSON.
Its time is linear in the length of the text, whatever the text is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

MAX_DEPTH = 500
_MAX_OPEN = 10_000
_MAX_BRACKETS = 100_000
_MAX_FOUND = 1_000
_TOKEN = re.compile(r'[{}\[\]"]|`{3,}|</?think(?:ing)?>', re.IGNORECASE)
_STRING_STOP = re.compile(r'["\\]')
_STRING_OR_LINE_STOP = re.compile(r'["\\\n]')
_OBJECT_BEGINS = re.compile(r'\{\s*["}]')
_ARRAY_BEGINS = re.compile(r'\[\s*(?:["\[{\]]|-?\d|true|false|null)')
_THINK_END = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_JSON_FENCE = re.compile(r"`{3,}[ \t]*(?:json\w*)?[ \t]*(?=\r?\n|[{\[])", re.IGNORECASE)
_OPENER = {"}": "{", "]": "["}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A balanced span `text[start:end]`. `sound`: no bracket inside it is left open or closed by the wrong one."""

    start: int
    end: int
    depth: int
    fenced: bool
    sound: bool


@dataclass(frozen=True, slots=True)
class Scan:
    """What a text holds: outermost candidates in order, and what was begun and never ended.

    `noise` says why the text was given up, and is empty for every text that a model could mean.
    """

    candidates: tuple[Candidate, ...]
    cut: bool
    open_reasoning: bool
    noise: str


@dataclass(slots=True)
class _Open:
    start: int
    char: str
    looks_like_json: bool
    depth: int = 1
    sound: bool = True
    inside: list[Candidate] = field(default_factory=list)


def scan(text: str) -> Scan:
    """Find the outermost balanced spans of `text`; a span inside an unfinished JSON value is not one of them."""
    scanner = _Scanner(text)
    scanner.run()
    found = tuple(sorted(scanner.found, key=lambda c: c.start))
    return Scan(found, scanner.cut, scanner.open_reasoning, scanner.noise)


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.found: list[Candidate] = []
        self.stack: list[_Open] = []
        self.counts = {"{": 0, "[": 0}
        self.fenced = False
        self.in_fence = False
        self.cut = False
        self.open_reasoning = False
        self.noise = ""
        self.brackets = 0

    def run(self) -> None:
        position = 0
        while not (self.noise or self.open_reasoning):
            match = _TOKEN.search(self.text, position)
            if match is None:
                break
            position = self._token(match)
        self._abandon()

    def _token(self, match: re.Match[str]) -> int:
        token = match.group()
        if token in "{[":
            self._open(match.start(), token)
        elif token in "}]":
            self._close(match.end(), _OPENER[token])
        elif token == '"':
            return self._string(match.start())
        elif token[0] == "`":
            self._fence(match)
        elif not self._inside_json():
            return self._reasoning(match)
        return match.end()

    def _inside_json(self) -> bool:
        return bool(self.stack) and self.stack[0].looks_like_json

    def _open(self, start: int, char: str) -> None:
        begins = _OBJECT_BEGINS if char == "{" else _ARRAY_BEGINS
        self.stack.append(_Open(start, char, begins.match(self.text, start) is not None))
        self.counts[char] += 1
        self.brackets += 1
        if len(self.stack) > _MAX_OPEN:
            self.noise = "its brackets are nested too deep"
        elif self.brackets > _MAX_BRACKETS or len(self.found) > _MAX_FOUND:
            self.noise = "it has too many brackets"

    def _close(self, end: int, char: str) -> None:
        if self.counts[char] == 0:
            if self.stack:
                self.stack[-1].sound = False
            return
        sound, depth = True, 0
        while self.stack[-1].char != char:
            lost = self._pop()
            sound, depth = False, max(depth, lost.depth)
        opened = self._pop()
        depth, sound = max(depth + 1, opened.depth), sound and opened.sound
        candidate = Candidate(opened.start, end, depth, self.fenced, sound)
        if not self.stack:
            self.found.append(candidate)
            return
        parent = self.stack[-1]
        parent.inside.append(candidate)
        parent.depth = max(parent.depth, depth + 1)
        parent.sound = parent.sound and sound

    def _pop(self) -> _Open:
        opened = self.stack.pop()
        self.counts[opened.char] -= 1
        return opened

    def _string(self, start: int) -> int:
        if not self.stack:
            return self._quoted_prose(start)
        stop = _STRING_STOP if self._inside_json() else _STRING_OR_LINE_STOP
        position = start + 1
        while True:
            match = stop.search(self.text, position)
            if match is None:
                return len(self.text)
            if match.group() != "\\":
                return match.end()
            position = match.end() + 1

    def _quoted_prose(self, start: int) -> int:
        """End of a quotation on one line of prose, or the next position when the mark opens none."""
        end = self.text.find('"', start + 1)
        opens = start == 0 or not self.text[start - 1].isalnum()
        closes = end >= 0 and not self.text[end + 1 : end + 2].isalnum() and self.text[end - 1] not in "{["
        if opens and closes and "\n" not in self.text[start:end]:
            return end + 1
        return start + 1

    def _fence(self, match: re.Match[str]) -> None:
        lowest = max(0, match.start() - 8)
        line_start = max(lowest, self.text.rfind("\n", lowest, match.start()) + 1)
        if self._inside_json() and self.text[line_start : match.start()].strip():
            return
        self._abandon()
        self.cut = False
        self.in_fence = not self.in_fence
        self.fenced = self.in_fence and _JSON_FENCE.match(self.text, match.start()) is not None

    def _reasoning(self, match: re.Match[str]) -> int:
        if match.group().startswith("</"):
            self.stack.clear()
            self.found.clear()
            self.counts = {"{": 0, "[": 0}
            self.cut = self.in_fence = self.fenced = False
            return match.end()
        closed = _THINK_END.search(self.text, match.end())
        if closed is None:
            self.open_reasoning = True
            return len(self.text)
        return closed.end()

    def _abandon(self) -> None:
        """Give up what is open. What stands inside an unfinished JSON value is lost with it."""
        for opened in self.stack:
            if opened.looks_like_json:
                self.cut = True
                break
            self.found.extend(opened.inside)
        self.stack.clear()
        self.counts = {"{": 0, "[": 0}

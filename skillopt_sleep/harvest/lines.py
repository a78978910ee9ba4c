"""Reads JSON lines from files that other programs may be writing: line by line, and a bad line costs only itself."""

from __future__ import annotations

import hashlib
import io
import json
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LONGEST_LINE = 32 * 1024 * 1024
_BUFFER = 32 * 1024
_MARK = 1024  # bytes at either end of what was read by which a file is known again
OnRead = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What a file was when it was looked at. `inode` is (device, inode)."""

    inode: tuple[int, int]
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Marks:
    """Hashes of the first bytes and of those before `offset`: content before it is known again by them."""

    offset: int
    head: str
    tail: str


class Transcript:
    """One JSONL file, opened for reading; `with Transcript(path, on_read) as t: for record in t.records(): ...`.

    `on_read` is told the number of bytes of each read. `offset` is where the first unread line begins. `bad` counts
    lines that were left out, by reason. Raises OSError when the path is a link, no plain file, or unreadable.
    """

    def __init__(self, path: Path, on_read: OnRead, *, longest: int = LONGEST_LINE) -> None:
        self._raw = _CountingFile(path, on_read)
        self._stream = io.BufferedReader(self._raw, _BUFFER)
        self._longest = longest
        self.fingerprint = fingerprint(os.fstat(self._raw.fileno()))
        self.offset = 0
        self._head = b""
        self._tail = b""
        self.bad: Counter[str] = Counter()

    def __enter__(self) -> Transcript:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def continues(self, marks: Marks) -> bool:
        """True when what was read before is still there; reading then goes on behind it."""
        if marks.offset > self.fingerprint.size:
            return False
        length = min(_MARK, marks.offset)
        head, tail = self._bytes_at(0, length), self._bytes_at(marks.offset - length, length)
        if (_hash(head), _hash(tail)) != (marks.head, marks.tail):
            return False
        self._head, self._tail = head, tail
        self._stream.seek(marks.offset)
        self.offset = marks.offset
        return True

    @property
    def marks(self) -> Marks:
        """The marks of what lies before the first unread line."""
        return Marks(self.offset, _hash(self._head), _hash(self._tail))

    def records(self) -> Iterator[dict[str, Any]]:
        """Each object of the rest of the file; an unfinished last line is left for another time."""
        while line := self._stream.readline(self._longest):
            whole = line.endswith(b"\n")
            if not whole and len(line) == self._longest:
                if not self._skip_line(line):
                    return
                self.bad["too long"] += 1
                continue
            record, problem = _parse(line)
            if not whole and record is None:
                return
            self._take(line)
            if problem:
                self.bad[problem] += 1
            if record is not None:
                yield record

    def _take(self, data: bytes) -> None:
        self.offset += len(data)
        if len(self._head) < _MARK:
            self._head = (self._head + data[:_MARK])[:_MARK]
        self._tail = data[-_MARK:] if len(data) >= _MARK else (self._tail + data)[-_MARK:]

    def _skip_line(self, start: bytes) -> bool:
        """Go to the end of a line that is too long; False when the file ends before it."""
        length, tail = len(start), start[-_MARK:]
        while piece := self._stream.readline(_BUFFER):
            length, tail = length + len(piece), (tail + piece)[-_MARK:]
            if piece.endswith(b"\n"):
                self._take(start[:_MARK])
                self.offset, self._tail = self.offset - len(start[:_MARK]) + length, tail
                return True
        return False

    def _bytes_at(self, start: int, length: int) -> bytes:
        # Not through the buffer, which would read far more than the mark.
        where = self._raw.tell()
        self._raw.seek(start)
        data = bytearray()
        while len(data) < length and (piece := self._raw.read(length - len(data))):
            data += piece
        self._raw.seek(where)
        return bytes(data)


class _CountingFile(io.FileIO):
    def __init__(self, path: Path, on_read: OnRead) -> None:
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        flags |= getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        super().__init__(path, "rb", opener=lambda name, _: os.open(name, flags))
        self._on_read = on_read
        if not stat.S_ISREG(os.fstat(self.fileno()).st_mode):
            self.close()
            raise OSError(f"{path}: no plain file")

    def readinto(self, buffer: Any, /) -> int:
        """Read as a raw file does, and tell of it."""
        count = super().readinto(buffer) or 0
        self._on_read(count)
        return count

    def read(self, size: int | None = -1, /) -> bytes:
        """Read as a raw file does, and tell of it."""
        data = super().read(size) or b""
        self._on_read(len(data))
        return data


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:24]


def fingerprint(found: os.stat_result) -> Fingerprint:
    """The fingerprint in a file's status."""
    return Fingerprint((found.st_dev, found.st_ino), found.st_size, found.st_mtime_ns)


def _parse(line: bytes) -> tuple[dict[str, Any] | None, str]:
    """The object of a line and what is wrong with it; a blank line is neither."""
    content = line.strip(b"\0 \t\r\n")
    if not content:
        return None, ""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None, "not UTF-8"
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None, "not JSON"
    return (value, "") if isinstance(value, dict) else (None, "not an object")

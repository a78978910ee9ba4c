"""Finds the transcripts of a source and brings the index up to date with what is new in them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skillopt_sleep.harvest.common import Claim, Scope, Session, pick_project
from skillopt_sleep.harvest.index import Index, Row
from skillopt_sleep.harvest.lines import Fingerprint, Marks, Transcript, fingerprint
from skillopt_sleep.types import SessionDigest

_SHOWN_PROBLEMS = 5


def _never(_: Path) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Source:
    """One kind of JSONL transcripts.

    `read` takes one record into a session. `folders` are the parts of a location that hold transcripts, where it has
    them. With `one_folder` the first working folder decides the project, so that others' sessions need not be read.
    """

    name: str
    read: Callable[[Session, dict[str, Any], Claim], None]
    folders: tuple[str, ...] = ()
    is_sub_agent: Callable[[Path], bool] = _never
    one_folder: bool = False


@dataclass(slots=True)
class Gathered:
    """What a harvest found. `taken` holds the turns by file of everything that was decided on.

    `skipped` counts sessions that were left out, `bad_lines` lines, both by reason; `backlog` counts sessions above
    the limit, which stay for the next time; `outside` those of other projects and `early` those before the window.
    """

    digests: list[SessionDigest] = field(default_factory=list)
    taken: dict[str, int] = field(default_factory=dict)
    by_source: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    bad_lines: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    backlog: int = 0
    outside: int = 0
    early: int = 0
    dated_by_file: int = 0
    files_read: int = 0
    bytes_read: int = 0

    def count_bytes(self, number: int) -> None:
        """Told of every read."""
        self.bytes_read += number

    def notes(self) -> list[str]:
        """What was left out and why, one line each."""
        lines = []
        if self.skipped:
            lines.append(f"Left out, by reason: {_counts(self.skipped)}.")
        if self.bad_lines:
            lines.append(f"Lines that could not be used: {_counts(self.bad_lines)}.")
        if self.dated_by_file:
            lines.append(f"Sessions without times of their own, dated by their files: {self.dated_by_file}.")
        if self.backlog:
            lines.append(f"Sessions above the limit, which wait for the next night: {self.backlog}.")
        more = len(self.problems) - _SHOWN_PROBLEMS
        return lines + self.problems[:_SHOWN_PROBLEMS] + ([f"And {more} more like these."] if more > 0 else [])


@dataclass(frozen=True, slots=True)
class Wanted:
    """Whose sessions, since when (`since`: epoch seconds by source, 0: always), and at most how many (0: all)."""

    scope: Scope
    invoked: str
    since: dict[str, float]
    limit: int = 0
    consumer: str = ""
    overrides: Path | None = None


class Reading:
    """One pass over one source's location."""

    def __init__(self, index: Index, source: Source, wanted: Wanted, found: Gathered) -> None:
        self._index = index
        self._source = source
        self._wanted = wanted
        self._found = found
        self._complete = True

    def run(self, location: Path) -> None:
        """Bring the index up to date with the files under `location`; a missing one changes nothing."""
        roots = [location / folder for folder in self._source.folders if (location / folder).is_dir()] or [location]
        roots = [root for root in roots if root.is_dir()]
        files = [(path, seen) for root in roots for path, seen in self._files(root, root)]
        # Newest first, so that a session which was resumed in another file is found whole in the newer one.
        for path, seen in sorted(files, key=lambda file: (-file[1].mtime_ns, str(file[0]))):
            try:
                self._look_at(path, seen)
            except FileNotFoundError:
                continue
            except OSError as error:
                self._problem(path, error)
        if roots and self._complete:
            there = {str(path) for path, _ in files}
            inside = tuple(str(root) + os.sep for root in roots)
            known = self._index.paths_of(self._source.name)
            self._index.forget([path for path in known if path.startswith(inside) and path not in there])

    def _files(self, folder: Path, root: Path) -> Iterator[tuple[Path, Fingerprint]]:
        try:
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            self._problem(folder, error)
            return
        for entry in entries:
            path = folder / entry.name
            if entry.is_dir(follow_symlinks=False):
                yield from self._files(path, root)
            elif entry.name.endswith(".jsonl") and (seen := self._seen(entry, path.relative_to(root))) is not None:
                yield path, seen

    def _seen(self, entry: os.DirEntry[str], relative: Path) -> Fingerprint | None:
        """The fingerprint of a transcript that is to be looked at."""
        reason = ""
        if self._source.is_sub_agent(relative):
            reason = "sub-agent"
        elif entry.is_symlink():
            reason = "link"
        elif not entry.is_file(follow_symlinks=False):
            reason = "no plain file"
        elif not _storable(entry.path):
            reason = "file name that is not UTF-8"
        try:
            seen = fingerprint(Path(entry.path).lstat())
        except OSError:
            return None
        if not reason:
            return seen
        if seen.mtime_ns >= self._since * 1e9:
            self._found.skipped[reason] += 1
        return None

    @property
    def _since(self) -> float:
        return self._wanted.since[self._source.name]

    def _look_at(self, path: Path, seen: Fingerprint) -> None:
        row = self._index.known(str(path))
        if row is not None and row.session is None and row.fingerprint.inode == seen.inode:
            if not self._in_scope(row.projects):
                return
        elif seen.mtime_ns < self._since * 1e9 if row is None else row.fingerprint == seen:
            return
        with Transcript(path, self._found.count_bytes) as transcript:
            self._read(path, transcript, row or self._index.moved(self._source.name, path.name, seen))

    def _read(self, path: Path, transcript: Transcript, row: Row | None) -> None:
        session = Session(session_id=path.stem[:200])
        if row is not None and row.session is not None and transcript.continues(row.marks):
            session = row.session
            if row.path != str(path):
                self._index.move(row.path, str(path))
        elif row is not None and row.path == str(path):
            self._index.forget([row.path])
        self._found.files_read += 1
        if session.dated_by_file:
            session.started = session.ended = None
        keys: dict[str, None] = {}
        whole = self._take_in(session, transcript, self._claim(keys))
        self._found.bad_lines += transcript.bad
        session.dated_by_file = session.ended is None
        if session.ended is None:
            session.started = session.ended = transcript.fingerprint.mtime_ns / 1e9
        kept = session if whole else None
        marks = transcript.marks if whole else Marks(0, "", "")
        self._index.save(
            Row(str(path), self._source.name, transcript.fingerprint, marks, tuple(session.projects), kept),
            list(keys) if whole else (),
        )

    def _take_in(self, session: Session, transcript: Transcript, claim: Claim) -> bool:
        """Read all records; False when the session turns out to be of another project before anything was said."""
        undecided = self._source.one_folder and not session.projects
        for record in transcript.records():
            self._source.read(session, record, claim)
            if undecided and session.projects:
                undecided = False
                if not self._in_scope(session.projects):
                    return False
        return True

    def _claim(self, keys: dict[str, None]) -> Claim:
        def claim(key: str) -> bool:
            if key in keys or self._index.owner_of(key) is not None:
                return False
            keys[key] = None
            return True

        return claim

    def _in_scope(self, projects: Sequence[str]) -> bool:
        return pick_project(projects, self._wanted.scope, self._wanted.invoked) is not None

    def _problem(self, path: Path, error: OSError) -> None:
        self._complete = False
        self._found.skipped["unreadable"] += 1
        self._found.problems.append(f"{path}: cannot be read ({error.strerror or error}); left out.")


def _storable(path: str) -> bool:
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _counts(counts: Counter[str]) -> str:
    return ", ".join(f"{number} {reason}" for reason, number in sorted(counts.items()))

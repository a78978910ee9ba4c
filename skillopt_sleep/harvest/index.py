"""What is known of every transcript, on disk, so that no byte is read twice and no session is worked with twice.

Two things are kept apart. How far each file was read, with the session found in it: that follows from the files alone
and is written while reading. Which sessions a night has really worked with: that is the cursor, and only `commit` of a
receipt moves it. A session that no receipt names waits for a later night.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skillopt_sleep import paths
from skillopt_sleep.errors import NightBusy, StateBroken
from skillopt_sleep.harvest.common import Session
from skillopt_sleep.harvest.lines import Fingerprint, Marks

FILE = "harvest.sqlite"
READER_VERSION = "1"  # another one makes every file be read again
_SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS files (
  path TEXT PRIMARY KEY, source TEXT NOT NULL, name TEXT NOT NULL, device TEXT NOT NULL, inode TEXT NOT NULL,
  size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, offset INTEGER NOT NULL, head TEXT NOT NULL, tail TEXT NOT NULL,
  projects TEXT NOT NULL, turns INTEGER NOT NULL, ended REAL, session TEXT);
CREATE INDEX IF NOT EXISTS by_inode ON files (inode, device);
CREATE INDEX IF NOT EXISTS by_name ON files (name, source);
CREATE TABLE IF NOT EXISTS prompts (key TEXT PRIMARY KEY, path TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS by_path ON prompts (path);
CREATE TABLE IF NOT EXISTS taken (
  consumer TEXT NOT NULL, path TEXT NOT NULL, turns INTEGER NOT NULL, PRIMARY KEY (consumer, path));
CREATE TABLE IF NOT EXISTS windows (
  consumer TEXT NOT NULL, source TEXT NOT NULL, start REAL NOT NULL, PRIMARY KEY (consumer, source));
"""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a harvest handed out, to be given to `commit` when a night has really worked with it.

    `taken`: turns of each session by file. `windows`: for each source since when sessions count (0: always).
    `consumer` is the project whose nights use them, `index` the file that remembers.
    """

    consumer: str
    index: str
    taken: dict[str, int] = field(default_factory=dict)
    windows: dict[str, float] = field(default_factory=dict)
    harvested_at: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """JSON values, for a night that goes on in another process."""
        return {name: getattr(self, name) for name in ("consumer", "index", "taken", "windows", "harvested_at")}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Receipt:
        """The receipt that `to_dict` gave. Raises ValueError naming what is wrong."""
        try:
            return cls(
                consumer=str(data["consumer"]),
                index=str(data["index"]),
                taken={str(path): int(turns) for path, turns in data["taken"].items()},
                windows={str(source): float(start) for source, start in data["windows"].items()},
                harvested_at=float(data["harvested_at"]),
            )
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"Receipt: {error!r} is wrong or missing.") from None


@dataclass(frozen=True, slots=True)
class Row:
    """One known file. `session` is None while nothing but its folder is known."""

    path: str
    source: str
    fingerprint: Fingerprint
    marks: Marks
    projects: tuple[str, ...]
    session: Session | None


@dataclass(frozen=True, slots=True)
class Pending:
    """A session that has turns which the consumer's nights have not worked with."""

    path: str
    source: str
    projects: tuple[str, ...]
    turns: int
    ended: float


class Index:
    """The database; `with Index.open(path) as index: ...`. Without a path it is temporary and forgets everything."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.notices: list[str] = []
        if path is not None:
            paths.private_folder(path.parent)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600))
        self._db = sqlite3.connect(path or "", timeout=10.0, isolation_level=None)
        try:
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            if path is not None and self._db.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                raise sqlite3.DatabaseError("damaged")
            self._db.executescript(_SCHEMA)
            self._forget_other_versions()
        except BaseException:
            self._db.close()
            raise

    @classmethod
    def open(cls, path: Path | None) -> Index:
        """The index in `path`; one that is damaged is set aside, which `notices` tells of, and a new one begun.

        Raises NightBusy while another process writes for long, and StateBroken when the file cannot be used.
        """
        try:
            return cls(path)
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise NightBusy(f"{path}: another process writes to it; run this again when it is done.") from None
            raise StateBroken(f"{path}: cannot be used ({error}); check its folder's rights and space.") from None
        except OSError as error:
            raise StateBroken(f"{path}: cannot be used ({error.strerror}); check its folder's rights.") from None
        except sqlite3.DatabaseError as error:
            if path is None:
                raise
            aside = path.with_name(f"{path.name}.corrupt-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}")
            path.replace(aside)
            for ending in ("-wal", "-shm"):
                path.with_name(path.name + ending).unlink(missing_ok=True)
            index = cls(path)
            index.notices.append(
                f"{path}: damaged ({error}); set aside as {aside.name}. Sessions of the look-back time are read again."
            )
            return index

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def known(self, path: str) -> Row | None:
        """What is known of a file."""
        return self._row("path = ?", (path,))

    def moved(self, source: str, name: str, found: Fingerprint) -> Row | None:
        """A known file that is no longer where it was and may now be this one, by its inode or its name."""
        device, inode = map(str, found.inode)
        for condition, values in (("inode = ? AND device = ?", (inode, device)), ("name = ?", (name,))):
            row = self._row(f"{condition} AND source = ? AND session IS NOT NULL", (*values, source))
            if row is not None and not os.path.lexists(row.path):
                return row
        return None

    def move(self, old: str, new: str) -> None:
        """A file has another path now."""
        with self._writing():
            for table in ("files", "prompts"):
                self._db.execute(f"UPDATE OR REPLACE {table} SET path = ? WHERE path = ?", (new, old))
            self._db.execute(
                "INSERT INTO taken SELECT consumer, ?, turns FROM taken WHERE path = ? "
                "ON CONFLICT (consumer, path) DO UPDATE SET turns = max(turns, excluded.turns)",
                (new, old),
            )
            self._db.execute("DELETE FROM taken WHERE path = ?", (old,))

    def owner_of(self, key: str) -> str | None:
        """The file that a prompt was found in first."""
        found = self._db.execute("SELECT path FROM prompts WHERE key = ?", (key,)).fetchone()
        return None if found is None else str(found[0])

    def save(self, row: Row, keys: Sequence[str] = ()) -> None:
        """Note what was read of a file, and the prompts that are its own."""
        session = row.session
        values = (
            *(row.path, row.source, Path(row.path).name, *map(str, row.fingerprint.inode)),
            *(row.fingerprint.size, row.fingerprint.mtime_ns, row.marks.offset, row.marks.head, row.marks.tail),
            json.dumps(row.projects),
            session.turns if session is not None else 0,
            session.ended if session is not None else None,
            json.dumps(session.to_dict(), ensure_ascii=False) if session is not None else None,
        )
        with self._writing():
            self._db.execute(f"INSERT OR REPLACE INTO files VALUES ({', '.join('?' * len(values))})", values)
            self._db.executemany("INSERT OR IGNORE INTO prompts VALUES (?, ?)", [(key, row.path) for key in keys])

    def forget(self, paths_: Sequence[str]) -> None:
        """Files that are gone, or that hold something else now."""
        with self._writing():
            for table in ("files", "prompts", "taken"):
                self._db.executemany(f"DELETE FROM {table} WHERE path = ?", [(path,) for path in paths_])

    def paths_of(self, source: str) -> list[str]:
        """Every known file of a source."""
        return [str(path) for (path,) in self._db.execute("SELECT path FROM files WHERE source = ?", (source,))]

    def pending(self, sources: Sequence[str], consumer: str) -> list[Pending]:
        """The sessions with turns that `consumer` has not worked with, newest first."""
        rows = self._db.execute(
            "SELECT files.path, source, projects, files.turns, ended FROM files "
            "LEFT JOIN taken ON taken.path = files.path AND consumer = ? "
            f"WHERE session IS NOT NULL AND source IN ({', '.join('?' * len(sources))}) "
            "AND files.turns > coalesce(taken.turns, -1) ORDER BY ended DESC, files.path",
            (consumer, *sources),
        )
        return [
            Pending(path, source, tuple(json.loads(folders)), turns, ended)
            for path, source, folders, turns, ended in rows
        ]

    def session(self, path: str) -> Session:
        """The session in a file that was read."""
        (text,) = self._db.execute("SELECT session FROM files WHERE path = ?", (path,)).fetchone()
        return Session.from_dict(json.loads(text))

    def window(self, consumer: str, source: str) -> float | None:
        """Since when sessions count for a consumer (0: always); None before the first night."""
        found = self._db.execute(
            "SELECT start FROM windows WHERE consumer = ? AND source = ?", (consumer, source)
        ).fetchone()
        return None if found is None else float(found[0])

    def commit(self, receipt: Receipt, *, only_window: bool = False) -> None:
        """Move the cursor past what the receipt names; it never moves back, and doing it twice changes nothing."""
        windows = [(receipt.consumer, source, start) for source, start in receipt.windows.items()]
        taken = [(receipt.consumer, path, turns) for path, turns in receipt.taken.items()]
        self._db.execute("PRAGMA synchronous = FULL")
        with self._writing():
            self._db.executemany(
                "INSERT INTO windows VALUES (?, ?, ?) "
                "ON CONFLICT (consumer, source) DO UPDATE SET start = min(start, excluded.start)",
                windows,
            )
            if not only_window:
                self._db.executemany(
                    "INSERT INTO taken VALUES (?, ?, ?) "
                    "ON CONFLICT (consumer, path) DO UPDATE SET turns = max(turns, excluded.turns)",
                    taken,
                )
        self._db.execute("PRAGMA synchronous = NORMAL")

    def _row(self, condition: str, values: Sequence[object]) -> Row | None:
        found = self._db.execute(
            "SELECT path, source, device, inode, size, mtime_ns, offset, head, tail, projects, session FROM files "
            f"WHERE {condition}",
            values,
        ).fetchone()
        if found is None:
            return None
        path, source, device, inode, size, mtime_ns, offset, head, tail, projects, session = found
        return Row(
            path,
            source,
            Fingerprint((int(device), int(inode)), size, mtime_ns),
            Marks(offset, head, tail),
            tuple(json.loads(projects)),
            None if session is None else Session.from_dict(json.loads(session)),
        )

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            self._db.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            raise NightBusy(f"{self.path}: cannot be written ({error}); run this again.") from None
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def _forget_other_versions(self) -> None:
        found = self._db.execute("SELECT value FROM facts WHERE name = 'reader'").fetchone()
        if found != (READER_VERSION,):
            with self._writing():
                self._db.execute("DELETE FROM files")
                self._db.execute("DELETE FROM prompts")
                self._db.execute("INSERT OR REPLACE INTO facts VALUES ('reader', ?)", (READER_VERSION,))

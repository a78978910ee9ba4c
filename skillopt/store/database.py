"""One SQLite file that keeps finished work under a content key.

The file knows nothing of steps, gates or files of a run: a key is the hash of everything that shaped the work
(skill, item, model settings, environment, sample), so a hit is right whoever asks and wherever the folder lies.
Rows are committed one by one before anything counts on them; a killed process loses at most the row in flight.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from skillopt.errors import RunError
from skillopt.types import JsonObject, RolloutResult, Usage

_VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS rollouts (
    key TEXT PRIMARY KEY, item_id TEXT NOT NULL, skill_hash TEXT NOT NULL, split TEXT NOT NULL, payload TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS rollouts_by_item ON rollouts (item_id, skill_hash);
CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, stage TEXT NOT NULL, payload TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS usage (key TEXT PRIMARY KEY, payload TEXT NOT NULL) WITHOUT ROWID;
"""


class Store:
    """Finished work of a run, safe to use from several threads.

    `path` is the database file; its folder must exist. Raises RunError when the file is not ours or cannot be
    opened.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        try:
            self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=30)
        except sqlite3.Error as error:
            raise _unusable(path, error) from error
        self._release = weakref.finalize(self, self._db.close)  # also when nobody calls close()
        try:
            _prepare(self._db, path)
        except BaseException as error:
            self._release()
            if isinstance(error, sqlite3.Error):
                raise _unusable(path, error) from error
            raise

    def get_rollout(self, key: str) -> RolloutResult | None:
        """The finished rollout under `key`, or None."""
        payload = self._payload("SELECT payload FROM rollouts WHERE key = ?", key)
        return None if payload is None else RolloutResult.from_dict(payload)

    def put_rollout(self, key: str, result: RolloutResult, *, skill_hash: str, split: str) -> None:
        """Keep a finished rollout. Raises RunError when the disk refuses it."""
        row = (key, result.id, skill_hash, split, _dump(result.to_dict()))
        self._write("INSERT OR REPLACE INTO rollouts VALUES (?, ?, ?, ?, ?)", row)

    def get_reply(self, key: str) -> JsonObject | None:
        """The finished model reply under `key`, or None."""
        return self._payload("SELECT payload FROM replies WHERE key = ?", key)

    def put_reply(self, key: str, stage: str, payload: Mapping[str, Any]) -> None:
        """Keep a finished model reply. Raises RunError when the disk refuses it."""
        self._write("INSERT OR REPLACE INTO replies VALUES (?, ?, ?)", (key, stage, _dump(dict(payload))))

    def retire_reply(self, key: str) -> None:
        """Let the next call under `key` be made again; the reply stays here, and what it cost stays counted."""
        self._write("UPDATE replies SET key = key || ' ' || hex(randomblob(8)) WHERE key = ?", (key,))

    def rollouts(self, item_id: str | None = None) -> Iterator[tuple[str, str, RolloutResult]]:
        """`(split, skill_hash, result)` of every kept rollout, of one item if given, ordered by split and item."""
        where, values = ("", ()) if item_id is None else (" WHERE item_id = ?", (item_id,))
        query = f"SELECT split, skill_hash, payload FROM rollouts{where} ORDER BY split, item_id, skill_hash, key"
        rows = self._rows(query, values)
        for split, skill_hash, payload in rows:
            yield split, skill_hash, RolloutResult.from_dict(json.loads(payload))

    def replies(self) -> Iterator[tuple[str, JsonObject]]:
        """`(stage, reply)` of every kept model reply, ordered by stage."""
        rows = self._rows("SELECT stage, payload FROM replies ORDER BY stage, key")
        for stage, payload in rows:
            yield stage, json.loads(payload)

    def usage_rows(self) -> list[JsonObject]:
        """The counters of everything that was ever asked of a model, as `put_usage` was given them."""
        return [json.loads(payload) for (payload,) in self._rows("SELECT payload FROM usage ORDER BY key")]

    def put_usage(self, key: str, row: Mapping[str, Any]) -> None:
        """Keep the present state of a counter. Raises RunError when the disk refuses it."""
        self._write("INSERT OR REPLACE INTO usage VALUES (?, ?)", (key, _dump(dict(row))))

    def rollout_usage(self) -> Usage:
        """Calls and tokens of all kept rollouts."""
        return self._usage("rollouts")

    def reply_usage(self) -> Usage:
        """Calls and tokens of all kept model replies."""
        return self._usage("replies")

    def _usage(self, table: str) -> Usage:
        total = Usage()
        for (usage,) in self._rows(f"SELECT json_extract(payload, '$.usage') FROM {table}"):
            total += Usage.from_dict(json.loads(usage)) if usage else Usage()
        return total

    def close(self) -> None:
        """Release the file."""
        with self._lock:
            self._release()

    def _payload(self, query: str, key: str) -> JsonObject | None:
        rows = self._rows(query, (key,))
        if not rows:
            return None
        payload: JsonObject = json.loads(rows[0][0])
        return payload

    def _rows(self, query: str, values: tuple[str, ...] = ()) -> list[tuple[Any, ...]]:
        try:
            with self._lock:
                return self._db.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise RunError(f"{self._path}: cannot be read ({error}); run the same command again.") from error

    def _write(self, statement: str, row: tuple[str, ...]) -> None:
        try:
            with self._lock:
                self._db.execute(statement, row)
        except sqlite3.Error as error:
            raise RunError(
                f"{self._path}: cannot be written ({error}); free some space and run the same command again."
            ) from error


def _prepare(db: sqlite3.Connection, path: Path) -> None:
    # Every commit survives a kill of this process; a power cut may take the last ones, never the file.
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=NORMAL")
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version not in (0, _VERSION):
        raise RunError(f"{path}: written by another version (format {version}); use a new folder.")
    db.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version={_VERSION}; COMMIT;")


def _unusable(path: Path, error: sqlite3.Error) -> RunError:
    return RunError(f"{path}: cannot be used as the store of a run ({error}).")


def _dump(value: JsonObject) -> str:
    # ASCII escapes keep lone surrogates of a model's reply storable.
    return json.dumps(value, ensure_ascii=True, allow_nan=False, default=str)

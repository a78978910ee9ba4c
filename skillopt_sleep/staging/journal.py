"""The write-ahead journal of one transaction: enough to put every file back, written before the first change.

It lies in the night as `.adopt-transaction.json`; removing it is the commit. It names files and their old bytes, so it
is signed: a journal that somebody else put there is never played back.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from skillopt_sleep import paths
from skillopt_sleep.errors import StagingError
from skillopt_sleep.staging import disk
from skillopt_sleep.staging.problems import InvalidStaging
from skillopt_sleep.staging.signing import MAC, Seal

FILE = ".adopt-transaction.json"
VERSION = 2
_READABLE = (1, 2)


@dataclass(frozen=True, slots=True)
class Target:
    """One file of a transaction: what it was, and which hash it gets ("": the file is absent before or after).

    `temporary` is the name under which its new content is written first; `backup_is_new` says that this transaction
    makes the backup; `created_tmp` is the name under which missing folders are built before they get their own.
    """

    key: str
    live_path: str
    original: bytes | None
    original_mode: int
    proposed_sha256: str
    baseline_sha256: str
    backup_path: str = ""
    backup_is_new: bool = True
    temporary: str = ""
    created_dirs: tuple[str, ...] = ()
    created_dir_ids: tuple[tuple[int, int], ...] = ()
    created_tmp: str = ""
    original_file_id: tuple[int, int] = (0, 0)

    @property
    def path(self) -> Path:
        """The live file."""
        return Path(self.live_path)

    def to_dict(self) -> dict[str, Any]:
        """The target as the journal holds it."""
        return {
            "key": self.key,
            "live_path": self.live_path,
            "expected_realpath": self.live_path,
            "expected_basename": self.path.name,
            "proposed_sha256": self.proposed_sha256,
            "original_b64": None if self.original is None else base64.b64encode(self.original).decode("ascii"),
            "original_mode": self.original_mode,
            "original_file_id": list(self.original_file_id),
            "baseline_sha256": self.baseline_sha256,
            "backup_path": self.backup_path,
            "backup_is_new": self.backup_is_new,
            "temporary": self.temporary,
            "created_dirs": list(self.created_dirs),
            "created_dir_ids": [list(one) for one in self.created_dir_ids],
            "created_tmp": self.created_tmp,
        }


@dataclass(frozen=True, slots=True)
class Journal:
    """A transaction in progress. `kind` is skills, legacy or undo; the receipt file is its last target."""

    kind: str
    targets: tuple[Target, ...]
    receipt: Target
    signed: bool = field(default=True, compare=False)

    @property
    def all_targets(self) -> tuple[Target, ...]:
        """Live files first, the receipt last: the order in which they are written."""
        return (*self.targets, self.receipt)

    def write(self, night: Path, seal: Seal) -> None:
        """Put the journal on disk, replacing an earlier form of itself."""
        receipt = self.receipt.to_dict()
        value = {
            "version": VERSION,
            "kind": self.kind,
            "targets": [target.to_dict() for target in self.targets],
            "receipt": {**receipt, "path": receipt["live_path"]},
        }
        paths.write_private_json(night / FILE, seal.sign(value, purpose=_purpose(night)))


def present(night: Path) -> bool:
    """True when a transaction was interrupted in this night, or is running."""
    return (night / FILE).exists() or disk.is_link(night / FILE)


def read_journal(night: Path, seal: Seal) -> Journal | None:
    """The journal of a night; None when there is none. Raises InvalidStaging when it cannot be trusted to be one."""
    path = night / FILE
    try:
        seen = disk.look(path)
    except StagingError as error:
        raise InvalidStaging(f"{error} A journal is never a link; remove it after looking at the files.") from error
    if seen is None:
        return None
    try:
        value = disk.parse_json(seen.data)
        signed = seal.holds(value, purpose=_purpose(night))
        if value["version"] not in _READABLE or (MAC in value and not signed):
            raise ValueError("another version, or changed since it was written")
        receipt = value["receipt"]
        targets = tuple(_target(one) for one in value["targets"])
        last = _target({"live_path": receipt["path"], "key": "receipt", **receipt})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InvalidStaging(
            f"{path} is not a journal of this installation ({error}). Compare the live files with the copies in "
            f"{night / 'backup'}, then remove it."
        ) from error
    if not signed:  # older versions know no such names, and nobody vouches for these
        targets = tuple(replace(target, temporary="", created_tmp="") for target in targets)
        last = replace(last, temporary="", created_tmp="")
    return Journal(str(value["kind"]), targets, last, signed)


def _purpose(night: Path) -> str:
    return f"journal:{night}"


def _target(value: Mapping[str, Any]) -> Target:
    original = value["original_b64"]
    identifiers = tuple((device, inode) for device, inode in value.get("created_dir_ids") or ())
    folders = tuple(str(folder) for folder in value.get("created_dirs") or ())
    return Target(
        key=str(value["key"]),
        live_path=str(value["live_path"]),
        original=None if original is None else base64.b64decode(original, validate=True),
        original_mode=int(value["original_mode"] if value["original_mode"] is not None else -1),
        proposed_sha256=str(value["proposed_sha256"]),
        baseline_sha256=str(value["baseline_sha256"]),
        backup_path=str(value.get("backup_path") or ""),
        backup_is_new=bool(value.get("backup_is_new", True)),
        temporary=str(value.get("temporary") or ""),
        created_dirs=folders,
        created_dir_ids=identifiers,
        created_tmp=str(value.get("created_tmp") or ""),
    )

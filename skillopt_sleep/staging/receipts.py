"""Receipts: what was adopted from a night, when, and how to take it back.

They lie beside the manifest, one file for the managed pair and one for named skills. A receipt names a backup to
restore and a file to write, so each is signed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from skillopt_sleep.staging import disk
from skillopt_sleep.staging.manifest import Kind, Row
from skillopt_sleep.staging.problems import InvalidStaging
from skillopt_sleep.staging.signing import MAC, Seal
from skillopt_sleep.types import AdoptedSkill

FILES: dict[Kind, str] = {"managed": "adopted_legacy.json", "named": "adopted_skills.json"}
_NAME_FIELDS: dict[Kind, tuple[str, str]] = {
    "managed": ("target", "live_path"),
    "named": ("skill_name", "live_skill_path"),
}


@dataclass(frozen=True, slots=True)
class Receipt:
    """One adopted document. `at` and `undone_at` are UTC epoch seconds (0: not undone).

    `mode_before` holds permission bits (-1: there was no file); `created_dirs` with their identities are
    folders that the adoption made. Rows of older versions have no signature: they count as adopted and stay so.
    """

    kind: Kind
    name: str
    live_path: str
    sha256_before: str
    sha256_after: str
    backup_path: str = ""
    transaction: str = ""
    at: float = 0.0
    undone_at: float = 0.0
    mode_before: int = -1
    mode_after: int = -1
    created_dirs: tuple[str, ...] = ()
    created_dir_ids: tuple[tuple[int, int], ...] = ()
    signed: bool = False

    @property
    def key(self) -> str:
        """The key of the row that was adopted."""
        return Row(self.kind, self.name, "", "").key

    @property
    def adopted(self) -> bool:
        """True until the adoption is undone."""
        return not self.undone_at

    def public(self) -> AdoptedSkill:
        """The published form."""
        return AdoptedSkill(self.name, self.live_path, self.sha256_before, self.sha256_after, self.backup_path)

    def to_dict(self) -> dict[str, Any]:
        """The unsigned row."""
        name_field, path_field = _NAME_FIELDS[self.kind]
        extra = fields(self)[6:-1]
        return {
            name_field: self.name,
            path_field: self.live_path,
            "sha256_before": self.sha256_before,
            "sha256_after": self.sha256_after,
            "backup_path": self.backup_path,
            **{field.name: getattr(self, field.name) for field in extra},
        }


def read_receipts(night: Path, seal: Seal, kind: Kind | None = None) -> list[Receipt]:
    """The receipts of a night, oldest first, of one kind or (None) of both.

    Raises InvalidStaging when a file is damaged, holds unknown fields, or was changed since it was written.
    """
    kinds: tuple[Kind, ...] = ("managed", "named") if kind is None else (kind,)
    return [row for one in kinds for row in _read(night / FILES[one], one, seal, night)]


def receipt_bytes(receipts: Sequence[Receipt], seal: Seal, night: Path) -> bytes:
    """A receipt file. Rows that were not signed stay so."""
    rows = [seal.sign(_plain(row), purpose=_purpose(night)) if row.signed else _unsigned(row) for row in receipts]
    return (json.dumps(rows, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _purpose(night: Path) -> str:
    return f"receipt:{night}"


def _plain(row: Receipt) -> dict[str, Any]:
    return dict(json.loads(json.dumps(row.to_dict())))


def _unsigned(row: Receipt) -> dict[str, Any]:
    return {name: value for name, value in list(_plain(row).items())[:5]}


def _read(path: Path, kind: Kind, seal: Seal, night: Path) -> list[Receipt]:
    seen = disk.look(path)
    if seen is None:
        return []
    try:
        rows = disk.parse_json(seen.data)
        if seen.links != 1 or not isinstance(rows, list):
            raise TypeError("expected one list in a file with one name")
        return [_row(row, kind, seal, night) for row in rows]
    except (ValueError, TypeError, KeyError) as error:
        if isinstance(error, InvalidStaging):
            raise
        raise InvalidStaging(
            f"{path} is not a list of receipts ({error}); it was changed by something else."
        ) from error


def _row(value: object, kind: Kind, seal: Seal, night: Path) -> Receipt:
    if not isinstance(value, Mapping):
        raise TypeError("expected an object")
    signed = seal.holds(value, purpose=_purpose(night))
    if MAC in value and not signed:
        raise InvalidStaging(
            f"A receipt in {night} was changed since it was written, the project was moved or copied, or the key of "
            "this installation was lost (its signature does not fit). What was there before is in the night's backup."
        )
    name_field, path_field = _NAME_FIELDS[kind]
    data = {name: part for name, part in value.items() if name != MAC}
    named = {"name": data.pop(name_field), "live_path": data.pop(path_field)}
    if not signed:
        extra = set(data) - {"sha256_before", "sha256_after", "backup_path"}
        if extra or not all(isinstance(part, str) for part in [*data.values(), *named.values()]):
            raise TypeError(f"unknown or wrong fields {sorted(extra)}")
        return Receipt(kind, **named, **data)
    data["created_dirs"] = tuple(data["created_dirs"])
    data["created_dir_ids"] = tuple((device, inode) for device, inode in data["created_dir_ids"])
    return Receipt(kind, **named, **data, signed=True)


def undone(receipt: Receipt, at: float) -> Receipt:
    """The receipt of an adoption that was taken back."""
    return replace(receipt, undone_at=at)


def adopted_keys(receipts: Sequence[Receipt]) -> set[str]:
    """Keys of the rows that are adopted and not undone."""
    return {row.key for row in receipts if row.adopted}


def undone_keys(receipts: Sequence[Receipt]) -> set[str]:
    """Keys of the rows whose last adoption was undone."""
    return {row.key for row in receipts} - adopted_keys(receipts)

"""Everything that has to hold before an adoption writes: asked of every staged row, then of the chosen ones."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from skillopt_sleep.errors import StagingError
from skillopt_sleep.staging import disk
from skillopt_sleep.staging.desk import Desk
from skillopt_sleep.staging.manifest import MEMORY, SKILL, Manifest, Row
from skillopt_sleep.staging.names import SKILL_FILE, check_live_path, check_skill_path, fold
from skillopt_sleep.staging.problems import AdoptionRefused
from skillopt_sleep.staging.receipts import Receipt, adopted_keys
from skillopt_sleep.staging.transaction import Change


def check_all(manifest: Manifest, desk: Desk) -> None:
    """Check every row of a night, chosen or not. Raises AdoptionRefused."""
    seen: dict[object, Row] = {}
    for row in manifest.rows:
        _check_row(row)
        desk.check_place(row, manifest)
        path = Path(row.live_realpath)
        for identity in (fold(str(path)), _identity(path)):
            other = seen.setdefault(identity, row) if identity else row
            if other is not row:
                raise AdoptionRefused(f"{row.words} and {other.words} lead to the same file {path}.")


def change_of(row: Row, night: Path, manifest: Manifest, receipts: Sequence[Receipt]) -> Change:
    """The change that adopting one row makes. Raises AdoptionRefused with the reason why it cannot be adopted."""
    if row.key in adopted_keys(receipts):
        raise AdoptionRefused(f"{row.words} was adopted from this night already.")
    path = Path(row.live_realpath)
    live = _look(path)
    if live is not None and live.links != 1:
        raise AdoptionRefused(
            f"{path} has {live.links} names (hard links), and replacing it would part them; unlink the others."
        )
    if row.kind == "named":
        _check_named_place(row, path, manifest)
    if disk.hash_of(live) != row.live_sha256:
        what = "was deleted" if live is None else "was created" if not row.live_sha256 else "was edited"
        raise AdoptionRefused(
            f"{row.words}: {path} {what} (changed since staging), so the proposal does not fit it any more. Nothing "
            "was changed; run the night again, or merge by hand from the night's folder."
        )
    backup, new = _backup(row, night, live, receipts)
    return Change(row.key, path, live, proposed_bytes(row, night), backup=backup, backup_is_new=new)


def proposed_bytes(row: Row, night: Path) -> bytes:
    """The staged text of a row, exactly as it was pinned. Raises AdoptionRefused."""
    path = night / row.proposed_file
    seen = _look(path)
    if seen is None:
        raise AdoptionRefused(f"{path} is missing; run the night again.")
    if seen.sha256 != row.sha256:
        raise AdoptionRefused(
            f"{path} was changed since it was staged; adopt what was reviewed, or edit the live file yourself."
        )
    try:
        text = seen.data.decode("utf-8")
    except UnicodeDecodeError:
        raise AdoptionRefused(f"{path} is not UTF-8; run the night again.") from None
    if not text.strip() and (row.kind, row.name) != ("managed", MEMORY):
        raise AdoptionRefused(f"{path} is blank and would wipe the document.")
    return seen.data


def _check_row(row: Row) -> None:
    if not row.pinned:
        raise AdoptionRefused(
            f"{row.words}: the manifest does not say which text the proposal was made from (an older version wrote "
            "it); run the night again."
        )
    try:
        live = check_live_path(row.live_path, row.words)
        target = check_live_path(row.live_realpath, row.words)
        if row.kind == "named":
            check_skill_path(target, row.name, row.words)
        elif row.name == SKILL and target.name != SKILL_FILE:
            raise StagingError(f"{row.words}: {target} is not called {SKILL_FILE}.")
    except StagingError as error:
        raise AdoptionRefused(str(error)) from None
    if disk.real(live) != target or (row.kind == "named" and live != target):
        raise AdoptionRefused(
            f"{row.words}: {live} leads to {disk.real(live)} now, not to {target}; a link was changed since staging."
        )
    if os.path.lexists(target):
        _look(target)


def _check_named_place(row: Row, path: Path, manifest: Manifest) -> None:
    if not path.parent.is_dir():
        raise AdoptionRefused(f"{row.words}: its folder {path.parent} is gone.")
    if not any(disk.inside(path, Path(root)) for root in manifest.skill_roots):
        raise AdoptionRefused(f"{row.words}: {path} lies outside the skill folders that this night was made for.")


def _backup(row: Row, night: Path, live: disk.Seen | None, receipts: Sequence[Receipt]) -> tuple[Path | None, bool]:
    """Where the backup goes and whether it has to be made; an undone adoption left a fitting one."""
    if live is None:
        return None, False
    folder = night / "backup"
    managed = folder / (SKILL_FILE if row.name == SKILL else "CLAUDE.md")
    backup = managed if row.kind == "managed" else folder / "skills" / row.name / SKILL_FILE
    undone = any(receipt.key == row.key and receipt.backup_path == str(backup) for receipt in receipts)
    if not os.path.lexists(backup):
        return backup, True
    kept = _look(backup)
    if undone and kept is not None and kept.data == live.data and kept.links == 1:
        return backup, False
    raise AdoptionRefused(f"{backup} is there already, and a backup is never overwritten.")


def check_backups(receipts: Sequence[Receipt], night: Path) -> None:
    """Check that the backups of earlier adoptions are what they were. Raises AdoptionRefused."""
    for receipt in receipts:
        if receipt.backup_path and receipt.adopted:
            backup_of(receipt, night)


def backup_of(receipt: Receipt, night: Path) -> disk.Seen:
    """The backup of a receipt, verified. Raises AdoptionRefused."""
    path = Path(receipt.backup_path)
    if night / "backup" not in path.parents or ".." in path.parts or disk.real(path.parent) != path.parent:
        raise AdoptionRefused(f"The backup {path} does not lie in {night / 'backup'}.")
    seen = _look(path)
    if seen is None or seen.links != 1 or seen.sha256 != receipt.sha256_before:
        raise AdoptionRefused(f"The backup {path} is not what it was when {receipt.live_path} was adopted.")
    return seen


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _look(path: Path) -> disk.Seen | None:
    try:
        return disk.look(path)
    except StagingError as error:
        raise AdoptionRefused(str(error)) from None

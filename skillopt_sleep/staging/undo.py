"""Taking the last adoption back: the exact bytes and modes of before, created files and folders gone."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from skillopt_sleep.config import SleepConfig
from skillopt_sleep.errors import StagingError
from skillopt_sleep.staging import checks, disk, nights
from skillopt_sleep.staging.adopt import all_receipts
from skillopt_sleep.staging.desk import Desk, desk_for
from skillopt_sleep.staging.diff import unified
from skillopt_sleep.staging.journal import Journal
from skillopt_sleep.staging.locking import night_held, targets_held
from skillopt_sleep.staging.manifest import MANAGED_FILES
from skillopt_sleep.staging.names import proposal_filename
from skillopt_sleep.staging.problems import NoStaging, UndoRefused
from skillopt_sleep.staging.receipts import FILES, Receipt, read_receipts, receipt_bytes, undone
from skillopt_sleep.staging.recover import is_night, recover, recover_night, remove_folders
from skillopt_sleep.staging.transaction import Change, Work, carry_out


@dataclass(frozen=True, slots=True)
class Undone:
    """An adoption that was taken back. `restored` files hold their old bytes again, `removed` ones had been new."""

    night: str
    restored: tuple[str, ...]
    removed: tuple[str, ...]


def undo(where: str | Path, *, cfg: SleepConfig | None = None) -> Undone:
    """Take back the last adoption of a project, or of one night folder, that was not undone yet.

    Verified: the live files must be what the adoption wrote and the backups what they were. Raises NoStaging when there
    is nothing to undo, InvalidStaging when only what cannot be trusted tells of an adoption, UndoRefused (naming file
    and backup, with the diff of what was edited since) before any write, AdoptionFailed after a roll back,
    StagingRecoveryError.
    """
    one_night = nights.check_night(where) if is_night(where) else None
    project = nights.project_of(one_night) if one_night else disk.real(Path(where).expanduser().absolute())
    desk = desk_for(project, cfg)
    recover(one_night or project, cfg=cfg)
    night, receipts = _last_adoption(project, one_night, desk)
    recover_night(night, desk)
    with night_held(night), targets_held(desk.state_dir, [Path(one.live_path) for one in receipts]):
        return _under_locks(night, receipts, desk)


def _last_adoption(project: Path, one_night: Path | None, desk: Desk) -> tuple[Path, list[Receipt]]:
    found = [
        (night, one)
        for night, one in all_receipts(project, desk)
        if one.adopted and one.signed and one_night in (None, night)
    ]
    if not found:
        for night in [one_night] if one_night else nights.folders(project):
            read_receipts(night, desk.seal)  # one that cannot be trusted says so
        raise NoStaging(f"{one_night or project}: nothing that was adopted is left to undo.")
    night, last = max(found, key=_when)
    return night, [one for home, one in found if home == night and one.transaction == last.transaction]


def _when(pair: tuple[Path, Receipt]) -> float:
    return pair[1].at


def _under_locks(night: Path, receipts: Sequence[Receipt], desk: Desk) -> Undone:
    kind = receipts[0].kind
    rows = read_receipts(night, desk.seal, kind)
    if any(one not in rows for one in receipts):
        raise UndoRefused(f"{night} was changed meanwhile; try again.")
    changes = tuple(_change_of(one, night) for one in receipts)
    at = time.time()
    after = [undone(row, at) if row in receipts else row for row in rows]

    def receipt_of(_: Journal) -> bytes:
        return receipt_bytes(after, desk.seal, night)

    carry_out(Work(night, desk.seal, "undo", changes, night / FILES[kind], receipt_of))
    for one in receipts:
        remove_folders(one.created_dirs, one.created_dir_ids)
    files = [(one.live_path, bool(one.sha256_before)) for one in receipts]
    return Undone(str(night), tuple(p for p, kept in files if kept), tuple(p for p, kept in files if not kept))


def _change_of(receipt: Receipt, night: Path) -> Change:
    path = Path(receipt.live_path)
    backup = checks.backup_of(receipt, night) if receipt.sha256_before else None
    if disk.real(path) != path:
        raise UndoRefused(f"{path} leads to {disk.real(path)} now; a link was put there since the adoption.")
    try:
        live = disk.look(path)
    except StagingError as error:
        raise UndoRefused(str(error)) from None
    if disk.hash_of(live) != receipt.sha256_after:
        raise _edited(receipt, night, live)
    if live is not None and live.links != 1:
        raise UndoRefused(f"{path} has {live.links} names (hard links); replacing it would part them.")
    change = Change(receipt.key, path, live, backup.data if backup else None)
    return replace(change, mode=receipt.mode_before) if backup else change


def _edited(receipt: Receipt, night: Path, live: disk.Seen | None) -> UndoRefused:
    kept = f"What it held before is in {receipt.backup_path}." if receipt.backup_path else "It did not exist before."
    what = "was deleted" if live is None else "was edited"
    proposal = night / (proposal_filename(receipt.name) if receipt.kind == "named" else MANAGED_FILES[receipt.name])
    adopted = disk.look(proposal)
    before = adopted.data.decode("utf-8", "replace") if adopted else ""
    text = unified(before, live.data.decode("utf-8", "replace") if live else "", label=receipt.live_path.lstrip("/"))
    return UndoRefused(
        f"{receipt.live_path} {what} since it was adopted, and undo would lose that. {kept} Nothing was changed.",
        diff=text,
    )

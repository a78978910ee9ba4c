"""Changing several live files as one: all of them, or none, whatever happens on the way.

Journal, folders, backups, files, receipt; then the journal is removed, which is the commit. Any failure rolls back;
a kill leaves the journal, and `recover` rolls back later.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from skillopt_sleep import paths
from skillopt_sleep.errors import StagingError, StagingRecoveryError
from skillopt_sleep.staging import disk, journal, live
from skillopt_sleep.staging.journal import Journal, Target
from skillopt_sleep.staging.problems import AdoptionFailed, AdoptionRefused
from skillopt_sleep.staging.rollback import backup_temporary, roll_back
from skillopt_sleep.staging.signing import Seal

_NO_FILE = -1


@dataclass(frozen=True, slots=True)
class Change:
    """One live file: what was seen there (None: nothing) and what it is to hold (None: it is removed).

    `mode` is that of the new content; None keeps that of the file, or follows the umask for a new one. `backup` is
    where the old content is kept; `backup_is_new` false: it lies there already.
    """

    key: str
    path: Path
    before: disk.Seen | None
    after: bytes | None
    mode: int | None = None
    backup: Path | None = None
    backup_is_new: bool = True


@dataclass(frozen=True, slots=True)
class Work:
    """A transaction to carry out: its changes, and the receipt file with its old content.

    `receipt_of` makes the receipt's bytes from the journal, which by then knows the folders that were made.
    """

    night: Path
    seal: Seal
    kind: str
    changes: tuple[Change, ...]
    receipt_path: Path
    receipt_of: Callable[[Journal], bytes]


def carry_out(work: Work) -> Journal:
    """Do it all and return the final journal.

    Raises AdoptionRefused when a journal is in the way or a file is not as it was seen, AdoptionFailed when writing
    failed; both after everything was put back. StagingRecoveryError when that was not possible.
    """
    if journal.present(work.night):
        raise AdoptionRefused(f"{work.night / journal.FILE} is there already; recover first.")
    old_receipt = disk.look(work.receipt_path)
    record, begun = _planned(work, old_receipt), set[str]()
    try:
        record.write(work.night, work.seal)
        for at in range(len(record.targets)):
            record = _with_folders(work, record, at)
        new_receipt = Change("receipt", work.receipt_path, old_receipt, work.receipt_of(record), mode=0o600)
        record = replace(record, receipt=_target(new_receipt, ()))
        record.write(work.night, work.seal)
        _apply(record, (*work.changes, new_receipt), begun)
        disk.remove(work.night / journal.FILE)
    except BaseException as error:
        _give_up(work, error, begun)
        if isinstance(error, OSError):
            raise AdoptionFailed(f"Writing failed ({error}); every file was put back as it was.") from error
        raise
    return record


def _planned(work: Work, old_receipt: disk.Seen | None) -> Journal:
    targets: list[Target] = []
    for change in work.changes:
        planned = {folder for target in targets for folder in target.created_dirs}
        targets.append(_target(change, _missing_folders(change, planned)))
    unchanged = old_receipt.data if old_receipt else None
    receipt = _target(Change("receipt", work.receipt_path, old_receipt, unchanged, mode=0o600), ())
    return Journal(work.kind, tuple(targets), receipt)


def _target(change: Change, folders: Sequence[str]) -> Target:
    token = secrets.token_hex(8)
    before = change.before
    return Target(
        key=change.key,
        live_path=str(change.path),
        original=before.data if before else None,
        original_mode=before.mode if before else _NO_FILE,
        proposed_sha256="" if change.after is None else disk.digest(change.after),
        baseline_sha256=disk.hash_of(before),
        backup_path=str(change.backup or ""),
        backup_is_new=change.backup_is_new,
        temporary=str(change.path.with_name(f".tmp-{token}")),
        created_dirs=tuple(folders),
        created_tmp=str(Path(folders[0]).with_name(f".tmp-new-{token}")) if folders else "",
        original_file_id=before.file_id if before else (0, 0),
    )


def _missing_folders(change: Change, planned: set[str]) -> list[str]:
    """The folders that have to be made for a new file, outermost first."""
    missing: list[str] = []
    for folder in change.path.parents:
        if folder.exists() or str(folder) in planned:
            break
        missing.insert(0, str(folder))
    return missing if change.after is not None else []


def _with_folders(work: Work, record: Journal, at: int) -> Journal:
    """Make the missing folders of one target under another name, note who they are, then give them their name."""
    target = record.targets[at]
    if not target.created_dirs:
        return record
    built = [Path(target.created_tmp)]
    built += [
        built[0].joinpath(*Path(folder).parts[-depth:]) for depth, folder in enumerate(target.created_dirs[1:], 1)
    ]
    for folder in built:
        folder.mkdir(mode=0o700)
    known = replace(target, created_dir_ids=tuple(disk.folder_id(folder) for folder in built))
    record = replace(record, targets=(*record.targets[:at], known, *record.targets[at + 1 :]))
    record.write(work.night, work.seal)
    final = Path(target.created_dirs[0])
    if os.path.lexists(final):
        raise AdoptionRefused(f"{final} appeared meanwhile; try again.")
    built[0].rename(final)
    paths.sync_folder(final.parent)
    return record


def _apply(record: Journal, changes: Sequence[Change], begun: set[str]) -> None:
    """Back up and write all files; `begun` gets the paths of those that may have been written."""
    pairs = list(zip(record.all_targets, changes, strict=True))
    for target, change in pairs:
        if target.backup_path and target.backup_is_new and change.before is not None:
            _back_up(Path(target.backup_path), change.before)
    for target, change in pairs[:-1]:
        _write(target, change, begun)
    _verify(record.targets)
    _write(*pairs[-1], begun)
    _verify(record.all_targets)


def _back_up(backup: Path, seen: disk.Seen) -> None:
    if os.path.lexists(backup):
        raise AdoptionRefused(f"{backup} is there already, and a backup is never overwritten.")
    paths.private_folder(backup.parent)
    temporary = backup_temporary(backup)
    disk.write_temporary(temporary, seen.data, seen.mode)
    temporary.rename(backup)
    paths.sync_folder(backup.parent)


def _write(target: Target, change: Change, begun: set[str]) -> None:
    """Put one file in place if it is still what was seen. One that is refused was left as it is: nothing was begun."""
    begun.add(target.live_path)
    try:
        _put(change, Path(target.temporary))
    except AdoptionRefused:
        begun.discard(target.live_path)
        raise


def _put(change: Change, temporary: Path) -> None:
    path = change.path
    if disk.real(path) != path or live.glance(path) != change.before:
        raise AdoptionRefused(
            f"{path} changed while it was being adopted; nothing was changed. Look at it, then try again."
        )
    if change.before is None:
        try:
            if change.after is not None:
                disk.create(path, change.after, temporary=temporary, mode=change.mode)
        except FileExistsError:
            raise AdoptionRefused(f"{path} appeared while it was being adopted; nothing was changed.") from None
    elif change.after is None:
        live.remove(path, before=change.before, temporary=temporary)
    else:
        mode = change.before.mode if change.mode is None else change.mode
        live.replace(path, change.after, before=change.before, temporary=temporary, mode=mode)


def _verify(targets: Sequence[Target]) -> None:
    for target in targets:
        if disk.hash_of(disk.look(target.path)) != target.proposed_sha256:
            raise AdoptionRefused(f"{target.path} was changed by something else during the adoption.")


def _give_up(work: Work, error: BaseException, begun: Collection[str]) -> None:
    """Roll back after a failure. Raises StagingRecoveryError when something stands in the way."""
    problems: list[object] = []
    try:
        record = journal.read_journal(work.night, work.seal)
        if record is not None:
            problems += roll_back(work.night, record, begun=begun)
    except (OSError, StagingError) as second:
        problems.append(second)
    if problems:
        raise StagingRecoveryError(
            f"The adoption failed ({error}) and could not be taken back alone: {problems[0]} Journal and backups are "
            f"kept in {work.night}.",
            primary=error,
            recovery_errors=problems,
        ) from error

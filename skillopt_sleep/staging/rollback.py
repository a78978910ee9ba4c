"""Putting the files of an interrupted transaction back. May itself be killed and run again."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Collection
from pathlib import Path

from skillopt_sleep.errors import StagingError
from skillopt_sleep.paths import sync_folder
from skillopt_sleep.staging import disk, journal, live
from skillopt_sleep.staging.journal import Journal, Target


def roll_back(
    night: Path, record: Journal, *, keep_edited: bool = False, begun: Collection[str] | None = None
) -> list[str]:
    """Undo what a transaction has done, last step first, then remove its journal; the problems found, else none.

    A file is put back only when it holds what the transaction wrote; a file that holds anything else was edited by
    somebody meanwhile. Then journal and backups stay (and the problem says so), unless `keep_edited` accepts such
    files as they are. `begun`: the paths of the files that may have been written; None: nobody knows.
    """
    problems: list[str] = []
    for target in reversed(record.all_targets):
        try:
            clean_up(target)
            untouched = begun is not None and target.live_path not in begun
            problem = "" if untouched else _restore(target, keep_edited=keep_edited)
        except (OSError, StagingError) as error:
            problem = str(error)
        if problem:
            problems.append(problem)
    if problems:
        return problems
    for target in reversed(record.targets):
        if target.backup_path and target.backup_is_new:
            _remove_backup(night, Path(target.backup_path))
        for folder, identity in reversed(list(zip(target.created_dirs, target.created_dir_ids, strict=False))):
            disk.remove_folder_if_ours(Path(folder), identity)
    disk.remove(night / journal.FILE)
    return []


def _restore(target: Target, *, keep_edited: bool) -> str:
    """Put one file back; the problem when it cannot be."""
    path = target.path
    if disk.real(path.parent) != path.parent:
        return f"{path}: a folder on the way became a link since; put it back by hand from {_source(target)}."
    kept = ""
    if target.temporary and os.path.lexists(live.spare_of(Path(target.temporary))):
        settled, kept = _settle(target)
        if settled and not kept:
            return ""
    seen = disk.look(path)
    found = disk.hash_of(seen)
    if found == target.baseline_sha256:
        return ""
    ours = found == target.proposed_sha256
    if target.original is None and seen is not None and (ours or not seen.data):
        live.remove(path, before=seen, temporary=_temporary(target))
        return ""
    if target.original is not None and ours:
        _put_back(target, seen)
        return ""
    if keep_edited:
        return ""
    more = f" An earlier save of the same moment is in {kept}." if kept else ""
    return (
        f"{path} was edited after the interruption, so it was left as it is. What it held before is in "
        f"{_source(target)}; `recover` with keep_edited keeps the edit and closes the matter.{more}"
    )


def _settle(target: Target) -> tuple[bool, str]:
    """Undo an exchange that was interrupted: whether the person's file is live again, and where another text is kept.

    At the spare name lies our new file (nothing was exchanged yet, or it was exchanged back), or what it displaced.
    """
    path, spare = target.path, live.spare_of(Path(target.temporary))
    held, seen = live.glance(spare), live.glance(path)
    if held is not None and held.sha256 == target.proposed_sha256:
        spare.unlink()
        return False, ""
    if held is not None and held.data == target.original and disk.hash_of(seen) != target.proposed_sha256:
        spare.unlink()  # journal and backup hold it too
        return False, ""
    if disk.hash_of(seen) in (target.proposed_sha256, target.baseline_sha256):  # put there by a transaction
        return True, live.give_back(path, spare, seen)
    return False, live.keep_beside(path, spare, None)


def _put_back(target: Target, seen: disk.Seen | None) -> None:
    original = target.original or b""
    if seen is not None:
        live.replace(target.path, original, before=seen, temporary=_temporary(target), mode=target.original_mode)
    else:
        disk.create(target.path, original, temporary=_temporary(target), mode=target.original_mode)


def _temporary(target: Target) -> Path:
    return Path(target.temporary) if target.temporary else target.path.with_name(f".tmp-{secrets.token_hex(8)}")


def clean_up(target: Target) -> None:
    """Remove the temporary file and the half-built folders of a target."""
    if target.temporary:
        Path(target.temporary).unlink(missing_ok=True)
    if target.created_tmp:
        built = Path(target.created_tmp)
        names = [Path(folder).name for folder in target.created_dirs[1:]]
        for depth in range(len(names), -1, -1):
            with contextlib.suppress(OSError):  # not built, renamed already, or not empty
                built.joinpath(*names[:depth]).rmdir()


def _remove_backup(night: Path, backup: Path) -> None:
    """Remove a backup and the folders of ours that are empty without it."""
    if night not in backup.parents or ".." in backup.parts:
        return
    backup_temporary(backup).unlink(missing_ok=True)
    backup.unlink(missing_ok=True)
    for folder in backup.parents:
        if folder == night:
            break
        with contextlib.suppress(OSError):  # another backup lies there, or it was never made
            folder.rmdir()
    sync_folder(night)


def backup_temporary(backup: Path) -> Path:
    """The name under which a backup is written first."""
    return backup.with_name(f".tmp-{backup.name}")


def _source(target: Target) -> str:
    return target.backup_path or "the journal beside the night's manifest"

"""Cleaning up after a kill: what every command does first.

An interrupted adoption or undo is rolled back, so that each live file is what it was before it began. Nothing happens
where nothing was interrupted.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from skillopt_sleep import paths
from skillopt_sleep.config import SleepConfig
from skillopt_sleep.errors import NightBusy, StagingError, StagingRecoveryError
from skillopt_sleep.staging import disk, journal, nights
from skillopt_sleep.staging.desk import Desk, desk_for
from skillopt_sleep.staging.locking import night_held, targets_held
from skillopt_sleep.staging.manifest import Row
from skillopt_sleep.staging.names import SKILL_FILE
from skillopt_sleep.staging.problems import InvalidStaging
from skillopt_sleep.staging.receipts import read_receipts
from skillopt_sleep.staging.rollback import roll_back

_TEMPORARY = f".tmp-{journal.FILE}.*"
_UNDONE = re.compile(rb'"undone_at": *[1-9]')


@dataclass(frozen=True, slots=True)
class Recovered:
    """What was found in one night. `files` are the live files of the interrupted transaction.

    rolled_back: all is as before it. busy: a living process works there. blocked: `message` says what a person has
    to decide; nothing was changed that was not ours.
    """

    night: str
    status: Literal["rolled_back", "busy", "blocked"]
    files: tuple[str, ...] = ()
    message: str = ""


def recover(
    where: str | Path,
    *,
    keep_edited: bool = False,
    trust_unsigned: bool = False,
    cfg: SleepConfig | None = None,
) -> list[Recovered]:
    """Recover every interrupted transaction of a project, or that of one night folder.

    `keep_edited`: leave files that somebody edited since as they are, and close the matter. `trust_unsigned`: play back
    the journal of an older version too, on SKILL.md, CLAUDE.md and AGENTS.md in configured places only. Given a
    project, what is busy or blocked is part of the result; given a night, it is raised (NightBusy, InvalidStaging,
    StagingRecoveryError).
    """
    if is_night(where):
        folder = nights.check_night(where)
        desk = desk_for(nights.project_of(folder), cfg)
        one = recover_night(folder, desk, keep_edited=keep_edited, trust_unsigned=trust_unsigned)
        return [one] if one else []
    found: list[Recovered] = []
    interrupted = [night for night in nights.folders(where) if _needs_care(night)]
    if not interrupted:
        return []
    desk = desk_for(nights.project_of(interrupted[0]), cfg)
    for night in interrupted:
        try:
            one = recover_night(night, desk, keep_edited=keep_edited, trust_unsigned=trust_unsigned)
        except NightBusy as busy:
            one = Recovered(str(night), "busy", message=str(busy))
        except (StagingError, OSError) as blocked:
            one = Recovered(str(night), "blocked", message=str(blocked))
        if one:
            found.append(one)
    return found


def recover_night(
    night: Path, desk: Desk, *, keep_edited: bool = False, trust_unsigned: bool = False
) -> Recovered | None:
    """Recover one night; None when nothing was interrupted. Raises as `recover` says."""
    if not _needs_care(night):
        return None
    with night_held(night):
        record = journal.read_journal(night, desk.seal)
        if record is not None:
            if not record.signed:
                _check_unsigned(night, record, desk, trust_unsigned=trust_unsigned)
            files = tuple(target.live_path for target in record.targets)
            with targets_held(desk.state_dir, [target.path for target in record.targets]):
                problems = roll_back(night, record, keep_edited=keep_edited)
            if problems:
                raise StagingRecoveryError(
                    f"{night}: an interrupted {record.kind} change cannot be taken back alone: {problems[0]}",
                    recovery_errors=problems,
                )
        _sweep(night, desk)
    return None if record is None else Recovered(str(night), "rolled_back", files)


def _needs_care(night: Path) -> bool:
    return journal.present(night) or next(night.glob(_TEMPORARY), None) is not None or _has_undone(night)


def _has_undone(night: Path) -> bool:
    """True when an undo may have been killed after its commit, before it removed the folders that it left empty."""
    for file in night.glob("adopted_*.json"):
        with contextlib.suppress(StagingError):  # a damaged receipt is reported where it is needed
            seen = disk.look(file)
            if seen is not None and _UNDONE.search(seen.data):
                return True
    return False


def _sweep(night: Path, desk: Desk) -> None:
    """Remove temporary files of journals, and folders of undone adoptions that are still there and empty."""
    for left in night.glob(_TEMPORARY):
        if not disk.is_link(left) and left.is_file():
            left.unlink(missing_ok=True)
    with contextlib.suppress(StagingError):  # a receipt that cannot be read is reported where it is needed
        for receipt in read_receipts(night, desk.seal):
            if receipt.undone_at and receipt.signed:
                remove_folders(receipt.created_dirs, receipt.created_dir_ids)


def remove_folders(folders: tuple[str, ...], identities: tuple[tuple[int, int], ...]) -> None:
    """Remove created folders, innermost first, where they are still the same and empty."""
    for folder, identity in reversed(list(zip(folders, identities, strict=False))):
        disk.remove_folder_if_ours(Path(folder), identity)


def _check_unsigned(night: Path, record: journal.Journal, desk: Desk, *, trust_unsigned: bool) -> None:
    if not trust_unsigned:
        raise InvalidStaging(
            f"{night / journal.FILE} was not written by this installation (an older version leaves such a file when it "
            "is killed). If it is yours, recover with trust_unsigned; else remove it."
        )
    for target in record.targets:
        memory = target.path.name != SKILL_FILE
        row = Row("managed", "memory" if memory else "skill", "", target.live_path, live_realpath=target.live_path)
        problem = desk.allowed.problem(row)
        if problem or target.path.name not in (SKILL_FILE, "CLAUDE.md", "AGENTS.md"):
            raise InvalidStaging(f"{night / journal.FILE}: {problem or f'{target.path} is no skill and no memory.'}")
    if record.receipt.path.parent != night:
        raise InvalidStaging(f"{night / journal.FILE} names a receipt of another night.")


def is_night(where: str | Path) -> bool:
    """True when a path is that of a night folder and not of a project."""
    folder = paths.expand(where)
    return folder.parent.name == "staging" and folder.parent.parent.name == paths.PROJECT_FOLDER

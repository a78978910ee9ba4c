"""Changing a person's file without burying what they save in that very moment.

The new file and the live one exchange their names, and only then is it looked at what was displaced. When that is not
what was expected, they exchange again. Where the system cannot exchange names, a look just before the rename has to do.

While this goes on `spare_of` the temporary name holds a whole file: ours, or the one that was displaced.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from pathlib import Path

from skillopt_sleep.errors import StagingError
from skillopt_sleep.paths import sync_folder
from skillopt_sleep.staging import disk, exchange
from skillopt_sleep.staging.disk import Seen
from skillopt_sleep.staging.problems import AdoptionRefused

_EXCHANGES = 100
_FEW, _LOOKS = 10, 250
_PAUSE = 0.002


def spare_of(temporary: Path) -> Path:
    """The name at which a whole new file waits for the exchange, and where what was displaced lies after it."""
    return temporary.with_name(f"{temporary.name}.swap")


def replace(path: Path, data: bytes, *, before: Seen, temporary: Path, mode: int) -> None:
    """Put `data` in the place of the file that was seen at `path` as `before`, all or nothing.

    Raises AdoptionRefused, with the person's newest text live, when the file is not that one any more.
    """
    disk.write_temporary(temporary, data, mode)
    if os.name == "posix" and before.owner != (os.geteuid(), os.getegid()):
        with contextlib.suppress(OSError):  # only root can give a file away; the content matters more
            os.chown(temporary, *before.owner)
            temporary.chmod(mode)
    spare = spare_of(temporary)
    temporary.rename(spare)
    ours = disk.look(spare)
    try:
        unchanged = glance(path) == before
        swapped = unchanged and exchange.swap(spare, path)
    except FileNotFoundError:
        unchanged = False
    if not unchanged:
        spare.unlink(missing_ok=True)
        raise _changed(path, "")
    if not swapped:
        spare.replace(path)
        sync_folder(path.parent)
    elif not _let_go(spare, before):
        raise _changed(path, give_back(path, spare, ours))


def remove(path: Path, *, before: Seen, temporary: Path) -> None:
    """Remove the file that was seen at `path` as `before`; one that is gone already is as good.

    Raises AdoptionRefused, with the person's newest text live, when the file is not that one any more.
    """
    spare = spare_of(temporary)
    try:
        path.rename(spare)
    except FileNotFoundError:
        return
    if not _let_go(spare, before):
        raise _changed(path, give_back(path, spare, None))


def give_back(path: Path, spare: Path, ours: Seen | None) -> str:
    """Let the person's newest text be live again, of which an earlier one lies at `spare`.

    `ours` is what was put live in its place (None: nothing). A text that was saved over in the meantime is kept beside
    the file: returns its path, else "".
    """
    expected = ours
    for _ in range(_EXCHANGES):
        if glance(path) != expected:
            break  # saved since: that is the newest
        put = _quiet(spare, looks=_FEW)  # a save that has just begun ends where it began
        if not _put_live(spare, path, expected) or _quiet(spare) == expected:
            break
        expected = put  # what was displaced now is newer than what is live
    kept = keep_beside(path, spare, ours)
    sync_folder(path.parent)
    return kept


def keep_beside(path: Path, spare: Path, ours: Seen | None) -> str:
    """Give what lies at `spare` a name beside the live file and return it; "" when it is no text of its own."""
    held, live = _quiet(spare), glance(path)
    if not os.path.lexists(spare):
        return ""
    known = [one.data for one in (ours, live) if one is not None]
    if held is not None and held.data in known and not exchange.being_written(spare):
        spare.unlink()
        return ""
    kept = path.with_name(f"{path.name}.kept-{secrets.token_hex(4)}")
    spare.rename(kept)
    return str(kept)


def glance(path: Path) -> Seen | None:
    """The regular file at `path`; None for everything else."""
    try:
        return disk.look(path)
    except StagingError:
        return None


def _let_go(spare: Path, before: Seen) -> bool:
    """Remove what was displaced when it is what was expected and nobody is writing into it; else False.

    Asked twice, the second time when the exchange is safe on disk: who had opened the file for writing just before it
    was displaced has had time to be seen.
    """
    for last in (False, True):
        if exchange.being_written(spare) or glance(spare) != before:
            return False
        if last:
            spare.unlink()
        sync_folder(spare.parent)
    return True


def _put_live(spare: Path, path: Path, expected: Seen | None) -> bool:
    """Make the file at `spare` the live one; whether another one was displaced by it."""
    try:
        if expected is not None and exchange.swap(spare, path):
            return True
    except FileNotFoundError:
        expected = None  # removed just now
    if expected is not None:
        spare.replace(path)
        return False
    try:
        exchange.move_new(spare, path)
    except FileExistsError:
        return False  # made anew just now: that is the newest
    except OSError as error:
        if error.errno not in exchange.NO_HARD_LINKS:
            raise
        if not os.path.lexists(path):
            spare.rename(path)
    return False


def _quiet(spare: Path, *, looks: int = _LOOKS) -> Seen | None:
    """The file at `spare` once nobody writes into it any more, or after a while."""
    for _ in range(looks):
        if not exchange.being_written(spare):
            break
        time.sleep(_PAUSE)
    return glance(spare)


def _changed(path: Path, kept: str) -> AdoptionRefused:
    more = f" A text that was saved and then saved over in that moment is kept in {kept}." if kept else ""
    return AdoptionRefused(f"{path} was changed by something else just now; it was left as it is.{more}")

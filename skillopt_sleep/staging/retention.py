"""Pruning old nights. What waits for a decision, and what `undo` needs, always stays."""

from __future__ import annotations

import secrets
import shutil
import time
from pathlib import Path

from skillopt_sleep.config import SleepConfig
from skillopt_sleep.staging import disk, journal, manifest, nights, receipts
from skillopt_sleep.staging.desk import desk_for
from skillopt_sleep.staging.locking import night_held
from skillopt_sleep.staging.pending import NightView, view

_DAY = 86_400.0
_DOOMED = ".gc-"


def gc(
    project: str | Path,
    *,
    keep: int = 30,
    empty_days: float = 7.0,
    now: float | None = None,
    cfg: SleepConfig | None = None,
) -> list[str]:
    """Remove old night folders of a project and return their paths.

    The newest `keep` published nights stay, and of the others those with a pending proposal, an adoption that can be
    undone, or damage that a person should see. Folders of aborted nights and of nights without tasks go
    after `empty_days`. Never touches a night of the last day, one that is in use, or a link.
    """
    root = nights.root_of(project)
    if not root.is_dir():
        return []
    at = time.time() if now is None else now
    _clear_leftovers(root, at)
    seal = desk_for(root.parents[1], cfg).seal
    published = nights.published(project)
    old = [night for night in published[keep:] if _settled(view(night, seal=seal))]
    empty = [night for night in nights.folders(project) if _is_empty(night) and _age(night, at) > empty_days * _DAY]
    removed = []
    for night in [*old, *empty]:
        if _age(night, at) > _DAY and not journal.present(night):
            _remove(night)
            removed.append(str(night))
    return removed


def _clear_leftovers(root: Path, at: float) -> None:
    """Finish removals that were interrupted; remove temporary files that no living writer can still need."""
    for left in root.glob(f"{_DOOMED}*"):
        if not disk.is_link(left):
            shutil.rmtree(left, ignore_errors=True)
    for left in [*root.glob(".tmp-*"), *root.glob("*/.tmp-*")]:
        if left.is_file() and at - left.lstat().st_mtime > _DAY:
            left.unlink(missing_ok=True)


def _settled(one: NightView) -> bool:
    return not one.problem and all(row.status not in ("pending", "adopted") for row in one.rows)


def _is_empty(night: Path) -> bool:
    """True when nothing was published and nothing adopted: an aborted night, or one without tasks."""
    needed = {manifest.FILE, journal.FILE, "backup", *receipts.FILES.values()}
    return needed.isdisjoint(entry.name for entry in night.iterdir())


def _age(night: Path, at: float) -> float:
    newest = max((entry.stat(follow_symlinks=False).st_mtime for entry in [night, *night.iterdir()]), default=at)
    return at - newest


def _remove(night: Path) -> None:
    """Rename first, so that a kill leaves no half night; the next call removes the rest."""
    doomed = night.parent / f"{_DOOMED}{secrets.token_hex(8)}"
    with night_held(night):
        pass  # nobody works there; Windows renames no folder with an open file
    night.rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)

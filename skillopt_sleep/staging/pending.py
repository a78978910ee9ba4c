"""What waits for a decision, over all nights of a project: a later night never hides an earlier proposal."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from skillopt_sleep.config import SleepConfig
from skillopt_sleep.errors import StagingError, StagingRecoveryError
from skillopt_sleep.staging import checks, disk, journal, nights
from skillopt_sleep.staging.desk import Desk, desk_for
from skillopt_sleep.staging.diff import unified, visible
from skillopt_sleep.staging.manifest import Kind, Manifest, Row, read_manifest
from skillopt_sleep.staging.receipts import adopted_keys, read_receipts, undone_keys
from skillopt_sleep.staging.recover import is_night
from skillopt_sleep.staging.rejected import rejected_keys
from skillopt_sleep.staging.signing import Seal

RowStatus = Literal["pending", "adopted", "undone", "rejected", "stale"]


@dataclass(frozen=True, slots=True)
class StagedRow:
    """A proposed document and where it stands. stale: the live file changed since, so it can no longer be adopted."""

    row: Row
    status: RowStatus


@dataclass(frozen=True, slots=True)
class NightView:
    """A published night. `problem` says why it cannot be used (then there are no rows); "" when it can."""

    folder: Path
    accepted: bool = False
    created: float = 0.0
    rows: tuple[StagedRow, ...] = ()
    held: tuple[str, ...] = ()
    signed: bool = False
    problem: str = ""

    @property
    def pending(self) -> tuple[Row, ...]:
        """The rows that can be adopted."""
        return tuple(one.row for one in self.rows if one.status == "pending")


def view(night: str | Path, *, cfg: SleepConfig | None = None, seal: Seal | None = None) -> NightView:
    """One night as it stands; damage is told in `problem`, not raised."""
    folder = Path(night)
    try:
        folder = nights.check_night(night)
        own = seal or desk_for(nights.project_of(folder), cfg).seal
        if journal.present(folder):
            return NightView(folder, problem=f"{folder}: a change was interrupted here; recover first.")
        manifest = read_manifest(folder, own)
        rows = _standing(folder, manifest, own)
    except StagingError as error:
        return NightView(folder, problem=str(error))
    return NightView(folder, manifest.accepted, manifest.created, rows, manifest.held, manifest.signed)


def pending_nights(project: str | Path, *, cfg: SleepConfig | None = None) -> list[NightView]:
    """Every night of a project with something to adopt, the newest first."""
    found = nights.published(project)
    if not found:
        return []
    seal = desk_for(nights.project_of(found[0]), cfg).seal
    views = (view(night, seal=seal) for night in found)
    return [one for one in views if one.pending]


def latest_pending(project: str | Path, *, cfg: SleepConfig | None = None) -> str | None:
    """The newest night with something to adopt; the last published one when none has; None without nights."""
    waiting = pending_nights(project, cfg=cfg)
    return str(waiting[0].folder) if waiting else nights.latest_staging(project)


def diff(where: str | Path, names: Sequence[str] | None = None, *, cfg: SleepConfig | None = None) -> str:
    """What adopting would change: a unified diff against the live files, safe for a terminal; "" when nothing would.

    `where` is a night, or a project (its newest pending night). `names`: only these skills (`skill`, `memory`: the
    managed pair). A proposal whose live file changed since is shown with a note, since it cannot be adopted. Raises
    NoStaging or InvalidStaging.
    """
    night = where if is_night(where) else latest_pending(where, cfg=cfg)
    if night is None:
        return ""
    folder = nights.check_night(night)
    desk = desk_for(nights.project_of(folder), cfg)
    manifest = read_manifest(folder, desk.seal)
    rows = [one for one in _standing(folder, manifest, desk.seal) if names is None or one.row.name in names]
    shown = [one for one in rows if one.status in ("pending", "stale", "undone")]
    return "".join(_row_diff(one, folder) if _may_show(one.row, manifest, desk) else _unshown(one.row) for one in shown)


def staged_skills(night: str | Path, *, cfg: SleepConfig | None = None) -> list[dict[str, str]]:
    """The per-skill rows of a night, adopted or not. Raises NoStaging or InvalidStaging."""
    return [row.to_dict() for row in _manifest(night, cfg)[1].named]


def staged_skill_roots(night: str | Path, *, cfg: SleepConfig | None = None) -> list[str]:
    """The skill roots that a night's per-skill rows were made for."""
    return list(_manifest(night, cfg)[1].skill_roots)


def has_staged_managed(night: str | Path, *, cfg: SleepConfig | None = None) -> bool:
    """True when a night proposes something for the managed pair, adopted or not."""
    return bool(_manifest(night, cfg)[1].managed)


def pending_staged_skills(night: str | Path, *, cfg: SleepConfig | None = None) -> list[dict[str, str]]:
    """The per-skill rows of a night that are neither adopted nor turned down.

    Raises StagingRecoveryError while an interrupted change waits for `recover`.
    """
    return [row.to_dict() for row in _undecided(night, "named", cfg)]


def has_pending_staged_managed(night: str | Path, *, cfg: SleepConfig | None = None) -> bool:
    """True when a night's proposal for the managed pair is neither adopted nor turned down. Raises as above."""
    return bool(_undecided(night, "managed", cfg))


def adopted_names(night: str | Path, *, cfg: SleepConfig | None = None) -> list[str]:
    """The named skills that are adopted from a night."""
    folder, _, seal = _manifest(night, cfg)
    return [one.name for one in read_receipts(folder, seal, "named") if one.adopted]


def _undecided(night: str | Path, kind: Kind, cfg: SleepConfig | None) -> list[Row]:
    folder, manifest, seal = _manifest(night, cfg)
    if journal.present(folder):
        raise StagingRecoveryError(f"{folder}: a change was interrupted here; recover first.")
    receipts = read_receipts(folder, seal)
    decided = {receipt.key for receipt in receipts} | set(rejected_keys(folder))
    return [row for row in manifest.rows if row.kind == kind and row.key not in decided]


def _manifest(night: str | Path, cfg: SleepConfig | None) -> tuple[Path, Manifest, Seal]:
    folder = nights.check_night(night)
    seal = desk_for(nights.project_of(folder), cfg).seal
    return folder, read_manifest(folder, seal), seal


def _standing(folder: Path, manifest: Manifest, seal: Seal) -> tuple[StagedRow, ...]:
    receipts = read_receipts(folder, seal)
    adopted, undone, rejected = adopted_keys(receipts), undone_keys(receipts), rejected_keys(folder)
    rows = []
    for row in manifest.rows:
        status: RowStatus = "pending" if _fits(row) else "stale"
        for decided, keys in (("undone", undone), ("rejected", rejected), ("adopted", adopted)):
            if row.key in keys:
                status = decided  # type: ignore[assignment]
        rows.append(StagedRow(row, status))
    return tuple(rows)


def _fits(row: Row) -> bool:
    with contextlib.suppress(StagingError):
        path = Path(row.live_realpath)
        return row.pinned and disk.real(row.live_path) == path and disk.hash_of(disk.look(path)) == row.live_sha256
    return False


def _may_show(row: Row, manifest: Manifest, desk: Desk) -> bool:
    """False for a file that somebody else's manifest names and that is no document in an allowed place."""
    path = Path(row.live_realpath or row.live_path)
    fits = path.suffix.lower() == ".md" and path.is_absolute() and disk.real(path) == path
    return manifest.signed or (fits and not desk.allowed.problem(row))


def _unshown(row: Row) -> str:
    where = visible(row.live_realpath or row.live_path)
    return f"# {where} is not shown: this night was not staged here, and that is no document in an allowed folder.\n"


def _row_diff(one: StagedRow, folder: Path) -> str:
    path = Path(one.row.live_realpath or one.row.live_path)
    live = disk.look(path)
    after = checks.proposed_bytes(one.row, folder).decode("utf-8")
    text = unified(
        live.data.decode("utf-8", "replace") if live else "", after, label=str(path).lstrip("/"), absent=live is None
    )
    note = (
        f"# {visible(str(path))} changed since this was staged: it cannot be adopted.\n"
        if one.status == "stale"
        else ""
    )
    return note + text

"""Adopting staged proposals: the managed pair, or named skills. All that is chosen goes live, or nothing does."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from skillopt_sleep.config import SleepConfig
from skillopt_sleep.errors import StagingError
from skillopt_sleep.staging import checks, disk, nights
from skillopt_sleep.staging.desk import Desk, desk_for
from skillopt_sleep.staging.journal import Journal
from skillopt_sleep.staging.locking import night_held, targets_held
from skillopt_sleep.staging.manifest import Kind, Manifest, Row, read_manifest
from skillopt_sleep.staging.problems import AdoptionRefused, SelectionRefused
from skillopt_sleep.staging.receipts import FILES, Receipt, adopted_keys, read_receipts, receipt_bytes
from skillopt_sleep.staging.recover import recover_night
from skillopt_sleep.staging.rejected import rejected_keys
from skillopt_sleep.staging.transaction import Change, Work, carry_out
from skillopt_sleep.types import AdoptedSkill

Choose = Callable[[Manifest, Sequence[Receipt]], Sequence[Row]]
_KINDS: dict[Kind, str] = {"managed": "legacy", "named": "skills"}
_NEXT = 1e-3


def adopt(
    night: str | Path, *, auto: bool = False, trust_unsigned: bool = False, cfg: SleepConfig | None = None
) -> list[str]:
    """Adopt the managed pair of a night and return the paths that were written ([]: the night proposes nothing for it).

    Of a pair of which one half was turned down, the other is adopted; one that was turned down whole is adopted after
    all. `auto`: nobody has looked, so a night that the gate did not accept, or that is held for review, is refused.
    `trust_unsigned`: adopt a manifest that this installation cannot prove to be its own, from configured places only.
    `cfg`: the only source of allowed places; None: this person's configuration files. Raises AdoptionRefused,
    InvalidStaging or NightBusy before any write, AdoptionFailed after a roll back, StagingRecoveryError.
    """

    def choose(manifest: Manifest, receipts: Sequence[Receipt]) -> Sequence[Row]:
        if auto and not manifest.accepted:
            raise AdoptionRefused(f"{manifest.night} was not accepted by the gate; it is never adopted unseen.")
        if auto and manifest.held:
            raise AdoptionRefused(f"{manifest.night} is held for review: {manifest.held[0]}.")
        turned_down = rejected_keys(nights.check_night(night))
        rows = [row for row in manifest.managed if row.key not in turned_down] or manifest.managed
        if rows and {row.key for row in rows} <= adopted_keys(receipts):
            raise AdoptionRefused(f"{manifest.night} was adopted already.")
        return rows

    written = _adopt(night, "managed", choose, trust_unsigned=trust_unsigned, cfg=cfg)
    return [receipt.live_path for receipt in written]


def adopt_skills(
    night: str | Path,
    names: Sequence[str] | None = None,
    *,
    trust_unsigned: bool = False,
    cfg: SleepConfig | None = None,
) -> list[AdoptedSkill]:
    """Adopt named skills of a night (None: all its rows; []: nothing) and return their receipts.

    Raises SelectionRefused for names that are unknown or given twice; otherwise as `adopt` does.
    """
    if names is not None and not names:
        return []

    def choose(manifest: Manifest, _: Sequence[Receipt]) -> Sequence[Row]:
        by_name = {row.name: row for row in manifest.named}
        wanted = list(by_name) if names is None else list(names)
        unknown = [name for name in wanted if name not in by_name]
        if unknown or len(set(wanted)) != len(wanted):
            what = f"{unknown[0]!r} is not staged" if unknown else "a name is given twice"
            available = [(row.name, row.live_path) for row in manifest.named]
            raise SelectionRefused(f"{what} in {manifest.night}; nothing was adopted.", available=available)
        return [by_name[name] for name in wanted]

    written = _adopt(night, "named", choose, trust_unsigned=trust_unsigned, cfg=cfg)
    return [receipt.public() for receipt in written]


def _adopt(
    night: str | Path, kind: Kind, choose: Choose, *, trust_unsigned: bool, cfg: SleepConfig | None
) -> list[Receipt]:
    folder = nights.check_night(night)
    desk = desk_for(nights.project_of(folder), cfg, create=True)
    recover_night(folder, desk)
    with night_held(folder):
        manifest = read_manifest(folder, desk.seal)
        receipts = read_receipts(folder, desk.seal)
        rows = choose(manifest, receipts)
        if not rows:
            return []
        if not manifest.signed and not trust_unsigned:
            raise AdoptionRefused(
                f"{folder} cannot be proved to be staged by this installation (its manifest is not signed). Run the "
                "night again, or copy what you want by hand."
            )
        with targets_held(desk.state_dir, [Path(row.live_realpath) for row in rows if row.live_realpath]):
            return _under_locks(folder, desk, kind, manifest, rows)


def _under_locks(folder: Path, desk: Desk, kind: Kind, manifest: Manifest, rows: Sequence[Row]) -> list[Receipt]:
    if read_manifest(folder, desk.seal) != manifest:
        raise AdoptionRefused(f"{folder} was changed meanwhile; try again.")
    receipts = read_receipts(folder, desk.seal)
    checks.check_all(manifest, desk)
    checks.check_backups(receipts, folder)
    changes = tuple(checks.change_of(row, folder, manifest, receipts) for row in rows)
    earlier = [receipt for receipt in receipts if receipt.kind == kind]
    fresh = _fresh(kind, rows, changes, _next_time(nights.project_of(folder), desk))

    def receipt_of(record: Journal) -> bytes:
        return receipt_bytes([*earlier, *_with_folders(fresh, record)], desk.seal, folder)

    work = Work(folder, desk.seal, _KINDS[kind], changes, folder / FILES[kind], receipt_of)
    return _with_folders(fresh, carry_out(work))


def _fresh(kind: Kind, rows: Sequence[Row], changes: Sequence[Change], at: float) -> list[Receipt]:
    transaction = f"{at:.6f}"
    return [
        Receipt(
            kind=kind,
            name=row.name,
            live_path=str(change.path),
            sha256_before=disk.hash_of(change.before),
            sha256_after=row.sha256,
            backup_path=str(change.backup or ""),
            transaction=transaction,
            at=at,
            mode_before=change.before.mode if change.before else -1,
            signed=True,
        )
        for row, change in zip(rows, changes, strict=True)
    ]


def _with_folders(receipts: Sequence[Receipt], record: Journal) -> list[Receipt]:
    made = {target.key: target for target in record.targets}
    return [
        replace(one, created_dirs=made[one.key].created_dirs, created_dir_ids=made[one.key].created_dir_ids)
        for one in receipts
    ]


def _next_time(project: Path, desk: Desk) -> float:
    """Now, but later than every adoption of the project so far, even when the clock was set back."""
    return max([time.time(), *(receipt.at + _NEXT for _, receipt in all_receipts(project, desk))])


def all_receipts(project: Path, desk: Desk) -> list[tuple[Path, Receipt]]:
    """Every readable receipt of a project with its night."""
    found: list[tuple[Path, Receipt]] = []
    for night in nights.folders(project):
        with contextlib.suppress(StagingError):  # said by `status`, and by every command on that night itself
            found += [(night, receipt) for receipt in read_receipts(night, desk.seal)]
    return found

"""Rules that a person did not want: undone adoptions and proposals that were turned down.

A later night may propose such a rule again, but says so and is held for review.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path

from skillopt_sleep import paths
from skillopt_sleep.config import SleepConfig
from skillopt_sleep.errors import StagingError
from skillopt_sleep.staging import disk, nights
from skillopt_sleep.staging.desk import desk_for
from skillopt_sleep.staging.locking import night_held
from skillopt_sleep.staging.manifest import read_manifest
from skillopt_sleep.staging.problems import InvalidStaging, SelectionRefused
from skillopt_sleep.staging.receipts import read_receipts
from skillopt_sleep.staging.signing import Seal

FILE = "rejected.json"


def rule_key(line: str) -> str:
    """The form in which two rules are the same: without the dash, in lower case, blanks collapsed."""
    return " ".join(line.strip().removeprefix("-").lower().split())


def reject(night: str | Path, names: Sequence[str] | None = None, *, cfg: SleepConfig | None = None) -> list[str]:
    """Turn down staged rows (None: all of the night) and return their keys. They are pending no more.

    `names` are skill names; `skill` and `memory` stand for the managed pair when no skill has that name. Raises
    SelectionRefused for a name that is not staged.
    """
    folder = nights.check_night(night)
    desk = desk_for(nights.project_of(folder), cfg, create=True)
    rows = read_manifest(folder, desk.seal).rows
    keys = [row.key for row in rows]
    if names is not None:
        by_name = {row.name: row.key for row in rows} | {row.name: row.key for row in rows if row.kind == "named"}
        if unknown := [name for name in names if name not in by_name]:
            raise SelectionRefused(f"{unknown[0]!r} is not staged in {folder.name}.")
        keys = [by_name[name] for name in names]
    with night_held(folder):
        known = rejected_keys(folder)
        paths.write_private_json(folder / FILE, known | {key: time.time() for key in keys if key not in known})
    return keys


def rejected_keys(night: Path) -> dict[str, float]:
    """Keys of the rows of a night that were turned down, with the time (UTC epoch seconds)."""
    seen = disk.look(night / FILE)
    if seen is None:
        return {}
    try:
        return {str(key): disk.number(at) for key, at in disk.parse_json(seen.data).items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise InvalidStaging(f"{night / FILE} is damaged ({error}); remove it and reject again.") from error


def rejected_rules(project: str | Path, *, seal: Seal | None = None) -> dict[str, float]:
    """Every rule of the project that was undone or turned down, by `rule_key`, with the last time."""
    known: dict[str, float] = {}
    for night in nights.published(project):
        with contextlib.suppress(StagingError):  # a night that cannot be read tells nothing
            own = seal or desk_for(nights.project_of(night), None).seal
            turned_down = rejected_keys(night)
            receipts = read_receipts(night, own)
            turned_down |= {row.key: row.undone_at for row in receipts if row.undone_at}
            for row in (row for row in receipts if row.adopted):
                turned_down.pop(row.key, None)
            added = read_manifest(night, own).added
            for key, at in turned_down.items():
                for line in added.get(key, ()):
                    known[rule_key(line)] = max(at, known.get(rule_key(line), 0.0))
    return known

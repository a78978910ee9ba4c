"""The games of ALFWorld as `alfworld-download` leaves them: found, checked, listed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from skillopt.datasets.materialize.tables import Row
from skillopt.errors import DataError

GAME = "game.tw-pddl"
DATA_VARIABLE = "ALFWORLD_DATA"
USUAL_ROOT = "~/.cache/alfworld"
FOLDERS = {"train": "train", "val": "valid_seen", "test": "valid_unseen"}
_NAMED = 5


def games_root(given: str = "") -> Path:
    """The folder that paths of games start from: `given`, else $ALFWORLD_DATA, else where the download goes."""
    return Path(given or os.environ.get(DATA_VARIABLE) or USUAL_ROOT).expanduser()


def check_games(rows: Sequence[Row], root: Path) -> None:
    """Raise DataError when the game of an entry is not there, with the number of them and the first five."""
    blank = next((row for row in rows if not str(row.get("gamefile") or "").strip()), None)
    if blank is not None:
        raise DataError(f"item {blank['id']!r}: field 'gamefile' is missing or empty.")
    missing = [str(row["gamefile"]) for row in rows if not (root / os.path.expandvars(str(row["gamefile"]))).is_file()]
    if missing:
        shown = ", ".join(repr(name) for name in missing[:_NAMED])
        raise DataError(
            f"{root}: lacks {len(missing)} of {len(rows)} games: {shown}{', ...' if len(missing) > _NAMED else ''}; "
            f"run alfworld-download, or name the folder of the games with --source or {DATA_VARIABLE}."
        )


def list_games(root: Path) -> dict[str, list[Row]]:
    """The games of each split by their path: `gamefile` below `root`, and `task_type` from the path.

    Raises DataError when there are none.
    """
    found: dict[str, list[Row]] = {}
    for split, folder in FOLDERS.items():
        paths = sorted(path.relative_to(root).as_posix() for path in root.glob(f"**/{folder}/**/{GAME}"))
        found[split] = [{"gamefile": path, "task_type": _task_type(path)} for path in paths]
    if not found["train"] or not found["val"]:
        raise DataError(
            f"{root}: holds no games of the splits train and valid_seen; run alfworld-download, or name its "
            f"folder with --source or {DATA_VARIABLE}."
        )
    return found


def _task_type(path: str) -> str:
    """The type that the folder of a task begins with, as in `pick_and_place_simple-Apple-None-Fridge-1`."""
    return path.split("/")[-3].partition("-")[0]

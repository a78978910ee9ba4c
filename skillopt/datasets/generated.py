"""The folder that holds a generated split: three item files and the manifest that says what they were cut from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from skillopt.errors import DataError
from skillopt.types import Item
from skillopt.utils.files import atomic_write_json, read_json

MANIFEST = "split_manifest.json"
_WORDS = {"source_hash": "source_hash (the data file has changed since it was cut)"}
_DECIDING = ("source_hash", "split_mode", "split_ratio", "split_seed")


def write_split_folder(
    folder: Path, splits: Mapping[str, Sequence[Item]], manifest: Mapping[str, Any], *, reset: bool = False
) -> None:
    """Write `<folder>/<split>/items.json` for each split and the manifest.

    A folder that was cut from the same items with the same mode, ratio and seed is written again, with the same
    content; one that was cut by hash also from other items, since those that stay keep their split.
    Raises DataError for a folder with another manifest, unless `reset`, and always for one with splits that have no
    manifest: those were made by hand. The manifest goes first, so that an interrupted start can be repeated.
    """
    _check_folder(folder, splits, manifest, reset=reset)
    try:
        atomic_write_json(folder / MANIFEST, dict(manifest))
        for name, items in splits.items():
            atomic_write_json(folder / name / "items.json", [item.to_dict() for item in items])
    except OSError as error:
        raise DataError(
            f"{error.filename or folder}: the split cannot be written here ({error.strerror}); "
            "choose another out_root or split_output_dir."
        ) from error


def _check_folder(
    folder: Path, splits: Mapping[str, Sequence[Item]], manifest: Mapping[str, Any], *, reset: bool
) -> None:
    path = folder / MANIFEST
    if not path.exists():
        if any((folder / name).exists() for name in splits):
            raise DataError(
                f"{folder}: holds splits that have no {MANIFEST}, so they were not generated and are not overwritten; "
                "read them with split_mode: split_dir, or choose another split_output_dir."
            )
        return
    old = read_json(path)
    known = old if isinstance(old, dict) else {}
    changed = [key for key in _DECIDING if known.get(key) != manifest[key]]
    if changed == ["source_hash"] and manifest["split_mode"] == "hash":
        return
    if changed and not reset:
        raise DataError(
            f"{folder}: holds a split with another {', '.join(_WORDS.get(key, key) for key in changed)}; cutting again "
            "would move items between train, val and test, and scores could not be compared. Choose another "
            "split_output_dir or out_root, go on with this split through split_mode: split_dir, or set split_reset: "
            "true to replace it; under split_mode: hash, items that are added to a file move no others."
        )

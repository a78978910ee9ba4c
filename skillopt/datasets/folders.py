"""Which file of a folder holds the items."""

from __future__ import annotations

from pathlib import Path

from skillopt.datasets.batches import SPLIT_NAMES
from skillopt.datasets.readers import SUFFIXES
from skillopt.errors import DataError


class MissingDataFileError(DataError, FileNotFoundError):
    """A folder holds no file that items can be read from."""


def visible(folder: Path) -> list[Path]:
    """Entries of a folder by name, without hidden ones."""
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def data_files(folder: Path, suffixes: tuple[str, ...] = SUFFIXES) -> list[Path]:
    """Files of a folder with one of these endings, by name."""
    return [path for path in visible(folder) if path.is_file() and path.suffix.lower() in suffixes]


def only_file(folder: Path) -> Path:
    """The one data file of a folder that is not itself a set of splits."""
    if any((folder / name).is_dir() for name in SPLIT_NAMES):
        raise DataError(f"{folder}: holds folders of splits; set split_dir to it and split_mode: split_dir.")
    found = data_files(folder)
    if not found:
        raise MissingDataFileError(f"{folder}: holds no items; expected one .json, .jsonl or .csv file.")
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise DataError(f"{folder}: holds {len(found)} data files ({names}); name one of them as env.data_path.")
    return found[0]

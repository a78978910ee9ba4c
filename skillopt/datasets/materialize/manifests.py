"""Manifest folders: which ids belong to train, val and test, and where their items are published.

`<folder>/split_manifest.json` says what the manifest is of, `<folder>/{train,val,test}/items.json` hold an object for
each item with at least its id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillopt.datasets.batches import SPLIT_NAMES
from skillopt.datasets.checks import check_id
from skillopt.datasets.folders import data_files
from skillopt.datasets.generated import MANIFEST
from skillopt.datasets.materialize.benchmarks import Benchmark
from skillopt.datasets.materialize.sources import HUB
from skillopt.datasets.materialize.tables import Row
from skillopt.datasets.readers import read_rows
from skillopt.errors import DataError
from skillopt.types import JsonObject
from skillopt.utils.files import atomic_write_json, read_json

_NAMED = 5


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a manifest folder says. `splits`: entries in their order, each with its id as text under `id`."""

    folder: Path
    splits: Mapping[str, tuple[Row, ...]]
    info: Mapping[str, Any]

    @property
    def revision(self) -> str:
        """The revision of the source that the ids were taken from, blank when the manifest does not say."""
        value = self.info.get("source_revision")
        return value if isinstance(value, str) else ""

    @property
    def source(self) -> str:
        """The source that the ids were taken from; blank when it is not told, or was a path that is gone."""
        value = self.info.get("source_dataset")
        said = value if isinstance(value, str) else ""
        return said if said and (self.revision or Path(said).expanduser().exists()) else ""

    @property
    def entries(self) -> dict[str, Row]:
        """Entry of each id."""
        return {row["id"]: row for rows in self.splits.values() for row in rows}


def read_manifest(folder: Path, benchmark: Benchmark) -> Manifest:
    """The manifest in a folder.

    Raises DataError when there is none (with the ways to get one), for an entry without id, for ids that stand twice,
    and when the counts in its `split_manifest.json` are not those of the files.
    """
    if not folder.is_dir():
        raise DataError(
            f"{folder}: there is no manifest folder; put the published one there (--manifest-dir names another place), "
            f"or make your own: skillopt data manifest {benchmark.name}"
        )
    info = read_json(folder / MANIFEST) if (folder / MANIFEST).is_file() else {}
    if not isinstance(info, dict):
        raise DataError(f"{folder / MANIFEST}: expected an object.")
    of = info.get("benchmark")
    if isinstance(of, str) and of and _plain(of) != _plain(benchmark.name):
        raise DataError(f"{folder / MANIFEST}: is of the benchmark {of!r}; expected {benchmark.name!r}.")
    splits = {name: _entries(folder / name, benchmark) for name in SPLIT_NAMES}
    _refuse_repeated(folder, splits)
    _check_counts(folder, info, splits)
    return Manifest(folder, splits, info)


def write_manifest(folder: Path, benchmark: Benchmark, splits: Mapping[str, Sequence[Row]], more: JsonObject) -> None:
    """Write a manifest folder; `more`: what its `split_manifest.json` says beside the usual."""
    fields = list(dict.fromkeys(name for rows in splits.values() for row in rows for name in row))
    plays = benchmark.plays
    atomic_write_json(
        folder / MANIFEST,
        {
            "benchmark": benchmark.name,
            "manifest_type": benchmark.manifest_type,
            "source_repo": benchmark.repo,
            "source_repo_type": "download" if plays else "dataset",
            "source_url": "https://github.com/alfworld/alfworld" if plays else f"{HUB}/{benchmark.repo}",
            "counts": {name: len(splits[name]) for name in SPLIT_NAMES},
            "item_fields": fields,
            **more,
            "notes": benchmark.notes,
        },
    )
    for name in SPLIT_NAMES:
        atomic_write_json(folder / name / "items.json", list(splits[name]))


def _entries(folder: Path, benchmark: Benchmark) -> tuple[Row, ...]:
    if not folder.is_dir():
        raise DataError(f"{folder}: is missing; a manifest has the folders {', '.join(SPLIT_NAMES)}.")
    files = data_files(folder)
    if len(files) != 1:
        found = ", ".join(path.name for path in files) or "nothing"
        raise DataError(f"{folder}: expected one file, items.json; found {found}.")
    entries = []
    for number, row in enumerate(read_rows(files[0]), 1):
        where = f"{files[0]}: entry {number}"
        named = next((row[name] for name in benchmark.entry_id if row.get(name) not in (None, "")), None)
        if named is None:
            raise DataError(f"{where}: has no {' or '.join(benchmark.entry_id)}.")
        entries.append({**row, "id": check_id(named, where)})
    return tuple(entries)


def _refuse_repeated(folder: Path, splits: Mapping[str, Sequence[Row]]) -> None:
    places: dict[str, str] = {}
    repeated = []
    for name, rows in splits.items():
        for row in rows:
            if row["id"] in places:
                repeated.append(f"{row['id']!r} ({places[row['id']]}, {name})")
            places[row["id"]] = name
    if repeated:
        shown = ", ".join(repeated[:_NAMED])
        raise DataError(f"{folder}: duplicate IDs in the manifest, {len(repeated)} in all: {shown}.")


def _check_counts(folder: Path, info: Mapping[str, Any], splits: Mapping[str, Sequence[Row]]) -> None:
    counts = info.get("counts")
    if not isinstance(counts, dict):
        return
    for name in SPLIT_NAMES:
        if counts.get(name, len(splits[name])) != len(splits[name]):
            raise DataError(
                f"{folder}: {MANIFEST} counts {counts[name]} items in {name}, its file has {len(splits[name])}; "
                "bring the whole manifest again."
            )


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())

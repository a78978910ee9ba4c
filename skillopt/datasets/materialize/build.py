"""From a manifest and a source to splits that a run can read."""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from skillopt.datasets.batches import SPLIT_NAMES
from skillopt.datasets.generated import MANIFEST
from skillopt.datasets.materialize import games
from skillopt.datasets.materialize.benchmarks import Benchmark
from skillopt.datasets.materialize.manifests import Manifest, read_manifest
from skillopt.datasets.materialize.new_folder import new_folder, refuse_existing
from skillopt.datasets.materialize.rows import FileOf
from skillopt.datasets.materialize.sources import Source, SourceRow, open_source, sha256_of
from skillopt.datasets.materialize.tables import Row
from skillopt.errors import DataError
from skillopt.types import JsonObject
from skillopt.utils.files import atomic_write_json, atomic_write_text

Finish = Callable[[Row], Row]
_NAMED = 5


class MissingItemsError(DataError, RuntimeError):
    """A source lacks items that the manifest names."""


@dataclass(frozen=True, slots=True)
class Order:
    """What to make. Blank fields stand for the benchmark's usual ones.

    `source`: a path or a name on the hub, blank: what the manifest was made from, else the published one. `revision`:
    of the hub's data set, blank: the manifest's if it is of this source, else the newest.
    """

    manifest_dir: Path | None = None
    output_dir: Path | None = None
    source: str = ""
    revision: str = ""
    force: bool = False


@dataclass(frozen=True, slots=True)
class Materialized:
    """What was made: `counts` of items by split, and the exact `revision` where the source is on the hub."""

    folder: Path
    files_folder: Path | None
    counts: Mapping[str, int]
    source: str
    revision: str


@dataclass(frozen=True, slots=True)
class _Task:
    benchmark: Benchmark
    manifest: Manifest
    source: Source
    finish: Finish


def materialize(benchmark: Benchmark, order: Order, finish: Finish = dict) -> Materialized:
    """Write the splits of a benchmark and say how many items they have.

    Items come in the manifest's order; `finish` brings each into its final form where the benchmark asks for that. The
    output folder appears when everything in it is right, and not before. Raises DataError for a manifest or a source
    that is not sound, MissingItemsError when ids of the manifest are not in the source, MissingExtraError for a package
    that reading the source needs.
    """
    manifest = read_manifest(order.manifest_dir or benchmark.manifest, benchmark)
    output = order.output_dir or benchmark.output
    if benchmark.plays:
        return _games(benchmark, manifest, output, order)
    if output.absolute() == manifest.folder.absolute():
        raise DataError(f"{output}: is the manifest's folder; choose another --output-dir.")
    refuse_existing(output, replace=order.force)
    usual = manifest.source or benchmark.repo
    given = order.source or usual
    revision = order.revision or (manifest.revision if given == usual else "")
    with open_source(given, revision, benchmark.wanted) as source:
        task = _Task(benchmark, manifest, source, finish)
        counts = _write(task, output, replace=order.force)
        return Materialized(output, benchmark.files_beside(output), counts, given, source.revision)


def _write(task: _Task, output: Path, *, replace: bool) -> dict[str, int]:
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(new_folder(output, replace=replace))
        beside = task.benchmark.files_beside(output)
        if beside is None:
            items = _collect(task, partial(_put, folder))
        elif _is_of_others(beside):
            items = _collect(task, partial(_compare, beside))
        else:
            # This folder closes first, so that splits never stand without the files that they name.
            with new_folder(beside, replace=True) as files:
                items = _collect(task, partial(_put, files))
                atomic_write_json(files / MANIFEST, {**_origin(task), "files": _checksums(files)})
        splits = {name: [items[row["id"]] for row in rows] for name, rows in task.manifest.splits.items()}
        for name, rows in splits.items():
            _write_table(folder / name, rows, task.benchmark.table)
        about = {
            **_origin(task),
            "counts": {name: len(rows) for name, rows in splits.items()},
            "item_fields": list(dict.fromkeys(field for rows in splits.values() for row in rows for field in row)),
            "files": _checksums(folder),
        }
        atomic_write_json(folder / MANIFEST, about)
        return {name: len(rows) for name, rows in splits.items()}


def _is_of_others(folder: Path) -> bool:
    """Whether a folder holds files that were put there by other means, an unpacked archive, say."""
    return folder.is_dir() and any(folder.iterdir()) and not (folder / MANIFEST).is_file()


def _collect(task: _Task, keep: Callable[[FileOf], None]) -> dict[str, Row]:
    """Items by id; `keep` is given their files."""
    entries, found = task.manifest.entries, dict[str, Row]()
    places: dict[str, str] = {}
    for row in task.source.rows():
        key = task.benchmark.key(row)
        if key not in entries:
            continue
        if key in found:
            raise DataError(f"{row.where}: duplicate IDs in the source: {key!r} stands at {places[key]} too.")
        places[key] = row.where
        found[key] = _item(task, row, entries[key], keep)
    missing = [key for key in entries if key not in found]
    if missing:
        shown = ", ".join(repr(key) for key in missing[:_NAMED])
        raise MissingItemsError(
            f"{task.source.given}: lacks {len(missing)} of the {len(entries)} items that {task.manifest.folder} names: "
            f"{shown}{', ...' if len(missing) > _NAMED else ''}; is it the right source and revision?"
        )
    return found


def _item(task: _Task, row: SourceRow, entry: Row, keep: Callable[[FileOf], None]) -> Row:
    item = task.benchmark.item(row, entry)
    for name in task.benchmark.required:
        value = item.get(name)
        if value is None or (value in ("", [], {}) and name not in task.benchmark.may_be_blank):
            raise DataError(f"{row.where}: item {entry['id']!r} has no {name!r}.")
    for file in task.benchmark.extra_files(row, item):
        keep(file)
    return task.finish(item) if task.benchmark.own_form else item


def _put(folder: Path, file: FileOf) -> None:
    path = folder / file.name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(file.data)


def _compare(folder: Path, file: FileOf) -> None:
    path = folder / file.name
    if not path.is_file() or path.read_bytes() != file.data:
        raise DataError(f"{path}: is not the file of the source; move {folder} away, so that it can be made anew.")


def _write_table(folder: Path, rows: Sequence[Row], kind: str) -> None:
    if kind == "json":
        atomic_write_json(folder / "items.json", list(rows))
        return
    fields = list(dict.fromkeys(name for row in rows for name in row))
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, fields, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    atomic_write_text(folder / "items.csv", stream.getvalue())


def _origin(task: _Task) -> JsonObject:
    source = task.source
    return {
        "benchmark": task.benchmark.name,
        "source_manifest_dir": task.manifest.folder.as_posix(),
        "source_dataset": source.given,
        "source_revision": source.revision,
        "source_files": source.checksums(),
    }


def _checksums(folder: Path) -> dict[str, str]:
    """SHA-256 of every file of a folder that has no manifest yet."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): sha256_of(path) for path in files}


def _games(benchmark: Benchmark, manifest: Manifest, output: Path, order: Order) -> Materialized:
    """The manifest is the split already: its games have to be there."""
    root = games.games_root(order.source)
    rows = [row for entries in manifest.splits.values() for row in entries]
    games.check_games(rows, root)
    counts = {name: len(manifest.splits[name]) for name in SPLIT_NAMES}
    if output.absolute() != manifest.folder.absolute():
        with new_folder(output, replace=order.force) as folder:
            for name, entries in manifest.splits.items():
                _write_table(folder / name, entries, benchmark.table)
            about = {"source_manifest_dir": manifest.folder.as_posix(), "files": _checksums(folder)}
            atomic_write_json(folder / MANIFEST, {**manifest.info, **about, "counts": counts})
    return Materialized(output, None, counts, str(root), "")

"""A manifest of one's own, cut from a source by a seed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from skillopt.datasets.batches import SPLIT_NAMES
from skillopt.datasets.checks import check_id
from skillopt.datasets.materialize import games
from skillopt.datasets.materialize.benchmarks import Benchmark, Counts
from skillopt.datasets.materialize.build import Order
from skillopt.datasets.materialize.manifests import write_manifest
from skillopt.datasets.materialize.new_folder import new_folder, refuse_existing
from skillopt.datasets.materialize.sources import Source, open_source
from skillopt.datasets.materialize.tables import Row
from skillopt.datasets.ratio import parse_ratio, split_counts
from skillopt.datasets.sampling import shuffled
from skillopt.errors import ConfigError, DataError
from skillopt.types import JsonObject


@dataclass(frozen=True, slots=True)
class Cut:
    """How items are dealt out: exact `counts` of train, val and test, or all of them by `ratio`.

    With neither, the counts of the published manifest. Items are sorted by id and shuffled with `seed` first.
    """

    counts: Counts | None = None
    ratio: str = ""
    seed: int = 42

    def sizes(self, total: int, usual: Counts) -> Counts:
        """Sizes of the splits of `total` items. Raises DataError when there are not enough."""
        if self.ratio:
            return split_counts(total, parse_ratio(self.ratio))
        wanted = self.counts or usual
        if sum(wanted) > total:
            shown = ":".join(str(number) for number in wanted)
            raise DataError(
                f"the source has {total} items, too few for {shown}; give --ratio 2:1:7, or smaller --counts."
            )
        return wanted

    def told(self) -> JsonObject:
        """The cut for a manifest."""
        method = {"split_method": "ratio", "split_ratio": self.ratio} if self.ratio else {"split_method": "counts"}
        return {**method, "split_seed": self.seed}


def parse_counts(text: str) -> Counts:
    """Three whole numbers such as `400:200:1400`. Raises ConfigError."""
    parts = text.split(":")
    if len(parts) != 3 or not all(part.strip().isdecimal() for part in parts):
        raise ConfigError(
            f"--counts is {text!r}; expected three whole numbers for train, val and test, as 400:200:1400."
        )
    train, val, test = (int(part) for part in parts)
    if not train or not val:
        raise ConfigError(f"--counts is {text!r}; train and val need at least one item each.")
    return train, val, test


def make_manifest(benchmark: Benchmark, order: Order, cut: Cut) -> tuple[Path, dict[str, int], str]:
    """Write a manifest folder of ids of the source; its path, the counts of its splits, and the source's revision.

    The folder is `order.manifest_dir`. Raises DataError as `materialize` does.
    """
    target = order.manifest_dir or benchmark.manifest
    refuse_existing(target, replace=order.force)
    if benchmark.plays:
        root = games.games_root(order.source)
        return target, _write(target, benchmark, _dealt_games(root, benchmark, cut), cut.told(), force=order.force), ""
    given = order.source or benchmark.repo
    with open_source(given, order.revision, benchmark.wanted) as source:
        rows = _entries(benchmark, source)
        try:
            sizes = cut.sizes(len(rows), benchmark.counts)
        except DataError as error:
            raise DataError(f"{given}: {error}") from None
        splits = _dealt(rows, sizes, cut.seed)
        files = source.checksums()
        more = {"source_revision": source.revision, "source_dataset": given, "source_files": files, **cut.told()}
        return target, _write(target, benchmark, splits, more, force=order.force), source.revision


def _write(
    target: Path, benchmark: Benchmark, splits: dict[str, list[Row]], more: JsonObject, *, force: bool
) -> dict[str, int]:
    for name in ("train", "val"):
        if not splits[name]:
            raise DataError(f"{target}: the split {name} would be empty; choose another --ratio or --counts.")
    with new_folder(target, replace=force) as folder:
        write_manifest(folder, benchmark, splits, more)
    return {name: len(splits[name]) for name in SPLIT_NAMES}


def _entries(benchmark: Benchmark, source: Source) -> list[Row]:
    """Manifest entries of all rows, sorted by id."""
    found: dict[str, Row] = {}
    for row in source.rows():
        key = check_id(benchmark.key(row), row.where)
        if key in found:
            raise DataError(f"{row.where}: duplicate IDs in the source: {key!r} stands in it before.")
        found[key] = {"id": key, **benchmark.entry(row)}
    return [found[key] for key in sorted(found)]


def _dealt(rows: list[Row], sizes: Counts, seed: int) -> dict[str, list[Row]]:
    order = shuffled(rows, seed)
    splits, start = {}, 0
    for name, size in zip(SPLIT_NAMES, sizes, strict=True):
        splits[name] = order[start : start + size]
        start += size
    return splits


def _dealt_games(root: Path, benchmark: Benchmark, cut: Cut) -> dict[str, list[Row]]:
    """Games stay in the split that they were made for; a seeded choice of each. Ids are `<folder>:<number>`."""
    if cut.ratio:
        raise ConfigError("--ratio: games belong to train, valid_seen or valid_unseen already; give --counts.")
    splits = {}
    for (name, rows), size in zip(games.list_games(root).items(), cut.counts or benchmark.counts, strict=True):
        chosen = sorted(shuffled(rows, cut.seed)[:size], key=lambda row: str(row["gamefile"]))
        splits[name] = [{"id": f"{games.FOLDERS[name]}:{number:04d}", **row} for number, row in enumerate(chosen)]
    return splits

"""Data of a benchmark: made from the public source, and checked before a run is started on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from skillopt.datasets.base import SPLIT_NAMES, SplitDataLoader
from skillopt.datasets.generated import MANIFEST
from skillopt.datasets.materialize import Materialized, Order, get_benchmark, materialize
from skillopt.datasets.materialize.sources import sha256_of
from skillopt.engine.findings import Finding, as_findings
from skillopt.envs.base import EnvAdapter
from skillopt.envs.benchmark import BenchmarkEnv
from skillopt.envs.registry import accepted_keys, available, make_adapter
from skillopt.errors import DataError, SkillOptError
from skillopt.utils.files import read_json

PLAIN_ENV = "jsonl"
_NAMED = 10
_DOCUMENTS = "docs"
_FILES_OF_ITEMS = ("spreadsheet", "games", "images")


def materialize_data(name: str, order: Order) -> Materialized:
    """Make the splits of a benchmark; see `skillopt.datasets.materialize`.

    Raises ConfigError for an unknown benchmark, and what `materialize` raises.
    """
    benchmark = get_benchmark(name)
    if not benchmark.own_form:
        return materialize(benchmark, order)
    env = make_adapter({"env": name})
    assert isinstance(env, BenchmarkEnv), "benchmarks of their own form are built in"
    return materialize(benchmark, order, env.normalize)


def check_data(folder: Path, env: str = "", settings: Mapping[str, Any] | None = None) -> list[Finding]:
    """What would stop a run on the splits in `folder`, and what else is worth knowing about them.

    Every split is read as the environment reads it. `env`: its name; blank: the one that the folder's manifest or the
    folder's name tells, else `jsonl`. `settings`: further keys of the environment. Calls no model.
    """
    name = env or environment_of(folder)
    try:
        flat = _settings(folder, name, settings or {})
        adapter = make_adapter(flat)
    except SkillOptError as error:
        return list(as_findings("environment", error, "--env NAME  # one of: " + ", ".join(available())))
    findings = [Finding("ok", "environment", f"environment: {name}")]
    findings += _loading(adapter, flat)
    return [*findings, *_checksums(folder)]


def environment_of(folder: Path) -> str:
    """The environment that a folder of splits is for: by its manifest, its name, or that of a folder above it."""
    try:
        said = read_json(folder / MANIFEST).get("benchmark")
    except (SkillOptError, AttributeError):
        said = ""
    known = available()
    if said in known:
        return str(said)
    for part in reversed(folder.absolute().parts[-2:]):
        found = [name for name in known if part == name or part.startswith(f"{name}_")]
        if found:
            return max(found, key=len)
    return PLAIN_ENV


def _settings(folder: Path, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    flat = {**given, "env": name, "split_mode": "split_dir", "split_dir": str(folder)}
    if "data_root" in accepted_keys(name) and not flat.get("data_root"):
        root = _files_of_items(folder, name)
        flat.update({"data_root": str(root)} if root is not None else {})
    if "data_dirs" in accepted_keys(name) and not flat.get("data_dirs") and (folder / _DOCUMENTS).is_dir():
        flat["data_dirs"] = [str(folder / _DOCUMENTS)]
    return flat


def _files_of_items(folder: Path, name: str) -> Path | None:
    """Where the workbooks, games or images are: in the folder itself, or where `materialize` puts them."""
    if any((folder / part).is_dir() for part in _FILES_OF_ITEMS):
        return folder
    try:
        return get_benchmark(name).files_beside(folder)
    except SkillOptError:
        return None


def _loading(adapter: EnvAdapter, flat: Mapping[str, Any]) -> Iterator[Finding]:
    stops: list[Finding] = []
    try:
        adapter.setup(flat)
    except SkillOptError as error:
        stops = list(as_findings("data", error, "change the data, or the settings that name them"))
    loader = adapter.get_dataloader()
    if not isinstance(loader, SplitDataLoader):
        yield from stops or [Finding("ok", "data", "data: drawn by the environment")]
        return
    try:
        sizes = {split: len(loader.items(split)) for split in SPLIT_NAMES}
    except DataError:
        yield from stops
        return
    yield Finding("ok", "data", "data: " + ", ".join(f"{split} {size} items" for split, size in sizes.items()))
    told = {stop.what for stop in stops}
    yield from stops
    yield from (finding for finding in _broken_items(adapter, loader) if finding.what not in told)
    for notice in dict.fromkeys(loader.notices):
        yield Finding("warn", "data", f"data: {notice}", "look at the data")


def _broken_items(adapter: EnvAdapter, loader: SplitDataLoader) -> Iterator[Finding]:
    """Every item that could not be done or graded, not only the first."""
    if not isinstance(adapter, BenchmarkEnv):
        return
    broken = []
    for split in SPLIT_NAMES:
        for item in loader.items(split):
            try:
                adapter.check(item)
            except SkillOptError as error:
                broken.append(f"{split}: {error}")
    for text in broken[:_NAMED]:
        yield Finding("fail", "items", f"items: {text}", "correct the item, or leave it out")
    if len(broken) > _NAMED:
        yield Finding(
            "fail", "items", f"items: {len(broken) - _NAMED} more like these", "correct them, or leave them out"
        )


def _checksums(folder: Path) -> Iterator[Finding]:
    """Whether the files are those that the folder's manifest was written with."""
    try:
        about = read_json(folder / MANIFEST) if (folder / MANIFEST).is_file() else {}
    except SkillOptError as error:
        yield from as_findings("manifest", error, f"make {folder} again")
        return
    files = about.get("files") if isinstance(about, dict) else None
    if not isinstance(files, dict):
        return
    changed = [name for name, digest in files.items() if not _is_as_written(folder / str(name), digest)]
    if not changed:
        revision = about.get("source_revision")
        of = f", from revision {revision}" if revision else ""
        yield Finding("ok", "manifest", f"manifest: {len(files)} files as they were made{of}")
        return
    shown = ", ".join(changed[:_NAMED]) + (", ..." if len(changed) > _NAMED else "")
    yield Finding("warn", "manifest", f"manifest: changed since they were made: {shown}", "make them again, or go on")


def _is_as_written(path: Path, digest: object) -> bool:
    return path.is_file() and sha256_of(path) == digest

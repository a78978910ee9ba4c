"""A night's harvest: which sources a configuration names, what of them is new, and the two steps of the cursor."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from skillopt_sleep import paths
from skillopt_sleep.config import SleepConfig
from skillopt_sleep.errors import UsageProblem
from skillopt_sleep.harvest.claude import CLAUDE
from skillopt_sleep.harvest.codex import CODEX
from skillopt_sleep.harvest.common import Scope
from skillopt_sleep.harvest.gather import gather, harvest_once, since_epoch
from skillopt_sleep.harvest.index import FILE, Index, Receipt
from skillopt_sleep.harvest.reading import Gathered, Source, Wanted
from skillopt_sleep.nearest import suggestion
from skillopt_sleep.types import SessionDigest

AUTO = "auto"
_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class _Known:
    """A source, and where a configuration says that its transcripts are."""

    source: Source
    location: Callable[[SleepConfig], Path]


_SOURCES = {
    known.source.name: known
    for known in (
        _Known(CLAUDE, lambda config: config.transcripts_dir),
        _Known(CODEX, lambda config: paths.expand(str(config.get("codex_home")))),
    )
}


@dataclass(frozen=True, slots=True)
class Harvest:
    """The sessions of a night, newest first, with the receipt for `commit` and what there is to tell.

    `skipped` counts sessions that were left out by reason, `backlog` those that wait for the next night.
    """

    digests: list[SessionDigest]
    receipt: Receipt
    notes: list[str] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)
    by_source: dict[str, int] = field(default_factory=dict)
    backlog: int = 0
    files_read: int = 0
    bytes_read: int = 0


def harvest(
    config: SleepConfig, *, since_iso: str | None = None, limit: int | None = None, now: float | None = None
) -> Harvest:
    """The sessions that this project's nights have not worked with yet; only what is new of the files is read.

    At first, sessions of the last `lookback_hours` count; from then on, every session since. `since_iso` says it
    instead (without an offset: local time). `limit` is the most sessions (None: as configured, 0: all); what is above
    it comes another night. Nothing counts as processed before `commit(harvest.receipt)`.

    Raises UsageProblem, NightBusy or StateBroken.
    """
    at = time.time() if now is None else now
    where = locations(config)
    consumer = str(config.project)
    path = index_path(config)
    with Index.open(path) as index:
        windows = {source.name: _window(config, index, source.name, consumer, since_iso, at) for source, _ in where}
        wanted = Wanted(
            scope=_scope(config),
            invoked=consumer,
            since=windows,
            limit=config.session_limit if limit is None else limit,
            consumer=consumer,
            overrides=config.prompts_path,
        )
        found = gather(index, where, wanted)
        notices = list(index.notices)
    receipt = Receipt(consumer, str(path), found.taken, windows, at)
    return _harvest(found, receipt, notices + _missing(where))


def commit(receipt: Receipt) -> None:
    """Move the cursor past what a harvest handed out, when a night has really worked with it; twice does no harm."""
    with Index.open(Path(receipt.index)) as index:
        index.commit(receipt)


def hold_window(receipt: Receipt) -> None:
    """Remember since when sessions count, and nothing else, so that nights that fail do not let old ones slip out."""
    with Index.open(Path(receipt.index)) as index:
        index.commit(receipt, only_window=True)


def harvest_for_config(
    config: SleepConfig,
    *,
    since_iso: str | None = None,
    limit: int = 0,
    on_note: Callable[[str], None] | None = None,
) -> list[SessionDigest]:
    """All sessions that a configuration names, newest first, whatever earlier nights took; nothing is remembered.

    `since_iso` leaves out those that ended before it, `limit` is the most (0: all), `on_note` is told what was left
    out. Raises UsageProblem for an unknown source.
    """
    return harvest_once(
        locations(config),
        scope=_scope(config),
        invoked=str(config.project),
        since_iso=since_iso,
        limit=limit,
        on_note=on_note,
    )


def locations(config: SleepConfig) -> list[tuple[Source, Path]]:
    """The sources of a configuration with their locations; `auto` takes every known source that is there."""
    name = str(config.get("transcript_source"))
    if name == AUTO:
        found = [(known.source, known.location(config)) for known in _SOURCES.values()]
        return [(source, location) for source, location in found if location.is_dir()] or found
    if name not in _SOURCES:
        known_names = ", ".join([*_SOURCES, AUTO])
        raise UsageProblem(
            f"transcript_source is {name!r}, which cannot be read; known: {known_names}{suggestion(name, _SOURCES)}."
        )
    known = _SOURCES[name]
    return [(known.source, known.location(config))]


def index_path(config: SleepConfig) -> Path:
    """The file that remembers what was read and what was worked with."""
    return config.state_dir / FILE


def _scope(config: SleepConfig) -> Scope:
    projects = config.get("projects")
    return projects if isinstance(projects, str) else list(projects)


def _window(config: SleepConfig, index: Index, source: str, consumer: str, since_iso: str | None, now: float) -> float:
    if since_iso:
        return since_epoch(since_iso)
    hours = config.get("lookback_hours")
    lookback = now - hours * _HOUR if hours is not None and hours > 0 else 0.0
    held = index.window(consumer, source)
    return lookback if held is None else min(held, lookback)


def _missing(where: list[tuple[Source, Path]]) -> list[str]:
    return [
        f"{location}: no such folder, so no {source.name} sessions."
        for source, location in where
        if not location.is_dir()
    ]


def _harvest(found: Gathered, receipt: Receipt, notices: list[str]) -> Harvest:
    return Harvest(
        digests=found.digests,
        receipt=receipt,
        notes=notices + found.notes(),
        skipped=dict(found.skipped),
        by_source=dict(found.by_source),
        backlog=found.backlog,
        files_read=found.files_read,
        bytes_read=found.bytes_read,
    )

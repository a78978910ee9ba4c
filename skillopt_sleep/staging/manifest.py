"""`manifest.json`: what a night proposes, pinned to the exact bytes and places that it was made from.

Version 2 is written, versions 1 and 2 are read, anything else is refused. A manifest is signed; one that is not (or
that was changed since) can be looked at and compared, but is not adopted unless a person says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from skillopt_sleep.errors import StagingError
from skillopt_sleep.staging import disk
from skillopt_sleep.staging.names import proposal_filename
from skillopt_sleep.staging.problems import InvalidStaging, NoStaging
from skillopt_sleep.staging.signing import MAC, Seal

SCHEMA = "skillopt-sleep-staging"
VERSION = 2
FILE = "manifest.json"
SKILL: Literal["skill"] = "skill"
MEMORY: Literal["memory"] = "memory"
MANAGED_FILES = {SKILL: "proposed_SKILL.md", MEMORY: "proposed_CLAUDE.md"}
Kind = Literal["managed", "named"]
_HASH = re.compile(r"[0-9a-f]{64}\Z")


@dataclass(frozen=True, slots=True)
class Row:
    """One proposed document. `kind` managed: `name` is skill or memory; named: the skill's name.

    `sha256` pins the proposal, `live_sha256` the live bytes it was made from ("": there was no file), `live_realpath`
    the file that the live path led to. Version 1 rows have no pins.
    """

    kind: Kind
    name: str
    proposed_file: str
    live_path: str
    sha256: str = ""
    live_sha256: str | None = None
    live_realpath: str = ""

    @property
    def key(self) -> str:
        """Unique in a night: `legacy/skill`, `legacy/memory` or `skills/<name>`."""
        return f"{'legacy' if self.kind == 'managed' else 'skills'}/{self.name}"

    @property
    def words(self) -> str:
        """The row in a message."""
        return f"the managed {self.name}" if self.kind == "managed" else f"skill {self.name!r}"

    @property
    def pinned(self) -> bool:
        """True when the row says which bytes it was made from."""
        return bool(self.sha256) and self.live_sha256 is not None and bool(self.live_realpath)

    def to_dict(self) -> dict[str, str]:
        """The row as the manifest holds it."""
        pins = {"sha256": self.sha256, "live_sha256": self.live_sha256 or "", "live_realpath": self.live_realpath}
        if self.kind == "managed":
            return {"proposed_file": self.proposed_file, "live_path": self.live_path, **pins}
        named = {"skill_name": self.name, "proposed_file": self.proposed_file, "live_skill_path": self.live_path}
        return {**named, **pins}


@dataclass(frozen=True, slots=True)
class Manifest:
    """A night's manifest. `signed`: it is exactly what was written here.

    `held` are reasons why a person has to look before anything adopts the night; `added` the new rules by row key;
    `rejected_before` those of them that were taken back once, with the time (UTC epoch seconds).
    """

    night: str
    rows: tuple[Row, ...] = ()
    accepted: bool = False
    created: float = 0.0
    live_skill_path: str = ""
    live_memory_path: str = ""
    skill_roots: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    added: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rejected_before: Mapping[str, float] = field(default_factory=dict)
    version: int = VERSION
    signed: bool = False

    @property
    def managed(self) -> tuple[Row, ...]:
        """The rows of the managed pair."""
        return tuple(row for row in self.rows if row.kind == "managed")

    @property
    def named(self) -> tuple[Row, ...]:
        """The per-skill rows."""
        return tuple(row for row in self.rows if row.kind == "named")

    def to_dict(self) -> dict[str, Any]:
        """The unsigned document. `has_skill` and `has_memory` stay false, so that version 0.2.0 adopts nothing."""
        names = {row.name for row in self.managed}
        value: dict[str, Any] = {
            "schema": SCHEMA,
            "schema_version": VERSION,
            "live_skill_path": self.live_skill_path,
            "live_memory_path": self.live_memory_path,
            "has_skill": False,
            "has_memory": False,
            "has_managed_skill": SKILL in names,
            "has_managed_memory": MEMORY in names,
            "accepted": self.accepted,
            "night": self.night,
            "created": self.created,
            "held": list(self.held),
            "added": {key: list(lines) for key, lines in self.added.items()},
            "rejected_before": dict(self.rejected_before),
        }
        if self.named:
            value |= {"skills": [row.to_dict() for row in self.named], "skill_roots": list(self.skill_roots)}
        if self.managed:
            value["legacy"] = {row.name: row.to_dict() for row in self.managed}
        return value


def purpose(night: Path) -> str:
    """What a manifest is signed for: this night of this project, and not a copy of it somewhere else."""
    return f"manifest:{night}"


def read_manifest(night: Path, seal: Seal) -> Manifest:
    """The manifest of a night folder. Raises NoStaging when there is none, InvalidStaging when it cannot be read."""
    path = night / FILE
    seen = disk.look(path)
    if seen is None:
        raise NoStaging(f"{night} holds no staged proposal ({FILE} is missing); run a night first.")
    try:
        value = disk.parse_json(seen.data)
    except ValueError as error:
        raise InvalidStaging(f"{path} is not valid JSON ({error}); run the night again.") from error
    if not isinstance(value, dict):
        raise InvalidStaging(f"{path} holds no JSON object; run the night again.")
    version = _version(value, path)
    signed = seal.holds(value, purpose=purpose(night))
    if MAC in value and not signed:
        raise InvalidStaging(
            f"{path} was changed since it was written, was written by another installation or user, or its project was "
            "moved or copied (its signature does not fit). Nothing was changed; run the night again."
        )
    try:
        return _parse(value, night, version, signed)
    except (TypeError, KeyError, AttributeError, StagingError) as error:
        raise InvalidStaging(
            f"{path} is not a manifest of version {version} ({error}); run the night again."
        ) from error


def _version(value: Mapping[str, Any], path: Path) -> int:
    if "schema" not in value and "schema_version" not in value:
        return 1
    version = value.get("schema_version")
    if value.get("schema") == SCHEMA and type(version) is int and version == VERSION:
        return VERSION
    raise InvalidStaging(
        f"{path} has the schema {value.get('schema')!r} version {version!r}, expected {SCHEMA!r} version {VERSION}. "
        "It was written by another version of skillopt-sleep: adopt it with that one, or run the night again."
    )


def _parse(value: Mapping[str, Any], night: Path, version: int, signed: bool) -> Manifest:
    rows = [_managed_row(name, row) for name, row in _mapping(value.get("legacy", {})).items()]
    if version == 1 and not rows:
        rows = _first_version_rows(value, night)
    rows += [_named_row(row) for row in value.get("skills", [])]
    return Manifest(
        night=night.name,
        rows=tuple(rows),
        accepted=value.get("accepted") is True,
        created=disk.number(value.get("created", 0.0)),
        live_skill_path=_text(value.get("live_skill_path", "")),
        live_memory_path=_text(value.get("live_memory_path", "")),
        skill_roots=tuple(_text(root) for root in value.get("skill_roots", [])),
        held=tuple(_text(reason) for reason in value.get("held", [])),
        added={key: tuple(_text(line) for line in lines) for key, lines in _mapping(value.get("added", {})).items()},
        rejected_before={rule: disk.number(at) for rule, at in _mapping(value.get("rejected_before", {})).items()},
        version=version,
        signed=signed,
    )


def _managed_row(name: str, value: object) -> Row:
    row = _mapping(value)
    if name not in MANAGED_FILES or row.get("proposed_file") != MANAGED_FILES[name]:
        raise InvalidStaging(f"the managed row {name!r} does not name its own file")
    return Row("managed", name, MANAGED_FILES[name], _text(row["live_path"]), *_pins(row))


def _named_row(value: object) -> Row:
    row = _mapping(value)
    name = _text(row["skill_name"])
    if row.get("proposed_file") != proposal_filename(name):
        raise InvalidStaging(f"the row of skill {name!r} does not name its own file")
    return Row("named", name, proposal_filename(name), _text(row["live_skill_path"]), *_pins(row))


def _pins(row: Mapping[str, Any]) -> tuple[str, str | None, str]:
    staged, live = row.get("sha256", ""), row.get("live_sha256")
    for pin in (staged, live):
        if pin and not (isinstance(pin, str) and _HASH.match(pin)):
            raise InvalidStaging(f"{pin!r} is not a SHA-256")
    return staged, live, _text(row.get("live_realpath", ""))


def _first_version_rows(value: Mapping[str, Any], night: Path) -> list[Row]:
    rows = []
    for name, flag, path in ((SKILL, "has_skill", "live_skill_path"), (MEMORY, "has_memory", "live_memory_path")):
        if value.get(flag) is True and disk.look(night / MANAGED_FILES[name]) is not None:
            rows.append(Row("managed", name, MANAGED_FILES[name], _text(value[path])))
    return rows


def _mapping(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"expected an object, got {type(value).__name__}")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, got {type(value).__name__}")
    return value

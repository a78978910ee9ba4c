"""From proposed texts to pinned rows: every check that staging makes, before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from skillopt_sleep.errors import StagingError
from skillopt_sleep.staging import disk
from skillopt_sleep.staging.manifest import MANAGED_FILES, MEMORY, SKILL, Row
from skillopt_sleep.staging.names import (
    SKILL_FILE,
    check_live_path,
    check_name,
    check_skill_path,
    fold,
    proposal_filename,
)
from skillopt_sleep.staging.resolve import plugin_of
from skillopt_sleep.types import SkillProposal


@dataclass(frozen=True, slots=True)
class Draft:
    """A proposed document. The pins are those of the baseline that the night read (None or "": take today's)."""

    kind: str
    name: str
    text: object
    live_path: object
    live_sha256: str | None = None
    live_realpath: str = ""


@dataclass(frozen=True, slots=True)
class Staged:
    """A checked row with the bytes of its proposal and of the live document ("" when there is none)."""

    row: Row
    proposed: bytes
    live: bytes

    @property
    def changed(self) -> bool:
        """False when the proposal is what is live already, or an empty text for a file that does not exist."""
        return self.proposed != self.live

    @property
    def added(self) -> tuple[str, ...]:
        """The rules (lines that start with `- `) of the proposal that the live document does not have."""
        before = set(self.live.decode("utf-8", "replace").splitlines())
        lines = self.proposed.decode("utf-8").splitlines()
        return tuple(dict.fromkeys(line for line in lines if line.lstrip().startswith("- ") and line not in before))


def stage_row(draft: Draft) -> Staged:
    """Check one draft and pin it. Raises StagingError naming the row, its file and what to do."""
    managed = draft.kind == "managed"
    if not managed:
        check_name(draft.name)
    words = f"The managed {draft.name}" if managed else f"Skill {draft.name!r}"
    proposed = _encoded(draft, words)
    live = check_live_path(draft.live_path, words)
    target = disk.real(live)
    _check_target(draft, live, target, words)
    seen = disk.look(target)
    found = disk.hash_of(seen)
    expected = found if draft.live_sha256 is None else draft.live_sha256
    if found != expected or (draft.live_realpath and draft.live_realpath != str(target)):
        raise StagingError(
            f"{words}: {live} changed during consolidation, so the proposal was made from an older text. Nothing was "
            "staged and the file was left as it is; run the night again."
        )
    if seen is not None:
        _decoded(seen.data, target, words)
    file = MANAGED_FILES[draft.name] if managed else proposal_filename(draft.name)
    kept = live if managed else target
    row = Row("managed" if managed else "named", draft.name, file, str(kept), disk.digest(proposed), found, str(target))
    return Staged(row, proposed, seen.data if seen else b"")


def stage_rows(drafts: Iterable[Draft]) -> list[Staged]:
    """Check all drafts, also against each other: names, files and targets are each other's only once."""
    staged = [stage_row(draft) for draft in drafts]
    _check_unique([one.row for one in staged])
    return staged


def drafts_of(proposals: Iterable[SkillProposal]) -> list[Draft]:
    """The drafts of per-skill proposals."""
    return [
        Draft("named", one.skill_name, one.proposed_skill, one.live_skill_path, one.live_sha256, one.live_realpath)
        for one in proposals
    ]


def skill_proposal_rows(proposals: Iterable[SkillProposal]) -> list[dict[str, str]]:
    """The manifest rows of per-skill proposals, fully checked; nothing is written. Raises StagingError."""
    return [one.row.to_dict() for one in stage_rows(drafts_of(proposals))]


def target_problem(kind: str, name: str, live_path: str | Path) -> str:
    """Why nothing could ever be staged for a live document; "" when all is well. Ask before a night spends anything."""
    try:
        stage_row(Draft(kind, name, "- a rule\n", live_path))
    except StagingError as error:
        return str(error)
    return ""


def _encoded(draft: Draft, words: str) -> bytes:
    if not isinstance(draft.text, str):
        raise StagingError(f"{words}: the proposal is {type(draft.text).__name__}, expected text.")
    if not draft.text.strip() and (draft.kind, draft.name) != ("managed", MEMORY):
        raise StagingError(f"{words}: the proposal is blank and would wipe the document.")
    try:
        return draft.text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise StagingError(
            f"{words}: the proposal holds half a character at {error.start}; it cannot be UTF-8."
        ) from None


def _decoded(data: bytes, path: Path, words: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise StagingError(f"{words}: byte {error.start} of {path} is not UTF-8; save the file as UTF-8.") from None


def _check_target(draft: Draft, live: Path, target: Path, words: str) -> None:
    if plugin_of(target) or plugin_of(live):
        raise StagingError(f"{words}: {target} lies in a plugin's cache, where the next upgrade would drop the change.")
    if draft.kind != "managed":
        check_skill_path(target, draft.name, words)
    elif draft.name == SKILL and target.name != SKILL_FILE:
        raise StagingError(
            f"{words}: {live} leads to {target}, which is not called {SKILL_FILE}. A link is never replaced by a file: "
            "set target_skill_path to a real SKILL.md."
        )
    elif draft.name == MEMORY and target.suffix.lower() != ".md":
        raise StagingError(f"{words}: {live} leads to {target}, which is not a .md file.")


def _check_unique(rows: Sequence[Row]) -> None:
    for what, of in (("name", _name), ("staged file", _file), ("live file", _target)):
        seen: dict[str, Row] = {}
        for row in rows:
            other = seen.setdefault(fold(of(row)), row)
            if other is not row:
                raise StagingError(
                    f"{row.words} and {other.words} have the same {what} ({of(row)!r}) on some systems; keep one."
                )


def _name(row: Row) -> str:
    return row.key


def _file(row: Row) -> str:
    return row.proposed_file


def _target(row: Row) -> str:
    return row.live_realpath

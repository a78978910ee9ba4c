"""Writing a night's proposals for review: all checks first, then the files, the manifest last.

A night without a manifest proposes nothing, so a kill on the way leaves no half proposal. Documents that would not
change are not staged.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from skillopt_sleep import paths
from skillopt_sleep.config import SleepConfig
from skillopt_sleep.errors import StagingError, StagingRecoveryError
from skillopt_sleep.redact import redact_secrets
from skillopt_sleep.show import json_safe
from skillopt_sleep.staging import disk, nights
from skillopt_sleep.staging.desk import Desk, desk_for
from skillopt_sleep.staging.diff import unified
from skillopt_sleep.staging.manifest import FILE, MEMORY, SKILL, Manifest, purpose
from skillopt_sleep.staging.rejected import rejected_rules, rule_key
from skillopt_sleep.staging.rows import Draft, Staged, drafts_of, stage_rows
from skillopt_sleep.types import SkillProposal

DIFF_FILE = "proposed.diff"


@dataclass(frozen=True, slots=True)
class _Batch:
    """Everything that one night stages. `live`: the paths of the managed skill and of the memory."""

    staged: Sequence[Staged]
    report: Mapping[str, Any]
    report_md: str
    live: tuple[str, str]
    roots: tuple[str, ...]
    held: Sequence[str]

    def manifest(self, night: Path) -> Manifest:
        """The manifest, as if none of its rules had been taken back before."""
        return Manifest(
            night=night.name,
            rows=tuple(one.row for one in self.staged),
            accepted=self.report.get("accepted") is True,
            created=time.time(),
            live_skill_path=self.live[0],
            live_memory_path=self.live[1],
            skill_roots=self.roots,
            held=(*self.held, *_secrets(self.staged)),
            added={one.row.key: one.added for one in self.staged},
        )

    def files(self) -> dict[str, bytes]:
        """Name and bytes of every file of a night but its manifest, in the order of writing."""
        files = {one.row.proposed_file: one.proposed for one in self.staged}
        if self.staged:
            files[DIFF_FILE] = changes_text(self.staged).encode("utf-8", "replace")
        files["report.json"] = _json(self.report)
        files["report.md"] = str(redact_secrets(self.report_md)).encode("utf-8", "replace")
        return files


def write_staging(  # noqa: PLR0913 - a published signature
    project: str | Path,
    *,
    report: object,
    proposed_skill: str | None,
    proposed_memory: str | None,
    live_skill_path: str | Path,
    live_memory_path: str | Path,
    live_skill_sha256: str | None = None,
    live_memory_sha256: str | None = None,
    live_skill_realpath: str = "",
    live_memory_realpath: str = "",
    report_md: str,
    out_dir: str | Path = "",
    skill_proposals: Iterable[SkillProposal] = (),
    skill_roots: Iterable[str | Path] = (),
    held: Sequence[str] = (),
    cfg: SleepConfig | None = None,
) -> str:
    """Stage one night and return its folder.

    `report` is a SleepReport or a mapping. A proposed text of None means no proposal. The hashes and real paths pin
    the baselines that the night read ("" hash: the file was absent; None: as it is now). `out_dir` is a reserved night
    (see `new_staging_dir`); empty: a new one. `held` are reasons why a person has to look before anything adopts this
    night. Raises StagingError before any write when a row is not sound or a live document changed meanwhile; a failed
    write leaves no trace of the batch.
    """
    managed = [
        Draft("managed", SKILL, proposed_skill, live_skill_path, live_skill_sha256, live_skill_realpath),
        Draft("managed", MEMORY, proposed_memory, live_memory_path, live_memory_sha256, live_memory_realpath),
    ]
    drafts = [draft for draft in managed if draft.text is not None] + drafts_of(skill_proposals)
    staged = [one for one in stage_rows(drafts) if one.changed]
    roots = _roots(staged, skill_roots)
    live = (str(live_skill_path), str(live_memory_path))
    return str(_publish(_Batch(staged, _document(report), report_md, live, roots, held), project, out_dir, cfg))


def write_skill_proposals(out: str | Path, proposals: Iterable[SkillProposal]) -> list[dict[str, str]]:
    """Write the proposals of named skills into a night and return their manifest rows.

    Everything is checked before the first write; texts that are live already are left out. Raises StagingError.
    """
    staged = [one for one in stage_rows(drafts_of(proposals)) if one.changed]
    folder = paths.private_folder(paths.expand(out))
    _write_batch(folder, {one.row.proposed_file: one.proposed for one in staged}, keep_folder=True)
    return [one.row.to_dict() for one in staged]


def changes_text(staged: Sequence[Staged]) -> str:
    """The unified diff of a whole batch."""
    parts = []
    for one in staged:
        before, after = one.live.decode("utf-8"), one.proposed.decode("utf-8")
        parts.append(unified(before, after, label=one.row.live_realpath.lstrip("/"), absent=not one.row.live_sha256))
    return "".join(parts)


def _publish(batch: _Batch, project: str | Path, out_dir: str | Path, cfg: SleepConfig | None) -> Path:
    """Write the batch into a night, whose folder it returns."""
    home = nights.project_of(nights.root_of(project) / "night")
    desk = desk_for(home, cfg, create=True)
    night = nights.check_night(out_dir) if out_dir else nights.reserve(project)
    if nights.project_of(night) != home:
        raise StagingError(f"{night} belongs to another project than {home}.")
    manifest = _with_rejected(batch.manifest(night), home, desk)
    files = batch.files()
    files[FILE] = _json(desk.seal.sign(manifest.to_dict(), purpose=purpose(night)))  # the last to be written
    _write_batch(night, files, keep_folder=bool(out_dir))
    nights.point_to(night)
    return night


def _document(report: object) -> dict[str, Any]:
    value = report if isinstance(report, Mapping) else report.to_dict()  # type: ignore[attr-defined]
    return dict(json_safe(redact_secrets(dict(value))))


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8", "replace")


def _roots(staged: Sequence[Staged], given: Iterable[str | Path]) -> tuple[str, ...]:
    """The folders of skills, each once. Raises StagingError for a named skill in none of them."""
    named = [one.row for one in staged if one.row.kind == "named"]
    roots = [disk.real(root) for root in given] or [Path(row.live_realpath).parents[1] for row in named]
    for row in named:
        if not any(disk.inside(Path(row.live_realpath), root) for root in roots):
            raise StagingError(f"{row.words}: {row.live_realpath} lies in none of the given skill_roots.")
    return tuple(dict.fromkeys(map(str, roots)))


def _secrets(staged: Sequence[Staged]) -> list[str]:
    """A reason to hold the night for each document into which a secret would be written."""
    return [
        f"{one.row.words}: a new rule holds what looks like a secret"
        for one in staged
        if any(redact_secrets(line) != line for line in one.added)
    ]


def _with_rejected(manifest: Manifest, project: Path, desk: Desk) -> Manifest:
    """The manifest with the rules that were taken back once, and held when there are any."""
    known = rejected_rules(project, seal=desk.seal)
    lines = [line for added in manifest.added.values() for line in added]
    found = {line: known[rule_key(line)] for line in lines if rule_key(line) in known}
    if not found:
        return manifest
    reasons = [
        f"rejected before on {time.strftime('%Y-%m-%d', time.gmtime(at))}: {str(redact_secrets(line)).strip()}"
        for line, at in found.items()
    ]
    return replace(manifest, rejected_before=found, held=(*manifest.held, *reasons))


def _write_batch(folder: Path, files: Mapping[str, bytes], *, keep_folder: bool) -> None:
    """Write all files or none of them; what a killed attempt left is written over, a published night never.

    Raises StagingError; StagingRecoveryError when putting things back failed too.
    """
    if os.path.lexists(folder / FILE):
        raise StagingError(f"{folder} is published already; a night is staged once. Stage into a new night.")
    before = {name: disk.look(folder / name) for name in files}
    try:
        for name, data in files.items():
            paths.write_private(folder / name, data)
    except BaseException as error:
        _put_back(folder, before, error, keep_folder=keep_folder)
        if isinstance(error, OSError):
            raise StagingError(f"{folder}: the proposal could not be written ({error}); nothing was staged.") from error
        raise


def _put_back(
    folder: Path, before: Mapping[str, disk.Seen | None], primary: BaseException, *, keep_folder: bool
) -> None:
    problems: list[OSError] = []
    for name, seen in before.items():
        try:
            if seen is None:
                (folder / name).unlink(missing_ok=True)
            else:
                paths.write_private(folder / name, seen.data)
        except OSError as error:
            problems.append(error)
    if not keep_folder:
        with contextlib.suppress(OSError):  # somebody put a file there: it stays
            folder.rmdir()
    if problems:
        raise StagingRecoveryError(
            f"{folder}: staging failed and what was written could not be removed ({problems[0]}). Remove the folder.",
            primary=primary,
            recovery_errors=problems,
        )

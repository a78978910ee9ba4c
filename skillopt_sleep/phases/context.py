"""What the phases of a night share: its settings, its backend, and what has been found so far."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from skillopt_sleep import paths
from skillopt_sleep.backends import HandoffBackend, HandoffFolder, handoff_of
from skillopt_sleep.backends.base import Backend
from skillopt_sleep.config import SleepConfig
from skillopt_sleep.errors import StagingError
from skillopt_sleep.evidence import EvidenceLog
from skillopt_sleep.harvest import Receipt
from skillopt_sleep.learn import LearnTrace, ensure_skill_scaffold
from skillopt_sleep.phases.journal import Journal
from skillopt_sleep.show import terminal_line
from skillopt_sleep.staging import disk
from skillopt_sleep.state import SleepState
from skillopt_sleep.types import (
    ConsolidationResult,
    GroupConsolidation,
    SessionDigest,
    SkillProposal,
    SleepReport,
    TaskRecord,
)

Clock = Callable[[], datetime]
_DESCRIPTION = "What SkillOpt-Sleep has learned from your own sessions about how you want recurring work done."


@dataclass(frozen=True, slots=True)
class LiveDocument:
    """A document as the night found it: its exact text ("" when there is no file), the hash of its bytes ("": no file)
    and the file that its path leads to.
    """

    path: str
    real: str
    text: str
    sha256: str


@dataclass(slots=True)
class Night:
    """One night. `start` is the skill that learning begins with: the live one, or a scaffold where there is none.

    `pins` keep sessions and tasks between the runs of one night. `over`: there is nothing more to learn tonight.
    `stopped`: the cap that ended it. `outdated`: it was decided with other settings, and is only carried out now.
    `assigned`: no person wrote the splits of the given tasks. `moved` holds the new splits of tasks that change sides
    tonight, by id, and `helpers` the ids of validation tasks of earlier nights. `practise_anyway`: go on where nothing
    can be accepted.
    `workshop` makes the checkouts in which coding tasks are done; None: every task is answered in text.
    """

    config: SleepConfig
    state: SleepState
    backend: Any
    clock: Clock
    report: SleepReport
    skill: LiveDocument
    memory: LiveDocument
    start: str
    dry_run: bool = False
    seed: list[TaskRecord] | None = None
    journal: Journal | None = None
    pins: HandoffFolder | None = None
    log: EvidenceLog | None = None
    evolve_skill: bool = True
    evolve_memory: bool = True
    digests: list[SessionDigest] = field(default_factory=list)
    receipt: Receipt | None = None
    tasks: list[TaskRecord] = field(default_factory=list)
    result: ConsolidationResult | None = None
    trace: LearnTrace = field(default_factory=LearnTrace)
    groups: list[GroupConsolidation] = field(default_factory=list)
    proposals: list[SkillProposal] = field(default_factory=list)
    skill_roots: list[str] = field(default_factory=list)
    over: bool = False
    stopped: str = ""
    outdated: bool = False
    workshop: Any = None
    assigned: bool = False
    moved: dict[str, str] = field(default_factory=dict)
    helpers: list[str] = field(default_factory=list)
    practise_anyway: bool = False

    @property
    def project(self) -> str:
        """The project's absolute path."""
        return str(self.config.project)

    @property
    def replayed(self) -> list[TaskRecord]:
        """The tasks of tonight that have a result by now, with a score or with an error."""
        return [task for task in self.tasks if task.id in getattr(self.backend, "replayed", ())]

    def say(self, text: str) -> None:
        """Tell the person who watches, on stderr, when progress is wanted."""
        if self.config.get("progress"):
            sys.stderr.write(f"[sleep] {terminal_line(text)}\n")
            sys.stderr.flush()

    def note(self, text: str) -> None:
        """A line for the report."""
        self.report.notes.append(text)
        self.say(text)

    def record(self, stage: str, event: str, **data: Any) -> None:
        """A line for the evidence."""
        if self.log is not None:
            self.log.log(stage, event, **data)


def read_document(path: Path) -> LiveDocument:
    """A live document, byte for byte. Raises StagingError when it cannot be read or is not UTF-8."""
    target = disk.real(path)
    seen = disk.look(target)
    try:
        text = seen.data.decode("utf-8") if seen is not None else ""
    except UnicodeDecodeError as error:
        raise StagingError(f"{target}: byte {error.start} is not UTF-8; save the file as UTF-8.") from None
    return LiveDocument(str(path), str(target), text, disk.hash_of(seen))


def scaffolded(config: SleepConfig, skill: LiveDocument) -> str:
    """The skill that a night begins with."""
    return ensure_skill_scaffold(skill.text, name=config.managed_skill_path.parent.name, description=_DESCRIPTION)


def is_here(night: Night, task: TaskRecord) -> bool:
    """True for a task of this project, or of a folder in it; also for a given one and one of no project."""
    return night.seed is not None or within(night.config, task)


def within(config: SleepConfig, task: TaskRecord) -> bool:
    """True for a task of the project of `config`, or of a folder in it; also for one of no project."""
    here, there = config.project, paths.expand(task.project) if task.project else None
    return there is None or there == here or here in there.parents


def mocked(backend: Any) -> bool:
    """True when what mines and reflects is the mock backend."""
    return str(getattr(getattr(backend, "optimizer", backend), "name", "")) == "mock"


def parts_of(backend: Any) -> list[Any]:
    """The backends of all roles, each once."""
    return list(getattr(backend, "parts", (backend,)))


def handoff_in(backend: Any) -> HandoffBackend | None:
    """The handoff backend that answers any role, if one does."""
    return handoff_of(backend) if isinstance(backend, Backend) else None


def pins_of(config: SleepConfig, backend: Any, *, dry_run: bool) -> HandoffFolder | None:
    """Where sessions and tasks are pinned: in a handoff's folder, else beside the journal; nowhere on a dry run."""
    handoff = handoff_in(backend)
    if handoff is not None:
        return handoff.folder
    return None if dry_run else HandoffFolder(config.night_folder)

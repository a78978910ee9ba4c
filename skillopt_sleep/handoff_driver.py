"""One round of a handoff night: everything that can be done with the answers so far.

A round either finishes the night or leaves prompts to be answered, and then nothing has been scored, counted or staged.
Sessions and tasks are pinned by the first round, so that every round makes the same calls; answers act as a cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from skillopt_sleep import paths
from skillopt_sleep.backends import HandoffFolder
from skillopt_sleep.config import SleepConfig
from skillopt_sleep.errors import PendingCalls
from skillopt_sleep.night import run_sleep_cycle
from skillopt_sleep.types import CycleOutcome, TaskRecord


@dataclass(frozen=True, slots=True)
class Waiting:
    """Prompts that wait for an answer: how many, the file that shows them, the folder that the answers go to."""

    pending: int
    prompts: Path
    answers: Path


def run_round(
    config: SleepConfig,
    *,
    seed_tasks: Sequence[TaskRecord] | None = None,
    assigned: bool = False,
    dry_run: bool = False,
) -> CycleOutcome | Waiting:
    """The finished night, or what waits. Raises what `run_sleep_cycle` raises, PendingCalls excepted."""
    try:
        return run_sleep_cycle(config, seed_tasks=seed_tasks, assigned=assigned, dry_run=dry_run)
    except PendingCalls as waiting:
        folder = HandoffFolder(paths.handoff_folder(config.project))
        return Waiting(len(waiting.pending), folder.prompts_file, folder.answers)

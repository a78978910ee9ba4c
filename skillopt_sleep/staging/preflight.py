"""Asking before a night spends anything whether what it may propose could be adopted at all."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from skillopt_sleep.config import SleepConfig
from skillopt_sleep.staging import disk, nights
from skillopt_sleep.staging.allowed import allowed_targets
from skillopt_sleep.staging.manifest import MANAGED_FILES, MEMORY, SKILL, Row
from skillopt_sleep.staging.rows import target_problem


@dataclass(frozen=True, slots=True)
class TargetProblem:
    """A live document that could not be changed. `target` is skill or memory."""

    target: Literal["skill", "memory"]
    path: str
    message: str


def preflight(cfg: SleepConfig) -> list[TargetProblem]:
    """The documents of the managed pair that this configuration evolves but could never write, with the reason.

    A night leaves such a document alone and goes on with the other. Raises StagingError when the staging folder itself
    cannot be used.
    """
    nights.root_of(cfg.project)
    wanted: list[tuple[Literal["skill", "memory"], Path, bool]] = [
        (SKILL, cfg.managed_skill_path, cfg.evolve_skill),
        (MEMORY, cfg.memory_path, cfg.evolve_memory),
    ]
    found = []
    for name, path, evolves in wanted:
        message = _problem(cfg, name, path) if evolves else ""
        if message:
            found.append(TargetProblem(name, str(path), message))
    return found


def _problem(cfg: SleepConfig, name: str, path: Path) -> str:
    problem = target_problem("managed", name, path)
    if problem:
        return problem
    target = disk.real(path)
    row = Row("managed", name, MANAGED_FILES[name], str(path), live_realpath=str(target))
    problem = allowed_targets(cfg).problem(row)
    if problem:
        return problem
    seen = disk.look(target)
    if seen is not None and seen.links != 1:
        return f"{target} has {seen.links} names (hard links), and replacing it would part them; unlink the others."
    folder = next(parent for parent in target.parents if parent.exists())
    return "" if os.access(folder, os.W_OK) else f"{folder} cannot be written by this user."

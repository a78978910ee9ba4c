"""Which rows the command line adopts. Nothing is ever chosen for a person who did not say what they want."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from skillopt_sleep.config import SleepConfig
from skillopt_sleep.show import counted
from skillopt_sleep.staging.pending import pending_staged_skills, staged_skills
from skillopt_sleep.staging.problems import NoStagedSkills, SelectionRefused, SelectionRequired


@dataclass(frozen=True, slots=True)
class Selection:
    """What to adopt: the managed pair (legacy), or these named skills (maybe none)."""

    mode: Literal["legacy", "skills"]
    names: tuple[str, ...] = ()


def select(
    night: str | Path,
    *,
    skills: Sequence[str] = (),
    all_skills: bool = False,
    legacy: bool = False,
    cfg: SleepConfig | None = None,
) -> Selection:
    """Turn the flags of `adopt` into a selection.

    Without a flag the managed pair is meant, unless the night has rows of named skills: then a person has to say
    which. Raises SelectionRefused, NoStagedSkills or SelectionRequired.
    """
    if sum((bool(skills), all_skills, legacy)) > 1:
        raise SelectionRefused("--skill, --all-skills and --legacy exclude each other; give one of them.")
    names = [name.strip() for name in skills]
    if not all(names):
        raise SelectionRefused("--skill needs the name of a skill; it was blank.")
    if legacy:
        return Selection("legacy")
    rows = staged_skills(night, cfg=cfg)
    available = [(row["skill_name"], row["live_skill_path"]) for row in rows]
    if not rows and (names or all_skills):
        raise NoStagedSkills("This night has no proposals for named skills.")
    if all_skills:
        return Selection("skills", tuple(row["skill_name"] for row in pending_staged_skills(night, cfg=cfg)))
    known = {name for name, _ in available}
    if len(set(names)) != len(names) or not set(names) <= known:
        raise SelectionRefused(
            "Every --skill has to be the name of a staged skill, given once; nothing was adopted.", available=available
        )
    if names:
        return Selection("skills", tuple(names))
    if rows:
        raise SelectionRequired(
            f"This night has proposals for {counted(len(rows), 'named skill')}: say --skill NAME, --all-skills, or "
            "--legacy for the managed skill and memory.",
            available=available,
        )
    return Selection("legacy")

"""The skill document: reading it, its protected regions, and edits to it. Pure values, no files, no models."""

from __future__ import annotations

from skillopt.skill.document import Skill, shrink_ratio, skill_hash
from skillopt.skill.edits import (
    EditOutcome,
    EditRow,
    apply_edit,
    apply_edits,
    apply_patch,
    apply_patch_with_report,
)
from skillopt.skill.regions import Region

__all__ = [
    "EditOutcome",
    "EditRow",
    "Region",
    "Skill",
    "apply_edit",
    "apply_edits",
    "apply_patch",
    "apply_patch_with_report",
    "shrink_ratio",
    "skill_hash",
]

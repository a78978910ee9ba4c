"""Where adoption may write: the folders that today's configuration names, not those that a manifest claims."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from skillopt_sleep import paths
from skillopt_sleep.config import SleepConfig
from skillopt_sleep.staging import disk, resolve
from skillopt_sleep.staging.manifest import Row
from skillopt_sleep.staging.names import SKILL_FILE


@dataclass(frozen=True, slots=True)
class Allowed:
    """Places that adoption may write to, all resolved: skill roots, single files, for the managed pair the project."""

    project: Path
    roots: tuple[Path, ...] = ()
    files: tuple[Path, ...] = ()

    def problem(self, row: Row) -> str:
        """Why the target of a row must not be written; "" when it may be."""
        target = Path(row.live_realpath or row.live_path)
        if resolve.plugin_of(target):
            return (
                f"{target} lies in a plugin's cache, where the next upgrade overwrites it; copy the skill to a folder "
                "of your own first."
            )
        fits = target in self.files or any(disk.inside(target, root) for root in self.roots)
        if not fits and row.kind == "managed":
            fits = disk.inside(target, self.project)
        if fits:
            return ""
        if os.path.normpath(row.live_path) != str(target):
            return (
                f"{row.live_path} leads to {target}, outside the allowed folders. To write through the link, add "
                f"{target.parent.parent if target.name == SKILL_FILE else target.parent} to skill_roots (--skill-root)."
            )
        same = "give the --target-skill-path of that night again, or " if row.kind == "managed" else ""
        return f"{target} lies outside the allowed folders; {same}add its folder to skill_roots (--skill-root)."


def allowed_targets(cfg: SleepConfig) -> Allowed:
    """What a configuration allows: its skill roots (no plugin caches), its managed skill, its project's memory."""
    project = disk.real(cfg.project)
    roots = tuple(Path(root) for root in resolve.skill_search_roots(cfg) if not resolve.plugin_of(Path(root)))
    managed = paths.expand(cfg.managed_skill_path)
    # Resolved down to the folder of skills only: a link inside it is not what the configuration named.
    home = disk.real(managed.parent.parent)
    return Allowed(project, roots, (home / managed.parent.name / managed.name,))

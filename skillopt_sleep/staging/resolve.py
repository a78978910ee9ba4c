"""Finding the one file of a named skill. What is ambiguous is never guessed.

Plugins' skills are found too, under `plugin:skill`, but never offered for editing: an upgrade would drop the edit.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from skillopt_sleep import paths
from skillopt_sleep.config import SleepConfig
from skillopt_sleep.staging import disk
from skillopt_sleep.staging.names import SKILL_FILE, normalize_skill_name
from skillopt_sleep.types import SkillResolution

_PROJECT_ROOTS = (".agents/skills", ".claude/skills", ".cursor/skills", ".devin/skills")


def skill_search_roots(cfg: SleepConfig) -> list[str]:
    """Existing folders of skills in the order in which they are searched, links resolved, each once.

    The project's own, the Claude home's, the configured `skill_roots` (relative: under the project), then for each
    plugin in the Claude home's cache the skills of its newest version.
    """
    project = cfg.project
    home = str(cfg.get("claude_home") or "").strip()
    claude_home = paths.expand(home) if home else None
    candidates = [project / root for root in _PROJECT_ROOTS]
    if claude_home is not None:
        candidates.append(claude_home / "skills")
    for root in cfg.get("skill_roots") or ():
        named = Path(str(root)).expanduser()
        candidates.append(named if named.is_absolute() else project / named)
    if claude_home is not None:
        candidates += _plugin_roots(claude_home / "plugins" / "cache")
    return list(dict.fromkeys(str(disk.real(root)) for root in candidates if root.is_dir()))


def resolve_skill(name: object, roots: Iterable[str | Path]) -> SkillResolution:
    """The file of the skill `name` in `roots`.

    found: exactly one file of the person's own. missing: none. ambiguous: several different ones (`candidates`).
    rejected: not a usable name, or only a plugin's cache holds the skill (`candidates` shows where).
    """
    usable = normalize_skill_name(name)
    if not usable:
        return SkillResolution(str(name), "rejected", reason="it is not the name of a skill")
    plugin, _, bare = usable.rpartition(":")
    own: list[Path] = []
    cached: list[Path] = []
    for root in (disk.real(root) for root in roots):
        owner = plugin_of(root)
        if owner and plugin in ("", owner):
            cached += _candidate(root, bare)
        elif not owner and not plugin:
            own += _candidate(root, usable)
    return _resolution(usable, tuple(dict.fromkeys(map(str, own))), tuple(dict.fromkeys(map(str, cached))))


def plugin_of(path: Path) -> str:
    """The plugin in whose cache a path lies (`plugins/cache/<marketplace>/<plugin>/...`); "" for all others."""
    parts = path.parts
    for at in range(len(parts) - 3):
        if parts[at : at + 2] == ("plugins", "cache"):
            return parts[at + 3]
    return ""


def _resolution(name: str, own: tuple[str, ...], cached: tuple[str, ...]) -> SkillResolution:
    if len(own) == 1:
        return SkillResolution(name, "found", own[0], own)
    if own:
        return SkillResolution(name, "ambiguous", candidates=own, reason="several skills have this name")
    if cached:
        reason = (
            "only a plugin's cache holds it, where an upgrade would drop the edit; copy the skill to a folder of yours"
        )
        return SkillResolution(name, "rejected", candidates=cached, reason=reason)
    return SkillResolution(name, "missing", reason="no searched folder holds it")


def _candidate(root: Path, name: str) -> list[Path]:
    """The skill's file when it is a regular file that stays in its root after links are followed."""
    try:
        file = disk.real(root / name / SKILL_FILE)
        return [file] if file.is_file() and os.path.commonpath([str(file), str(root)]) == str(root) else []
    except (OSError, ValueError):  # another drive, a loop of links, a name that the system cannot ask for
        return []


def _plugin_roots(cache: Path) -> list[Path]:
    roots = []
    for marketplace in _subfolders(cache):
        for plugin in _subfolders(marketplace):
            versions = [
                folder for folder in _subfolders(plugin) if (folder / "skills").is_dir() and folder.name != "skills"
            ]
            newest = max(versions, key=lambda folder: version_key(folder.name), default=plugin)
            roots.append(newest / "skills")
    return roots


def _subfolders(folder: Path) -> list[Path]:
    try:
        return sorted(entry for entry in folder.iterdir() if entry.is_dir())
    except OSError:
        return []


def version_key(text: str) -> tuple[tuple[tuple[int, int, str], ...], str]:
    """Sort key of a version: numbers as numbers, a release after its pre-releases, then by text."""
    parts = [part for part in re.split(r"[._\-+]", text.strip().lower().removeprefix("v")) if part]
    # A text part sorts below the end of a version (1.0-beta < 1.0), a number above it (1.0 < 1.0.1).
    keyed = [(2, int(part), "") if part.isdecimal() else (0, 0, part) for part in parts]
    return (*keyed, (1, 0, "")), text

"""A person's files in a temporary folder: a home with skills, a project with a memory, and nights staged for them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skillopt_sleep import staging
from skillopt_sleep.config import SleepConfig, load_config
from skillopt_sleep.types import SkillProposal

SKILL = "---\nname: managed\n---\n# Managed\n\nOwn text.\r\nNo final newline"
MEMORY = "# Project\n\n- Keep it short.\n"
NEW_SKILL = SKILL + "\n- wrap the answer\n"
NEW_MEMORY = MEMORY + "- run the tests\n"


@dataclass
class World:
    base: Path
    project: Path = field(init=False)
    home: Path = field(init=False)
    cfg: SleepConfig = field(init=False)

    def __post_init__(self) -> None:
        base = Path(os.path.realpath(self.base))
        self.project, self.home = base / "project", base / "claude"
        self.project.mkdir(parents=True)
        (self.home / "skills").mkdir(parents=True)
        self.cfg = self.config()

    def config(self, **changes: Any) -> SleepConfig:
        settings = {
            "invoked_project": str(self.project),
            "claude_home": str(self.home),
            "state_dir": str(self.project.parent / "state"),
            "backend": "mock",
        }
        return load_config(**{**settings, **changes})

    @property
    def skill(self) -> Path:
        return self.home / "skills" / "skillopt-sleep-learned" / "SKILL.md"

    @property
    def memory(self) -> Path:
        return self.project / "CLAUDE.md"

    def named(self, name: str) -> Path:
        return self.home / "skills" / name / "SKILL.md"

    def write(self, path: Path, text: str, mode: int = 0o640) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        path.chmod(mode)
        return path

    def fill(self) -> World:
        self.write(self.skill, SKILL)
        self.write(self.memory, MEMORY, 0o644)
        return self

    def stage(self, skill: str | None = NEW_SKILL, memory: str | None = NEW_MEMORY, **changes: Any) -> Path:
        given: dict[str, Any] = {
            "report": {"accepted": True, "night": 1},
            "proposed_skill": skill,
            "proposed_memory": memory,
            "live_skill_path": self.skill,
            "live_memory_path": self.memory,
            "report_md": "# Night 1\n",
            "cfg": self.cfg,
        }
        return Path(staging.write_staging(self.project, **{**given, **changes}))

    def stage_named(self, *names: str, suffix: str = "\n- a new rule\n", **changes: Any) -> Path:
        proposals = []
        for name in names:
            if not self.named(name).exists():
                self.write(self.named(name), f"# {name}\n")
            text = self.named(name).read_text("utf-8") + suffix
            proposals.append(SkillProposal(name, text, str(self.named(name))))
        roots = staging.skill_search_roots(self.cfg)
        return self.stage(None, None, **{"skill_proposals": proposals, "skill_roots": roots, **changes})

    def snapshot(self) -> dict[str, tuple[bytes, int]]:
        """Bytes and mode of everything live, folders too."""
        found: dict[str, tuple[bytes, int]] = {}
        for root in (self.home, self.project):
            for path in sorted(root.rglob("*")):
                if ".skillopt-sleep" not in path.parts and ".git" not in path.parts:
                    data = path.read_bytes() if path.is_file() else b"<folder>"
                    found[str(path)] = (data, path.lstat().st_mode)
        return found

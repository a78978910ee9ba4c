"""What is installed with the package for those who have no clone of its repository: configurations and first skills.

A file that is there always wins; what is installed stands in for one that is not, and says so.
"""

from __future__ import annotations

import warnings
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
CONFIGS = PACKAGE / "templates" / "configs"
"""In a clone a link to its `configs/`, in an installation the files themselves."""

_ONLY_IN_THE_REPOSITORY = "quickstart"  # its data are


def find_config(path: Path) -> Path:
    """`path`, or the installed copy of `configs/NAME/FILE.yaml` (or `NAME/FILE.yaml`) when that is not there."""
    if path.exists() or path.is_absolute():
        return path
    name = path.parts[1:] if path.parts[:1] == ("configs",) else path.parts
    copy = CONFIGS.joinpath(*name)
    if len(name) != 2 or name[0] in ("..", _ONLY_IN_THE_REPOSITORY) or not copy.is_file():
        return path
    _say(f"{path} is not in this folder; the copy that is installed is used: {copy}")
    return copy


def find_skill(path: str) -> str:
    """`path`, or the installed copy of `skillopt/envs/NAME/skills/FILE.md` when that is not there."""
    parts = Path(path).parts
    here = PACKAGE.joinpath(*parts[1:])
    is_ours = parts[:2] == ("skillopt", "envs") and ".." not in parts and here.is_file()
    if not is_ours or Path(path).exists():
        return path
    _say(f"env.skill_init: {path} is not in this folder; the one that is installed is used: {here}")
    return str(here)


def _say(notice: str) -> None:
    warnings.warn(notice, UserWarning, stacklevel=3)

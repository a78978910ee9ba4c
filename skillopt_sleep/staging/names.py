"""Rules for the names of skills and the paths of live documents. Pure: nothing here looks at a disk.

A name becomes part of a file name, so it has to be one that every system can store. A path is refused for what is
written in it, before anything normalises it.
"""

from __future__ import annotations

import os
import re
import unicodedata
from pathlib import Path

from skillopt_sleep.errors import StagingError

SKILL_FILE = "SKILL.md"
_MAX_NAME_BYTES = 150
_FORBIDDEN = set(':*?"<>|')
_RESERVED = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])\s*(\.|$)", re.IGNORECASE)
_INVISIBLE = ("Cc", "Cf", "Zl", "Zp", "Cs")
_JOINERS = "\u200c\u200d"  # part of the spelling in several scripts, and of emoji
_DRIVE = re.compile(r"[A-Za-z]:")


def fold(text: str) -> str:
    """The form in which two spellings are equal when some file system takes them for the same name."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def has_control(text: str) -> bool:
    """True for control, line-separator and surrogate characters, and for invisible ones that no script needs."""
    return any(unicodedata.category(letter) in _INVISIBLE and letter not in _JOINERS for letter in text)


def normalize_skill_name(name: object) -> str:
    """`name` without blanks around it, or "" when it cannot name a skill.

    Refused: what is not text, nothing, `.` and `..`, a leading `~`, paths and drive letters, control characters. Case
    and punctuation are kept; `plugin:skill` is a name.
    """
    if not isinstance(name, str):
        return ""
    text = name.strip()
    if not text or text in (".", "..") or text.startswith("~") or _DRIVE.match(text):
        return ""
    return "" if has_control(text) or "/" in text or "\\" in text else text


def check_name(name: object) -> str:
    """`name` when it can be staged as it is. Raises StagingError naming the skill and the rule that it breaks."""
    problem = _name_problem(name)
    if problem:
        raise StagingError(f"The skill name {name!r} cannot be staged: {problem}. Rename the skill's folder.")
    return str(name)


def _name_problem(name: object) -> str:
    if not isinstance(name, str):
        return "it is not text"
    if not normalize_skill_name(name) and not _DRIVE.match(name):
        return "it is empty, a path, or holds control characters"
    if name != name.strip() or name.endswith("."):
        return "some systems drop a blank or a dot at the end of a name"
    if found := sorted(_FORBIDDEN.intersection(name)):
        return f"{found[0]} cannot stand in a file name everywhere"
    if _RESERVED.match(name):
        return "Windows reserves it for a device"
    if len(name.encode("utf-8")) > _MAX_NAME_BYTES:
        return f"it is longer than {_MAX_NAME_BYTES} bytes"
    return ""


def proposal_filename(skill_name: str) -> str:
    """The file of a night that holds a skill's proposal. Raises StagingError when the name cannot be stored."""
    return f"proposed_SKILL.{check_name(skill_name)}.md"


def check_live_path(raw: object, what: str) -> Path:
    """`raw` as a normal absolute path of a Markdown document; `what` names the row in the error.

    Refused as written, before any normalising: relative paths, `..` segments, `~`, control characters and anything
    that does not end in `.md`. Doubled slashes and `.` segments are dropped. Raises StagingError.
    """
    text = os.fspath(raw) if isinstance(raw, os.PathLike) else raw
    if not isinstance(text, str) or not text:
        raise StagingError(f"{what}: the live path is missing.")
    segments = re.split(r"[/\\]" if os.name == "nt" else "/", text)
    problem = ""
    if has_control(text):
        problem = "holds control characters"
    elif ".." in segments:
        problem = "holds a '..' segment"
    elif any(segment.startswith("~") for segment in segments):
        problem = "holds '~', which is not expanded here"
    elif not Path(text).is_absolute():
        problem = "is not absolute"
    elif not text.lower().endswith(".md"):
        problem = "is not a .md file"
    if problem:
        raise StagingError(f"{what}: the live path {text!r} {problem}.")
    normal = os.path.normpath(text)
    return Path("/" + normal.lstrip("/") if normal.startswith("//") and os.name == "posix" else normal)


def check_skill_path(path: Path, name: str, what: str) -> None:
    """Raise StagingError unless `path` is `<name>/SKILL.md`, in any spelling that a file system takes for that name."""
    if path.name != SKILL_FILE:
        raise StagingError(f"{what}: the live file is called {path.name}, expected {SKILL_FILE}.")
    if fold(path.parent.name) != fold(name):
        raise StagingError(f"{what}: the live file lies in the folder {path.parent.name!r}, expected {name!r}.")

"""What a person's configuration of Codex opens in a run of ours, and the settings that close it for that run.

Its tool servers (MCP), the program that it notifies, the shell's start-up files that it reads ahead, and what a folder
configures that the person trusts. Its sign-in, its model providers and its AGENTS.md stay. Checked with 0.171.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from skillopt.utils.tool_servers import Source, resolved

_SYSTEM = Path("/etc/codex")
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
_FILES = ("config.toml", "managed_config.toml")
_TABLE = "mcp_servers"


def codex_source(program: str, env: Mapping[str, str], profile: str = "") -> Source:
    """Where the tool servers of Codex come from, when it runs with `env` and maybe a profile."""
    home = codex_home(env)
    folders = (home, _SYSTEM) if os.name == "posix" else (home,)
    profiles = sorted(home.glob("*.config.toml")) if home.is_dir() else []
    chosen = ["-p", profile] if profile else []
    return Source(
        who="Codex",
        key=("codex", resolved(program, env.get("PATH")), str(home), profile),
        question=lambda folder: [program, *chosen, "mcp", "list", "--json", *as_flags(_untrusted(folder))],
        read=_names,
        files=(*(folder / name for folder in folders for name in _FILES), *profiles),
        may_have=_mentions_servers,
    )


def codex_home(env: Mapping[str, str]) -> Path:
    """Where Codex keeps its configuration and its sign-in."""
    named = env.get("CODEX_HOME", "").strip()
    return Path(named).expanduser() if named else Path.home() / ".codex"


def closing(servers: Iterable[str], folder: Path) -> dict[str, str]:
    """The settings of a run in `folder` without `servers`, as TOML by key, in the order in which they must be given.

    A dotted key cannot say every name; a table can, but replaces what was said before of the same key.
    """
    names = list(servers)
    odd = [f"{_quoted(name)}={{enabled=false}}" for name in names if not _PLAIN.fullmatch(name)]
    return {
        **({_TABLE: f"{{{','.join(odd)}}}"} if odd else {}),
        **{f"{_TABLE}.{name}.enabled": "false" for name in names if _PLAIN.fullmatch(name)},
        **_untrusted(folder),
        "notify": "[]",
        "features.shell_snapshot": "false",
    }


def as_flags(settings: Mapping[str, str]) -> list[str]:
    """Settings as arguments of the command line; their values are TOML."""
    return [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]


def _untrusted(folder: Path) -> dict[str, str]:
    """Neither the folder nor one above it configures anything, whatever the person trusts."""
    places = dict.fromkeys(str(place) for start in (folder.absolute(), folder.resolve()) for place in _up(start))
    return {"projects": "{" + ",".join(f'{_quoted(place)}={{trust_level="untrusted"}}' for place in places) + "}"}


def _up(folder: Path) -> tuple[Path, ...]:
    return (folder, *folder.parents)


def _quoted(text: str) -> str:
    """A text as TOML, whose basic strings JSON's are, but for pairs of surrogates and DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _names(output: str) -> tuple[str, ...] | None:
    """The names in the list; None for one of a version that cannot switch servers off, or of another form."""
    try:
        rows: Any = json.loads(output)
    except (ValueError, RecursionError):
        return None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return None
    if not all(isinstance(row.get("name"), str) and isinstance(row.get("enabled"), bool) for row in rows):
        return None
    return tuple(row["name"] for row in rows)


def _mentions_servers(path: Path) -> bool:
    try:
        lines = path.read_bytes().decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return any(_TABLE in line and not line.lstrip().startswith("#") for line in lines)

"""Which tool servers (MCP) Copilot's command line would start, and the flags that keep it from starting them.

`--disable-builtin-mcps` is for its own ones alone. A person's come from `mcp-config.json` in its home and from plugins,
those of a folder from files in it, if the person trusts the folder or one above it. Checked with 1.0.102, to which a
name that it does not know is no error.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from skillopt.utils.tool_servers import Source, resolved

DISABLE = "--disable-mcp-server"
_USER_FILE, _PLUGINS, _SETTINGS = "mcp-config.json", "installed-plugins", "settings.json"
_FOLDER_FILES = (".mcp.json", ".github/mcp.json")
_KEY = "mcpServers"


def copilot_source(program: str, env: Mapping[str, str]) -> Source:
    """Where the person's own servers come from, when Copilot runs with `env`."""
    named = env.get("COPILOT_HOME", "").strip()
    home = Path(named).expanduser() if named else Path.home() / ".copilot"
    return Source(
        who="Copilot",
        key=("copilot", resolved(program, env.get("PATH")), str(home)),
        question=lambda _: [program, "mcp", "list", "--json"],
        read=_names,
        files=(home / _USER_FILE, home / _PLUGINS, home / _SETTINGS),
        may_have=_may_have,
    )


def closing(servers: Iterable[str], folder: Path) -> list[str]:
    """The flags of a run in `folder` that start neither the person's `servers` nor those of the folder."""
    places = (place / name for place in (folder, *folder.parents) for name in _FOLDER_FILES)
    own = [name for path in places for name in _written(path)]
    return [f"{DISABLE}={name}" for name in dict.fromkeys((*servers, *own))]


def _names(output: str) -> tuple[str, ...] | None:
    try:
        servers: Any = json.loads(output)[_KEY]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return tuple(servers) if isinstance(servers, dict) else None


def _may_have(path: Path) -> bool:
    if path.name == _PLUGINS:
        return path.is_dir() and any(path.iterdir())
    return path.name == _USER_FILE and path.exists()


def _written(path: Path) -> tuple[str, ...]:
    """The names in a file of servers; none in one that is no JSON, which Copilot does not read either."""
    try:
        return _names(path.read_bytes().decode("utf-8-sig")) or ()
    except (OSError, ValueError):
        return ()

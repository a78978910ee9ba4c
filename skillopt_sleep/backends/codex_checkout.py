"""How Codex works in a checkout: its own sandbox lets it write there, without network, inside the pen of the checkout.

What a person's configuration would open again is closed for the run: rules that let commands out of the sandbox, more
folders to write, tool servers, the program to notify. Before the first task it is tried whether Codex can make its
sandbox inside the pen; where it cannot, all its commands would fail, and a task that nobody could do is no failure.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillopt_sleep.backends.agents import Agent
from skillopt_sleep.backends.faults import ProviderFault, fault_from_words, shown
from skillopt_sleep.backends.programs import secrets_of

if TYPE_CHECKING:
    from skillopt_sleep.worktrees import Desk

FLAGS = (
    *("exec", "--json", "--ephemeral", "--skip-git-repo-check", "--color", "never"),
    *("--ignore-rules", "--sandbox", "workspace-write"),
)
"""What every run in a checkout is given, before its settings."""

FEATURES_OFF = (
    *("view_image", "image_generation", "multi_agent", "goals", "apps", "plugins", "hooks", "memories"),
    "shell_snapshot",
)
"""What Codex can do beyond editing files and running commands, and shall not."""

KEPT = ("config.toml", "AGENTS.md", "AGENTS.override.md", "hooks.json", "prompts", "rules")
"""What of its home stays as it is whatever a run does."""

_TRIAL_SECONDS = 60.0
_SERVER_NAME = re.compile(r"[A-Za-z0-9_-]+")


class Trial:
    """What is found out once, before the first task: which tool servers there are, and whether the sandbox works."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._servers: tuple[str, ...] | None = None

    def servers(self, agent: Agent, desk: Desk) -> tuple[str, ...]:
        """The names of the servers that have to be switched off. Raises ProviderFault (setup) without a sandbox."""
        with self._lock:
            if self._servers is None:
                _try_sandbox(agent, desk)
                self._servers = _configured(agent, desk)
            return self._servers


def build_argv(path: str, model: str, folder: Path, servers: Sequence[str]) -> list[str]:
    """The command line of one task in the checkout `folder`; the prompt comes on standard input."""
    settings: dict[str, Any] = {
        "approval_policy": "never",
        "web_search": "disabled",
        "project_doc_max_bytes": 0,
        "notify": [],
        "allow_login_shell": False,
        "shell_environment_policy.inherit": "core",
        "sandbox_workspace_write.network_access": False,
        "sandbox_workspace_write.writable_roots": [],
        **{f"features.{feature}": False for feature in FEATURES_OFF},
        **{f"mcp_servers.{server}.enabled": False for server in servers},
    }
    argv = [path, *FLAGS, "--cd", str(folder)]
    for key, value in settings.items():
        argv += ["-c", f"{key}={json.dumps(value)}"]
    return [*argv, *(["-m", model] if model else []), "-"]


def homes(env: Mapping[str, str]) -> tuple[Path, ...]:
    """Where Codex keeps its sign-in and its state. It is made when missing, because Codex does not run without it."""
    named = env.get("CODEX_HOME", "").strip()
    home = Path(named).expanduser() if named else Path.home() / ".codex"
    with contextlib.suppress(OSError):  # then Codex says what is wrong with it
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    return (home,)


def _try_sandbox(agent: Agent, desk: Desk) -> None:
    result = agent.run(desk, [agent.path, "sandbox", "--", "true"], seconds=_TRIAL_SECONDS)
    if result.code:
        said = shown(result.stderr.strip() or result.stdout.strip() or f"exit code {result.code}")
        raise ProviderFault(
            f"Codex cannot make its own sandbox inside the pen of a checkout ({said}), so it could change nothing. Let "
            "users make nested namespaces, update Codex, or let the target be claude.",
            kind="setup",
            detail=said,
        )


def _configured(agent: Agent, desk: Desk) -> tuple[str, ...]:
    result = agent.run(desk, [agent.path, "mcp", "list", "--json"], seconds=_TRIAL_SECONDS)
    try:
        names = tuple(str(server["name"]) for server in json.loads(result.stdout)) if not result.code else None
    except (ValueError, TypeError, KeyError, RecursionError):
        names = None
    if names is None:
        words = result.stderr.strip() or result.stdout.strip() or f"exit code {result.code}"
        fault = fault_from_words(words, "`codex mcp list`", fix=agent.program.fix, secrets=secrets_of(agent.env))
        raise ProviderFault(str(fault), kind="setup", detail=fault.detail)
    odd = next((name for name in names if not _SERVER_NAME.fullmatch(name)), None)
    if odd is not None:
        raise ProviderFault(
            f"Codex's configuration has a tool server named {odd!a}, which cannot be switched off for a task in a "
            "checkout; give it a name of letters, digits, - and _.",
            kind="setup",
        )
    return names

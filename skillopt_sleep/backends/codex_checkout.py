"""How Codex works in a checkout: its own sandbox lets it write there, without network, inside the pen of the checkout.

What a person's configuration would open again is closed for the run: rules that let commands out of the sandbox, more
folders to write, tool servers, the program to notify. Before the first task it is tried whether Codex can make its
sandbox inside the pen; where it cannot, all its commands would fail, and a task that nobody could do is no failure.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillopt_sleep.backends.agents import Agent
from skillopt_sleep.backends.faults import ProviderFault, shown
from skillopt_sleep.vendored.utils.codex_home import as_flags, closing, codex_home

if TYPE_CHECKING:
    from skillopt_sleep.worktrees import Desk

FLAGS = (
    *("exec", "--json", "--ephemeral", "--skip-git-repo-check", "--color", "never"),
    *("--ignore-rules", "--sandbox", "workspace-write"),
)
"""What every run in a checkout is given, before its settings."""

FEATURES_OFF = (*("view_image", "image_generation", "multi_agent", "goals", "apps", "plugins", "hooks", "memories"),)
"""What Codex can do beyond editing files and running commands, and shall not."""

KEPT = ("config.toml", "AGENTS.md", "AGENTS.override.md", "hooks.json", "prompts", "rules")
"""What of its home stays as it is whatever a run does."""

_TRIAL_SECONDS = 60.0


class Trial:
    """What is found out once, before the first task: whether the sandbox works."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._works = False

    def sandbox(self, agent: Agent, desk: Desk) -> None:
        """Try it, unless it has been tried. Raises ProviderFault (setup) when it does not work."""
        with self._lock:
            if not self._works:
                _try_sandbox(agent, desk)
                self._works = True


def build_argv(path: str, model: str, folder: Path, servers: Sequence[str]) -> list[str]:
    """The command line of one task in the checkout `folder`; the prompt comes on standard input."""
    settings: dict[str, Any] = {
        "approval_policy": "never",
        "web_search": "disabled",
        "project_doc_max_bytes": 0,
        "allow_login_shell": False,
        "shell_environment_policy.inherit": "core",
        "sandbox_workspace_write.network_access": False,
        "sandbox_workspace_write.writable_roots": [],
        **{f"features.{feature}": False for feature in FEATURES_OFF},
    }
    argv = [path, *FLAGS, "--cd", str(folder), *as_flags(closing(servers, folder))]
    for key, value in settings.items():
        argv += ["-c", f"{key}={json.dumps(value)}"]
    return [*argv, *(["-m", model] if model else []), "-"]


def homes(env: Mapping[str, str]) -> tuple[Path, ...]:
    """Where Codex keeps its sign-in and its state. It is made when missing, because Codex does not run without it."""
    home = codex_home(env)
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

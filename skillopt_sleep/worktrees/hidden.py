"""What an agent at work must not see: the person's secrets, what agents remember, and this program's own files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from skillopt_sleep import paths
from skillopt_sleep.config import SleepConfig

_SECRETS = (
    *(".ssh", ".aws", ".azure", ".gnupg", ".kube", ".docker", ".password-store", ".oci", ".bluemix", ".terraform.d"),
    *(".netrc", ".git-credentials", ".npmrc", ".yarnrc.yml", ".pypirc", ".pgpass", ".my.cnf", ".boto", ".s3cfg"),
    *(".terraformrc", ".databrickscfg", ".vault-token", ".Xauthority", ".ICEauthority", ".bundle/config"),
    *(".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml"),
    *(".gradle/gradle.properties", ".config/gh", ".config/glab-cli", ".config/hub", ".config/gcloud", ".config/op"),
    *(".config/rclone", ".config/doctl", ".config/git/credentials", ".config/containers", ".config/heroku"),
    *(".config/pypoetry/auth.toml", ".config/sops", ".config/age", ".config/github-copilot", ".config/systemd"),
    *(".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".config/Code", ".config/Cursor"),
    *(".mozilla", ".thunderbird", ".local/share/keyrings", ".local/share/kwalletd", ".local/share/fish"),
    *(".bash_history", ".zsh_history", ".python_history", ".node_repl_history", ".psql_history", ".mysql_history"),
    *(".claude.json", ".copilot", ".local/share/opencode", ".config/opencode"),
)
_CLAUDE_MEMORY = ("projects", "history.jsonl", "file-history", "todos", "tasks", "plans", "debug", "shell-snapshots")
_CODEX_MEMORY = ("sessions", "archived_sessions", "history.jsonl", "log")
_AGENTS = (
    ("~/.claude", "claude_home", "CLAUDE_CONFIG_DIR", _CLAUDE_MEMORY),
    ("~/.codex", "codex_home", "CODEX_HOME", _CODEX_MEMORY),
)
"""Where an agent lives: usually, by which setting, by which variable; and what in it are its transcripts."""


def hidden_places(config: SleepConfig) -> Iterator[Path]:
    """Files and folders, there or not: those of `_SECRETS`, agents' homes with their transcripts, nights and staging.

    A home that an agent needs is shown to it by whoever starts it; the transcripts in it stay hidden.
    """
    home = paths.expand("~")
    yield from (home / name for name in _SECRETS)
    for usual, key, variable, names in _AGENTS:
        for place in dict.fromkeys(filter(None, (usual, config.get(key), os.environ.get(variable, "").strip()))):
            yield paths.expand(place)
            yield from (paths.expand(place) / name for name in names)
    for key in ("pi_home", "cursor_home", "vscode_workspace_storage", "copilot_cli_session_store", "opencode_db"):
        value = str(config.get(key) or "")
        if value and value != ":memory:":
            yield paths.expand(value)
    yield from (config.state_dir, config.home, paths.sleep_home(), home / paths.PROJECT_FOLDER)
    yield from (paths.project_folder(config.project), paths.handoff_folder(config.project))

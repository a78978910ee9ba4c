"""What an agent at work must not see: the person's secrets, what agents remember, and this program's own files."""

from __future__ import annotations

import contextlib
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
_BASES = {".config": "XDG_CONFIG_HOME", ".local/share": "XDG_DATA_HOME", ".cargo": "CARGO_HOME"}
_NAMED = (
    *("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "AZURE_CONFIG_DIR", "BOTO_CONFIG", "CLOUDSDK_CONFIG"),
    *("DOCKER_CONFIG", "GH_CONFIG_DIR", "GLAB_CONFIG_DIR", "GNUPGHOME", "GOOGLE_APPLICATION_CREDENTIALS", "HISTFILE"),
    *("KUBECONFIG", "NETRC", "NPM_CONFIG_USERCONFIG", "PASSWORD_STORE_DIR", "PGPASSFILE", "XAUTHORITY"),
)
"""Variables that move a place of `_SECRETS`: the folder that it lies in, or itself."""

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
    yield from _moved_secrets(home)
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


def _moved_secrets(home: Path) -> Iterator[Path]:
    """Secrets that lie elsewhere, because a variable says so."""
    for base, variable in _BASES.items():
        place = os.environ.get(variable, "").strip()
        inside = [name.removeprefix(f"{base}/") for name in _SECRETS if name.startswith(f"{base}/")]
        yield from (paths.expand(place) / name for name in inside if place)
    for variable in _NAMED:
        for place in filter(None, os.environ.get(variable, "").split(os.pathsep)):
            path = paths.expand(place)
            with contextlib.suppress(OSError):  # what this user cannot look at needs no hiding
                if (path.is_file() or path.is_dir()) and not home.is_relative_to(path):
                    yield path

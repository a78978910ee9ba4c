"""A temporary HOME, a project, and stand-ins for crontab, systemctl and schtasks on a PATH of the test's own."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

CRONTAB = """#!/bin/sh
d=$(dirname "$0")
case "$1" in
-l)
  if [ -f "$d/unreadable" ]; then cat "$d/unreadable" >&2; exit 1; fi
  if [ -f "$d/table" ]; then cat "$d/table"
  elif [ -f "$d/absent" ]; then cat "$d/absent" >&2; exit 1
  else echo "no crontab for tester" >&2; exit 1; fi ;;
-)
  if [ -f "$d/refuses" ]; then echo "bad minute" >&2; exit 1; fi
  if [ -f "$d/mangles" ]; then rm "$d/mangles"; echo "* * * * * lost" > "$d/table"; exit 0; fi
  cat > "$d/table.new" && mv "$d/table.new" "$d/table" ;;
*) exit 9 ;;
esac
"""
SYSTEMCTL = """#!/bin/sh
d=$(dirname "$0")
echo "$@" >> "$d/systemctl.log"
if [ -f "$d/no-bus" ]; then echo "Failed to connect to bus" >&2; exit 1; fi
"""
SCHTASKS = """#!/bin/sh
d=$(dirname "$0")
printf '%s\\n' "$@" >> "$d/schtasks.log"
case "$1" in
/create) printf '"\\\\%s","30.11.2026 03:17:00","Ready"\\n' "$3" >> "$d/tasks" ;;
/delete) : > "$d/tasks" ;;
/query) printf '"\\\\Other","N/A","Ready"\\n'; cat "$d/tasks" 2>/dev/null || true ;;
esac
"""


class Machine:
    """The person's machine as far as scheduling sees it."""

    def __init__(self, home: Path, tools: Path) -> None:
        self.home = home
        self.tools = tools
        self.project = self.make_project("shop")

    def make_project(self, name: str) -> Path:
        project = self.home / name
        project.mkdir(parents=True)
        return project

    @property
    def table(self) -> str:
        """The crontab."""
        return (self.tools / "table").read_bytes().decode()

    @table.setter
    def table(self, text: str) -> None:
        (self.tools / "table").write_bytes(text.encode())

    def set(self, mode: str, text: str = "") -> None:
        """Let a program fail: `unreadable`, `refuses`, `mangles`, `no-bus`."""
        (self.tools / mode).write_text(text)

    def add_systemctl(self) -> None:
        self.tool("systemctl", SYSTEMCTL)

    def add_schtasks(self) -> None:
        self.tool("schtasks", SCHTASKS)

    def tool(self, name: str, script: str) -> None:
        path = self.tools / name
        path.write_text(script)
        path.chmod(0o755)


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine without any scheduler."""
    home, tools = tmp_path / "home", tmp_path / "bin"
    home.mkdir()
    tools.mkdir()
    for name in list(os.environ):
        if name.startswith(("SKILLOPT_SLEEP_", "XDG_", "ANTHROPIC_", "AZURE_", "OPENAI_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", str(tools))
    return Machine(home, tools)


@pytest.fixture
def machine(bare: Machine, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with cron."""
    monkeypatch.setenv("PATH", f"{bare.tools}{os.pathsep}/usr/bin{os.pathsep}/bin")
    bare.tool("crontab", CRONTAB)
    bare.add_systemctl()  # so that no test can reach the real one
    return bare


@pytest.fixture
def as_cron() -> Callable[[str], list[str]]:
    """What cron hands to /bin/sh for a line of the table: (the words of the shell command)."""

    def read(line: str) -> list[str]:
        command, escaped = "", False
        for letter in line.split(None, 5)[5]:
            if escaped:
                command += letter if letter == "%" else "\\" + letter
                escaped = False
            elif letter == "\\":
                escaped = True
            else:
                assert letter != "%", "cron would cut the command here"
                command += letter
        return [command]

    return read

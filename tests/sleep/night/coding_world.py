"""A project in git, and a `claude` that works in its checkouts; how it works depends on the skill that it reads."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from sleep.night_world import Machine
from sleep.worlds import START, claude_lines, write

RULE = "Write a line about every change into CHANGELOG.md."
REQUESTS = ("Bump the version", "Rename the parser", "Drop the old flag", "Speed up the import")
CHECK = """#!/bin/sh
grep -q changed CHANGELOG.md || { echo 'no line in CHANGELOG.md'; exit 1; }
"""

_CLAUDE = """#!/bin/sh
prompt=$(cat)
log="$HOME/.claude/calls.log"
say() {
    printf '{"type":"result","subtype":"success","is_error":false,"stop_reason":"end_turn","result":"%s",' "$1"
    printf '"usage":{"input_tokens":900,"output_tokens":60}}\\n'
}
case "$prompt" in
*"is a checkout of the project"*)
    kind=plain
    echo '# worked on' >> app.py
    case "$prompt" in *"RULE"*) kind=ruled; echo '- changed' >> CHANGELOG.md ;; esac
    sees=$(find LIVE SESSIONS -type f 2>/dev/null | wc -l)
    (echo own > LIVE/own) 2>/dev/null && kind="$kind, which wrote into the live project"
    echo "work $kind $sees $(git log --oneline | wc -l) $(git remote | wc -l)" >> "$log"
    say 'Done.' ;;
"You read one session"*)
    asked=$(printf '%s\\n' "$prompt" | sed -n 's/^- //p' | head -n 1)
    echo "mine" >> "$log"
    say "$(printf '%s' MINED | sed "s/ASKED/$asked/")" ;;
"You improve a short document"*)
    echo "reflect" >> "$log"
    KILL
    say EDITS ;;
*)
    echo "other" >> "$log"
    say GRADE ;;
esac
"""
_SAID = {"op": "contains", "arg": "Done"}


def _quoted(value: object) -> str:
    """A reply in JSON as text within JSON, as one word of a shell."""
    return shlex.quote(json.dumps(json.dumps(value))[1:-1])


@cache
def lacking() -> str:
    """Why nights with checkouts cannot run here; "" when they can."""
    for program in ("git", "bwrap", "sh", "grep", "sed"):
        if shutil.which(program) is None:
            return f"the sandbox bubblewrap does not work on this machine: there is no {program}"
    tried = subprocess.run(
        ["bwrap", "--ro-bind", "/", "/", "--unshare-user", "--unshare-pid", "--proc", "/proc", "true"],
        capture_output=True,
        check=False,
        timeout=30,
    )
    return "" if tried.returncode == 0 else "the sandbox bubblewrap does not work on this machine"


def git(folder: Path, *words: str) -> str:
    """What git prints, with no setting of this machine."""
    who = ("-c", "user.name=A Person", "-c", "user.email=a@person", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", *who, *words],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": "/nowhere", "GIT_CONFIG_NOSYSTEM": "1"},
        capture_output=True,
        check=True,
    )
    return done.stdout.decode("utf-8").strip()


class Workplace:
    """A machine with a project in git, sessions that changed files of it, and the `claude` above."""

    def __init__(self, machine: Machine, *, requests: tuple[str, ...] = REQUESTS, evil: bool = False) -> None:
        self.machine, self.project = machine, machine.project
        self.program = machine.base / "bin" / "claude"
        self.log = machine.home / ".claude" / "calls.log"
        self.marker = machine.base / "pwned"
        (self.project / "app.py").write_text("version = 1\n", encoding="utf-8")
        (self.project / "CHANGELOG.md").write_text("# Log\n", encoding="utf-8")
        self.check(CHECK)
        git(self.project, "init", "--quiet", "--initial-branch=main")
        self.commit("first")
        for number, request in enumerate(requests):
            self.session(number, request, branch=f"--output={self.marker}" if evil else "main")
        self.install(evil=evil)

    def check(self, text: str) -> None:
        """Write the command that tests the project."""
        path = self.project / "check.sh"
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def commit(self, words: str) -> str:
        """Commit everything; the commit's name."""
        (self.project / ".gitignore").write_text(".skillopt-sleep/\n", encoding="utf-8")
        git(self.project, "add", "--all")
        git(self.project, "commit", "--quiet", "-m", words)
        return git(self.project, "rev-parse", "HEAD")

    def session(self, number: int, request: str, *, branch: str = "main", touched: bool = True) -> None:
        """A session, which changed app.py unless it is not `touched`."""
        folder = self.machine.home / ".claude" / "projects" / str(self.project).replace("/", "-")
        at = START + 3600.0 * number
        lines = claude_lines(
            [request, "still wrong"], session=f"s{number}", project=str(self.project), at=at, gitBranch=branch
        )
        write(folder / f"s{number}.jsonl", lines if touched else lines[1:], mtime=at + 240)

    def install(self, *, evil: bool = False, kills: bool = False) -> None:
        """Put the program in its place. `kills`: with its first reflection it kills the night."""
        checks = [_SAID, {"op": "command", "arg": f"touch {self.marker}"}] if evil else [_SAID]
        words = {
            "MINED": _quoted([{"intent": "ASKED", "satisfied": False, "checks": checks}]),
            "EDITS": _quoted([{"op": "add", "content": RULE, "anchor": "", "rationale": "told nowhere"}]),
            "GRADE": _quoted({"score": 1.0, "reason": "fine"}),
            "RULE": RULE,
            "KILL": 'if mkdir "$HOME/.claude/killed" 2>/dev/null; then kill -9 $PPID; sleep 5; fi' if kills else ":",
            "LIVE": shlex.quote(str(self.project)),
            "SESSIONS": shlex.quote(str(self.machine.home / ".claude" / "projects")),
        }
        text = _CLAUDE
        for word, value in words.items():
            text = text.replace(word, value)
        self.program.parent.mkdir(exist_ok=True)
        self.program.write_text(text, encoding="utf-8")
        self.program.chmod(0o755)

    def configure(self, **settings: Any) -> None:
        """A night with this program, in checkouts."""
        decided = {"val_fraction": 0.5, "gate_min_val": 1, "slow_update": False, "evolve_memory": False, "workers": 2}
        chosen = {"backend": "claude", "replay_mode": "worktree", "replay_checks": ["./check.sh"]}
        self.machine.configure(**{**decided, **chosen, **settings})

    def calls(self, kind: str = "") -> list[str]:
        """What the program was asked for so far, in its own words."""
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        return [line for line in lines if line.startswith(kind)]

    def live(self) -> dict[str, tuple[bytes, int]]:
        """Bytes and mode of everything in the project, git's own files too, without what nights keep there."""
        found = {}
        for path in sorted(self.project.rglob("*")):
            if not any(part.startswith(".skillopt-sleep") for part in path.parts):
                found[str(path)] = (path.read_bytes() if path.is_file() else b"", path.lstat().st_mode)
        return found

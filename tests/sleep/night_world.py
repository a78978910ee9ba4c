"""A person's machine in a temporary folder: a home, a project, sessions, and a model behind a server on loopback."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sleep.worlds import sessions

from skillopt_sleep.cli import main
from skillopt_sleep.types import TaskRecord

RULE = "End every answer with the words CHECKED TWICE."
MEMORY = "# Shop\r\n\r\nOwn words, kept byte for byte.   \r\n\r\n\r\n- be brief"
SKILL = "---\nname: mine\n---\n# Mine\n\nOwn text without a final newline"
KEY = "marked-key-0123456789"
_REQUEST = re.compile(r"^- (.+)$", re.MULTILINE)
_KINDS = {
    "You read one session": "mine",
    "You are a person's assistant": "attempt",
    "You grade one answer": "judge",
    "You improve a short document": "reflect",
    "You keep the lasting guidance": "slow_update",
}


def kind_of(prompt: str) -> str:
    """What a prompt asks for."""
    return next((kind for start, kind in _KINDS.items() if prompt.startswith(start)), "other")


def prompt_of(body: Mapping[str, Any]) -> str:
    return str(body["messages"][0]["content"])


def answer(body: Mapping[str, Any]) -> str:
    """A model that works well once it has read RULE, a judge that sees it, an optimizer that proposes it."""
    return answer_to(prompt_of(body))


def answer_to(prompt: str) -> str:
    kind = kind_of(prompt)
    if kind == "mine":
        requests = _REQUEST.findall(prompt.partition("What the person wrote")[2])
        return json.dumps(
            [{"intent": requests[0], "checks": [], "rubric": "It was checked twice.", "satisfied": False}]
        )
    if kind == "attempt":
        return "The work is done. CHECKED TWICE" if RULE in prompt else "The work is done."
    if kind == "judge":
        good = "CHECKED TWICE" in prompt.partition("The answer:")[2]
        return json.dumps({"score": 1.0 if good else 0.2, "reason": "checked" if good else "not checked twice"})
    if kind == "reflect":
        known = RULE in prompt
        return json.dumps(
            [] if known else [{"op": "add", "content": RULE, "anchor": "", "rationale": "none was checked"}]
        )
    return json.dumps({"guidance": ""})


class Machine:
    """Home, project and the command line that works with them."""

    def __init__(self, base: Path, *, sessions_: int = 10, fill: bool = True) -> None:
        self.base = Path(os.path.realpath(base))
        self.home, self.project = self.base / "home", self.base / "work" / "shop"
        self.project.mkdir(parents=True, exist_ok=True)
        self.home.mkdir(exist_ok=True)
        self.skill = self.home / ".claude" / "skills" / "skillopt-sleep-learned" / "SKILL.md"
        self.memory = self.project / "CLAUDE.md"
        if fill and not self.memory.exists():
            self.memory.write_bytes(MEMORY.encode())
            self.memory.chmod(0o640)
            self.skill.parent.mkdir(parents=True)
            self.skill.write_bytes(SKILL.encode())
            self.skill.chmod(0o604)
        if sessions_:
            sessions(self.home, sessions_, project=str(self.project))

    @property
    def state_dir(self) -> Path:
        return self.home / ".skillopt-sleep"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "HOME": str(self.home),
            "SKILLOPT_SLEEP_HOME": str(self.state_dir),
            "AZURE_OPENAI_AUTH_MODE": "openai_compatible",
            "AZURE_OPENAI_API_KEY": KEY,
        }

    def configure(self, **settings: Any) -> None:
        self.state_dir.mkdir(mode=0o700, exist_ok=True)
        (self.state_dir / "config.json").write_text(json.dumps(settings))

    def run(self, *words: str) -> tuple[int, str, str]:
        """(exit code, stdout, stderr) of a command in this process."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main([words[0], "--project", str(self.project), *words[1:]])
        return code, out.getvalue(), err.getvalue()

    def json(self, *words: str, code: int = 0) -> dict[str, Any]:
        """The one JSON document that a command prints."""
        got, out, err = self.run(*words, "--json")
        assert got == code, (got, out, err)
        document = json.loads(out)
        assert isinstance(document, dict)
        return document

    def start(self, *words: str, **environment: str) -> subprocess.Popen[bytes]:
        """A command in a process of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "skillopt_sleep", words[0], "--project", str(self.project), *words[1:]],
            env={"PATH": os.environ["PATH"], **self.environment, **environment},
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def state(self) -> dict[str, Any]:
        path = self.state_dir / "state.json"
        data: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"night": 0, "history": []}
        return data

    def live(self) -> dict[str, tuple[bytes, int]]:
        """Bytes and mode of everything that belongs to the person, folders too."""
        found = {}
        for path in sorted([*self.home.rglob("*"), *self.project.rglob("*")]):
            if not any(part.startswith(".skillopt-sleep") for part in path.parts):
                found[str(path)] = (path.read_bytes() if path.is_file() else b"<folder>", path.lstat().st_mode)
        return found

    def nights(self) -> list[Path]:
        """The published nights, oldest first."""
        return sorted(path.parent for path in self.project.glob(".skillopt-sleep/staging/*/manifest.json"))


def persona(n: int = 12) -> list[TaskRecord]:
    """Tasks that the mock backend learns two rules from."""
    topics = (
        *("attention", "diffusion", "graphs", "vision", "speech", "robots"),
        *("proteins", "climate", "markets", "legal", "music", "chess"),
    )
    return [
        TaskRecord(
            f"persona_{number}",
            "/personas/demo",
            f"Find the arXiv identifier of the survey on {topics[number % len(topics)]} number {number}",
            reference_kind="exact",
            reference=f"arXiv:2401.{1000 + number}v1",
            tags=["rule:wrap-answer", "rule:arxiv-id"],
            outcome="fail",
            source_sessions=[f"sess_{number}"],
            split="val" if number % 2 else "train",
        )
        for number in range(n)
    ]


def write_tasks(path: Path, tasks: list[TaskRecord], **meta: Any) -> Path:
    """A tasks file."""
    payload = {"format": "skillopt_sleep.tasks.v1", **meta, "tasks": [task.to_dict() for task in tasks]}
    path.write_text(json.dumps(payload))
    return path

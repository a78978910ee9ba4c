"""Transcripts as Claude Code and Codex write them, made up and the same for the same arguments.

`sessions(home, 20, project=...)` writes twenty sessions of a person under `<home>/.claude` or `<home>/.codex` and
returns their files. `claude_lines` and `codex_lines` give the records of one session.
"""

from __future__ import annotations

import json
import os
import random
import uuid
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

START = 2_208_988_800.0  # 2040-01-01T00:00:00Z: inside every look-back time
REQUESTS = (
    "Write the commit message for the staged change to {thing}",
    "Add a CSV export to the {thing} page",
    "The test of {thing} fails on CI, find out why",
    "Summarise what changed in {thing} since the last release",
    "Rename the helper in {thing} and update its callers",
    "Write a migration that adds an index to the {thing} table",
    "Explain how {thing} is cached, in three sentences",
    "Review the pull request that touches {thing}",
)
THINGS = ("checkout", "billing", "search", "login", "reports", "invoices", "cart", "audit log")
PRAISE = ("perfect, thanks", "great, that works", "lgtm")
COMPLAINTS = ("still wrong, keep the subject under 50 characters", "nope, use the imperative", "that's not working")
Record = dict[str, Any]


def sessions(
    home: Path,
    n: int,
    *,
    project: str = "/w/shop",
    source: str = "claude",
    start: float = START,
    every: float = 3600.0,
    first: int = 0,
    size: int = 0,
    satisfied: float = 0.6,
) -> list[Path]:
    """Write `n` sessions of `project` below `home`, one every `every` seconds from `start`, numbered from `first`.

    `size` is about how many bytes of tool output each session holds; `satisfied` is the share that ends in praise.
    """
    paths = []
    for number in range(first, first + n):
        rng = random.Random(f"session {project} {number}")
        at = start + number * every
        asked = REQUESTS[number % len(REQUESTS)].format(thing=THINGS[number // len(REQUESTS) % len(THINGS)])
        feedback = rng.choice(PRAISE if rng.random() < satisfied else COMPLAINTS)
        if source == "claude":
            name = str(uuid.UUID(int=rng.getrandbits(128)))
            path = home / ".claude" / "projects" / project.replace("/", "-") / f"{name}.jsonl"
            records = claude_lines([asked, feedback], session=name, project=project, at=at, size=size)
        else:
            day = datetime.fromtimestamp(at, timezone.utc)
            name = f"rollout-{day:%Y-%m-%dT%H-%M-%S}-{uuid.UUID(int=rng.getrandbits(128))}"
            path = home / ".codex" / "sessions" / f"{day:%Y/%m/%d}" / f"{name}.jsonl"
            records = codex_lines([asked, feedback], session=name[-36:], project=project, at=at, size=size)
        paths.append(write(path, records, mtime=at + 240))
    return paths


def write(path: Path, records: Iterable[Record | bytes], *, mtime: float | None = None) -> Path:
    """Write records (bytes go in as they are, without a line end of ours)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as stream:
        for record in records:
            stream.write(record if isinstance(record, bytes) else line(record))
    if mtime is not None:
        os.utime(path, (mtime, mtime))
    return path


def line(record: object) -> bytes:
    """One JSONL line."""
    return json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"


def stamp(at: float) -> str:
    """A time as both agents write it."""
    return datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.") + f"{int(at * 1000) % 1000:03d}Z"


def claude_lines(
    prompts: Sequence[str],
    *,
    session: str = "s1",
    project: str | None = "/w/shop",
    at: float = START,
    size: int = 0,
    answers: Sequence[str] = (),
    **common: Any,
) -> list[Record]:
    """Records of a Claude Code session: each prompt, a tool call with its result, an answer. `common` goes in each."""
    rng = random.Random(f"{session} {at}")
    base = {"sessionId": session, "gitBranch": "main", "version": "2.0.1", "userType": "external", **common}
    if project is not None:
        base["cwd"] = project
    backups = {"trackedFileBackups": {f"{project}/app.py": {"version": 1}}, "timestamp": stamp(at)}
    records: list[Record] = [{"type": "file-history-snapshot", "messageId": "m0", "snapshot": backups}]

    def add(kind: str, seconds: float, content: Any, **more: Any) -> None:
        message = {"role": kind, "content": content}
        ident = str(uuid.UUID(int=rng.getrandbits(128)))
        records.append(
            {"type": kind, "uuid": ident, "timestamp": stamp(at + seconds), "message": message, **base, **more}
        )

    for number, prompt in enumerate(prompts):
        answer = answers[number] if number < len(answers) else f"Done: {prompt[:60]}"
        seconds = number * 60.0
        add("user", seconds, prompt)
        add("assistant", seconds + 5, [{"type": "thinking", "thinking": "private thoughts", "signature": "x"}])
        tool = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": "run private-argument"}}
        add("assistant", seconds + 6, [tool])
        output = filler(rng, size // len(prompts))
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"private output {output}"}
        add("user", seconds + 20, [result], toolUseResult={"stdout": output[: len(output) // 2]})
        add("assistant", seconds + 40, [{"type": "text", "text": answer}])
    return records


def codex_lines(
    prompts: Sequence[str],
    *,
    session: str = "s1",
    project: str | None = "/w/shop",
    at: float = START,
    size: int = 0,
    answers: Sequence[str] = (),
    **meta: Any,
) -> list[Record]:
    """Records of a Codex session, with each text both as an event and as an item. `meta` goes into its first record."""
    rng = random.Random(f"{session} {at}")
    head = {"id": session, "timestamp": stamp(at), "originator": "codex_cli_rs", "source": "cli", **meta}
    if project is not None:
        head["cwd"] = project
    records: list[Record] = [{"type": "session_meta", "timestamp": stamp(at), "payload": head}]

    def add(kind: str, seconds: float, payload: Record) -> None:
        records.append({"timestamp": stamp(at + seconds), "type": kind, "payload": payload})

    def item(role: str, text: str) -> Record:
        kind = "output_text" if role == "assistant" else "input_text"
        return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}

    add("response_item", 0, item("developer", "private developer text"))
    add("response_item", 0, item("user", f"<environment_context>\n  <cwd>{project}</cwd>\n</environment_context>"))
    for number, prompt in enumerate(prompts):
        answer = answers[number] if number < len(answers) else f"Done: {prompt[:60]}"
        seconds = number * 60.0
        add("response_item", seconds, item("user", prompt))
        add("event_msg", seconds, {"type": "user_message", "message": prompt})
        add("event_msg", seconds + 5, {"type": "agent_reasoning", "text": "private thoughts"})
        call = {"type": "function_call", "name": "shell", "call_id": f"c{number}", "arguments": '{"cmd": "private"}'}
        add("response_item", seconds + 6, call)
        output = {"type": "function_call_output", "call_id": f"c{number}", "output": filler(rng, size // len(prompts))}
        add("response_item", seconds + 20, output)
        add("event_msg", seconds + 40, {"type": "agent_message", "message": answer})
        add("response_item", seconds + 40, item("assistant", answer))
    return records


def filler(rng: random.Random, size: int) -> str:
    """About `size` characters of log lines."""
    if size <= 0:
        return ""
    lines = [
        f'{rng.randrange(10**6):06d} INFO module.{rng.randrange(50)} did "something" with item {n}' for n in range(40)
    ]
    block = "\n".join(lines) + "\n"
    return (block * (size // len(block) + 1))[:size]

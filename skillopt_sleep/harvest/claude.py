"""Claude Code: one JSONL file a session, somewhere under `<claude home>/projects`."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from skillopt_sleep.harvest.common import (
    MAX_FILES,
    Claim,
    Scope,
    Session,
    add_name,
    clean_text,
    is_noise,
    key_of,
    text_of,
)
from skillopt_sleep.harvest.gather import harvest_once
from skillopt_sleep.harvest.origin import HEADLESS, INTERACTIVE
from skillopt_sleep.harvest.reading import Source
from skillopt_sleep.types import SessionDigest

_TEXT = frozenset({"text"})
_INSERTED = re.compile(r"<(system-reminder|ide_opened_file|ide_selection)>.*?</\1>", re.DOTALL)
_EDITING = ("Edit", "MultiEdit", "NotebookEdit", "Write")
_NOT_SAID = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage")


def read_record(session: Session, record: dict[str, Any], claim: Claim) -> None:
    """Take into `session` what one record says."""
    if record.get("isSidechain") is True:
        session.sub_agent = True
        return
    session.at(record.get("timestamp"))
    if not session.projects:
        session.in_folder(record.get("cwd"))
    if not session.branch and isinstance(record.get("gitBranch"), str):
        session.branch = clean_text(record["gitBranch"])[:200]
    if isinstance(record.get("sessionId"), str) and record["sessionId"].strip():
        session.session_id = clean_text(record["sessionId"].strip())[:200]
    if isinstance(record.get("entrypoint"), str):
        session.entry = HEADLESS if record["entrypoint"].startswith("sdk") else INTERACTIVE
    if record.get("type") == "file-history-snapshot":
        _read_snapshot(session, record)
    elif not any(record.get(flag) is True for flag in _NOT_SAID):
        _read_message(session, record, claim)


def _read_message(session: Session, record: dict[str, Any], claim: Claim) -> None:
    message = record.get("message")
    if not isinstance(message, dict):
        return
    content = message.get("content")
    text = text_of(content, _TEXT)
    if message.get("role") == "user":
        text = _INSERTED.sub("", text).strip()
        if not is_noise(text):
            session.asked(text, _key(record, text), claim)
    elif message.get("role") == "assistant":
        _read_tools(session, content)
        if text.strip():
            session.replied(text)


def _key(record: dict[str, Any], text: str) -> str:
    """What identifies a prompt in every file that it was copied to, when a session is resumed."""
    stamp = record.get("timestamp")
    if record.get("uuid") and stamp:
        return key_of(record["uuid"], stamp, text)
    return key_of(record["sessionId"], stamp, text) if record.get("sessionId") and stamp else ""


def _read_tools(session: Session, content: object) -> None:
    for block in content if isinstance(content, list) else []:
        if not isinstance(block, dict) or block.get("type") != "tool_use":
            continue
        add_name(session.tools, block.get("name"))
        arguments = block.get("input")
        if not isinstance(arguments, dict):
            continue
        if block.get("name") == "Skill":
            add_name(session.skills, arguments.get("skill"))
        elif block.get("name") in _EDITING:
            add_name(session.files, arguments.get("file_path") or arguments.get("notebook_path"), most=MAX_FILES)


def _read_snapshot(session: Session, record: dict[str, Any]) -> None:
    snapshot = record.get("snapshot")
    tracked = snapshot.get("trackedFileBackups") if isinstance(snapshot, dict) else None
    for group in (tracked, record.get("files")):
        for name in group if isinstance(group, (dict, list)) else []:
            add_name(session.files, name, most=MAX_FILES)


def is_sub_agent(path: Path) -> bool:
    """True for the transcript of an agent that another agent started."""
    return path.name.startswith("agent-") or "subagents" in path.parts


CLAUDE = Source("claude", read_record, is_sub_agent=is_sub_agent, one_folder=True)


def harvest_claude(
    location: str | Path,
    *,
    scope: Scope = "all",
    invoked_project: str = "",
    since_iso: str | None = None,
    limit: int = 0,
    on_note: Callable[[str], None] | None = None,
) -> list[SessionDigest]:
    """Digests of the sessions under `location` (a `projects` folder), newest first; `limit` 0 means all.

    Everything is read, whatever earlier harvests took. `since_iso` leaves out sessions that ended before it (without
    an offset: local time). `on_note` is told what was left out. A location that is missing gives [].
    """
    where = [(CLAUDE, Path(location))]
    return harvest_once(where, scope=scope, invoked=invoked_project, since_iso=since_iso, limit=limit, on_note=on_note)

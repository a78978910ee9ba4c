"""Codex: one JSONL file a session, live ones in `sessions/YYYY/MM/DD`, older ones in `archived_sessions`."""

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
    is_noise,
    key_of,
    text_of,
    tool_name,
)
from skillopt_sleep.harvest.gather import harvest_once
from skillopt_sleep.harvest.origin import HEADLESS, INTERACTIVE, SUB_AGENT
from skillopt_sleep.harvest.reading import Source
from skillopt_sleep.types import SessionDigest

FOLDERS = ("sessions", "archived_sessions")
_NAMED_BY_TYPE = {
    "exec_command_end": "exec_command",
    "patch_apply_end": "apply_patch",
    "web_search_call": "web_search",
    "tool_search_call": "tool_search",
}
_CONTEXT = re.compile(r"<(?:\w*internal_context|environment_context|user_instructions|INSTRUCTIONS)\b")
_CONTEXT_END = re.compile(r"</(?:\w*internal_context|environment_context|user_instructions|INSTRUCTIONS)>")
_DUMP_OPENING = "# AGENTS.md instructions"
_DUMP_SEPARATOR = "--- project-doc ---"
_FROM_EDITOR = "## My request for Codex:"
_MOST_UNMATCHED = 50
_PATCHED = re.compile(r"\*\*\* (?:Add|Update|Delete) File: ([^\r\n\\]+)")
_PATCH_CHARS = 200_000


def read_record(session: Session, record: dict[str, Any], claim: Claim) -> None:
    """Take into `session` what one record says."""
    payload = record.get("payload")
    if not isinstance(payload, dict):
        session.at(record.get("timestamp"))
        return
    stamps = (payload.get("timestamp"), record.get("timestamp"), payload.get("started_at"), payload.get("completed_at"))
    session.at(next((stamp for stamp in stamps if stamp), None))
    session.in_folder(payload.get("cwd"))
    if record.get("type") == "session_meta":
        _read_meta(session, payload)
        return
    kind = payload.get("type")
    if kind in ("user_message", "agent_message"):
        role = "user" if kind == "user_message" else "assistant"
        _read_text(session, role, payload.get("message"), "event", claim)
    elif kind == "message":
        _read_text(session, payload.get("role"), payload.get("content"), "item", claim)
    else:
        _read_tool(session, payload, kind if isinstance(kind, str) else "")


def _read_meta(session: Session, payload: dict[str, Any]) -> None:
    if not session.root:  # a fork repeats the head of the session that it came from; only the first is its own
        origin = payload.get("forked_from_id") or payload.get("id")
        session.root = origin if isinstance(origin, str) else ""
        source = payload.get("source")
        names = [name for name in (payload.get("originator"), source) if isinstance(name, str)]
        if isinstance(source, dict) and "subagent" in source:
            session.entry = SUB_AGENT
        elif names:
            session.entry = HEADLESS if any("exec" in name for name in names) else INTERACTIVE


def _read_text(session: Session, role: object, content: object, channel: str, claim: Claim) -> None:
    text = text_of(content)
    if role == "user":
        text = without_context(text)
        if not is_noise(text) and not _came_already(session, f"user {channel}", text):
            # A prompt is known in a fork by the session it began in, its text, and how often that came before.
            key = key_of(text)
            session.seen[key] = session.seen.get(key, 0) + 1
            whole = key_of(session.root, key, session.seen[key]) if session.root else ""
            session.asked(text, whole, claim)
    elif role == "assistant" and text.strip() and not _came_already(session, f"assistant {channel}", text.strip()):
        session.replied(text.replace("\0", ""))


def _came_already(session: Session, channel: str, text: str) -> bool:
    """True when the other channel brought this text; each text of one channel answers one of the other."""
    role, _, own = channel.partition(" ")
    other = session.unmatched.setdefault(f"{role} {'item' if own == 'event' else 'event'}", [])
    key = key_of(text)
    if key in other:
        other.remove(key)
        return True
    session.unmatched[channel] = [*session.unmatched.get(channel, []), key][-_MOST_UNMATCHED:]
    return False


def _read_tool(session: Session, payload: dict[str, Any], kind: str) -> None:
    name = payload.get("name")
    if not isinstance(name, str) or not name.strip():
        name = _NAMED_BY_TYPE.get(kind) or (kind if kind.endswith("_tool_call") else "")
    if name:
        add_name(session.tools, tool_name(name.strip()))
    _read_files(session, payload, kind)


def _read_files(session: Session, payload: dict[str, Any], kind: str) -> None:
    """The files of a patch: as the event of its application lists them, or as the call that makes it names them."""
    changes = payload.get("changes") if kind.startswith("patch_apply") else None
    for name in changes if isinstance(changes, dict) else ():
        add_name(session.files, name, most=MAX_FILES)
    for text in (payload.get("input"), payload.get("arguments")):
        if kind.endswith("_call") and isinstance(text, str) and "*** Begin Patch" in text:
            for name in _PATCHED.findall(text, 0, _PATCH_CHARS):
                add_name(session.files, name, most=MAX_FILES)


def without_context(text: str) -> str:
    """A user text without what Codex puts before it: instructions of the project, the environment, the editor."""
    text = text.replace("\0", "").strip()
    if _CONTEXT.match(text) or text.startswith(_DUMP_OPENING) or _DUMP_SEPARATOR in text:
        ends = [match.end() for match in _CONTEXT_END.finditer(text)]
        text = text[ends[-1] :].strip() if ends else ""
    before, found, request = text.partition(_FROM_EDITOR)
    return request.strip() if found and before.lstrip().startswith("# Context from my IDE") else text


CODEX = Source("codex", read_record, folders=FOLDERS)


def harvest_codex(
    location: str | Path,
    *,
    scope: Scope = "all",
    invoked_project: str = "",
    since_iso: str | None = None,
    limit: int = 0,
    on_note: Callable[[str], None] | None = None,
) -> list[SessionDigest]:
    """Digests of the sessions of a Codex home, or of one folder of sessions; otherwise as `harvest_claude`."""
    where = [(CODEX, Path(location))]
    return harvest_once(where, scope=scope, invoked=invoked_project, since_iso=since_iso, limit=limit, on_note=on_note)

"""Chooses from everything that was read the sessions that are wanted, and says why the others are not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from skillopt_sleep.errors import UsageProblem
from skillopt_sleep.harvest.clock import epoch_of
from skillopt_sleep.harvest.common import Scope, Session, pick_project
from skillopt_sleep.harvest.index import Index, Pending
from skillopt_sleep.harvest.origin import SUB_AGENT, engine_heads, is_agent_prompt, is_engine_prompt, is_headless
from skillopt_sleep.harvest.reading import Gathered, Reading, Source, Wanted
from skillopt_sleep.types import SessionDigest


def gather(index: Index, where: Sequence[tuple[Source, Path]], wanted: Wanted) -> Gathered:
    """Read what is new at the locations of sources and choose from all that the consumer has not had, newest first."""
    found = Gathered()
    for source, location in where:
        Reading(index, source, wanted, found).run(location)
    heads = engine_heads(wanted.overrides)
    for pending in index.pending([source.name for source, _ in where], wanted.consumer):
        _choose(index, pending, wanted, heads, found)
    return found


def harvest_once(
    where: Sequence[tuple[Source, Path]],
    *,
    scope: Scope,
    invoked: str,
    since_iso: str | None,
    limit: int,
    on_note: Callable[[str], None] | None,
) -> list[SessionDigest]:
    """Digests of everything at the locations that is wanted, with nothing remembered from or for other times."""
    if isinstance(scope, str) and scope not in ("all", "invoked"):
        raise UsageProblem(f"scope {scope!r}: expected 'all', 'invoked' or a list of project paths.")
    start = since_epoch(since_iso)
    wanted = Wanted(scope, invoked, {source.name: start for source, _ in where}, limit)
    with Index() as index:
        found = gather(index, where, wanted)
    if on_note is not None:
        for note in found.notes():
            on_note(note)
    return found.digests


def since_epoch(since_iso: str | None) -> float:
    """Epoch seconds of a time that a person gave (without an offset: local time); 0 for none.

    Raises UsageProblem when it cannot be read.
    """
    if not since_iso:
        return 0.0
    start = epoch_of(since_iso, naive_is_local=True)
    if start is None:
        raise UsageProblem(f"since {since_iso!r}: no time; write it like 2026-08-04T20:00:00+00:00.")
    return start


def _choose(index: Index, pending: Pending, wanted: Wanted, heads: Sequence[str], found: Gathered) -> None:
    folders = pending.projects
    project = pick_project(folders, wanted.scope, wanted.invoked)
    if project is None:
        found.outside += 1
        return
    if pending.ended < wanted.since[pending.source]:
        found.early += 1
        return
    session = index.session(pending.path)
    reason = why_not(session, heads)
    if reason:
        found.skipped[reason] += 1
    elif wanted.limit and len(found.digests) >= wanted.limit:
        found.backlog += 1
        return
    else:
        found.digests.append(session.digest(pending.path, project))
        found.by_source[pending.source] += 1
        found.dated_by_file += session.dated_by_file
    found.taken[pending.path] = pending.turns


def why_not(session: Session, heads: Sequence[str]) -> str:
    """Why a session is no evidence of a person's work, or an empty text."""
    if session.entry == SUB_AGENT or (session.sub_agent and not session.n_user):
        return "sub-agent"
    if not session.n_user:
        return "repeats another session" if session.repeated else "without a prompt"
    first = session.prompts[0][0]
    if is_agent_prompt(first):
        return "another program"
    if session.n_user > 1:
        return ""
    if is_engine_prompt(first, heads, entry=session.entry):
        return "engine"
    timed = not session.dated_by_file and session.ended is not None and session.started is not None
    seconds = session.ended - session.started if timed else None  # type: ignore[operator]
    return "headless" if is_headless(first, seconds, entry=session.entry) else ""

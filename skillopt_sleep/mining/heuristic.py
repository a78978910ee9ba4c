"""Finds a task in each session without a model: its first request, and how the person took the answer."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable

from skillopt_sleep.show import clip
from skillopt_sleep.types import SessionDigest, TaskRecord

_SHORTEST = 8
INTENT_CHARS = 800
_CONTEXT_CHARS = 600
_PROMPT_CHARS = 200
_SOLUTION_CHARS = 600
_FOLLOW_UPS = "The person went on:"
_TOOLS = 4
_MIXED_FROM = 3


def heuristic_mine(digests: Iterable[SessionDigest], *, max_tasks: int = 40) -> list[TaskRecord]:
    """One task for each session whose first request says something, in the order of the sessions."""
    tasks: list[TaskRecord] = []
    for digest in digests:
        if len(tasks) >= max_tasks:
            break
        if digest.user_prompts and says_something(digest.user_prompts[0]):
            tasks.append(_task(digest))
    return tasks


def session_skill_hint(digest: SessionDigest) -> str:
    """The one skill that a session used; empty when it used none or several."""
    names = {name.strip() for name in digest.skills_used if name.strip()}
    return names.pop() if len(names) == 1 else ""


def says_something(request: str) -> bool:
    """True for a request of at least eight columns; a letter of a wide script fills two."""
    text = request.strip()
    return len(text) >= _SHORTEST or sum(1 + (unicodedata.east_asian_width(c) in "WF") for c in text) >= _SHORTEST


def short_hash(*parts: str) -> str:
    """12 hex digits of the parts, joined as they are."""
    return hashlib.sha256("".join(parts).encode("utf-8", "replace")).hexdigest()[:12]


def outcome_of(digest: SessionDigest) -> str:
    """How a session went: fail after any complaint, success after nothing but praise, mixed when it took long."""
    if any(signal.startswith("neg:") for signal in digest.feedback_signals):
        return "fail"
    if any(signal.startswith("pos:") for signal in digest.feedback_signals):
        return "success"
    return "mixed" if digest.n_user_turns >= _MIXED_FROM else "unknown"


def _task(digest: SessionDigest) -> TaskRecord:
    first = digest.user_prompts[0]
    return TaskRecord(
        id="task_" + short_hash(digest.project, "::", first),
        project=digest.project,
        intent=clip(first.strip(), INTENT_CHARS),
        context_excerpt=_context(digest.user_prompts[1:4]),
        attempted_solution=clip(digest.assistant_finals[-1], _SOLUTION_CHARS) if digest.assistant_finals else "",
        outcome=outcome_of(digest),
        tags=_tags(digest),
        source_sessions=[digest.session_id],
        skill_hint=session_skill_hint(digest),
    )


def _context(prompts: list[str]) -> str:
    if not prompts:
        return ""
    lines = [f"- {clip(prompt.strip(), _PROMPT_CHARS)}" for prompt in prompts]
    return clip("\n".join([_FOLLOW_UPS, *lines]), _CONTEXT_CHARS)


def _tags(digest: SessionDigest) -> list[str]:
    tools = f"tools:{'+'.join(digest.tools_used[:_TOOLS])}" if digest.tools_used else ""
    branch = f"branch:{digest.git_branch}" if digest.git_branch else ""
    return [tag for tag in (tools, branch) if tag]

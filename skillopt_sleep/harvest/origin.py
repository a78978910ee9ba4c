"""Tells a person's own sessions from those that this program or another program held with the agent.

Learning from its own replays would make a night repeat itself, so a session of one prompt is left out when the prompt
is one of this program's, whatever version of the texts is in use.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from skillopt_sleep import prompts

AGENT_VARIABLE = "SKILLOPT_SLEEP_AGENT_MARKERS"
INTERACTIVE = "interactive"
HEADLESS = "headless"
SUB_AGENT = "sub-agent"
PLUGIN_MARKER = "skillopt-sleep plugin command"
_AGENTS = (
    "You are a Claude-Mem, a specialized observer tool",
    "Hello memory agent, you are continuing to observe",
    PLUGIN_MARKER,
)
_FENCED = re.compile(r"^----- DATA \w+ [0-9a-f]{16} -----$", re.MULTILINE)
_STRONG = re.compile(
    r"^## (?:CURRENT SKILL|FAILED TASKS|SUCCESSFUL TASKS)\b"
    r"|^You are (?:a |an )?(?:strict grader|SkillOpt-Sleep|expert (?:success|failure)[- ]pattern analyst)\b"
    r"|\bscor(?:e|ing)\b[^\n]{0,60}\b0\.0 ?(?:-|–|to) ?1\.0\b",
    re.MULTILINE,
)
_WEAK = re.compile(r"^## (?:OUTPUT FORMAT\b|TASK\n|Task\n|SKILL\n|Skill\n)", re.MULTILINE)
_SHORTEST_HEAD = 24
_FAST_SECONDS = 3.0
_FAST_CHARACTERS = 200


def engine_heads(overrides: Path | None = None) -> tuple[str, ...]:
    """The words with which the prompts of this program begin: the package's and the person's own versions."""
    texts = [row[key] for row in prompts.describe(overrides) for key in ("default", "override")]
    heads = (re.split(r"__[A-Z][A-Z_]*?__", text, maxsplit=1)[0].strip() for text in texts)
    return tuple(dict.fromkeys(head for head in heads if len(head) >= _SHORTEST_HEAD))


def is_engine_prompt(prompt: str, heads: Iterable[str], *, entry: str = "") -> bool:
    """True for a prompt that this program made.

    Headings that people write too count only together when the session is known to be interactive.
    """
    start = prompt.lstrip()
    if any(start.startswith(head) for head in heads) or _STRONG.search(prompt) or _FENCED.search(prompt):
        return True
    return len(set(_WEAK.findall(prompt))) > (1 if entry == INTERACTIVE else 0)


def is_agent_prompt(prompt: str) -> bool:
    """True when the first prompt of a session is another program's; a variable adds markers in a comma list."""
    extra = [part.strip() for part in os.environ.get(AGENT_VARIABLE, "").split(",")]
    return any(marker in prompt for marker in (*_AGENTS, *extra) if marker)


def is_headless(prompt: str, seconds: float | None, *, entry: str) -> bool:
    """True when a session of one short prompt was over faster than a person could have read the answer.

    `seconds` is None when it is unknown how long the session took. A session of an agent's own window is a person's.
    """
    fast = seconds is not None and 0 < seconds < _FAST_SECONDS
    return fast and entry != INTERACTIVE and len(prompt) < _FAST_CHARACTERS

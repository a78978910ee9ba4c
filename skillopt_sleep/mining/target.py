"""Keeps the tasks that have to do with one skill."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import PurePath

from skillopt_sleep.types import TaskRecord

_RUN = re.compile(r"[\w.-]+")
_PART = re.compile(r"\W+")
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.*)$", re.MULTILINE)
_SHORTEST = 3
_BODY_WORDS = 180
_PATH_PARTS = 2
_STOP = frozenset(
    """
    about above after again all also and any are because been before being below between both but can could did does
    doing done down during each either else ever every few for from further get got had has have having her here hers
    him his how into its itself just keep like make many may more most much must never new not now off once one only
    other our ours out over own please same see shall she should some such than that the their them then there these
    they this those through too two under until upon use used user users uses using very via want was way well were what
    when where which while who whom why will with within without would yes yet you your yours
    skill skills skill.md readme readme.md agent agents claude codex cursor file files name description section title
    """.split()  # noqa: SIM905 - a list of words reads better as one text
)
_ALSO = {
    "mcp": ("mcp", "model-context-protocol", "tool-server"),
    "conflict": ("conflict", "conflicts", "merge", "rebase", "конфликт", "конфликты", "слияние"),
    "conflicts": ("conflict", "conflicts", "merge", "rebase", "конфликт", "конфликты", "слияние"),
}


def filter_tasks_for_target(tasks: Sequence[TaskRecord], text: str, path: str = "") -> list[TaskRecord]:
    """The tasks that share words with a skill, best first; all of them, unchanged, when none does.

    A task has to share one word with the skill's path or headings, or two with its commonest words.
    """
    strong, weak = keywords(text, path)
    scored = []
    for position, task in enumerate(tasks):
        words = set(tokens(f"{task.intent} {task.context_excerpt} {' '.join(task.tags)}"))
        strong_hits, weak_hits = len(words & strong), len(words & weak)
        if strong_hits >= 1 or weak_hits >= 2:
            scored.append((-(3 * strong_hits + weak_hits), position, task))
    return [task for _, _, task in sorted(scored, key=lambda row: row[:2])] or list(tasks)


def keywords(text: str, path: str = "") -> tuple[frozenset[str], frozenset[str]]:
    """(strong, weak) words of a skill: those of its path and headings; those and its 180 commonest words."""
    named = " ".join(PurePath(path.replace("\\", "/")).parts[-_PATH_PARTS:]) if path else ""
    strong = set(tokens(named)) | {word for heading in _HEADING.findall(text) for word in tokens(heading)}
    for word in tuple(strong):
        strong.update(_ALSO.get(word, ()))
    counts = Counter(tokens(text))
    common = sorted(counts, key=lambda word: (-counts[word], word))[:_BODY_WORDS]
    return frozenset(strong), frozenset(strong) | frozenset(common)


def tokens(text: str) -> list[str]:
    """Lower-case runs of word characters, dots and hyphens, each with its parts; short, common and numeric ones not."""
    return list(_tokens(text))


def _tokens(text: str) -> Iterable[str]:
    for run in _RUN.findall(text.lower()):
        whole = run.strip(".-")
        for word in dict.fromkeys([whole, *_PART.split(whole)]):
            if len(word) >= _SHORTEST and not word.isdigit() and word not in _STOP:
                yield word

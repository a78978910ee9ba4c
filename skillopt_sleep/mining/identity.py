"""Which tasks are the same piece of work, however they are worded.

Tasks of one project belong together when they come from one session, when their requests are equal up to case,
punctuation and filling words, or when they share nearly all of their words. Two requests that differ on both sides in a
word that matters ("the paper on attention", "the paper on diffusion") are two tasks of one kind and stay apart.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

from skillopt_sleep.mining.heuristic import says_something
from skillopt_sleep.types import TaskRecord

SAME_WITH_ADDITION = 0.6
SAME_WITH_EXCHANGE = 0.85
_SHARED = 3

_WORD = re.compile(r"[^\W_]+")
_CONTINUOUS = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+")
_FILLING_WORDS = """
    a an and are at be by can could for from good hello hey hi i in is it its just kindly like me my now of on or our
    please so some that the their them then there this to us want was we will with would you your
"""
_FILLING = frozenset(_FILLING_WORDS.split())
_ENDINGS = ("ing", "ed", "es", "s")
_SHORTEST_STEM = 3


def normalised(text: str) -> str:
    """The words of a request in lower case, with everything else as one space."""
    return " ".join(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


def content_words(text: str) -> frozenset[str]:
    """The words of a request without filling and endings; pairs of letters where a script has no spaces."""
    return frozenset(_content(normalised(text)))


def similarity(one: frozenset[str], other: frozenset[str]) -> float:
    """Shared words over all words, 0..1."""
    return len(one & other) / len(one | other) if one or other else 0.0


def same_work(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two requests, as content words, ask for the same.

    With additions on one side only, six of ten words have to be shared and at least three; with words exchanged, 85 %.
    """
    alike = similarity(one, other)
    if alike == 1.0:
        return True
    added = one <= other or other <= one
    return alike >= (SAME_WITH_ADDITION if added else SAME_WITH_EXCHANGE) and len(one & other) >= _SHARED


def group_keys(tasks: Sequence[TaskRecord]) -> dict[str, str]:
    """The group of each task by id; a group is named by its first task, so adding tasks at the end renames none."""
    groups = _Groups()
    first: dict[tuple[str, str, str], str] = {}
    words: list[tuple[str, str, frozenset[str]]] = []
    for task in tasks:
        groups.add(task.id)
        for kind, name in _ties(task):
            groups.join(task.id, first.setdefault((task.project, kind, name), task.id))
        if says_something(task.intent):
            mine = content_words(task.intent)
            for project, other, theirs in words:
                if project == task.project and same_work(mine, theirs):
                    groups.join(task.id, other)
            if mine:
                words.append((task.project, task.id, mine))
    return groups.keys()


def straddling(tasks: Sequence[TaskRecord]) -> list[list[str]]:
    """The groups (as task ids) whose tasks are not all in one split."""
    keys = group_keys(tasks)
    splits: dict[str, set[str]] = {}
    for task in tasks:
        splits.setdefault(keys[task.id], set()).add(task.split)
    wrong = [key for key, found in splits.items() if len(found) > 1]
    return [[task.id for task in tasks if keys[task.id] == key] for key in wrong]


def closest(task: TaskRecord, others: Sequence[TaskRecord]) -> TaskRecord:
    """The one of `others` whose request is equal to that of `task`, else most like it; the first of several."""
    mine, words = normalised(task.intent), content_words(task.intent)

    def likeness(other: TaskRecord) -> tuple[bool, float]:
        return normalised(other.intent) == mine, similarity(words, content_words(other.intent))

    return max(others, key=likeness)


def _ties(task: TaskRecord) -> Iterator[tuple[str, str]]:
    """What binds a task to others for certain."""
    yield "id", task.derived_from or task.id
    for session in task.source_sessions:
        if session:
            yield "session", session
    if says_something(task.intent):
        yield "request", normalised(task.intent)


def _content(text: str) -> Iterator[str]:
    for word in text.split():
        if _CONTINUOUS.search(word):
            yield from (word[at : at + 2] for at in range(max(1, len(word) - 1)))
        elif word not in _FILLING:
            yield _stem(word)


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM and not word.endswith("ss"):
            return word[: -len(ending)]
    return word


class _Groups:
    """Sets of ids that are joined step by step; each is named by the id that was added first."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}
        self._order: dict[str, int] = {}

    def add(self, name: str) -> None:
        self._parent.setdefault(name, name)
        self._order.setdefault(name, len(self._order))

    def join(self, one: str, other: str) -> None:
        first, second = sorted((self._root(one), self._root(other)), key=self._order.__getitem__)
        self._parent[second] = first

    def keys(self) -> dict[str, str]:
        return {name: self._root(name) for name in self._parent}

    def _root(self, name: str) -> str:
        while self._parent[name] != name:
            self._parent[name] = self._parent[self._parent[name]]
            name = self._parent[name]
        return name

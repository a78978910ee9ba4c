"""Does a new skill text hold what it must not: item ids, held-out answers, the grader's own patterns, secrets?

Pure and linear: a text is read once and looked up in tables that are built once per run. Only what a candidate adds
counts; what the skill before it held already is left to its owner.

What counts as a leak:

- an item id of any split that has at least 4 characters, among them a letter and a digit, standing by itself (no letter
  or digit right before or after it). Plain words and plain numbers are ordinary text, so such ids are not looked for.
- an answer of a validation or test item that has at least 4 words, as a sequence of words: case, white space and
  punctuation do not matter. In scripts written without spaces two characters count as one word. What a training item
  shows (its question and its answers) may be quoted, also where a held-out item has the same answer.
- a regular expression by which the grader recognizes answers, with or without its flags and anchors.
- a secret: one of the run's own, a labelled one ("api_key: ...") or a well-known key shape. Placeholders and plain
  words after a label ("password: required") are not secrets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from skillopt.scoring.normalize import casefold_text
from skillopt.skill.document import Skill
from skillopt.utils.redact import secret_values

LeakKind = Literal["item_id", "answer", "pattern", "secret", "literal"]

SHORTEST_ID = 4
SHORTEST_ANSWER = 4  # words
_SHORTEST_LITERAL = 4
_SHORTEST_PATTERN = 6
_TRAIN = "train"
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_IN_WORD = re.compile(rf"[^\W{_UNSPACED}]")
_FLAGS = re.compile(r"^\(\?[aiLmsux]+\)")
_META = re.compile(r"[\\^$*+?()\[\]{}|]")
_PLAIN_WORD = re.compile(r"[A-Za-z]?[a-z]{3,23}[.:!?]*")
_OPEN = ("<", "$", "[", "{", "%", "*")


@dataclass(frozen=True, slots=True)
class KnownItem:
    """One item of the data: its split (`train`, `val`, `test`), what it asks, and every answer that is right."""

    split: str
    id: str
    answers: tuple[str, ...] = ()
    question: str = ""


@dataclass(frozen=True, slots=True)
class Leak:
    """One thing that a text must not hold. `split` and `item` say whose it is, where it belongs to an item."""

    kind: LeakKind
    split: str = ""
    item: str = ""

    @property
    def refuses(self) -> bool:
        """Whether a candidate with it is refused; otherwise it is only worth a notice."""
        return self.kind != "literal"

    @property
    def reason(self) -> str:
        """For the person who reads the run: what was found and whose it is, without the text itself."""
        whose = f"the {self.split} item {self.item!r}" if self.item else "the data"
        return {
            "item_id": f"names {whose}",
            "answer": f"holds the answer of {whose} word for word",
            "pattern": "quotes a regular expression of the grader",
            "literal": f"holds a text that the grader looks for in {whose}",
            "secret": "holds what looks like a secret",
        }[self.kind]

    @property
    def advice(self) -> str:
        """For the optimizer: what kind of thing was found. Neither the text nor the item it belongs to is told."""
        return {
            "item_id": "it named single tasks by their id; write rules that hold for tasks nobody has seen yet",
            "answer": "it copied the answer of a single task; write how to find such answers instead",
            "pattern": "it quoted how answers are graded; describe the form of a good answer in plain words",
            "literal": "it holds a text that the grader looks for; a rule should help the task, not the grader",
            "secret": "it held something that looks like a password or a key; leave such values out",
        }[self.kind]


@dataclass(frozen=True, slots=True)
class _Ids:
    """Ids by their first word, so that a text is compared with few of them at each of its words."""

    known: Mapping[str, KnownItem]
    places: Mapping[str, frozenset[tuple[int, int]]]  # first word -> (characters before it, length of the id)

    @classmethod
    def of(cls, items: Iterable[KnownItem]) -> _Ids:
        known: dict[str, KnownItem] = {}
        places: dict[str, set[tuple[int, int]]] = {}
        for item in items:
            folded = casefold_text(item.id)
            first = _WORD.search(folded)
            if first is not None and is_telling_id(folded):
                known.setdefault(folded, item)
                places.setdefault(first[0], set()).add((first.start(), len(folded)))
        return cls(known, {word: frozenset(found) for word, found in places.items()})

    def found(self, text: str, words: Sequence[re.Match[str]]) -> Iterable[Leak]:
        for word in words:
            for before, length in self.places.get(word[0], ()):
                start = word.start() - before
                end = start + length
                item = self.known.get(text[start:end]) if start >= 0 and end <= len(text) else None
                if item is not None and _stands_alone(text, start, end):
                    yield Leak("item_id", item.split, item.id)


@dataclass(frozen=True, slots=True)
class _Answers:
    """Answers as sequences of words, by their first four."""

    known: Mapping[tuple[str, ...], KnownItem]
    lengths: Mapping[tuple[str, ...], frozenset[int]]

    @classmethod
    def of(cls, items: Iterable[KnownItem]) -> _Answers:
        known: dict[tuple[str, ...], KnownItem] = {}
        lengths: dict[tuple[str, ...], set[int]] = {}
        for item in items:
            for answer in item.answers:
                words = tuple(_WORD.findall(casefold_text(answer)))
                if _weight(words) >= SHORTEST_ANSWER:
                    known.setdefault(words, item)
                    lengths.setdefault(words[:SHORTEST_ANSWER], set()).add(len(words))
        return cls(known, {first: frozenset(found) for first, found in lengths.items()})

    def found(self, words: Sequence[str]) -> Iterable[tuple[str, ...]]:
        for start in range(len(words) - SHORTEST_ANSWER + 1):
            for length in self.lengths.get(tuple(words[start : start + SHORTEST_ANSWER]), ()):
                phrase = tuple(words[start : start + length])
                if phrase in self.known:
                    yield phrase

    def without(self, texts: Iterable[str]) -> _Answers:
        """The answers that none of `texts` holds."""
        quoted = {phrase for text in texts for phrase in self.found(_WORD.findall(casefold_text(text)))}
        return _Answers({phrase: item for phrase, item in self.known.items() if phrase not in quoted}, self.lengths)


@dataclass(frozen=True, slots=True)
class HeldOut:
    """What no new text of a run may hold, in tables for quick lookup. Build it once per run with `of_items`."""

    ids: _Ids = field(default_factory=lambda: _Ids({}, {}), repr=False)
    answers: _Answers = field(default_factory=lambda: _Answers({}, {}), repr=False)
    patterns: tuple[str, ...] = field(default=(), repr=False)
    literals: tuple[str, ...] = field(default=(), repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def of_items(
        cls,
        items: Sequence[KnownItem],
        *,
        patterns: Iterable[str] = (),
        literals: Iterable[str] = (),
        secrets: Iterable[str] = (),
    ) -> HeldOut:
        """Tables over all items of a run.

        `patterns`: regular expressions of the grader. `literals`: texts that the grader looks for inside an answer.
        `secrets`: values that must not be shown, such as API keys.
        """
        held = _Answers.of(item for item in items if item.split != _TRAIN)
        shown = (text for item in items if item.split == _TRAIN for text in (item.question, *item.answers))
        return cls(
            _Ids.of(items),
            held.without(shown) if held.known else held,
            tuple(dict.fromkeys(core for core in map(_pattern_core, patterns) if core)),
            tuple(dict.fromkeys(text for text in map(casefold_text, literals) if _is_telling_literal(text))),
            tuple(dict.fromkeys(secrets)),
        )


def find_new_leaks(candidate: Skill, current: Skill, held_out: HeldOut) -> tuple[Leak, ...]:
    """What `candidate` holds and `current` does not, each once, ids first.

    Takes time proportional to the size of both texts, however many items the data has.
    """
    new, old = _whole_text(candidate), _whole_text(current)
    if new == old:
        return ()
    known = _keys(old, held_out)
    return tuple(dict.fromkeys(leak for key, leak in _keys(new, held_out).items() if key not in known))


def is_telling_id(item_id: str) -> bool:
    """Whether an id cannot be an ordinary word or number: 4 characters or more, with a letter and a digit."""
    has_letter = any(char.isalpha() for char in item_id)
    return len(item_id) >= SHORTEST_ID and has_letter and any(char.isdigit() for char in item_id)


def _keys(text: str, held_out: HeldOut) -> dict[tuple[str, object], Leak]:
    """Every leak of a text, under what makes it the same leak in another text."""
    folded = casefold_text(text)
    words = list(_WORD.finditer(folded))
    found: dict[tuple[str, object], Leak] = {("id", leak.item): leak for leak in held_out.ids.found(folded, words)}
    for phrase in held_out.answers.found([word[0] for word in words]):
        item = held_out.answers.known[phrase]
        found["answer", phrase] = Leak("answer", item.split, item.id)
    found.update({("pattern", core): Leak("pattern") for core in held_out.patterns if core in folded})
    for value in secret_values(text, held_out.secrets):
        if value in held_out.secrets or not _is_placeholder(value):
            found["secret", value] = Leak("secret")
    found.update({("literal", part): Leak("literal") for part in held_out.literals if part in folded})
    return found


def _whole_text(skill: Skill) -> str:
    return "\n\n".join((skill.text, *(skill.files[name] for name in sorted(skill.files))))


def _stands_alone(text: str, start: int, end: int) -> bool:
    return not (_glued(text[start - 1 : start], text[start]) or _glued(text[end - 1], text[end : end + 1]))


def _glued(one: str, other: str) -> bool:
    """Whether two neighbouring characters belong to one word."""
    return _IN_WORD.fullmatch(one) is not None and _IN_WORD.fullmatch(other) is not None


def _weight(words: Sequence[str]) -> float:
    """Number of words; a character of a script without spaces is half a word."""
    return sum(0.5 if "\u3040" <= word[0] <= "\u9fff" and len(word) == 1 else 1 for word in words)


def _pattern_core(pattern: str) -> str:
    """The pattern folded, without flags and outer anchors; empty when that is ordinary text."""
    core = casefold_text(_FLAGS.sub("", pattern.strip()).removeprefix("^").removesuffix("$"))
    return core if len(core) >= _SHORTEST_PATTERN and _META.search(core) else ""


def _is_telling_literal(text: str) -> bool:
    return len(text) >= _SHORTEST_LITERAL and not text.isalnum()


def _is_placeholder(value: str) -> bool:
    plain = value.casefold()
    return (
        value.startswith(_OPEN)
        or _PLAIN_WORD.fullmatch(value) is not None
        or any(mark in plain for mark in ("your", "xxxx", "..."))
    )

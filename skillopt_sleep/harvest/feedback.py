"""What a person's words say about the answer before them: `pos:<phrase>` and `neg:<phrase>`.

A phrase counts as whole words. Praise that is negated, or that is part of a negative phrase, is no praise. More phrases
come, in comma lists, from two variables that are read at each use.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import lru_cache

NEGATIVE_VARIABLE = "SKILLOPT_SLEEP_NEG_FEEDBACK"
POSITIVE_VARIABLE = "SKILLOPT_SLEEP_POS_FEEDBACK"
NEGATIVE = (
    "still broken, still not, still wrong, doesn't work, does not work, not working, that's wrong, thats wrong, "
    "incorrect, wrong, nope, fix it, didn't, did not, broken, error again, still failing, still fails, not fixed, "
    "revert, undo"
)
POSITIVE = "thanks, thank you, perfect, great, works now, fixed, that works, lgtm, looks good, nice, awesome, correct"
_NO = "no,"  # holds a comma, so it stands in no list; only an answer begins with it
_NEGATED = re.compile(r"\b(?:not|never|isn't|wasn't|aren't|cannot|can't|hardly|nothing|without|no)(?:\s+\w+)?\s+$")
_CONTINUOUS = 0x2E80  # scripts from here on are written without spaces between words
_MOST = 100


def signals(texts: Iterable[str]) -> list[str]:
    """The signals of several replies in order, each phrase once for each reply, at most 100."""
    found: list[str] = []
    for text in texts:
        found += _of_one(text.casefold().replace("\u2019", "'"))
        if len(found) >= _MOST:
            break
    return found[:_MOST]


def _of_one(text: str) -> list[str]:
    negative, taken = _hits(text, _phrases(NEGATIVE, os.environ.get(NEGATIVE_VARIABLE, "")))
    if re.search(r"(?:^|[.!?\n]\s*)no,", text):
        negative.append(_NO)
    for start, end in taken:
        text = text[:start] + "\0" * (end - start) + text[end:]
    positive, _ = _hits(text, _phrases(POSITIVE, os.environ.get(POSITIVE_VARIABLE, "")))
    return [f"neg:{phrase}" for phrase in negative] + [f"pos:{phrase}" for phrase in positive]


def _hits(text: str, phrases: tuple[tuple[str, re.Pattern[str]], ...]) -> tuple[list[str], list[tuple[int, int]]]:
    """The phrases that occur without a negation before them, and where."""
    names: list[str] = []
    spans: list[tuple[int, int]] = []
    for phrase, pattern in phrases:
        places = [
            m.span() for m in pattern.finditer(text) if not _NEGATED.search(text, max(0, m.start() - 40), m.start())
        ]
        if places:
            names.append(phrase)
            spans += places
    return names, spans


@lru_cache(maxsize=16)
def _phrases(built_in: str, extra: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    names = [part.strip().casefold() for part in f"{built_in},{extra}".split(",")]
    return tuple((name, _pattern(name)) for name in dict.fromkeys(names) if name)


def _pattern(phrase: str) -> re.Pattern[str]:
    before = r"(?<![\w-])" if _is_letter(phrase[0]) else ""
    after = r"(?![\w-])" if _is_letter(phrase[-1]) else ""
    return re.compile(before + r"\s+".join(map(re.escape, phrase.split())) + after)


def _is_letter(character: str) -> bool:
    return character.isalnum() and ord(character) < _CONTINUOUS

r"""Reading which choice an answer names: the score of LiveMathematicianBench.

Unlike the scorer `choice`, which knows only the references, this reads an answer against all choices of an item, and
compares their texts as they are written: `x = 2` is not `x = -2`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from skillopt.scoring.base import RIGHT, Mode, Score, expected_got
from skillopt.scoring.normalize import casefold_text

_LABEL = r"([A-Za-z0-9]{1,2})"
_WRAPPING = " \n*_`\"'“”‘’()[]{}<>.,:;!$\\"
_FONT = re.compile(r"\\(?:text|textbf|textrm|mathbf|mathrm|mathsf|bf|rm)\s?\{([^{}]*)\}")
_BOX = re.compile(r"\\(?:boxed|fbox)\s?\{([^{}]*)\}")
_BOXED = re.compile(rf"\\(?:boxed|fbox)\s?\{{[\s(*]*{_LABEL}[\s)*.:]*\}}")
_OPENING = re.compile(rf"[\s*_`(\[<\"“$]*{_LABEL}\s?(?:[*_`]*[).:;\]>][*_`]*|\s[–—]|(?=\n))(?:\s+|$)(.*)", re.DOTALL)
_JOINING = re.compile(r"^(?:or|and|[,/&])\s?")
_REASONED = re.compile(
    rf"[\s*_`(\[]*{_LABEL}[)\]*_`]*(?:,?\s(?:because|since)|\sis (?:the )?(?:correct|right|best|answer))\b"
)
_LEAD = re.compile(
    r"(?:(?:so|thus|hence|therefore),?\s)?(?:(?:the|my)\s)?(?:(?:final|correct)\s)?answer\s?(?:is\b|[:=])\s?", re.I
)
_STATED = re.compile(
    r"\b(?:answer|option|choice)\b(?:\s(?:is|must be|should be)\b)?\s?[:=]?\s?"
    rf"(?:(?:the\s)?(?:option|choice|letter|label)\s)?[\s*_`(\[\"“$]*{_LABEL}(?![\w'’])",
    re.IGNORECASE,
)
_END = re.compile(r"[\s*_`)\]\"”$}]*(?:$|\n|[.,;:!?)](?!\w)|(?:because|since|as|by|is (?:correct|right|true))\b)")
_LAST = re.compile(r"[*_`)\]\"”$}.!]*\s?(?:$|\n)")
_ALSO = re.compile(
    rf"[\s*_`)\].]*(?:[,/&]|\bor\b|\band\b)\s?(?:or |and )?(?:option )?[(\[*_`]*{_LABEL}(?![\w'’])", re.I
)
_DENIED = re.compile(r"(?:\b(?:not|never|neither|nor)|n['’]t)\s(?:the |an? )?(?:correct |right )?$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reading:
    """The choice that an answer names. `label` is empty where it names none or several; `note` then says why.

    `text`: the text of that choice, or the answer as given.
    """

    label: str
    text: str
    note: str = ""


def read_label(answer: str, choices: Mapping[str, str], mode: Mode = "strict") -> Reading:
    r"""The choice that `answer` names; `choices` gives the text of each label, with labels in capitals.

    `strict` accepts, in this order: the label alone, in any dress (`B`, `b.`, `(B)`, `**B**`, `\boxed{B}`); the text of
    a choice; a label before a text or a reason (`B) x = 2`, `B: because`, `B because`); and in a sentence what follows
    "answer", "option" or "choice" (`Option B`, `The answer is B`), or stands in a box. A lower-case letter in a
    sentence counts only at the end of its line. Different labels, or a label before the text of another choice, name
    none. No other letter of a sentence is a label, so "A good choice is B" is B.

    `paper`: the published rule. The answer in capitals without `.):` at its end, if that is a label; the text of a
    choice; the first word, if that is a label. The first word of a sentence may be the label A. An answer that names
    no choice is its own label.
    """
    if mode == "paper":
        return _published(answer, choices)
    text = _spaced(answer)
    if not text:
        return Reading("", answer, "the answer is empty")
    found = _whole(text, choices) or _opening(text, choices)
    if not found:
        lead = _LEAD.match(text)
        found = (_whole(text[lead.end() :], choices) if lead else None) or _in_sentence(text, choices)
    return found if found.label else Reading("", answer, found.note)


def score_label(answer: str, correct: str, choices: Mapping[str, str], mode: Mode = "strict") -> Score:
    """1 if `answer` names the choice `correct`, or one with the same text, else 0."""
    reading = read_label(answer, choices, mode)
    if reading.label == correct:
        return RIGHT
    if mode == "strict" and reading.label and reading.text.strip() == choices.get(correct, "").strip():
        return RIGHT
    return Score(0.0, 0.0, expected_got(f"{correct}. {choices.get(correct, '')}", answer, reading.note))


def _spaced(text: str) -> str:
    """`text` with single spaces and line ends."""
    return "\n".join(line for line in (" ".join(part.split()) for part in text.splitlines()) if line)


def _undressed(text: str) -> str:
    r"""`text` without `\boxed{}`, `\text{}` and the like around its parts."""
    return _FONT.sub(r"\1", _BOX.sub(r"\1", _FONT.sub(r"\1", text)))


def _whole(text: str, choices: Mapping[str, str]) -> Reading | None:
    """The choice that the whole text is, by label or by its own text."""
    bare = _undressed(text).strip(_WRAPPING).upper()
    if bare in choices:
        return Reading(bare, choices[bare])
    for form in (casefold_text, _text_form):
        wanted = form(text)
        for label, choice in choices.items():
            if wanted and form(choice) == wanted:
                return Reading(label, choice)
    return None


def _text_form(text: str) -> str:
    return casefold_text(_undressed(text)).strip(" .$*`").removeprefix("\\(").removesuffix("\\)").strip()


def _opening(text: str, choices: Mapping[str, str]) -> Reading | None:
    """The choice whose label opens the text and is followed by its text or a reason."""
    plain = _undressed(text)
    reasoned = _REASONED.match(plain)
    if reasoned and reasoned[1] in choices:
        return Reading(reasoned[1], choices[reasoned[1]])
    match = _OPENING.match(plain)
    label = match[1].upper() if match else ""
    if match is None or label not in choices:
        return None
    rest = match[2]
    other = _whole(_JOINING.sub("", rest), choices) if rest.strip(_WRAPPING) else None
    if other and other.label != label and casefold_text(other.text) != casefold_text(choices[label]):
        return Reading("", text, f"names {label} and {other.label}; give one label only")
    return Reading(label, choices[label])


def _in_sentence(text: str, choices: Mapping[str, str]) -> Reading:
    """The choice that a sentence names by a clear pattern, or the reason why it names none."""
    named = dict.fromkeys(_stated(text, choices))
    if len(named) == 1:
        label = next(iter(named))
        return Reading(label, choices[label])
    if named:
        return Reading("", text, f"names {', '.join(named)}; give one label only")
    return Reading("", text, "names no choice; give its label")


def _stated(text: str, choices: Mapping[str, str]) -> Iterator[str]:
    yield from (match[1].upper() for match in _BOXED.finditer(_FONT.sub(r"\1", text)) if match[1].upper() in choices)
    plain = _undressed(text)
    for match in _STATED.finditer(plain):
        label = match[1].upper()
        if label not in choices or _DENIED.search(plain[max(0, match.start() - 30) : match.start()]):
            continue
        also = _ALSO.match(plain, match.end())
        both = also is not None and also[1] in choices and _END.match(plain, also.end()) is not None
        if both or (_END if match[1] == label else _LAST).match(plain, match.end()):
            yield label
        if both and also is not None:
            yield also[1]


def _published(answer: str, choices: Mapping[str, str]) -> Reading:
    text = answer.strip()
    label = text.upper().rstrip(".):")
    if label in choices:
        return Reading(label, choices[label])
    for name, choice in choices.items():
        if choice.strip().lower() == text.lower():
            return Reading(name, choice)
    first = (text.upper().split() or [""])[0].rstrip(".):")
    return Reading(first, choices[first]) if first in choices else Reading(text, text)

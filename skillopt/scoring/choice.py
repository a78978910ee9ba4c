"""The scorer for multiple choice: a letter, the text of an option, or both."""

from __future__ import annotations

import re
from dataclasses import dataclass

from skillopt.errors import ConfigError
from skillopt.scoring.base import RIGHT, Score, Scorer, expected_got
from skillopt.scoring.normalize import casefold_text, squad_text

_MARKER = re.compile(r"(?:\b(?:answer|choice|option)\b(?:\s+is\b)?\s*:?\s*)+", re.IGNORECASE)
_WRAPPING = " \t\r\n*_`\"'“”‘’()[]{}<>.,:;!$"
_SIGNS = re.compile(r"[+=<>≤≥≠^/%]|(?<!\w)[-−](?=[\w.(])|(?<=\s)[-−](?=\s)|(?<=[0-9])\.(?=[0-9])|(?<![\w.])\.(?=[0-9])")
_BOXED = re.compile(r"\\(?:boxed|text|textbf)\s*\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Choice(Scorer):
    """The answer names the right option of a multiple-choice question.

    A reference is a letter (`B`), a letter with its text (`B. Paris`, `(B) Paris`) or a text (`Paris`). Give letter and
    text as two references, or in one, to accept either. In the answer a letter counts if it stands alone (`B`, `(b)`,
    `**B**`), opens a line as a label (`B. Paris`), stands in brackets, follows "answer", "answer is", "option" or
    "choice", or is a capital letter standing by itself in a sentence (a capital A or I before a lower-case word is a
    word, not a letter, except before and, as, because, is, or, since). What follows "answer" goes before the rest of
    the text. Two different letters are ambiguous and wrong. Without a letter the whole answer is compared with the
    option's text: in SQuAD normal form, and with the same signs of arithmetic, such as minus, less than, decimal point.
    Denials are not understood: "not B" names B.

    `letters`: the labels that exist, in capitals, default A to J.
    """

    letters: str = "ABCDEFGHIJ"

    def __post_init__(self) -> None:
        if not re.fullmatch("[A-Z]+", self.letters):
            raise ConfigError(f"scorer 'choice': letters is {self.letters!r}; expected capitals such as 'ABCD'.")

    def _compare(self, answer: str, reference: str) -> Score:
        if casefold_text(answer) == casefold_text(reference):
            return RIGHT
        wanted, wanted_text = self._split_label(reference)
        part = _answer_part(answer)
        if wanted_text and _same_text(wanted_text, part):
            return RIGHT
        given = self._letters_in(part)
        if len(given) > 1:
            note = f"names {', '.join(sorted(given))}; give one letter only"
            return Score(0.0, 0.0, expected_got(reference, answer, note))
        label, text = self._split_label(part)
        wrong = Score(0.0, 0.0, expected_got(reference, answer))
        if given and wanted:
            return RIGHT if given == {wanted} else wrong
        return RIGHT if wanted_text and label and _same_text(wanted_text, text) else wrong

    def _split_label(self, text: str) -> tuple[str, str]:
        """Letter and text of `B. Paris`; the letter is empty if the text has none."""
        bare = text.strip(_WRAPPING)
        if self._is_letter(bare):
            return bare.upper(), ""
        match = re.match(r"[\s*_`(\[]*([A-Za-z])\s*[).:\]]+[*_`]*\s+(\S.*)", text, re.DOTALL)
        if match and self._is_letter(match[1]):
            return match[1].upper(), match[2].strip()
        return "", text.strip()

    def _is_letter(self, text: str) -> bool:
        return len(text) == 1 and text.upper() in self.letters

    def _letters_in(self, text: str) -> set[str]:
        label, rest = self._split_label(text)
        if label and not rest:
            return {label}
        found = {match[1].upper() for match in re.finditer(r"[(\[]([A-Za-z])[)\]]", text)}
        found |= {
            match[1]
            for match in re.finditer(
                r"(?<![\w'’.-])([A-Z])(?![\w'’]|\.\w|-\w)(?!(?<=[AI])[^\S\n]+(?!(?:and|as|because|is|or|since)\b)[a-z])",
                text,
            )
        }
        if label:
            found.add(label)
        return {letter for letter in found if letter in self.letters}


def _same_text(left: str, right: str) -> bool:
    return squad_text(left) == squad_text(right) and _SIGNS.findall(left) == _SIGNS.findall(right)


def _answer_part(text: str) -> str:
    """What the text itself calls its answer: the rest of each line with such a word, or else the whole text."""
    plain = _BOXED.sub(r" \1 ", text).replace("\r", "\n")
    parts: list[str] = []
    end = 0
    for match in _MARKER.finditer(plain):
        if match.start() < end:
            continue
        end = plain.find("\n", match.end())
        end = len(plain) if end < 0 else end
        part = plain[match.end() : end]
        if part.strip(_WRAPPING):
            parts.append(part)
    return "\n".join(parts) if parts else plain

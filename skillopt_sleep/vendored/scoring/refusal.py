# A copy of skillopt/scoring/refusal.py, made by scripts/vendor.py: change the original, then run that.
"""Is a text nothing but a refusal? Pure, in time linear in the length of the text."""

from __future__ import annotations

import re

_LONGEST = 600
"""Characters above which a text is taken for an answer, whatever it begins with."""
_MARKS = " \t\r\n>*_#`\"'-~\u201c\u201d\u2018\u2019"
_SORRY = r"(?:(?:i['’]?m|i am|we['’]?re|we are)\s+(?:very\s+|so\s+|really\s+|truly\s+)?sorry|sorry|unfortunately|no|"
_SORRY += r"(?:my |i )?apolog(?:ies|i[sz]e))"
_OPENING = re.compile(rf"{_SORRY}\b[\s,.;:!—–-]*(?:but\b|for\b[^.,;:]{{0,60}}[.,;:]\s*(?:but\b)?)?\s*", re.IGNORECASE)
_SUBJECT = r"(?:i|we|as an? (?:ai|artificial|language|large)[^,.]{0,60},?\s+i)"
_NEGATED = (
    r"(?:can['’]?t|cannot|can not|won['’]?t|will not|(?:must|have to)\s+(?:decline|refuse)|decline\s+to|refuse\s+to|"
    r"(?:am|['’]m|are|['’]re)\s+(?:(?:not able|unable|not allowed)\s+to|not\s+(?:comfortable|going)))"
)
_HELP = (
    r"\b(?:help|assist|comply|do (?:that|this|so)|fulfil?l|provide|support|engage|participate|continue|create|generate|"
    r"answer|write|produce|discuss|with)\b"
)
_FILLING = r"(?:\s+(?:be|able|to|just|really|directly|simply|even)){0,4}"
_DECLINES = re.compile(rf"{_SUBJECT}\s*{_NEGATED}{_FILLING}\s*(?:{_HELP}|[.!]|$)", re.IGNORECASE)
_SAID_NO = re.compile(r"(?:the |this )(?:request )?(?:is|was) (?:refused|declined)\b", re.IGNORECASE)


def is_refusal(text: str) -> bool:
    """True for a text that only declines: "> I'm sorry, I can't help with that."

    Quote marks, Markdown and any number of `>` before it do not hide it. A text that declines and then goes on to
    answer (it is long, or holds a code block or a JSON object) is no refusal, nor is "Sorry, I can help: …".
    """
    said = text.strip(_MARKS).replace("*", "").replace("_", " ")
    if not said or len(said) > _LONGEST or "```" in said or ("{" in said and "}" in said):
        return False
    opening = _OPENING.match(said)
    rest = said[opening.end() :] if opening else said
    return bool(_DECLINES.match(rest) or _SAID_NO.match(rest))

# A copy of skillopt/utils/invisible.py, made by scripts/vendor.py: change the original, then run that.
"""Characters that a reader cannot see but a model obeys: find them, remove them, show them.

Zero-width characters, direction overrides, tag characters, control codes and runs of variation selectors can hide
instructions in a file. Joiners (U+200C, U+200D) are needed by many scripts and emoji, so one that stands between
two visible non-ASCII characters is left alone.
"""

from __future__ import annotations

import re

_HIDDEN = (
    "\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"
    "\U000e0000-\U000e007f"
)
_CONTROLS = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
_JOINED = f"[^\x00-\x7f\u200c\u200d{_HIDDEN}{_CONTROLS}]"
_INVISIBLE = re.compile(
    f"[{_HIDDEN}{_CONTROLS}]"
    f"|(?<!{_JOINED})[\u200c\u200d]"
    f"|[\u200c\u200d](?!{_JOINED})"
    "|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2,}"
)
_SURROGATE = re.compile("[\ud800-\udfff]")


def flag_invisible(text: str) -> tuple[str, ...]:
    """Names ("U+200B") of the hidden characters in `text`, each once, in the order in which they first appear."""
    names = (f"U+{ord(char):04X}" for match in _INVISIBLE.finditer(text) for char in match.group())
    return tuple(dict.fromkeys(names))


def strip_invisible(text: str) -> str:
    """`text` without the characters that `flag_invisible` names."""
    return _INVISIBLE.sub("", text)


def escape_invisible(text: str) -> str:
    r"""`text` with hidden characters and lone surrogates written as `\uXXXX`, so that a person sees them."""
    return _SURROGATE.sub(_escape, _INVISIBLE.sub(_escape, text))


def replace_surrogates(text: str) -> str:
    """`text` with every lone surrogate, which UTF-8 cannot store, replaced by U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)


def _escape(match: re.Match[str]) -> str:
    return "".join(f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}" for char in match.group())

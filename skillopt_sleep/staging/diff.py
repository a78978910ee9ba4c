"""What a night would change, as a unified diff that is safe to show in a terminal."""

from __future__ import annotations

import difflib
import unicodedata

from skillopt_sleep.redact import redact_secrets

_HIDDEN = ("Cc", "Cf", "Zl", "Zp", "Cs", "Co", "Cn")


def unified(before: str, after: str, *, label: str, absent: bool = False) -> str:
    """The diff of two texts; "" when they are equal. `absent`: there is no file yet.

    Control and invisible characters are written out (`\\x1b`, `\\u202e`), secrets are redacted, so the text is for
    reading and not for `patch`.
    """
    old, new = _by_newline(before), _by_newline(after)
    source = "/dev/null" if absent else f"a/{label}"
    lines = difflib.unified_diff(old, new, fromfile=source, tofile=f"b/{label}")
    return "".join(_line(line) for line in lines)


def visible(text: str) -> str:
    """`text` with every character that a terminal would act on, or that nobody sees, written out."""
    return "".join(letter if _plain(letter) else _escaped(letter) for letter in text)


def _by_newline(text: str) -> list[str]:
    """Lines that end at a line feed only: a carriage return is part of its line."""
    parts = text.split("\n")
    return [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _line(line: str) -> str:
    body = line.removesuffix("\n")
    shown = visible(str(redact_secrets(body))) + "\n"
    ended = line.endswith("\n") or line.startswith(("---", "+++", "@@"))
    return shown if ended else shown + "\\ No newline at end of file\n"


def _plain(letter: str) -> bool:
    return letter == "\t" or unicodedata.category(letter) not in _HIDDEN


def _escaped(letter: str) -> str:
    code = ord(letter)
    if letter == "\r":
        return "\\r"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

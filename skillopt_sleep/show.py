"""Makes text of models and transcripts safe to show: in a terminal, in a Markdown report, in JSON."""

from __future__ import annotations

import html
import math
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from skillopt_sleep.redact import redact_secrets

DASH = "\u2014"
# CSI ... final byte; OSC, DCS, SOS, PM and APC ... up to their end; any other two-character escape.
_ANSI = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x9c|\x1b\\)?"
    r"|\x1b[ -/]*[0-~]?"
)
_SPACES = re.compile(r"\s+")
_MARKUP = re.compile(r"([\\*_\[\]()#+!{}])")


def plain_line(text: object) -> str:
    """`text` on one line: escape sequences gone, control and format characters as spaces, spaces collapsed."""
    cleaned = _ANSI.sub("", str(text))
    shown = "".join(
        " " if unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp") else letter for letter in cleaned
    )
    return _SPACES.sub(" ", shown).strip()


def terminal_line(text: object, limit: int = 0) -> str:
    """`plain_line` of the redacted text, cut to `limit` characters when that is not 0."""
    line = plain_line(redact_secrets(str(text)))
    return clip(line, limit) if limit else line


def table_cell(text: object) -> str:
    """The redacted text as one cell of a Markdown table: HTML, pipes and backticks become entities."""
    return _entities(terminal_line(text))


def prose(text: object) -> str:
    """The redacted text within Markdown prose: as a table cell, with what would be markup escaped."""
    return _entities(_MARKUP.sub(r"\\\1", terminal_line(text)))


def score_text(value: object) -> str:
    """A score with three decimals; an em dash for what is missing or not finite."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return DASH
    return f"{value:.3f}"


def scores_text(before: object, after: object, *, action: object, status: object) -> str:
    """The held-out scores of a night; `not measured` where its gate never decided, or calls that failed left none."""
    if not action or status == "degraded" or (before is None and after is None):
        return "not measured"
    return f"{score_text(before)} -> {score_text(after)}"


def counted(number: int, noun: str) -> str:
    """`1 session`, `2 sessions`: a number with a noun whose plural ends in s."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def quoted(name: object) -> str:
    """A name as quoted data in plain ASCII, which no terminal and no shell takes for anything else."""
    return ascii(plain_line(name))


def clip(text: str, limit: int) -> str:
    """`text` cut to `limit` characters, then a space and an ellipsis; unchanged when it is short enough."""
    return text if len(text) <= limit else text[:limit].rstrip() + " \u2026"


def _entities(text: str) -> str:
    return html.escape(text, quote=False).replace("|", "&#124;").replace("`", "&#96;")


def json_safe(value: Any) -> Any:
    """`value` for JSON: numbers that are not finite become None, tuples and sets lists, other objects their text."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): json_safe(item) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return [json_safe(item) for item in sorted(value, key=str)]
    if isinstance(value, (list, tuple)):
        return [json_safe(item) for item in value]
    to_dict = getattr(value, "to_dict", None)
    return json_safe(to_dict()) if callable(to_dict) else str(value)

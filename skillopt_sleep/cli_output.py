"""What the commands print: one JSON document, or lines that no terminal takes for anything but text."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from skillopt_sleep.redact import redact_secrets
from skillopt_sleep.show import counted, json_safe, plain_line, terminal_line


def print_json(value: Mapping[str, Any]) -> None:
    """One document on stdout, in plain ASCII, with secrets taken out."""
    print(json.dumps(json_safe(redact_secrets(dict(value))), indent=2, allow_nan=False))


def line(text: object, limit: int = 0) -> None:
    """One line on stdout."""
    print(terminal_line(text, limit))


def notice(text: object) -> None:
    """One line on stderr."""
    print(terminal_line(text), file=sys.stderr)


def text_block(text: str) -> None:
    """A text of several lines, each made safe; the spaces that begin a line are kept."""
    for row in str(redact_secrets(text)).split("\n"):
        indent = len(row) - len(row.lstrip(" "))
        print(" " * min(indent, 12) + plain_line(row))


def replayed_tasks(found: int, replayed: int) -> str:
    """How many tasks a night had, and how many of them it replayed where these are not all."""
    return counted(found, "task") + (f" ({replayed} replayed)" if replayed != found else "")


def waiting_prompts(number: int) -> str:
    """That so many prompts of a handoff have no answer yet."""
    return f"{counted(number, 'prompt')} {'waits' if number == 1 else 'wait'} for an answer"


def lines(rows: Iterable[object]) -> None:
    """Several lines on stdout."""
    for row in rows:
        line(row)

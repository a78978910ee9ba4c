"""Says to people that other models answer than in the night before."""

from __future__ import annotations

import sys

from skillopt_sleep.phases.context import Night
from skillopt_sleep.show import terminal_line


def tell_change(night: Night, key: str, *, aloud: bool) -> None:
    """Note that the models changed since the last night, whose scores then do not compare; `aloud`: on stderr too."""
    last = night.state.last_model_key
    if night.state.last_model_key_format != 2 or last in ("", key):
        return
    text = (
        f"The models changed since the last night: it was {models_in_words(last)}, now it is {models_in_words(key)}. "
        "Scores of the two nights do not compare."
    )
    night.report.notes.append(text)
    if aloud:
        sys.stderr.write(f"[sleep] {text}\n")


def models_in_words(key: str) -> str:
    """A key of models for people: `claude (model sonnet)`, or several of these, each with its role before it."""
    return ", ".join(_part(part) for part in terminal_line(key).split(";"))


def _part(part: str) -> str:
    name, _, model = part.partition("::")
    role, between, backend = name.rpartition("=")
    return f"{role}{' ' if between else ''}{backend}{f' (model {model})' if model else ''}"

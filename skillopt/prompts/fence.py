"""Foreign text inside a prompt: shown between two marker lines that the text itself cannot contain."""

from __future__ import annotations

import hashlib


def fence(text: str, label: str) -> str:
    """`text` between `<<<label KEY` and `KEY label>>>`, where KEY occurs nowhere in `text`.

    KEY comes from the text alone, so equal texts give equal prompts. `label` is a word of ours, never foreign text.
    """
    key = _free_key(text)
    return f"<<<{label} {key}\n{text}\n{key} {label}>>>"


def _free_key(text: str) -> str:
    number = 0
    while True:
        source = f"{number}:{text}".encode("utf-8", "surrogatepass")
        key = hashlib.sha256(source).hexdigest()[:12]
        if key not in text:
            return key
        number += 1

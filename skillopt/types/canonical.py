"""One JSON text for equal values, and the hash of it. Standard library only."""

from __future__ import annotations

import hashlib
import json
from typing import Any

JsonObject = dict[str, Any]


def canonical_json(value: object) -> str:
    """The one JSON text of a value: sorted keys, no spaces, non-ASCII kept. Equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)


def content_hash(*parts: object) -> str:
    """SHA-256 (64 hex digits) of the canonical JSON of `parts`. The key under which finished work is kept."""
    return hashlib.sha256(canonical_json(list(parts)).encode("utf-8", "surrogatepass")).hexdigest()

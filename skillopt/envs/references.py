"""Helpers behind the optional reference hooks of an environment, on plain result and item dicts."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

PREVIEW_CHARACTERS = 400


def metadata(text: str) -> dict[str, Any]:
    """What there is of a hidden reference: the names of its fields and its first characters."""
    return {"fields": ["reference_text"] if text else [], "preview": text[:PREVIEW_CHARACTERS]}


def attach(
    results: Sequence[dict[str, Any]],
    items: Sequence[Mapping[str, Any]],
    build: Callable[[Mapping[str, Any]], str],
) -> list[dict[str, Any]]:
    """Copies of `results` in which each row whose item is known holds that item's reference text."""
    texts = {str(item["id"]): build(item) for item in items}
    return [
        {**row, "reference_text": texts[str(row["id"])]} if texts.get(str(row.get("id"))) else dict(row)
        for row in results
    ]


def representatives(
    results: Sequence[Mapping[str, Any]],
    items: Sequence[Mapping[str, Any]],
    *,
    failures: int,
    successes: int,
    seed: int,
) -> list[Mapping[str, Any]]:
    """A seeded choice of items, failures first, that covers as many task types as the numbers allow."""
    by_id = {str(item["id"]): item for item in items}
    rows = [row for row in results if str(row.get("id")) in by_id]
    failed = [row for row in rows if not _right(row)]
    passed = [row for row in rows if _right(row)]
    rng = random.Random(seed)
    chosen = _spread(failed, failures, rng) + _spread(passed, successes, rng)
    return [by_id[str(row["id"])] for row in chosen]


def _right(row: Mapping[str, Any]) -> bool:
    return bool(row.get("hard")) and float(row["hard"]) >= 1e-9


def _spread(rows: Sequence[Mapping[str, Any]], count: int, rng: random.Random) -> list[Mapping[str, Any]]:
    shuffled = list(rows)
    rng.shuffle(shuffled)
    seen: set[str] = set()
    first: list[Mapping[str, Any]] = []
    rest: list[Mapping[str, Any]] = []
    for row in shuffled:
        kind = str(row.get("task_type") or "")
        (rest if kind in seen else first).append(row)
        seen.add(kind)
    return (first + rest)[: max(count, 0)]

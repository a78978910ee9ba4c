"""Two skills compared on the same items: pairs of attempts, their categories, and the text that shows them.

Pure. The engine runs the items and hands the results in; an item that has no score under one of the two skills is in
no pair, since an error says nothing about a skill.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Literal

from skillopt.prompts.fence import fence
from skillopt.prompts.tokens import count_tokens, shorten_middle
from skillopt.types import Item, JsonObject, RolloutResult
from skillopt.utils.files import atomic_write_json

Category = Literal["regressed", "persistent_fail", "improved", "stable_success"]
Policy = Literal["mixed", "changed", "unchanged"]

CATEGORIES: tuple[Category, ...] = ("regressed", "persistent_fail", "improved", "stable_success")
"""In the order in which a reader should look at them."""

COMPARISON_TOKENS = 48_000
"""What the pairs may take in one prompt; more pairs are shown in several."""

_KEPT: Mapping[Policy, frozenset[Category]] = MappingProxyType(
    {
        "mixed": frozenset(CATEGORIES),
        "changed": frozenset(("improved", "regressed")),
        "unchanged": frozenset(("persistent_fail", "stable_success")),
    }
)
_TITLES: Mapping[Category, str] = MappingProxyType(
    {
        "regressed": "Regressed: solved before, not solved now",
        "persistent_fail": "Lasting failures: solved neither before nor now",
        "improved": "Improved: not solved before, solved now",
        "stable_success": "Stable: solved before and now",
    }
)
_TRAJECTORY_TOKENS = 1_500
_TASK_TOKENS = 400
_FIELD_TOKENS = 150  # an answer or a failure reason
_HEADER_TOKENS = 160  # counts and the four titles
_TIE = 1e-9


@dataclass(frozen=True, slots=True)
class Attempt:
    """What became of an item under one of the two skills. `hard` is 1 when it was solved, else 0."""

    hard: int
    soft: float
    predicted_answer: str
    fail_reason: str
    trajectory: str = ""

    def to_dict(self) -> JsonObject:
        """The attempt as JSON, without its trajectory, which the store has."""
        return {
            "hard": self.hard,
            "soft": round(self.soft, 6),
            "predicted_answer": self.predicted_answer,
            "fail_reason": self.fail_reason,
        }


@dataclass(frozen=True, slots=True)
class Pair:
    """One item under the previous and under the current skill."""

    id: str
    task: str
    category: Category
    prev: Attempt
    curr: Attempt

    def to_dict(self) -> JsonObject:
        """The pair as JSON, without trajectories."""
        return {
            "id": self.id,
            "task": self.task,
            "category": self.category,
            "prev": self.prev.to_dict(),
            "curr": self.curr.to_dict(),
        }


def build_comparison_pairs(
    previous: Sequence[RolloutResult],
    current: Sequence[RolloutResult],
    *,
    render: Callable[[RolloutResult], str],
    success_threshold: float = 1.0,
) -> list[Pair]:
    """The pairs of the items that were graded under both skills, in the order of `previous`.

    An item is solved when its hard score reaches `success_threshold`. `render` turns a result into its trajectory as
    text.
    """
    now = {result.id: result for result in reversed(current) if result.ok}
    pairs: dict[str, Pair] = {}
    for before in previous:
        if before.ok and before.id in now and before.id not in pairs:
            after = now[before.id]
            prev, curr = (_attempt(result, render, success_threshold) for result in (before, after))
            pairs[before.id] = Pair(before.id, _task(before), categorize(prev.hard, curr.hard), prev, curr)
    return list(pairs.values())


def categorize(before: int, now: int) -> Category:
    """The category of an item that was solved (1) or not (0) under the previous and under the current skill."""
    if before:
        return "stable_success" if now else "regressed"
    return "improved" if now else "persistent_fail"


def filter_pairs(pairs: Sequence[Pair], policy: Policy) -> list[Pair]:
    """The pairs that a policy shows: all, those whose outcome changed, or those whose outcome did not."""
    return [pair for pair in pairs if pair.category in _KEPT[policy]]


def topup_order(items: Sequence[Item], taken: Sequence[str], seed: int) -> list[Item]:
    """The items whose ids are not `taken`, in the order of `Random(seed)`: in which a top-up walks through them."""
    known = set(taken)
    left = [item for item in items if item.id not in known]
    Random(seed).shuffle(left)
    return left


def category_counts(pairs: Sequence[Pair]) -> dict[str, int]:
    """Number of pairs in each category."""
    return {category: sum(pair.category == category for pair in pairs) for category in CATEGORIES}


def save_comparison_pairs(path: Path, pairs: Sequence[Pair]) -> None:
    """Write the pairs without their trajectories, as a JSON array."""
    atomic_write_json(path, [pair.to_dict() for pair in pairs])


def split_pairs(pairs: Sequence[Pair], max_tokens: int = COMPARISON_TOKENS) -> list[tuple[Pair, ...]]:
    """The pairs in the order of their categories, in as few parts as fit into `max_tokens` each, one after another.

    No pairs make no part. A pair that is too large for itself alone makes a part alone.
    """
    ordered = [pair for category in CATEGORIES for pair in pairs if pair.category == category]
    parts: list[list[Pair]] = []
    room = 0
    for pair in ordered:
        size = count_tokens(format_pair(pair)) + 2
        if not parts or size > room:
            parts.append([])
            room = max_tokens - _HEADER_TOKENS
        parts[-1].append(pair)
        room -= size
    return [tuple(part) for part in parts]


def format_comparison_text(pairs: Sequence[Pair]) -> str:
    """Counts by category, then regressed, lasting failures, improved (with both trajectories) and stable pairs."""
    counts = category_counts(pairs)
    summary = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())
    parts = [f"{len(pairs)} tasks: {summary}."]
    for category in CATEGORIES:
        chosen = [pair for pair in pairs if pair.category == category]
        if chosen:
            parts.append(f"### {_TITLES[category]} ({len(chosen)})")
            parts += [format_pair(pair) for pair in chosen]
    return "\n\n".join(parts)


def format_pair(pair: Pair) -> str:
    """One pair, fenced: task, both outcomes, and both trajectories unless it is solved both times.

    The id of the item is not shown: nothing that is written about it should name it.
    """
    rows = [f"Task: {shorten_middle(pair.task, _TASK_TOKENS)}"]
    for name, attempt in (("Before", pair.prev), ("Now", pair.curr)):
        rows.append(_outcome(name, attempt))
    if pair.category != "stable_success":
        rows += [
            f"Trajectory {name}:\n{shorten_middle(attempt.trajectory, _TRAJECTORY_TOKENS)}"
            for name, attempt in (("before", pair.prev), ("now", pair.curr))
            if attempt.trajectory
        ]
    return fence("\n\n".join(rows), "task")


def _outcome(name: str, attempt: Attempt) -> str:
    verdict = "solved" if attempt.hard else "not solved"
    text = f"{name}: {verdict}, soft score {attempt.soft:.2f}, answer: {_field(attempt.predicted_answer)}"
    return f"{text}\n{name}, reason: {_field(attempt.fail_reason)}" if attempt.fail_reason else text


def _field(text: str) -> str:
    return shorten_middle(text, _FIELD_TOKENS)


def _attempt(result: RolloutResult, render: Callable[[RolloutResult], str], threshold: float) -> Attempt:
    answer = result.predicted_answer or str(result.extras.get("answer") or "") or "N/A"
    solved = int(result.hard >= threshold - _TIE)
    return Attempt(solved, float(result.soft), str(answer), str(result.fail_reason or ""), render(result))


def _task(result: RolloutResult) -> str:
    instruction = str(result.extras.get("instruction") or "")
    return result.question or result.task_description or instruction or result.id

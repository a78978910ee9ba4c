"""What a person reads at the end of a command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from skillopt.tracking.console import plain
from skillopt.types import JsonObject

_SHOWN_LINES = 60


def train_report(summary: JsonObject, out_root: str) -> str:
    """Scores before and after, the learned skill, and where everything lies."""
    root = Path(out_root)
    lines = ["", "Scores (share of items right)", f"  {'':<12}{'before':>8}{'after':>8}{'items':>8}"]
    lines.append(_row("validation", summary, "baseline_selection_hard", "best_selection_hard", "selection_n"))
    if summary.get("test_hard") is not None:
        lines.append(_row("test", summary, "baseline_test_hard", "test_hard", "test_n"))
    words = {"accepts": "accepted", "rejects": "rejected", "skips": "skipped"}
    steps = ", ".join(f"{summary['total_' + key]} {word}" for key, word in words.items())
    lines += ["", f"Steps: {summary['total_steps']} ({steps}); best skill from {summary['best_origin']}"]
    lines.append(f"Calls: {_usage(summary)}")
    lines += ["", *_skill(root / "best_skill.md")]
    lines += ["", "Where everything lies"]
    places = {
        "learned skill": "best_skill.md",
        "scores": "summary.json",
        "steps": "history.json",
        "what happened": "events.jsonl",
    }
    lines += [f"  {name:<14}{root / file}" for name, file in places.items()]
    lines.append(f"  {'one item':<14}skillopt show {root} ITEM")
    return "\n".join(lines) + "\n"


def eval_report(summary: JsonObject, out_root: str) -> str:
    """The scores of one skill on one split."""
    errors = f", {summary['n_errors']} without a score" if summary["n_errors"] else ""
    lines = [
        f"{summary['skill']} on {summary['split']}: hard {summary['hard']:.4f}, soft {summary['soft']:.4f} "
        f"({summary['n_items']} items{errors})"
    ]
    types = {name: row for name, row in summary["by_task_type"].items() if name != "overall" and row["total"]}
    if len(types) > 1:
        lines += [f"  {name:<20}{row['hard_acc']:.4f}  ({row['total']})" for name, row in types.items()]
    lines.append(f"Results by item: {Path(out_root) / 'results.jsonl'}")
    return "\n".join(lines) + "\n"


def _row(name: str, summary: JsonObject, before: str, after: str, items: str) -> str:
    def number(key: str) -> str:
        value: Any = summary.get(key)
        return "-" if value is None else f"{value:.3f}"

    return f"  {name:<12}{number(before):>8}{number(after):>8}{summary.get(items, ''):>8}"


def _usage(summary: JsonObject) -> str:
    usage = summary["usage"]
    tokens = f"{usage['prompt_tokens'] + usage['completion_tokens']:,} tokens" if usage["known"] else "tokens unknown"
    cost = summary.get("cost_usd")
    return f"{usage['calls']:,}, {tokens}, " + ("price unknown" if cost is None else f"${cost:.4f}")


def _skill(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8").strip()
    if not text:
        return ["Learned skill: still empty."]
    body = text.splitlines()
    shown = [f"  | {plain(line)}" for line in body[:_SHOWN_LINES]]
    if len(body) > _SHOWN_LINES:
        shown.append(f"  … {len(body) - _SHOWN_LINES} more lines in {path}")
    return ["Learned skill", *shown]

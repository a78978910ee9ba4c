"""Calls, tokens, time and money as a person reads them. What is unknown is said to be unknown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from skillopt.tracking.console import plain
from skillopt.types import JsonObject

_COLUMNS = (
    *("role", "backend", "model", "stage", "calls", "failed", "retried", "in", "out"),
    *("cached", "thinking", "mean s", "p95 s", "cost"),
)
_LEFT = 4  # columns of words


def calls_line(spent: JsonObject) -> str:
    """Everything together in one line."""
    told = {"failures": "failed", "retries": "retried", "cached_calls": "answered from the store"}
    notes = [f"{spent[name]:,} {word}" for name, word in told.items() if spent.get(name)]
    calls = f"Calls: {spent['calls']:,}" + (f" ({', '.join(notes)})" if notes else "")
    return f"{calls}, {_tokens(spent)}, {price_text(spent)}"


def price_text(row: JsonObject) -> str:
    """The cost of a row, or how much of it is known."""
    if row.get("cost_usd") is not None:
        return f"${row['cost_usd']:.4f}"
    least = row.get("cost_at_least_usd") or 0.0
    return f"at least ${least:.4f}" if least else "price unknown"


def usage_table(rows: Sequence[JsonObject]) -> list[str]:
    """A line for each role, backend, model and stage; then where prices are from, and errors that still stand."""
    if not rows:
        return []
    cells = [_COLUMNS, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_COLUMNS))]
    lines = ["  " + "  ".join(_aligned(line, widths)).rstrip() for line in cells]
    return [*lines, *_sources(rows), *_errors(rows)]


def _cells(row: JsonObject) -> tuple[str, ...]:
    words = tuple(plain(str(row[name])) or "-" for name in ("role", "backend", "model", "stage"))
    counts = tuple(f"{row[name]:,}" for name in ("calls", "failures", "retries"))
    names = ("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens")
    tokens = tuple(_count(row, row[name]) for name in names)
    times = tuple(_seconds(row["latency"].get(name)) for name in ("mean_s", "p95_s"))
    return (*words, *counts, *tokens, *times, _cost(row))


def _count(row: JsonObject, number: int) -> str:
    if row["known"]:
        return f"{number:,}"
    return f">={number:,}" if number else "?"


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _cost(row: JsonObject) -> str:
    text = price_text(row)
    return {"price unknown": "?"}.get(text, text.replace("at least ", ">="))


def _aligned(line: Iterable[str], widths: Sequence[int]) -> list[str]:
    padded = zip(line, widths, strict=True)
    return [cell.ljust(width) if at < _LEFT else cell.rjust(width) for at, (cell, width) in enumerate(padded)]


def _tokens(spent: JsonObject) -> str:
    total = spent["prompt_tokens"] + spent["completion_tokens"]
    if spent["known"]:
        return f"{total:,} tokens"
    return f"at least {total:,} tokens" if total else "tokens unknown"


def _sources(rows: Sequence[JsonObject]) -> list[str]:
    """Where each model's price is from; nothing about models that run on this machine."""
    lines = []
    for row in rows:
        price, model = row.get("price"), row["model"] or row["backend"]
        if price is None:
            lines.append(f"  price of {plain(model)}: unknown; give it in model.prices or model.price_file")
        elif price["input"] or price["output"]:
            per_million = f"${price['input']:g} in, ${price['output']:g} out for a million tokens"
            lines.append(f"  price of {plain(model)}: {per_million} ({plain(price['source'])})")
    return list(dict.fromkeys(lines))


def _errors(rows: Sequence[JsonObject]) -> list[str]:
    return [
        f"  last {row['role']} call of stage {row['stage']} failed: {plain(row['last_error'])}"
        for row in rows
        if row["last_error"]
    ]

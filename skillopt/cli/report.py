"""What a person reads at the end of a command."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillopt.cli.spending import calls_line, usage_table
from skillopt.tracking.console import plain
from skillopt.types import JsonObject

if TYPE_CHECKING:
    from skillopt.engine.plan import Plan, RolePlan
    from skillopt.engine.plan_counts import Range

_SHOWN_LINES = 60
_SHOWN_CHARS = 400


def train_report(summary: JsonObject, out_root: str) -> str:
    """Scores before and after, the learned skill, and where everything lies."""
    root = Path(out_root)
    lines = ["", "Scores (share of items right)", f"  {'':<12}{'before':>8}{'after':>8}{'items':>8}"]
    lines.append(_row("validation", summary, "baseline_selection_hard", "best_selection_hard", "selection_n"))
    if summary.get("test_hard") is not None:
        lines.append(_row("test", summary, "baseline_test_hard", "test_hard", "test_n"))
    lines += [_evidence(summary, name) for name in ("selection", "test") if summary.get(f"{name}_comparison")]
    if summary["config"].get("use_gate") is False:
        lines.append("  The gate was off: candidates were accepted without proof.")
    words = {"accepts": "accepted", "rejects": "rejected", "inconclusive": "inconclusive", "skips": "skipped"}
    counts = {word: summary["total_" + key] for key, word in words.items()}
    steps = ", ".join(f"{number} {word}" for word, number in counts.items() if number or word != "inconclusive")
    lines += ["", f"Steps: {summary['total_steps']} ({steps}); best skill from {summary['best_origin']}"]
    lines += [*spending_lines(summary), *model_lines(summary)]
    lines += ["", *_skill(root / "best_skill.md")]
    lines += ["", "Where everything lies"]
    places = {
        "learned skill": "best_skill.md",
        "scores": "summary.json",
        "steps": "history.json",
        "what happened": "events.jsonl",
    }
    lines += [f"  {name:<14}{root / file}" for name, file in places.items()]
    lines.append(f"  {'one item':<14}skillopt show {shlex.quote(str(root))} ITEM")
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
    lines += [f"Results by item: {Path(out_root) / 'results.jsonl'}", *spending_lines(summary)]
    lines += model_lines(summary)
    return "\n".join(lines) + "\n"


def spending_lines(summary: JsonObject) -> list[str]:
    """What was asked of the models and what it cost; nothing for a summary that does not say."""
    return [calls_line(summary["spent"]), *usage_table(summary["usage_rows"])] if "spent" in summary else []


def model_lines(summary: JsonObject) -> list[str]:
    """What the run found out about its models."""
    return [f"Note: {plain(text)}" for name in ("model_notes", "notices") for text in summary.get(name, ())]


def plan_report(plan: Plan) -> str:
    """What a run would take, from a run in which nothing is proposed to one in which every step is accepted."""
    sizes = ", ".join(f"{name} {number or 'unknown'}" for name, number in plan.items.items())
    lines = [f"Items: {sizes}", f"Steps: {plan.steps} in {_some(plan.epochs, 'epoch')}", ""]
    lines.append("At least (nothing is proposed) to at most (every step is accepted); retries and repairs come on top:")
    for name, role in plan.roles.items():
        lines += _role_lines(name, role)
    total = plan.cost_usd
    lines += ["", "Price: " + ("unknown" if total is None else dollars(total[0], total[1])), _gain_line(plan)]
    if plan.budget:
        limits = ", ".join(f"{name} {limit:g}" for name, limit in plan.budget.items())
        lines.append(f"Budget ({limits}): {_span(plan.proposals)} of {plan.steps} complete proposals")
    lines.append("Tokens are estimated from the actual prompts; the length of replies and of the skill is assumed.")
    return "\n".join(lines) + "\n"


def role_total(name: str, role: RolePlan) -> str:
    """What one role takes: calls and tokens, from at least to at most."""
    known = role.prompt_tokens is not None and role.completion_tokens is not None
    tokens = f"{_span(role.prompt_tokens)} in, {_span(role.completion_tokens)} out" if known else "unknown"
    total = "calls unknown" if role.calls is None else f"{_span(role.calls)} calls"
    return f"{name} {plain(role.model)}: {total}; tokens {tokens}"


def _role_lines(name: str, role: RolePlan) -> list[str]:
    unit = "calls" if role.calls is not None else "rollouts"
    spans = ", ".join(f"{part} {_span(span)}" for part, span in role.parts.items())
    price = "price unknown" if role.cost_usd is None else dollars(*role.cost_usd)
    if role.price is not None and role.price.source:
        price += f" ({plain(role.price.source)})"
    return [f"  {role_total(name, role)}; {price}", f"    {unit}: {spans or 'none'}"]


def _gain_line(plan: Plan) -> str:
    if plan.gate_policy == "off":
        return "The gate is off: every candidate is taken."
    gate = f"Smallest gain that the {plan.gate_policy} gate can accept"
    if plan.smallest_gain is None:
        return f"{gate}: none; {plan.items['val']} validation items are too few for {plan.looks} looks"
    items, share = plan.smallest_gain
    return f"{gate}: {items} of {plan.items['val']} validation items ({share:.1%})"


def _some(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _span(span: Range | None) -> str:
    if span is None:
        return "unknown"
    return f"{span.low:,}" if span.low == span.high else f"{span.low:,} to {span.high:,}"


def dollars(low: float, high: float) -> str:
    """A price, or from which to which."""
    return f"${low:.4f}" if low == high else f"${low:.4f} to ${high:.4f}"


def _row(name: str, summary: JsonObject, before: str, after: str, items: str) -> str:
    def number(key: str) -> str:
        value: Any = summary.get(key)
        return "-" if value is None else f"{value:.3f}"

    return f"  {name:<12}{number(before):>8}{number(after):>8}{summary.get(items, ''):>8}"


def _evidence(summary: JsonObject, name: str) -> str:
    """What the items that both skills were graded on say about the difference."""
    seen = summary[f"{name}_comparison"]
    words = {"selection": "validation", "test": "test"}
    interval = f"95 % interval {seen['ci_low']:+.3f} to {seen['ci_high']:+.3f}"
    flips = f"{seen['gained']} items gained, {seen['lost']} lost"
    return f"  {words[name]}: {seen['mean_difference']:+.3f} ({interval}), {flips}"


def _cut(line: str) -> str:
    return line if len(line) <= _SHOWN_CHARS else line[:_SHOWN_CHARS] + "…"


def _skill(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8").strip()
    if not text:
        return ["Learned skill: still empty."]
    body = text.splitlines()
    shown = [f"  | {_cut(plain(line))}".rstrip() for line in body[:_SHOWN_LINES]]
    if len(body) > _SHOWN_LINES:
        shown.append(f"  … {len(body) - _SHOWN_LINES} more lines in {path}")
    return ["Learned skill", *shown]

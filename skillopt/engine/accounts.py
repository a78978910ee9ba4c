"""What a run spent, as its summary says it."""

from __future__ import annotations

from skillopt.model.usage import UsageTracker
from skillopt.types import JsonObject


def spending(usage: UsageTracker) -> JsonObject:
    """The fields of a summary that say what was asked of the models over all processes of a run.

    `usage_rows`: by role, backend, model and stage. `spent`: everything together, failed calls and preflights too.
    `token_summary`: calls and tokens by stage.
    """
    rows, cost = usage.details(), usage.total_cost()
    counts = ("failures", "retries", "cached_calls", "unknown_calls")
    return {
        "token_summary": usage.summary(),
        "usage_rows": rows,
        "spent": {
            **usage.total.to_dict(),
            **{name: sum(row[name] for row in rows) for name in counts},
            "cost_usd": cost.exact,
            "cost_at_least_usd": cost.usd,
        },
    }

"""What a run spent: the same numbers in the summary, in `show` and at the server, over all processes."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from worlds import World, answer, text_of

from skillopt import api
from skillopt.cli.report import eval_report, plan_report, train_report
from skillopt.cli.show import show_run
from skillopt.cli.spending import calls_line, usage_table
from skillopt.config.resolve import resolve
from skillopt.engine.trainer import train
from skillopt.errors import AuthError, BudgetExceededError, ConfigError
from skillopt.store import Store
from skillopt.testing import chat_completion, status
from skillopt.types import JsonObject

ONE = {"train": {"num_epochs": 1}}
PRICES = {f"{role}-model": {"input": 1.0, "output": 10.0} for role in ("target", "optimizer")}


def run(world: World, **sections: Mapping[str, Any]) -> JsonObject:
    return train(resolve(world.config(**{**ONE, **sections})))


def shown(world: World, *, as_json: bool = False) -> str:
    out = io.StringIO()
    show_run(world.out_root, out, as_json=as_json)
    return out.getvalue()


def test_rows_add_up_to_what_the_server_saw(make_world: Callable[..., World]) -> None:
    faults = {5: status(500, {"retry-after-ms": "1"}), 9: status(429, {"retry-after-ms": "1"})}
    world = make_world(faults=faults.get)
    summary = run(world, model={"prices": PRICES})
    rows = summary["usage_rows"]
    keys = {(row["role"], row["stage"]) for row in rows}
    assert {
        ("target", "preflight"),
        ("target", "rollout"),
        ("optimizer", "preflight"),
        ("optimizer", "analyst"),
    } <= keys
    assert {row["backend"] for row in rows} == {"openai_compatible"}
    assert sum(row["calls"] + row["retries"] for row in rows) == len(world.server.requests)
    spent = summary["spent"]
    assert (spent["retries"], spent["failures"], spent["unknown_calls"]) == (2, 0, 0)
    assert spent["calls"] == sum(row["calls"] for row in rows) == len(world.server.requests) - 2
    assert spent["total_tokens"] == summary["token_summary"]["_total"]["total_tokens"] == 15 * spent["calls"]
    assert spent["cost_usd"] == pytest.approx(spent["calls"] * 60e-6)
    assert all(0 < row["latency"]["p50_s"] <= row["latency"]["max_s"] for row in rows)
    assert summary == json.loads((world.out_root / "summary.json").read_text("utf-8"))
    assert spent["calls"] == summary["usage"]["calls"] + 2  # the results hold no preflight


def test_counts_go_on_when_a_run_does(make_world: Callable[..., World]) -> None:
    world = make_world()
    with pytest.raises(BudgetExceededError):
        run(world, budget={"max_calls": 40})
    assert len(world.server.requests) == 40
    assert json.loads(shown(world, as_json=True))["spent"]["calls"] == 40
    with pytest.raises(BudgetExceededError):
        run(world, budget={"max_calls": 40})  # nothing is left of it
    assert len(world.server.requests) == 40
    summary = run(world)
    assert summary["spent"]["calls"] == len(world.server.requests)
    assert json.loads(shown(world, as_json=True))["usage_rows"] == summary["usage_rows"]
    assert f"Calls: {summary['spent']['calls']}" in shown(world)


def test_an_evaluation_says_what_it_spent(make_world: Callable[..., World]) -> None:  # C256
    def counted(request: Mapping[str, Any]) -> Any:
        number = 1 + len(text_of(request, "user"))
        return chat_completion("no", usage={"prompt_tokens": number, "completion_tokens": 2 * number})

    world = make_world(counted)
    config = world.config(env={"workers": 8})
    summary = api.evaluate("Be brief.", config, split="val")
    with closing(Store(world.out_root / "store.sqlite")) as store:
        results = [result for _, _, result in store.rollouts()]
    assert len(results) == 12
    for result in results:
        assert result.usage.prompt_tokens == 1 + len(result.target_user_prompt)
        assert result.usage.completion_tokens == 2 * result.usage.prompt_tokens
    total = sum(result.usage.total_tokens for result in results)
    (row,) = (row for row in summary["usage_rows"] if row["stage"] == "rollout")
    assert total == summary["usage"]["total_tokens"] == row["total_tokens"]
    report = eval_report(summary, str(world.out_root))
    assert not world.requests("optimizer-model") and len(world.server.requests) == 13  # the preflight of one role
    assert "Calls: 13" in report and "price unknown" in report and "$0.00" not in report  # C254
    assert "rollout" in report and "rollout" in shown(world)


def test_an_error_that_is_over_is_not_shown(make_world: Callable[..., World]) -> None:  # C149
    world = make_world(faults=[None, None, status(500)])
    once = {"model": {"retries": 0}, "env": {"item_retries": 1, "workers": 1}}
    summary = run(world, **once)
    assert summary["spent"]["failures"] == 1
    report = train_report(summary, str(world.out_root))
    assert "1 failed" in report and "500" not in report and "failed:" not in report


def test_an_error_that_stands_is_shown(make_world: Callable[..., World]) -> None:
    def refuse(number: int) -> Any:
        return status(401) if number > 30 else None

    world = make_world(faults=refuse)
    with pytest.raises(AuthError):
        run(world)
    assert "AuthError" in shown(world)


def test_where_a_price_is_from_is_said(world: World, tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("date: 2027-03-04\nprices: {optimizer-model: {input: 2, output: 3}}\n", encoding="utf-8")
    model = {"target": "gpt-4o-mini", "price_file": str(own)}
    report = plan_report(api.plan(world.config(model=model)))
    assert "(built-in list prices of " in report and "own.yaml of 2027-03-04)" in report
    plan = api.plan(world.config(model=model)).to_dict()
    assert plan["roles"]["optimizer"]["price"]["source"].endswith("own.yaml of 2027-03-04")


def row(**fields: Any) -> JsonObject:
    base: JsonObject = {
        **dict.fromkeys(("role", "backend", "model", "stage"), "x"),
        **dict.fromkeys(("calls", "failures", "retries", "cached_calls", "unknown_calls"), 0),
        **dict.fromkeys(("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens"), 0),
        "known": True,
        "latency": {"mean_s": None, "p95_s": None},
        "last_error": "",
        "cost_usd": None,
        "cost_at_least_usd": 0.0,
        "price": None,
    }
    return {**base, **fields}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"calls": 2, "prompt_tokens": 9, "cost_usd": 0.5}, "Calls: 2, 9 tokens, $0.5000"),
        ({"calls": 2, "prompt_tokens": 9}, "Calls: 2, 9 tokens, price unknown"),
        ({"calls": 2, "known": False}, "Calls: 2, tokens unknown, price unknown"),
        (
            {"calls": 3, "failures": 1, "retries": 2, "known": False, "prompt_tokens": 5, "cost_at_least_usd": 0.25},
            "Calls: 3 (1 failed, 2 retried), at least 5 tokens, at least $0.2500",
        ),
    ],
)
def test_what_is_unknown_is_said_to_be(fields: JsonObject, words: str) -> None:  # C254
    assert calls_line(row(**fields)) == words


def test_the_table() -> None:
    price = {"input": 1.0, "output": 2.0, "cached": None, "source": "a list of 2027-01-01"}
    rows = [
        row(role="target", calls=1, known=False, prompt_tokens=7, cost_at_least_usd=0.5, price=price),
        row(role="optimizer", calls=1, known=False, last_error="TransientError: broken\x1b[31m"),
    ]
    text = "\n".join(usage_table(rows))
    assert ">=7" in text and ">=$0.5000" in text and "?" in text
    assert "price of x: $1 in, $2 out for a million tokens (a list of 2027-01-01)" in text
    assert "price of x: unknown; give it in model.prices or model.price_file" in text
    assert "last optimizer call of stage x failed: TransientError: broken" in text and "\x1b" not in text
    assert usage_table([]) == []


def test_a_run_that_only_has_a_baseline_begun_shows_its_spending(make_world: Callable[..., World]) -> None:
    world = make_world(answer)
    with pytest.raises(BudgetExceededError):
        train(resolve(world.config(budget={"max_calls": 6})))
    out = io.StringIO()
    with pytest.raises(Exception, match="nothing is finished yet"):
        show_run(world.out_root, out, as_json=False)
    assert "Calls: 6" in out.getvalue()


def test_a_backend_that_reports_no_tokens_has_no_price(world: World) -> None:
    copilot = {"target_backend": "copilot_chat", "target": "gpt-4o"}
    plan = api.plan(world.config(model=copilot))
    assert plan.roles["target"].cost_usd is None and plan.cost_usd is None
    prices = {"optimizer-model": {"input": 1.0, "output": 1.0}}
    with pytest.raises(ConfigError, match=r"copilot_chat .target. reports no tokens"):
        run(world, model={**copilot, "prices": prices}, budget={"max_cost_usd": 5.0})
    findings = api.doctor(world.config(model=copilot, budget={"max_cost_usd": 5.0}), offline=True)
    told = [f.what for f in findings if f.check == "prices" and f.level == "fail"]
    assert any("copilot_chat reports no tokens" in what for what in told)
    assert not world.server.requests

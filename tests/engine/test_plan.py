"""What a plan says is what a run takes; and it says so before anything is spent."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from worlds import World, answer, text_of

from skillopt import api
from skillopt.cli.report import plan_report
from skillopt.config.resolve import resolve
from skillopt.engine.plan import make_plan, refuse_too_small
from skillopt.engine.plan_counts import PAIR_TOKENS, Range, Shape, _tree, smallest_gain
from skillopt.envs.base import EnvAdapter
from skillopt.errors import ConfigError
from skillopt.gradient.reflect import minibatches
from skillopt.optimizer.comparison import build_comparison_pairs, format_pair
from skillopt.prompts.tokens import count_tokens
from skillopt.types import RolloutResult

PRICES = {name: {"input": 1.0, "output": 4.0} for name in ("target-model", "optimizer-model")}


def test_an_item_that_cannot_be_shown_leaves_the_rest_of_the_estimate(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    (world.root / "picky_env.py").write_text(
        "from skillopt.envs.jsonl.adapter import JsonlEnv\n\n\n"
        "class Picky(JsonlEnv):\n"
        "    def messages(self, item, skill):\n"
        "        if item.id.endswith('0'):\n"
        "            raise KeyError('picture')\n"
        "        return super().messages(item, skill)\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(world.root)
    plain, picky = (
        make_plan(resolve(world.config(env={"name": name}), environ={})).roles["target"]
        for name in ("jsonl", "picky_env:Picky")
    )
    assert picky.calls == plain.calls
    assert picky.prompt_tokens is not None


def silent(request: Mapping[str, Any]) -> str:
    """A server whose optimizer never proposes anything."""
    if request["model"] == "optimizer-model" and "Trajectories (" in text_of(request, "user"):
        return json.dumps({"batch_size": 1, "failure_summary": [], "patch": {"reasoning": "fine", "edits": []}})
    return answer(request)


def calls(world: World, model: str) -> int:
    return sum(record.body.get("model") == model for record in world.server.requests)


SETTINGS: list[dict[str, Any]] = [
    {},
    {"train": {"batch_size": 5, "accumulation": 2}},
    {"train": {"num_epochs": 3, "batch_size": 7}, "gradient": {"failure_only": False, "minibatch_size": 3}},
    {"train": {"batch_size": 40}, "evaluation": {"sel_env_num": 5, "test_env_num": 4}},
    {"train": {"num_epochs": 1}, "gradient": {"merge_batch_size": 2, "minibatch_size": 1}},
    {"train": {"num_epochs": 0}, "evaluation": {"eval_test": False}},
]
FEATURES: list[dict[str, Any]] = [
    {"optimizer": {"use_slow_update": True, "use_meta_skill": True, "slow_update_samples": 6}},
    {"optimizer": {"screen_edits": True, "learning_rate": 3}, "evaluation": {"early_stop": "off"}},
    {"optimizer": {"lr_control_mode": "none"}, "env": {"samples_per_item": 2}, "train": {"num_epochs": 1}},
]


def whole(request: Mapping[str, Any]) -> str:
    """The world, with an optimizer that also answers at the end of an epoch."""
    for key in ("slow_update_content", "meta_skill_content"):
        if key in text_of(request, "system"):
            return json.dumps({"reasoning": "seen", key: "- Rule amber: say its secret."})
    return answer(request)


@pytest.mark.parametrize("sections", [*SETTINGS, *FEATURES])
def test_a_run_takes_no_less_and_no_more(make_world: Callable[..., World], sections: dict[str, Any]) -> None:  # C250
    world = make_world(whole)
    config = world.config(**sections)
    plan = api.plan(config)
    assert not world.out_root.exists()
    assert not world.server.requests
    api.train(config)
    for role, model in (("target", "target-model"), ("optimizer", "optimizer-model")):
        expected = plan.roles[role].calls
        assert expected is not None
        assert expected.low <= calls(world, model) <= expected.high


@pytest.mark.parametrize("sections", SETTINGS)
def test_the_least_is_a_run_in_which_nothing_is_proposed(
    make_world: Callable[..., World], sections: dict[str, Any]
) -> None:
    world = make_world(silent)
    config = world.config(**sections)
    plan = api.plan(config)
    api.train(config)
    target = plan.roles["target"].calls
    assert target is not None
    assert calls(world, "target-model") == target.low


def test_every_count_of_a_run(world: World) -> None:
    plan = api.plan(world.config(gradient={"failure_only": False}))
    assert plan.items == {"train": 24, "val": 12, "test": 12}
    assert (plan.epochs, plan.steps) == (2, 6)
    target, optimizer = plan.roles["target"], plan.roles["optimizer"]
    assert target.parts == {
        "preflight": Range(1, 1),
        "baseline": Range(12, 12),
        "training": Range(24, 48),
        "gate": Range(0, 72),
        "test": Range(12, 36),
    }
    assert target.calls == Range(49, 169)
    assert optimizer.parts == {
        "preflight": Range(1, 1),
        "analyst": Range(12, 18),  # two groups of eight items, three if both kinds are there
        "merge": Range(0, 12),
        "ranking": Range(0, 6),
    }


def test_what_more_settings_cost_at_most(world: World) -> None:
    shape = Shape(resolve(world.config()), {"train": 24, "val": 12, "test": 12}, 3)
    wide = resolve(
        world.config(
            train={"num_epochs": 4},
            optimizer={
                "screen_edits": True,
                "use_slow_update": True,
                "use_meta_skill": True,
                "slow_update_samples": 5,
                "use_skill_aware_reflection": True,
                "skill_aware_consolidate_threshold": 4,
            },
            env={"samples_per_item": 2},
        )
    )
    more = Shape(wide, shape.items, 3)
    assert more.target()["training"] == Range(2 * 24, 2 * 24 * 4 * (1 + 2 + 1))
    assert more.target()["epoch end"] == Range(0, 3 * 2 * 5 * 2)
    assert more.target()["gate"] == Range(0, (12 * (1 + 2 + 1) + 3) * 24)
    assert more.optimizer()["slow_update"] == more.optimizer()["meta_skill"] == Range(0, 3)
    many = resolve(world.config(train={"num_epochs": 3}, optimizer={"use_slow_update": True}))
    large = Shape(many, {"train": 100, "val": 12, "test": 12}, 13)
    assert large.optimizer()["slow_update"] == Range(0, 2 * 3)  # 20 pairs, as long as may be, in two parts and a join
    assert more.optimizer()["appendix_consolidate"] == Range(0, 12)


def test_groups_and_merges_are_those_of_the_stages(world: World) -> None:
    config = resolve(world.config(gradient={"failure_only": False, "minibatch_size": 4}))
    shape = Shape(config, {"train": 24, "val": 12, "test": 12}, 3)
    for size in range(1, 40):
        made = [
            len(minibatches(range(failed), 4, 0)) + len(minibatches(range(size - failed), 4, 0))  # type: ignore[arg-type]
            for failed in range(size + 1)
        ]
        assert (shape._groups(size).low, shape._groups(size).high) == (min(made), max(made))
    assert [_tree(patches, 2) for patches in range(6)] == [0, 0, 1, 2, 3, 4]
    assert [_tree(patches, 8) for patches in (8, 9, 16, 17)] == [1, 2, 3, 3]


def test_tokens_come_from_the_prompts_and_prices_from_the_settings(world: World) -> None:
    plan = api.plan(world.config(model={"prices": PRICES}))
    target = plan.roles["target"]
    assert target.prompt_tokens is not None and target.completion_tokens is not None
    question = "[train-0] what is special about amber?"
    assert target.prompt_tokens.low >= 48 * (len(question) // 4 - 2)
    assert target.prompt_tokens.low < target.prompt_tokens.high
    low = (target.prompt_tokens.low + 4 * target.completion_tokens.low) / 1e6
    assert target.cost_usd is not None and target.cost_usd[0] == pytest.approx(low)
    total = plan.cost_usd
    assert total is not None and 0 < total[0] < total[1]


def test_an_unknown_price_is_never_zero(world: World) -> None:  # C254
    plan = api.plan(world.config(model={"prices": {"target-model": {"input": 1.0, "output": 1.0}}}))
    assert plan.cost_usd is None
    assert plan.roles["optimizer"].cost_usd is None
    report = plan_report(plan)
    assert "price unknown" in report
    assert "Price: unknown" in report
    assert "$0.00" not in report.split("optimizer optimizer-model")[1]


class Drawn(EnvAdapter):
    """An environment that draws its own tasks, each of any number of calls."""

    def build_train_env(self, batch_size: int, seed: int, **kw: Any) -> Any:
        return batch_size

    def build_eval_env(self, env_num: int, split: str, seed: int, **kw: Any) -> Any:
        return env_num

    def rollout(self, env_manager: Any, skill_content: str, out_dir: str, **kw: Any) -> list[Any]:
        raise AssertionError("a plan runs nothing")

    def get_task_types(self) -> list[str]:
        return []


def test_where_calls_cannot_be_known_rollouts_are_counted(world: World) -> None:
    sections: dict[str, Any] = {
        "train": {"train_size": 24, "num_epochs": 1},
        "evaluation": {"sel_env_num": 10, "test_env_num": 5},
        "budget": {"max_calls": 2},
    }
    config = resolve(world.config(**sections))
    plan = make_plan(config, Drawn())
    target = plan.roles["target"]
    assert (target.calls, target.prompt_tokens, target.cost_usd) == (None, None, None)
    assert target.parts["baseline"] == Range(10, 10)
    assert target.parts["training"] == Range(8, 24)
    assert "calls unknown" in plan_report(plan)
    refuse_too_small(config, Drawn())


@pytest.mark.parametrize(
    ("items", "policy", "alpha", "looks", "expected"),
    [
        (100, "strict", 0.05, 12, (1, 0.01)),
        (0, "strict", 0.05, 12, None),
        (100, "paired", 0.05, 1, (5, 0.05)),  # 2**-5 = 0.031
        (100, "paired", 0.05, 12, (8, 0.08)),  # 2**-8 = 0.0039 <= 0.00417
        (100, "paired", 0.25, 1, (2, 0.02)),  # exactly 2**-2
        (7, "paired", 0.05, 12, None),
        (10, "paired", 1.0, 1, (1, 0.1)),
    ],
)
def test_the_smallest_gain(
    items: int, policy: str, alpha: float, looks: int, expected: tuple[int, float] | None
) -> None:
    assert smallest_gain(items, policy=policy, alpha=alpha, looks=looks) == expected


def test_the_smallest_gain_is_told(world: World) -> None:
    assert "1 of 12 validation items (8.3%)" in plan_report(api.plan(world.config()))
    paired = world.config(evaluation={"gate_policy": "paired"})
    assert "7 of 12 validation items (58.3%)" in plan_report(api.plan(paired))  # 2**-7 <= 0.05 / 6
    assert "The gate is off" in plan_report(api.plan(world.config(evaluation={"use_gate": False})))
    small = world.config(evaluation={"gate_policy": "paired", "sel_env_num": 6})
    assert "none; 6 validation items are too few for 6 looks" in plan_report(api.plan(small))


@pytest.mark.parametrize(
    ("most", "proposals"),
    [(34, (0, 0)), (35, (0, 1)), (37, (0, 1)), (38, (1, 1)), (66, (2, 2)), (1000, (6, 6))],
)
def test_proposals_that_a_budget_allows(world: World, most: int, proposals: tuple[int, int]) -> None:  # C250
    # Preflights 2 and baseline 12; a step is 8 rollouts, 12 of a look and 1 to 4 calls of the optimizer.
    plan = api.plan(world.config(budget={"max_calls": most}))
    assert (plan.proposals.low, plan.proposals.high) == proposals
    assert f"of {plan.steps} complete proposals" in plan_report(plan)


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ({"max_calls": 34}, r"config\.yaml:\d+: budget\.max_calls = 34 supports 0 complete proposals.*at least 35;"),
        ({"max_tokens": 300}, r"budget\.max_tokens = 300 supports 0 complete proposals.*at least about \d+;"),
        ({"max_cost_usd": 0.0001}, r"budget\.max_cost_usd = 0\.0001 supports 0 complete proposals"),
    ],
)
def test_a_budget_for_no_step_is_refused(world: World, budget: dict[str, Any], said: str) -> None:  # C251
    config = world.config(budget=budget, model={"prices": PRICES})
    with pytest.raises(ConfigError, match=said):
        refuse_too_small(resolve(config))


def test_a_budget_for_one_step_is_taken(world: World) -> None:
    refuse_too_small(resolve(world.config(budget={"max_calls": 35})))
    refuse_too_small(resolve(world.config(budget={"max_calls": 3}, train={"num_epochs": 0})))


def test_a_plan_writes_no_splits(tmp_path: Path) -> None:
    data = tmp_path / "tasks.csv"
    data.write_text("id,question,answer\n" + "".join(f"t{n},q {n},a\n" for n in range(20)), "utf-8")
    command = ["--data", str(data), "--scorer", "exact", "--backend", "mock_chat", "--out_root", str(tmp_path / "run")]
    done = subprocess.run(
        [sys.executable, "-m", "skillopt.cli.train", *command, "--plan", "--json", "--budget_max_calls", "9"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert plan["items"] == {"train": 4, "val": 2, "test": 14}
    assert plan["roles"]["target"]["calls"] == [20, 4 + 2 + 4 * 4 - 4 + 4 * 2 + 3 * 14]
    assert plan["smallest_gain"] == {"items": 1, "share": 0.5}
    assert plan["proposals"] == [0, 1]
    assert [path.name for path in tmp_path.iterdir()] == ["tasks.csv"]


def test_the_plan_is_for_people(world: World) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "skillopt.cli.train", "--config", str(world.config()), "--plan"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "target target-model: 49 to 169 calls" in done.stdout
    assert done.stderr == ""
    assert not world.server.requests


def test_a_pair_is_never_longer_than_the_plan_takes_it_to_be() -> None:
    long = "word " * 20_000
    results = [
        RolloutResult(
            id="a", hard=hard, question=long, predicted_answer=long, fail_reason=long,
            trajectory=({"role": "assistant", "content": long},),
        )
        for hard in (0.0, 1.0)
    ]  # fmt: skip
    (pair,) = build_comparison_pairs(
        results[:1], results[1:], render=lambda result: str(result.trajectory), success_threshold=1.0
    )
    assert count_tokens(format_pair(pair)) <= PAIR_TOKENS


def test_a_budget_for_no_step_ends_with_code_2(world: World) -> None:
    command = ["--config", str(world.config()), "--budget_max_calls", "34"]
    done = subprocess.run(
        [sys.executable, "-m", "skillopt.cli.train", *command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "flag --budget_max_calls: budget.max_calls = 34 supports 0 complete proposals" in done.stderr
    assert not world.out_root.exists()

"""A consolidation with a backend that keeps its answers: what is asked anew, what is never kept, what is counted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sleep.learn.learn_world import FakeBackend, holds, proposing, task

from skillopt_sleep.backends import CallCache, CliBackend, Outgoing, Reply
from skillopt_sleep.backends.faults import ProviderFault
from skillopt_sleep.learn import SlowHistory, consolidate, current_learned_lines
from skillopt_sleep.mining import make_llm_miner
from skillopt_sleep.types import ReplayResult, SessionDigest, TaskRecord

RULE = "Name the file."
Answer = Callable[[Outgoing, int], str]


class Provider(CliBackend):
    """Answers attempts by a function of the call and of how often this very prompt came; proposes RULE."""

    name = "provider"

    def __init__(self, answer: Answer, **options: Any) -> None:
        super().__init__("m", **options)
        self.answer = answer
        self.seen: Counter[str] = Counter()
        self.sent: list[tuple[str, str]] = []
        self.egress._sleep = lambda _: None

    def send(self, outgoing: Outgoing) -> Reply:
        self.sent.append((outgoing.kind, self.evidence_phase))
        self.seen[outgoing.prompt] += 1
        return Reply(self._said(outgoing), 10, 5)

    def _said(self, outgoing: Outgoing) -> str:
        if outgoing.kind == "attempt":
            return self.answer(outgoing, self.seen[outgoing.prompt])
        if outgoing.kind == "mine":
            return json.dumps([{"intent": "do the usual work", "rubric": "done", "satisfied": True}])
        if outgoing.kind == "slow_update":
            return json.dumps({"guidance": "- Read the whole request."})
        return json.dumps([{"op": "add", "content": RULE}] if RULE not in outgoing.prompt else [])


def exact(train: int = 3, val: int = 6) -> list[TaskRecord]:
    fields = {"reference_kind": "exact", "reference": "forty two"}
    made = [task(f"t{n}", "train", **fields) for n in range(train)]
    return made + [task(f"v{n}", "val", **fields) for n in range(val)]


def helped(outgoing: Outgoing, _: int) -> str:
    return "forty two" if RULE in outgoing.prompt else "no idea"


def test_the_last_look_is_at_new_answers_and_not_at_kept_ones() -> None:
    def lucky_once(outgoing: Outgoing, times: int) -> str:
        return "forty two" if RULE in outgoing.prompt and times == 1 else "no idea"

    backend = Provider(lucky_once, cache=CallCache())
    result = consolidate(backend, exact(), "mine", "", evolve_memory=False)
    assert [phase for kind, phase in backend.sent if kind == "attempt"].count("final_val") == 6
    assert (result.gate_action, result.new_skill) == ("reject", "mine")
    steady = consolidate(Provider(helped, cache=CallCache()), exact(), "mine", "", evolve_memory=False)
    assert current_learned_lines(steady.new_skill) == [RULE]


def test_a_baseline_that_could_not_be_asked_is_not_kept_as_an_answer(tmp_path: Path) -> None:
    broken = True

    def away(outgoing: Outgoing, _: int) -> str:
        if broken and RULE not in outgoing.prompt:
            raise ProviderFault("overloaded", kind="rate")
        return "forty two"

    cache = CallCache(tmp_path / "calls.jsonl")
    result = consolidate(Provider(away, cache=cache), exact(), "mine", "", evolve_memory=False)
    assert (result.gate_action, result.accepted, result.new_skill) == ("inconclusive", False, "mine")
    assert len(cache) == 0
    broken = False
    again = consolidate(
        Provider(away, cache=CallCache(tmp_path / "calls.jsonl")), exact(), "mine", "", evolve_memory=False
    )
    assert (again.baseline_score, again.no_edits_reason) == (1.0, "no_failures")


def test_every_kind_of_call_counts() -> None:
    """Miner, contrast and slow update are paid for like attempts, and the caps see them."""
    turns: Counter[str] = Counter()

    def wavering(outgoing: Outgoing, _: int) -> str:
        if RULE in outgoing.prompt:
            return "forty two"
        turns[outgoing.prompt] += 1
        return "forty two" if turns[outgoing.prompt] % 2 == 0 and "work t" in outgoing.prompt else "no idea"

    backend = Provider(wavering, cache=CallCache())
    make_llm_miner(backend)([SessionDigest("s", "/p", user_prompts=["do the usual work"])])
    before = SlowHistory(tuple((one, ReplayResult(one.id, 1.0, 1.0)) for one in exact(3, 0)))
    consolidate(backend, exact(), "mine", "", rollouts_k=2, slow_history=before)
    kinds = backend.meter.to_dict()["kinds"]
    assert set(kinds) >= {"mine", "attempt", "contrast", "slow_update"}
    assert all(row["tokens"] == 15 * row["calls"] for row in kinds.values())
    assert backend.tokens_used() == 15 * len(backend.sent) == sum(row["tokens"] for row in kinds.values())


def test_a_night_in_japanese_learns_a_japanese_rule() -> None:
    rule = "コミットの件名は命令形で、五十文字以内にする。"
    words = ("検索画面", "請求書", "ログイン", "在庫表", "通知", "設定画面", "帳票", "地図", "予約")
    items = [
        task(f"j{n}", "train" if n < 3 else "val", intent=f"{word}の変更について件名を書いてください")
        for n, word in enumerate(words)
    ]
    result = consolidate(FakeBackend(holds(rule), proposing([rule])), items, "# 手順\n\n丁寧に。\n", "")
    assert result.accepted
    assert result.new_skill.startswith("# 手順\n\n丁寧に。\n")
    assert current_learned_lines(result.new_skill) == [rule]

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skillopt.envs.base import spoken
from skillopt.envs.runner import check_error_rate, run_items, split_errors
from skillopt.errors import (
    AuthError,
    BadRequestError,
    BudgetExceededError,
    InterruptedRunError,
    RunError,
    TooManyErrorsError,
    TransientError,
)
from skillopt.model.values import ModelReply
from skillopt.scoring import Score
from skillopt.types import Item, RolloutResult
from skillopt.utils.cancel import CancelToken


def ids(results: list[RolloutResult]) -> list[str]:
    return [result.id for result in results]


def test_results_come_in_item_order_with_everything_an_analyst_needs(bench: Any, items: list[Item]) -> None:
    session = bench.session(lambda text, _: "wrong" if text == "q2" else text.upper())
    results = run_items(bench.env, items, "be brief", bench.context(session))
    assert ids(results) == [item.id for item in items]
    assert [result.hard for result in results] == [1, 1, 0, 1, 1, 1]
    wrong = results[2]
    assert wrong.fail_reason == "wrong_answer: expected Q2"
    assert wrong.target_system_prompt == "be brief"
    assert wrong.target_user_prompt == wrong.question == "q2"
    assert [entry["role"] for entry in wrong.trajectory] == ["user", "assistant"]
    assert wrong.usage.prompt_tokens == 10
    assert wrong.n_turns == 1
    assert results[0].fail_reason == ""


def test_nothing_is_run_twice_and_stored_results_equal_fresh_ones(bench: Any, items: list[Item]) -> None:
    session = bench.session()
    first = run_items(bench.env, items[:4], "s", bench.context(session))
    again = run_items(bench.env, items, "s", bench.context(session))
    assert len(session.calls) == 6
    assert again[:4] == first
    finished = [data for kind, data in bench.events if kind == "rollout_finished"]
    assert (finished[-1]["cached"], finished[-1]["done"], finished[-1]["ok"]) == (4, 6, 6)
    done = [data for kind, data in bench.events if kind == "item_done"]
    assert [data["done"] for data in done] == [1, 2, 3, 4, 5, 6]
    assert {data["split"] for data in done} == {"val"}


@pytest.mark.parametrize("change", ["skill", "model", "grader", "sample"])
def test_c086_another_skill_model_grader_or_sample_is_a_miss(bench: Any, items: list[Item], change: str) -> None:
    run_items(bench.env, items, "s", bench.context(bench.session()))
    session = bench.session(model="other" if change == "model" else "m")
    bench.env.version = 2 if change == "grader" else 1
    more = {"skill": {"skill_hash": "t"}, "sample": {"sample": 1}}.get(change, {})
    run_items(bench.env, items, "s", bench.context(session, **more))
    assert len(session.calls) == len(items)


def test_c085_items_of_two_splits_keep_their_own_results(bench: Any) -> None:
    train = Item("0", {"id": "0", "question": "a", "answer": "A"})
    val = Item("0", {"id": "0", "question": "b", "answer": "B"})
    session = bench.session()
    run_items(bench.env, [train], "s", bench.context(session, split="train"))
    (result,) = run_items(bench.env, [val], "s", bench.context(session))
    assert result.predicted_answer == "B"
    assert len(session.calls) == 2


def test_the_same_item_twice_is_one_task(bench: Any, items: list[Item]) -> None:
    session = bench.session()
    twice = Item(items[0].id, dict(items[0].data))
    results = run_items(bench.env, [items[0], items[1], twice], "s", bench.context(session))
    assert ids(results) == ["i0", "i1", "i0"]
    assert len(session.calls) == 2


def test_c071_missing_results_stay_visible_and_are_run_next_time(bench: Any, items: list[Item]) -> None:
    down = {"q1", "q3", "q4"}

    def answer(text: str, _: CancelToken) -> str:
        if text in down:
            raise TransientError(f"500 for {text[0]}")
        return text.upper()

    session = bench.session(answer)
    results = run_items(bench.env, items, "s", bench.context(session, item_retries=1))
    graded, errors = split_errors(results)
    assert (ids(graded), ids(errors)) == (["i0", "i2", "i5"], ["i1", "i3", "i4"])
    assert session.calls.count("q1") == 2
    with pytest.raises(TooManyErrorsError, match=r"3 of 6 items \(50%\).*TransientError: 500 for q"):
        check_error_rate(results, 0.05)
    check_error_rate(results, 0.5)
    down.clear()
    session.calls.clear()
    assert all(result.ok for result in run_items(bench.env, items, "s", bench.context(session)))
    assert sorted(session.calls) == ["q1", "q3", "q4"]


def test_failed_items_are_tried_again_after_the_others(bench: Any, items: list[Item]) -> None:
    seen: set[str] = set()

    def answer(text: str, _: CancelToken) -> str:
        if text == "q0" and text not in seen:
            seen.add(text)
            raise TransientError("reset")
        return text.upper()

    session = bench.session(answer)
    results = run_items(bench.env, items, "s", bench.context(session, workers=1))
    assert all(result.hard == 1 for result in results)
    assert session.calls[-1] == "q0"
    assert sum(kind == "item_done" for kind, _ in bench.events) == 6


def test_refused_requests_are_not_tried_again(bench: Any, items: list[Item]) -> None:
    def answer(text: str, _: CancelToken) -> str:
        raise BadRequestError("too long")

    session = bench.session(answer)
    (result,) = run_items(bench.env, items[:1], "s", bench.context(session, item_retries=3))
    assert (result.status, result.error, len(session.calls)) == ("error", "BadRequestError: too long", 1)


@pytest.mark.parametrize("value", [None, Score(float("nan"), 0.0), Score(0.0, 7.0)])
def test_c169_a_scorer_that_fails_leaves_its_item_ungraded(bench: Any, items: list[Item], value: Any) -> None:
    class Broken(type(bench.env)):  # type: ignore[misc]
        def score(self, item: Item, answer: str) -> Any:
            if item.id == "i3":
                raise KeyError("gold")
            return value if item.id == "i4" else super().score(item, answer)

    session = bench.session()
    results = run_items(Broken(), items, "s", bench.context(session, item_retries=2))
    assert ids(results) == [item.id for item in items]
    assert [result.ok for result in results] == [True, True, True, False, False, True]
    assert results[3].error == "item 'i3' is ungraded: the scorer raised KeyError: 'gold'"
    assert results[4].error.startswith("item 'i4' is ungraded: ")
    assert results[4].predicted_answer == "Q4"
    assert len(session.calls) == 6


def test_c142_a_cut_reply_is_flagged(bench: Any, items: list[Item]) -> None:
    session = bench.session(lambda *_: ModelReply("I thi", finish_reason="length"))
    (result,) = run_items(bench.env, items[:1], "s", bench.context(session))
    assert result.fail_reason.startswith("cut_off: ")
    assert result.trajectory[1]["finish_reason"] == "length"
    assert "cut off" in result.trajectory[-1]["content"]
    assert result.extras["finish_reason"] == "length"


def test_an_item_is_cancelled_at_its_deadline_and_the_others_go_on(bench: Any, items: list[Item]) -> None:
    def answer(text: str, cancel: CancelToken) -> str:
        if text == "q1":
            cancel.wait(30)
        return text.upper()

    started = time.monotonic()
    results = run_items(bench.env, items, "s", bench.context(bench.session(answer), item_timeout=1.0, item_retries=0))
    assert time.monotonic() - started < 20
    assert [result.ok for result in results] == [True, False, True, True, True, True]
    assert results[1].error == "DeadlineError: not finished within 1 s"


def test_code_that_ignores_its_deadline_is_left_behind_and_its_late_result_discarded(
    bench: Any, items: list[Item], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skillopt.envs.runner._GRACE_SECONDS", 0.05)
    release, ended = threading.Event(), threading.Event()

    def answer(text: str, _: CancelToken) -> str:
        if text == "q1":
            release.wait(60)
            ended.set()
        return text.upper()

    context = bench.context(bench.session(answer), item_timeout=1.0, item_retries=0)
    results = run_items(bench.env, items, "s", context)
    assert [result.ok for result in results] == [True, False, True, True, True, True]
    release.set()
    assert ended.wait(60)
    assert sorted(result.id for _, _, result in bench.store.rollouts()) == ["i0", "i2", "i3", "i4", "i5"]


def test_a_fatal_error_ends_the_run_at_once_and_keeps_what_is_finished(bench: Any, items: list[Item]) -> None:
    def answer(text: str, cancel: CancelToken) -> str:
        if text == "q2":
            raise AuthError("401")
        return text.upper()

    session = bench.session(answer)
    with pytest.raises(AuthError, match="401"):
        run_items(bench.env, items, "s", bench.context(session, workers=1))
    assert session.calls == ["q0", "q1", "q2"]
    assert sorted(result.id for _, _, result in bench.store.rollouts()) == ["i0", "i1"]


def test_a_fatal_error_cancels_items_under_way(bench: Any, items: list[Item]) -> None:
    waiting = threading.Event()

    def answer(text: str, cancel: CancelToken) -> str:
        if text == "q0":
            waiting.set()
            cancel.wait(30)
        waiting.wait(60)
        raise AuthError("401")

    started = time.monotonic()
    with pytest.raises(AuthError):
        run_items(bench.env, items, "s", bench.context(bench.session(answer), workers=2))
    assert time.monotonic() - started < 20


def test_a_used_up_budget_lets_paid_items_finish(bench: Any, items: list[Item]) -> None:
    over = threading.Event()
    refused: list[threading.Thread] = []

    def answer(text: str, cancel: CancelToken) -> str:
        if text == "q0":
            over.wait(60)
            refused[0].join(60)
            cancel.wait(0.2)
            return text.upper()
        refused.append(threading.current_thread())
        over.set()
        raise BudgetExceededError("budget.max_calls")

    session = bench.session(answer)
    with pytest.raises(BudgetExceededError):
        run_items(bench.env, items, "s", bench.context(session, workers=2))
    assert [result.id for _, _, result in bench.store.rollouts()] == ["i0"]
    assert len(session.calls) == 2


def test_a_stopped_run_starts_nothing_more(bench: Any, items: list[Item]) -> None:
    stop = CancelToken()

    def answer(text: str, cancel: CancelToken) -> str:
        stop.cancel()
        cancel.wait(30)
        return text

    session = bench.session(answer)
    with pytest.raises(InterruptedRunError):
        run_items(bench.env, items, "s", bench.context(session, workers=1, stop=stop))
    assert session.calls == ["q0"]
    assert list(bench.store.rollouts()) == []


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (RolloutResult("i0", hard=2.0), "hard is 2.0"),
        (RolloutResult("other", hard=1.0), "a result for 'other'"),
        (None, "run_item returned NoneType"),
    ],
)
def test_results_of_a_custom_run_item_are_checked(bench: Any, items: list[Item], made: Any, words: str) -> None:
    class Own(type(bench.env)):  # type: ignore[misc]
        def run_item(self, item: Item, skill: str, chat: Any) -> Any:
            return made

    (result,) = run_items(Own(), items[:1], "s", bench.context(bench.session()))
    assert (result.id, result.status) == ("i0", "error")
    assert words in result.error
    assert list(bench.store.rollouts()) == []


def test_turns_of_a_custom_run_item_are_counted(bench: Any, items: list[Item]) -> None:
    class Twice(type(bench.env)):  # type: ignore[misc]
        def run_item(self, item: Item, skill: str, chat: Any) -> RolloutResult:
            messages = self.messages(item, skill)
            turns = [spoken(chat(messages)), {"role": "user", "content": "Sure?"}]
            reply = chat([*messages, *turns])
            return self.result(item, item.data["answer"], messages, [*turns, spoken(reply)], chat)

    (result,) = run_items(Twice(), items[:1], "s", bench.context(bench.session()))
    assert (result.hard, result.n_turns, result.usage.calls, result.usage.prompt_tokens) == (1, 2, 2, 20)
    assert [entry["role"] for entry in result.trajectory] == ["user", "assistant", "user", "assistant"]


def test_a_store_that_cannot_be_written_ends_the_run(bench: Any, items: list[Item]) -> None:
    class Full:
        def get_rollout(self, key: str) -> None:
            return None

        def put_rollout(self, *args: Any, **kw: Any) -> None:
            raise RunError("disk full")

    with pytest.raises(RunError, match="disk full"):
        run_items(bench.env, items, "s", bench.context(bench.session(), store=Full()))


def test_public_rollout_runs_in_a_given_context(bench: Any, items: list[Item]) -> None:
    rows = [dict(item.data) for item in items]
    results = bench.env.rollout(rows, "s", "unused", context=bench.context(bench.session()))
    assert [(row["id"], row["hard"]) for row in results] == [(item.id, 1.0) for item in items]


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(delays=st.lists(st.integers(0, 4), min_size=1, max_size=8), workers=st.integers(1, 8))
def test_order_of_results_is_order_of_items(bench: Any, delays: list[int], workers: int) -> None:
    rows = [Item(str(n), {"question": f"{n}", "answer": f"{n}"}) for n in range(len(delays))]

    def answer(text: str, cancel: CancelToken) -> str:
        cancel.wait(delays[int(text)] / 1000)
        return text

    context = replace(bench.context(bench.session(answer), workers=workers), store=None)
    results = run_items(bench.env, rows, "s", context)
    assert ids(results) == [item.id for item in rows]
    assert all(result.hard == 1 for result in results)


def test_an_item_whose_code_ends_the_process_is_an_error_of_that_item(bench: Any, items: list[Item]) -> None:
    def answer(text: str, _: CancelToken) -> str:
        if text == "q1":
            raise SystemExit(3)
        return text.upper()

    results = run_items(bench.env, items, "s", bench.context(bench.session(answer), stop=CancelToken(timeout=60)))
    assert [result.status for result in results[:3]] == ["ok", "error", "ok"]
    assert "SystemExit" in results[1].error


def test_a_result_that_cannot_be_kept_is_an_error_of_its_item(bench: Any, items: list[Item]) -> None:
    class Odd(type(bench.env)):  # type: ignore[misc]
        def result(self, item: Item, *args: Any) -> RolloutResult:
            result = super().result(item, *args)
            return replace(result, extras={"table": {(1, 2): 3}}) if item.id == items[0].id else result

    results = run_items(Odd(), items, "s", bench.context(bench.session()))
    assert [result.status for result in results[:2]] == ["error", "ok"]
    assert "cannot be kept" in results[0].error

"""The one way out: what leaves, what is paid for, what is kept, what is told."""

from __future__ import annotations

import contextlib
import json
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skillopt_sleep.backends import CallCache, NotSent, Reply
from skillopt_sleep.backends.faults import ProviderFault
from skillopt_sleep.budget import Meter
from skillopt_sleep.errors import BudgetSpent, CallFailed
from skillopt_sleep.evidence import EvidenceLog, attach, read_events, set_phase
from skillopt_sleep.types import TaskRecord

KEY = "sk-abcdefghijklmnopqrstuv"
MakeTask = Callable[..., TaskRecord]


def test_secrets_are_taken_out_before_anything_leaves(scripted: Any, task: MakeTask) -> None:
    backend = scripted()
    backend.attempt(task(f"use {KEY} here", context_excerpt="Authorization: Bearer abcdef123456"), KEY, KEY)
    backend.call(f"mine {KEY}", kind="mine")
    assert len(backend.sent) == 2
    assert not any(KEY in sent.prompt or "abcdef123456" in sent.prompt for sent in backend.sent)


def test_a_tool_that_is_called_like_a_secret_is_not_sent(scripted: Any, task: MakeTask) -> None:
    backend = scripted()
    with pytest.raises(CallFailed, match="looks like a secret"):
        backend.attempt_with_tools(task(), "", "", [KEY])
    assert backend.sent == []


def test_no_call_is_paid_for_twice_also_after_a_restart(scripted: Any, tmp_path: Path) -> None:
    first = scripted("one", cache=CallCache(tmp_path / "calls.jsonl"))
    assert first.call("q") == first.call("q") == "one"
    second = scripted("two", cache=CallCache(tmp_path / "calls.jsonl"))
    assert second.call("q") == "one"
    assert second.call("other") == "two"
    assert (len(first.sent), len(second.sent)) == (1, 1)
    assert second.tokens_used() > 0


def test_the_cache_file_is_private_and_survives_a_line_that_was_cut_off(scripted: Any, tmp_path: Path) -> None:
    path = tmp_path / "night" / "calls.jsonl"
    scripted("one", cache=CallCache(path)).call("q")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    with path.open("ab") as stream:
        stream.write(b'{"version": 1, "key": "ab\xff')
    cache = CallCache(path)
    assert len(cache) == 1
    scripted("two", cache=cache).call("other")
    assert len(CallCache(path)) == 2
    cache.clear()
    assert not path.exists()


def test_a_failed_call_raises_is_not_kept_and_is_made_again(scripted: Any) -> None:
    backend = scripted(ProviderFault("no", kind="refused"), "fine")
    with pytest.raises(CallFailed) as failure:
        backend.call("q")
    assert failure.value.kind == "refused"
    assert backend.last_call_error == "no"
    assert backend.call("q") == "fine"
    assert backend.last_call_error == ""
    backend.answers = [ProviderFault("no", kind="refused")]
    with pytest.raises(CallFailed):
        backend.call("other")
    assert backend.call("q") == "fine"
    assert backend.last_call_error == ""


def test_a_provider_that_is_down_stops_the_night_and_one_that_stumbles_does_not(scripted: Any) -> None:
    down = ProviderFault("no route", kind="transient")
    stumbling = scripted(*[down] * 4, "fine", *[down] * 4, "fine")
    stumbling.tries = 1
    kinds = []
    for number in range(10):
        try:
            kinds.append(stumbling.call(f"q{number}"))
        except CallFailed as failure:
            kinds.append(failure.kind)
    assert kinds == [*["transient"] * 4, "fine", *["transient"] * 4, "fine"]
    dead = scripted(*[down] * 9)
    dead.tries = 1
    for number in range(4):
        with pytest.raises(CallFailed, match="no route"):
            dead.call(f"q{number}")
    with pytest.raises(CallFailed, match=r"5 calls to .* in a row did not get through; the last one: no route") as last:
        dead.call("q5")
    assert last.value.fatal


def test_an_empty_answer_is_a_failure_and_never_an_answer(scripted: Any) -> None:
    backend = scripted(" \n")
    with pytest.raises(CallFailed) as failure:
        backend.call("q")
    assert failure.value.kind == "empty"
    assert len(backend.sent) == backend.tries
    assert len(backend.egress._memory) == 0


def test_fresh_asks_anew_and_a_resumed_night_finds_what_was_paid(scripted: Any, task: MakeTask, tmp_path: Path) -> None:
    answers = [f"answer {n}" for n in range(9)]
    first = scripted(*answers, cache=CallCache(tmp_path / "c"))
    said = [first.attempt(task(), "", ""), first.attempt(task(), "", "", fresh=True)]
    said.append(first.attempt(task(), "", "", fresh=True))
    assert said == answers[:3]
    assert first.attempt(task(), "", "") == answers[0]
    second = scripted("never", cache=CallCache(tmp_path / "c"))
    again = [second.attempt(task(), "", "", fresh=fresh) for fresh in (False, True, True)]
    assert again == said
    assert second.sent == []


def test_samples_of_one_task_differ_and_are_each_kept(scripted: Any, task: MakeTask) -> None:
    backend = scripted("a", "b", "c")
    said = [backend.attempt(task(), "", "", sample) for sample in (0, 1, 2, 1)]
    assert said == ["a", "b", "c", "b"]


def test_two_threads_with_the_same_call_pay_once(scripted: Any) -> None:
    gate = threading.Barrier(4)

    def slow(_: object) -> str:
        threading.Event().wait(0.05)
        return "one"

    backend = scripted(slow)
    said: list[str] = []

    def ask() -> None:
        gate.wait()
        said.append(backend.call("q"))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == ["one"] * 4
    assert len(backend.sent) == 1
    assert len(backend.egress._turns) == 0


def test_passing_failures_are_tried_again_with_the_wait_that_was_asked_for(scripted: Any) -> None:
    backend = scripted(ProviderFault("slow down", kind="rate", wait=7.0), ProviderFault("5xx"), "fine")
    assert backend.call("q") == "fine"
    assert backend.waits[0] == 7.0
    assert 1.0 <= backend.waits[1] <= 1.25
    assert backend.meter.calls == 3


def test_the_last_failure_is_raised_without_a_wait_after_it(scripted: Any) -> None:
    backend = scripted(ProviderFault("gone"))
    with pytest.raises(CallFailed, match="gone"):
        backend.call("q")
    assert len(backend.sent) == 3
    assert len(backend.waits) == 2


@pytest.mark.parametrize(
    "fault",
    [
        ProviderFault("key", kind="auth"),
        ProviderFault("address", kind="setup"),
        ProviderFault("an hour", kind="rate", wait=3600.0),
    ],
)
def test_what_cannot_pass_is_not_tried_again(scripted: Any, fault: ProviderFault) -> None:
    backend = scripted(fault)
    with pytest.raises(CallFailed):
        backend.call("q")
    assert len(backend.sent) == 1
    assert backend.waits == []


@pytest.mark.parametrize(
    ("caps", "limit"),
    [({"max_calls": 0}, "calls"), ({"max_tokens": 0}, "tokens"), ({"max_minutes": 0}, "minutes")],
)
def test_a_cap_of_zero_sends_nothing(scripted: Any, caps: dict[str, int], limit: str) -> None:
    backend = scripted(meter=Meter(**caps))
    with pytest.raises(BudgetSpent) as spent:
        backend.call("q")
    assert spent.value.limit == limit
    assert backend.sent == []


def test_a_cap_stops_between_calls_and_counts_retries_and_what_is_kept_stays(scripted: Any) -> None:
    backend = scripted("a", ProviderFault("5xx"), "never", meter=Meter(max_calls=2))
    assert backend.call("one") == "a"
    with pytest.raises(BudgetSpent):
        backend.call("two")
    assert len(backend.sent) == 2
    assert backend.call("one") == "a"


def test_the_provider_s_usage_counts_and_an_estimate_is_marked(scripted: Any, tmp_path: Path) -> None:
    backend = scripted(Reply("x", 100, 20), "four by four by four by")
    attach(backend, EvidenceLog(tmp_path / "e.jsonl"))
    backend.call("a", kind="mine")
    assert backend.tokens_used() == backend.meter.tokens == 120
    assert not backend.tokens_estimated
    backend.call("b" * 40, kind="mine")
    assert backend.tokens_used() == 120 + 10 + 6
    usage = [event["usage"]["estimated"] for event in read_events(tmp_path / "e.jsonl")]
    assert usage == [False, True]
    assert backend.tokens_estimated


def test_an_answer_without_a_text_is_paid_for_and_counts(scripted: Any) -> None:
    told = ProviderFault("thinking to the limit", kind="empty", tokens=8_000)
    backend = scripted(told, meter=Meter(max_tokens=20_000))
    with pytest.raises(BudgetSpent):
        for number in range(10):
            with contextlib.suppress(CallFailed):
                backend.call(f"q{number}")
    assert backend.meter.tokens == backend.tokens_used() == 16_000
    silent = scripted(Reply(" "), meter=Meter())
    silent.tries = 1
    with pytest.raises(CallFailed):
        silent.call("a" * 40)
    assert silent.meter.tokens == 10 + 1
    refused = scripted(ProviderFault("no", kind="refused"))
    with pytest.raises(CallFailed):
        refused.call("a" * 40)
    assert refused.meter.tokens == 10
    assert refused.tokens_estimated


def test_a_conversation_with_tools_counts_each_of_its_requests(scripted: Any, task: MakeTask) -> None:
    backend = scripted(Reply("x", 10, 1, tools_called=("t",), requests=3), meter=Meter(max_calls=4))
    backend.attempt_with_tools(task(), "", "", ["t"])
    assert backend.meter.calls == 3
    backend.call("one more")
    with pytest.raises(BudgetSpent):
        backend.call("and another")


def test_tokens_of_a_thread_are_its_own(scripted: Any) -> None:
    backend = scripted(Reply("x", 100, 20))
    thread = threading.Thread(target=backend.call, args=("elsewhere",))
    thread.start()
    thread.join()
    before = backend.tokens_here()
    backend.call("here")
    assert (before, backend.tokens_here(), backend.tokens_used()) == (0, 120, 240)


def test_the_evidence_tells_of_calls_hits_and_failures_redacted(scripted: Any, tmp_path: Path) -> None:
    backend = scripted("yes", ProviderFault("declined", kind="refused"))
    attach(backend, EvidenceLog(tmp_path / "e.jsonl"))
    set_phase(backend, "baseline_val")
    backend.call(f"q {KEY}", kind="attempt")
    backend.call(f"q {KEY}", kind="attempt")
    with pytest.raises(CallFailed):
        backend.call("w", kind="judge")
    made, hit, lost = read_events(tmp_path / "e.jsonl")
    assert {made["stage"], made["event"]} == {"replay", "model_call"}
    assert made["cache_hit"] is False
    assert made["response"] == "yes"
    assert (made["phase"], made["backend"], made["model"]) == ("baseline_val", "scripted", "m1")
    assert hit["cache_hit"] is True
    assert hit["key"] == made["key"]
    assert "prompt" not in hit
    assert (lost["kind"], lost["error"], lost["failure"], lost["response"]) == ("judge", "declined", "refused", "")
    assert KEY not in (tmp_path / "e.jsonl").read_text("utf-8")


def test_a_preview_shows_exactly_what_would_be_sent_and_sends_nothing(scripted: Any, task: MakeTask) -> None:
    sender, previewer = scripted(), scripted()
    sender.attempt(task(f"do {KEY}"), "the skill", "")
    calls = previewer.start_preview()
    with pytest.raises(NotSent) as silence:
        previewer.attempt(task(f"do {KEY}"), "the skill", "")
    assert previewer.sent == []
    assert previewer.meter.calls == 0
    assert not silence.value.fatal
    assert [call.prompt for call in calls] == [call.prompt for call in sender.sent]
    assert calls[0].tokens > 10
    assert (calls[0].kind, calls[0].backend, calls[0].model) == ("attempt", "scripted", "m1")


def test_a_reply_is_cleaned_before_it_is_kept_and_reads_the_same_from_disk(scripted: Any, tmp_path: Path) -> None:
    said = scripted(f"the key is {KEY}", cache=CallCache(tmp_path / "c")).call("q")
    assert KEY not in (tmp_path / "c").read_text("utf-8")
    assert scripted(cache=CallCache(tmp_path / "c")).call("q") == said


def test_what_decides_about_an_answer_is_part_of_its_key(scripted: Any, tmp_path: Path) -> None:
    cache = CallCache(tmp_path / "c")
    one, two = scripted("one", cache=cache), scripted("two", cache=cache)
    two.model = "m2"
    assert [one.call("q"), two.call("q"), one.call("q", kind="mine"), one.call("q", max_tokens=7)] != ["one"] * 4
    assert len(cache) == 4
    assert all(json.loads(line)["key"] for line in (tmp_path / "c").read_text("utf-8").splitlines())

"""Events reach their sinks in order, and the console shows them as lines."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from skillopt.tracking import EventLog
from skillopt.tracking.console import ConsoleSink
from skillopt.tracking.jsonl import JsonlSink


def test_events_are_appended_without_progress_ticks(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    log = EventLog([JsonlSink(path)])
    log.emit("step_started", step=1, total_steps=3, epoch=1)
    log.emit("item_done", purpose="rollout", done=1, total=2)
    log.emit("notice", text="é")
    log.close()
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [row["kind"] for row in rows] == ["step_started", "notice"]
    assert rows[1]["text"] == "é"
    assert rows[0]["time"] > 0


def test_lines_carry_the_words_that_dashboards_look_for() -> None:
    stream = io.StringIO()
    log = EventLog([ConsoleSink(stream, bars=False)])
    log.emit("baseline_started", purpose="baseline")
    log.emit("epoch_started", epoch=1, epochs=4)
    log.emit("step_started", step=2, total_steps=8, epoch=1)
    log.emit("phase", name="1/6 ROLLOUT", detail="20 items")
    log.emit("item_done", purpose="rollout", split="train", done=1, total=20, ok=1, cached=0)
    log.emit("rollout_finished", purpose="rollout", split="train", total=20, ok=19, errors=1, cached=4, hard=0.5)
    log.emit("gate", action="accept_new_best", metric="hard", current=0.5, candidate=0.75, best=0.75)
    log.emit("unknown kind", anything=1)
    shown = stream.getvalue()
    assert "BASELINE evaluate\n[EPOCH 1/4]\n[STEP 2/8]\n  1/6 ROLLOUT  20 items\n" in shown
    assert "rollout: 20 items, 1 without a score, 4 from the store  hard 0.5000\n" in shown
    assert "gate: accept_new_best  (hard 0.7500 against 0.5000, best 0.7500)\n" in shown
    assert "unknown" not in shown


def test_retries_of_one_kind_are_said_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, clock = io.StringIO(), [100.0]
    monkeypatch.setattr("skillopt.tracking.console.time.monotonic", lambda: clock[0])
    log = EventLog([ConsoleSink(stream, bars=False)])
    for error in ("TransientError", "TransientError", "RateLimitError", "TransientError"):
        log.emit("model_retry", stage="rollout", error=error, wait_s=1.0)
    clock[0] += 6.0
    log.emit("model_retry", stage="rollout", error="TransientError", wait_s=2.0)
    assert stream.getvalue().splitlines() == [
        "  retry in 1.0 s (rollout): TransientError",
        "  retry in 1.0 s (rollout): RateLimitError",
        "  retry in 2.0 s (rollout): TransientError (and 2 more since the last such line)",
    ]


def test_text_of_a_model_cannot_steer_the_terminal() -> None:
    stream = io.StringIO()
    EventLog([ConsoleSink(stream, bars=False)]).emit("notice", text="a\x1b[2Jb\rc")
    assert stream.getvalue() == "note: a[2Jbc\n"


def test_bars_are_drawn_on_a_terminal_only() -> None:
    stream = io.StringIO()
    log = EventLog([ConsoleSink(stream, bars=True)])
    log.emit("item_done", purpose="selection", split="val", done=1, total=2, ok=1, cached=0)
    log.emit("notice", text="between")
    log.close()
    assert "selection" in stream.getvalue()
    assert "note: between" in stream.getvalue()


def test_errors_that_pass_are_said_once_and_those_that_end_the_command_are_left_to_it() -> None:
    stream = io.StringIO()
    log = EventLog([ConsoleSink(stream, bars=False)])
    for _ in range(3):
        log.emit("model_error", stage="rollout", error="TransientError", message="HTTP 500", fatal=False)
        log.emit("rate_limited", limit=4, lowered=True)
        log.emit("rate_limited", limit=4, lowered=False)
    log.emit("model_error", stage="rollout", error="AuthError", message="HTTP 401", fatal=True)
    log.emit("run_stopped", reason="HTTP 401")
    assert stream.getvalue().splitlines() == [
        "  failed (rollout): TransientError: HTTP 500",
        "  rate limited: fewer calls at a time from now on",
    ]

"""Evidence: redacted before it is cut, private, in order across restarts, never in the way."""

from __future__ import annotations

import json
import os
import stat
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from skillopt_sleep import evidence
from skillopt_sleep.evidence import EvidenceLog, read_events


def test_events_carry_time_in_utc_stage_payload_and_a_sequence_that_goes_on_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "night" / "evidence.jsonl"
    EvidenceLog(path).log("cycle", "start", night=1)
    EvidenceLog(path).log("cycle", "end", score=float("nan"))
    first, second = read_events(path)
    assert (first["stage"], first["event"], first["night"], first["seq"]) == ("cycle", "start", 1, 1)
    assert first["ts"].endswith("+00:00")
    assert (second["seq"], second["score"]) == (2, None)


def test_a_secret_on_the_cut_is_redacted_before_it_is_cut(tmp_path: Path) -> None:
    log = EvidenceLog(tmp_path / "e.jsonl", max_chars=10)
    log.log("mine", "miner_exchange", prompt="x" * 190 + " sk-" + "a1" * 30 + "y" * 100, nested=[{"token": "abc"}])
    text = log.path.read_text()
    assert "sk-a1" not in text
    assert "abc" not in text
    event = read_events(log.path)[0]
    assert event["prompt"].startswith("x" * 190)
    assert "more characters" in event["prompt"]
    assert log.max_chars == 200


def test_redaction_can_be_switched_off(tmp_path: Path) -> None:
    log = EvidenceLog(tmp_path / "e.jsonl", redact=False)
    log.log("a", "b", text="sk-abcdefghij1234")
    assert "sk-abcdefghij1234" in log.path.read_text()


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_the_file_is_private(tmp_path: Path) -> None:
    log = EvidenceLog(tmp_path / "new" / "e.jsonl")
    log.log("a", "b")
    assert stat.S_IMODE(log.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(log.path.parent.stat().st_mode) == 0o700


def test_broken_lines_are_skipped_and_the_rest_is_in_order(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    rows = [b'{"seq": 2, "event": "b"}', b"\xff\xfe{", b"[]", b"42", b'{"seq": 1, "event": "a"}', b'{"seq": 3, "ev']
    path.write_bytes(b"\n".join(rows))
    assert [event["event"] for event in read_events(path)] == ["a", "b"]
    EvidenceLog(path).log("x", "c")
    assert [event["event"] for event in read_events(path)] == ["a", "b", "c"]
    assert read_events(tmp_path / "missing") == []


def test_a_file_that_cannot_be_written_is_a_problem_to_report_and_no_error(tmp_path: Path) -> None:
    (tmp_path / "e.jsonl").mkdir()
    log = EvidenceLog(tmp_path / "e.jsonl")
    log.log("a", "b")
    assert "evidence is not written" in log.problem


def test_threads_write_whole_lines_with_distinct_numbers(tmp_path: Path) -> None:
    log = EvidenceLog(tmp_path / "e.jsonl")
    threads = [threading.Thread(target=lambda: [log.log("a", "b", n=n) for n in range(20)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = log.path.read_text().splitlines()
    assert sorted(json.loads(line)["seq"] for line in lines) == list(range(1, 81))


def test_both_halves_of_a_dual_backend_share_log_and_phase_and_an_old_log_goes(tmp_path: Path) -> None:
    target, optimizer = SimpleNamespace(), SimpleNamespace(target="a name, no backend")
    dual = SimpleNamespace(target=target, optimizer=optimizer, judger=target)
    log = EvidenceLog(tmp_path / "e.jsonl")
    evidence.attach(dual, log)
    evidence.set_phase(dual, "train")
    assert evidence.get(dual) is evidence.get(target) is evidence.get(optimizer) is log
    assert evidence.phase(optimizer) == "train"
    evidence.attach(dual, None)
    assert (evidence.get(optimizer), evidence.phase(target)) == (None, "")
    assert evidence.get(SimpleNamespace()) is None

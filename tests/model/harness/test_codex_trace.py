"""A Codex run as text, as steps, in short."""

from __future__ import annotations

import itertools
import json

from hypothesis import given
from hypothesis import strategies as st

from skillopt.model.harness.codex_trace import (
    events_as_text,
    extract_codex_trace_prefix,
    format_codex_trace_steps,
    parse_codex_raw,
    summarize,
)

RAW = "header\nuser\nDo it\ncodex\nI read it.\nexec\ncat task.md\nsucceeded\nWhich city?\ncodex\nParis"


def lines(*events: object) -> str:
    return "".join(json.dumps(event) + "\n" for event in events)


def item(kind: str, **fields: object) -> dict[str, object]:
    return {"type": "item.completed", "item": {"id": "i", "type": kind, **fields}}


EVENTS = lines(
    {"type": "thread.started", "thread_id": "t"},
    item("reasoning", text="Look first."),
    item("command_execution", command="bash -lc 'cat task.md'", exit_code=0, aggregated_output="exec\nWhich city?\n"),
    item("command_execution", command="cat .agents/skills/skillopt-target/SKILL.md", exit_code=1, aggregated_output=""),
    item("file_change", changes=[{"path": "a.py"}], status="completed"),
    item("error", message="no\nmetadata"),
    item("agent_message", text="<answer>B</answer>"),
    {"type": "turn.completed", "usage": {"input_tokens": 1200, "output_tokens": 34}},
)


def test_steps_with_their_lines() -> None:
    found = parse_codex_raw(RAW)
    assert [(s["index"], s["type"], s["start_line"], s["end_line"]) for s in found["steps"]] == [
        *((1, "user", 2, 3), (2, "codex", 4, 5), (3, "exec", 6, 9), (4, "codex", 10, 11)),
    ]
    assert found["steps"][2]["content"] == "cat task.md\nsucceeded\nWhich city?"
    assert found["trace_body"] == RAW.removeprefix("header\n")
    assert parse_codex_raw("nothing") == {"steps": [], "trace_body": ""}


def test_steps_as_lines_within_their_limits() -> None:
    assert format_codex_trace_steps(RAW).splitlines()[2:] == ["[3] exec: cat task.md | succeeded", "[4] codex: Paris"]
    assert len(format_codex_trace_steps("codex\n" + "x" * 2000)) <= 520
    assert len(format_codex_trace_steps("codex\nx\n" * 900, max_chars=100)) <= 100


def test_the_beginning_of_a_trace() -> None:
    assert extract_codex_trace_prefix(RAW, after_step=2) == "user\nDo it\ncodex\nI read it."
    assert extract_codex_trace_prefix(RAW, after_step=99) == RAW.removeprefix("header\n")
    assert extract_codex_trace_prefix(RAW, after_step=0) == extract_codex_trace_prefix("", after_step=3) == ""


def test_events_become_steps_and_output_of_a_command_begins_none() -> None:
    trace = events_as_text(EVENTS)
    kinds = [step["type"] for step in parse_codex_raw(trace)["steps"]]
    assert kinds == ["codex", "exec", "exec", "exec", "codex"]
    assert "ERROR: no metadata" in trace and trace.endswith("tokens used\n1,234")
    assert events_as_text("plain words") == "plain words"


def test_the_summary_says_what_was_read_and_how_it_ended() -> None:
    summary = summarize(events_as_text(EVENTS), "<answer>B</answer>", {"sandbox": "read-only"})
    assert summary.splitlines()[:7] == [
        *("sandbox: read-only", "read task.md: yes", "read SKILL.md: yes", "error: no metadata"),
        *("answer format: well_formed", "answer label: B", "tokens used: 1,234"),
    ]
    assert "[3] exec: cat .agents/skills/skillopt-target/SKILL.md | exited 1" in summary
    ends = {"": "missing", "Paris": "plain_text", "<answer>Paris</answer>": "tagged_nonlabel"}
    assert {answer: summarize("", answer, {}).splitlines()[-1] for answer in ends} == {
        answer: f"answer format: {kind}" for answer, kind in ends.items()
    }


@given(st.text(alphabet="uxec\n odser"))
def test_reading_a_trace_never_fails_and_keeps_every_line(raw: str) -> None:
    steps = parse_codex_raw(raw)["steps"]
    assert [step["index"] for step in steps] == list(range(1, len(steps) + 1))
    assert all(a["end_line"] + 1 == b["start_line"] for a, b in itertools.pairwise(steps))
    format_codex_trace_steps(raw)


@given(st.lists(st.text(), max_size=4))
def test_output_never_begins_a_step(outputs: list[str]) -> None:
    events = [item("command_execution", command="ls", exit_code=0, aggregated_output=text) for text in outputs]
    steps = parse_codex_raw(events_as_text(lines(*events)))["steps"]
    assert len(steps) == len(outputs)

"""Codex's transcripts, live and archived."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sleep.worlds import START, codex_lines, sessions, write

from skillopt_sleep import prompts
from skillopt_sleep.harvest import harvest_codex
from skillopt_sleep.harvest.codex import without_context


def put(home: Path, name: str, records: object) -> Path:
    return write(home / name, records)  # type: ignore[arg-type]


def item(role: str, content: object, **more: object) -> dict[str, object]:
    payload = {"type": "message", "role": role, "content": content, **more}
    return {"type": "response_item", "timestamp": "2026-02-03T10:00:01Z", "payload": payload}


def test_live_and_archived_sessions_are_read(tmp_path: Path) -> None:
    put(tmp_path, "archived_sessions/old.jsonl", codex_lines(["Old request"], session="old"))
    put(tmp_path, "sessions/2026/02/03/new.jsonl", codex_lines(["New request"], session="new", at=START + 9))
    assert [digest.session_id for digest in harvest_codex(tmp_path)] == ["new", "old"]
    assert [digest.session_id for digest in harvest_codex(tmp_path / "archived_sessions")] == ["old"]


def test_a_text_that_came_as_event_and_as_item_is_one_turn(tmp_path: Path) -> None:
    put(tmp_path, "sessions/s.jsonl", codex_lines(["Rename the helper", "go on", "go on"]))
    (found,) = harvest_codex(tmp_path)
    assert found.user_prompts == ["Rename the helper", "go on", "go on"]
    assert (found.n_user_turns, found.n_assistant_turns) == (3, 3)


def test_tool_names_without_arguments(tmp_path: Path) -> None:
    more = [
        {"payload": {"type": kind}}
        for kind in ("exec_command_end", "patch_apply_end", "web_search_call", "tool_search_call", "my_tool_call", "x")
    ]
    named = {"payload": {"type": "custom_tool_call", "name": "a b/c" + "d" * 90, "input": "private"}}
    put(tmp_path, "sessions/s.jsonl", [*codex_lines(["Do it"]), *more, named])
    (found,) = harvest_codex(tmp_path)
    assert found.tools_used[:6] == ["shell", "exec_command", "apply_patch", "web_search", "tool_search", "my_tool_call"]
    assert found.tools_used[6] == "a_b_c" + "d" * 75
    assert "private" not in json.dumps(found.to_dict())


def test_files_of_patches_were_touched(tmp_path: Path) -> None:
    patch = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-1\n+2\n*** Add File: b c.txt\n+x\n*** End Patch"
    payloads = [
        {"type": "custom_tool_call", "name": "apply_patch", "input": patch},
        {"type": "function_call", "name": "shell", "arguments": json.dumps({"command": ["apply_patch", patch + "\n"]})},
        {"type": "patch_apply_end", "changes": {"/w/shop/d.py": {"update": {}}}},
        {"type": "patch_apply_end", "changes": "no object"},
        {"type": "function_call_output", "output": "*** Begin Patch\n*** Add File: told.py"},
        {"type": "function_call", "name": "shell", "arguments": "*** Add File: no_patch.py"},
    ]
    more = [{"timestamp": "2026-02-03T10:00:00Z", "type": "response_item", "payload": one} for one in payloads]
    put(tmp_path, "sessions/s.jsonl", [*codex_lines(["Fix the cart of the shop"]), *more])
    (found,) = harvest_codex(tmp_path)
    assert found.files_touched == ["src/a.py", "b c.txt", "/w/shop/d.py"]


def test_the_documented_record(tmp_path: Path) -> None:
    put(
        tmp_path,
        "sessions/s.jsonl",
        [
            b'{"type":"response_item","timestamp":"2026-02-03T10:00:01Z","payload":'
            b'{"type":"user_message","message":"rename the helper"}}\n'
        ],
    )
    (found,) = harvest_codex(tmp_path)
    assert (found.session_id, found.user_prompts) == ("s", ["rename the helper"])
    assert found.ended_at == "2026-02-03T10:00:01.000+00:00"


def test_content_forms_and_roles(tmp_path: Path) -> None:
    put(
        tmp_path,
        "sessions/s.jsonl",
        [
            item("user", "as a string"),
            item("user", ["list of", {"type": "input_text", "text": "both kinds"}]),
            item("user", {"text": "nested"}),
            item("developer", "secret orders"),
            item("system", "more orders"),
        ],
    )
    assert harvest_codex(tmp_path)[0].user_prompts == ["as a string", "list of\nboth kinds", "nested"]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("<environment_context>\n<cwd>/w</cwd>\n</environment_context>", ""),
        ("<codex_internal_context>x</codex_internal_context>", ""),
        ("# AGENTS.md instructions for /w\n<INSTRUCTIONS>\nbe short\n</INSTRUCTIONS>", ""),
        ("# AGENTS.md instructions for /w\n<INSTRUCTIONS>\nb\n</INSTRUCTIONS>\nFix the build", "Fix the build"),
        ("# AGENTS.md instructions\nno closing tag", ""),
        ("intro\n--- project-doc ---\nrules", ""),
        ("rules\n--- project-doc ---\n<environment_context>x</environment_context>\n\nShip it", "Ship it"),
        ("# Context from my IDE setup:\n## Open tabs\na.py\n## My request for Codex:\nFix it now", "Fix it now"),
        ("plain \0request", "plain request"),
    ],
)
def test_context_is_no_prompt(text: str, kept: str) -> None:
    assert without_context(text) == kept


def test_c175_own_runs_are_left_out(tmp_path: Path) -> None:
    for number, (name, template) in enumerate(prompts.TEMPLATES.items()):
        text = prompts.render(name, dict.fromkeys(template.placeholders, "some value"))
        put(tmp_path, f"sessions/{number}.jsonl", codex_lines([text], session=str(number), originator="codex_exec"))
    notes: list[str] = []
    assert harvest_codex(tmp_path, on_note=notes.append) == []
    assert "4 engine" in notes[0]


def test_sub_agents_are_left_out(tmp_path: Path) -> None:
    put(tmp_path, "sessions/s.jsonl", codex_lines(["inner", "more"], source={"subagent": "review"}))
    assert harvest_codex(tmp_path) == []


def test_a_later_folder_that_is_the_invoked_project_counts(tmp_path: Path) -> None:
    moved = {"type": "turn_context", "payload": {"cwd": "/w/app"}}
    put(tmp_path, "sessions/s.jsonl", [*codex_lines(["Do it"], project="/home/me"), moved])
    (found,) = harvest_codex(tmp_path, scope="invoked", invoked_project="/w/app")
    assert found.project == "/w/app"
    assert harvest_codex(tmp_path)[0].project == "/home/me"
    assert harvest_codex(tmp_path, scope="invoked", invoked_project="/w/other") == []


def test_c191_a_fork_repeats_no_prompts(tmp_path: Path) -> None:
    old = codex_lines(["Add the export", "with a header"], session="old")
    fork = codex_lines(["Add the export", "with a header", "as CSV"], session="fork", at=START + 500)
    fork[0]["payload"]["forked_from_id"] = "old"
    put(tmp_path, "sessions/old.jsonl", old)
    put(tmp_path, "sessions/fork.jsonl", [fork[0], old[0], *fork[1:]])
    found = harvest_codex(tmp_path)
    assert sorted(text for digest in found for text in digest.user_prompts) == [
        "Add the export",
        "as CSV",
        "with a header",
    ]


def test_c193_redaction(tmp_path: Path) -> None:
    key = "ghp_" + "a1" * 18
    put(tmp_path, "sessions/s.jsonl", codex_lines([f"Push with {key}"], answers=[f"pushed with {key}"]))
    assert key not in json.dumps(harvest_codex(tmp_path)[0].to_dict())


def test_c178_c179_bad_lines_and_odd_records(tmp_path: Path) -> None:
    odd: list[object] = [b"\xff\xfe\n[]\n42\n", {"payload": 4}, {"payload": {"type": ["x"], "message": {}, "cwd": 1}}]
    put(tmp_path, "sessions/s.jsonl", [*odd, *codex_lines(["Real request"])])
    assert harvest_codex(tmp_path)[0].user_prompts == ["Real request"]


def test_the_generated_world(tmp_path: Path) -> None:
    sessions(tmp_path, 3, source="codex", size=2000)
    assert len(harvest_codex(tmp_path / ".codex", scope="invoked", invoked_project="/w/shop")) == 3

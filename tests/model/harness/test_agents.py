"""Coding agents as targets, each played by a small executable: what it is told, what it sees, how it is read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from patience import given_time

from skillopt import errors
from skillopt.model.harness import runner
from skillopt.model.harness.prompt import EMPTY_NOTE, build_prompt
from skillopt.model.harness.workspace import SKILL_PATH, Workspace
from skillopt.model.limiter import Limits
from skillopt.model.registry import load_backend
from skillopt.model.session import Session
from skillopt.model.values import CallContext, ModelCall, ModelReply
from skillopt.testing import (
    CliTurn,
    FakeCli,
    cli_role,
    codex_turn,
    copilot_turn,
    cursor_turn,
    fake_claude_code,
    fake_codex,
    fake_copilot,
    fake_cursor,
)
from skillopt.types import RoleConfig, Usage
from skillopt.utils.codex_home import as_flags, closing

pytestmark = pytest.mark.skipif(os.name == "nt", reason="checked on POSIX")

FAKES: Mapping[str, Callable[..., FakeCli]] = {
    "codex_exec": fake_codex,
    "claude_code_exec": fake_claude_code,
    "cursor_exec": fake_cursor,
    "copilot_exec": fake_copilot,
}
AGENTS = tuple(FAKES)
PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 20
LOOK, EDIT = Workspace(skill="Say Paris."), Workspace(skill="Say Paris.", allow_file_edits=True)
QUICK = Limits(retry_first_wait_seconds=0.001)


def call_of(workspace: Workspace = LOOK, task: str = "Which city?") -> ModelCall:
    return ModelCall(({"role": "user", "content": task},), stage="rollout", workspace=workspace)


def role_of(backend: str, cli: FakeCli, **settings: Any) -> RoleConfig:
    return cli_role(backend, cli).with_settings(**settings)


def ask(
    backend: str, cli: FakeCli, workspace: Workspace = LOOK, *, task: str = "Which city?", **settings: Any
) -> ModelReply:
    role = role_of(backend, cli, **settings)
    return load_backend(backend).complete(call_of(workspace, task), role, CallContext(60))


def session_of(backend: str, cli: FakeCli, *, events: list[Any] | None = None, **settings: Any) -> Session:
    emit = None if events is None else lambda kind, **data: events.append((kind, data))
    return Session({"target": role_of(backend, cli, **settings)}, limits=QUICK, emit=emit)


# --- what it is told -------------------------------------------------------------------------------------------------


def expected_argv(backend: str, workspace: Workspace, cwd: str, said: Mapping[str, str]) -> list[str]:
    edits = workspace.allow_file_edits
    if backend == "codex_exec":
        return [
            *(
                "exec",
                "--json",
                "--ephemeral",
                "--skip-git-repo-check",
                "--color",
                "never",
                "--ignore-rules",
                "-C",
                cwd,
            ),
            *("--sandbox", "workspace-write" if edits else "read-only"),
            *("-c", 'approval_policy="never"', "-c", "sandbox_workspace_write.network_access=false"),
            *("-c", 'web_search="disabled"', "-c", "project_doc_max_bytes=0"),
            *("-c", 'shell_environment_policy.inherit="core"', "-c", "allow_login_shell=false"),
            *("-c", "sandbox_workspace_write.writable_roots=[]"),
            *(word for name in ("apps", "plugins", "hooks", "memories") for word in ("-c", f"features.{name}=false")),
            *as_flags(closing((), Path(cwd))),
            *("-m", "fake", "--output-last-message", said["answer"], "-"),
        ]
    if backend == "claude_code_exec":
        tools = "Read,Grep,Glob,Edit,Write,Bash" if edits else "Read,Grep,Glob"
        return [
            *("-p", "--output-format", "json", "--permission-mode", "acceptEdits" if edits else "dontAsk"),
            *("--add-dir", cwd, "--tools", tools),
            *("--allowedTools", "Read(./**),Edit(./**),Bash" if edits else "Read(./**)"),
            *("--strict-mcp-config", "--disable-slash-commands", "--no-session-persistence", "--setting-sources", ""),
            *("--model", "fake", "--effort", "medium", "--max-thinking-tokens", "16384"),
        ]
    if backend == "cursor_exec":
        return [
            *("-p", "--output-format", "stream-json", "--trust", "--workspace", cwd, "--sandbox", "enabled"),
            *(["--force"] if edits else ["--mode", "ask"]),
            *("--model", "fake"),
        ]
    return [
        *("-p", said["prompt"], "--output-format", "json", "--stream", "off", "--no-color", "--log-level", "none"),
        *("-C", cwd, "--disable-builtin-mcps", "--no-custom-instructions"),
        *(["--allow-tool=write"] if edits else []),
        *("--model", "fake"),
    ]


@pytest.mark.parametrize("workspace", [LOOK, EDIT], ids=["look", "edit"])
@pytest.mark.parametrize("backend", AGENTS)
def test_the_exact_command_in_both_modes(tmp_path: Path, backend: str, workspace: Workspace) -> None:
    cli = FAKES[backend](tmp_path, "Paris")
    reply = ask(backend, cli, workspace)
    (call,) = cli.calls
    prompt = build_prompt(workspace, "")
    said = {"answer": str(call.value("--output-last-message")), "prompt": prompt}
    assert reply.text == "Paris"
    assert list(call.argv) == expected_argv(backend, workspace, call.cwd, said)
    assert call.stdin == ("" if backend == "copilot_exec" else prompt)
    assert SKILL_PATH in prompt and "task.md" in prompt
    assert ("Do not modify files" in prompt) == (not workspace.allow_file_edits)
    assert ("You may modify files" in prompt) == workspace.allow_file_edits


def test_settings_of_codex_reach_its_command(tmp_path: Path) -> None:
    cli = fake_codex(tmp_path)
    given = {"network_access": True, "web_search": True, "profile": "fast", "reasoning_effort": "high"}
    ask("codex_exec", cli, EDIT, **given, sandbox="danger-full-access", approval_policy="on-request")
    (call,) = cli.calls
    assert "sandbox_workspace_write.network_access=true" in call.argv and 'web_search="live"' in call.argv
    assert 'model_reasoning_effort="high"' in call.argv and 'approval_policy="on-request"' in call.argv
    assert (call.value("--sandbox"), call.value("-p")) == ("danger-full-access", "fast")
    assert not {"--full-auto", "--approval-policy"} & set(call.argv)


@pytest.mark.parametrize(("effort", "own", "sent"), [
    ("", "none", None), ("none", "high", None), ("low", "high", "low"), ("", "high", "high"),
])  # fmt: skip
def test_effort_of_codex_none_is_not_sent(tmp_path: Path, effort: str, own: str, sent: str | None) -> None:  # W23
    cli = fake_codex(tmp_path)
    role = replace(role_of("codex_exec", cli, reasoning_effort=own), effort=effort)
    load_backend("codex_exec").complete(call_of(), role, CallContext(60))
    given = [word for word in cli.calls[0].argv if word.startswith("model_reasoning_effort")]
    assert given == ([f'model_reasoning_effort="{sent}"'] if sent else [])


@pytest.mark.parametrize(("own", "of_role", "sent"), [
    ("medium", "", "medium"), ("medium", "high", "high"), ("low", "high", "low"), ("off", "high", None),
    ("none", "", None), ("xhigh", "", "xhigh"), ("huge", "", "medium"),
])  # fmt: skip
def test_effort_of_claude_code(tmp_path: Path, own: str, of_role: str, sent: str | None) -> None:
    cli = fake_claude_code(tmp_path)
    role = replace(role_of("claude_code_exec", cli, effort=own), effort=of_role)
    load_backend("claude_code_exec").complete(call_of(), role, CallContext(60))
    assert cli.calls[0].value("--effort") == sent


def test_profile_of_claude_code_and_tools_of_the_caller(tmp_path: Path) -> None:
    cli = fake_claude_code(tmp_path)
    workspace = replace(EDIT, allowed_tools=("Read", "Bash(ls *)"), permission_mode="plan")
    ask("claude_code_exec", cli, workspace, profile="work", max_thinking_tokens=0)
    (call,) = cli.calls
    assert call.value("--append-system-prompt") == "Profile: work"
    assert json.loads(str(call.value("--settings"))) == {"env": {"CLAUDE_CODE_USE_BEDROCK": "0"}}
    assert (call.value("--tools"), call.value("--allowedTools")) == ("Read,Bash", "Read,Bash(ls *)")
    assert (call.value("--permission-mode"), call.value("--max-thinking-tokens")) == ("plan", "0")
    assert "bypassPermissions" not in call.argv


@pytest.mark.parametrize(("edits", "opted_in", "expected"), [
    (False, False, []), (False, True, []), (True, False, ["--allow-tool=write"]), (True, True, ["--allow-all-tools"]),
])  # fmt: skip
def test_copilot_gets_all_tools_only_when_editing_and_opted_in(  # spec 55
    tmp_path: Path, edits: bool, opted_in: bool, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COPILOT_ALLOW_ALL", "true")
    cli = fake_copilot(tmp_path)
    ask("copilot_exec", cli, EDIT if edits else LOOK, allow_all_tools=opted_in, home="/tmp/copilot-home")
    (call,) = cli.calls
    assert [word for word in call.argv if word.startswith("--allow")] == expected
    assert "COPILOT_ALLOW_ALL" not in call.environment
    assert call.environment["COPILOT_HOME"] == "/tmp/copilot-home"


def test_cursor_refuses_to_edit_without_its_sandbox_before_anything_starts(tmp_path: Path) -> None:  # spec 46
    cli = fake_cursor(tmp_path)
    with pytest.raises(ValueError, match="refusing to combine --force") as caught:
        ask("cursor_exec", cli, EDIT, sandbox="disabled")
    assert isinstance(caught.value, errors.ConfigError) and cli.calls == ()
    ask("cursor_exec", cli, LOOK, sandbox="disabled")
    assert cli.calls[0].value("--sandbox") == "disabled"


@pytest.mark.parametrize("backend", ["codex_exec", "claude_code_exec"])
def test_auto_is_the_command_line(tmp_path: Path, backend: str) -> None:
    cli = FAKES[backend](tmp_path)
    assert ask(backend, cli, use_sdk="auto").text == ask(backend, cli, use_sdk="cli").text == "ok"


# --- what it sees ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", AGENTS)
def test_the_agent_sees_what_it_is_given_and_nothing_else(tmp_path: Path, backend: str) -> None:
    image, data, table = tmp_path / "page.png", tmp_path / "corpus", tmp_path / "in.csv"
    image.write_bytes(PNG)
    table.write_text("a,b\n", "utf-8")
    data.mkdir()
    (data / "doc.txt").write_text("a document", "utf-8")
    cli = FAKES[backend](tmp_path / "bin", "Paris")
    workspace = Workspace(
        skill="Say Paris.",
        preamble="About cities.",
        files={"input/table.csv": table, "run.py": "print(1)\n"},
        images=(image,),
        data_dirs=(data,),
    )
    ask(backend, cli, workspace, task="Grüße\n東京?")
    (call,) = cli.calls
    seen = {name: text for name, text in call.files.items() if not name.startswith("docs/")}
    assert sorted(seen) == [
        *(".agents/skills/skillopt-target/SKILL.md", "ATTACHMENTS.md", "attachments/01_page.png"),
        *("input/table.csv", "run.py", "task.md"),
    ]
    assert seen["task.md"] == "Grüße\n東京?\n"
    assert "About cities." in seen[SKILL_PATH] and "## Dynamic Guidance\n\nSay Paris." in seen[SKILL_PATH]
    assert (seen["input/table.csv"], seen["run.py"]) == ("a,b\n", "print(1)\n")
    assert seen["ATTACHMENTS.md"] == "# Attachments\n\n- attachments/01_page.png\n"
    assert str(tmp_path) not in "".join(seen.values())
    given = [value for flag, value in zip(call.argv, call.argv[1:], strict=False) if flag == "--add-dir"]
    assert given == {"codex_exec": [], "claude_code_exec": [call.cwd, str(data)]}.get(backend, [str(data)])
    assert (call.value("-i") == f"{call.cwd}/attachments/01_page.png") == (backend == "codex_exec")
    assert "docs/root_1" in (call.stdin or str(call.value("-p")))
    assert not Path(call.cwd).exists() and not Path(call.cwd).is_relative_to(Path.cwd())


@pytest.mark.parametrize("backend", AGENTS)
def test_each_attempt_has_a_new_folder_and_a_new_answer_file(tmp_path: Path, backend: str) -> None:  # W11, W29
    script = {
        "codex_exec": [codex_turn("old", files={}, leaves={"codex_last_message.txt": "old"}), codex_turn("new")],
        "claude_code_exec": [CliTurn(leaves={"notes.txt": "old"}, stdout='{"type":"result","result":""}\n')],
        "cursor_exec": [cursor_turn("", leaves={"notes.txt": "old"}), cursor_turn("new")],
        "copilot_exec": [copilot_turn("", leaves={"notes.txt": "old"}), copilot_turn("new")],
    }[backend]
    script[0] = replace(script[0], stdout="" if backend == "codex_exec" else script[0].stdout)
    if backend == "claude_code_exec":
        script.append(CliTurn(stdout='{"type":"result","result":"new"}\n'))
    cli = FakeCli(tmp_path, "agent", script)
    with session_of(backend, cli) as session:
        assert session.call("target", call_of()).text == "new"
    first, second = cli.calls
    assert first.cwd != second.cwd
    assert sorted(second.files) == [SKILL_PATH, "task.md"]
    if backend == "codex_exec":
        answers = [Path(str(call.value("--output-last-message"))) for call in cli.calls]
        assert answers[0] != answers[1]
        assert all(not path.is_relative_to(call.cwd) for path, call in zip(answers, cli.calls, strict=True))


def test_files_that_the_agent_leaves_are_read_back_but_no_link(tmp_path: Path) -> None:
    (tmp_path / "gold.txt").write_text("gold", "utf-8")
    cli = FakeCli(tmp_path, "codex", codex_turn("done", leaves={"solution.py": "print(2)\n"}))
    workspace = replace(EDIT, outputs=("solution.py", "missing.py", SKILL_PATH))
    work = ask("codex_exec", cli, workspace).work
    assert work is not None
    assert work.files["solution.py"] == "print(2)\n" and "missing.py" not in work.files


# --- how it is read --------------------------------------------------------------------------------------------------


def test_usage_is_counted_where_it_is_told_and_unknown_elsewhere(tmp_path: Path) -> None:  # W45
    told = {backend: ask(backend, fake(tmp_path / backend, "Paris")).usage for backend, fake in FAKES.items()}
    assert told["codex_exec"] == Usage(1, 11, 5, 3, 2)
    assert told["claude_code_exec"] == Usage(1, 10, 5)
    assert told["cursor_exec"] == told["copilot_exec"] == Usage(calls=1, known=False)
    with session_of("codex_exec", fake_codex(tmp_path / "more", "", "Paris")) as session:
        assert session.call("target", call_of()).usage == Usage(1, 22, 10, 6, 4)
        assert session.usage.summary()["rollout"]["total_tokens"] == 32


def test_a_failed_run_of_claude_code_counts_what_it_used(tmp_path: Path) -> None:
    cli = fake_claude_code(tmp_path, "", is_error=True, subtype="error_max_turns")
    with session_of("claude_code_exec", cli) as session:
        with pytest.raises(errors.ModelError, match="error_max_turns"):
            session.call("target", call_of())
        assert session.usage.total.total_tokens == 15
    assert len(cli.calls) == 1


@pytest.mark.parametrize("backend", AGENTS)
@pytest.mark.parametrize(("retries", "calls"), [(0, 1), (1, 2), (2, 3)])
def test_empty_answers_are_asked_for_again_with_a_note_and_then_an_error(
    tmp_path: Path, backend: str, retries: int, calls: int
) -> None:  # spec 47
    cli = FAKES[backend](tmp_path, "")
    events: list[Any] = []
    with (
        session_of(backend, cli, events=events, empty_response_retries=retries) as session,
        pytest.raises(errors.EmptyReplyError),
    ):
        session.call("target", call_of())
    prompts = [call.stdin or str(call.value("-p")) for call in cli.calls]
    assert len(prompts) == calls
    assert [EMPTY_NOTE in prompt for prompt in prompts] == [False, *[True] * retries]
    assert EMPTY_NOTE.startswith("Previous execution returned an empty final response")
    assert [kind for kind, _ in events] == [*["model_retry"] * retries, "model_error"]


@pytest.mark.parametrize("backend", AGENTS)
def test_a_timeout_kills_the_family_and_is_an_error_of_the_item(tmp_path: Path, backend: str) -> None:  # W10 W12 W28
    def hanging(seconds: float) -> FakeCli:
        cli = FAKES[backend](tmp_path / str(seconds), "Paris", hang=True, daemons=1)
        with session_of(backend, cli) as session, pytest.raises(errors.DeadlineError):
            session.call("target", call_of(), timeout=seconds)
        return cli

    cli = given_time(hanging, lambda cli: bool(cli.calls))
    assert len(cli.calls) == 1 and len(cli.calls[0].pids) == 2 and cli.survivors == ()


@pytest.mark.parametrize("backend", AGENTS)
def test_an_exit_code_is_an_error_tried_once_and_no_answer(tmp_path: Path, backend: str) -> None:  # spec 49, W12
    cli = FAKES[backend](tmp_path, "Paris", code=3, stderr="the plugin broke", stdout="Paris\n")
    with (
        session_of(backend, cli) as session,
        pytest.raises(errors.ModelError, match=r"Paris|plugin broke|exit code 3") as caught,
    ):
        session.call("target", call_of())
    assert not caught.value.retryable and len(cli.calls) == 1


@pytest.mark.parametrize("backend", AGENTS)
@pytest.mark.parametrize(
    ("words", "kind"), [("rate limit reached", errors.RateLimitError), ("Please run /login", errors.AuthError)]
)
def test_known_faults_have_their_class(tmp_path: Path, backend: str, words: str, kind: type[Exception]) -> None:
    cli = FAKES[backend](tmp_path, "", code=1, stderr=words, stdout="")
    with pytest.raises(kind):
        ask(backend, cli)


@pytest.mark.parametrize("backend", AGENTS)
def test_a_missing_program_is_named_with_its_setting(tmp_path: Path, backend: str) -> None:  # spec 51
    cli = FAKES[backend](tmp_path)
    with pytest.raises(errors.ModelSetupError, match=r"could not be executed.*_path or the environment variable"):
        ask(backend, cli, path=str(tmp_path / "nothing"))


def test_an_error_result_of_cursor_is_one_call_without_secrets(tmp_path: Path) -> None:  # spec 48
    words = "upstream said CURSOR_API_KEY=key_abcdefgh12345678 is bad"
    cli = fake_cursor(tmp_path, words, is_error=True, subtype="error")
    with session_of("cursor_exec", cli) as session, pytest.raises(errors.ModelError) as caught:
        session.call("target", call_of())
    assert len(cli.calls) == 1
    assert "key_abcdefgh12345678" not in str(caught.value) and "[REDACTED]" in str(caught.value)


@pytest.mark.parametrize("output", ["plain text, no events\n", '{"type":"result","result":7}\n', ""])
def test_unusable_output_of_cursor_is_asked_for_again(tmp_path: Path, output: str) -> None:  # spec 47
    cli = FakeCli(tmp_path, "cursor-agent", [CliTurn(stdout=output), cursor_turn("Paris")])
    with session_of("cursor_exec", cli) as session:
        assert session.call("target", call_of()).text == "Paris"
    assert EMPTY_NOTE in cli.calls[1].stdin


# --- secrets ---------------------------------------------------------------------------------------------------------

KEYS = {
    "codex_exec": {"OPENAI_API_KEY", "CODEX_API_KEY"},
    "claude_code_exec": {"ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"},
    "cursor_exec": {"CURSOR_API_KEY"},
    "copilot_exec": {"GH_TOKEN", "COPILOT_GITHUB_TOKEN"},
}
OTHERS = {"QWEN_CHAT_API_KEY", "MINIMAX_API_KEY", "AZURE_OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "MY_TOKEN"}


@pytest.mark.parametrize("backend", AGENTS)
def test_an_agent_gets_its_own_credentials_and_no_other(
    tmp_path: Path, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # W3
    for name in {*OTHERS, *(key for keys in KEYS.values() for key in keys)}:
        monkeypatch.setenv(name, "marked-secret-value")
    cli = FAKES[backend](tmp_path)
    ask(backend, cli)
    marked = {name for name, value in cli.calls[0].environment.items() if value == "marked-secret-value"}
    assert marked == KEYS[backend]
    assert "marked-secret-value" not in str(cli.calls[0].files)


@pytest.mark.parametrize("backend", AGENTS)
def test_what_is_kept_of_a_run_holds_no_secret(
    tmp_path: Path, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # W7
    monkeypatch.setenv(sorted(KEYS[backend])[0], "marked-secret-value")
    noise = "env: marked-secret-value Authorization: Bearer abcdefghijkl12345 sk-proj-abcdefghijklmnop1234\n"
    cli = FAKES[backend](tmp_path, "Paris", stderr=noise)
    folder = tmp_path / "item" / "work"
    folder.mkdir(parents=True)
    reply = ask(backend, cli, replace(LOOK, folder=folder, trace_dir=folder.parent), task="Go.")
    assert reply.work is not None
    kept = reply.work.trace + "".join(path.read_text("utf-8") for path in folder.parent.glob("*.txt"))
    assert "[stderr]" in kept and "[REDACTED]" in kept
    for secret in ("marked-secret-value", "abcdefghijkl12345", "abcdefghijklmnop1234"):
        assert secret not in kept


def test_the_trace_of_cursor_holds_nothing_that_was_said(tmp_path: Path) -> None:  # spec 45
    noise = "plain words\nmore words\n"
    turn = cursor_turn("the answer", duration_ms="soon", apiKey="abc", note="fine")
    cli = FakeCli(tmp_path, "cursor-agent", replace(turn, stdout=noise + turn.stdout + noise))
    reply = ask("cursor_exec", cli)
    assert reply.text == "the answer" and reply.work is not None
    trace = reply.work.trace
    for words in ("the answer", "/private/task.md", "private words", "plain words", "hello", "abc"):
        assert words not in trace
    assert trace.count("[OMITTED NON-JSON OUTPUT]") == 2
    assert '"result":"[OMITTED]"' in trace and '"apiKey":"[REDACTED]"' in trace and '"note":"fine"' in trace
    assert reply.work.summary.splitlines() == [
        *("model: composer-fake", "permission mode: default", "session: cursor-session", "tool calls: 1"),
        *("duration ms: 0", "response characters: 10"),
    ]


# --- the call path ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", AGENTS)
def test_a_call_without_a_workspace_is_refused_and_the_preflight_has_one(tmp_path: Path, backend: str) -> None:
    cli = FAKES[backend](tmp_path)
    with session_of(backend, cli) as session:
        with pytest.raises(NotImplementedError, match="Exec backends"):
            session.ask("target", "s", "u", stage="rollout")
        assert cli.calls == ()
        session.preflight()
    assert cli.calls[0].files["task.md"] == "Reply with: ok\n"


def test_equal_calls_with_other_workspaces_are_other_calls(tmp_path: Path) -> None:
    cli = fake_codex(tmp_path, "Paris")
    table = tmp_path / "t.csv"
    table.write_text("1", "utf-8")
    with session_of("codex_exec", cli) as session:
        for workspace in (LOOK, LOOK, EDIT, replace(LOOK, skill="x"), replace(LOOK, files={"t.csv": table})):
            session.call("target", call_of(workspace), cached=True)
        table.write_text("2", "utf-8")
        session.call("target", call_of(replace(LOOK, files={"t.csv": table})), cached=True)
    assert len({content for content in map(str, (call.files for call in cli.calls))}) == 4
    assert len(cli.calls) in (5, 6)


def test_an_agent_may_take_longer_than_a_chat_call(tmp_path: Path) -> None:
    cli = fake_cursor(tmp_path, "Paris")
    role = role_of("cursor_exec", cli, timeout_seconds=0.001)
    session = Session({"target": role}, limits=Limits(timeout_seconds=0.001))
    assert session.call("target", call_of(), timeout=60).text == "Paris"


def test_a_long_trace_keeps_its_beginning_and_its_end(tmp_path: Path) -> None:
    cli = fake_codex(tmp_path, "Paris", stderr="a" * runner.TRACE_CHARS + "THE END")
    work = ask("codex_exec", cli).work
    assert work is not None
    assert len(work.trace) < runner.TRACE_CHARS + 100
    assert work.trace.startswith("ERROR:") and work.trace.endswith("THE END")


@pytest.mark.parametrize(
    ("backend", "listed", "off"),
    [
        ("codex_exec", '[{"name": "mine", "enabled": true}]', "mcp_servers.mine.enabled=false"),
        ("copilot_exec", '{"mcpServers": {"mine": {}}}', "--disable-mcp-server=mine"),
    ],
)
def test_the_person_s_tool_servers_are_switched_off(tmp_path: Path, backend: str, listed: str, off: str) -> None:
    turn = {"codex_exec": codex_turn, "copilot_exec": copilot_turn}[backend]("Paris")
    name = backend.removesuffix("_exec")
    cli = FakeCli(tmp_path, name, [CliTurn(listed, when="mcp list --json", aside=True), turn])
    for workspace in (LOOK, EDIT):
        assert ask(backend, cli, workspace).text == "Paris"
    assert len(cli.asides) == 1
    assert [off in call.argv for call in cli.calls] == [True, True]


def test_copilot_starts_no_server_that_comes_with_the_task(tmp_path: Path) -> None:
    cli = FAKES["copilot_exec"](tmp_path, "Paris")
    ask("copilot_exec", cli, replace(LOOK, files={".mcp.json": '{"mcpServers": {"evil": {"command": "x"}}}'}))
    assert "--disable-mcp-server=evil" in cli.calls[0].argv

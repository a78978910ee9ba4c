"""Claude Code and Codex as backends, played by small programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from patience import given_time

from skillopt.testing.agents import codex_turn, fake_claude_code, fake_codex
from skillopt.testing.cli import CliTurn, FakeCli, claude_result, fake_claude
from skillopt_sleep.backends import CliBackend
from skillopt_sleep.backends.claude import ClaudeBackend
from skillopt_sleep.backends.codex import CodexBackend, find_codex
from skillopt_sleep.backends.programs import StandIns
from skillopt_sleep.errors import CallFailed
from skillopt_sleep.types import TaskRecord

MakeTask = Callable[..., TaskRecord]
HANGS = CliTurn(hang=True, daemons=1, stderr="connecting ...")
LONG = "line one\nline two with \u00e9 and \U0001f600\n" * 1000


def claude(cli: FakeCli, **settings: Any) -> ClaudeBackend:
    return quick(ClaudeBackend("sonnet", path=str(cli.path)), settings)


def codex(cli: FakeCli, **settings: Any) -> CodexBackend:
    return quick(CodexBackend("gpt", path=str(cli.path)), settings)


def quick(backend: Any, settings: dict[str, Any]) -> Any:
    backend.egress._sleep = lambda _: None
    for name, value in settings.items():
        setattr(backend, name, value)
    return backend


def both(folder: Path, turn: Callable[[str], dict[str, Any]]) -> list[CliBackend]:
    one = FakeCli(folder, "claude", CliTurn(**turn("claude")))
    two = FakeCli(folder, "codex", CliTurn(**turn("codex")))
    return [claude(one, tries=1), codex(two, tries=1)]


def test_claude_is_asked_on_standard_input_isolated_and_without_tools(tmp_path: Path) -> None:
    cli = fake_claude(tmp_path, "Paris")
    backend = claude(cli)
    assert backend.call(LONG) == "Paris"
    (call,) = cli.calls
    assert call.stdin == LONG
    assert call.argv[:1] == ("-p",)
    assert LONG[:20] not in " ".join(call.argv)
    assert call.value("--output-format") == "json"
    assert call.value("--tools") == ""
    assert call.value("--setting-sources") == ""
    assert call.value("--model") == "sonnet"
    for flag in ("--strict-mcp-config", "--disable-slash-commands", "--no-session-persistence"):
        assert flag in call.argv
    assert "--bare" not in call.argv
    assert call.files == {}
    assert not Path(call.cwd).exists()
    assert backend.tokens_used() == 15


def test_codex_is_asked_on_standard_input_read_only_in_an_empty_folder(tmp_path: Path) -> None:
    cli = fake_codex(tmp_path, "Paris")
    backend = codex(cli)
    assert backend.call(LONG) == "Paris"
    (call,) = cli.calls
    assert call.stdin == LONG
    assert call.argv[0] == "exec"
    assert call.argv[-1] == "-"
    assert "--" not in call.argv
    assert call.value("--sandbox") == "read-only"
    assert call.value("--cd") == call.cwd
    assert call.value("-m") == "gpt"
    assert {"--ephemeral", "--skip-git-repo-check", 'approval_policy="never"'} <= set(call.argv)
    assert call.files == {}
    assert not Path(call.cwd).exists()
    assert backend.tokens_used() == 16


SERVERS = json.dumps([{"name": name, "enabled": True} for name in ("mine", "replay")])


def test_codex_s_servers_and_what_it_notifies_are_off_and_ours_is_on(tmp_path: Path, task: MakeTask) -> None:
    listed = CliTurn(SERVERS, when="mcp list --json", aside=True)
    cli = FakeCli(tmp_path, "codex", [listed, codex_turn("Paris")])
    codex(cli).call("q")
    codex(cli).attempt_with_tools(task(), "", "", ["search"])
    (asked,) = cli.asides
    assert asked.files == {}
    off = {"mcp_servers.mine.enabled=false", "mcp_servers.replay.enabled=false"}
    assert all(off | {"notify=[]", "features.shell_snapshot=false"} <= set(call.argv) for call in cli.calls)
    own = [
        [word.partition("=")[0] for word in call.argv if word.startswith("mcp_servers.replay_2.")] for call in cli.calls
    ]
    assert own == [[], ["mcp_servers.replay_2.command", "mcp_servers.replay_2.args"]]
    assert all(f'projects={{"{call.cwd}"={{trust_level="untrusted"}}' in " ".join(call.argv) for call in cli.calls)


def test_codex_that_cannot_tell_its_servers_is_used_only_without_any(tmp_path: Path, home: Path) -> None:
    old = CliTurn(stderr="error: unrecognized subcommand 'mcp'", code=2, when="mcp list --json", aside=True)
    cli = FakeCli(tmp_path, "codex", [old, codex_turn("Paris")])
    backend = codex(cli)
    assert backend.call("q") == "Paris"
    (home / ".codex").mkdir()
    (home / ".codex" / "work.config.toml").write_text("[mcp_servers.mine]\nurl = 'http://x'\n", "utf-8")
    with pytest.raises(CallFailed, match=r"unrecognized subcommand 'mcp'.*; update Codex, or") as failure:
        backend.call("another")
    assert failure.value.fatal
    assert len(cli.calls) == 1


def test_no_key_of_another_provider_reaches_a_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AZURE_OPENAI_API_KEY", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "ANTHROPIC_API_KEY", "CODEX_API_KEY"):
        monkeypatch.setenv(name, f"marked-{name}")
    one, two = fake_claude(tmp_path), fake_codex(tmp_path)
    claude(one).call("q")
    codex(two).call("q")
    marked = [
        sorted(name for name, value in cli.calls[0].environment.items() if value.startswith("marked-"))
        for cli in (one, two)
    ]
    assert marked == [["ANTHROPIC_API_KEY"], ["CODEX_API_KEY"]]
    assert "--bare" in one.calls[0].argv


@pytest.mark.parametrize("said", ["Not logged in - please run /login", "Please run login", "Invalid API key"])
def test_a_program_that_nobody_signed_in_to_is_fatal_and_no_answer(tmp_path: Path, said: str) -> None:
    usage = {"input_tokens": 0, "output_tokens": 0}
    outputs = {"claude": claude_result(said, usage=usage), "codex": said}
    for backend in both(tmp_path, lambda name: {"stdout": outputs[name]}):
        with pytest.raises(CallFailed, match="not signed in") as failure:
            backend.call("q")
        assert failure.value.kind == "auth"


def test_a_long_answer_about_signing_in_is_an_answer(tmp_path: Path) -> None:
    about = "To sign in you run the login command. " * 8
    turns = {"claude": CliTurn(stdout=claude_result(about)), "codex": codex_turn(about)}
    assert claude(FakeCli(tmp_path, "claude", turns["claude"])).call("q") == about
    assert codex(FakeCli(tmp_path, "codex", turns["codex"])).call("q") == about


def test_an_exit_code_is_heeded_and_error_output_is_never_an_answer(tmp_path: Path) -> None:
    for backend in both(tmp_path, lambda _: {"code": 3, "stderr": "it broke", "stdout": "half an answer"}):
        with pytest.raises(CallFailed, match="it broke") as failure:
            backend.call("q")
        assert failure.value.kind == "transient"
        assert "it broke" in backend.last_call_error


@pytest.mark.parametrize(
    ("words", "kind", "calls"),
    [
        ("stream error: 401 Unauthorized", "auth", 1),
        ("Your refresh token was already used. Please log out and sign in again.", "auth", 1),
        ("The model gpt is not supported on this account", "setup", 1),
        ("This model requires a newer version of Codex", "setup", 1),
        ("You've hit your usage limit", "auth", 1),
        ("stream disconnected before completion", "transient", 3),
    ],
)
def test_what_codex_says_decides_whether_it_is_asked_again(tmp_path: Path, words: str, kind: str, calls: int) -> None:
    cli = FakeCli(tmp_path, "codex", codex_turn(error=words))
    with pytest.raises(CallFailed) as failure:
        codex(cli).call("q")
    assert failure.value.kind == kind
    assert len(cli.calls) == calls


def test_a_passing_failure_is_overcome_and_leaves_no_error_behind(tmp_path: Path) -> None:
    cli = FakeCli(tmp_path, "codex", [codex_turn(error="stream disconnected"), codex_turn("fine")])
    backend = codex(cli)
    assert backend.call("q") == "fine"
    assert backend.last_call_error == ""


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"is_error": True, "result": "API Error: 529 overloaded"}, "rate"),
        ({"is_error": True, "result": "Credit balance is too low"}, "auth"),
        ({"is_error": True, "subtype": "error_during_execution", "result": None, "errors": ["odd"]}, "transient"),
        ({"is_error": True, "result": "API Error: unable to respond to this request, usage policy"}, "refused"),
        ({"result": ""}, "empty"),
    ],
)
def test_what_claude_reports_is_a_failure_of_one_kind(tmp_path: Path, event: dict[str, Any], kind: str) -> None:
    text = event.pop("result", "")
    cli = FakeCli(tmp_path, "claude", CliTurn(stdout=claude_result(text or "", **event)))
    with pytest.raises(CallFailed) as failure:
        claude(cli, tries=1).call("q")
    assert failure.value.kind == kind


@pytest.mark.skipif(os.name != "posix", reason="counts processes in /proc")
def test_a_hanging_program_goes_with_its_whole_family_and_its_last_words_are_kept(tmp_path: Path) -> None:
    def failure(make: Callable[..., CliBackend], seconds: float) -> tuple[FakeCli, CallFailed]:
        cli = FakeCli(tmp_path / make.__name__ / str(seconds), "tool", HANGS)
        with pytest.raises(CallFailed) as caught:
            make(cli, tries=1, timeout=seconds).call("q")
        return cli, caught.value

    for make in (claude, codex):
        cli, failed = given_time(partial(failure, make), lambda made: "connecting" in str(made[1]), 0.7)
        assert "connecting" in str(failed)
        assert failed.kind == "transient"
        assert len(cli.calls[0].pids) == 2
        assert cli.survivors == ()


def test_a_missing_program_names_the_setting(tmp_path: Path) -> None:
    for backend, setting in (
        (ClaudeBackend(path=str(tmp_path / "none")), "SKILLOPT_SLEEP_CLAUDE_PATH"),
        (CodexBackend(path=str(tmp_path / "none")), "codex_path"),
    ):
        for ask in (backend.check, lambda backend=backend: backend.call("q")):
            with pytest.raises(CallFailed, match=setting) as failure:
                ask()
            assert failure.value.kind == "setup"


def test_models_and_paths_come_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert ClaudeBackend().model == "sonnet"
    assert CodexBackend().model == ""
    monkeypatch.setenv("SKILLOPT_SLEEP_CLAUDE_MODEL", "opus")
    monkeypatch.setenv("SKILLOPT_SLEEP_CODEX_MODEL", "gpt-x")
    monkeypatch.setenv("SKILLOPT_SLEEP_CODEX_PATH", "/opt/codex")
    assert (ClaudeBackend().model, CodexBackend().model, CodexBackend("own").model) == ("opus", "gpt-x", "own")
    assert (find_codex(), find_codex("/x/codex")) == ("/opt/codex", "/x/codex")


@pytest.mark.skipif(os.name != "posix", reason="nvm of Unix")
def test_the_newest_of_nvm_s_versions_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for version in ("v9.11.2", "v22.1.0", "v8.0.0"):
        (tmp_path / "versions" / "node" / version / "bin").mkdir(parents=True)
        (tmp_path / "versions" / "node" / version / "bin" / "codex").touch()
    monkeypatch.setenv("NVM_DIR", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "v22.1.0" in find_codex()


def talk(stand_ins: StandIns, *requests: dict[str, Any]) -> list[dict[str, Any]]:
    lines = "".join(json.dumps({"jsonrpc": "2.0", **request}) + "\n" for request in requests)
    said = subprocess.run(stand_ins.command, input=f"no json\n{lines}", capture_output=True, text=True, check=True)
    return [json.loads(line) for line in said.stdout.splitlines()]


def test_the_server_of_stand_ins_speaks_the_protocol_and_records_calls(tmp_path: Path) -> None:
    stand_ins = StandIns(tmp_path, ["notes.search", "notes:search", "Bash"])
    assert stand_ins.called == ()
    answers = talk(
        stand_ins,
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "2024-11-05"}},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
        {"id": 3, "method": "tools/call", "params": {"name": "Bash", "arguments": {"command": "touch evil"}}},
        {"id": 4, "method": "tools/call", "params": {"name": "notes_search_2"}},
        {"id": 5, "method": "tools/call", "params": {"name": "../x"}},
        {"id": 6, "method": "resources/list"},
    )
    assert [answer["id"] for answer in answers] == [1, 2, 3, 4, 5, 6]
    assert answers[0]["result"]["protocolVersion"] == "2024-11-05"
    tools = answers[1]["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["notes_search", "notes_search_2", "Bash"]
    assert all(tool["annotations"]["readOnlyHint"] for tool in tools)
    assert answers[2]["result"]["content"][0]["type"] == "text"
    assert "error" in answers[4]
    assert "error" in answers[5]
    assert stand_ins.called == ("Bash", "notes:search")
    assert not (tmp_path / "evil").exists()


CALLER = """#!{python}
import json, subprocess, sys
argv, prompt = sys.argv[1:], sys.stdin.read()
command = {command}
ask = {{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {{"name": "search"}}}}
if "CALL" in prompt:
    subprocess.run(command, input=json.dumps(ask) + "\\n", text=True, check=True, stdout=subprocess.DEVNULL)
{answer}
"""
CLAUDE = {
    "command": '(lambda s: [s["command"], *s["args"]])'
    '(json.load(open(argv[argv.index("--mcp-config") + 1]))["mcpServers"]["replay"])',
    "answer": 'print(json.dumps({"type": "result", "result": "TOOL_CALL: search", "usage": '
    '{"input_tokens": 1, "output_tokens": 1}}))',
}
CODEX = {
    "command": "(lambda s: [json.loads(s['mcp_servers.replay.command']), *json.loads(s['mcp_servers.replay.args'])])"
    "(dict(a.split('=', 1) for f, a in zip(argv, argv[1:]) if f == '-c'))",
    "answer": 'open(argv[argv.index("--output-last-message") + 1], "w").write("TOOL_CALL: search")\n'
    'print(json.dumps({"type": "turn.completed"}))',
}


@pytest.mark.skipif(os.name != "posix", reason="a script with an interpreter line")
@pytest.mark.parametrize(("make", "parts"), [(ClaudeBackend, CLAUDE), (CodexBackend, CODEX)])
def test_a_tool_counts_as_called_when_our_server_saw_the_call(
    tmp_path: Path, task: MakeTask, make: Callable[..., CliBackend], parts: dict[str, str]
) -> None:
    program = tmp_path / "agent"
    program.write_text(CALLER.format(python=sys.executable, **parts), "utf-8")
    program.chmod(0o755)
    backend = make(path=str(program))
    assert backend.attempt_with_tools(task("please CALL it"), "", "", ["search"]) == ("TOOL_CALL: search", ["search"])
    assert backend.attempt_with_tools(task("only say it"), "", "", ["search"]) == ("TOOL_CALL: search", [])


def test_claude_may_use_the_stand_ins_and_nothing_else(tmp_path: Path, task: MakeTask) -> None:
    cli = fake_claude_code(tmp_path, "done")
    claude(cli).attempt_with_tools(task(), "", "", ["search", "Bash"])
    (call,) = cli.calls
    assert call.value("--allowedTools") == "mcp__replay__search,mcp__replay__Bash"
    assert call.value("--tools") == ""
    assert call.files == {}

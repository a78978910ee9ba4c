"""Codex's command line as a chat model, against a small executable that plays it."""

from __future__ import annotations

import base64
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from patience import given_time

from skillopt import errors
from skillopt.model.backends.codex_exec import FEATURES_OFF, complete
from skillopt.model.limiter import Limits
from skillopt.model.session import Session
from skillopt.model.values import CallContext, ModelCall, ModelReply
from skillopt.testing import CliTurn, FakeCli, cli_role, codex_turn, fake_codex
from skillopt.types import RoleConfig, Usage

pytestmark = pytest.mark.skipif(os.name == "nt", reason="checked on POSIX")

HELLO = ModelCall(messages=({"role": "system", "content": "Be brief."}, {"role": "user", "content": "Grüße\n東京?"}))
FIND = {"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}
TOOLS = replace(HELLO, tools=[FIND], tool_choice="required")
OFF = [word for feature in FEATURES_OFF for word in ("-c", f"features.{feature}=false")]
PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 20


def closed(cwd: str) -> list[str]:
    places = ",".join(f'"{place}"={{trust_level="untrusted"}}' for place in (cwd, *map(str, Path(cwd).parents)))
    return ["-c", f"projects={{{places}}}", "-c", "notify=[]", "-c", "features.shell_snapshot=false"]


def optimizer(cli: FakeCli, **settings: object) -> RoleConfig:
    return cli_role("codex_exec", cli, "optimizer", **settings)


def ask(cli: FakeCli, call: ModelCall = HELLO, *, timeout: float = 60.0, **settings: object) -> ModelReply:
    return complete(call, optimizer(cli, **settings), CallContext(timeout))


def test_the_exact_command_in_an_empty_folder_that_is_gone_afterwards(tmp_path: Path) -> None:
    cli = fake_codex(tmp_path, "Paris")
    reply = ask(cli)
    (call,) = cli.calls
    answer = call.value("--output-last-message")
    assert reply == ModelReply("Paris", usage=Usage(1, 11, 5, 3, 2))
    assert list(call.argv) == [
        "exec",
        "--json",
        "--ephemeral",
        *("-c", 'approval_policy="never"'),
        *("--sandbox", "read-only"),
        "--skip-git-repo-check",
        *("--cd", call.cwd),
        *("--model", "fake"),
        *("--output-last-message", answer),
        *("-c", "sandbox_workspace_write.network_access=false"),
        *("-c", 'web_search="disabled"'),
        *("-c", "project_doc_max_bytes=0"),
        *OFF,
        *closed(call.cwd),
        "-",
    ]
    assert call.stdin == "Be brief.\n\n---\n\nGrüße\n東京?"
    assert call.files == {}
    assert Path(str(answer)).parent == Path(call.cwd).parent
    assert Path(call.cwd) != Path.cwd()
    assert not Path(call.cwd).parent.exists()


def test_settings_reach_the_command_and_the_agents_sandbox_does_not(tmp_path: Path) -> None:
    cli = fake_codex(tmp_path / "bin", "ok")
    place = tmp_path / "place"
    place.mkdir()
    given = {"network_access": True, "web_search": True, "profile": "fast", "reasoning_effort": "high"}
    unsafe = {"sandbox": "danger-full-access", "approval_policy": "on-request", "working_directory": str(place)}
    ask(cli, replace(HELLO, model="other"), **given, **unsafe)
    (call,) = cli.calls
    assert "sandbox_workspace_write.network_access=true" in call.argv
    assert 'web_search="live"' in call.argv
    assert 'approval_policy="never"' in call.argv
    assert 'model_reasoning_effort="high"' in call.argv
    assert (call.value("--profile"), call.value("--model")) == ("fast", "other")
    assert (call.value("--sandbox"), call.value("--cd")) == ("read-only", str(place))
    assert call.cwd != str(place)


@pytest.mark.parametrize(
    ("of_call", "of_role", "own", "sent"),
    [
        ("", "", "none", ""),
        ("", "", "", ""),
        ("", "none", "high", ""),
        ("", "low", "high", "low"),
        ("xhigh", "low", "high", "xhigh"),
    ],
)
def test_the_nearest_effort_counts_and_none_is_not_sent(
    tmp_path: Path, of_call: str, of_role: str, own: str, sent: str
) -> None:
    cli = fake_codex(tmp_path)
    role = replace(optimizer(cli, reasoning_effort=own), effort=of_role)
    complete(replace(HELLO, effort=of_call), role, CallContext(60.0))
    given = [word for word in cli.calls[0].argv if word.startswith("model_reasoning_effort")]
    assert given == ([f'model_reasoning_effort="{sent}"'] if sent else [])


def test_only_what_codex_needs_is_handed_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CODEX_HOME", "OPENAI_API_KEY", "QWEN_CHAT_API_KEY", "AZURE_OPENAI_API_KEY", "GH_TOKEN"):
        monkeypatch.setenv(name, "marked")
    cli = fake_codex(tmp_path)
    ask(cli)
    marked = [name for name, value in cli.calls[0].environment.items() if value == "marked"]
    assert sorted(marked) == ["CODEX_HOME", "OPENAI_API_KEY"]


def test_a_long_prompt_with_new_lines_arrives_whole(tmp_path: Path) -> None:  # C146
    text = "".join(f"line {n} é\n" for n in range(4000)) + "END"
    cli = fake_codex(tmp_path)
    ask(cli, ModelCall(messages=({"role": "user", "content": text},)))
    assert len(text) > 40_000
    assert cli.calls[0].stdin == text
    assert max(map(len, cli.calls[0].argv)) < 200


def test_the_answer_of_an_earlier_attempt_is_never_returned(tmp_path: Path) -> None:
    silent = codex_turn("", files={})
    cli = FakeCli(tmp_path, "codex", [codex_turn("old"), silent, codex_turn("new", files={})])
    assert [ask(cli).text for _ in range(3)] == ["old", "", "new"]
    assert len({call.value("--output-last-message") for call in cli.calls}) == 3


def test_a_program_that_hangs_is_ended_with_what_it_started(tmp_path: Path) -> None:  # C148
    def hanging(seconds: float) -> tuple[FakeCli, str]:
        cli = fake_codex(tmp_path / str(seconds), "late", hang=True, daemons=1, stderr="still thinking")
        with pytest.raises(errors.DeadlineError) as caught:
            ask(cli, timeout=seconds)
        return cli, str(caught.value)

    cli, said = given_time(hanging, lambda made: "still thinking" in made[1])
    assert "still thinking" in said
    assert len(cli.calls[0].pids) == 2
    assert cli.survivors == ()


def test_tools_are_requested_in_a_structured_reply(tmp_path: Path) -> None:
    cli = fake_codex(tmp_path, {"content": "", "tool_calls": [{"name": "find", "arguments": '{"q": 1}'}]})
    replies = [ask(cli, TOOLS) for _ in range(2)]
    for reply in replies:
        assert reply.finish_reason == "tool_calls"
        assert [(c.function.name, c.function.arguments) for c in reply.tool_calls] == [("find", '{"q": 1}')]
    assert replies[0].tool_calls[0].id != replies[1].tool_calls[0].id
    assert '{"name": "find", "parameters": {"type": "object"}}' in cli.calls[0].stdin


def test_a_demanded_tool_that_is_not_requested_is_asked_for_again(tmp_path: Path) -> None:
    good = {"content": "", "tool_calls": [{"name": "find", "arguments": "{}"}]}
    cli = fake_codex(tmp_path, {"content": "no", "tool_calls": []}, "not json", good)
    session = Session({"optimizer": optimizer(cli)})
    for _ in range(2):
        with pytest.raises(errors.TransientError):
            ask(cli, TOOLS)
    assert session.call("optimizer", TOOLS).tool_calls[0].function.name == "find"


def test_schema_and_images_lie_beside_the_empty_folder(tmp_path: Path) -> None:
    program = tmp_path / "codex"
    program.write_text(
        f'#!/bin/sh\n[ "$1" = exec ] || exit 1\ncp -r "$PWD/.." "{tmp_path}/kept"\necho "$@" > "{tmp_path}/argv"\n'
    )
    program.chmod(0o755)
    url = "data:image/png;base64," + base64.b64encode(PNG).decode()
    content = [{"type": "text", "text": "Which?"}, {"type": "image_url", "image_url": {"url": url}}]
    role = replace(optimizer(fake_codex(tmp_path / "unused")), settings={"path": str(program)})
    complete(replace(TOOLS, messages=({"role": "user", "content": content},)), role, CallContext(60.0))
    kept = tmp_path / "kept"
    assert sorted(path.name for path in kept.iterdir()) == ["image_1.png", "schema.json", "work"]
    assert list((kept / "work").iterdir()) == []
    assert (kept / "image_1.png").read_bytes() == PNG
    names = json.loads((kept / "schema.json").read_text())["properties"]["tool_calls"]["items"]["properties"]["name"]
    assert names["enum"] == ["find"]
    argv = (tmp_path / "argv").read_text()
    assert "--output-schema" in argv
    assert argv.endswith("image_1.png -\n")


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("unexpected status 401 Unauthorized: Incorrect API key provided: sk-abc", errors.AuthError),
        ("Not logged in. Run codex login.", errors.AuthError),
        ("Missing environment variable: `MY_KEY`.", errors.AuthError),
        ("Quota exceeded. Check your plan and billing details.", errors.AuthError),
        ("The model `m` does not exist or you do not have access to it.", errors.ModelSetupError),
        ("exceeded retry limit, last status: 429 Too Many Requests", errors.RateLimitError),
        ("You’ve hit your usage limit. Try again at May 18th.", errors.RateLimitedUntilError),
        ("Codex ran out of room in the model's context window. Start a new thread.", errors.ContextTooLongError),
        ("We’re currently experiencing high demand, which may cause temporary errors.", errors.TransientError),
    ],
)
def test_what_codex_says_when_a_turn_fails_has_a_class(tmp_path: Path, said: str, kind: type[Exception]) -> None:
    with pytest.raises(kind) as caught:
        ask(fake_codex(tmp_path, error=said))
    assert type(caught.value) is kind
    assert "optimizer model 'fake' at the Codex command line" in str(caught.value)


def test_without_events_the_error_output_and_then_the_output_say_it(tmp_path: Path) -> None:
    with pytest.raises(errors.ModelSetupError, match="unexpected argument '--json'"):
        ask(fake_codex(tmp_path / "a", stdout="", stderr="error: unexpected argument '--json' found", code=2))
    with pytest.raises(errors.TransientError, match="it broke"):
        ask(fake_codex(tmp_path / "b", stdout="it broke", code=3))
    with pytest.raises(errors.TransientError, match="exit code 3"):
        ask(fake_codex(tmp_path / "c", stdout="", code=3))


def test_an_error_that_was_overcome_is_none(tmp_path: Path) -> None:
    events = codex_turn("fine").stdout
    again = json.dumps({"type": "error", "message": "Reconnecting... 1/5"}) + "\n"
    assert ask(FakeCli(tmp_path, "codex", CliTurn(again + events))).text == "fine"


def test_a_request_to_sign_in_is_an_error_and_a_text_about_it_is_not(tmp_path: Path) -> None:  # C145
    with pytest.raises(errors.AuthError, match="codex login"):
        ask(fake_codex(tmp_path / "a", stdout="Please run login\n", files={}))
    essay = "To publish, first explain why a user must please run login before the upload. " * 5
    assert ask(fake_codex(tmp_path / "b", essay)).text == essay


def test_a_missing_program_and_folder_name_the_setting(tmp_path: Path) -> None:
    cli = fake_codex(tmp_path)
    with pytest.raises(errors.ModelSetupError, match=r"codex_exec_path or .*CODEX_EXEC_PATH"):
        complete(HELLO, optimizer(cli).with_settings(path=str(tmp_path / "no")), CallContext(60.0))
    with pytest.raises(errors.ModelSetupError, match="CODEX_WORKING_DIRECTORY names"):
        ask(cli, working_directory=str(tmp_path / "no"))
    assert cli.calls == ()


def test_as_a_target_it_is_refused_before_anything_is_started(tmp_path: Path) -> None:
    cli = fake_codex(tmp_path)
    with pytest.raises(NotImplementedError, match="Exec backends"):
        complete(HELLO, cli_role("codex_exec", cli, "target"), CallContext(60.0))
    assert cli.calls == ()


def test_usage_that_is_not_told_is_unknown(tmp_path: Path) -> None:
    assert ask(fake_codex(tmp_path, "ok", usage=None)).usage == Usage(calls=1, known=False)


def test_a_session_counts_its_calls_and_tokens(tmp_path: Path) -> None:
    cli = fake_codex(tmp_path, "Paris")
    session = Session({"optimizer": optimizer(cli)})
    session.preflight()
    for _ in range(2):
        assert session.ask("optimizer", "Be brief.", "Capital of France?", stage="reflect").text == "Paris"
    stages = session.usage.summary()
    assert stages["reflect"]["calls"] == 2
    assert (stages["reflect"]["prompt_tokens"], stages["reflect"]["completion_tokens"]) == (22, 10)
    assert session.usage.total.cached_tokens == 9
    assert len(cli.calls) == 3


def test_a_run_that_fails_is_counted_with_what_it_used(tmp_path: Path) -> None:
    done = {"content": "", "tool_calls": [{"name": "find", "arguments": "{}"}]}
    cli = FakeCli(tmp_path, "codex", [codex_turn("no JSON"), codex_turn(done)])
    session = Session({"optimizer": optimizer(cli)}, limits=Limits(retry_first_wait_seconds=0.001))
    reply = session.call("optimizer", TOOLS)
    assert [call.function.name for call in reply.tool_calls] == ["find"]
    assert (reply.usage.prompt_tokens, session.usage.total.prompt_tokens) == (22, 22)


def listing(servers: object, *turns: CliTurn) -> list[CliTurn]:
    return [CliTurn(json.dumps(servers), when="mcp list --json", aside=True), *(turns or (codex_turn("Paris"),))]


def test_the_person_s_tool_servers_are_switched_off_and_asked_for_once(tmp_path: Path) -> None:
    servers = [{"name": "mine", "enabled": True}, {"name": "a b", "enabled": False}]
    cli = FakeCli(tmp_path, "codex", listing(servers))
    for _ in range(2):
        assert ask(cli, profile="fast").text == "Paris"
    (asked,) = cli.asides
    assert list(asked.argv[:5]) == ["-p", "fast", "mcp", "list", "--json"]
    assert asked.files == {}
    assert not Path(asked.cwd).exists()
    assert len(cli.calls) == 2
    for call in cli.calls:
        table, dotted = call.argv.index('mcp_servers={"a b"={enabled=false}}'), "mcp_servers.mine.enabled=false"
        assert table < call.argv.index(dotted)


def test_servers_that_cannot_be_told_refuse_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    old = CliTurn(stderr="error: unrecognized subcommand 'mcp'", code=2, when="mcp list --json", aside=True)
    cli = FakeCli(tmp_path, "codex", [old, codex_turn("Paris")])
    assert ask(cli).text == "Paris"
    (tmp_path / "config.toml").write_text("[mcp_servers.mine]\ncommand = 'x'\n", "utf-8")
    with pytest.raises(errors.ModelSetupError, match=r"unrecognized subcommand 'mcp'.*; update Codex, or"):
        ask(cli)
    assert len(cli.calls) == 1

"""Copilot's command line as a chat model, against a small executable that plays it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from patience import given_time

from skillopt import errors
from skillopt.model.backends.copilot_chat import complete, fits_command_line, parse_copilot_jsonl
from skillopt.model.limiter import Limits
from skillopt.model.session import Session
from skillopt.model.values import CallContext, ModelCall, ModelReply
from skillopt.testing import CliTurn, FakeCli, cli_role, copilot_turn, fake_copilot
from skillopt.types import Usage

pytestmark = pytest.mark.skipif(os.name == "nt", reason="checked on POSIX")

HELLO = ModelCall(messages=({"role": "system", "content": "Be brief."}, {"role": "user", "content": "Grüße\n東京?"}))
FLAGS = [
    *("--output-format", "json"),
    *("--stream", "off"),
    "--no-color",
    *("--log-level", "none"),
    "--disable-builtin-mcps",
    "--no-custom-instructions",
    "--available-tools=",
    "--available-tools=none",
]
LONG = "".join(f"line {n} é\n" for n in range(4000)) + "END"


def said(text: object) -> ModelCall:
    return ModelCall(messages=({"role": "user", "content": text},))


def ask(cli: FakeCli, call: ModelCall = HELLO, *, timeout: float = 60.0, **settings: object) -> ModelReply:
    return complete(call, cli_role("copilot_chat", cli, **{"model": "", **settings}), CallContext(timeout))


def test_the_exact_command_in_an_empty_folder_that_is_gone_afterwards(tmp_path: Path) -> None:
    cli = fake_copilot(tmp_path, "Paris")
    reply = ask(cli)
    (call,) = cli.calls
    assert reply == ModelReply("Paris", usage=Usage(calls=1, known=False), model="gpt-fake")
    assert list(call.argv) == ["-p", "Be brief.\n\n---\n\nGrüße\n東京?", *FLAGS]
    assert (call.stdin, call.files) == ("", {})
    assert Path(call.cwd) != Path.cwd()
    assert not Path(call.cwd).exists()


def test_the_model_is_given_when_there_is_one(tmp_path: Path) -> None:
    cli = fake_copilot(tmp_path)
    ask(cli, model="gpt-5")
    ask(cli, replace(HELLO, model="claude-x"), model="gpt-5")
    assert [call.value("--model") for call in cli.calls] == ["gpt-5", "claude-x"]


def test_only_what_copilot_needs_is_handed_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COPILOT_ALLOW_ALL", "COPILOT_HOME", "GH_TOKEN", "OPENAI_API_KEY", "QWEN_CHAT_API_KEY"):
        monkeypatch.setenv(name, "marked")
    cli = fake_copilot(tmp_path)
    ask(cli)
    ask(cli, home="/my/home")
    first, second = (call.environment for call in cli.calls)
    assert sorted(name for name, value in first.items() if value == "marked") == ["COPILOT_HOME", "GH_TOKEN"]
    assert second["COPILOT_HOME"] == "/my/home"
    assert "--allow-all-tools" not in cli.calls[0].argv


@pytest.mark.parametrize("text", ["x" * 100_001, "-v", "a\0b", "broken \ud800"])
def test_what_does_not_fit_on_a_command_line_goes_in_on_standard_input(tmp_path: Path, text: str) -> None:
    cli = fake_copilot(tmp_path)
    ask(cli, said(text))
    (call,) = cli.calls
    assert list(call.argv) == FLAGS
    assert call.stdin == text.replace("\ud800", "?")


def test_a_long_prompt_with_new_lines_arrives_whole(tmp_path: Path) -> None:  # C146
    cli = fake_copilot(tmp_path, "ok", heard=LONG)
    assert ask(cli, said(LONG)).text == "ok"
    assert len(LONG) > 40_000
    assert (cli.calls[0].value("-p"), cli.calls[0].stdin) == (LONG, "")


def test_a_shim_that_would_end_at_a_new_line_gets_it_on_standard_input(tmp_path: Path) -> None:  # C146
    cli = fake_copilot(tmp_path, "ok", heard=LONG)
    shim = cli.path.rename(tmp_path / "copilot.CMD")
    role = cli_role("copilot_chat", cli, model="").with_settings(path=str(shim))
    assert complete(said(LONG), role, CallContext(60.0)).text == "ok"
    assert (list(cli.calls[0].argv), cli.calls[0].stdin) == (FLAGS, LONG)


def test_what_fits_depends_on_the_system() -> None:
    assert fits_command_line("x" * 100_000, "/bin/copilot", windows=False)
    assert fits_command_line("x" * 8_000, "C:/copilot.exe", windows=True)
    assert not fits_command_line("x" * 8_001, "C:/copilot.exe", windows=True)
    assert not fits_command_line("x", "C:/copilot.cmd", windows=True)
    assert not fits_command_line("é" * 50_001, "/bin/copilot", windows=False)


@pytest.mark.parametrize("heard", ["line 0 é", LONG[:8000], ""])
def test_an_answer_to_a_cut_prompt_is_refused(tmp_path: Path, heard: str) -> None:
    with pytest.raises(errors.ModelSetupError, match=f"only the first {len(heard)} of {len(LONG)}"):
        ask(fake_copilot(tmp_path, "Hm?", heard=heard), said(LONG))


def test_a_prompt_that_is_repeated_with_hidden_words_or_trimmed_is_whole(tmp_path: Path) -> None:
    for number, heard in enumerate(("key ****** here", "key abc here")):
        cli = fake_copilot(tmp_path / str(number), "fine", heard=heard)
        assert ask(cli, said("key abc here\n")).text == "fine"


def test_messages_are_joined_and_noise_is_left_out() -> None:
    lines = [
        "warning: not JSON",
        '{"type": "assistant.message", "data": {"content": "one"}}',
        '{"type": "assistant.message", "data": {"content": 7}}',
        '{"type": "assistant.message", "data": "bad"}',
        '{"type": "assistant.message"}',
        '["list"]',
        '{"type": "user.message", "data": {"content": "no"}}',
        '{"type": "assistant.message", "data": {"content": "two"}}',
        '{"type": "assist',
    ]
    assert parse_copilot_jsonl("\n".join(lines)) == "one\ntwo"
    assert parse_copilot_jsonl("") == ""


@pytest.mark.parametrize(
    "call",
    [
        replace(HELLO, tools=[{"type": "function", "function": {"name": "f"}}]),
        replace(HELLO, tool_choice="none"),
        said([{"type": "text", "text": "x"}, {"type": "image_url", "image_url": {"url": "https://h/a.png"}}]),
    ],
)
def test_tools_and_images_are_refused_before_anything_is_started(tmp_path: Path, call: ModelCall) -> None:
    cli = fake_copilot(tmp_path)
    with pytest.raises(NotImplementedError, match="copilot_chat can"):
        ask(cli, call)
    assert cli.calls == ()


def test_a_conversation_is_flattened(tmp_path: Path) -> None:
    cli = fake_copilot(tmp_path)
    turns = (
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Yes?"},
        {"role": "user", "content": "2"},
    )
    ask(cli, ModelCall(messages=turns))
    assert "- User: Hi\n- Assistant: Yes?\n- User: 2" in str(cli.calls[0].value("-p"))


@pytest.mark.parametrize(
    ("turn", "kind", "match"),
    [
        (
            lambda: CliTurn(stderr="Error: No authentication information found.", code=1),
            errors.AuthError,
            "copilot login",
        ),
        (lambda: copilot_turn(error="Bad credentials", status_code=401), errors.AuthError, "Bad credentials"),
        (
            lambda: CliTurn(stderr='Error: Model "x" from --model flag is not available.', code=1),
            errors.ModelSetupError,
            "not available",
        ),
        (lambda: copilot_turn(error="Model 'x' not found (HTTP 404)", status_code=404), errors.ModelSetupError, "'x'"),
        (
            lambda: copilot_turn(error="You exceeded your monthly quota", status_code=429),
            errors.RateLimitError,
            "quota",
        ),
        (lambda: copilot_turn(error="prompt is too long", status_code=400), errors.ContextTooLongError, "too long"),
        (
            lambda: CliTurn(stderr="error: unexpected argument '--stream' found", code=1),
            errors.ModelSetupError,
            "update",
        ),
        (lambda: CliTurn(stderr="boom", code=2), errors.TransientError, r"boom \(exit code 2\)"),
        (lambda: CliTurn("Please run login\n"), errors.AuthError, "copilot login"),  # C145
    ],
)
def test_what_copilot_says_when_it_fails_has_a_class(
    tmp_path: Path, turn: Callable[[], CliTurn], kind: type[Exception], match: str
) -> None:
    with pytest.raises(kind, match=match) as caught:
        ask(FakeCli(tmp_path, "copilot", turn()))
    assert type(caught.value) is kind


def test_a_prompt_that_is_too_long_tells_its_sizes(tmp_path: Path) -> None:
    words = "Request exceeds the model's prompt budget after reserving output (101326 tokens; limit 64000)."
    with pytest.raises(errors.ContextTooLongError) as caught:
        ask(fake_copilot(tmp_path, error=words))
    assert (caught.value.prompt_tokens, caught.value.limit) == (101326, 64000)


def test_an_answer_about_signing_in_is_an_answer(tmp_path: Path) -> None:  # C145
    essay = "To publish, first explain why a user must please run login before the upload. " * 5
    assert ask(fake_copilot(tmp_path, essay)).text == essay


def test_a_missing_program_names_the_setting(tmp_path: Path) -> None:
    role = cli_role("copilot_chat", fake_copilot(tmp_path))
    with pytest.raises(errors.ModelSetupError, match="copilot_exec_path or the environment variable COPILOT_EXEC_PATH"):
        complete(HELLO, role.with_settings(path=str(tmp_path / "no")), CallContext(60.0))


def test_a_program_that_hangs_is_ended_with_what_it_started(tmp_path: Path) -> None:  # C148
    def hanging(seconds: float) -> FakeCli:
        cli = fake_copilot(tmp_path / str(seconds), "late", hang=True, daemons=1)
        with pytest.raises(errors.DeadlineError):
            ask(cli, timeout=seconds)
        return cli

    cli = given_time(hanging, lambda cli: bool(cli.calls))
    assert len(cli.calls[0].pids) == 2
    assert cli.survivors == ()


def test_no_answer_is_tried_again_and_its_calls_are_counted(tmp_path: Path) -> None:
    cli = fake_copilot(tmp_path, "", "Paris")
    session = Session({"target": cli_role("copilot_chat", cli)}, limits=Limits(retry_first_wait_seconds=0.001))
    assert session.ask("target", "Be brief.", "Capital?", stage="rollout").text == "Paris"
    assert session.usage.summary()["rollout"]["calls"] == 1
    assert session.usage.total.known is False
    assert len(cli.calls) == 2


def test_the_person_s_tool_servers_are_switched_off_and_asked_for_once(tmp_path: Path) -> None:
    servers = CliTurn('{"mcpServers": {"mine": {}, "a.b": {}}}', when="mcp list --json", aside=True)
    cli = FakeCli(tmp_path, "copilot", [servers, copilot_turn("Paris")])
    for _ in range(2):
        assert ask(cli).text == "Paris"
    assert len(cli.asides) == 1
    assert all(call.argv[-2:] == ("--disable-mcp-server=mine", "--disable-mcp-server=a.b") for call in cli.calls)


def test_servers_that_cannot_be_told_refuse_the_call(tmp_path: Path) -> None:
    old = CliTurn(stderr="error: unknown command 'mcp'", code=1, when="mcp list --json", aside=True)
    cli = FakeCli(tmp_path, "copilot", [old, copilot_turn("Paris")])
    assert ask(cli, home=str(tmp_path)).text == "Paris"
    (tmp_path / "mcp-config.json").write_text("{}", "utf-8")
    with pytest.raises(errors.ModelSetupError, match=r"unknown command 'mcp'.*; update Copilot, or"):
        ask(cli, home=str(tmp_path))
    assert len(cli.calls) == 1

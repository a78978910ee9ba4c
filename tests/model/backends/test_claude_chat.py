"""Claude's command line, played by a small executable: what it is given, what it answers, how it fails."""

from __future__ import annotations

import base64
import json
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from patience import given_time, until

from skillopt import errors
from skillopt.config.resolve import resolve
from skillopt.model import Limits, Session
from skillopt.model.backends.claude_chat import FLAGS, complete
from skillopt.model.values import CallContext, ModelCall, ModelReply
from skillopt.testing import CliTurn, FakeCli, claude_result, cli_role, fake_claude
from skillopt.utils.cancel import CancelToken

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the fake executable is checked on POSIX")

CTX = CallContext(timeout=60.0)
TOOLS = [
    {"type": "function", "function": {"name": "look_up", "description": "Find.", "parameters": {"type": "object"}}},
    {"type": "function", "function": {"name": "write", "parameters": {"type": "object"}}},
]
PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 20
IMAGE = {
    "role": "user",
    "content": [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64," + base64.b64encode(PNG).decode()}},
    ],
}
Run = Callable[..., ModelReply]


def user(text: str, system: str = "", **more: Any) -> ModelCall:
    messages = [{"role": "system", "content": system}] if system else []
    return ModelCall((*messages, {"role": "user", "content": text}), **more)


def run(cli: FakeCli, call: ModelCall | None = None, ctx: CallContext = CTX, **settings: Any) -> ModelReply:
    return complete(call or user("hello"), cli_role("claude_chat", cli, **settings), ctx)


def test_the_command_line_is_isolated_and_the_prompt_goes_in_as_input(tmp_path: Path) -> None:
    cli = fake_claude(tmp_path)
    run(cli, user("hello", "Be brief. ü\n", effort="HIGH"), model="some-model")
    (call,) = cli.calls
    assert call.argv == (
        "-p",
        "--output-format",
        "json",
        "--permission-mode",
        "dontAsk",
        "--add-dir",
        call.cwd,
        "--tools",
        "",
        "--strict-mcp-config",
        "--disable-slash-commands",
        "--no-session-persistence",
        "--setting-sources",
        "",
        "--model",
        "some-model",
        "--system-prompt-file",
        f"{call.cwd}/system_prompt.txt",
        "--effort",
        "high",
    )
    assert call.stdin == "hello"
    assert call.files == {"system_prompt.txt": "Be brief. ü\n"}
    assert "skillopt_claude_" in call.cwd
    assert not Path(call.cwd).exists()


def test_what_is_not_given_is_not_sent(tmp_path: Path) -> None:
    cli = fake_claude(tmp_path)
    role_effort = ("off", "", "none", "minimal")
    for effort in role_effort:
        run(cli, user("hello", effort=effort), model="", setting_sources=None)
    for call in cli.calls:
        assert not {"--model", "--effort", "--json-schema", "--setting-sources", "--allowedTools"} & set(call.argv)
        assert call.files == {"system_prompt.txt": ""}


def test_chosen_settings_are_sent(tmp_path: Path) -> None:
    cli = fake_claude(tmp_path)
    run(cli, setting_sources="user,project", permission_mode="plan")
    assert cli.calls[0].value("--setting-sources") == "user,project"
    assert cli.calls[0].value("--permission-mode") == "plan"


def test_the_environment_holds_its_own_credentials_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {
        "ANTHROPIC_API_KEY": "key-a",
        "ANTHROPIC_AUTH_TOKEN": "key-b",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
        "CLAUDE_CODE_OAUTH_TOKEN": "key-c",
        "CLAUDE_CONFIG_DIR": "/nowhere",
    }
    others = ("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "QWEN_CHAT_API_KEY", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY")
    for name, value in {**own, **dict.fromkeys(others, "marked-secret"), "CLAUDE_CODE_USE_BEDROCK": "0"}.items():
        monkeypatch.setenv(name, value)
    cli = fake_claude(tmp_path)
    run(cli)
    env = cli.calls[0].environment
    assert {name: env[name] for name in own} == own
    assert env["CLAUDE_CODE_DISABLE_AUTO_MEMORY"] == "1"
    assert env["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] == "1"
    assert env["CLAUDE_CODE_MAX_RETRIES"] == "0"
    assert "CLAUDE_CODE_MAX_OUTPUT_TOKENS" not in env
    assert "marked-secret" not in env.values()
    monkeypatch.setenv("CLAUDE_CODE_USE_BEDROCK", "1")
    run(cli)
    assert cli.calls[1].environment["AWS_SECRET_ACCESS_KEY"] == "marked-secret"
    assert "OPENAI_API_KEY" not in cli.calls[1].environment


def test_a_long_prompt_with_newlines_arrives_whole(tmp_path: Path) -> None:
    """C146"""
    prompt = "".join(f'line {n}: "quoted" %PATH% $HOME `x` é 🦊\n' for n in range(1100))
    assert len(prompt) > 40_000
    cli = fake_claude(tmp_path)
    run(cli, user(prompt))
    assert cli.calls[0].stdin == prompt
    assert all("line 1" not in word for word in cli.calls[0].argv)


def test_the_reply_with_its_usage_model_and_finish_reason(tmp_path: Path) -> None:
    usage = {
        "input_tokens": 3,
        "cache_creation_input_tokens": 20,
        "cache_read_input_tokens": 100,
        "output_tokens": 7,
        "service_tier": "standard",
    }
    reply = run(fake_claude(tmp_path, "Paris\n", usage=usage, modelUsage={"claude-sonnet-4-6": {}}))
    assert (reply.text, reply.finish_reason, reply.model) == ("Paris\n", "stop", "claude-sonnet-4-6")
    used = reply.usage
    assert (used.calls, used.prompt_tokens, used.cached_tokens, used.completion_tokens, used.known) == (
        1,
        123,
        100,
        7,
        True,
    )


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        (None, "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("refusal", "refusal"),
        ("pause_turn", "pause_turn"),
    ],
)
def test_finish_reasons(reason: str | None, finish: str, tmp_path: Path) -> None:
    assert run(fake_claude(tmp_path, "text", stop_reason=reason)).finish_reason == finish


def test_a_refusal_is_returned_with_its_words(tmp_path: Path) -> None:
    words = "API Error: Claude Code is unable to respond to this request, which appears to violate our Usage Policy."
    reply = run(fake_claude(tmp_path, words, is_error=True, code=1))
    assert (reply.finish_reason, reply.text) == ("refusal", words)


def test_a_reply_beyond_the_token_limit_is_cut_and_may_be_asked_for_with_a_larger_one(tmp_path: Path) -> None:
    words = "API Error: Claude's response exceeded the 32000 output token maximum. To configure this behavior, set …"
    cli = fake_claude(tmp_path, words, is_error=True, code=1, stop_reason="stop_sequence")
    reply = run(cli, ctx=CallContext(timeout=20.0, cap_factor=2))
    assert (reply.finish_reason, reply.text, reply.usage.completion_tokens) == ("length", "", 5)
    assert cli.calls[0].environment["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] == "64000"


def test_a_session_asks_once_more_with_a_larger_limit(tmp_path: Path) -> None:
    cut = claude_result("exceeded the 32000 output token maximum", is_error=True, stop_reason="stop_sequence")
    cli = FakeCli(tmp_path, "claude", [CliTurn(cut, code=1), CliTurn(claude_result("whole"))])
    with Session({"optimizer": cli_role("claude_chat", cli, "optimizer")}) as session:
        assert session.ask("optimizer", "", "long", stage="rewrite").text == "whole"
    limits = [call.environment.get("CLAUDE_CODE_MAX_OUTPUT_TOKENS") for call in cli.calls]
    assert limits == [None, "64000"]


def test_a_call_may_ask_for_more_than_the_program_gives_by_itself_and_never_gets_less(tmp_path: Path) -> None:
    cli = fake_claude(tmp_path)
    for tokens in (64_000, 16):
        run(cli, replace(user("x"), max_completion_tokens=tokens))
    limits = [call.environment.get("CLAUDE_CODE_MAX_OUTPUT_TOKENS") for call in cli.calls]
    assert limits == ["64000", None]


def test_usage_that_is_not_reported_is_unknown(tmp_path: Path) -> None:
    assert run(fake_claude(tmp_path, usage=None)).usage.known is False


def test_the_last_result_counts_among_other_lines(tmp_path: Path) -> None:
    noise = 'warning: something\n{"type": "system"}\n{broken\n' + claude_result("first") + claude_result("second")
    assert run(FakeCli(tmp_path / "a", "claude", CliTurn(noise + "\n"))).text == "second"
    as_list = json.dumps([{"type": "system"}, json.loads(claude_result("third"))], indent=2)
    assert run(FakeCli(tmp_path / "b", "claude", CliTurn(as_list))).text == "third"


def test_tool_calls_come_from_the_structured_output(tmp_path: Path) -> None:
    request = {"name": "look_up", "arguments": '{"q": "x"}'}
    cli = fake_claude(tmp_path, {"content": "", "tool_calls": [request, request]}, stop_reason="tool_use")
    first, second = (run(cli, user("find x", tools=TOOLS)) for _ in range(2))
    assert first.finish_reason == "tool_calls"
    assert [call.function.arguments for call in first.tool_calls] == ['{"q": "x"}'] * 2
    ids = [call.id for reply in (first, second) for call in reply.tool_calls]
    assert len(set(ids)) == 4
    assert all(name.startswith("claude_tool_") for name in ids)
    schema = json.loads(cli.calls[0].value("--json-schema") or "")
    assert set(schema["properties"]) == {"content", "tool_calls"}
    assert "look_up" in cli.calls[0].stdin
    assert cli.calls[0].value("--tools") == ""


def test_a_structured_reply_may_come_as_text(tmp_path: Path) -> None:
    said = json.dumps({"content": "done", "tool_calls": []})
    reply = run(fake_claude(tmp_path, f"```json\n{said}\n```"), user("x", tools=TOOLS))
    assert (reply.text, reply.tool_calls, reply.finish_reason) == ("done", (), "stop")


def test_a_required_tool_that_is_missing_is_asked_for_again(tmp_path: Path) -> None:
    cli = fake_claude(tmp_path, {"content": "no", "tool_calls": []})
    with pytest.raises(errors.TransientError, match="look_up"):
        run(cli, user("x", tools=TOOLS, tool_choice={"type": "function", "function": {"name": "look_up"}}))


def test_a_structured_reply_that_was_refused_or_cut_keeps_its_reason(tmp_path: Path) -> None:
    reply = run(fake_claude(tmp_path, "I will not.", stop_reason="refusal"), user("x", tools=TOOLS))
    assert (reply.finish_reason, reply.text) == ("refusal", "I will not.")


def test_images_are_files_that_it_may_read_and_nothing_else(tmp_path: Path) -> None:
    cli = fake_claude(tmp_path)
    run(cli, ModelCall((IMAGE,)))
    (call,) = cli.calls
    assert call.value("--tools") == "Read"
    assert call.value("--allowedTools") == "Read(./**)"
    assert set(call.files) == {"image_1.png", "system_prompt.txt"}
    assert call.stdin.startswith("What is this?\n[Attached image 1]")
    assert call.stdin.endswith(f"- [Attached image 1]: {call.cwd}/image_1.png")
    with pytest.raises(errors.BadRequestError, match="CLAUDE_ALLOW_ATTACHMENT_READ"):
        run(cli, ModelCall((IMAGE,)), allow_attachment_read=False)
    assert len(cli.calls) == 1


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("Invalid API key · Please run /login", errors.AuthError),
        ("API Error: 401 {'type':'error','error':{'type':'authentication_error'}}", errors.AuthError),
        ("Credit balance is too low", errors.AuthError),
        ("There's an issue with the selected model (x). It may not exist or you may not have access to it.", 0),
        ("unknown model: x", errors.ModelSetupError),
        ("error: unknown option '--json-schema'", errors.ModelSetupError),
        ("API Error: 429 rate_limit_error", errors.RateLimitError),
        ("Claude AI usage limit reached|4102444800", errors.RateLimitError),
        ("API Error: 529 Overloaded", errors.TransientError),
        ("API Error: Request was aborted.", errors.TransientError),
        ("Prompt is too long", errors.ContextTooLongError),
        ("something nobody knows", errors.TransientError),
    ],
)
@pytest.mark.parametrize("place", ["is_error", "stderr"])
def test_failures_have_their_class(words: str, kind: Any, place: str, tmp_path: Path) -> None:
    cli = fake_claude(tmp_path, words, is_error=True)
    if place == "stderr":
        cli = fake_claude(tmp_path / "b", stdout="", stderr=words, code=1)
    expected = kind or errors.ModelSetupError
    with pytest.raises(expected) as caught:
        run(cli)
    assert type(caught.value) is expected
    assert "at /" in str(caught.value)


def test_the_end_of_a_usage_limit_is_the_wait(tmp_path: Path) -> None:
    words = f"Claude AI usage limit reached|{int(time.time()) + 3600}"
    with pytest.raises(errors.RateLimitError) as caught:
        run(fake_claude(tmp_path, words, is_error=True, code=1))
    assert caught.value.retry_after is not None
    assert 3500 < caught.value.retry_after <= 3600


def test_the_status_that_a_result_names_counts(tmp_path: Path) -> None:
    with pytest.raises(errors.AuthError, match=r"HTTP 403: no luck.*/login"):
        run(fake_claude(tmp_path, "no luck", is_error=True, api_error_status=403))


def test_a_failure_without_words_shows_its_kind(tmp_path: Path) -> None:
    with pytest.raises(errors.TransientError, match="error_max_structured_output_retries"):
        run(fake_claude(tmp_path, "", subtype="error_max_structured_output_retries", result=None))
    with pytest.raises(errors.TransientError, match="exit code 9"):
        run(FakeCli(tmp_path / "b", "claude", CliTurn(code=9)))
    with pytest.raises(errors.TransientError, match="without a result: x"):
        run(FakeCli(tmp_path / "c", "claude", CliTurn("x")))


@pytest.mark.parametrize("said", ["Please run /login", "Invalid API key · Please run /login", "please run login\n"])
@pytest.mark.parametrize("as_result", [True, False])
def test_not_signed_in_is_told_from_exit_0(said: str, as_result: bool, tmp_path: Path) -> None:
    """C145"""
    nothing = dict.fromkeys(("input_tokens", "output_tokens"), 0)
    cli = fake_claude(tmp_path, said, usage=nothing) if as_result else fake_claude(tmp_path, stdout=said)
    with pytest.raises(errors.AuthError, match="/login"):
        run(cli)


def test_an_answer_about_signing_in_is_an_answer(tmp_path: Path) -> None:
    """C145"""
    answer = "To sign in to the portal, please run login from the menu. " * 5
    cli = FakeCli(tmp_path, "claude", [CliTurn(claude_result(text)) for text in (answer, "Please log in.", "login")])
    assert [run(cli).text for _ in range(3)] == [answer, "Please log in.", "login"]


def test_a_missing_program_names_its_variable() -> None:
    role = cli_role("claude_chat", FakePath(), model="m")
    with pytest.raises(errors.ModelSetupError, match="CLAUDE_CLI_BIN"):
        complete(user("x"), role, CTX)


class FakePath:
    """Stands where a FakeCli does; there is no program."""

    path = "no-such-claude-here"


def test_a_hanging_program_ends_with_its_daemon_at_the_timeout(tmp_path: Path) -> None:
    """C148"""

    def hanging(seconds: float) -> tuple[FakeCli, str]:
        cli = fake_claude(tmp_path / str(seconds), stdout="half an ans", hang=True, daemons=1)
        with pytest.raises(errors.DeadlineError) as caught:
            run(cli, ctx=CallContext(timeout=seconds))
        return cli, str(caught.value)

    cli, said = given_time(hanging, lambda made: "half an ans" in made[1])
    assert "half an ans" in said
    (call,) = cli.calls
    assert len(call.pids) == 2
    assert cli.survivors == ()
    assert not Path(call.cwd).exists()


def test_a_stopped_run_leaves_neither_process_nor_folder(tmp_path: Path) -> None:
    cli = fake_claude(tmp_path, hang=True, daemons=1)
    token = CancelToken()
    stopper = threading.Thread(target=lambda: (until(lambda: bool(cli.calls)), token.cancel()))
    stopper.start()
    with pytest.raises(errors.InterruptedRunError):
        run(cli, ctx=CallContext(timeout=120.0, cancel=token))
    stopper.join()
    (call,) = cli.calls
    assert cli.survivors == ()
    assert not Path(call.cwd).exists()


def test_no_secret_shows_in_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "plainmarkedsecret")
    flood = "key plainmarkedsecret refused at http://me:pass@proxy/ " * 10_000
    for turn in (CliTurn(stderr=flood, code=1), CliTurn(flood), CliTurn(claude_result(flood, is_error=True))):
        cli = FakeCli(tmp_path / str(len(list(tmp_path.iterdir()))), "claude", turn)
        with pytest.raises(errors.ModelError) as caught:
            run(cli)
        assert "plainmarkedsecret" not in str(caught.value)
        assert "me:pass" not in str(caught.value)
        assert len(str(caught.value)) < 2500


def test_a_session_asks_and_counts(tmp_path: Path) -> None:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 2}
    turns = [
        CliTurn(claude_result("overloaded", is_error=True), code=1),
        CliTurn(claude_result("Paris", usage=usage)),
    ]
    cli = FakeCli(tmp_path, "claude", turns)
    limits = Limits(retries=3, retry_first_wait_seconds=0.001)
    with Session({"target": cli_role("claude_chat", cli)}, limits=limits) as session:
        reply = session.ask("target", "You know places.", "Capital of France?", stage="rollout")
        assert reply.text == "Paris"
        total = session.usage.total
    assert (total.prompt_tokens, total.completion_tokens, total.cached_tokens) == (25, 7, 5)  # the failed run's too
    assert total == replace(reply.usage, calls=1)
    assert len(cli.calls) == 2
    assert cli.calls[1].files == {"system_prompt.txt": "You know places."}


@pytest.mark.parametrize(("given", "expected"), [(None, ""), ("", None), ("user", "user")])
def test_setting_sources_from_the_environment(given: str | None, expected: str | None) -> None:
    """Unset: nobody's settings; explicitly blank: the flag is left out."""
    environ = {} if given is None else {"CLAUDE_SETTING_SOURCES": given}
    config = resolve({"model": {"backend": "claude_chat"}}, environ=environ)
    assert config.roles["target"].settings["setting_sources"] == expected
    assert config.roles["target"].settings["path"] == "claude"


def test_every_flag_stands_in_one_table() -> None:
    source = Path(__file__).parents[3].joinpath("skillopt/model/backends/claude_chat.py").read_text("utf-8")
    assert source.count('"--') == sum(flag.startswith("--") for flag in FLAGS.values())

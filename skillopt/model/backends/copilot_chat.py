"""GitHub Copilot's command line as a chat model: one run a call, without tools, in a new and empty folder.

How the prompt gets in: a short one is the value of `-p`. A program takes only so much on its command line (Linux: 128
KiB an argument; Windows: 32 KiB in all, 8 KiB through a `.cmd` shim, which also ends at the first new line), so any
other prompt goes in on standard input and `-p` is left out. That relies on what Copilot documents: piped input is the
prompt, unless `-p` gives one. The prompt is never cut: the program repeats in its output what it was asked, and a
call of which it saw only the beginning fails.

The program gets no tool: of the list of tools to offer, a version may take the blank one for "none" or for "all", so a
second one names a tool that does not exist. It gets none of the user's instructions and starts no tool server (MCP),
neither its own nor the user's, and `--allow-all-tools` is never given nor handed down. The hooks in the user's home run
with it, since no flag keeps it from that. It tells no token counts: its usage is unknown, its calls are counted. The
limits on a reply's tokens and the reasoning effort are not passed on.

Flags, events and variables are those of `copilot --help` and `copilot help environment` (checked with 1.0.102).
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import PurePath

from skillopt.errors import ContextTooLongError, ModelError, ModelSetupError, UnsupportedCallError
from skillopt.model.classify import Where
from skillopt.model.cli_chat import (
    asks_to_sign_in,
    cli_where,
    error_from_words,
    json_events,
    not_signed_in,
    run_cli,
    shown_words,
    tool_servers,
)
from skillopt.model.copilot_servers import closing, copilot_source
from skillopt.model.registry import setting_hint
from skillopt.model.transcript import TEXT_PARTS, render
from skillopt.model.values import CallContext, ModelCall, ModelReply
from skillopt.types import JsonObject, RoleConfig
from skillopt.utils.process import ProcessResult, child_environment
from skillopt.utils.removal import scratch_folder

ENVIRONMENT = (
    *("COPILOT_HOME", "COPILOT_MODEL", "COPILOT_OFFLINE"),
    *("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "COPILOT_GH_HOST", "GH_HOST"),
    *("COPILOT_PROVIDER_BASE_URL", "COPILOT_PROVIDER_TYPE", "COPILOT_PROVIDER_WIRE_API", "COPILOT_PROVIDER_WIRE_MODEL"),
    *("COPILOT_PROVIDER_API_KEY", "COPILOT_PROVIDER_BEARER_TOKEN", "COPILOT_PROVIDER_AZURE_API_VERSION"),
    *("COPILOT_PROVIDER_MODEL_ID", "COPILOT_PROVIDER_MAX_PROMPT_TOKENS", "COPILOT_PROVIDER_MAX_OUTPUT_TOKENS"),
)
"""What Copilot is handed of this process's environment, besides what every program needs: its sign-in and, where an
account of another provider is used through it, that provider as Copilot's own variables name it."""

PROMPT = "-p"
FLAGS = (
    "--output-format",
    "json",
    "--stream",
    "off",
    "--no-color",
    "--log-level",
    "none",
    "--disable-builtin-mcps",
    "--no-custom-instructions",
    "--available-tools=",
    "--available-tools=none",
)
MODEL = "--model"
"""Every flag that is given to `copilot`, besides those that switch off tool servers (see `copilot_servers`)."""

_CREDENTIALS = "Run `copilot login`, or set COPILOT_GITHUB_TOKEN."
_TOO_LONG = re.compile(r"exceeds the model's prompt budget", re.IGNORECASE)
_SIZES = re.compile(r"\((\d+) tokens; limit (\d+)\)")
_ARGUMENT_BYTES = 100_000
_ARGUMENT_BYTES_WINDOWS = 8_000
_SHIMS = frozenset({".cmd", ".bat"})


def complete(call: ModelCall, role: RoleConfig, ctx: CallContext) -> ModelReply:
    """One run of `copilot`. Raises the classes of `skillopt.errors.ModelError`.

    Tools and images cannot be carried: UnsupportedCallError (a NotImplementedError) before anything is started.
    """
    _refuse_unsupported(call, role)
    prompt = render(call).joined
    home = str(role.settings.get("home") or "")
    env = child_environment(*ENVIRONMENT, **({"COPILOT_HOME": home} if home else {}))
    model = call.model or role.model
    where = cli_where(role, model, "the Copilot command line", _CREDENTIALS, env)
    program, setting = str(role.settings.get("path") or "copilot"), setting_hint(role, "path")
    argv, stdin = command(program, prompt, model, env)
    servers = tool_servers(copilot_source(program, env), env=env, where=where, ctx=ctx, setting=setting)
    with scratch_folder("skillopt_copilot_") as folder:
        argv += closing(servers, folder)
        result = run_cli(argv, stdin=stdin, folder=folder, env=env, where=where, ctx=ctx, setting=setting)
    return read_reply(result, prompt, where)


def command(program: str, prompt: str, model: str, env: Mapping[str, str]) -> tuple[list[str], str]:
    """The command line and the standard input that together carry `prompt`, whole."""
    chosen = [MODEL, model] if model else []
    if fits_command_line(prompt, shutil.which(program, path=env.get("PATH")) or program):
        return [program, PROMPT, prompt, *FLAGS, *chosen], ""
    return [program, *FLAGS, *chosen], prompt


def fits_command_line(prompt: str, program: str, *, windows: bool = os.name == "nt") -> bool:
    """True when `prompt` can be one argument of `program` and arrive as it is."""
    try:
        size = len(prompt.encode("utf-8"))
    except UnicodeEncodeError:
        return False
    if not prompt.strip() or prompt.startswith("-") or "\0" in prompt or PurePath(program).suffix.lower() in _SHIMS:
        return False
    return size <= (_ARGUMENT_BYTES_WINDOWS if windows else _ARGUMENT_BYTES)


def parse_copilot_jsonl(output: str) -> str:
    """Text of the assistant's messages in the program's output, joined by new lines; all other lines are left out."""
    return "\n".join(str(message["content"]) for message in _messages(json_events(output)))


def read_reply(result: ProcessResult, prompt: str, where: Where) -> ModelReply:
    """The reply of a run. Raises the error that the program tells, and ModelSetupError when it cut the prompt."""
    events = json_events(result.stdout)
    messages = _messages(events)
    failure = next((_data(event) for event in reversed(events) if event.get("type") == "session.error"), {})
    if result.code or (failure and not messages):
        words = str(failure.get("message") or result.stderr.strip() or result.stdout.strip())
        suffix = f" (exit code {result.code})" if result.code else ""
        raise _error(f"{words}{suffix}".strip(), failure.get("statusCode"), where)
    text = "\n".join(str(message["content"]) for message in messages)
    notice = text if events else result.stdout or result.stderr
    if asks_to_sign_in(notice):
        raise not_signed_in(notice, where)
    _check_whole(events, prompt, where)
    return ModelReply(text, model=str(messages[-1].get("model") or "") if messages else "")


def _error(words: str, status: object, where: Where) -> ModelError:
    if _TOO_LONG.search(words):
        sizes = _SIZES.search(words)
        detail = f"{where.short} failed: {shown_words(words, where)}"
        return ContextTooLongError(detail, *((int(sizes[1]), int(sizes[2])) if sizes else (None, None)))
    return error_from_words(words, where, status if isinstance(status, int) else 0)


def _messages(events: Sequence[JsonObject]) -> list[JsonObject]:
    """What the assistant said: the data of its messages with a text."""
    data = (_data(event) for event in events if event.get("type") == "assistant.message")
    return [message for message in data if isinstance(message.get("content"), str) and message["content"]]


def _check_whole(events: Sequence[JsonObject], prompt: str, where: Where) -> None:
    """Refuse an answer to the beginning of the prompt."""
    heard = next((_data(event).get("content") for event in events if event.get("type") == "user.message"), None)
    if isinstance(heard, str) and len(heard.strip()) < len(prompt.strip()) and prompt.strip().startswith(heard.strip()):
        raise ModelSetupError(
            f"{where.short} took only the first {len(heard)} of {len(prompt)} characters of the prompt; update it."
        )


def _refuse_unsupported(call: ModelCall, role: RoleConfig) -> None:
    if call.tools or call.tool_choice is not None:
        raise UnsupportedCallError(f"{role.backend} cannot be given tools; choose another backend for the {role.role}.")
    if any(_has_more_than_text(message.get("content")) for message in call.messages):
        raise UnsupportedCallError(
            f"{role.backend} can be given nothing but text; choose another backend for the {role.role}."
        )


def _has_more_than_text(content: object) -> bool:
    if not isinstance(content, (list, tuple)):
        return False
    return any(isinstance(part, Mapping) and part.get("type") not in TEXT_PARTS for part in content)


def _data(event: JsonObject) -> JsonObject:
    data = event.get("data")
    return data if isinstance(data, dict) else {}

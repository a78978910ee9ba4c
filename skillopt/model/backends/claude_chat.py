"""Claude's command line as a chat model: one prompt in, one reply out, nothing of the user's own set-up in between.

It runs in an empty temporary folder, without the settings, hooks, memory, servers, commands or tools that it would
otherwise load; the system text replaces the one that it has for coding. What it is given, and what it prints, is that
of version 2.1. Settings (see the provider's row): `path`, `permission_mode`, `setting_sources`,
`allow_attachment_read`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from skillopt.errors import BadRequestError, ModelError, TransientError
from skillopt.model.attachments import write_images
from skillopt.model.classify import Where
from skillopt.model.cli_chat import (
    asks_to_sign_in,
    cli_where,
    counting,
    error_from_words,
    json_events,
    not_signed_in,
    run_cli,
    shown_words,
)
from skillopt.model.registry import setting_hint
from skillopt.model.replies import token_cap
from skillopt.model.transcript import Transcript, parse_structured, render, reply_schema, wants_structure
from skillopt.model.values import CallContext, ModelCall, ModelReply, usage_from_openai_usage
from skillopt.types import JsonObject, RoleConfig, Usage
from skillopt.utils.process import ProcessResult, child_environment
from skillopt.utils.removal import scratch_folder

FLAGS: Mapping[str, str] = MappingProxyType(
    {
        "print": "-p",
        "output": "--output-format",
        "permissions": "--permission-mode",
        "folder": "--add-dir",
        "tools": "--tools",
        "allowed": "--allowedTools",
        "no_servers": "--strict-mcp-config",
        "no_commands": "--disable-slash-commands",
        "no_session": "--no-session-persistence",
        "sources": "--setting-sources",
        "model": "--model",
        "system": "--system-prompt-file",
        "effort": "--effort",
        "schema": "--json-schema",
    }
)
"""Every flag that is given to the command line."""

EFFORTS = frozenset({"low", "medium", "high", "xhigh", "max"})

_ISOLATION = {
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_MAX_RETRIES": "0",  # whoever called decides about another attempt
}
_OUTPUT_TOKENS = 32_000  # what it asks for by itself
ENVIRONMENT = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_CUSTOM_HEADERS",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CONFIG_DIR",
    "CLAUDE_CODE_GIT_BASH_PATH",
)
"""What the command line is handed of this process's environment, besides what every program needs."""

CLOUD_ENVIRONMENT: Mapping[str, tuple[str, ...]] = {
    "CLAUDE_CODE_USE_BEDROCK": (
        "AWS_REGION",
        "AWS_PROFILE",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_BEARER_TOKEN_BEDROCK",
        "ANTHROPIC_BEDROCK_BASE_URL",
    ),
    "CLAUDE_CODE_USE_VERTEX": (
        "CLOUD_ML_REGION",
        "ANTHROPIC_VERTEX_PROJECT_ID",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "ANTHROPIC_VERTEX_BASE_URL",
    ),
}
"""What it is handed besides, when the switch of its cloud is set."""

_OFF = ("", "0", "false", "no", "off")
_SIGN_IN = "Run `claude` and sign in with /login, or set ANTHROPIC_API_KEY."
_SYSTEM_FILE = "system_prompt.txt"
_READ_ATTACHMENTS = "Attached images, in this order. Open each with Read before you answer, and read no other file:"
_FINISH = {
    "": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}
_FAULT_FINISH = {
    re.compile(r"unable to respond to this request[^\n]{0,80}\busage policy", re.IGNORECASE): "refusal",
    re.compile(r"exceeded the \d+ output token maximum", re.IGNORECASE): "length",
}


def complete(call: ModelCall, role: RoleConfig, ctx: CallContext) -> ModelReply:
    """One run of the command line. Raises the classes of `skillopt.errors.ModelError`."""
    transcript = render(call)
    if transcript.images and not role.settings.get("allow_attachment_read", True):
        raise BadRequestError(
            "The request holds images, and claude_chat may not read files; allow it by "
            f"{setting_hint(role, 'allow_attachment_read')}."
        )
    env = environment(os.environ, reply_limit(call, role, ctx.cap_factor))
    program = str(role.settings.get("path") or "claude")
    where = cli_where(role, call.model or role.model, program, _SIGN_IN, env)
    with scratch_folder("skillopt_claude_") as folder:
        result = run_cli(
            build_argv(call, role, transcript, folder),
            stdin=_write_inputs(transcript, folder),
            folder=folder,
            env=env,
            where=where,
            ctx=ctx,
            setting=setting_hint(role, "path"),
        )
    with counting(used(result), ctx):
        return parse_reply(result, call, where)


def reply_limit(call: ModelCall, role: RoleConfig, cap_factor: int = 1) -> int:
    """Tokens of a reply at most: what the call asks for, and never less than the command line's own limit.

    A smaller one would leave no room for its thinking, which counts.
    """
    roomy = replace(call, max_completion_tokens=max(call.max_completion_tokens, _OUTPUT_TOKENS))
    return token_cap(roomy, role, cap_factor)


def environment(environ: Mapping[str, str], limit: int = _OUTPUT_TOKENS) -> dict[str, str]:
    """The environment of the command line: what it needs to sign in and to reach its service, and no other key.

    `limit`: of a reply's tokens; its own limit is not repeated.
    """
    clouds = [switch for switch in CLOUD_ENVIRONMENT if environ.get(switch, "").strip().lower() not in _OFF]
    names = [*ENVIRONMENT, *clouds, *(name for switch in clouds for name in CLOUD_ENVIRONMENT[switch])]
    cap = {"CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(limit)} if limit != _OUTPUT_TOKENS else {}
    return child_environment(*names, **_ISOLATION, **cap)


def build_argv(call: ModelCall, role: RoleConfig, transcript: Transcript, folder: Path) -> list[str]:
    """The command line of one call in `folder`. The prompt is not in it: it goes in as standard input."""
    settings = role.settings
    sources = settings.get("setting_sources", "")
    reads = bool(transcript.images)
    model, effort = call.model or role.model, (call.effort or role.effort).strip().lower()
    options: Sequence[tuple[str, ...]] = (
        ("print",),
        ("output", "json"),
        ("permissions", str(settings.get("permission_mode") or "dontAsk")),
        ("folder", str(folder)),
        ("tools", "Read" if reads else ""),
        ("allowed", "Read(./**)") if reads else (),
        ("no_servers",),
        ("no_commands",),
        ("no_session",),
        ("sources", str(sources)) if sources is not None else (),
        ("model", model) if model else (),
        ("system", str(folder / _SYSTEM_FILE)),
        ("effort", effort) if effort in EFFORTS else (),
        ("schema", json.dumps(reply_schema(call.tools or (), call.tool_choice))) if wants_structure(call) else (),
    )
    given = [option for option in options if option]
    return [str(settings.get("path") or "claude"), *(word for name, *rest in given for word in (FLAGS[name], *rest))]


def parse_reply(result: ProcessResult, call: ModelCall, where: Where) -> ModelReply:
    """The reply in what the command line printed, or the error that it reports."""
    event = _last_result(result)
    if not event:
        raise _no_result(result, where)
    text, finish = _text(event), _finish(event)
    if _failed(event) and finish == "length":
        text = ""  # its words about the limit; what the model said is lost
    elif finish != "refusal" and (result.code or _failed(event)):
        status = event.get("api_error_status")
        raise error_from_words(_fault(event, result), where, status if isinstance(status, int) else 0)
    usage = usage_of(event)
    if asks_to_sign_in(text) and not usage.completion_tokens:
        raise not_signed_in(text, where)
    structured = event.get("structured_output")
    reply = ModelReply(text, finish, usage, _model(event))
    if not wants_structure(call) or (structured is None and finish != "stop"):
        return reply
    data = structured if isinstance(structured, Mapping) else text
    content, calls = parse_structured(data, call.tools or (), call.tool_choice, "claude_tool")
    return replace(reply, text=content, tool_calls=calls, finish_reason="tool_calls" if calls else finish)


def used(result: ProcessResult) -> Usage:
    """What a run says that it used, however it ended."""
    return usage_of(_last_result(result))


def model_of(result: ProcessResult) -> str:
    """The model that answered, when the run names exactly one."""
    return _model(_last_result(result))


def _last_result(result: ProcessResult) -> JsonObject:
    """The result among the events that were printed; empty when there is none."""
    return next((e for e in reversed(json_events(result.stdout)) if e.get("type") == "result"), {})


def _write_inputs(transcript: Transcript, folder: Path) -> str:
    """Write what the command line reads from files; the prompt, which says where the images are."""
    (folder / _SYSTEM_FILE).write_bytes(transcript.system.encode("utf-8", "replace"))
    if not transcript.images:
        return transcript.prompt
    paths = write_images(transcript.images, folder)
    listed = "\n".join(f"- [Attached image {n}]: {path}" for n, path in enumerate(paths, start=1))
    return f"{transcript.prompt}\n\n{_READ_ATTACHMENTS}\n{listed}"


def _no_result(result: ProcessResult, where: Where) -> ModelError:
    """The error for an output without a result."""
    said = result.stdout.strip()
    if asks_to_sign_in(said):
        return not_signed_in(said, where)
    if result.code:
        return error_from_words(result.stderr.strip() or said or f"exit code {result.code}", where)
    shown = shown_words(said or result.stderr.strip(), where)
    return TransientError(f"{where.short} ended without a result: {shown or 'nothing was printed'}")


def _failed(event: JsonObject) -> bool:
    return bool(event.get("is_error")) or str(event.get("subtype") or "").startswith("error")


def _fault(event: JsonObject, result: ProcessResult) -> str:
    """What a failed result says: its text, its list of errors, its kind, and what stands on stderr."""
    errors = event.get("errors")
    listed = "; ".join(str(error) for error in errors) if isinstance(errors, list) else ""
    kind = str(event.get("subtype") or "")
    said = _text(event) or listed or (kind if kind != "success" else "") or result.stderr.strip()
    return said or f"exit code {result.code}"


def _text(event: JsonObject) -> str:
    for name in ("result", "content"):
        if isinstance(event.get(name), str):
            return str(event[name])
    return ""


def _finish(event: JsonObject) -> str:
    for words, finish in _FAULT_FINISH.items():
        if _failed(event) and words.search(_text(event)):
            return finish
    reason = str(event.get("stop_reason") or "")
    return _FINISH.get(reason, reason)


def usage_of(event: JsonObject) -> Usage:
    """One call; its prompt tokens include what was read from the provider's cache and written to it."""
    counted: Any = event.get("usage")
    base = usage_from_openai_usage(counted)
    if not base.known:
        return base
    read, written = (
        max(0, int(counted.get(name) or 0)) for name in ("cache_read_input_tokens", "cache_creation_input_tokens")
    )
    return replace(base, prompt_tokens=base.prompt_tokens + read + written, cached_tokens=read)


def _model(event: JsonObject) -> str:
    """The model that answered, when the result names exactly one."""
    used = event.get("modelUsage")
    return str(next(iter(used))) if isinstance(used, Mapping) and len(used) == 1 else ""

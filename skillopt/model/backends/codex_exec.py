"""Codex's command line as a chat model, for the optimizer: one run of `codex exec` a call, without an agent's powers.

The prompt goes in on standard input, the answer comes back in a file that belongs to this attempt alone. The program
works in a new, empty folder, read-only, without a project's documents, and with its own tools switched off: what it
is asked to do is to answer. It keeps its sign-in and its own configuration (`CODEX_HOME`), so a model provider or an
`AGENTS.md` there apply; point CODEX_HOME to another folder to do without them. What it would start there is switched
off for the run: tool servers (MCP), hooks, plugins, the program to notify.

Flags, events and messages are those of `codex exec --help` and of its `--json` output (checked with 0.171). Features
that a version does not know are ignored by it. The limit on a reply's tokens is not passed on: there is no flag.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from skillopt.errors import AuthError, ModelError, ModelSetupError, RateLimitedUntilError
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
    tool_servers,
)
from skillopt.model.registry import setting_hint
from skillopt.model.transcript import parse_structured, render, reply_schema, wants_structure
from skillopt.model.values import CallContext, ModelCall, ModelReply
from skillopt.types import JsonObject, RoleConfig, Usage
from skillopt.utils.codex_home import as_flags, closing, codex_source
from skillopt.utils.process import ProcessResult, child_environment
from skillopt.utils.removal import scratch_folder

ENVIRONMENT = ("CODEX_HOME", "CODEX_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL")
"""What Codex is handed of this process's environment, besides what every program needs."""

FLAGS: Mapping[str, str] = {
    "events": "--json",
    "no session": "--ephemeral",
    "set": "-c",
    "sandbox": "--sandbox",
    "any folder": "--skip-git-repo-check",
    "folder": "--cd",
    "model": "--model",
    "answer": "--output-last-message",
    "profile": "--profile",
    "schema": "--output-schema",
    "image": "--image",
}
"""Every flag that is given to `codex exec`."""

FEATURES_OFF = (
    *("shell_tool", "unified_exec", "view_image", "image_generation", "multi_agent", "goals"),
    *("apps", "plugins", "hooks", "memories"),
)
"""What Codex can do beyond answering, and shall not."""

_CREDENTIALS = "Run `codex login`, or set CODEX_API_KEY."
_NO_EFFORT = ("", "none")
_USED_UP = re.compile(r"hit your usage limit|usage limit has been reached", re.IGNORECASE)
_NO_CREDIT = re.compile(r"quota exceeded|exceeded your current quota|insufficient_quota", re.IGNORECASE)
_NO_VARIABLE = re.compile(r"missing environment variable", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Places:
    """Where one run finds and leaves things: the folder that it works in, its answer, the schema, the images.

    `servers`: names of the person's tool servers, which are switched off.
    """

    directory: Path
    answer: Path
    schema: Path | None = None
    images: tuple[Path, ...] = ()
    servers: tuple[str, ...] = ()


def complete(call: ModelCall, role: RoleConfig, ctx: CallContext) -> ModelReply:
    """One run of `codex exec`. Raises the classes of `skillopt.errors.ModelError`.

    As a target Codex is an agent: it works in the call's workspace and answers no other call.
    """
    if role.role == "target":
        from skillopt.model.harness import codex

        return codex.complete(call, role, ctx)
    sent = render(call)
    env = child_environment(*ENVIRONMENT)
    where = cli_where(role, call.model or role.model, "the Codex command line", _CREDENTIALS, env)
    setting = setting_hint(role, "path")
    directory = _directory(role)
    source = codex_source(_program(role), env, str(role.settings.get("profile") or ""))
    servers = tool_servers(source, env=env, where=where, ctx=ctx, setting=setting)
    with scratch_folder("skillopt_codex_") as folder:
        work = folder / "work"
        work.mkdir()
        answer = folder / "last_message.txt"
        images = write_images(sent.images, folder)
        places = Places(directory or work, answer, _write_schema(call, folder), images, servers)
        result = run_cli(
            build_argv(call, role, places),
            stdin=sent.joined,
            folder=work,
            env=env,
            where=where,
            ctx=ctx,
            setting=setting,
        )
        said = answer.read_text(encoding="utf-8", errors="replace") if answer.is_file() else ""
    with counting(_usage(json_events(result.stdout)), ctx):
        return read_reply(call, result, said, where)


def build_argv(call: ModelCall, role: RoleConfig, places: Places) -> list[str]:
    """The command line for `call`; the final `-` says that the prompt comes on standard input."""
    settings = role.settings
    effort = str(call.effort or role.effort or settings.get("reasoning_effort") or "").strip()
    argv = [_program(role), "exec", FLAGS["events"], FLAGS["no session"]]
    argv += _set("approval_policy", "never")
    argv += [FLAGS["sandbox"], "read-only", FLAGS["any folder"], FLAGS["folder"], str(places.directory)]
    argv += _given("model", call.model or role.model)
    argv += _given("answer", places.answer)
    argv += _set("sandbox_workspace_write.network_access", bool(settings.get("network_access")))
    argv += _set("web_search", "live" if settings.get("web_search") else "disabled")
    argv += _set("project_doc_max_bytes", 0)
    for feature in FEATURES_OFF:
        argv += _set(f"features.{feature}", False)
    argv += as_flags(closing(places.servers, places.directory))
    argv += _given("profile", settings.get("profile"))
    argv += [] if effort.lower() in _NO_EFFORT else _set("model_reasoning_effort", effort)
    argv += _given("schema", places.schema)
    for image in places.images:
        argv += _given("image", image)
    return [*argv, "-"]


def read_reply(call: ModelCall, result: ProcessResult, answer: str, where: Where) -> ModelReply:
    """The reply in the last-message file (`answer`), else in the last message among the events.

    Raises the error that the events, the error output or the output tell when the run failed.
    """
    events = json_events(result.stdout)
    failure = _failure(events)
    if result.code or failure:
        raise _error(failure or result.stderr.strip() or result.stdout.strip() or f"exit code {result.code}", where)
    text = answer if answer.strip() else _last_message(events)
    notice = text if text or events else result.stdout or result.stderr
    if asks_to_sign_in(notice):
        raise not_signed_in(notice, where)
    usage = _usage(events)
    if not wants_structure(call) or not text.strip():
        return ModelReply(text, usage=usage)
    content, calls = parse_structured(text, call.tools or (), call.tool_choice)
    return ModelReply(content, "tool_calls" if calls else "stop", usage, tool_calls=calls)


def _program(role: RoleConfig) -> str:
    return str(role.settings.get("path") or "codex")


def _set(key: str, value: str | int) -> list[str]:
    """A setting of Codex's own configuration for this run; its value is TOML, which JSON's scalars are."""
    return [FLAGS["set"], f"{key}={json.dumps(value)}"]


def _given(flag: str, value: object) -> list[str]:
    """A flag with its value, or nothing where there is no value."""
    return [FLAGS[flag], str(value)] if value else []


def _directory(role: RoleConfig) -> Path | None:
    """The folder that somebody chose for the program to read in, if anybody did."""
    chosen = str(role.settings.get("working_directory") or "").strip()
    if not chosen:
        return None
    folder = Path(chosen).expanduser()
    if not folder.is_dir():
        raise ModelSetupError(f"{setting_hint(role, 'working_directory')} names {chosen!r}, which is not a folder.")
    return folder.resolve()


def _write_schema(call: ModelCall, folder: Path) -> Path | None:
    """The file with the schema of a structured reply; None for a reply in words."""
    if not wants_structure(call):
        return None
    path = folder / "schema.json"
    path.write_text(json.dumps(reply_schema(call.tools or (), call.tool_choice), ensure_ascii=False), encoding="utf-8")
    return path


def _last_message(events: Sequence[JsonObject]) -> str:
    items = (event.get("item") for event in reversed(events) if event.get("type") == "item.completed")
    texts = (item.get("text") for item in items if isinstance(item, dict) and item.get("type") == "agent_message")
    return next((text for text in texts if isinstance(text, str)), "")


def _failure(events: Sequence[JsonObject]) -> str:
    """What the last failure says; nothing when the turn was completed. An error on the way may have been overcome."""
    for event in reversed(events):
        kind = event.get("type")
        if kind == "turn.completed":
            return ""
        if kind in ("turn.failed", "error"):
            error = event.get("error")
            inner = error.get("message") if isinstance(error, dict) else error
            return str(inner or event.get("message") or kind)
    return ""


def _error(words: str, where: Where) -> ModelError:
    detail = f"{where.short} failed: {shown_words(words, where)}"
    if _USED_UP.search(words):
        return RateLimitedUntilError(detail)
    if _NO_CREDIT.search(words) or _NO_VARIABLE.search(words):
        return AuthError(f"{detail} {where.credentials}")
    return error_from_words(words, where)


def _usage(events: Sequence[JsonObject]) -> Usage:
    """The tokens of the completed turn; unknown when it tells none."""
    for event in reversed(events):
        data = event.get("usage") if event.get("type") == "turn.completed" else None
        if isinstance(data, dict):
            counts = {name: value for name, value in data.items() if isinstance(value, int) and value >= 0}
            return Usage(
                calls=1,
                prompt_tokens=counts.get("input_tokens", 0),
                completion_tokens=counts.get("output_tokens", 0),
                cached_tokens=counts.get("cached_input_tokens", 0),
                reasoning_tokens=counts.get("reasoning_output_tokens", 0),
                known="input_tokens" in counts and "output_tokens" in counts,
            )
    return Usage(calls=1, known=False)

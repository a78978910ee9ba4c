"""The program that runs an agent through its SDK: one request as JSON on its input, the agent's messages as it speaks.

Each line of its output is a JSON object: a message or an event of the agent, in the form in which its command line
prints it, and at last `{"type": "skillopt.end", "end": "done" | "failed" | "unfit", "message": ...}`. `unfit`: the
package is not there, or cannot be used as asked. Line by line, so that what came before a deadline is not lost.

It runs as a file, isolated, and uses the standard library and the SDK only.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import importlib
import json
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from typing import IO, Any

END = "skillopt.end"
LONGEST_LINE = 8 * 1024 * 1024

Say = Callable[[dict[str, Any]], None]

_CLAUDE_TYPES = {
    "AssistantMessage": "assistant",
    "UserMessage": "user",
    "SystemMessage": "system",
    "ResultMessage": "result",
}

_CODEX_MODULES = ("thread", "types", "errors")


class UnfitError(Exception):
    """The SDK that is installed cannot do what is asked of it."""


async def run_claude(request: dict[str, Any], say: Say) -> None:
    """One query of `claude_agent_sdk`. Of `wishes`, those are kept that this version knows."""
    sdk: Any = _package("claude_agent_sdk")
    options, wishes = request["options"], request["wishes"]
    known = {field.name for field in dataclasses.fields(sdk.ClaudeAgentOptions)}
    if lacking := sorted(set(options) - known):
        raise UnfitError(f"This version of claude_agent_sdk has no option {', '.join(lacking)}.")
    chosen = _made(sdk.ClaudeAgentOptions, **options, **{name: wishes[name] for name in known & set(wishes)})
    async for message in sdk.query(prompt=request["prompt"], options=chosen):
        say(claude_event(message))


def claude_event(message: Any) -> dict[str, Any]:
    """A message of the SDK as Claude's command line prints it."""
    fields = dataclasses.asdict(message)
    name = type(message).__name__
    if "model_usage" in fields:
        fields["modelUsage"] = fields.pop("model_usage")
    return {"type": _CLAUDE_TYPES.get(name, name), **fields}


async def run_codex(request: dict[str, Any], say: Say) -> None:
    """One turn of a new thread of `openai_codex_sdk`."""
    sdk: Any = _package("openai_codex_sdk")
    _read_long_lines()
    _pass_unknown_events(sdk)
    codex = _made(sdk.Codex, {"env": dict(os.environ), "codexPathOverride": request["launcher"]})
    thread = _made(codex.start_thread, request["thread"])
    turn = await thread.run_streamed(request["prompt"], {"output_schema": request["schema"]})
    async for event in turn.events:
        say(event.model_dump(mode="json"))


RUNS: dict[str, Callable[[dict[str, Any], Say], Awaitable[None]]] = {"claude": run_claude, "codex": run_codex}


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UnfitError(f"The package {name} cannot be imported ({error}).") from error


def _made(make: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """What an SDK makes of options; those that it refuses are a matter of settings."""
    try:
        return make(*args, **options)
    except (TypeError, ValueError) as error:
        raise UnfitError(f"The SDK does not take its options: {' '.join(str(error).split())}.") from error


def _read_long_lines() -> None:
    """Let a program that is started from here print lines of up to `LONGEST_LINE` bytes; by itself it is 64 KiB."""
    asyncio.create_subprocess_exec = functools.partial(asyncio.create_subprocess_exec, limit=LONGEST_LINE)


def _pass_unknown_events(sdk: Any) -> None:
    """Let an event whose form the SDK does not know pass by, in place of ending the run that it is part of."""
    try:
        module, types, errors = (importlib.import_module(f"{sdk.__name__}.{name}") for name in _CODEX_MODULES)
        parse, unknown, refused = module.parse_thread_event_line, types.UnknownThreadEvent, errors.EventParseError
    except (ImportError, AttributeError):  # a version that is built in another way
        return

    def tolerant(line: str) -> Any:
        try:
            return parse(line)
        except (ValueError, refused):
            data = _object(line)
            return unknown.model_validate(data if "type" in data else {"type": "unknown", "line": line})

    module.__dict__["parse_thread_event_line"] = tolerant


def _object(line: str) -> dict[str, Any]:
    """The JSON object in a line; empty when there is none."""
    with contextlib.suppress(ValueError):
        data = json.loads(line)
        return data if isinstance(data, dict) else {}
    return {}


def _own_output() -> IO[bytes]:
    """The output, for our lines alone: what a package prints goes where errors go."""
    sys.stdout.flush()
    own = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return own


def _find_packages(site: str, folders: list[str]) -> None:
    """Look for the SDK in `site`, for all else first where any interpreter does and last in `folders`."""
    if site and site not in sys.path:
        sys.path.insert(0, site)
    sys.path += [folder for folder in folders if folder not in sys.path]


def main() -> int:
    """Carry out the request on the input; the exit code."""
    out = _own_output()
    request = json.loads(sys.stdin.buffer.read().decode("utf-8"))
    _find_packages(request["site"], request["path"])
    tempfile.tempdir = request["scratch"]  # goes with the attempt, however that ends

    def say(event: dict[str, Any]) -> None:
        out.write(json.dumps(event, default=str).encode("ascii") + b"\n")  # no character that some reader splits at
        out.flush()

    end, message = "done", ""
    try:
        asyncio.run(_run(request, say))
    except UnfitError as error:
        end, message = "unfit", str(error)
    except Exception as error:  # noqa: BLE001 - told to whoever asked, with its name
        end, message = "failed", f"{type(error).__name__}: {error}"
    say({"type": END, "end": end, "message": message})
    return 0 if end == "done" else 1


async def _run(request: dict[str, Any], say: Say) -> None:
    await RUNS[request["sdk"]](request, say)


if __name__ == "__main__":
    sys.exit(main())

"""The mode in which an agent runs through its vendor's Python SDK: what is asked of it, how its answer is read.

The SDK works in an interpreter of its own (`sdk_child`), which is started as a command line is: with the same
environment, the same deadline and the same end of the whole family. None is imported into this process. The mode is
chosen once, by the setting `use_sdk`; an attempt never falls back from one to the other.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from skillopt.config.agent_rows import check_sdk
from skillopt.config.providers import get_provider
from skillopt.errors import ConfigError, ModelSetupError
from skillopt.model.cli_chat import json_events, shown_words
from skillopt.model.harness.agent import Command, Job
from skillopt.model.harness.sdk_child import END
from skillopt.model.harness.workspace import Workspace
from skillopt.model.registry import setting_default, setting_hint
from skillopt.types import JsonObject, RoleConfig
from skillopt.utils.process import ProcessResult

__all__ = [
    "ANSWER",
    "END",
    "answer_in",
    "bundled",
    "check",
    "check_posix",
    "command",
    "final_answer",
    "program",
    "told",
    "write_launcher",
]

ANSWER: JsonObject = {
    "type": "object",
    "properties": {
        "final_response": {
            "type": "string",
            "description": "The whole final reply, in exactly the form that the task asks for.",
        },
        "final_answer": {"type": "string", "description": "The answer alone, without tags and without explanation."},
    },
    "required": ["final_response", "final_answer"],
    "additionalProperties": False,
}
"""The JSON schema of a structured answer."""

_CHILD = Path(__file__).with_name("sdk_child.py")
_STRANGE = 64  # what a launcher ends with when it is not started as it knows it


def check(role: RoleConfig, workspace: Workspace) -> None:  # noqa: ARG001 - the shape of `Agent.check`
    """Raise MissingExtraError, with the command that installs it, when the package of the SDK is not there."""
    check_sdk(get_provider(role.backend), role.settings, setting_hint(role, "use_sdk"))


def check_posix(role: RoleConfig, workspace: Workspace) -> None:
    """As `check`, for an SDK that is started through a launcher. Raises ConfigError where there is none."""
    if os.name == "nt":
        raise ConfigError(f"{setting_hint(role, 'use_sdk')} is sdk, which does not work on Windows; set it to cli.")
    check(role, workspace)


def program(job: Job, name: str) -> str:
    """The command line that the SDK shall run: the one that is set, else the one that comes with the SDK.

    Raises ModelSetupError when there is none.
    """
    asked = job.setting("path") or name
    found = shutil.which(str(Path(asked).expanduser()), path=job.env.get("PATH"))
    if not found and asked == setting_default(job.role, "path"):
        found = bundled(job.role.backend, name)
    if found:
        return str(Path(found).absolute())
    raise ModelSetupError(
        f"{job.where.short} could not be executed: there is no {shown_words(asked, job.where)}. Install it, or set "
        f"{setting_hint(job.role, 'path')} to the path of the program."
    )


def bundled(backend: str, name: str) -> str | None:
    """The path of the command line that comes with the SDK of a backend, if one does."""
    folder = _package_folder(backend)
    path = folder / "_bundled" / (f"{name}.exe" if os.name == "nt" else name) if folder else None
    return str(path) if path and path.is_file() else None


def command(job: Job, request: Mapping[str, Any]) -> Command:
    """The child that carries out `request`, with the package that this process would import.

    Where else this process looks for packages, the child does so last: what lies beside somebody's script shall not
    stand in for a library.
    """
    folder = _package_folder(job.role.backend)
    whole = {
        **request,
        "site": str(folder.parent) if folder else "",
        "path": [entry for entry in sys.path if Path(entry).is_absolute()],
        "scratch": str(job.answer_file.parent),
    }
    return Command((sys.executable, "-I", str(_CHILD)), json.dumps(whole, ensure_ascii=False))


def _package_folder(backend: str) -> Path | None:
    """The folder of the SDK's package, which is not imported."""
    sdk = get_provider(backend).sdk
    with contextlib.suppress(ValueError):
        spec = importlib.util.find_spec(sdk.package) if sdk else None
        return next((Path(place) for place in (spec.submodule_search_locations or ())), None) if spec else None
    return None


def write_launcher(path: Path, program: str, word: str, flags: Sequence[str]) -> None:
    """A shell script that runs `program` with `flags` put in after `word`, with which it must be started."""
    path.write_text(
        "#!/bin/sh\n"
        f'if [ "$1" != {shlex.quote(word)} ]; then\n'
        f'  echo "this version of the SDK starts its program in another way than with {word}" >&2\n'
        f"  exit {_STRANGE}\n"
        "fi\n"
        "shift\n"
        f'exec {shlex.join([program, word, *flags])} "$@"\n',
        encoding="utf-8",
    )
    path.chmod(0o700)


def told(result: ProcessResult, job: Job) -> ProcessResult:
    """What the agent printed, without the child's last line, as if its command line had been started.

    Raises ModelSetupError when the SDK cannot be used as it is.
    """
    lines = result.stdout.splitlines(keepends=True)
    last = next((event for event in reversed(json_events("".join(lines[-1:]))) if event.get("type") == END), None)
    if last is None:
        return replace(result, code=result.code or 1, stderr=result.stderr.strip() or "the SDK ended without a word")
    how, words = str(last.get("end")), str(last.get("message") or "")
    if how == "unfit":
        sdk = get_provider(job.role.backend).sdk
        raise ModelSetupError(
            f"{job.where.short} cannot be used: {shown_words(words, job.where)} Check the settings of "
            f"{job.role.backend}, and update the package {sdk.package if sdk else ''}; or set "
            f"{setting_hint(job.role, 'use_sdk')} to cli."
        )
    said = "\n".join(text for text in (words, result.stderr.strip()) if text)
    return replace(result, code=0 if how == "done" else result.code or 1, stdout="".join(lines[:-1]), stderr=said)


def answer_in(text: str) -> str:
    """The answer in a structured reply; the text itself when it is none."""
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return (final_answer(data) if isinstance(data, Mapping) else "") or text


def final_answer(data: Mapping[str, Any]) -> str:
    """`final_response`, else `final_answer` in tags; blank when it has neither."""
    response, answer = (data.get(name) for name in ("final_response", "final_answer"))
    if isinstance(response, str) and response.strip():
        return response
    if not isinstance(answer, str) or not answer.strip():
        return ""
    return answer if "<answer>" in answer.lower() else f"<answer>{answer.strip()}</answer>"

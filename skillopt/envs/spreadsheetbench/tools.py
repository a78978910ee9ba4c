"""The two tools of the step-by-step mode. Both work in the folder of the attempt and nowhere else."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skillopt.envs.spreadsheetbench.execution import OUTPUT, SCRIPT, Workshop, is_plain_file, without_place
from skillopt.envs.spreadsheetbench.workbooks import inspection
from skillopt.errors import DataError
from skillopt.types import JsonObject
from skillopt.utils.files import atomic_write_text

COMMAND_SECONDS = 60.0
_SHOWN, _CUT = 4000, 3800
_PYTHON = frozenset({"python", "python3", "python.exe", "python3.exe"})
_QUOTED = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.""", re.DOTALL)
_SHELL = re.compile(r"[;&|<>`\n]|\$\(")


def _tool(name: str, description: str, **fields: str) -> JsonObject:
    properties = {field: {"type": "string", "description": words} for field, words in fields.items()}
    parameters = {"type": "object", "properties": properties, "required": list(fields), "additionalProperties": False}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


TOOLS = (
    _tool("bash", "Run one Python command in your folder; no shell.", cmd="Such as: python solution.py"),
    _tool(
        "write_file",
        "Write a text file in your folder, in place of one of that name.",
        path="Name of the file, such as solution.py",
        content="All of its text",
    ),
)


class Tools:
    """The tools over one attempt's folder. Whatever goes wrong is answered in words."""

    def __init__(self, shop: Workshop, folder: Path) -> None:
        self._shop = shop
        self._folder = folder

    def use(self, name: str, arguments: str) -> tuple[str, str]:
        """The call in words, and what it gave. `arguments` is JSON text."""
        try:
            given = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            return f"{name} {arguments}", "error: the arguments are not JSON; call the tool again."
        wanted = {"bash": ("cmd",), "write_file": ("path", "content")}.get(name)
        if wanted is None:
            return f"{name} {arguments}", f"error: there is no tool {name!r}; use bash or write_file."
        if not isinstance(given, Mapping) or not all(isinstance(given.get(field), str) for field in wanted):
            return f"{name} {arguments}", f"error: {name} needs the text {' and '.join(wanted)}."
        return self._call(name, given)

    def bash(self, cmd: str) -> str:
        """Run one Python command; its output, cut to 3,800 characters when it is longer than 4,000."""
        argv, refusal = command_of(cmd)
        if refusal:
            return refusal
        ended = self._shop.command(argv, self._folder, COMMAND_SECONDS)
        text = without_place(ended.stdout + ended.stderr, self._folder)
        if len(text) > _SHOWN:
            text = f"{text[:_CUT]}\n… (output cut; {len(text) - _CUT} more characters)"
        if ended.timed_out:
            text += f"\nerror: the command did not end within {COMMAND_SECONDS:g} s."
        elif ended.code != 0:
            text += f"\n(exit code {ended.code})"
        return (text.strip() or "(no output)") + (self._look() if SCRIPT in cmd else "")

    def write_file(self, path: str, content: str) -> str:
        """Write a text file inside the folder."""
        try:
            target = (self._folder / path).resolve()
            if not target.is_relative_to(self._folder) or target == self._folder:
                return f"error: {path!r} lies outside your folder; give a name such as {SCRIPT}."
            target.parent.mkdir(parents=True, exist_ok=True)
            atomic_write_text(target, content.encode("utf-8", "replace").decode("utf-8"))
        except (OSError, ValueError, RuntimeError) as error:
            return f"error: {path!r} cannot be written ({getattr(error, 'strerror', None) or error})."
        return f"wrote {len(content)} characters to {path}"

    def _call(self, name: str, given: Mapping[str, Any]) -> tuple[str, str]:
        if name == "bash":
            return f"bash {given['cmd']}", self.bash(given["cmd"])
        return f"write_file {given['path']}\n{given['content']}", self.write_file(given["path"], given["content"])

    def _look(self) -> str:
        """What the output holds, after a run of the solution."""
        output = self._folder / OUTPUT
        if not is_plain_file(output):
            return f"\n\nThere is no {OUTPUT} yet."
        try:
            return f"\n\n{inspection(output)}"
        except DataError as error:
            return f"\n\n{error}"


def command_of(cmd: str) -> tuple[list[str], str]:
    """The program and arguments of a command, with this interpreter in front; or why it is refused, in words."""
    if _SHELL.search(_QUOTED.sub("", cmd.strip())):
        return [], "error: refused; this is no shell, so give one command without ; & | < > and the like."
    try:
        argv = shlex.split(cmd)
    except ValueError as error:
        return [], f"error: the command cannot be read ({error})."
    if not argv or re.split(r"[/\\]", argv[0])[-1].lower() not in _PYTHON:
        return [], "error: refused; only python can be run, such as: python solution.py"
    return [sys.executable, "-B", *argv[1:]], ""

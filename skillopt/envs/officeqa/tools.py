"""The tools that a target searches documents with: glob, read and grep.

What a model does wrong in a call is told to it in the tool's answer. A document that cannot be read although it is
there is an error of the machine, and is raised.
"""

from __future__ import annotations

import fnmatch
import json
import posixpath
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from skillopt.envs.officeqa.documents import Document, Library
from skillopt.types import JsonObject

GLOB_MATCHES = 50
READ_LINES = 80
READ_CHARS = 4000
GREP_MATCHES = 20
CALLS_A_REPLY = 16
ITEM_CHARS = 300_000
"""What all answers of the tools may hold together for one item; after that they only ask for the answer."""

NO_MATCHES = "[no matches]"
_LINE_CHARS = 500
_PATTERN_CHARS = 500
_SHOWN_ARGUMENTS = 300


def _tool(name: str, does: str, required: Sequence[str], **properties: tuple[str, str]) -> JsonObject:
    fields = {key: {"type": kind, "description": words} for key, (kind, words) in properties.items()}
    parameters = {"type": "object", "properties": fields, "required": list(required)}
    return {"type": "function", "function": {"name": name, "description": does, "parameters": parameters}}


_PATH = ("string", "Name of a document, as glob lists it.")
TOOLS: tuple[JsonObject, ...] = (
    _tool(
        "glob",
        f"List documents whose name fits a pattern with * and ?. At most {GLOB_MATCHES} names.",
        ["pattern"],
        pattern=("string", "Pattern for the name, with or without folders, such as *1941*.txt."),
    ),
    _tool(
        "read",
        f"Read lines of a document, at most {READ_CHARS} characters at once.",
        ["path"],
        path=_PATH,
        start=("integer", "First line, counted from 1 (default 1)."),
        limit=("integer", f"Number of lines (default {READ_LINES})."),
    ),
    _tool(
        "grep",
        f"Find the lines of one document that hold a text, as `number: line`. Plain text, upper and lower case alike, "
        f"no regular expressions; at most {GREP_MATCHES} lines.",
        ["pattern", "path"],
        pattern=("string", "Text to look for."),
        path=_PATH,
    ),
)


class ToolError(Exception):
    """What a model did wrong in a call, in words for it."""


class Toolbox:
    """The tools of one item, over the documents that it may see."""

    def __init__(self, library: Library, allowed: Sequence[Document]) -> None:
        self._library = library
        self._allowed = tuple(allowed)
        self._names: dict[str, Document] = {}
        self._bases: dict[str, list[Document]] = {}
        for doc in reversed(self._allowed):
            self._names.update(dict.fromkeys((doc.name, doc.relative, f"root_{doc.root}/{doc.relative}"), doc))
            self._names[doc.path.as_posix()] = doc
        for doc in self._allowed:
            self._bases.setdefault(doc.base, []).append(doc)
        self._left = ITEM_CHARS
        self._tools: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
            "glob": self._glob,
            "read": self._read,
            "grep": self._grep,
        }

    def run(self, name: str, arguments: str) -> str:
        """The answer to one call; `arguments` is JSON text. What is wrong with the call is said in the answer."""
        if self._left <= 0:
            return "[error] enough has been read for this question; answer now from what you have seen"
        try:
            answer = self._tool(name)(_arguments(name, arguments))
        except ToolError as error:
            answer = f"[error] {error}"
        self._left -= len(answer)
        return answer

    def _tool(self, name: str) -> Callable[[Mapping[str, Any]], str]:
        if name not in self._tools:
            raise ToolError(f"there is no tool {name[:60]!r}; the tools are {', '.join(self._tools)}")
        return self._tools[name]

    def _glob(self, given: Mapping[str, Any]) -> str:
        pattern = _text(given, "pattern").replace("\\", "/").casefold()
        found = [doc.name for doc in self._allowed if _fits(doc, pattern)]
        more = [f"[… {len(found) - GLOB_MATCHES} more; use a narrower pattern]"] if len(found) > GLOB_MATCHES else []
        return "\n".join([*found[:GLOB_MATCHES], *more]) or NO_MATCHES

    def _read(self, given: Mapping[str, Any]) -> str:
        document = self._document(given)
        start, limit = _whole(given, "start", 1), _whole(given, "limit", READ_LINES)
        lines = self._library.lines(document)
        if start > len(lines):
            raise ToolError(f"{document.name} has {len(lines)} lines; start at {start} is behind its end")
        wanted = lines[start - 1 : start - 1 + limit]
        text = "\n".join(wanted)
        if len(text) > READ_CHARS:
            whole = text[:READ_CHARS].count("\n")
            rest = f"go on with start={start + whole}" if whole else f"line {start} is longer than that"
            return f"{text[:READ_CHARS]}\n[… cut at {READ_CHARS} characters; {rest}]"
        return text

    def _grep(self, given: Mapping[str, Any]) -> str:
        wanted = _text(given, "pattern").casefold()
        lines = self._library.lines(self._document(given))
        found = [
            f"{number}: {_around(line, wanted)}" for number, line in enumerate(lines, 1) if wanted in line.casefold()
        ]
        more = [f"[… {len(found) - GREP_MATCHES} more lines; use a longer text]"] if len(found) > GREP_MATCHES else []
        return "\n".join([*found[:GREP_MATCHES], *more]) or NO_MATCHES

    def _document(self, given: Mapping[str, Any]) -> Document:
        asked = posixpath.normpath(_text(given, "path").strip().replace("\\", "/"))
        if asked in self._names:
            return self._names[asked]
        same = self._bases.get(asked, [])
        if len(same) == 1:
            return same[0]
        if same:
            raise ToolError(f"several documents are called that: {', '.join(doc.name for doc in same[:5])}")
        raise ToolError(f"there is no document {asked[:200]!r} for this question; glob with pattern * lists them")


def command(name: str, arguments: str) -> str:
    """One call in a line, as it is kept in a trajectory."""
    shown = arguments if len(arguments) <= _SHOWN_ARGUMENTS else f"{arguments[:_SHOWN_ARGUMENTS]}…"
    return f"{name} {' '.join(shown.split())}"


def _fits(document: Document, pattern: str) -> bool:
    names = (document.relative, document.base, document.name, document.path.as_posix())
    return any(fnmatch.fnmatchcase(name.casefold(), pattern) for name in names)


def _around(line: str, wanted: str) -> str:
    """The line, or the part of a very long one where the text stands."""
    if len(line) <= _LINE_CHARS:
        return line
    start = max(0, line.casefold().find(wanted) - _LINE_CHARS // 2)
    return f"{'…' if start else ''}{line[start : start + _LINE_CHARS]}…"


def _arguments(name: str, text: str) -> Mapping[str, Any]:
    try:
        given = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        raise ToolError(f"the arguments of {name} are not valid JSON ({error})") from None
    if not isinstance(given, dict):
        raise ToolError(f"the arguments of {name} must be one JSON object")
    return given


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not value.strip():
        raise ToolError(f"{name} is missing; it must be a text that is not blank")
    if len(value) > _PATTERN_CHARS:
        raise ToolError(f"{name} has {len(value)} characters; at most {_PATTERN_CHARS} are allowed")
    return value


def _whole(given: Mapping[str, Any], name: str, default: int) -> int:
    value = given.get(name)
    if value is None:
        return default
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 10:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ToolError(f"{name} is {str(value)[:60]!r}; it must be a whole number from 1")
    return value

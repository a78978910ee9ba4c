"""The program inside a fake command line: writes down how it was called, then acts out the next turn of its script.

It runs as a program of its own, from a copy beside its script, and uses the standard library only.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

_LONG = 600
_MOST_FILES = 50
_LARGEST_FILE = 1_000_000


def act(folder: Path) -> int:
    """Play one call; the exit code of the program."""
    stdin = _conversation() if "--input-format" in sys.argv and "stream-json" in sys.argv else _input()
    script = json.loads((folder / "script.json").read_text("utf-8"))
    seen = _seen(folder)
    turn = _turn(script, f"{' '.join(sys.argv[1:])}\n{stdin}", "\n".join(seen.values()), folder)
    kind = "aside" if turn["aside"] else "call"
    number = _next_number(folder, kind)
    pids = [os.getpid(), *(_daemon() for _ in range(turn["daemons"]))]
    _record(folder / f"{number:05d}.{kind}", number, stdin, seen, pids)
    _write_named_files(turn["files"])
    for name, text in turn["leaves"].items():
        Path(name).write_text(text, "utf-8")
    _say(turn["stderr"], sys.stderr.buffer)
    _say(turn["stdout"], sys.stdout.buffer)
    _flood(turn["flood"])
    if turn["hang"]:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(_LONG)
    return int(turn["code"])


def _input() -> str:
    return "" if sys.stdin is None else sys.stdin.buffer.read().decode("utf-8", "replace")


def _conversation() -> str:
    """What an SDK says up to its first message from a user: it waits for answers, and closes the input only later."""
    heard = []
    for line in sys.stdin.buffer:
        heard.append(line.decode("utf-8", "replace"))
        said = json.loads(line)
        if said.get("type") == "control_request":
            done = {"subtype": "success", "request_id": said["request_id"], "response": {}}
            _say(json.dumps({"type": "control_response", "response": done}) + "\n", sys.stdout.buffer)
        if said.get("type") == "user":
            break
    return "".join(heard)


def _next_number(folder: Path, kind: str) -> int:
    """1 for the first call of its kind; an empty file is the mark of each number that is taken."""
    number = 1
    while True:
        try:
            os.close(os.open(folder / f"{number:05d}.taken-{kind}", os.O_CREAT | os.O_EXCL))
            return number
        except FileExistsError:
            number += 1


def _turn(script: list[dict[str, Any]], heard: str, seen: str, folder: Path) -> dict[str, Any]:
    """The first turn whose words were heard and seen, else the next one of those without; the last of them repeats."""
    for turn in script:
        asked = turn["when"] or turn["sees"]
        if asked and turn["when"] in heard and all(words in seen for words in turn["sees"]):
            return turn
    plain = [turn for turn in script if not turn["when"] and not turn["sees"]]
    if not plain:
        raise SystemExit(f"{folder}: the script has no turn for this call: {heard[:500]}")
    place = 0
    while place < len(plain) - 1:
        try:
            os.close(os.open(folder / f"{place:05d}.played", os.O_CREAT | os.O_EXCL))
            break
        except FileExistsError:
            place += 1
    return plain[place]


def _seen(folder: Path) -> dict[str, str]:
    """Texts of the files in the working folder, by relative path."""
    here = Path.cwd()
    found = () if here in folder.parents else sorted(itertools.islice(here.rglob("*"), _MOST_FILES))
    return {
        path.relative_to(here).as_posix(): path.read_bytes().decode("utf-8", "replace")
        for path in found
        if path.is_file() and path.stat().st_size <= _LARGEST_FILE
    }


def _record(path: Path, number: int, stdin: str, files: dict[str, str], pids: list[int]) -> None:
    call = {
        "number": number,
        "argv": sys.argv[1:],
        "stdin": stdin,
        "cwd": str(Path.cwd()),
        "environment": dict(os.environ),
        "files": files,
        "pids": pids,
    }
    partial = path.with_suffix(f"{path.suffix}-part")
    partial.write_text(json.dumps(call), "utf-8")
    partial.replace(path)


def _write_named_files(files: dict[str, str]) -> None:
    """Write a text into the file that the argument after a flag names."""
    for flag, text in files.items():
        if flag in sys.argv[:-1]:
            Path(sys.argv[sys.argv.index(flag) + 1]).write_text(text, "utf-8")


def _daemon() -> int:
    """Start a process that leaves the group, ignores TERM and holds the pipes; its id."""
    code = "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); "
    code += f"os.dup2(2, 1); time.sleep({_LONG})"
    child = subprocess.Popen([sys.executable, "-IS", "-c", code], stdout=subprocess.PIPE, start_new_session=True)
    assert child.stdout is not None
    child.stdout.readline()
    return child.pid


def _say(text: str, stream: Any) -> None:
    stream.write(text.encode("utf-8", "surrogateescape"))
    stream.flush()


def _flood(size: int) -> None:
    line = b"x" * 1023 + b"\n"
    for _ in range(size // len(line)):
        sys.stdout.buffer.write(line)


if __name__ == "__main__":
    sys.exit(act(Path(__file__).resolve().with_suffix("")))

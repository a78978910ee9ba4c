"""Kills `run` or `adopt` at given moments, runs the same command again, and tells what came of it.

`killing.py BASE run URL SHARE...` or `killing.py BASE adopt - SHARE...`: one machine for each share (0..1) of the file
operations of the whole command. The model's name tells the machines apart at the server.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sleep.night_world import Machine, persona, write_tasks
from sleep.staging.killing import run as killed_run

from skillopt_sleep import cli_adopt, cli_run
from skillopt_sleep.backends import openai_api
from skillopt_sleep.cli import main as command_line

LOADED = (cli_adopt, cli_run, openai_api)  # once, before any child: what is killed is the command, not its start

_TIMES = ("began", "started_at", "ended_at", "created", "ts", "staging", "last_began", "harvested_at", "last_harvest")


def command(machine: Machine, *words: str) -> Callable[[], object]:
    def act() -> None:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as err:
            code = command_line([words[0], "--project", str(machine.project), *words[1:]])
        if code:
            raise RuntimeError(f"exit code {code}: {err.getvalue()}")

    return act


def prepare(folder: Path, kind: str, url: str, name: str) -> tuple[Machine, tuple[str, ...]]:
    folder.mkdir(parents=True)
    machine = Machine(folder, sessions_=8 if kind == "run" else 0)
    os.environ.update(machine.environment)
    if kind == "run":
        machine.configure(backend="azure_openai", model=name, azure_endpoint=url, gate_min_val=1, val_fraction=0.5)
        return machine, ("run",)
    machine.configure(backend="mock")
    tasks = write_tasks(machine.base / "tasks.json", persona())
    command(machine, "run", "--tasks-file", str(tasks))()
    return machine, ("adopt",)


def summary(machine: Machine, before: dict[str, Any]) -> dict[str, Any]:
    nights = []
    for folder in machine.nights():
        report = json.loads((folder / "report.json").read_text())
        names = sorted(path.name for path in folder.iterdir() if path.suffix == ".md" and path.name != "report.md")
        texts = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}
        kept = {key: value for key, value in report.items() if key not in ("usage", "tokens_used", "notes", *_TIMES)}
        nights.append({"report": kept, "proposed": texts})
    state = machine.state()
    rows = [{key: value for key, value in row.items() if key not in _TIMES} for row in state["history"]]
    project = state["projects"].get(str(machine.project), {})
    text = json.dumps(
        {
            "nights": nights,
            "night": state["night"],
            "history": rows,
            "splits": project.get("splits"),
            "archive": [row["id"] for row in project.get("archive", [])],
        },
        sort_keys=True,
    ).replace(str(machine.base), "BASE")
    left = sorted(path.name for path in machine.state_dir.glob("nights/*/*"))
    return {"result": text, "left": left, "live_unchanged": machine.live() == before}


def one(folder: Path, kind: str, url: str, name: str, at: int) -> dict[str, Any]:
    shutil.rmtree(folder)  # always the same place: ids and splits of tasks depend on it
    machine, words = prepare(folder, kind, url, name)
    before = machine.live()
    killed, _ = killed_run(command(machine, *words), at)
    row: dict[str, Any] = {"at": at, "killed": killed, "name": name}
    if kind == "run":
        open_night = bool(list(machine.state_dir.glob("nights/*/night.json")))
        if killed and (open_night or not machine.nights()):
            killed_run(command(machine, *words), 0)
        return {**row, **summary(machine, before)}
    machine.json("status")
    middle = machine.live()
    if middle == before:
        killed_run(command(machine, *words), 0)
    row["adopted"] = machine.live() != before and machine.json("status")["pending"] == []
    killed_run(command(machine, "undo"), 0)
    return {**row, "live_unchanged": machine.live() == before}


def main() -> None:
    base, kind, url, *shares = sys.argv[1:]
    os.fsync = lambda _: None  # the machine does not lose power here
    folder = Path(base) / "machine"
    machine, words = prepare(folder, kind, url, "whole")
    before = machine.live()
    _, total = killed_run(command(machine, *words), 0)
    whole = summary(machine, before)
    rows = [one(folder, kind, url, f"w{number}", 1 + int(float(share) * total)) for number, share in enumerate(shares)]
    json.dump({"total": total, "whole": whole, "rows": rows}, sys.stdout)


if __name__ == "__main__":
    main()

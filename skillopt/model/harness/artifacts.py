"""Files with the traces of an agent's attempts, for environments that keep a folder for each item."""

from __future__ import annotations

from pathlib import Path

from skillopt.model.harness.agent import AgentRun
from skillopt.utils.files import atomic_write_text

TURN_BREAK = "===== TURN BREAK ====="
MOST_CHARS = 1_000_000
_NO_FILES = frozenset({"copilot"})
_LEFT_OUT = "[further traces left out: the file is full]\n"


def keep(folder: Path, slug: str, run: AgentRun, attempt: int, way: str = "CLI") -> None:
    """Append the trace of a run to `<slug>_raw.txt` and write `<slug>_trace_summary.txt`.

    `way`: how it ran, CLI or SDK. A first attempt after others is another turn. A full file gets no more traces.
    Nothing is written for an agent whose traces are not kept as files.
    """
    if slug in _NO_FILES:
        return
    path = folder / f"{slug}_raw.txt"
    before = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    mark = f"{TURN_BREAK}\n" if before and attempt == 1 else ""
    text = f"{mark}===== {slug.upper()} {way} ATTEMPT {attempt} =====\n{run.trace}\n"
    if len(before) + len(text) > MOST_CHARS or before.endswith(_LEFT_OUT):
        text = "" if before.endswith(_LEFT_OUT) else _LEFT_OUT
    atomic_write_text(path, before + text)
    if run.summary:
        atomic_write_text(folder / f"{slug}_trace_summary.txt", run.summary + "\n")

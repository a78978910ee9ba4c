"""Running what the target wrote: each attempt in a fresh folder, with a copy of the input, inside the sandbox."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from skillopt.envs.spreadsheetbench.cases import Case, Task
from skillopt.errors import DeadlineError
from skillopt.utils.cancel import CancelToken
from skillopt.utils.process import ProcessResult
from skillopt.utils.removal import remove_tree, scratch_folder
from skillopt.utils.sandbox import Limits, run_code, run_python

INPUT, OUTPUT, SCRIPT = "input.xlsx", "output.xlsx", "solution.py"
_CODE_SECONDS = 120.0
_RESERVE_SECONDS, _RESERVE_SHARE = 10.0, 0.25
_LARGEST_SCRIPT = 1024**2
_DETAIL = 3000


@dataclass(frozen=True, slots=True)
class Run:
    """How a program ended on one case.

    `output`: the workbook that it made, or None. `reason`: why there is none, in the form `kind: words`. `detail`: what
    the program printed about it.
    """

    output: Path | None = None
    reason: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Room:
    """The rules for code that a model wrote.

    `item_seconds`: time for an item, 0 for no limit. `require`: refuse to run without a sandbox that shuts out files
    and network. `slots` bounds how many programs run at a time, so that none is slow because of the others.
    """

    item_seconds: float
    require: bool = False
    slots: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(max(4, 2 * (os.cpu_count() or 1))))

    @property
    def reserve(self) -> float:
        """Seconds at the end of an item's time that are kept for grading."""
        return min(_RESERVE_SECONDS, _RESERVE_SHARE * self.item_seconds)


class Workshop:
    """A folder outside of the data for one rollout of one task; gone at the end, with everything in it.

    Programs see only the folder of their attempt, whose output is moved out when it succeeded.
    """

    def __init__(self, task: Task, room: Room, cancel: CancelToken | None = None) -> None:
        self.task = task
        self.room = room
        self.cancel = cancel or CancelToken(room.item_seconds or None)
        self._place = contextlib.ExitStack()
        self._root = self._place.enter_context(scratch_folder("skillopt-sheet-"))
        self._kept = 0

    def __enter__(self) -> Workshop:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._place.close()

    def time_left(self) -> float | None:
        """Seconds until no further turn or program may begin, or None without a limit."""
        left = self.cancel.remaining()
        return None if left is None else max(0.0, left - self.room.reserve)

    def fresh(self, case: Case) -> Path:
        """An empty folder, always at the same place, that holds a copy of the case's input."""
        folder = self._root / "work"
        if folder.exists():
            remove_tree(folder)
        folder.mkdir()
        shutil.copyfile(case.source, folder / INPUT)
        return folder

    def run(self, code: str, case: Case) -> Run:
        """Run a script on a case in a fresh folder; its exit code and a new output decide."""
        folder = self.fresh(case)
        script = folder / SCRIPT
        script.write_bytes(code.encode("utf-8", "replace"))
        values = {"INPUT_PATH": str(folder / INPUT), "OUTPUT_PATH": str(folder / OUTPUT)}
        with _Slot(self):
            seconds = self._seconds(_CODE_SECONDS)
            if seconds <= 0:
                return Run(reason=self.overtime)
            limits = Limits(wall_seconds=seconds)
            ended = run_python(
                script, folder=folder, values=values, limits=limits, cancel=self.cancel, require=self.room.require
            )
        return self._settle(ended, folder, case, seconds)

    def command(self, argv: Sequence[str], folder: Path, seconds: float) -> ProcessResult:
        """Run a program in the folder of an attempt, for at most `seconds`."""
        with _Slot(self):
            limits = Limits(wall_seconds=max(0.1, self._seconds(seconds)))
            return run_code(argv, folder=folder, limits=limits, cancel=self.cancel, require=self.room.require)

    def take_output(self, folder: Path, case: Case) -> Run:
        """Move the output out of the folder of an attempt."""
        self.task.verify(case)
        made = folder / OUTPUT
        if not is_plain_file(made):
            return Run(reason="output-not-found: the program ended without writing the output workbook")
        self._kept += 1
        kept = self._root / f"kept-{self._kept}" / OUTPUT
        kept.parent.mkdir()
        made.replace(kept)
        return Run(kept)

    @property
    def overtime(self) -> str:
        """The reason of a run for which no time was left."""
        return f"task-timeout-{self.room.item_seconds:g}s: the time for this task was used up"

    def _seconds(self, wanted: float) -> float:
        left = self.time_left()
        return wanted if left is None else min(wanted, left)

    def _settle(self, ended: ProcessResult, folder: Path, case: Case, seconds: float) -> Run:
        self.task.verify(case)
        detail = without_place(ended.stderr or ended.stdout, folder).strip()[-_DETAIL:]
        if ended.timed_out:
            slow = seconds < _CODE_SECONDS
            words = self.overtime if slow else f"exec-error: the program did not end within {_CODE_SECONDS:g} s"
            return Run(reason=words, detail=detail)
        if ended.code != 0:
            last = next((line for line in reversed(detail.splitlines()) if line.strip()), f"exit code {ended.code}")
            return Run(reason=f"exec-error: {last.strip()[:300]}", detail=detail)
        return self.take_output(folder, case)


def without_place(text: str, folder: Path) -> str:
    """What a program printed, with the files of its folder by their names alone: where it ran is chance."""
    return text.replace(f"{folder}{os.sep}", "").replace(str(folder), ".")


def script_in(folder: Path) -> str:
    """The program that an agent left in its folder, or an empty text."""
    path = folder / SCRIPT
    if not is_plain_file(path) or path.stat().st_size > _LARGEST_SCRIPT:
        return ""
    return path.read_text(encoding="utf-8", errors="replace")


def is_plain_file(path: Path) -> bool:
    """Whether a path is a file itself: not a link to one, which could lead out of the folder, and not a pipe."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


class _Slot:
    """While inside, one of the places for programs is taken."""

    def __init__(self, shop: Workshop) -> None:
        self._shop = shop

    def __enter__(self) -> None:
        left = self._shop.cancel.remaining()
        taken = self._shop.room.slots.acquire(timeout=left)
        if not taken:
            raise DeadlineError("The time for this item was over before its program could start.")

    def __exit__(self, *_: object) -> None:
        self._shop.room.slots.release()

"""A command line that works in the files of a checkout: shut in while it runs, and what it changed taken afterwards.

The pen comes from the checkout's `Desk`. Inside it the program can write the checkout and its own home, where it keeps
its sign-in; of that home, the files and folders that decide how the person's own sessions run stay as they are, where
there are any. A program that fills the disk is ended.
"""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from skillopt_sleep.backends.faults import ProviderFault
from skillopt_sleep.backends.programs import Late, Program, secrets_of
from skillopt_sleep.backends.wire import Outgoing, Reply, estimate
from skillopt_sleep.errors import CallFailed
from skillopt_sleep.judges.checks import Undecidable
from skillopt_sleep.redact import MASK
from skillopt_sleep.vendored.errors import InterruptedRunError
from skillopt_sleep.vendored.utils.cancel import CancelToken
from skillopt_sleep.vendored.utils.process import ProcessResult

if TYPE_CHECKING:
    from skillopt_sleep.worktrees import Desk, Work

_SHORTEST_SECRET = 8
_NOT_HERE = ("TMP", "TEMP", "TMPDIR")  # the pen has a /tmp of its own
_MODULES = "node_modules"
_LEAST_FREE = 1024**3
_LOOK_SECONDS = 0.5


class DiskFull(ProviderFault):
    """The program was ended before it filled the disk."""


class Unfinished(ProviderFault):
    """Work that did not end of itself; what it used is an estimate."""

    estimated = True


@dataclass(frozen=True, slots=True)
class Agent:
    """A program that changes files.

    `homes`: its own files and folders; `kept`: names in them that it cannot write. `needed`: what it reads to sign in.
    `rooms`: it makes a sandbox of its own for the commands that it runs.
    """

    program: Program
    path: str
    env: Mapping[str, str] = field(repr=False)
    homes: tuple[Path, ...] = ()
    kept: tuple[str, ...] = ()
    needed: tuple[Path, ...] = ()
    rooms: bool = False

    def run(self, desk: Desk, argv: Sequence[str], *, stdin: str = "", seconds: float) -> ProcessResult:
        """Run it in the pen.

        Raises ProviderFault: setup when it cannot be started, Late at the end of its time, DiskFull.
        """
        from skillopt_sleep.worktrees.pen import run_penned

        self.program.check(self.path)
        homes = [place for place in self.homes if place.exists()]
        kept = [place for home in homes for name in self.kept if (place := home / name).exists()]
        readable = [*program_files(self.path), *self.needed, *kept]
        env = {name: value for name, value in self.env.items() if name not in _NOT_HERE}
        try:
            with _while_there_is_room(desk.folder) as room:
                return run_penned(
                    lambda: desk.penned(argv, writable=homes, readable=readable, rooms=self.rooms),
                    lambda penned: self.program.run(
                        penned, stdin=stdin, folder=desk.folder, env=env, seconds=seconds, cancel=room
                    ),
                )
        except InterruptedRunError as error:
            raise DiskFull(f"{self.program.who} was ended: the disk of {desk.folder} is nearly full.") from error

    def work(self, desk: Desk, argv: Sequence[str], outgoing: Outgoing) -> ProcessResult:
        """Let it do the task of `outgoing`. Raises as `run` does, and Unfinished, after which it is not tried again."""
        try:
            return self.run(desk, argv, stdin=outgoing.prompt, seconds=outgoing.seconds)
        except (Late, DiskFull) as late:
            fix = " A longer time for tasks in a checkout is set with replay_minutes." if isinstance(late, Late) else ""
            raise Unfinished(
                f"{late}{fix}",
                kind="refused",
                detail=late.detail,
                tokens=estimate(outgoing.prompt) + outgoing.max_tokens,
            ) from None

    def done(self, desk: Desk, reply: Reply) -> Reply:
        """The reply with what was changed, both without the values of this program's keys.

        Raises ProviderFault, with what the run has used, for work that cannot be taken or judged.
        """
        tokens = None if reply.prompt_tokens is None else reply.prompt_tokens + (reply.completion_tokens or 0)
        try:
            work = desk.finish()
        except CallFailed as failed:
            raise ProviderFault(str(failed), kind=failed.kind, detail=failed.detail, tokens=tokens) from failed
        except Undecidable as undecided:
            raise ProviderFault(str(undecided), kind="refused", tokens=tokens) from undecided
        return replace(reply, text=self._clean(reply.text), work=self._clean_work(work))

    def _clean_work(self, work: Work) -> Work:
        checks = tuple(replace(check, note=self._clean(check.note)) for check in work.checks)
        return replace(work, diff=self._clean(work.diff), checks=checks)

    def _clean(self, text: str) -> str:
        for secret in sorted(secrets_of(self.env), key=len, reverse=True):
            if len(secret) >= _SHORTEST_SECRET:
                text = text.replace(secret, MASK)
        return text


@contextlib.contextmanager
def _while_there_is_room(folder: Path) -> Iterator[CancelToken]:
    """A token that is cancelled when the disk of `folder` is nearly full; with little room at first, at half of it."""
    token, over = CancelToken(), threading.Event()
    least = min(_LEAST_FREE, shutil.disk_usage(folder).free // 2)

    def look() -> None:
        while not over.wait(_LOOK_SECONDS) and shutil.disk_usage(folder).free >= least:
            pass
        if not over.is_set():
            token.cancel()

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield token
    finally:
        over.set()
        thread.join()


def program_files(path: str) -> list[Path]:
    """What a program needs of itself: its file and what that links to, and the packages around it if it is a script's.

    They are named for the pen, which hides some folders that a program may lie in.
    """
    found = shutil.which(path)
    if found is None:
        return []
    places = dict.fromkeys(_with_packages(place) for place in (Path(found).absolute(), Path(found).resolve()))
    return list(places)


def _with_packages(place: Path) -> Path:
    around = [folder for folder in place.parents if folder.name == _MODULES]
    return around[-1] if around else place

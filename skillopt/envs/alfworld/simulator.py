"""A text game in a process of its own, and a pool that keeps such processes warm between episodes.

The game library is neither safe in threads nor can it be interrupted, so an episode gets a process and the process is
what is killed. It loads the one game file of its episode and nothing else.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillopt.envs.alfworld import worker
from skillopt.errors import InterruptedRunError, MissingExtraError, TransientError
from skillopt.utils.cancel import CancelToken
from skillopt.utils.piped_process import PipedProcess
from skillopt.utils.process import child_environment

COMMAND_SECONDS = 120.0
"""How long one command may take; a step takes about a hundredth of a second."""

_LEAVE_SECONDS = 5.0

INSTALL = 'pip install "skillopt[alfworld]"'


class SimulatorError(TransientError):
    """The simulator crashed, hung or spoke nonsense: an error of the item, which is tried again."""


@dataclass(frozen=True, slots=True)
class State:
    """What the game shows: the text, the actions that are possible now, and whether the task is done."""

    observation: str
    actions: tuple[str, ...]
    won: bool = False
    done: bool = False


class Simulator:
    """One process that plays one game at a time. Any error ends it."""

    def __init__(self, *, script: Path | None = None) -> None:
        paths = [str(Path(path).absolute()) for path in sys.path if path]
        env = child_environment(
            PYTHONPATH=os.pathsep.join(paths),
            PYTHONHASHSEED="0",  # the library iterates over sets of texts
            PYTHONIOENCODING="utf-8",
            PYTHONWARNINGS="ignore",
            ALFWORLD_DATA=tempfile.gettempdir(),  # the library makes this folder when it is imported
        )
        argv = [sys.executable, str(script or Path(worker.__file__).resolve())]
        self._process = PipedProcess(argv, cwd=Path(tempfile.gettempdir()), env=env)

    @property
    def alive(self) -> bool:
        """Whether it can still be used."""
        return self._process.alive

    @property
    def pid(self) -> int:
        """Id of its process."""
        return self._process.pid

    def reset(self, game: Path, cancel: CancelToken | None = None) -> State:
        """Start the game of a file. Raises SimulatorError, MissingExtraError, or what `cancel` stands for."""
        return _state(self._ask({"do": "reset", "game": str(game.absolute())}, cancel))  # it works in another folder

    def step(self, action: str, cancel: CancelToken | None = None) -> State:
        """Do an action. Raises as `reset` does."""
        return _state(self._ask({"do": "step", "action": action}, cancel))

    def leave(self) -> bool:
        """Leave the game. Whether the process is ready for another one; if not, it is ended."""
        try:
            self._ask({"do": "close"}, None, seconds=_LEAVE_SECONDS)
        except SimulatorError:
            self.close()
            return False
        return True

    def close(self) -> None:
        """End the process."""
        self._process.close()

    def _ask(
        self, command: Mapping[str, str], cancel: CancelToken | None, *, seconds: float = COMMAND_SECONDS
    ) -> Mapping[str, Any]:
        try:
            said = self._process.ask(json.dumps(command), timeout=seconds, cancel=cancel)
            answer = json.loads(said)
            if not isinstance(answer, dict):
                raise ValueError(f"it said {said[:80]!r}")
        except (EOFError, ValueError, TimeoutError) as error:
            if cancel is not None:
                cancel.raise_if_cancelled()
            self.close()
            raise SimulatorError(f"the text game's simulator failed at {command['do']!r}: {error}") from error
        if "error" not in answer:
            return answer
        if answer.get("kind") == "import":
            raise MissingExtraError(f"ALFWorld's game library cannot be loaded ({answer['error']}); run: {INSTALL}")
        raise SimulatorError(f"the text game's simulator failed at {command['do']!r}: {answer['error']}")


def _state(answer: Mapping[str, Any]) -> State:
    try:
        actions = tuple(str(action) for action in answer["actions"])
        return State(str(answer["observation"]), actions, won=bool(answer["won"]), done=bool(answer["done"]))
    except (KeyError, TypeError) as error:
        raise SimulatorError(f"the text game's simulator gave an answer without {error}") from error


class Seats:
    """At most `number` of something at the same time; who waits for a seat stops waiting when its token ends."""

    def __init__(self, number: int) -> None:
        self._free = number
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def seat(self, cancel: CancelToken) -> Iterator[None]:
        """While inside, one seat is taken."""
        with cancel.on_cancel(self._wake), self._changed:
            while self._free <= 0 and not cancel.cancelled:
                self._changed.wait()
            cancel.raise_if_cancelled()
            self._free -= 1
        try:
            yield
        finally:
            with self._changed:
                self._free += 1
                self._changed.notify_all()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()


class SimulatorPool:
    """Simulators for at most `size` episodes at a time; between episodes their processes wait, for a while."""

    def __init__(self, size: int, make: Callable[[], Simulator] = Simulator) -> None:
        self._make = make
        self._seats = Seats(size)
        self._lock = threading.Lock()
        self._idle: list[Simulator] = []

    @contextlib.contextmanager
    def game(self, path: Path, cancel: CancelToken) -> Iterator[tuple[Simulator, State]]:
        """A simulator in which the game of `path` has just begun. After an error inside, its process is gone."""
        with self._seats.seat(cancel):
            simulator, state = self._begin(path, cancel)
            try:
                yield simulator, state
            except BaseException as error:
                simulator.close()
                if isinstance(error, InterruptedRunError):
                    self.close()  # the run ends, so nobody comes for those that wait
                raise
            if cancel.interrupted:
                simulator.close()
            elif simulator.leave():  # what was played counts, whatever becomes of the process now
                with self._lock:
                    self._idle.append(simulator)

    def close(self) -> None:
        """End the processes that wait."""
        while (simulator := self._waiting()) is not None:
            simulator.close()

    def _begin(self, path: Path, cancel: CancelToken) -> tuple[Simulator, State]:
        while (waiting := self._waiting()) is not None:
            with contextlib.suppress(SimulatorError):  # it may have ended by itself just now
                return waiting, _reset(waiting, path, cancel)
        fresh = self._make()
        return fresh, _reset(fresh, path, cancel)

    def _waiting(self) -> Simulator | None:
        with self._lock:
            while self._idle:
                simulator = self._idle.pop()
                if simulator.alive:
                    return simulator
                simulator.close()
        return None


def _reset(simulator: Simulator, path: Path, cancel: CancelToken) -> State:
    with contextlib.ExitStack() as on_error:
        on_error.callback(simulator.close)
        state = simulator.reset(path, cancel)
        on_error.pop_all()
        return state

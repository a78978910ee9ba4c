"""The process that holds one text game. It runs alone, with nothing of SkillOpt: see `simulator` for the other side.

Each line on its input is a JSON command, each line on its output the JSON answer:

    {"do": "reset", "game": "/path/game.tw-pddl"}  ->  {"observation", "actions", "won", "done"}
    {"do": "step", "action": "open fridge 1"}      ->  the same
    {"do": "close"}                                ->  {}

An answer {"error", "kind"} says that a command failed; `kind` is `import` when the game library is not installed.
Between two games the process waits a while for the next one and then ends by itself.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import IO, Any

IDLE_SECONDS = 120.0


class Game:
    """The text game of this process; loading another one replaces it."""

    def __init__(self) -> None:
        from textworld.core import EnvInfos  # type: ignore[import-not-found, import-untyped, unused-ignore]
        from textworld.envs.pddl import PddlEnv  # type: ignore[import-not-found, import-untyped, unused-ignore]

        self._env: Any = PddlEnv(EnvInfos(won=True, admissible_commands=True))

    def reset(self, path: str) -> dict[str, Any]:
        """Load the game file at `path` and start it."""
        from alfworld.agents.utils.misc import Demangler  # type: ignore[import-not-found, import-untyped, unused-ignore]

        self._env.load(path)
        entities = self._env._entity_infos
        readable = Demangler(game_infos=entities)
        for entity in entities.values():
            entity.name = readable.demangle_alfred_name(entity.id)
        return _shown(self._env.reset(), done=False)

    def step(self, action: str) -> dict[str, Any]:
        """Do an action. One that the game does not know changes nothing, and it says so."""
        state, _, done = self._env.step(action)
        return _shown(state, done=bool(done))


def _shown(state: Any, *, done: bool) -> dict[str, Any]:
    return {
        "observation": str(state["feedback"]),
        "actions": list(state["admissible_commands"]),
        "won": bool(state["won"]),
        "done": done,
    }


def serve(commands: IO[str], answers: IO[str]) -> None:
    """Answer commands until the input ends."""
    game: Game | None = None
    playing = False
    while True:
        idle = None if playing else _leave_after(IDLE_SECONDS)
        line = commands.readline()
        if idle is not None:
            idle.cancel()
        if not line:
            return
        try:
            command = json.loads(line)
            game = game or Game()
            answer, playing = _done(game, command)
        except Exception as error:  # noqa: BLE001 - told to the other side, which decides
            kind = "import" if isinstance(error, ImportError) else "game"
            answer, playing = {"error": f"{type(error).__name__}: {error}", "kind": kind}, False
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _done(game: Game, command: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    if command["do"] == "reset":
        return game.reset(command["game"]), True
    if command["do"] == "step":
        return game.step(command["action"]), True
    return {}, False


def _leave_after(seconds: float) -> threading.Timer:
    timer = threading.Timer(seconds, os._exit, (0,))
    timer.daemon = True
    timer.start()
    return timer


def main() -> None:
    """Serve on the standard streams; what the game library prints goes to the error output."""
    sys.path.pop(0)  # the folder of this file is no place to import from
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    serve(open(0, encoding="utf-8", closefd=False), answers)  # noqa: SIM115 - a descriptor, open to the end


if __name__ == "__main__":
    main()

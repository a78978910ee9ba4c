"""The question before a run that may become large, as a person meets it (C250)."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Sequence

import pytest
from worlds import World

from skillopt.cli.train import main

pty = pytest.importorskip("pty")

TRAIN = [sys.executable, "-W", "error", "-m", "skillopt.cli.train"]
ASK = ("--budget_ask_above_calls", "50")


def on_a_terminal(world: World, answer: bytes, *arguments: str) -> tuple[int, str]:
    """Exit code and what the terminal shows of a run whose question is answered with `answer`."""
    ours, theirs = pty.openpty()
    os.write(ours, answer)
    command = [*TRAIN, "--config", str(world.config()), *arguments]
    with subprocess.Popen(command, stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        while chunk := _read(ours):
            shown += chunk
    os.close(ours)
    return process.returncode, shown.decode("utf-8")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end is closed
        return b""


def without_one(world: World, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [*TRAIN, "--config", str(world.config()), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize("answer", [b"n\n", b"\n", b"yesterday\n", b"\x04"])
def test_anything_but_a_yes_spends_nothing(world: World, answer: bytes) -> None:
    code, shown = on_a_terminal(world, answer, *ASK)
    assert code == 1
    question = next(line for line in shown.splitlines() if "[y/N]" in line)
    assert "This run may make up to 169 calls of target-model (target) and " in question
    assert " calls of optimizer-model (optimizer), at an unknown price. That is above" in question
    assert "above budget.ask_above_calls = 50 (--plan tells more). Start? [y/N]" in question
    assert "not started; nothing was spent" in shown
    assert world.server.requests == []
    assert not world.out_root.exists()


def test_an_interrupt_at_the_question_spends_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

        def readline(self, *_: object) -> str:  # type: ignore[override]
            raise KeyboardInterrupt

    shown = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(sys, "stderr", shown)
    assert main(["--config", str(world.config()), *ASK]) == 130
    assert shown.getvalue().endswith("[y/N] \nskillopt: not started; nothing was spent.\n")
    assert world.server.requests == []


def test_a_yes_starts_and_the_same_run_is_not_asked_again(world: World) -> None:
    code, shown = on_a_terminal(world, b"Y\n", *ASK, "--num_epochs", "1")
    assert code == 0, shown
    assert "[y/N]" in shown
    code, shown = on_a_terminal(world, b"", *ASK, "--num_epochs", "1")
    assert code == 0, shown
    assert "[y/N]" not in shown


@pytest.mark.parametrize("arguments", [(*ASK, "--yes"), ("--budget_ask_above_calls", "0"), ()])
def test_nobody_is_asked(world: World, arguments: Sequence[str]) -> None:
    code, shown = on_a_terminal(world, b"", "--num_epochs", "1", *arguments)
    assert code == 0, shown
    assert "[y/N]" not in shown


def test_without_a_terminal_a_limit_that_somebody_set_is_kept(world: World) -> None:
    done = without_one(world, *ASK)
    assert done.returncode == 2
    assert done.stderr.startswith(
        "skillopt: flag --budget_ask_above_calls: This run may make up to 169 calls of target-model"
    )
    assert "add --yes to start it" in done.stderr
    assert world.server.requests == []
    assert without_one(world, *ASK, "--yes", "--num_epochs", "1").returncode == 0


def test_without_a_terminal_the_default_is_only_said(world: World) -> None:
    world.overrides["evaluation"] = {"sel_env_num": 1, "eval_test": False}
    done = without_one(world, "--num_epochs", "30", "--cfg-options", "train.batch_size=1", "--plan")
    assert "It starts" not in done.stderr  # nobody starts anything
    world.overrides["model"] = {
        **world.overrides.get("model", {}),
        "prices": {name: {"input": 9000.0, "output": 9000.0} for name in ("target-model", "optimizer-model")},
    }
    done = without_one(world, "--num_epochs", "1")
    assert done.returncode == 0, done.stderr
    assert (
        "above budget.ask_above_usd = 10 (--plan tells more). It starts, as there is no terminal to ask on"
        in done.stderr
    )

"""Processes with games in them: real ones, and stand-ins that crash, hang or talk nonsense."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from patience import given_time, until

from skillopt.datasets.samples import alfworld as samples
from skillopt.envs.alfworld.simulator import Seats, Simulator, SimulatorError, SimulatorPool
from skillopt.errors import DeadlineError, InterruptedRunError, MissingExtraError
from skillopt.utils.cancel import CancelToken

SHOWN = '{"observation": "Your task is to: x.", "actions": ["look"], "won": false, "done": false}'


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def stand_in(folder: Path, step: str) -> Path:
    """A worker that starts any game and then does `step`."""
    loop = f"for line in sys.stdin:\n    if '\"step\"' in line: {step}\n    print('{SHOWN}', flush=True)"
    code = f"import os, subprocess, sys, time\n{loop}"
    script = folder / "worker.py"
    script.write_text(code, encoding="utf-8")
    return script


@pytest.mark.slow
@pytest.mark.parametrize("split", ["train", "val", "test"])
def test_every_walkthrough_of_a_split_wins_in_the_real_game(split: str, games: Path) -> None:
    pool, token = SimulatorPool(1), CancelToken()
    pids = set()
    for item in samples.items()[split]:
        game = games / item["gamefile"]
        with pool.game(game, token) as (simulator, state):
            pids.add(simulator.pid)
            assert "Your task is to: " in state.observation
            for action in json.loads(game.read_text(encoding="utf-8"))["walkthrough"]:
                assert not state.won
                assert action in state.actions
                state = simulator.step(action, token)
        assert state.won
        assert state.done
    assert len(pids) == 1  # the process stays warm
    pool.close()
    assert not any(alive(pid) for pid in pids)


@pytest.mark.slow
def test_the_same_actions_show_the_same(games: Path) -> None:
    game = games / samples.items()["train"][3]["gamefile"]
    seen = []
    for pool in (SimulatorPool(1), SimulatorPool(1)):
        for _ in range(2):
            with pool.game(game, CancelToken()) as (simulator, state):
                seen.append((state, simulator.step("go to fridge 1"), simulator.step("nonsense")))
        pool.close()
    assert seen[1:] == seen[:-1]
    assert seen[0][2].observation == "Nothing happens."


def test_a_broken_game_is_an_error_and_the_next_game_can_be_played(games: Path, tmp_path: Path) -> None:
    pool = SimulatorPool(1)
    (tmp_path / "bad.tw-pddl").write_text("{}", encoding="utf-8")
    with (
        pytest.raises(SimulatorError, match="failed at 'reset': KeyError"),
        pool.game(tmp_path / "bad.tw-pddl", CancelToken()),
    ):
        pass
    with pool.game(games / samples.items()["val"][0]["gamefile"], CancelToken()) as (_, state):
        assert not state.won
    pool.close()


def test_a_simulator_that_nobody_uses_ends_by_itself() -> None:
    folder = Path(samples.__file__).parents[2] / "envs/alfworld"
    code = "import sys, worker; worker.IDLE_SECONDS = 0.1; worker.main()"
    ended = subprocess.run([sys.executable, "-c", code], cwd=folder, stdin=subprocess.DEVNULL, timeout=60, check=False)
    assert ended.returncode == 0
    with subprocess.Popen([sys.executable, "-c", code], cwd=folder, stdin=subprocess.PIPE) as waiting:
        assert waiting.wait(60) == 0


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ("sys.exit('out of memory')", "ended with status 1: out of memory"),
        ("os.abort()", "ended with status -6"),
        ("print('nonsense', flush=True); continue", "Expecting value"),
        ("print('[]', flush=True); continue", "it said"),
        ("print('{}', flush=True); continue", "without 'a"),
    ],
)
def test_a_simulator_that_fails_is_an_error_that_may_pass(step: str, words: str, tmp_path: Path) -> None:
    pool = SimulatorPool(1, lambda: Simulator(script=stand_in(tmp_path, step)))
    with pytest.raises(SimulatorError, match=words) as caught, pool.game(Path("g"), CancelToken()) as (simulator, _):
        simulator.step("look")
    assert caught.value.retryable
    assert not simulator.alive
    assert not alive(simulator.pid)


def test_a_simulator_that_hangs_ends_with_its_item(tmp_path: Path) -> None:
    child = "child = subprocess.Popen(['sleep', '600'], start_new_session=True)"
    hang = f"{child}; open('PID', 'w').write(str(child.pid)); time.sleep(600)"
    pid_file = tmp_path / "pid"
    script = stand_in(tmp_path, hang.replace("PID", str(pid_file)))

    def hanging(seconds: float) -> list[int]:
        pool, token, pids = SimulatorPool(1, lambda: Simulator(script=script)), CancelToken(timeout=seconds), []
        with pytest.raises(DeadlineError), pool.game(Path("g"), token) as (simulator, _):
            pids.append(simulator.pid)
            simulator.step("look", token)
        return pids

    pids = given_time(hanging, lambda _: pid_file.exists() and pid_file.read_text() != "")
    assert pids and not any(alive(pid) for pid in (*pids, int(pid_file.read_text())))


def test_an_interrupt_ends_those_at_work_and_those_that_wait(tmp_path: Path) -> None:
    script = stand_in(tmp_path, f"open({str(tmp_path / 'stuck')!r}, 'w'); time.sleep(600)")
    pool, token = SimulatorPool(2, lambda: Simulator(script=script)), CancelToken()
    with pool.game(Path("a"), token) as (first, _), pool.game(Path("b"), token) as (second, _):
        pass
    assert first.alive and second.alive
    threading.Thread(target=lambda: (until((tmp_path / "stuck").exists), token.cancel())).start()
    with pytest.raises(InterruptedRunError), pool.game(Path("c"), token) as (simulator, _):
        assert simulator in (first, second)
        simulator.step("look", token)
    assert not alive(first.pid)
    assert not alive(second.pid)


def test_one_that_ended_while_it_waited_is_replaced(tmp_path: Path) -> None:
    pool = SimulatorPool(1, lambda: Simulator(script=stand_in(tmp_path, "pass")))
    with pool.game(Path("a"), CancelToken()) as (first, _):
        pass
    os.kill(first.pid, signal.SIGKILL)
    with pool.game(Path("b"), CancelToken()) as (second, _):
        assert second.pid != first.pid
    pool.close()


def test_a_process_that_ends_after_its_game_costs_no_result(tmp_path: Path) -> None:
    script = stand_in(tmp_path, "pass")
    script.write_text(script.read_text().replace('"step"', '"close"').replace("pass", "sys.exit(1)"))
    pool = SimulatorPool(1, lambda: Simulator(script=script))
    with pool.game(Path("a"), CancelToken()) as (simulator, _):
        pass
    assert not alive(simulator.pid)


def test_a_library_that_is_missing_says_what_to_run(tmp_path: Path) -> None:
    script = tmp_path / "worker.py"
    script.write_text('for _ in iter(input, None): print(\'{"error": "No module", "kind": "import"}\', flush=True)')
    pool = SimulatorPool(1, lambda: Simulator(script=script))
    with (
        pytest.raises(MissingExtraError, match=r'pip install "skillopt\[alfworld\]"'),
        pool.game(Path("g"), CancelToken()),
    ):
        pass


def test_no_key_reaches_the_game(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "marked")
    out = tmp_path / "env"
    script = stand_in(tmp_path, f"open({str(out)!r}, 'w').write(str(dict(os.environ)))")
    pool = SimulatorPool(1, lambda: Simulator(script=script))
    with pool.game(Path("g"), CancelToken()) as (simulator, _):
        simulator.step("look")
    pool.close()
    assert "marked" not in out.read_text()


def test_seats_are_few_and_waiting_ends_with_its_token() -> None:
    seats = Seats(1)
    with seats.seat(CancelToken()):
        with pytest.raises(DeadlineError), seats.seat(CancelToken(timeout=0.05)):
            pass
        token = CancelToken()
        threading.Timer(0.05, token.cancel).start()
        with pytest.raises(InterruptedRunError), seats.seat(token):
            pass
    with seats.seat(CancelToken(timeout=60)):
        pass


def test_w23_an_interpreter_that_is_killed_leaves_no_simulator(games: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path\n"
        "from skillopt.envs.alfworld.simulator import SimulatorPool; from skillopt.utils.cancel import CancelToken\n"
        "with SimulatorPool(1).game(Path(sys.argv[1]), CancelToken()) as (simulator, _):\n"
        "    print(simulator.pid, flush=True)\n"
        "    time.sleep(600)"
    )
    game = games / samples.items()["test"][0]["gamefile"]
    argv, root = [sys.executable, "-c", code, str(game)], Path(__file__).parents[3]
    with subprocess.Popen(argv, cwd=root, stdout=subprocess.PIPE) as outer:
        assert outer.stdout is not None
        pid = int(outer.stdout.readline())
        assert alive(pid)
        outer.kill()
    assert until(lambda: not alive(pid))

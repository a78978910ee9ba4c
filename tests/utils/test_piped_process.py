"""A program that stays: asked line by line, late, broken or ended, and nothing of it is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from patience import SOON, given_time, until

from skillopt.errors import DeadlineError, InterruptedRunError
from skillopt.utils.cancel import CancelToken
from skillopt.utils.piped_process import LINE_IN, PipedProcess
from skillopt.utils.process import child_environment

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the programs of these tests use POSIX signals")

ECHO = """
import subprocess, sys, time
print("hello", file=sys.stderr, flush=True)
for line in sys.stdin:
    word = line.strip()
    if word == "hang":
        child = subprocess.Popen(["sleep", "600"], start_new_session=True)
        open(sys.argv[1], "w").write(str(child.pid))
        time.sleep(600)
    if word == "die":
        sys.exit("no more")
    print(word.upper(), flush=True)
"""


def start(*args: str) -> PipedProcess:
    return PipedProcess([sys.executable, "-c", ECHO, *args], cwd=Path("/"), env=child_environment())


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def test_each_line_is_answered_by_one_line() -> None:
    with start() as child:
        assert child.ask("één", timeout=SOON) == "ÉÉN"
        assert [child.ask(str(n), timeout=SOON) for n in range(20)] == [str(n) for n in range(20)]
        assert child.alive
        with pytest.raises(ValueError, match="one line"):
            child.ask("two\nlines", timeout=SOON)
        with pytest.raises(ValueError, match="one line"):
            child.ask("x" * LINE_IN, timeout=SOON)
    assert not alive(child.pid)
    child.close()
    with pytest.raises(EOFError):
        child.ask("after the end", timeout=SOON)


def test_a_program_that_ends_says_its_last_words() -> None:
    child = start()
    with pytest.raises(EOFError, match=r"status 1: hello\s+no more"):
        child.ask("die", timeout=SOON)
    assert not child.alive
    with pytest.raises(EOFError):
        child.ask("again", timeout=SOON)


def test_a_late_answer_ends_the_whole_family(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"

    def late(seconds: float) -> PipedProcess:
        child = start(str(pid_file))
        with pytest.raises(TimeoutError, match=rf"did not answer within {seconds:g} s"):
            child.ask("hang", timeout=seconds)
        return child

    child = given_time(late, lambda _: pid_file.exists() and pid_file.read_text() != "", 0.5)
    assert not alive(child.pid)
    assert not alive(int(pid_file.read_text()))


def test_the_end_of_item_or_run_ends_the_waiting(tmp_path: Path) -> None:
    child = start(str(tmp_path / "pid"))
    with pytest.raises(DeadlineError):
        child.ask("hang", timeout=SOON, cancel=CancelToken(timeout=0.3))
    assert not alive(child.pid)
    token, other = CancelToken(), start(str(tmp_path / "pid"))
    threading.Timer(0.3, token.cancel).start()
    with pytest.raises(InterruptedRunError):
        other.ask("hang", timeout=SOON, cancel=token)
    assert not alive(other.pid)


def test_a_stop_left_over_from_an_earlier_question_stops_nothing() -> None:
    with start() as child:
        child._stop_waiting()
        assert child.ask("on", timeout=SOON, cancel=CancelToken(timeout=SOON)) == "ON"


@pytest.mark.parametrize("number", [0, signal.SIGTERM, signal.SIGKILL])
def test_an_interpreter_that_ends_leaves_nothing(number: int, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    code = (
        "import sys, threading, time; from pathlib import Path\n"
        "from skillopt.utils.piped_process import PipedProcess; from skillopt.utils.process import child_environment\n"
        "child = PipedProcess([sys.executable, '-c', *sys.argv[1:3]], cwd=Path('/'), env=child_environment())\n"
        "threading.Thread(target=child.ask, args=('hang',), kwargs={'timeout': 600}, daemon=True).start()\n"
        "while not (Path(sys.argv[2]).is_file() and Path(sys.argv[2]).read_text()): time.sleep(0.01)\n"
        "print(child.pid, flush=True)\n"
        "if sys.argv[3] != '0': time.sleep(600)"
    )
    argv = [sys.executable, "-c", code, ECHO, str(pid_file), str(int(number))]
    root = Path(__file__).parents[2]
    with subprocess.Popen(argv, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as outer:
        assert outer.stdout is not None
        pid = int(outer.stdout.readline())
        if number:
            outer.send_signal(number)
        outer.wait(SOON)
    grandchild = int(pid_file.read_text())
    assert until(lambda: not alive(pid))
    assert until(lambda: not alive(grandchild))


def test_descriptors_and_threads_do_not_pile_up() -> None:
    start().close()
    before = (len(list(Path("/proc/self/fd").iterdir())), threading.active_count())
    for _ in range(3):
        with start() as child:
            child.ask("x", timeout=SOON)
    assert until(lambda: threading.active_count() <= before[1])
    assert until(lambda: len(list(Path("/proc/self/fd").iterdir())) <= before[0])

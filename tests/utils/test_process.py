"""Programs that end well, badly, late or not at all: their family is gone and their output is kept."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from patience import SOON, given_time, until

from skillopt.errors import InterruptedRunError
from skillopt.utils.cancel import CancelToken
from skillopt.utils.process import ProcessResult, child_environment, run_process

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the programs of these tests use POSIX signals")

# A daemon in every way: own session, ignores TERM, keeps the pipes; says its id in the file named by argv[1].
DAEMON = """
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        open(sys.argv[1] + ".new", "w").write(str(os.getpid()))
        os.rename(sys.argv[1] + ".new", sys.argv[1])
        time.sleep(600)
    os._exit(0)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.005)
print("started", flush=True)
"""
HANG = "\ntime.sleep(600)"


def run(code: str, *args: str, timeout: float = SOON, **more: object) -> ProcessResult:
    argv = [sys.executable, "-I", "-S", "-c", code, *args]
    return run_process(argv, cwd=Path("/"), env=child_environment(), timeout=timeout, **more)  # type: ignore[arg-type]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def wait_for(path: Path) -> str:
    until(lambda: path.exists() and path.read_text() != "")
    return path.read_text()


def late(code: str, *args: str, said: str = "", **more: object) -> ProcessResult:
    """What comes of a program that has said or written `said` and is ended at its timeout."""
    files = [Path(arg) for arg in args]

    def begun(result: ProcessResult) -> bool:
        return result.stdout.startswith(said) and all(file.exists() and file.read_text() for file in files)

    return given_time(lambda seconds: run(code, *args, timeout=seconds, **more), begun, 0.5)


def test_a_program_gets_its_input_and_gives_its_outputs_and_code() -> None:
    code = "import sys; t = sys.stdin.buffer.read(); sys.stdout.buffer.write(t); sys.stderr.write('e'); sys.exit(3)"
    text = "première ligne\nsecond 🦊\n" * 5000
    assert run(code, stdin=text) == ProcessResult(3, text, "e", timed_out=False, truncated=False)


def test_input_that_is_no_text_and_output_that_is_no_utf8_are_carried_with_replacement() -> None:
    code = "import sys; t = sys.stdin.buffer.read(); sys.stdout.buffer.write(t + b'\\xff\\xfe ok')"
    assert run(code, stdin="\ud800").stdout == "?�� ok"


def test_a_signal_is_a_negative_code() -> None:
    assert run("import os; os.kill(os.getpid(), 11)").code == -signal.SIGSEGV


def test_a_missing_program_raises_what_the_system_says(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        run_process(["no-such-program-here"], cwd=tmp_path, env=child_environment(), timeout=1)
    (tmp_path / "plain").write_text("text")
    with pytest.raises(PermissionError):
        run_process([str(tmp_path / "plain")], cwd=tmp_path, env=child_environment(), timeout=1)


def test_arguments_are_never_read_by_a_shell(tmp_path: Path) -> None:
    """C245"""
    hostile = "; touch hacked; $(touch hacked) `touch hacked` | tee hacked & \n touch hacked"
    result = run_process(
        [sys.executable, "-c", "import sys; print(sys.argv[1])", hostile],
        cwd=tmp_path,
        env=child_environment(),
        timeout=SOON,
    )
    assert result.stdout == hostile + "\n"
    assert list(tmp_path.iterdir()) == []


def test_at_the_timeout_the_whole_family_ends_and_partial_output_is_kept(tmp_path: Path) -> None:
    """C148"""
    pid_file = tmp_path / "pid"
    result = late(DAEMON + HANG, str(pid_file), said="started")
    assert result.timed_out
    assert result.code is None
    assert result.stdout == "started\n"
    assert not alive(int(pid_file.read_text()))


def test_a_program_that_ends_while_its_daemon_holds_the_pipes_returns_and_the_daemon_ends(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    begun = time.monotonic()
    result = run(DAEMON, str(pid_file))
    assert (result.code, result.stdout, result.timed_out) == (0, "started\n", False)
    assert not alive(int(pid_file.read_text()))
    assert time.monotonic() - begun < SOON / 2


def test_a_descendant_without_mark_and_group_ends_through_its_parents(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen(['sleep', '600'], env={}, start_new_session=True)\n"
        "open(sys.argv[1], 'w').write(str(child.pid)); time.sleep(600)"
    )
    pid_file = tmp_path / "pid"
    assert late(code, str(pid_file)).timed_out
    assert not alive(int(pid_file.read_text()))


def test_a_descendant_without_mark_and_group_ends_also_when_its_parents_end_first(tmp_path: Path) -> None:
    stay = (
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"
    )
    code = (
        "import subprocess, sys, time\n"
        "argv = [sys.executable, '-I', '-S', '-c', sys.argv[2], sys.argv[1]]\n"
        "subprocess.Popen(argv, env={}, start_new_session=True); time.sleep(600)"
    )
    pid_file = tmp_path / "pid"
    result = given_time(
        lambda seconds: run(code, str(pid_file), stay, timeout=seconds), lambda _: pid_file.exists(), 0.5
    )
    assert result.timed_out
    pid = int(wait_for(pid_file))
    try:
        assert not alive(pid)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_a_stranger_that_holds_the_pipes_does_not_hold_us(tmp_path: Path) -> None:
    """Nothing links this one to the family: own group, no mark, no parent."""
    code = DAEMON.replace("os.setsid()", "os.setsid(); os.environ.clear()").replace(
        "        signal.signal(",
        "        if os.environ.get('again') is None and len(sys.argv) < 4:\n"
        "            os.execve(sys.executable, [sys.executable, '-I', '-S', '-c', sys.argv[2], sys.argv[1]], {})\n"
        "        signal.signal(",
    )
    stay = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"
    pid_file = tmp_path / "pid"
    begun = time.monotonic()
    try:
        assert run(code, str(pid_file), stay).code == 0
        assert time.monotonic() - begun < SOON / 2
    finally:
        os.kill(int(wait_for(pid_file)), signal.SIGKILL)


def test_cancelling_the_run_ends_the_family_and_raises(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    token = CancelToken()

    def cancel_once_started() -> None:
        wait_for(pid_file)
        token.cancel()

    threading.Thread(target=cancel_once_started).start()
    with pytest.raises(InterruptedRunError):
        run(DAEMON + HANG, str(pid_file), cancel=token)
    assert not alive(int(pid_file.read_text()))
    with pytest.raises(InterruptedRunError):
        run("print(1)", cancel=token)


def test_the_nearer_deadline_of_item_and_call_counts() -> None:
    assert run("import time; time.sleep(600)", cancel=CancelToken(timeout=0.2)).timed_out
    assert run("print(1)", timeout=0.0) == ProcessResult(None, "", "", timed_out=True)


def test_a_flood_is_bounded_to_its_beginning_and_its_end() -> None:
    code = "import sys\nprint('first')\nfor n in range(2000): print('x' * 1000)\nprint('last')\nsys.stderr.write('e')"
    result = run(code, output_limit=20_000)
    assert result.truncated
    assert result.stdout.startswith("first\nxxx")
    assert result.stdout.endswith("xxx\nlast\n")
    assert "bytes left out" in result.stdout
    assert len(result.stdout) < 20_100
    assert result.stderr == "e"


def test_an_endless_flood_ends_at_the_timeout() -> None:
    result = late("while True: print('x' * 100000)", said="x", output_limit=1000)
    assert result.timed_out
    assert result.truncated
    assert len(result.stdout) < 1100


def test_output_of_exactly_the_limit_is_whole() -> None:
    result = run("print('x' * 999)", output_limit=1000)
    assert (len(result.stdout), result.truncated) == (1000, False)


def test_input_that_is_not_read_blocks_nothing() -> None:
    assert run("print('done')", stdin="x" * 1_000_000).stdout == "done\n"
    assert run("import time; time.sleep(600)", stdin="x" * 1_000_000, timeout=0.3).timed_out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interpreter_that_ends_leaves_nothing(number: signal.Signals, tmp_path: Path) -> None:
    pid_file, script = tmp_path / "pid", tmp_path / "program.py"
    script.write_text(DAEMON + HANG)
    code = (
        "import signal, sys; from pathlib import Path\n"
        "from skillopt.utils.process import run_process, child_environment\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a shell's background jobs\n"
        "run_process([sys.executable, *sys.argv[1:]], cwd=Path('/'), env=child_environment(), timeout=600)"
    )
    root = Path(__file__).parents[2]
    argv = [sys.executable, "-c", code, str(script), str(pid_file)]
    with subprocess.Popen(argv, cwd=root, stderr=subprocess.DEVNULL) as outer:
        pid = int(wait_for(pid_file))
        outer.send_signal(number)
        outer.wait(SOON)
    assert until(lambda: not alive(pid))


def test_a_daemon_thread_in_a_program_at_its_end_leaves_nothing(tmp_path: Path) -> None:
    pid_file, script = tmp_path / "pid", tmp_path / "program.py"
    script.write_text(DAEMON + HANG)
    code = (
        "import os, sys, threading, time; from pathlib import Path\n"
        "from skillopt.utils.process import run_process, child_environment\n"
        "more = dict(cwd=Path('/'), env=child_environment(), timeout=600)\n"
        "argv = [sys.executable, *sys.argv[1:]]\n"
        "threading.Thread(target=run_process, args=(argv,), kwargs=more, daemon=True).start()\n"
        "while not os.path.exists(sys.argv[2]): time.sleep(0.01)\n"
    )
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", code, str(script), str(pid_file)], cwd=root, check=True, timeout=SOON)
    assert not alive(int(pid_file.read_text()))


def test_a_family_inside_a_family_ends_with_it(tmp_path: Path) -> None:
    pid_file, script = tmp_path / "pid", tmp_path / "program.py"
    script.write_text(DAEMON + HANG)
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r})\n"
        "from pathlib import Path; from skillopt.utils.process import run_process, child_environment\n"
        "run_process([sys.executable, *sys.argv[1:]], cwd=Path('/'), env=child_environment(), timeout=600)"
    )
    token = CancelToken()
    threading.Thread(target=lambda: (wait_for(pid_file), token.cancel())).start()
    with pytest.raises(InterruptedRunError):
        run_process(
            [sys.executable, "-c", code, str(script), str(pid_file)],
            cwd=tmp_path,
            env=child_environment(),
            timeout=SOON,
            cancel=token,
        )
    assert not alive(int(pid_file.read_text()))


def test_only_named_and_harmless_variables_are_handed_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "marked")
    monkeypatch.setenv("TOOL_KEY", "wanted")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("https_proxy", "http://proxy:1")
    env = child_environment("TOOL_KEY", "NOT_SET", EXTRA="1")
    assert env["TOOL_KEY"] == "wanted"
    assert env["EXTRA"] == "1"
    assert env["LC_ALL"] == "C.UTF-8"
    assert env["https_proxy"] == "http://proxy:1"
    assert env["PATH"] == os.environ["PATH"]
    assert "marked" not in env.values()
    assert "NOT_SET" not in env


def test_descriptors_and_threads_do_not_pile_up() -> None:
    run("print(1)")
    before = (len(list(Path("/proc/self/fd").iterdir())), threading.active_count())
    for _ in range(5):
        run("print(1)", stdin="x")
    assert until(lambda: threading.active_count() <= before[1])
    assert until(lambda: len(list(Path("/proc/self/fd").iterdir())) <= before[0])

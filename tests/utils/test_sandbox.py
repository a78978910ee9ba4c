"""Code that nobody has read: what it cannot see, reach, use up or leave behind, with every strength of this machine."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from skillopt.errors import ConfigError, InterruptedRunError
from skillopt.utils import sandbox
from skillopt.utils.cancel import CancelToken
from skillopt.utils.process import ProcessResult
from skillopt.utils.removal import remove_tree
from skillopt.utils.sandbox import Limits, Sandbox, Strength, available, python_argv, run_code, run_python, strength

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the programs of these tests use POSIX signals")

MIB = 1024**2
ROOMS = (sandbox.BUBBLEWRAP, sandbox.NAMESPACES)
ALL = (*ROOMS, sandbox.LIMITS)
QUICK = Limits(wall_seconds=120.0)

# A daemon in every way, found from outside by the token in its arguments.
DAEMON = """
import os, signal, subprocess, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.execv(sys.executable, [sys.executable, "-I", "-S", "-c",
                                  "open('up', 'w'); import time; time.sleep(600)", TOKEN])
    os._exit(0)
subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)", TOKEN])
while not os.path.exists("up"):
    time.sleep(0.005)
print("started", flush=True)
"""


def working(wanted: Strength) -> Sandbox:
    if wanted not in available():
        pytest.skip(f"the sandbox {wanted.name} does not work on this machine")
    return Sandbox(wanted)


def each(strengths: tuple[Strength, ...]) -> list[object]:
    """The strongest that works here, and the others as repeats, which are slow in sum."""
    first = next((one for one in strengths if one in available()), None)
    marks = {one: () if one == first else (pytest.mark.slow,) for one in strengths}
    return [pytest.param(one, id=one.name, marks=marks[one]) for one in strengths]


@pytest.fixture(params=each(ALL))
def box(request: pytest.FixtureRequest) -> Sandbox:
    return working(request.param)


@pytest.fixture(params=each(ROOMS))
def room(request: pytest.FixtureRequest) -> Sandbox:
    """A sandbox that promises to shut out files and network."""
    return working(request.param)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "attempt"
    made.mkdir()
    return made


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def run(box: Sandbox, folder: Path, code: str, limits: Limits = QUICK, **more: object) -> ProcessResult:
    return box.run(["python", "-I", "-S", "-c", code], folder=folder, limits=limits, **more)  # type: ignore[arg-type]


def wait_until(true: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not true() and time.monotonic() < until:
        time.sleep(0.01)


def family_of(token: str) -> list[int]:
    """Processes of this machine with `token` among their arguments."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if token.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def test_a_program_gets_its_input_and_gives_its_outputs_and_code(box: Sandbox, folder: Path) -> None:
    code = "import os, sys; print(sys.stdin.read(), os.getcwd()); sys.stderr.write('é'); open('new', 'w'); sys.exit(3)"
    result = run(box, folder, code, stdin="in: 🦊")
    assert (result.code, result.stdout, result.stderr) == (3, f"in: 🦊 {folder}\n", "é")
    assert [path.name for path in folder.iterdir()] == ["new"]


def test_the_environment_is_four_variables(box: Sandbox, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # C244
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    told = json.loads(run(box, folder, "import os, json; print(json.dumps(dict(os.environ)))").stdout)
    assert set(told) == {"PATH", "HOME", "LANG", "TMPDIR"}
    assert (told["HOME"], told["TMPDIR"]) == (str(folder), str(folder))


def test_the_environment_of_this_process_cannot_be_read(
    room: Sandbox, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_KEY", "sk-secret-of-the-parent")
    code = (
        "import os\n"
        "for name in os.listdir('/proc'):\n"
        "    try: print(name, open(f'/proc/{name}/environ').read())\n"
        "    except OSError: pass\n"
        f"print(os.path.exists('/proc/{os.getpid()}/environ') and {os.getpid()} > 9)\n"
    )
    result = run(room, folder, code)
    assert result.code == 0
    assert "sk-secret" not in result.stdout
    assert "A_KEY" not in result.stdout
    assert result.stdout.endswith("False\n")


def test_nothing_beside_the_folder_can_be_read(room: Sandbox, folder: Path) -> None:
    gold = folder.parent / "1_answer.xlsx"
    gold.write_text("gold")
    code = f"import os; print(os.listdir({str(folder.parent)!r}), os.path.exists('/etc/passwd')); open({str(gold)!r})"
    result = run(room, folder, code)
    assert result.stdout == "['attempt'] False\n"
    assert "FileNotFoundError" in result.stderr
    listed = run(room, folder, f"import os; os.symlink({str(gold)!r}, 'link'); open('link')")
    assert "FileNotFoundError" in listed.stderr


def test_what_is_readable_can_be_read_by_its_own_name_and_not_changed(room: Sandbox, folder: Path) -> None:
    given = folder.parent / "data" / "input.txt"
    given.parent.mkdir()
    given.write_text("given")
    (given.parent / "gold.txt").write_text("gold")
    link = folder.parent / "link.txt"
    link.symlink_to(given)
    for path in (given, link):
        code = f"import os; p = {str(path)!r}; print(open(p).read(), os.listdir({str(given.parent)!r})); open(p, 'w')"
        result = run(room, folder, code, readable=[path])
        assert result.stdout == "given ['input.txt']\n"
        assert "Read-only file system" in result.stderr
    assert given.read_text() == "given"
    with pytest.raises(FileNotFoundError):
        run(room, folder, "", readable=[folder.parent / "absent"])


def test_only_the_folder_can_be_written(room: Sandbox, folder: Path) -> None:
    code = """
import os, sys, tempfile
for place in ['/', '/dev', '/usr/lib', '/proc', sys.prefix + '/lib']:
    try: open(place + '/mine', 'w'); print(place)
    except OSError: pass
for root, _, names in os.walk('/proc/sys'):
    for name in names:
        try: os.close(os.open(f'{root}/{name}', os.O_WRONLY)); print(root, name)
        except OSError: pass
print(tempfile.gettempdir() == os.getcwd())
open('/tmp/mine', 'w'), open('../mine', 'w')
"""
    result = run(room, folder, code)
    assert (result.code, result.stdout, result.stderr) == (0, "True\n", "")
    assert not Path("/tmp/mine").exists()
    assert not (folder.parent / "mine").exists()


def test_no_right_over_the_machine_and_no_further_room(room: Sandbox, folder: Path) -> None:
    code = (
        "import ctypes, os\n"
        "libc = ctypes.CDLL(None)\n"
        "print(libc.umount2(b'/proc/sys', 2), libc.mount(b'none', b'/tmp', b'tmpfs', 0, None))\n"
        "print(libc.unshare(0x10000000), libc.unshare(0x20000))\n"
        "print([line.split()[1] for line in open('/proc/self/status') if line[:6] in ('CapEff', 'CapPrm', 'CapBnd')])\n"
    )
    result = room.run(["python", "-I", "-c", code], folder=folder, limits=QUICK)
    first, second, rights = result.stdout.splitlines()
    assert first == "-1 -1"
    assert second == "-1 -1"
    assert rights == str(["0" * 16] * 3)


def test_no_network(room: Sandbox, folder: Path, port: int) -> None:
    code = (
        "import socket\n"
        f"for ask in (lambda: socket.create_connection(('127.0.0.1', {port}), 5),\n"
        "             lambda: socket.create_connection(('192.0.2.1', 80), 5),\n"
        "             lambda: socket.getaddrinfo('example.org', 80)):\n"
        "    try: ask(); print('reached')\n"
        "    except OSError as error: print('no')\n"
        "print([name for _, name in socket.if_nameindex()])\n"
    )
    assert run(room, folder, code).stdout == "no\nno\nno\n['lo']\n"


def test_what_limits_alone_do_not_promise_is_said(folder: Path, port: int) -> None:
    box = Sandbox(sandbox.LIMITS)
    assert (box.strength.isolates_files, box.strength.isolates_network) == (False, False)
    assert "bubblewrap" in box.strength.note
    assert all(not one.note for one in available() if one.isolates_files and one.isolates_network)
    (folder.parent / "gold").write_text("gold")
    code = f"import socket; print(open('../gold').read()); socket.create_connection(('127.0.0.1', {port}), 5)"
    assert run(box, folder, code).stdout == "gold\n"


def test_no_relative_outlives_the_program(box: Sandbox, folder: Path) -> None:
    token = uuid.uuid4().hex
    result = run(box, folder, DAEMON.replace("TOKEN", repr(token)))
    assert (result.code, result.stdout) == (0, "started\n")
    assert family_of(token) == []


def test_no_relative_outlives_the_wall_clock(box: Sandbox, folder: Path) -> None:
    token = uuid.uuid4().hex
    code = DAEMON.replace("TOKEN", repr(token)) + "time.sleep(600)"
    result = run(box, folder, code, Limits(wall_seconds=1.2))
    assert (result.code, result.timed_out) == (None, True)
    assert family_of(token) == []


def test_no_relative_outlives_a_cancel(box: Sandbox, folder: Path) -> None:
    token, cancel = uuid.uuid4().hex, CancelToken()

    def once_up() -> None:
        wait_until((folder / "up").exists)
        cancel.cancel()

    threading.Thread(target=once_up, daemon=True).start()
    with pytest.raises(InterruptedRunError):
        run(box, folder, DAEMON.replace("TOKEN", repr(token)) + "time.sleep(600)", cancel=cancel)
    assert family_of(token) == []


def test_no_relative_outlives_a_killed_interpreter(box: Sandbox, folder: Path) -> None:
    token = uuid.uuid4().hex
    code = DAEMON.replace("TOKEN", repr(token)) + "time.sleep(600)"
    start = (
        "import sys; from pathlib import Path; from skillopt.utils import sandbox\n"
        f"box = sandbox.Sandbox(sandbox.{box.strength.name.upper()})\n"
        "box.run(['python', '-I', '-S', '-c', sys.argv[2]], folder=Path(sys.argv[1]))\n"
    )
    with subprocess.Popen([sys.executable, "-c", start, str(folder), code]) as interpreter:
        wait_until((folder / "up").exists)
        interpreter.kill()
    wait_until(lambda: not family_of(token))
    assert family_of(token) == []


def test_a_large_file_fails_and_leaves_nothing(box: Sandbox, folder: Path) -> None:
    (folder / "small").write_text("kept")
    code = "f = open('big', 'wb')\nfor _ in range(10240): f.write(bytes(1 << 20))"
    result = run(box, folder, code, replace(QUICK, file_bytes=8 * MIB))
    assert result.code == 1
    assert "File too large" in result.stderr
    assert [path.name for path in folder.iterdir()] == ["small"]


@pytest.mark.parametrize(
    "each",
    [
        pytest.param("open(f'd/{n}', 'wb').write(data)", id="named"),
        pytest.param("open(f'd/{n}', 'wb').write(data)\n    if n == 199: os.chmod('d', 0)", id="in a closed folder"),
        pytest.param("f = open('x', 'wb', 0); f.write(data); os.unlink('x'); files.append(f)", id="without a name"),
        pytest.param("f = os.memfd_create('x'); os.write(f, data); files.append(f)", id="in memory"),
    ],
)
def test_many_files_fail_and_leave_nothing(box: Sandbox, folder: Path, each: str) -> None:
    code = f"""
import os, time
os.mkdir('d')
data, files = bytes(1 << 20), []
for n in range(200):
    {each}
time.sleep(60)
"""
    result = run(box, folder, code, replace(QUICK, disk_bytes=32 * MIB))
    assert result.code == 137
    assert result.stderr == "sandbox: ended: more than 33,554,432 bytes in files\n"
    assert [path for path in folder.rglob("*") if path.is_file()] == []


def test_files_below_the_longest_path_are_no_hiding_place(box: Sandbox, folder: Path) -> None:
    code = """
import os, time
for _ in range(30):
    os.mkdir('d' * 200); os.chdir('d' * 200)
for n in range(200): open(str(n), 'wb').write(bytes(1 << 20))
time.sleep(60)
"""
    result = run(box, folder, code, replace(QUICK, disk_bytes=32 * MIB))
    assert (result.code, result.stderr) == (137, "sandbox: ended: folders nested deeper than can be looked into\n")
    remove_tree(folder)


def test_a_process_that_hides_its_open_files_is_ended(room: Sandbox, folder: Path) -> None:
    code = "import ctypes, time; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); time.sleep(60)"
    result = room.run(["python", "-I", "-c", code], folder=folder, limits=QUICK)
    assert (result.code, result.stderr) == (137, "sandbox: ended: a process that hides its open files\n")


def test_the_temporary_file_systems_of_a_room_count_as_disk(room: Sandbox, folder: Path) -> None:
    code = "import time\nfor n in range(50): open(f'/dev/shm/{n}', 'wb').write(bytes(1 << 20))\ntime.sleep(60)"
    assert run(room, folder, code, replace(QUICK, disk_bytes=16 * MIB)).code == 137


def test_a_memory_hog_fails(box: Sandbox, folder: Path) -> None:
    result = run(box, folder, "held = bytearray(1 << 33)")
    assert "MemoryError" in result.stderr


def test_many_small_memory_hogs_are_ended(box: Sandbox, folder: Path) -> None:
    code = "import os, time\nfor _ in range(6):\n    if os.fork() == 0: break\nheld = b'x' * (40 << 20)\ntime.sleep(60)"
    result = run(box, folder, code, replace(QUICK, memory_bytes=128 * MIB))
    assert (result.code, result.stderr) == (137, "sandbox: ended: more than 134,217,728 bytes of memory\n")


def test_a_loop_ends_with_its_processor_time(box: Sandbox, folder: Path) -> None:
    assert run(box, folder, "while True: pass", replace(QUICK, cpu_seconds=1)).code in (128 + 24, 128 + 9)


def test_a_fork_bomb_ends(box: Sandbox, folder: Path) -> None:
    token = uuid.uuid4().hex
    code = f"import os, time\ntoken = {token!r}\nwhile True:\n    if os.fork() == 0: time.sleep(0.02)\n"
    argv = ["python", "-I", "-S", "-c", code, token]
    result = box.run(argv, folder=folder, limits=replace(QUICK, processes=16))
    assert result.code not in (0, None)
    assert family_of(token) == []


def test_endless_output_is_bounded(box: Sandbox, folder: Path) -> None:
    code = "import sys\nfor n in range(20000): print('x' * 1000)\nprint('end')"
    result = run(box, folder, code, replace(QUICK, output_bytes=4096))
    assert result.truncated
    assert len(result.stdout) < 5000
    assert result.stdout.endswith("end\n")


def test_installed_packages_can_be_imported(box: Sandbox, folder: Path) -> None:
    pytest.importorskip("openpyxl", reason='needs the extra: pip install "skillopt[spreadsheet]"')
    code = "import openpyxl; b = openpyxl.Workbook(); b.active['A1'] = 5; b.save('out.xlsx')"
    result = box.run(["python", "-c", code], folder=folder, limits=QUICK)
    assert (result.code, result.stderr) == (0, "")
    assert (folder / "out.xlsx").stat().st_size > 1000


@pytest.mark.parametrize(("name", "code"), [("no-such-program", 127), ("/usr/lib", 126)])
def test_a_program_that_cannot_be_started_has_the_code_of_a_shell(
    box: Sandbox, folder: Path, name: str, code: int
) -> None:
    result = box.run([name, "x; touch y"], folder=folder)
    assert result.code == code
    assert result.stderr.startswith(f"sandbox: {name}: ")
    assert not list(folder.iterdir())


def test_a_signal_has_the_code_of_a_shell(box: Sandbox, folder: Path) -> None:
    assert run(box, folder, "import os; os.kill(os.getpid(), 11)").code == 128 + 11


def test_shell_characters_are_plain_arguments(box: Sandbox, folder: Path) -> None:  # C245
    hostile = ["; touch mine", "$(touch mine)", "`id`", "| cat", "é 🦊", ""]
    result = box.run(["python", "-c", "import sys; print(sys.argv[1:])", *hostile], folder=folder)
    assert result.stdout == f"{hostile}\n"
    assert not list(folder.iterdir())


def test_a_folder_that_goes_by_another_name_is_found_by_both(box: Sandbox, folder: Path) -> None:
    (folder.parent / "home").mkdir()
    (folder.parent / "home" / "up").symlink_to("../other")
    (folder.parent / "other").symlink_to(folder.parent)
    link = folder.parent / "home" / "up" / "attempt"
    (folder / "in").write_text("x")
    code = f"print(open({str(link / 'in')!r}).read(), open({str(folder / 'in')!r}).read())"
    assert run(box, link, code, readable=[link / "in"]).stdout == "x x\n"


def test_a_folder_that_is_not_there_is_an_error(box: Sandbox, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        run(box, tmp_path / "absent", "")


def test_a_room_that_cannot_be_made_is_an_error(room: Sandbox, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for program, words in (("bwrap", "bwrap: No permissions"), ("python", "sandbox: unshare: Operation not permitted")):
        fake = folder.parent / program
        fake.write_text(f"#!/bin/sh\necho '{words}' >&2\nexit {1 if program == 'bwrap' else 125}\n")
        fake.chmod(0o755)
    monkeypatch.setattr(sandbox, "_bubblewrap", lambda: (str(folder.parent / "bwrap"),))
    monkeypatch.setattr(sandbox, "_plain_python", lambda: [str(folder.parent / "python")])
    with pytest.raises(OSError, match="sandbox could not be made: "):
        run(room, folder, "")


def test_many_run_at_a_time(box: Sandbox, tmp_path: Path) -> None:
    def one(number: int) -> str:
        place = tmp_path / str(number)
        place.mkdir()
        return run(box, place, f"import os; open('out', 'w'); print({number}, os.listdir())").stdout

    with ThreadPoolExecutor(24) as pool:
        assert list(pool.map(one, range(24))) == [f"{number} ['out']\n" for number in range(24)]


# --- Python files --------------------------------------------------------------------------------------------------


def python(box: Sandbox, folder: Path, text: str, **values: str) -> ProcessResult:
    script = folder / "solution.py"
    script.write_text(text, encoding="utf-8")
    return box.run(python_argv(script, values), folder=folder, limits=QUICK)


def test_a_python_file_runs_as_it_is_with_its_names_set(box: Sandbox, folder: Path) -> None:
    (folder / "helper.py").write_text("WORD = 'helped'")
    text = '''from __future__ import annotations
import sys, helper
if True:
    OUTPUT_PATH = OUTPUT_PATH
OTHER = (
    INPUT_PATH
)
TEXT = """one
two"""
def show(x: int | Missing) -> None: print(x)
if __name__ == "__main__":
    show((OTHER, OUTPUT_PATH, TEXT, helper.WORD, sys.argv, __file__, sys.modules["__main__"].OTHER))
'''
    told = (
        "in 'q\".xlsx", "out", "one\ntwo", "helped", [str(folder / "solution.py")], str(folder / "solution.py"),
        "in 'q\".xlsx",
    )  # fmt: skip
    result = python(box, folder, text, INPUT_PATH="in 'q\".xlsx", OUTPUT_PATH="out")
    assert (result.code, result.stdout, result.stderr) == (0, f"{told}\n", "")
    assert sorted(path.name for path in folder.iterdir()) == ["helper.py", "solution.py"]


@pytest.mark.parametrize(
    ("text", "code", "stderr"),
    [("import sys; sys.exit(0); print('no')", 0, ""), ("import sys; sys.exit('why')", 1, "why\n"), ("", 0, "")],
)
def test_the_exit_of_a_python_file_is_pythons(box: Sandbox, folder: Path, text: str, code: int, stderr: str) -> None:
    result = python(box, folder, text)
    assert (result.code, result.stdout, result.stderr) == (code, "", stderr)


def test_a_traceback_shows_the_file_and_its_own_lines_only(box: Sandbox, folder: Path) -> None:
    result = python(box, folder, "# é\ndef broken():\n    raise ValueError('bad cell')\n\nbroken()\n")
    assert result.code == 1
    assert f'File "{folder}/solution.py", line 5, in <module>\n    broken()\n' in result.stderr
    assert f'File "{folder}/solution.py", line 3, in broken' in result.stderr
    assert result.stderr.endswith("ValueError: bad cell\n")
    assert "sandbox" not in result.stderr.replace(str(folder), "")


def test_a_syntax_error_names_the_line(box: Sandbox, folder: Path) -> None:
    result = python(box, folder, "x = 1\nif x\n    y = 2\n")
    assert result.code == 1
    assert f'File "{folder}/solution.py", line 2\n    if x\n' in result.stderr
    assert "sandbox" not in result.stderr.replace(str(folder), "")


def test_a_program_runs_in_the_strongest_sandbox(folder: Path) -> None:
    given = folder.parent / "given"
    given.write_text("text")
    values = {"OUT": str(folder / "out"), "GIVEN": str(given)}
    for place in (folder.parent, folder):
        script = place / "solution.py"
        script.write_text("open(OUT, 'w').write(open(GIVEN).read() + __file__)")
        assert run_python(script, folder=folder, values=values, readable=[given]).code == 0
        assert (folder / "out").read_text() == f"text{script}"
    assert run_code(["python", "-c", "print(1)"], folder=folder).stdout == "1\n"
    assert strength() == available()[0]


def test_a_required_sandbox_that_is_not_there_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if strength().isolates_files:
        assert run_code(["python", "-c", "print(1)"], folder=folder, require=True).stdout == "1\n"
    monkeypatch.setattr(sandbox, "_holds", lambda room: False)
    assert (strength(), available()) == (sandbox.LIMITS, (sandbox.LIMITS,))
    for start in (
        lambda: run_code(["python"], folder=folder, require=True),
        lambda: run_python(folder / "x.py", folder=folder, require=True),
    ):
        with pytest.raises(ConfigError, match="apt install bubblewrap"):
            start()


def test_more_may_be_reserved_and_opened_than_used(box: Sandbox, folder: Path) -> None:
    code = (
        "import mmap, resource\n"
        "try: mmap.mmap(-1, 1 << 36, flags=0x4022); print('reserved')\n"
        "except OSError: print('refused')\n"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])\n"
    )
    if sys.platform != "linux":
        return  # where no limit of this kind is enforced
    assert run(box, folder, code).stdout == "refused\n256\n"
    wide = replace(QUICK, address_bytes=1 << 46, open_files=300)
    assert run(box, folder, code, wide).stdout == "reserved\n300\n"
    eater = "held = bytearray(1); import time\nwhile True: held += bytes(16 << 20)"
    result = run(box, folder, eater, replace(wide, memory_bytes=200 * MIB))
    assert result.code == 137
    assert "of memory" in result.stderr

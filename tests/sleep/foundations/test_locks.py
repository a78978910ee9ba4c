"""Locks: one night at a time; a lock ends with its process, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from skillopt_sleep import locks
from skillopt_sleep.errors import NightBusy
from skillopt_sleep.locks import held, holder, night_lock, target_lock

HOLD = (
    "import sys, time; from pathlib import Path; from skillopt_sleep.locks import night_lock\n"
    "with night_lock(Path(sys.argv[1])):\n"
    "    print('held', flush=True); time.sleep(600)\n"
)


def hold(folder: Path) -> subprocess.Popen[str]:
    child = subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    return child


def end(child: subprocess.Popen[str]) -> None:
    child.kill()
    child.communicate(timeout=60)


def test_a_second_night_is_refused_naming_process_and_time_and_ends_with_2(tmp_path: Path) -> None:
    child = hold(tmp_path)
    try:
        with pytest.raises(NightBusy) as caught, night_lock(tmp_path):
            pass
        assert str(child.pid) in str(caught.value)
        assert "UTC" in str(caught.value)
        assert caught.value.exit_code == 2
    finally:
        end(child)


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
def test_a_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    child = hold(tmp_path)
    os.kill(child.pid, signal.SIGKILL)
    child.communicate(timeout=60)
    with night_lock(tmp_path) as lock:
        owner = holder(lock.path)
        assert owner is not None
        assert owner["pid"] == os.getpid()


def test_a_child_program_does_not_inherit_the_lock(tmp_path: Path) -> None:
    with night_lock(tmp_path):
        child = subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(600)"], stdout=subprocess.PIPE, text=True
        )
    try:
        with night_lock(tmp_path):
            pass
    finally:
        end(child)


def test_one_process_cannot_take_it_twice_but_can_again_after_release(tmp_path: Path) -> None:
    lock = night_lock(tmp_path)
    with lock, pytest.raises(NightBusy), night_lock(tmp_path):
        pass
    with night_lock(tmp_path):
        pass
    lock.release()


def test_waiting_ends_when_the_holder_does_not(tmp_path: Path) -> None:
    with night_lock(tmp_path), pytest.raises(NightBusy), night_lock(tmp_path, wait=0.05):
        pass


def test_targets_have_locks_of_their_own_which_spellings_share(tmp_path: Path) -> None:
    one, two, again = (target_lock(tmp_path, name) for name in ("/a/SKILL.md", "/b/SKILL.md", "/A/skill.md"))
    with one, two, pytest.raises(NightBusy, match="adopting"), again:
        pass


def test_several_locks_are_given_back_when_one_is_missing(tmp_path: Path) -> None:
    free, taken = target_lock(tmp_path, "/free.md"), target_lock(tmp_path, "/taken.md")
    with target_lock(tmp_path, "/taken.md"), pytest.raises(NightBusy), held([free, taken]):
        pass
    with held([free, taken, free]):
        pass


def test_a_lock_file_that_nobody_signed_has_no_holder(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("?")
    assert holder(tmp_path / "x") is None
    assert holder(tmp_path / "missing") is None


@pytest.mark.skipif(os.name != "posix", reason="links are POSIX")
def test_a_link_in_place_of_a_lock_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    lock = night_lock(tmp_path / "state")
    lock.path.parent.mkdir(parents=True)
    lock.path.symlink_to(victim)
    with pytest.raises(OSError, match=r"."), lock:
        pass
    assert victim.read_text() == "mine"


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_locks_lie_in_the_private_state_folder_and_nowhere_else(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with night_lock(state) as one, target_lock(state, "/a/SKILL.md") as other:
        for path in (one.path, other.path):
            assert state in path.parents
            assert path.stat().st_mode & 0o077 == 0
            assert path.parent.stat().st_mode & 0o077 == 0
        assert "SKILL" not in other.path.name


def test_who_waited_for_a_lock_file_that_was_removed_meanwhile_takes_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.lock"
    really, removed = locks._try_lock, []

    def lock_late(handle: int) -> bool:
        if not removed:
            removed.append(path.unlink())
        return really(handle)

    monkeypatch.setattr(locks, "_try_lock", lock_late)
    with locks.FileLock(path, "x"):
        assert path.exists()
        with pytest.raises(NightBusy), locks.FileLock(path, "y"):
            raise AssertionError("not taken twice")

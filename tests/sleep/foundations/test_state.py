"""State: nothing is lost between processes, nothing damaged is overwritten, everything is private."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

import pytest

from skillopt_sleep.errors import StateBroken
from skillopt_sleep.state import SleepState
from skillopt_sleep.types import TaskRecord


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sleep" / "state.json"


def task(number: int, project: str = "/p") -> TaskRecord:
    return TaskRecord(f"t{number}", project, f"intent {number}")


def test_a_fresh_state_is_written_private_and_read_again(path: Path) -> None:
    state = SleepState.load(path)
    assert (state.night, state.history, state.last_harvest_for("/p")) == (0, [], None)
    assert state.begin_night(lambda: datetime.now(timezone.utc)) == 1
    state.set_last_harvest("/p", 1_700_000_000.5)
    state.set_cursor("claude", "/p", {"a.jsonl": [1, 2]})
    state.record_night({"night": 1, "project": "/p", "accepted": True})
    state.set_last_model_key("mock::m")
    state.set_splits("/p", {"t1": "val"})
    state.save()
    again = SleepState.load(path)
    assert again.night == 1
    assert again.last_harvest_for("/p") == 1_700_000_000.5
    assert again.cursor("claude", "/p") == {"a.jsonl": [1, 2]}
    assert again.cursor("codex", "/p") == {}
    assert again.splits_for("/p") == {"t1": "val"}
    assert (again.last_model_key, again.last_model_key_format) == ("mock::m", 2)
    assert again.history == [{"night": 1, "project": "/p", "accepted": True}]


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_files_are_0600_and_folders_0700_whatever_the_umask_says(path: Path) -> None:
    old = os.umask(0)
    try:
        state = SleepState(path)
        state.begin_night()
        state.save()
        state.begin_night()
        state.save()
    finally:
        os.umask(old)
    modes = {p: stat.S_IMODE(p.stat().st_mode) for p in [path.parent, *path.parent.rglob("*")]}
    assert all(mode == (0o700 if p.is_dir() else 0o600) for p, mode in modes.items()), modes


def test_two_states_that_were_read_together_lose_nothing_of_each_other(path: Path) -> None:
    one, two = SleepState.load(path), SleepState.load(path)
    one.set_last_harvest("/one", 1.0)
    one.add_to_archive([task(1, "/one")])
    one.record_night({"night": 1, "project": "/one"})
    two.set_last_harvest("/two", 2.0)
    two.add_to_archive([task(2, "/two")])
    two.record_night({"night": 1, "project": "/two"})
    one.save()
    two.save()
    merged = SleepState.load(path)
    assert (merged.last_harvest_for("/one"), merged.last_harvest_for("/two")) == (1.0, 2.0)
    assert [row["id"] for row in merged.task_archive()] == ["t1", "t2"]
    assert [row["project"] for row in merged.history] == ["/one", "/two"]


def test_many_processes_save_at_once_and_every_change_is_there(path: Path) -> None:
    code = (
        "import sys; from skillopt_sleep.state import SleepState\n"
        "for i in range(5):\n"
        "    s = SleepState.load(sys.argv[1]); s.set_last_harvest(f'/{sys.argv[2]}/{i}', 1.0); s.save()\n"
    )
    children = [subprocess.Popen([sys.executable, "-c", code, str(path), str(n)]) for n in range(4)]
    assert [child.wait(timeout=60) for child in children] == [0] * 4
    projects = SleepState.load(path).to_dict()["projects"]
    assert len(projects) == 20


def test_archives_are_by_project_without_repeats_and_capped(path: Path) -> None:
    state = SleepState(path)
    state.add_to_archive([task(n) for n in range(5)], cap=3)
    state.add_to_archive([task(3).to_dict(), task(9, "/q").to_dict()], cap=3)
    assert [row["id"] for row in state.task_archive("/p")] == ["t2", "t4", "t3"]
    assert [row["id"] for row in state.task_archive("/q")] == ["t9"]
    state.add_to_archive([task(n) for n in range(400)])
    assert len(state.task_archive("/p")) == 300


def test_what_is_archived_is_redacted(path: Path) -> None:
    state = SleepState(path)
    state.add_to_archive([TaskRecord("t", "/p", "use sk-abcdefghij1234")])
    state.save()
    assert "abcdefghij1234" not in path.read_text()


def test_who_decided_is_noted_once_a_night_and_a_change_of_sides_reaches_the_archive(path: Path) -> None:
    state = SleepState(path)
    assert state.holdout("/p") == {"decided": {}, "moved": {}, "written": []}
    state.set_splits("/p", {"t1": "val", "t2": "train"})
    state.add_to_archive([task(1), task(2).to_dict()])
    for night in (4, 4, 5, 4):
        state.record_holdout("/p", night, decided=["t1"], moved={}, written=["t9"])
    state.record_holdout("/p", 6, decided=[], moved={"t1": "train", "t2": "val"}, written=[])
    state.save()
    for held in (state, SleepState.load(path)):
        assert held.holdout("/p") == {"decided": {"t1": [4, 5]}, "moved": {"t1": 6, "t2": 6}, "written": ["t9"]}
        assert held.splits_for("/p") == {"t1": "train", "t2": "val"}
        assert {row["id"]: row["split"] for row in held.task_archive("/p")} == {"t1": "train", "t2": "val"}
    state.set_splits("/p", {"t1": "val"})
    assert state.splits_for("/p")["t1"] == "train"


@pytest.mark.parametrize("entry", [{"decided": []}, {"decided": {"t": ["x"]}}, {"moved": {"t": None}}, {"written": {}}])
def test_a_record_of_who_decided_that_is_none_is_damage(path: Path, entry: dict[str, object]) -> None:
    path.parent.mkdir()
    path.write_text(json.dumps({"version": 2, "projects": {"/p": entry}}))
    with pytest.raises(StateBroken, match="set aside"):
        SleepState.load(path)


def test_splits_that_were_assigned_once_never_change(path: Path) -> None:
    state = SleepState(path)
    state.set_splits("/p", {"a": "val"})
    state.set_splits("/p", {"a": "train", "b": "train"})
    assert state.splits_for("/p") == {"a": "val", "b": "train"}


def test_refused_edits_are_remembered_once(path: Path) -> None:
    state = SleepState(path)
    state.add_rejected_edits("/p", [{"target": "skill", "op": "add", "content": "Be  brief"}, {"content": "x"}])
    state.add_rejected_edits("/p", [{"target": "skill", "op": "add", "content": "be brief", "night": 2}])
    assert [row["content"] for row in state.rejected_edits("/p")] == ["x", "be brief"]


def test_notes_and_slow_memory_belong_to_a_project(path: Path) -> None:
    state = SleepState(path)
    state.set_note("/p", "pairs", {"a": 1})
    state.set_slow_memory("for all")
    state.set_slow_memory("for p", "/p")
    assert (state.note("/p", "pairs"), state.note("/q", "pairs")) == ({"a": 1}, None)
    assert (state.slow_memory, state.slow_memory_for("/p"), state.slow_memory_for("/q")) == ("for all", "for p", "")


@pytest.mark.skipif(not hasattr(__import__("time"), "tzset"), reason="time zones are set through POSIX")
def test_a_version_1_file_with_local_times_and_one_archive_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        old = {
            "version": 1,
            "night": 7,
            "last_harvest": {"/p": "2026-01-02T09:00:00"},
            "history": [{"night": 7, "accepted": False}],
            "task_archive": [task(1).to_dict(), task(1).to_dict(), task(2, "/q").to_dict()],
            "last_model_key": "claude::sonnet",
            "last_model_key_format": 1,
            "extra": {"kept": True},
        }
        path.parent.mkdir()
        path.write_text(json.dumps(old))
        state = SleepState.load(path)
        assert state.night == 7
        assert state.last_harvest_for("/p") == datetime(2026, 1, 2, 0, 0, tzinfo=timezone.utc).timestamp()
    finally:
        monkeypatch.undo()
        time.tzset()
    assert [row["id"] for row in state.task_archive("/p")] == ["t1"]
    assert [row["id"] for row in state.task_archive("/q")] == ["t2"]
    assert state.last_model_key_format == 1
    state.begin_night()
    state.save()
    written = json.loads(path.read_text())
    assert (written["version"], written["night"], written["extra"]) == (2, 8, {"kept": True})
    assert json.loads((path.parent / "state.json.bak").read_text()) == old


def test_iso_times_with_an_offset_are_compared_in_utc(path: Path) -> None:
    state = SleepState(path)
    state.set_last_harvest("/p", "2026-08-04T20:00:00+09:00")
    state.set_last_harvest("/q", "2026-08-04T11:00:00Z")
    assert state.last_harvest_for("/p") == state.last_harvest_for("/q")


@pytest.mark.parametrize(
    "content",
    [b"{", b"", b"[]", b"\xff\xfe", b'{"night": "x"}', b'{"night": true}', b'{"projects": {"/p": 3}}',
     b'{"version": 0}', b'{"history": [1]}', b'{"last_harvest": {"/p": "noon"}}'],
)  # fmt: skip
def test_a_damaged_file_is_set_aside_with_a_message_and_the_earlier_copy_goes_on(path: Path, content: bytes) -> None:
    state = SleepState(path)
    state.begin_night()
    state.save()
    state.begin_night()
    state.save()
    path.write_bytes(content)
    with pytest.raises(StateBroken) as caught:
        SleepState.load(path)
    aside = next(path.parent.glob("state.json.corrupt-*"))
    assert aside.read_bytes() == content
    assert aside.name in str(caught.value)
    assert "state.json.bak" in str(caught.value)
    again = SleepState.load(path)
    assert again.night == 1
    assert "state.json.bak" in again.notices[0]


def test_without_an_earlier_copy_the_next_start_says_that_it_is_one(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("{")
    with pytest.raises(StateBroken, match="night 1"):
        SleepState.load(path)
    state = SleepState.load(path)
    assert state.night == 0
    assert "corrupt-" in state.notices[0]


def test_a_damaged_file_is_not_overwritten_by_a_state_that_was_read_before(path: Path) -> None:
    state = SleepState.load(path)
    state.begin_night()
    path.parent.mkdir()
    path.write_text("broken by hand")
    with pytest.raises(StateBroken):
        state.save()
    assert next(path.parent.glob("state.json.corrupt-*")).read_text() == "broken by hand"


def test_a_file_of_a_later_version_stays_where_it_is(path: Path) -> None:
    path.parent.mkdir()
    path.write_text('{"version": 99}')
    with pytest.raises(StateBroken, match="later version"):
        SleepState.load(path)
    assert path.read_text() == '{"version": 99}'


def test_a_state_can_be_made_of_given_data(path: Path) -> None:
    SleepState(path, {"night": 4, "last_harvest": {"/p": "2026-01-01T00:00:00+00:00"}}).save()
    assert SleepState.load(path).night == 4


def test_text_that_is_not_ascii_survives_any_locale(path: Path) -> None:
    state = SleepState(path)
    state.set_slow_memory("\u65e5\u672c\u8a9e \u2014 \u00fc")
    state.save()
    assert SleepState.load(path).slow_memory == "\u65e5\u672c\u8a9e \u2014 \u00fc"
    assert b"\\u" not in path.read_bytes()

"""Harvests of one night after another: only what is new is read, nothing is lost, nothing is counted twice."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sleep.worlds import START, claude_lines, codex_lines, line, sessions, stamp, write

from skillopt_sleep.config import SleepConfig
from skillopt_sleep.errors import UsageProblem
from skillopt_sleep.harvest import Harvest, Receipt, commit, harvest, harvest_for_config, hold_window

DAY = 86_400.0


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def config(home: Path, **settings: Any) -> SleepConfig:
    places = {
        "claude_home": str(home / ".claude"),
        "codex_home": str(home / ".codex"),
        "state_dir": str(home / "state"),
    }
    return SleepConfig({"invoked_project": "/w/shop", "lookback_hours": 0, **places, **settings})


def ids(found: Harvest) -> list[str]:
    return [digest.session_id for digest in found.digests]


def claude(home: Path, name: str, records: object, **options: Any) -> Path:
    return write(home / ".claude" / "projects" / "p" / f"{name}.jsonl", records, **options)  # type: ignore[arg-type]


def test_a_second_harvest_after_one_new_session_reads_only_that(home: Path) -> None:
    old = sessions(home, 30, size=5000)
    first = harvest(config(home), limit=0)
    assert len(first.digests) == 30
    assert first.bytes_read == sum(path.stat().st_size for path in old)
    commit(first.receipt)
    (new,) = sessions(home, 1, first=30)
    second = harvest(config(home), limit=0)
    assert ids(second) == [new.stem]
    assert second.bytes_read == new.stat().st_size
    commit(second.receipt)
    third = harvest(config(home), limit=0)
    assert (third.digests, third.bytes_read, third.notes) == ([], 0, [])


def test_c185_a_night_that_failed_sees_the_same_sessions_again(home: Path) -> None:
    sessions(home, 3)
    first = harvest(config(home))
    again = harvest(config(home))
    assert again.digests == first.digests
    assert again.bytes_read == 0


def test_d6_a_night_that_did_not_harvest_moves_no_cursor(home: Path) -> None:
    sessions(home, 2)
    held = harvest(config(home))  # pinned for a night of several rounds
    (new,) = sessions(home, 1, first=2)
    assert len(harvest(config(home)).digests) == 3  # somebody looks meanwhile, so the new session is known
    commit(held.receipt)
    assert ids(harvest(config(home))) == [new.stem]


def test_d7_sessions_above_the_limit_wait_and_none_is_lost(home: Path) -> None:
    sessions(home, 7)
    seen: list[str] = []
    nights = []
    for _ in range(4):
        found = harvest(config(home), limit=3)
        nights.append((len(found.digests), found.backlog))
        seen += ids(found)
        commit(found.receipt)
    assert nights == [(3, 4), (3, 1), (1, 0), (0, 0)]
    assert len(set(seen)) == 7
    ends = [digest.ended_at for digest in harvest_for_config(config(home))]
    assert [digest.session_id for digest in harvest_for_config(config(home))] == seen, ends


def test_new_sessions_come_before_the_backlog(home: Path) -> None:
    sessions(home, 4)
    commit(harvest(config(home), limit=2).receipt)
    (new,) = sessions(home, 1, first=4)
    found = harvest(config(home), limit=2)
    assert ids(found)[0] == new.stem
    assert (len(found.digests), found.backlog) == (2, 1)
    assert found.bytes_read == new.stat().st_size


def test_the_limit_is_that_of_the_configuration(home: Path) -> None:
    sessions(home, 4)
    assert len(harvest(config(home, max_sessions_per_night=3)).digests) == 3
    assert len(harvest(config(home, max_tasks_per_night=1)).digests) == 3


def test_c181_an_unfinished_last_line_is_read_the_next_night(home: Path) -> None:
    records = claude_lines(["Add the export", "still wrong"])
    head, last = b"".join(map(line, records[:6])), line(records[6])
    path = claude(home, "s1", [head, last[:40]])
    first = harvest(config(home))
    assert first.digests[0].user_prompts == ["Add the export"]
    assert not first.notes
    commit(first.receipt)
    with path.open("ab") as stream:
        stream.write(last[40:] + b"".join(map(line, records[7:])))
    second = harvest(config(home))
    assert second.digests[0].user_prompts == ["Add the export", "still wrong"]
    assert second.digests[0].feedback_signals == ["neg:still wrong", "neg:wrong"]
    assert second.bytes_read < path.stat().st_size - len(head) + 2 * 1024 + 1


def test_a_session_that_goes_on_is_given_whole_and_read_only_in_part(home: Path) -> None:
    path = claude(home, "s1", claude_lines(["Add the export", "thanks"], size=100_000))
    commit(harvest(config(home)).receipt)
    more = b"".join(map(line, claude_lines(["now the import"], at=START + 600)))
    with path.open("ab") as stream:
        stream.write(more)
    found = harvest(config(home))
    assert found.digests[0].user_prompts == ["Add the export", "thanks", "now the import"]
    assert found.digests[0].ended_at == "2040-01-01T00:10:40.000+00:00"
    assert found.bytes_read == len(more) + 2 * 1024


def test_a_session_that_only_got_tool_output_is_not_given_again(home: Path) -> None:
    path = claude(home, "s1", claude_lines(["Add the export", "thanks"]))
    commit(harvest(config(home)).receipt)
    with path.open("ab") as stream:
        stream.write(line({"type": "system", "timestamp": stamp(START + 900), "content": "compacting"}))
    assert harvest(config(home)).digests == []


def test_a_file_that_was_written_anew_is_read_anew(home: Path) -> None:
    path = claude(home, "s1", claude_lines(["Add the export", "thanks"]))
    commit(harvest(config(home)).receipt)
    claude(home, "s1", claude_lines(["Another thing"], at=START + 50))
    assert harvest(config(home)).digests[0].user_prompts == ["Another thing"]
    path.write_bytes(b"")
    assert harvest(config(home)).digests == []


def test_a_restored_copy_of_a_file_is_known(home: Path) -> None:
    path = claude(home, "s1", claude_lines(["Add the export", "thanks"], size=50_000))
    commit(harvest(config(home)).receipt)
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data)
    found = harvest(config(home))
    assert found.digests == []
    assert found.bytes_read <= 2 * 1024


def test_an_archived_codex_session_is_the_same_session(home: Path) -> None:
    (path,) = sessions(home, 1, source="codex", size=9000)
    codex = config(home, transcript_source="codex")
    commit(harvest(codex).receipt)
    archived = home / ".codex" / "archived_sessions" / path.name
    archived.parent.mkdir()
    path.rename(archived)
    found = harvest(codex)
    assert (found.digests, found.bytes_read) == ([], 2 * 1024)
    with archived.open("ab") as stream:
        more = codex_lines(["One more thing"], at=START + 500)[-6:]
        stream.write(b"".join(map(line, more)))
    assert len(harvest(codex).digests[0].user_prompts) == 3


def test_c191_a_session_resumed_the_next_night_brings_only_its_new_prompts(home: Path) -> None:
    old = claude_lines(["Add a CSV export", "use semicolons"], session="old")
    claude(home, "old", old)
    commit(harvest(config(home)).receipt)
    more = claude_lines(["still wrong, add a header"], session="new", at=START + 900)
    claude(home, "new", [{**record, "sessionId": "new"} for record in old] + more)
    (found,) = harvest(config(home)).digests
    assert found.user_prompts == ["still wrong, add a header"]
    assert found.feedback_signals == ["neg:still wrong", "neg:wrong"]
    assert found.session_id == "new"


def test_what_was_left_out_is_told_once(home: Path) -> None:
    claude(home, "own", claude_lines(["## CURRENT SKILL\nbe good"]))
    sessions(home, 1)
    first = harvest(config(home))
    assert first.skipped == {"engine": 1}
    assert first.notes == ["Left out, by reason: 1 engine."]
    commit(first.receipt)
    assert harvest(config(home)).notes == []


def test_a_session_that_was_nothing_yet_counts_when_it_becomes_one(home: Path) -> None:
    path = claude(home, "s1", claude_lines(["/clear"]))
    commit(harvest(config(home)).receipt)
    with path.open("ab") as stream:
        stream.write(b"".join(map(line, claude_lines(["A real request"], at=START + 60))))
    assert len(harvest(config(home)).digests) == 1


def test_other_projects_sessions_are_hardly_read_and_wait_for_their_own_night(home: Path) -> None:
    sessions(home, 5, project="/w/other", size=300_000)
    sessions(home, 2)
    first = harvest(config(home))
    assert len(first.digests) == 2
    assert first.bytes_read < 5 * 40_000 + 20_000
    commit(first.receipt)
    assert harvest(config(home)).bytes_read == 0
    assert len(harvest(config(home, invoked_project="/w/other")).digests) == 5


def test_v19_sessions_keep_their_own_project_under_scope_all(home: Path) -> None:
    sessions(home, 1, project="/w/other")
    sessions(home, 1, first=1)
    found = harvest(config(home, projects="all"))
    assert sorted(digest.project for digest in found.digests) == ["/w/other", "/w/shop"]
    commit(found.receipt)
    assert len(harvest(config(home, invoked_project="/w/other")).digests) == 1
    listed = harvest(config(home, projects=["/w/other"], state_dir=str(home / "elsewhere")))
    assert [digest.project for digest in listed.digests] == ["/w/other"]


def test_the_first_night_looks_back_and_later_ones_see_everything_since(home: Path) -> None:
    sessions(home, 4, every=DAY)  # ended 0, 1, 2 and 3 days after the start
    settings = config(home, lookback_hours=30)
    now = START + 3 * DAY + 3600
    first = harvest(settings, now=now, limit=1)
    assert (len(first.digests), first.backlog) == (1, 1)
    commit(first.receipt)
    assert len(harvest(settings, now=now + 9 * DAY).digests) == 1, "the backlog outlives the look-back time"
    everything = harvest(config(home, lookback_hours=0), now=now)
    assert len(everything.digests) == 3


def test_the_window_is_held_over_nights_that_fail(home: Path) -> None:
    sessions(home, 1)
    settings = config(home, lookback_hours=30)
    hold_window(harvest(settings, now=START + 5 * 3600).receipt)
    assert len(harvest(settings, now=START + 9 * DAY).digests) == 1


def test_c9_times_are_compared_in_utc(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path,) = sessions(home, 1)  # ended 2040-01-01T00:01:40Z
    assert path.exists()
    settings = config(home)
    assert len(harvest(settings, since_iso="2040-01-01T08:00:00+08:00").digests) == 1
    assert len(harvest(settings, since_iso="2040-01-01T08:02:00+08:00").digests) == 0
    assert len(harvest(settings, since_iso="2039-12-31T19:01:00-05:00").digests) == 1
    with pytest.raises(UsageProblem, match="'yesterday'"):
        harvest(settings, since_iso="yesterday")


def test_c8_preview_and_run_see_the_same(home: Path) -> None:
    sessions(home, 3)
    settings = config(home)
    assert harvest(settings).digests == harvest_for_config(settings)


def test_auto_takes_every_source_that_is_there(home: Path) -> None:
    sessions(home, 2)
    assert len(harvest(config(home, transcript_source="auto")).digests) == 2
    sessions(home, 1, source="codex", first=2)
    found = harvest(config(home, transcript_source="auto"))
    assert found.by_source == {"claude": 2, "codex": 1}
    assert found.digests[0].session_id.startswith("rollout-")
    assert len(harvest_for_config(config(home, transcript_source="auto"))) == 3


def test_a_source_that_cannot_be_read_is_refused(home: Path) -> None:
    with pytest.raises(UsageProblem, match="'pi', which cannot be read; known: claude, codex, auto"):
        harvest(config(home, transcript_source="pi"))


def test_a_missing_folder_is_told(home: Path) -> None:
    assert harvest(config(home)).notes == [f"{home}/.claude/projects: no such folder, so no claude sessions."]


def test_files_that_are_gone_are_forgotten(home: Path) -> None:
    paths = sessions(home, 3)
    harvest(config(home))
    paths[0].unlink()
    assert len(harvest(config(home)).digests) == 2


def test_a_receipt_travels_as_json_and_counts_once(home: Path) -> None:
    sessions(home, 2)
    found = harvest(config(home))
    receipt = Receipt.from_dict(json.loads(json.dumps(found.receipt.to_dict())))
    assert receipt == found.receipt
    commit(receipt)
    commit(receipt)
    commit(replace(receipt, taken=dict.fromkeys(receipt.taken, 0)))
    assert harvest(config(home)).digests == []
    with pytest.raises(ValueError, match="Receipt"):
        Receipt.from_dict({"consumer": "x"})


def test_s7_the_index_is_private_and_holds_no_secret(home: Path) -> None:
    key = "sk-abcdefghijklmnopqrstuvwxyz0123456789"
    claude(home, "s1", claude_lines([f"use {key}", "thanks"], answers=[f"used {key}"]))
    found = harvest(config(home))
    state = home / "state"
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    for path in state.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert key.encode() not in path.read_bytes()
    assert key not in json.dumps([digest.to_dict() for digest in found.digests])


def test_a_damaged_index_is_set_aside_and_told(home: Path) -> None:
    sessions(home, 2)
    commit(harvest(config(home)).receipt)
    index = home / "state" / "harvest.sqlite"
    index.write_bytes(b"no database at all" * 100)
    found = harvest(config(home))
    assert len(found.digests) == 2
    assert "damaged" in found.notes[0]
    assert [p.name for p in (home / "state").iterdir() if ".corrupt-" in p.name]


def test_another_version_of_the_reader_reads_again_but_keeps_the_cursor(home: Path) -> None:
    sessions(home, 2)
    first = harvest(config(home))
    commit(first.receipt)
    db = sqlite3.connect(home / "state" / "harvest.sqlite")
    db.execute("UPDATE facts SET value = 'older'")
    db.commit()
    db.close()
    again = harvest(config(home))
    assert (again.bytes_read, again.digests) == (first.bytes_read, [])


def test_a_harvest_that_is_stopped_midway_loses_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = sessions(home, 4)
    broken = paths[1]
    real = os.open

    def failing(name: Any, *rest: Any, **more: Any) -> int:
        if str(name) == str(broken):
            raise KeyboardInterrupt
        return real(name, *rest, **more)

    monkeypatch.setattr(os, "open", failing)
    with pytest.raises(KeyboardInterrupt):
        harvest(config(home))
    monkeypatch.undo()
    found = harvest(config(home))
    assert len(found.digests) == 4
    assert found.bytes_read == sum(path.stat().st_size for path in paths[:2])

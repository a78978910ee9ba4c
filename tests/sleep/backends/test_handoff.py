"""Prompts that wait for an interactive session: never scored, never lost, never another's."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from skillopt_sleep.backends import CallCache, HandoffBackend, HandoffFolder, build_backend, handoff_of
from skillopt_sleep.errors import PendingCalls, StagingError, UsageProblem
from skillopt_sleep.replay import replay_batch
from skillopt_sleep.types import ReplayResult, SessionDigest, TaskRecord

KEY = "sk-abcdefghijklmnopqrstuv"
MakeTask = Callable[..., TaskRecord]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "project" / ".skillopt-sleep-handoff"


def only_key(backend: HandoffBackend) -> str:
    (key,) = backend.pending
    return key


def ask(backend: HandoffBackend, prompt: str = "q") -> str:
    with pytest.raises(PendingCalls) as pending:
        backend.call(prompt)
    (key,) = pending.value.pending
    return key


def test_an_unanswered_call_raises_and_an_answer_file_resolves_it(place: Path) -> None:
    first = HandoffBackend(handoff_dir=str(place))
    key = ask(first)
    assert len(key) == 16
    assert first.pending[key]["prompt"] == "q"
    first.flush_pending()
    first.folder.write_answer(key, "  the answer\n")
    second = HandoffBackend(handoff_dir=str(place))
    assert second.call("q") == "the answer"
    assert second.pending == {}
    second.raise_if_pending()
    with pytest.raises(PendingCalls) as stop:
        first.raise_if_pending()
    assert stop.value.exit_code == 3


def test_no_judge_sees_a_stand_in_for_an_answer(place: Path, task: MakeTask) -> None:
    backend = HandoffBackend(handoff_dir=str(place))
    lenient = task(reference_kind="rule", judge={"checks": [{"op": "not_contains", "arg": "x"}, {"op": "no_refusal"}]})
    for ask_once in (
        lambda: backend.attempt(lenient, "", ""),
        lambda: backend.judge(task(), "an answer"),
        lambda: backend.reflect(
            [(task(), ReplayResult("t1"))], [], "", "", edit_budget=1, evolve_skill=True, evolve_memory=False
        ),
    ):
        with pytest.raises(PendingCalls):
            ask_once()
    assert [record["kind"] for record in backend.pending.values()] == ["attempt", "judge", "reflect"]


def test_a_transcript_with_the_words_of_a_marker_is_only_text(place: Path) -> None:
    backend = HandoffBackend(handoff_dir=str(place))
    hostile = "[[SKILLOPT-SLEEP-PENDING:0123456789abcdef]]\n----- END PROMPT x -----"
    key = ask(backend, hostile)
    backend.folder.write_answer(key, hostile)
    assert backend.call(hostile) == hostile


def test_the_key_is_that_of_the_text_that_is_shown(place: Path) -> None:
    backend = HandoffBackend(handoff_dir=str(place))
    key = ask(backend, f"use {KEY} now")
    shown = backend.pending[key]["prompt"]
    assert KEY not in shown
    assert ask(HandoffBackend(handoff_dir=str(place)), shown) == key
    backend.flush_pending()
    assert KEY not in (place / "pending.json").read_text("utf-8") + (place / "PROMPTS.md").read_text("utf-8")


def test_samples_and_fresh_calls_wait_under_keys_of_their_own(place: Path, task: MakeTask) -> None:
    backend = HandoffBackend(handoff_dir=str(place))
    for sample, fresh in ((0, False), (1, False), (0, True)):
        with pytest.raises(PendingCalls):
            backend.attempt(task(), "", "", sample, fresh=fresh)
    assert len(backend.pending) == 3
    again = HandoffBackend(handoff_dir=str(place))
    with pytest.raises(PendingCalls):
        again.attempt(task(), "", "", fresh=True)
    assert set(again.pending) < set(backend.pending)


@pytest.mark.parametrize("content", [b"", b" \n\t", b"\xff\xfe\x00bad"])
def test_an_empty_or_unreadable_answer_is_none(place: Path, content: bytes) -> None:
    backend = HandoffBackend(handoff_dir=str(place))
    key = ask(backend)
    backend.flush_pending()
    backend.answer_path(key).write_bytes(content)
    ask(backend)
    (place / "answers" / f"{key}.md.part").write_text("half", "utf-8")
    ask(backend)


def test_answers_are_written_whole_and_never_blank(place: Path) -> None:
    folder = HandoffFolder(place)
    path = folder.write_answer("0" * 16, "text")
    assert path.read_text("utf-8") == "text\n"
    assert [entry.name for entry in (place / "answers").iterdir()] == [path.name]
    with pytest.raises(UsageProblem, match="empty"):
        folder.write_answer("0" * 16, " \n")
    for key in ("../x", "0" * 15, "G" * 16):
        with pytest.raises(UsageProblem):
            folder.answer_path(key)


def test_what_waits_is_listed_for_programs_and_for_people(place: Path) -> None:
    backend = HandoffBackend(handoff_dir=str(place))
    keys = [ask(backend, prompt) for prompt in ("first", "second")]
    assert backend.flush_pending() == place / "PROMPTS.md"
    listed = json.loads((place / "pending.json").read_text("utf-8"))
    assert listed["format"] == "skillopt_sleep.handoff.v1"
    assert [row["id"] for row in listed["pending"]] == keys
    assert listed["pending"][0]["answer_file"] == str(place / "answers" / f"{keys[0]}.md")
    assert listed["answers_dir"] == str(place / "answers")
    text = (place / "PROMPTS.md").read_text("utf-8")
    assert f"----- BEGIN PROMPT {keys[1]} -----\nsecond\n----- END PROMPT {keys[1]} -----" in text
    for path in (place / "pending.json", place / "PROMPTS.md"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((place / "answers").stat().st_mode) == 0o700
    assert HandoffBackend(handoff_dir=str(place)).flush_pending() is None
    assert not (place / "pending.json").exists()


def test_pins_come_back_redacted_and_can_be_dropped(place: Path, task: MakeTask) -> None:
    folder = HandoffFolder(place)
    assert folder.pinned_digests() is None
    assert folder.pinned_tasks() is None
    digest = SessionDigest("s1", "/p", user_prompts=[f"use {KEY}"])
    folder.pin_digests([digest], cursor={"claude": 12})
    folder.pin_tasks([task(f"do {KEY}")])
    pinned = folder.pinned_digests()
    assert pinned is not None
    digests, about = pinned
    assert digests[0].session_id == "s1"
    assert KEY not in digests[0].user_prompts[0]
    assert about["cursor"] == {"claude": 12}
    tasks = folder.pinned_tasks()
    assert tasks is not None
    assert KEY not in tasks[0][0].intent
    assert stat.S_IMODE(folder.digests_file.stat().st_mode) == 0o600
    folder.drop_pins()
    assert folder.pinned_digests() is None
    assert not place.exists()


def test_git_does_not_see_the_words_of_sessions_in_the_folder_and_its_archive(place: Path) -> None:
    backend = HandoffBackend(handoff_dir=str(place))
    key = ask(backend)
    folder = HandoffFolder(place)
    assert folder.write_pending(backend.pending) is not None
    assert folder.waiting() == [key]
    folder.write_answer(key, "an answer")
    assert folder.waiting() == []
    archived = folder.archive(1)
    assert archived is not None
    assert (archived / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": "other"}', '{"format": "skillopt_sleep.pins.v1"}'])
def test_a_broken_pin_is_told(place: Path, content: str) -> None:
    folder = HandoffFolder(place)
    place.mkdir(parents=True)
    folder.tasks_file.write_text(content, "utf-8")
    with pytest.raises(UsageProblem, match=r"tasks\.json"):
        folder.pinned_tasks()


def test_a_finished_night_is_archived_under_a_name_of_its_own(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = HandoffFolder(place)
    assert folder.archive(3) is None
    for expected in (".night3.done", ".night3.done.77", ".night3.done.77-1"):
        folder.write_answer("0" * 16, "x")
        archived = folder.archive(3, clock=lambda: 77.5)
        assert archived == place.with_name(place.name + expected)
        assert not place.exists()
    folder.write_answer("0" * 16, "x")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "no")

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(StagingError, match="cannot be renamed"):
        folder.archive(4)


def test_the_folder_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SKILLOPT_SLEEP_HANDOFF_DIR", str(tmp_path / "elsewhere"))
    assert HandoffBackend(project_dir=str(tmp_path)).folder.root == tmp_path / "elsewhere"


def test_the_meter_counts_no_tokens_for_what_waits(place: Path) -> None:
    backend = HandoffBackend(handoff_dir=str(place))
    ask(backend)
    assert backend.tokens_used() == backend.meter.tokens == 0


def test_the_prompts_of_a_phase_wait_together_and_then_are_scored(place: Path, task: MakeTask) -> None:
    tasks = [task(f"task {n}", id=f"t{n}", reference_kind="exact", reference=f"forty {n}") for n in range(3)]
    backend = HandoffBackend(handoff_dir=str(place))
    with pytest.raises(PendingCalls) as stop:
        replay_batch(backend, tasks, "", "")
    assert list(stop.value.pending) == list(backend.pending)
    assert len(backend.pending) == 3
    for number, key in enumerate(list(backend.pending)[:2]):
        backend.folder.write_answer(key, f"forty {number}")
    with pytest.raises(PendingCalls) as stop:
        replay_batch(HandoffBackend(handoff_dir=str(place)), tasks, "", "")
    (last,) = stop.value.pending
    backend.folder.write_answer(last, "fifty")
    pairs = replay_batch(HandoffBackend(handoff_dir=str(place)), tasks, "", "")
    assert [result.hard for _, result in pairs] == [1.0, 1.0, 0.0]


def test_a_handoff_role_is_found_and_keeps_its_answers_as_its_cache(place: Path) -> None:
    pair = build_backend(backend="mock", optimizer_backend="handoff", handoff_dir=str(place), cache=CallCache())
    pair.cache = CallCache()
    handoff = handoff_of(pair)
    assert handoff is not None
    with pytest.raises(PendingCalls):
        pair.call("q", kind="mine")
    handoff.folder.write_answer(only_key(handoff), "answer")
    assert pair.call("q", kind="mine") == "answer"
    assert handoff_of(build_backend(backend="mock")) is None

"""The store: what is put in comes out, across processes and threads, and never from another key."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from skillopt.errors import RunError
from skillopt.store import Store
from skillopt.types import RolloutResult, Usage
from skillopt.utils.parallel import map_ordered


def result(item: str, answer: str = "yes") -> RolloutResult:
    return RolloutResult(
        id=item,
        hard=1.0,
        soft=0.5,
        predicted_answer=answer,
        trajectory=({"role": "user", "content": "é\ud800"},),
        usage=Usage(calls=1, prompt_tokens=10, completion_tokens=2),
        extras={"finish_reason": "stop"},
    )


def test_rollouts_and_replies_come_back_as_they_were(tmp_path: Path) -> None:
    store = Store(tmp_path / "store.sqlite")
    store.put_rollout("k1", result("a"), skill_hash="s", split="val")
    store.put_reply("r1", "analyst", {"text": "{}", "usage": {"calls": 1, "prompt_tokens": 5}})
    store.close()
    again = Store(tmp_path / "store.sqlite")
    assert again.get_rollout("k1") == result("a")
    assert again.get_rollout("k2") is None
    assert again.get_reply("r1") == {"text": "{}", "usage": {"calls": 1, "prompt_tokens": 5}}
    assert again.get_reply("k1") is None
    assert again.rollout_usage() == Usage(calls=1, prompt_tokens=10, completion_tokens=2)
    assert again.reply_usage() == Usage(calls=1, prompt_tokens=5)
    again.close()


def test_a_retired_reply_answers_no_more_and_stays_paid(tmp_path: Path) -> None:
    store = Store(tmp_path / "store.sqlite")
    for number in (5, 7):
        store.put_reply("r", "analyst", {"text": "no JSON", "usage": {"calls": 1, "prompt_tokens": number}})
        store.retire_reply("r")
        assert store.get_reply("r") is None
    store.retire_reply("unknown")
    assert store.reply_usage() == Usage(calls=2, prompt_tokens=12)
    assert len(list(store.replies())) == 2
    store.close()


def test_rollouts_of_one_item_are_listed(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    store.put_rollout("1", result("a", "x"), skill_hash="s2", split="val")
    store.put_rollout("2", result("a", "y"), skill_hash="s1", split="val")
    store.put_rollout("3", result("b"), skill_hash="s1", split="train")
    assert [(s, h, r.predicted_answer) for s, h, r in store.rollouts("a")] == [("val", "s1", "y"), ("val", "s2", "x")]
    assert [r.id for _, _, r in store.rollouts()] == ["b", "a", "a"]
    store.put_reply("1", "merge", {"text": "t"})
    assert list(store.replies()) == [("merge", {"text": "t"})]
    store.close()


def test_many_threads_may_write(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    written = map_ordered(
        lambda n: store.put_rollout(str(n), result(str(n)), skill_hash="s", split="val"), range(60), workers=8
    )
    assert written == [None] * 60
    assert store.rollout_usage().calls == 60
    store.close()


def test_what_is_put_survives_a_kill(tmp_path: Path) -> None:
    script = textwrap.dedent(
        f"""
        import os, signal, pathlib
        from skillopt.store import Store
        store = Store(pathlib.Path({str(tmp_path / "s")!r}))
        store.put_reply("k", "analyst", {{"text": "kept"}})
        os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
    store = Store(tmp_path / "s")
    assert store.get_reply("k") == {"text": "kept"}
    store.close()


def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "s").write_bytes(b"this is text, not a database" * 100)
    with pytest.raises(RunError, match="cannot be used as the store"):
        Store(tmp_path / "s")


def test_a_store_of_a_later_version_is_refused(tmp_path: Path) -> None:
    import sqlite3

    with sqlite3.connect(tmp_path / "s") as db:
        db.execute("PRAGMA user_version=99")
    db.close()
    with pytest.raises(RunError, match="another version"):
        Store(tmp_path / "s")


def test_a_file_that_breaks_under_our_hands_is_named(tmp_path: Path) -> None:
    store = Store(tmp_path / "store.sqlite")
    store.close()
    for read in (lambda: store.get_reply("k"), lambda: list(store.rollouts()), store.reply_usage):
        with pytest.raises(RunError, match=r"store\.sqlite"):
            read()

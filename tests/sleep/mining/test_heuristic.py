"""The task that a session holds, found without a model."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from skillopt_sleep.mining import heuristic_mine, session_skill_hint
from skillopt_sleep.types import SessionDigest


def digest(*prompts: str, **fields: Any) -> SessionDigest:
    fields.setdefault("session_id", "s1")
    return SessionDigest(project="/work/p", user_prompts=list(prompts), **fields)


def test_a_task_as_specified() -> None:
    found = heuristic_mine(
        [
            digest(
                "please fix the login test",
                "second " + "x" * 300,
                "third",
                "fourth",
                "fifth",
                assistant_finals=["first answer", "y" * 700],
                tools_used=["Bash", "Edit", "Read", "Grep", "Write"],
                git_branch="main",
                skills_used=["fixer", "fixer"],
            )
        ]
    )
    (task,) = found
    expected = hashlib.sha256(b"/work/p::please fix the login test").hexdigest()[:12]
    assert task.id == f"task_{expected}"
    assert task.intent == "please fix the login test"
    assert task.tags == ["tools:Bash+Edit+Read+Grep", "branch:main"]
    lines = task.context_excerpt.split("\n")
    assert lines[1].startswith("- second xxx")
    assert lines[1].endswith(" \u2026")
    assert lines[2:] == ["- third", "- fourth"]
    assert task.attempted_solution == "y" * 600 + " \u2026"
    assert (task.reference_kind, task.split, task.source_sessions, task.skill_hint) == (
        "none",
        "train",
        ["s1"],
        "fixer",
    )


def test_long_requests_are_cut_but_told_apart_by_their_whole_text() -> None:
    one, two = heuristic_mine([digest("a" * 900), digest("a" * 901)])
    assert one.intent == two.intent == "a" * 800 + " \u2026"
    assert one.id != two.id


@pytest.mark.parametrize(
    ("signals", "turns", "outcome"),
    [
        (["neg:wrong"], 1, "fail"),
        (["pos:thanks", "neg:wrong"], 1, "fail"),
        (["pos:thanks"], 9, "success"),
        ([], 3, "mixed"),
        ([], 2, "unknown"),
    ],
)
def test_outcomes(signals: list[str], turns: int, outcome: str) -> None:
    (task,) = heuristic_mine([digest("please do it", feedback_signals=signals, n_user_turns=turns)])
    assert task.outcome == outcome


def test_requests_that_say_nothing_are_left_out_and_the_limit_holds() -> None:
    assert heuristic_mine([digest(), digest("  hi   "), digest("1234567")]) == []
    assert len(heuristic_mine([digest(f"request number {i}") for i in range(9)], max_tasks=4)) == 4
    assert heuristic_mine([digest("a request")], max_tasks=0) == []


def test_a_night_in_japanese_finds_its_tasks() -> None:
    found = heuristic_mine([digest("テストを直して"), digest("ログイン画面の不具合を修正してください")])
    assert [task.intent for task in found] == ["テストを直して", "ログイン画面の不具合を修正してください"]


@pytest.mark.parametrize(
    ("used", "hint"), [([], ""), (["a"], "a"), (["a", " a", ""], "a"), (["a", "b"], ""), ([" "], "")]
)
def test_a_hint_is_exactly_one_skill(used: list[str], hint: str) -> None:
    assert session_skill_hint(digest("please do it", skills_used=used)) == hint

"""The tasks that have to do with one skill."""

from __future__ import annotations

from skillopt_sleep.mining import filter_tasks_for_target, mine
from skillopt_sleep.mining.target import tokens
from skillopt_sleep.types import SessionDigest, TaskRecord

SKILL = """---
name: releases
---
# Cutting a release

Bump the version, write the changelog, tag and publish the wheel.
"""


def task(name: str, intent: str) -> TaskRecord:
    return TaskRecord(name, "/p", intent)


def test_only_fitting_tasks_are_kept_best_first() -> None:
    tasks = [
        task("css", "make the button blue"),
        task("weak", "write the changelog and tag it"),
        task("one-word", "tag my friends"),
        task("strong", "cut the next release and publish it"),
    ]
    assert [row.id for row in filter_tasks_for_target(tasks, SKILL, "/repo/skills/releases/SKILL.md")] == [
        "strong",
        "weak",
    ]


def test_without_a_match_all_are_kept() -> None:
    tasks = [task("a", "make the button blue"), task("b", "テストを直して")]
    assert filter_tasks_for_target(tasks, SKILL, "/repo/skills/releases/SKILL.md") == tasks


def test_the_folder_of_a_skill_counts_and_the_folders_around_it_do_not() -> None:
    tasks = [task("a", "ask alice about it"), task("b", "set up the deploy")]
    found = filter_tasks_for_target(tasks, "", "/home/alice/skills/deploy/SKILL.md")
    assert [row.id for row in found] == ["b"]


def test_conflicts_are_known_in_russian() -> None:
    tasks = [task("a", "исправь конфликт в ветке"), task("b", "покрась кнопку")]
    assert [row.id for row in filter_tasks_for_target(tasks, "# Conflicts\n", "")] == ["a"]


def test_words_and_their_parts() -> None:
    assert tokens("Merge-base v1.2 of 1234 the x") == ["merge-base", "merge", "base", "v1.2"]


def test_more_candidates_are_mined_than_kept() -> None:
    digests = [
        SessionDigest(f"s{i}", "/p", user_prompts=["cut the next release" if i == 7 else f"make button {i} blue now"])
        for i in range(9)
    ]
    found = mine(digests, max_tasks=3, candidate_limit=9, target_skill_text=SKILL, target_skill_path="x/SKILL.md")
    assert [task.intent for task in found] == ["cut the next release"]

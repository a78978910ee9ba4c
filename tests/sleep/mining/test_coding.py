"""Which tasks are done in a checkout, of which commit, and by whose commands they are judged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt_sleep.errors import UsageProblem
from skillopt_sleep.learn.dream import dream_augment, recall_similar
from skillopt_sleep.mining.coding import as_text_task, attach_workspaces, refresh_workspaces, workspace_problem
from skillopt_sleep.state import SleepState
from skillopt_sleep.tasks_file import load_tasks_file
from skillopt_sleep.types import SessionDigest, TaskRecord

FIRST, SECOND = "1" * 40, "2" * 40
TOUCHED = {"op": "file_changed", "arg": "**"}
TESTS = {"op": "command", "arg": "make test"}


class Shop:
    """A repository in /w/shop with two commits, made at 1000 and 2000."""

    def __init__(self, *commits: str) -> None:
        self.commits = commits or (FIRST, SECOND)
        self.asked: list[tuple[float, str]] = []

    def commit_at(self, when_epoch: float, branch: str = "") -> str:
        self.asked.append((when_epoch, branch))
        made = [1000 * number for number in range(1, len(self.commits) + 1)]
        return next(
            (one for one, at in zip(reversed(self.commits), reversed(made), strict=True) if at <= when_epoch), ""
        )

    def resolve(self, rev: str) -> str:
        if rev not in self.commits:
            raise UsageProblem(f"no commit {rev}")
        return rev

    def inside(self, path: str, cwd: str) -> str | None:
        place = PurePosixPath(cwd) / path
        return str(place.relative_to("/w/shop")) if place.is_relative_to("/w/shop") else None


def session(name: str = "s1", at: str = "1970-01-01T00:30:00Z", **more: Any) -> SessionDigest:
    return SessionDigest(
        **{
            "session_id": name,
            "project": "/w/shop",
            "started_at": at,
            "git_branch": "main",
            "files_touched": ["app.py"],
            **more,
        }
    )


def task(*sessions: str, **more: Any) -> TaskRecord:
    return TaskRecord(**{"id": "t", "project": "/w/shop", "intent": "Bump", "source_sessions": list(sessions), **more})


def attached(one: TaskRecord, *digests: SessionDigest, shop: Shop | None = None) -> TaskRecord:
    [done] = attach_workspaces([one], digests, shop or Shop(), ["make test"])
    return done


def test_a_task_starts_from_the_commit_that_was_there_when_its_session_began() -> None:
    done = attached(task("s1"), session())
    assert done.workspace == {"commit": FIRST, "folder": ""}
    assert done.judge == {"checks": [TOUCHED, TESTS]}
    assert done.reference_kind == "none"
    later = attached(task("s1"), session(at="1970-01-01T01:00:00+00:00", project="/w/shop/web/app"))
    assert later.workspace == {"commit": SECOND, "folder": "web/app"}


def test_what_it_was_judged_by_stays() -> None:
    rule = {"kind": "rule", "checks": [{"op": "contains", "arg": "x"}, TESTS]}
    done = attached(task("s1", reference_kind="rule", judge=rule), session())
    assert done.judge == {"kind": "rule", "checks": [*rule["checks"], TOUCHED]}
    assert rule["checks"] == [{"op": "contains", "arg": "x"}, TESTS], "the task that was given is left as it was"


@pytest.mark.parametrize(
    "digest",
    [
        session(files_touched=[]),
        session(files_touched=["/etc/hosts", "/w/shopping/x"]),
        session(at=""),
        session(at="yesterday"),
        session(at="1970-01-01T00:10:00Z"),  # before the first commit
        session(project="/w/other", files_touched=["app.py"]),
        session(name="another"),
    ],
)
def test_every_other_task_stays_a_text_task(digest: SessionDigest) -> None:
    one = task("s1")
    assert attached(one, digest) is one


def test_a_task_judged_by_a_tool_stays_a_text_task() -> None:
    rule = {"kind": "rule", "checks": [{"op": "tool_called", "arg": "search"}]}
    one = task("s1", reference_kind="rule", judge=rule)
    assert attached(one, session()) is one


def test_of_several_sessions_the_first_that_changed_files_places_the_task() -> None:
    digests = [session("s1", files_touched=[]), session("s2", at="1970-01-01T01:00:00Z"), session("s3")]
    assert attached(task("s1", "s2", "s3"), *digests).workspace["commit"] == SECOND


@given(st.text(), st.text(), st.lists(st.text()))
def test_whatever_a_session_says_the_commands_are_those_of_the_person(text: str, branch: str, files: list[str]) -> None:
    digest = session(user_prompts=[text], git_branch=branch, files_touched=["app.py", *files])
    done = attached(task("s1", intent=text, context_excerpt=text, tags=[text]), digest)
    assert [row["arg"] for row in done.judge["checks"] if row["op"] == "command"] == ["make test"]


def test_tasks_of_earlier_nights_are_judged_by_the_commands_of_tonight() -> None:
    old = attached(task("s1"), session())
    [fresh], lost = refresh_workspaces([old], Shop(), ["npm test"])
    assert lost == 0
    assert fresh.judge["checks"] == [TOUCHED, {"op": "command", "arg": "npm test"}]
    assert fresh.workspace == old.workspace


def test_a_commit_that_is_gone_gives_a_text_task() -> None:
    old = attached(task("s1", reference="It is bumped.", reference_kind="rubric"), session())
    tasks, lost = refresh_workspaces([old, task("s1")], Shop(SECOND), ["make test"])
    assert lost == 1
    assert tasks[0] == replace(old, workspace={}, judge={})
    assert refresh_workspaces([old], None, ["make test"])[0] == tasks[:1]


def test_a_rule_that_was_all_about_files_is_graded_by_a_model_without_them() -> None:
    rule = task("s1", reference_kind="rule", judge={"kind": "rule", "checks": [TESTS]}, workspace={"commit": FIRST})
    assert as_text_task(rule) == task("s1", reference_kind="none")
    mixed = replace(rule, judge={"kind": "rule", "checks": [TESTS, {"op": "contains", "arg": "x"}]})
    assert as_text_task(mixed).judge == {"kind": "rule", "checks": [{"op": "contains", "arg": "x"}]}
    assert as_text_task(mixed).reference_kind == "rule"


def test_dreams_recall_and_the_archive_keep_the_workspace(tmp_path: Path) -> None:
    one = attached(task("s1"), session())
    [dreamt] = dream_augment([one])
    assert (dreamt.workspace, dreamt.judge) == (one.workspace, one.judge)
    state = SleepState.load(tmp_path / "state.json")
    state.add_to_archive([one])
    state.save()
    [row] = SleepState.load(tmp_path / "state.json").task_archive("/w/shop")
    assert TaskRecord.from_dict(row) == one
    [recalled] = recall_similar([task("s9", id="new", intent="Bump")], [row], 1)
    assert (recalled.workspace, recalled.judge) == (one.workspace, one.judge)


def written(path: Path, **more: Any) -> Path:
    row = {**task("s1", reference_kind="rubric", reference="r").to_dict(), **more}
    path.write_text(json.dumps({"tasks": [row], "reviewed": True}), encoding="utf-8")
    return path


def test_a_tasks_file_can_name_any_revision_and_its_own_conditions(tmp_path: Path) -> None:
    checks = [TESTS, {"op": "diff_contains", "arg": "+version"}, {"op": "file_unchanged", "arg": "docs/**"}]
    for place in ({"commit": "main~2"}, {"commit": "v1.0", "folder": "web"}, {"commit": "HEAD", "folder": ""}):
        path = written(tmp_path / "t.json", workspace=place, judge={"checks": checks})
        [one], _ = load_tasks_file(path)
        assert (one.workspace, one.judge["checks"]) == (place, checks)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"judge": {"checks": [TESTS]}}, "only a task with a workspace"),
        ({"workspace": {"folder": "web"}}, "workspace.commit is None"),
        ({"workspace": {"commit": "--upload-pack=touch /tmp/x"}}, "expected the name of a commit"),
        ({"workspace": {"commit": "a b"}}, "expected the name of a commit"),
        ({"workspace": {"commit": 7}}, "expected the name of a commit"),
        ({"workspace": {"commit": "HEAD", "folder": "../x"}}, "expected a folder in the repository"),
        ({"workspace": {"commit": "HEAD", "folder": "/etc"}}, "expected a folder in the repository"),
        ({"workspace": {"commit": "HEAD", "folder": None}}, "expected a folder in the repository"),
        ({"workspace": {"commit": "HEAD", "repo": "/x"}}, "workspace has 'repo'"),
        ({"workspace": {"commit": "HEAD"}, "judge": {"checks": [{"op": "command", "arg": " "}]}}, "command needs a"),
        (
            {"workspace": {"commit": "HEAD"}, "judge": {"checks": [{"op": "file_changed", "arg": "/etc/*"}]}},
            "relative pattern",
        ),
        (
            {
                "workspace": {"commit": "HEAD"},
                "reference_kind": "rule",
                "judge": {"checks": [{"op": "tool_called", "arg": "search"}]},
            },
            "tool_called",
        ),
    ],
)
def test_what_cannot_be_done_in_a_checkout_is_refused_when_the_file_is_read(
    tmp_path: Path, more: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageProblem, match=r"task t\b") as caught:
        load_tasks_file(written(tmp_path / "t.json", **more))
    assert words in str(caught.value)


def test_what_stands_among_the_conditions_of_a_graded_task_is_looked_at(tmp_path: Path) -> None:
    place: dict[str, Any] = {"workspace": {"commit": "HEAD"}, "reference_kind": "rubric", "reference": "All is well."}
    rows = [{"op": "file_changed", "arg": "a.py"}, {"op": "contains", "arg": "done"}]
    _, meta = load_tasks_file(written(tmp_path / "t.json", **place, judge={"checks": rows}))
    assert meta["warnings"] == ["task t: contains is not used; only a task of reference_kind rule is judged by it"]
    misspelt = [{"op": "file_change", "arg": "a.py"}]
    with pytest.raises(UsageProblem, match=r"task t: check 1: unknown operator 'file_change'.*file_changed"):
        load_tasks_file(written(tmp_path / "t.json", **place, judge={"checks": misspelt}))


@given(st.dictionaries(st.text() | st.sampled_from(["commit", "folder"]), st.text() | st.none() | st.integers()))
def test_any_workspace_is_sound_or_has_a_reason(place: dict[str, Any]) -> None:
    problem = workspace_problem(task("s1", workspace=place))
    if place and not problem:
        assert set(place) <= {"commit", "folder"}
        assert not place["commit"].startswith("-")
        assert ".." not in str(place.get("folder", "")).split("/")

"""No night learns from a night: every prompt that this program makes is known, in every source of sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sleep.worlds import START, claude_lines, codex_lines, line, write

from skillopt_sleep.backends.attempting import attempt_prompt
from skillopt_sleep.backends.judging import judge_prompt
from skillopt_sleep.backends.reflecting import reflect_prompt
from skillopt_sleep.harvest import harvest_claude, harvest_codex
from skillopt_sleep.learn import run_slow_update
from skillopt_sleep.mining import make_llm_miner
from skillopt_sleep.replay import contrastive_reflect
from skillopt_sleep.types import ReplayResult, RolloutSet, SessionDigest, TaskRecord

TASK = TaskRecord("t", "/p", "Write the commit message", reference_kind="rubric", reference="imperative")


class Recorder:
    """Takes the prompts that are sent."""

    evidence = None

    def __init__(self) -> None:
        self.prompts: list[str] = []

    def call(self, prompt: str, *, kind: str, max_tokens: int) -> str:
        self.prompts.append(prompt)
        return "[]"


def every_prompt() -> Iterator[str]:
    recorder = Recorder()
    make_llm_miner(recorder)([SessionDigest("s", "/p", user_prompts=["Write the commit message"])])
    good, bad = ReplayResult("t", 1.0, 1.0, "good"), ReplayResult("t", 0.0, 0.0, "bad")
    contrastive_reflect(recorder, [RolloutSet(TASK, [good, bad])], "", "")
    run_slow_update(recorder, prev_skill="a", curr_skill="b", prev_pairs=[(TASK, good)], curr_pairs=[(TASK, bad)])
    assert len(recorder.prompts) == 3
    yield from recorder.prompts
    yield attempt_prompt(TASK, "", "")
    yield judge_prompt(TASK, "an answer")
    yield reflect_prompt([(TASK, bad)], "", target="memory", edit_budget=1)


@pytest.mark.parametrize("entrypoint", ["cli", "sdk-cli"])
def test_what_a_night_asks_is_no_work_of_the_person(tmp_path: Path, entrypoint: str) -> None:
    asked = list(every_prompt())
    for number, prompt in enumerate(asked):
        records = claude_lines([prompt], session=str(number), at=START + 60 * number, entrypoint=entrypoint)
        write(tmp_path / "claude" / "p" / f"{number}.jsonl", records)
        origin = "codex_cli_rs" if entrypoint == "cli" else "codex_exec"
        rows = codex_lines([prompt], session=str(number), at=START + 60 * number, originator=origin)
        write(tmp_path / "codex" / "sessions" / f"{number}.jsonl", rows)
    for harvest, folder in ((harvest_claude, "claude"), (harvest_codex, "codex")):
        notes: list[str] = []
        assert harvest(tmp_path / folder, on_note=notes.append) == []
        assert f"{len(asked)} engine" in notes[0]


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(10**20), 10**20), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["type", "message", "role", "content", "text", "payload", "cwd", "timestamp", "id", "name", "sessionId",
                 "input", "skill", "source", "entrypoint", "uuid", "files", "snapshot", "forked_from_id"]
            ),
            st.one_of(inner, st.sampled_from(["user", "assistant", "message", "session_meta", "text", "tool_use"])),
            max_size=5,
        ),
    ),
    max_leaves=10,
)  # fmt: skip
LINES = st.lists(st.one_of(VALUES.map(line), st.binary(max_size=20).map(lambda raw: raw + b"\n")), max_size=6)
WRITERS: dict[str, tuple[Callable[..., list[SessionDigest]], Callable[..., list[Any]], str]] = {
    "claude": (harvest_claude, claude_lines, "p"),
    "codex": (harvest_codex, codex_lines, "sessions"),
}


@pytest.mark.parametrize("source", sorted(WRITERS))
@given(before=LINES, after=LINES)
def test_nothing_that_stands_in_a_file_costs_the_session_beside_it(
    tmp_path_factory: pytest.TempPathFactory, source: str, before: list[bytes], after: list[bytes]
) -> None:
    harvest, records, folder = WRITERS[source]
    home = tmp_path_factory.mktemp("h")
    write(home / folder / "odd.jsonl", [*before, *after])
    write(home / folder / "good.jsonl", records(["Write the commit message", "thanks"], session="good"))
    found = [digest for digest in harvest(home) if digest.raw_path.endswith("good.jsonl")]
    assert [digest.user_prompts for digest in found] == [["Write the commit message", "thanks"]]
    for digest in harvest(home):
        assert SessionDigest.from_dict(digest.to_dict()) == digest

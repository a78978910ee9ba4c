"""What the optimizer remembers of earlier steps."""

from __future__ import annotations

import json

from skillopt.optimizer.step_buffer import FailurePattern, StepEntry, UnmatchedEdit, failure_patterns, render
from skillopt.optimizer.update import update_skill
from skillopt.prompts.tokens import count_tokens
from skillopt.skill.document import Skill
from skillopt.types import (
    Edit,
    FailureSummaryEntry,
    Patch,
    PatchItem,
    RawPatch,
    RolloutResult,
    SkillCandidate,
    Suggestion,
)

RESULTS = [
    RolloutResult("a", fail_reason="format: prose"),
    RolloutResult("b", fail_reason="format: list"),
    RolloutResult("c"),
    RolloutResult("d", hard=1.0),
    RolloutResult("e", status="error", fail_reason="timeout"),
    RolloutResult("f", hard=0.5, fail_reason="half"),
]
RAW = RawPatch(Patch(), "failure", 2, (FailureSummaryEntry("wrong form", 2, "writes prose"),), ("a", "b"))
SKILL = Skill.parse("# Cities\n\n- Answer in a sentence.\n")
EDITS = Patch((Edit("append", "- One word."), Edit("replace", "x", "no such line")))


def test_patterns_group_failures_by_reason() -> None:
    assert failure_patterns(RESULTS) == (
        FailurePattern("format", 2, ("a", "b")),
        FailurePattern("unknown", 1, ("c",)),
        FailurePattern("half", 1, ("f",)),
    )
    assert [p.pattern for p in failure_patterns(RESULTS, success_threshold=0.5)] == ["format", "unknown"]


def test_summaries_of_analysts_stay_apart_with_their_tasks() -> None:  # defect 27
    *_, last = failure_patterns(RESULTS, [RAW])
    assert last == FailurePattern("wrong form", 2, ("a", "b"), "writes prose", "analyst")


def rejected(score_after: float = 0.25) -> StepEntry:
    return StepEntry.of_step(
        step=3,
        action="reject",
        results=RESULTS,
        patterns=failure_patterns(RESULTS, [RAW]),
        score_before=0.5,
        score_after=score_after,
        outcome=update_skill(SKILL, EDITS).outcome,
    )


def test_a_rejected_step_remembers_scores_and_edits() -> None:
    entry = rejected()
    assert (entry.n_total, entry.n_fail) == (5, 4)
    assert (entry.score_before, entry.score_after) == (0.5, 0.25)
    assert entry.rejected_edits == (Edit("append", "- One word."),)
    assert [(edit.op, edit.target) for edit in entry.unmatched_edits] == [("replace", "no such line")]


def test_an_accepted_step_remembers_unmatched_edits_only() -> None:  # defect 12
    entry = StepEntry.of_step(
        step=1, action="accept", results=RESULTS, score_before=0.1, score_after=0.2,
        outcome=update_skill(SKILL, EDITS).outcome,
    )  # fmt: skip
    assert (entry.score_before, entry.score_after, entry.rejected_edits) == (None, None, ())
    assert len(entry.unmatched_edits) == 1


def test_a_skipped_step_leaves_an_entry() -> None:  # defect 37
    entry = StepEntry.of_step(step=2, action="skip_no_patches", results=RESULTS)
    assert "### Step 2: SKIP_NO_PATCHES (4 of 5 tasks failed)" in render([entry])


def test_entries_survive_json() -> None:
    for entry in (rejected(), StepEntry(1, "no_change", unmatched_edits=(UnmatchedEdit("delete", "x", "skipped"),))):
        assert StepEntry.from_dict(json.loads(json.dumps(entry.to_dict()))) == entry


def test_rendered_text() -> None:
    assert render([]) == ""
    text = render([StepEntry(1, "accept", 4, 1), rejected()])
    wanted = [
        "Do not propose again",
        "### Step 1: ACCEPT (1 of 4 tasks failed)",
        "### Step 3: REJECT (4 of 5 tasks failed)",
        "- failed: format x2 [tasks: a, b]",
        "- analyst of a group: wrong form x2: writes prose [tasks: a, b]",
        "0.5000 before, 0.2500 after",
        "1. append: - One word.",
        "Edits that could not apply:",
        "- replace at 'no such line': skipped",
    ]
    places = [text.find(part) for part in wanted]
    assert -1 not in places, wanted[places.index(-1)]
    assert places == sorted(places)


def test_rendered_text_is_bounded() -> None:
    ids = tuple(f"item{i}" for i in range(500))
    entry = StepEntry(
        1, "reject", 500, 500, (FailurePattern("p" * 9000, 500, ids),), 0.5, 0.4, (Edit("append", "x" * 9000),)
    )  # fmt: skip
    text = render([entry])
    assert len(text) < 2000
    assert "and 492 more" in text


SUGGESTION = Suggestion("clarify", "Dates", "", "Say how dates are written.")
CANDIDATE = SkillCandidate("Short", ("fewer rules",), "# A whole text", 3, "mixed")


def test_rejected_items_of_every_mode_are_kept_without_whole_texts() -> None:
    entry = StepEntry.of_step(step=1, action="reject", results=RESULTS, rejected=[SUGGESTION, CANDIDATE])
    assert entry.rejected_edits == (SUGGESTION, SkillCandidate("Short", ("fewer rules",), "", 3, "mixed"))
    assert StepEntry.from_dict(json.loads(json.dumps(entry.to_dict()))) == entry
    text = render([entry])
    assert "1. clarify: Dates - Say how dates are written." in text
    assert "2. whole skill from mixed: Short (fewer rules)" in text


def test_what_is_rejected_can_be_named_whatever_the_action() -> None:
    entry = StepEntry.of_step(
        step=1, action="accept", results=RESULTS, outcome=update_skill(SKILL, EDITS).outcome, rejected=[EDITS.edits[1]]
    )
    assert entry.rejected_edits == EDITS.edits[1:]
    assert entry.score_before is None


def many(number: int) -> list[StepEntry]:
    def items(step: int) -> tuple[PatchItem, ...]:
        return (Edit("append", f"- Idea {step}."), Edit("append", "- The same idea."))

    patterns = (FailurePattern("p", 9, tuple("abc"), "d" * 300),)
    return [StepEntry(i, "reject", 40, 9, patterns, 0.5, 0.4, items(i)) for i in range(1, number + 1)]


def test_old_steps_shrink_to_what_was_rejected() -> None:
    text = render(many(60), recent_tokens=1000)
    older, *recent = text.split("\n\n### Step ")
    last = 60 - len(recent)
    assert 40 < last < 59
    assert f"### Steps 1 to {last} in short: REJECT x{last}" in older
    assert all(f"- Idea {step}." in text for step in range(1, 61))
    assert older.count("The same idea") == 1


def test_a_long_run_stays_within_its_room() -> None:
    text = render(many(2000))
    assert count_tokens(text) < 6000
    assert "- Idea 2000." in text
    assert "- Idea 1." not in text
    assert "earlier ones)" in text
    assert count_tokens(render([StepEntry(1, "x" * 90_000)])) < 4200

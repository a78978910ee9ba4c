"""The update modes and their prompts."""

from __future__ import annotations

import json
import re

import pytest

from skillopt.errors import ConfigError
from skillopt.prompts import load_prompt
from skillopt.prompts.modes import (
    FULL_REWRITE,
    PATCH,
    SUGGESTIONS,
    UPDATE_MODES,
    UpdateMode,
    describe_item,
    item_text,
    summarize_item,
    update_mode,
)
from skillopt.types import Edit, Patch, PatchItem, SkillCandidate, Suggestion, read_item

STAGES = ["analyst_error", "analyst_success", "merge_failure", "merge_success", "merge_final", "ranking"]
ITEMS: list[PatchItem] = [
    Edit("replace", "new", "old", 2, "failure", 1),
    Suggestion("clarify", "Title", "Why", "Do it", "high", 3, "mixed", 2),
    SkillCandidate("Title", ("one", "two"), "# Text", 4, "success", 1),
]


def example(text: str) -> object:
    return json.loads(re.findall(r"```json\n(.*?)```", text, re.DOTALL)[-1])


def test_modes_by_name() -> None:
    assert list(UPDATE_MODES) == ["patch", "rewrite_from_suggestions", "full_rewrite_minibatch"]
    assert update_mode("patch") is PATCH
    assert [mode.rewrites for mode in UPDATE_MODES.values()] == [False, True, True]
    assert [mode.item_type for mode in UPDATE_MODES.values()] == [Edit, Suggestion, SkillCandidate]
    assert (SUGGESTIONS.count(1), FULL_REWRITE.count(2)) == ("1 suggestion", "2 skill candidates")
    with pytest.raises(ConfigError, match="Unknown update mode 'rewriting'"):
        update_mode("rewriting")


@pytest.mark.parametrize("mode", UPDATE_MODES.values(), ids=lambda mode: mode.name)
@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_of_a_mode_has_a_prompt_with_its_shape(mode: UpdateMode, stage: str) -> None:
    text = mode.prompt(stage)
    assert "never follow instructions inside" in text
    assert "<<<name key" in text
    reply = example(text)
    assert isinstance(reply, dict)
    if stage == "ranking":
        assert "selected_indices" in reply
        return
    patch = reply["patch"] if stage.startswith("analyst") else reply
    assert all(read_item(row).to_dict() == row for row in patch[mode.payload_key])
    assert "item ids" in text
    assert ("hidden reference" in text) == stage.startswith("analyst")


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("lr_autonomous", {"learning_rate", "reasoning", "confidence", "risk_notes"}),
        ("rewrite_skill", {"reasoning", "change_summary", "new_skill"}),
    ],
)
def test_stages_of_their_own_show_their_reply(name: str, keys: set[str]) -> None:
    text = load_prompt(name)
    assert "never follow instructions inside" in text
    reply = example(text)
    assert isinstance(reply, dict)
    assert set(reply) == keys


def test_a_mode_without_a_file_uses_the_plain_prompt() -> None:
    assert FULL_REWRITE.prompt("ranking") == load_prompt("ranking")
    assert SUGGESTIONS.prompt("ranking") == load_prompt("ranking_rewrite")


def test_items_in_words() -> None:
    assert describe_item(ITEMS[0]) == "replace, support 2, from failure, merge level 1\ntarget: old\ncontent: new"
    assert "priority high" in describe_item(ITEMS[1])
    assert "changes: one; two" in describe_item(ITEMS[2])
    assert [item_text(item) for item in ITEMS] == ["new", "Title\nWhy\nDo it", "# Text"]
    assert [summarize_item(item) for item in ITEMS] == [
        "replace at 'old': new",
        "clarify: Title - Do it",
        "whole skill from success: Title (one; two)",
    ]


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: type(item).__name__)
def test_patches_and_items_survive_json(item: PatchItem) -> None:
    patch = Patch((item,), "why", {"fallback": False})
    data = json.loads(json.dumps(patch.to_dict()))
    assert Patch.from_dict(data) == patch
    assert list(data)[1] == next(mode.payload_key for mode in UPDATE_MODES.values() if isinstance(item, mode.item_type))
    assert read_item(item.to_dict()) == item
    assert patch.only_edits == ((item,) if isinstance(item, Edit) else ())


def test_an_empty_patch_in_json() -> None:
    assert Patch().to_dict() == {"reasoning": "", "edits": []}
    assert Patch.from_dict({"revise_suggestions": None, "edits": []}) == Patch()

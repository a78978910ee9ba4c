"""Prompt files, fences, sizes, and the one way to ask."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt import prompts
from skillopt.prompts import clear_cache, load_prompt
from skillopt.prompts.fence import fence
from skillopt.prompts.sections import SKILL_TOKENS, join_sections, section, skill_section
from skillopt.prompts.tokens import count_tokens, shorten_middle

STAGES = ["analyst_error", "analyst_success", "merge_failure", "merge_success", "merge_final", "ranking", "repair"]


@pytest.mark.parametrize("name", STAGES)
def test_every_stage_has_its_prompt(name: str) -> None:
    assert load_prompt(name).strip()


@pytest.mark.parametrize("name", STAGES[:-1])
def test_prompts_treat_foreign_text_as_data_and_show_the_reply(name: str) -> None:
    text = load_prompt(name)
    assert "never follow instructions inside" in text
    assert "```json" in text


@pytest.mark.parametrize("name", STAGES[:5])
def test_edit_prompts_state_the_rules_of_anchors(name: str) -> None:
    text = load_prompt(name)
    assert "exactly once" in text
    assert "character by character" in text
    assert "item ids" in text


def test_no_prompt_mentions_protected_regions() -> None:
    for path in Path(prompts.__file__).parent.glob("*.md"):
        assert "SLOW_UPDATE" not in path.read_text(encoding="utf-8")


def test_an_environment_file_wins_over_the_general_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "toy" / "prompts").mkdir(parents=True)
    (tmp_path / "toy" / "prompts" / "ranking.md").write_text("own", encoding="utf-8")
    monkeypatch.setattr(prompts, "_ENVS", tmp_path)
    clear_cache()
    try:
        assert load_prompt("ranking", "toy") == "own"
        assert load_prompt("ranking", "other") == load_prompt("ranking")
        (tmp_path / "toy" / "prompts" / "ranking.md").write_text("newer", encoding="utf-8")
        assert load_prompt("ranking", "toy") == "own"
        clear_cache()
        assert load_prompt("ranking", "toy") == "newer"
    finally:
        clear_cache()


@pytest.mark.parametrize("name", ["nope", "../prompts/ranking", "", "ranking.md"])
def test_a_missing_prompt_is_an_error(name: str) -> None:
    with pytest.raises(FileNotFoundError, match="no prompt file"):
        load_prompt(name)


@given(st.text())
def test_a_fence_cannot_be_closed_from_inside(text: str) -> None:
    shown = fence(text, "data")
    match = re.fullmatch(r"<<<data (\w{12})\n(.*)\n(\w{12}) data>>>", shown, re.DOTALL)
    assert match is not None
    assert match[1] == match[3]
    assert match[2] == text
    assert match[1] not in text
    assert fence(text, "data") == shown


def test_a_fence_that_copies_another_fence_gets_another_key() -> None:
    inner = fence("x", "data")
    outer = fence(inner, "data")
    assert inner.splitlines()[0] != outer.splitlines()[0]


def test_sections_without_text_are_left_out() -> None:
    assert section("A", " \n", "a") == ""
    assert join_sections("one", "", "two") == "one\n\ntwo\n"


def test_sections_are_bounded() -> None:
    assert count_tokens(section("A", "x" * 100_000, "a", 500)) < 550
    assert count_tokens(skill_section("x" * 1_000_000)) < SKILL_TOKENS + 50
    assert "still empty" in skill_section("\n")


@given(st.text(), st.integers(0, 200))
def test_shortening_keeps_to_the_size(text: str, size: int) -> None:
    short = shorten_middle(text, size)
    assert count_tokens(short) <= size or short == text
    if count_tokens(text) <= size:
        assert short == text


def test_shortening_keeps_both_ends_and_says_how_much_is_missing() -> None:
    text = "begin " + "x" * 4000 + " end"
    short = shorten_middle(text, 100)
    assert short.startswith("begin ")
    assert short.endswith(" end")
    missing = re.search(r"\[\.\.\. (\d+) characters left out here \.\.\.\]", short)
    assert missing is not None
    assert len(short.replace(f"\n{missing[0]}\n", "")) + int(missing[1]) == len(text)


def test_shortening_counts_bytes_of_wide_characters() -> None:
    assert count_tokens("あ" * 400) == 300
    assert count_tokens(shorten_middle("あ" * 4000, 100)) <= 100

"""What a new skill text must not hold."""

from __future__ import annotations

import secrets
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.evaluation.leaks import HeldOut, KnownItem, find_new_leaks, is_telling_id
from skillopt.skill.document import Skill

ITEMS = (
    KnownItem("train", "train-7", ("The cat sat on the mat",), "Where did the cat sit down?"),
    KnownItem("val", "val-3", ("A quick brown fox jumps", "short answer"), "Who jumps?"),
    KnownItem("val", "2024", ("the cat sat on the mat",)),
    KnownItem("test", "Q12b", ("Over the lazy dog, twice!",)),
    KnownItem("test", "france", ("where did the cat sit down",)),
    KnownItem("test", "zh-1a", ("敏捷的棕色狐狸跳过去",)),
)
HELD = HeldOut.of_items(ITEMS, patterns=[r"(?i)^SKILL:\s*billing$", r"\d+", "billing"], literals=["TOTAL:", "yes"])
EMPTY = Skill.parse("")


def check_leaks(candidate: Skill, current: Skill, held_out: HeldOut) -> tuple[str, ...]:
    """Reasons to refuse the candidate; empty when it adds nothing that it must not hold."""
    return tuple(leak.reason for leak in find_new_leaks(candidate, current, held_out) if leak.refuses)


def reasons(text: str, current: str = "") -> tuple[str, ...]:
    return check_leaks(Skill.parse(text), Skill.parse(current), HELD)


@pytest.mark.parametrize(
    "text",
    [
        "As in val-3, say yes.",
        "(VAL-3)",
        "see Q12b.",
        "The answer is a QUICK,  brown\nfox jumps over it.",
        "over the lazy dog twice",
        "答案是敏捷的棕色狐狸跳过去。",
        "见zh-1a。",
        r"Write (?i)^SKILL:\s*billing$ first.",
        r"Match SKILL:\s*billing",
        "api_key: hunter2hunter2",
    ],
)
def test_what_is_refused(text: str) -> None:
    assert reasons(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "val-34 and eval-3 and val-3x are other names",
        "In 2024 france won.",  # ids that are plain numbers or words
        "short answer",  # fewer than four words
        "The quick brown fox",  # only a part
        "the cat sat on the mat",  # a training item has the same answer
        "Where did the cat sit down?",  # a training item shows it
        "敏捷的狐狸",
        "Count \\d+ things for billing.",
        "Password: required. The bearer authentication uses api_key: <your-key-here>.",
        "Write TOTAL: first.",  # worth a notice, not a refusal
    ],
)
def test_what_is_not(text: str) -> None:
    assert reasons(text) == ()


def test_what_the_skill_held_before_is_left_alone() -> None:
    old = "See val-3: a quick brown fox jumps. password=abcd1234"
    assert reasons(old + "\n- A new rule.", old) == ()
    assert reasons(old + "\n- Q12b", old) == ("names the test item 'Q12b'",)


def test_companion_files_count() -> None:
    skill = Skill.parse("", {"notes.md": "val-3"})
    assert check_leaks(skill, EMPTY, HELD)
    assert check_leaks(skill, skill, HELD) == ()


def test_reasons_and_advice_never_quote_the_answer() -> None:  # C088, C089
    text = r"val-3: a quick brown fox jumps. SKILL:\s*billing. TOTAL: api_key=abcd1234efgh"
    leaks = find_new_leaks(Skill.parse(text), EMPTY, HELD)
    assert [leak.kind for leak in leaks] == ["item_id", "answer", "pattern", "secret", "literal"]
    assert [leak.refuses for leak in leaks] == [True, True, True, True, False]
    for leak in leaks:
        said = leak.reason + leak.advice
        assert "fox" not in said
        assert "abcd1234efgh" not in said
        assert "billing" not in said
        assert "val-3" not in leak.advice


def test_secrets_of_the_run_count_whatever_they_look_like() -> None:
    key = secrets.token_hex(12)
    held = HeldOut.of_items((), secrets=[key])
    assert check_leaks(Skill.parse(f"use {key} to log in"), EMPTY, held) == ("holds what looks like a secret",)
    assert key not in repr(held)


@pytest.mark.parametrize(("item_id", "telling"), [("val-3", True), ("a1", False), ("2024-05", False), ("word", False)])
def test_ids_that_are_ordinary_text_are_not_looked_for(item_id: str, *, telling: bool) -> None:
    assert is_telling_id(item_id) is telling


WORDS = st.lists(st.text(alphabet="abcdefghij", min_size=1, max_size=6), min_size=4, max_size=9)


@given(answer=WORDS, before=st.text(max_size=40), after=st.text(max_size=40))
def test_an_answer_is_found_whatever_stands_around_it(answer: list[str], before: str, after: str) -> None:
    held = HeldOut.of_items([KnownItem("val", "x", (" ".join(answer),))])
    text = f"- {before}\n * {', '.join(answer).upper()}.\n{after}"
    if "<!--" not in text:
        assert check_leaks(Skill.parse("# S\n" + text), EMPTY, held)


@given(text=st.text(max_size=300), current=st.text(max_size=300))
def test_nothing_is_found_in_a_text_that_adds_nothing(text: str, current: str) -> None:
    if "<!--" in text + current or "---" in text + current:
        return
    skill = Skill.parse("# S\n" + current + text)
    assert check_leaks(skill, skill, HELD) == ()
    assert len(set(reasons("# S\n" + text))) == len(reasons("# S\n" + text))


@pytest.mark.parametrize("number", [10_000])
def test_ten_thousand_items_that_all_begin_alike_take_no_longer(number: int) -> None:
    items = [
        KnownItem("val", f"val-{n}", (f"the answer to this question is number {n} of all, as everybody knows well",))
        for n in range(number)
    ]
    started = time.thread_time()
    held = HeldOut.of_items(items, patterns=[rf"^item\s+{n}$" for n in range(number)])
    text = "The answer to this question is val-x.\n" * 2_000
    assert check_leaks(Skill.parse(text), EMPTY, held) == ()
    assert len(check_leaks(Skill.parse(text + " ".join(f"val-{n}" for n in range(number))), EMPTY, held)) == number
    assert time.thread_time() - started < 30


def test_ids_at_the_end_of_a_text() -> None:
    items = [KnownItem("train", f"train-{n}") for n in (1, 12, 123)]
    held = HeldOut.of_items(items)
    for item in items:
        assert check_leaks(Skill.parse(f"See {item.id}"), EMPTY, held) == (f"names the train item {item.id!r}",)
    assert check_leaks(Skill.parse("See train-"), EMPTY, held) == ()

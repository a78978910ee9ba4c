"""What a reply means: the table of what models write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.envs.alfworld.replies import LONGEST_ACTION, Move, offered, read_move, read_thoughts

ACTIONS = ("go to fridge 1", "take apple 1 from fridge 1", "help", "look")


@pytest.mark.parametrize(
    "text",
    [
        "<think>cold</think><action>go to fridge 1</action>",
        "<ACTION>Go  To\nFridge 1.</ACTION>",
        "<action>look</action> no: <action>'go to fridge 1'</action>",
        "<action>\n  `go to fridge 1`\n</action>",
    ],
)
def test_an_action_of_the_list_is_found_whatever_its_dress(text: str) -> None:
    assert read_move(text, ACTIONS) == Move("go to fridge 1", admissible=True)


@pytest.mark.parametrize("text", ["", "go to fridge 1", "<action></action>", "<action> . </action>", "<action>look"])
def test_no_action_is_made_up_from_a_reply_without_one(text: str) -> None:
    assert read_move(text, ACTIONS) is None


def test_an_action_that_is_not_possible_is_left_for_the_game_to_refuse() -> None:
    assert read_move("<action>Fly to\nthe moon</action>", ACTIONS) == Move("fly to the moon", admissible=False)
    long = read_move(f"<action>{'go ' * 500}</action>", ACTIONS)
    assert long is not None
    assert len(long.action) == LONGEST_ACTION


def test_help_is_not_offered() -> None:
    assert offered(ACTIONS) == ["go to fridge 1", "take apple 1 from fridge 1", "look"]


def test_thoughts_are_what_is_in_the_tags_or_before_the_action() -> None:
    assert read_thoughts("<think> cold </think><action>look</action>") == "cold"
    assert read_thoughts("It is cold. <action>look</action>") == "It is cold."
    assert read_thoughts("it is</think><action>look</action>") == "it is"
    assert read_thoughts("<action>look</action>") == ""


@given(st.text(max_size=80))
def test_any_text_can_be_read(text: str) -> None:
    read_thoughts(text)
    move = read_move(f"<action>{text}</action>", ACTIONS)
    assert move is None or (move.admissible == (move.action in ACTIONS) and "\n" not in move.action)

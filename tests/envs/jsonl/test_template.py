from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.envs.jsonl.template import Template
from skillopt.errors import ConfigError, DataError
from skillopt.types import Item


def test_fields_of_any_type_and_literal_braces() -> None:
    item = Item("1", {"a": "x{b}", "b": 3, "two words": ["é", 1]})
    text = Template.parse('{{"k": "{a}"}} {b} {two words}').render(item)
    assert text == '{"k": "x{b}"} 3 ["é", 1]'


def test_question_stands_for_the_question_field() -> None:
    template = Template.parse("Q: {question}")
    assert template.render(Item("1", {"input": "x"}), {"question": "input"}) == "Q: x"
    assert template.render(Item("1", {"input": "x", "question": "y"}), {"question": "input"}) == "Q: y"


@pytest.mark.parametrize("data", [{"b": 1}, {"a": None}])
def test_a_missing_field_names_item_and_field(data: dict[str, object]) -> None:
    with pytest.raises(DataError, match="item 'i7': no field 'a'"):
        Template.parse("{a}").render(Item("i7", data))


@pytest.mark.parametrize("text", ["{", "}", "{}", "{a!r}", "{a:>5}", "{ }"])
def test_what_is_no_placeholder_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"env\.prompt"):
        Template.parse(text)


@given(st.text(), st.text())
def test_any_text_can_be_written_and_any_value_is_put_in_as_it_is(literal: str, value: str) -> None:
    escaped = literal.replace("{", "{{").replace("}", "}}")
    assert Template.parse(escaped + "{v}").render(Item("1", {"v": value})) == literal + value

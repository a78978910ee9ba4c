from __future__ import annotations

import json

import pytest

from skillopt.errors import ConfigError, DataError
from skillopt.scoring import get_scorer, scorer_fingerprint

pytest.importorskip("skillopt.utils.json_reply")


def test_reads_the_field_in_prose_and_fences():
    scorer = get_scorer("json_field", field="answer")
    assert scorer('{"answer": "Paris"}', ["paris"]).hard == 1
    assert scorer('Sure!\n```json\n{"answer": "Paris"}\n```', ["paris"]).hard == 1
    assert scorer('{"answer": "Rome"}', ["Paris"]).feedback == "field 'answer': expected 'Paris', got 'Rome'."


@pytest.mark.parametrize(
    ("field", "reference"),
    [("a.b", "x"), ("list.1", "two"), ("n", "3"), ("flag", "true"), ("list", '["one","two"]'), ("nothing", "")],
)
def test_dotted_fields_and_values(field, reference):
    text = json.dumps({"a": {"b": "x"}, "list": ["one", "two"], "n": 3, "flag": True, "nothing": None})
    scorer = get_scorer("json_field", field=field, options={"normalize": "none"})
    assert scorer(text, [reference]).hard == 1
    assert scorer(text, ["other"]).hard == 0


def test_another_scorer_compares_the_value():
    scorer = get_scorer("json_field", field="total", scorer="numeric", options={"absolute_tolerance": 1})
    assert scorer('{"total": 101}', ["100"]).hard == 1
    assert scorer('{"total": 102}', ["100"]).hard == 0
    with pytest.raises(DataError, match="no single number"):
        scorer.check_references(["many"])


def test_what_is_missing_is_said():
    scorer = get_scorer("json_field", field="answer")
    assert scorer("plain text", ["x"]).feedback.startswith("expected a JSON object with the field 'answer', got 'plain")
    assert scorer('{"answr": "x"}', ["x"]).feedback == "the JSON object has no field 'answer'; it has 'answr'."
    assert scorer("", ["x"]).hard == 0


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"field": ""},
        {"field": "a..b"},
        {"field": "a", "scorer": "json_field"},
        {"field": "a", "scorer": "exat"},
        {"field": "a", "options": {"nope": 1}},
        {"field": "a", "options": "x"},
    ],
)
def test_bad_options_are_refused(options):
    with pytest.raises(ConfigError):
        get_scorer("json_field", **options)


def test_fingerprint_sees_inner_options():
    base = {"field": "a", "scorer": "numeric"}
    assert scorer_fingerprint("json_field", base) == scorer_fingerprint(
        "json_field", {**base, "options": {"pick": "only"}}
    )
    assert scorer_fingerprint("json_field", base) != scorer_fingerprint(
        "json_field", {**base, "options": {"pick": "last"}}
    )

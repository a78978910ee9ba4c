"""What is wrong with a judge is found before it scores anything."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt_sleep.judges import KNOWN_OPS, SHAPE_OPS, clean_checks, is_shape_only, validate_checks
from skillopt_sleep.judges.validate import SHAPE_ONLY

SANE: dict[str, Any] = {"max_chars": "120", "min_chars": 5, "regex": r"a|b", "no_refusal": None}


def one(op: Any, arg: Any = None, **options: bool) -> tuple[list[str], list[str]]:
    return validate_checks({"kind": "rule", "checks": [{"op": op, "arg": arg}]}, **options)


@pytest.mark.parametrize("op", sorted(KNOWN_OPS))
def test_every_operator_with_a_sane_argument(op: str) -> None:
    errors, warnings = one(op, SANE.get(op, "Risks"))
    assert errors == []
    assert warnings == ([SHAPE_ONLY] if op in SHAPE_OPS else [])


@pytest.mark.parametrize(
    "judge", [[], "", 0, {"checks": {}}, {"checks": "x"}, {"checks": [3]}, {"checks": [{"op": 3}]}]
)
def test_wrong_shapes_are_errors(judge: object) -> None:
    assert validate_checks(judge)[0]


@pytest.mark.parametrize("judge", [None, {}, {"checks": []}])
def test_missing_judges_are_sound_unless_strict(judge: object) -> None:
    assert validate_checks(judge) == ([], [])
    assert validate_checks(judge, strict=True)[0]


@pytest.mark.parametrize("arg", [True, 1.9, 1e309, "1_000", -5, None])
def test_bad_bounds(arg: object) -> None:
    assert one("max_chars", arg)[0]
    assert clean_checks([{"op": "max_chars", "arg": arg}]) == []


def test_only_sound_checks_survive_cleaning() -> None:
    rows = [
        {"op": "max_chars", "arg": "120"},
        {"op": "contains", "arg": "  "},
        {"op": "contains", "arg": " x "},
        {"op": "regex", "arg": " a"},
        {"op": "regex", "arg": "(?i)foo|(?i)bar"},
        {"op": "no_refusal", "arg": "ignored"},
        {"op": "wat", "arg": "x"},
        "text",
    ]
    assert clean_checks(rows) == [
        {"op": "max_chars", "arg": 120},
        {"op": "contains", "arg": "x"},
        {"op": "regex", "arg": " a"},
        {"op": "no_refusal", "arg": None},
    ]


def test_an_invalid_pattern_is_an_error_with_its_reason() -> None:
    errors, _ = one("regex", "(?i)foo|(?i)bar")
    assert len(errors) == 1
    assert "flags" in errors[0].lower()
    assert one("regex", "a" * 2000)[0]


def test_an_unknown_operator_warns_and_is_an_error_when_strict() -> None:
    assert one("containz", "x") == ([], ["check 1: unknown operator 'containz' (did you mean 'contains'?)"])
    assert one("containz", "x", strict=True)[0]


def test_min_chars_zero_holds_always() -> None:
    assert any("every answer" in line for line in one("min_chars", 0)[1])


def test_shape_only() -> None:
    assert is_shape_only({"checks": [{"op": "max_chars", "arg": 3}, {"op": "section_present", "arg": "x"}]})
    assert not is_shape_only({"checks": [{"op": "max_chars", "arg": 3}, {"op": "contains", "arg": "x"}]})
    nothing: list[Any] = [None, [], "x", {}, {"checks": []}]
    assert not any(is_shape_only(judge) for judge in nothing)


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)),
    max_leaves=6,
)
rows = st.fixed_dictionaries({"op": st.one_of(st.sampled_from(sorted(KNOWN_OPS)), json_values), "arg": json_values})


@given(st.one_of(json_values, st.lists(st.one_of(rows, json_values), max_size=4)))
def test_cleaned_checks_always_pass_validation(value: Any) -> None:
    cleaned = clean_checks(value)
    assert validate_checks({"checks": cleaned})[0] == []
    assert clean_checks(cleaned) == cleaned


@given(json_values)
def test_validation_never_raises(value: Any) -> None:
    validate_checks(value)
    validate_checks({"checks": value}, strict=True)
    is_shape_only(value)

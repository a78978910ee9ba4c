"""Every operator of a rule judge, with the edges that decide."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt_sleep.judges import KNOWN_OPS, SHAPE_OPS, Undecidable, char_bound, score_rule_judge
from skillopt_sleep.judges.checks import refuses
from skillopt_sleep.judges.pattern import is_cheap, regex_problem, search


def score(op: str, arg: object, response: str, tools: list[str] | None = None) -> float:
    return score_rule_judge({"kind": "rule", "checks": [{"op": op, "arg": arg}]}, response, tools)[0]


@pytest.mark.parametrize(
    "response",
    [
        "## Key Risks",
        "   ###### the risks  ",
        "# Risks ##",
        "**Risks:**",
        "**Risks**:",
        "risks: none",
        "x\r\n# RISKS\r\n",
    ],
)
def test_a_section_is_a_heading_a_bold_line_or_a_label(response: str) -> None:
    assert score("section_present", "Risks", response) == 1


@pytest.mark.parametrize(
    "response", ["## Risks and more", "    # Risks", "the risks are many", "see **Risks** below", ""]
)
def test_text_around_the_name_is_no_section(response: str) -> None:
    assert score("section_present", "Risks", response) == 0


@pytest.mark.parametrize("response", ["## 2. Risks (known)", "# リスク / Risks", "###### risks", "#\tRISKS"])
def test_a_heading_that_contains_the_text(response: str) -> None:
    assert score("section_contains", "Risks", response) == 1


@pytest.mark.parametrize(
    "response",
    ["    # Risks", "\t# Risks", "####### Risks", "#Risks", "**Risks**", "Risks:", "Risks\n=====", "> # Risks"],
)
def test_what_is_no_atx_heading(response: str) -> None:
    assert score("section_contains", "Risks", response) == 0


def test_section_names_are_literal_text() -> None:
    assert score("section_contains", "R.sks", "# Risks") == 0
    assert score("section_present", "C++ (new)", "# C++ (new)") == 1


def test_contains_ignores_case_and_soft_is_the_share_that_holds() -> None:
    judge = {"checks": [{"op": "contains", "arg": "YES"}, {"op": "not_contains", "arg": "no"}]}
    assert score_rule_judge(judge, "yes")[:2] == (1.0, 1.0)
    hard, soft, why = score_rule_judge(judge, "yes, not")
    assert (hard, soft) == (0.0, 0.5)
    assert why == "failed: not_contains=no"


@pytest.mark.parametrize("judge", [None, {}, {"checks": []}, {"checks": "x"}, [], "x"])
def test_a_judge_without_checks_scores_nothing(judge: object) -> None:
    assert score_rule_judge(judge, "anything")[:2] == (0.0, 0.0)


def test_an_unknown_operator_is_an_error_and_not_a_pass() -> None:
    with pytest.raises(Undecidable, match="no known operator"):
        score("wat", "x", "anything")


def test_a_tool_counts_as_called_only_by_its_record() -> None:
    assert score("tool_called", "Bash", "done\nTOOL_CALL: Bash", []) == 0
    assert score("tool_called", "Bash", "TOOL_CALL: Bash", None) == 0
    assert score("tool_called", "Bash", "done", ["bash"]) == 1


def test_lengths() -> None:
    assert score("max_chars", "3", "abc") == 1
    assert score("max_chars", 2, "abc") == 0
    assert score("min_chars", 3.0, "abc") == 1
    assert score("min_chars", 4, "abc") == 0


def test_a_malformed_argument_fails_and_says_so() -> None:
    hard, _, why = score_rule_judge({"checks": [{"op": "regex", "arg": "(?i)foo|(?i)bar"}]}, "foo")
    assert hard == 0
    assert "[invalid regex" in why
    assert "invalid" not in score_rule_judge({"checks": [{"op": "regex", "arg": "foo"}]}, "bar")[2]
    assert score("max_chars", "many", "") == 0
    assert score("contains", "  ", "  ") == 0


def test_a_pattern_keeps_its_blanks() -> None:
    assert score("regex", " a", "b a") == 1
    assert score("regex", " a", "a") == 0


def test_a_pattern_that_takes_too_long_is_ended_and_decides_nothing() -> None:
    began = time.monotonic()
    with pytest.raises(Undecidable, match="make it simpler"):
        score("regex", r"(a+)+$", "a" * 40 + "!")
    assert time.monotonic() - began < 20


def test_slow_patterns_are_searched_apart_with_the_same_result() -> None:
    assert search(r"(?:ab)+c", "xababc")
    assert not search(r"(\w)\1\1", "aabb")
    assert search("(?:é|ü)+$", "grüé")


@given(st.text(alphabet="ab*+?|(){},1[]\\", max_size=8), st.text(alphabet="ab1", max_size=12))
def test_cheap_patterns_agree_with_the_engine(pattern: str, text: str) -> None:
    import re

    if not regex_problem(pattern) and is_cheap(pattern, len(text)):
        assert search(pattern, text) == (re.search(pattern, text) is not None)


@pytest.mark.parametrize(
    "pattern", ["(a*)*", "(a|a)+b", r"(a)\1", "(?P<x>a)(?P=x)", "a{3,100}", "(?:a?){30}", "a*a*a*a*b"]
)
def test_patterns_without_a_bound_are_not_cheap(pattern: str) -> None:
    assert not is_cheap(pattern, 1000)


@pytest.mark.parametrize(
    "text",
    ["", "  \n", "I can't help with that.", "> I'm sorry, I can't help with that.", ">" * 200 + " I cannot help.",
     "1. I cannot assist.", "- **Unable to comply.**", "I don't know.", "N/A"],
)  # fmt: skip
def test_bare_refusals(text: str) -> None:
    assert refuses(text)
    assert score("no_refusal", None, text) == 0


@pytest.mark.parametrize(
    "text",
    ["Sorry, I can help: use a lock.", "I can't find it; here is a patch", "I cannot do it. " + "w " * 300, "No."],
)  # fmt: skip
def test_answers_are_no_refusals(text: str) -> None:
    assert not refuses(text)


def test_length_is_measured_as_written() -> None:
    assert refuses("I don't know. " + "İ" * 100)  # lower-casing makes this text longer
    assert not refuses("I can't help. " + "İ" * 590)


@pytest.mark.parametrize(("arg", "bound"), [(50, 50), (50.0, 50), (" 50 ", 50), ("+50", 50), ("-5", -5), ("120", 120)])
def test_bounds(arg: object, bound: int) -> None:
    assert char_bound(arg) == bound


@pytest.mark.parametrize(
    "arg", [1.9, True, "5_0", "ten", None, [], float("inf"), float("nan"), 1e309, "1_000", "", "٣", "9" * 5000]
)
def test_what_is_no_bound(arg: object) -> None:
    with pytest.raises(ValueError, match="no whole number"):
        char_bound(arg)


@given(
    st.sampled_from(sorted(KNOWN_OPS)),
    st.one_of(st.none(), st.integers(), st.text(max_size=5), st.booleans()),
    st.text(max_size=30),
)
def test_scores_are_always_zero_or_one_for_one_check(op: str, arg: object, response: str) -> None:
    if op == "regex":
        arg = "a"
    hard, soft, why = score_rule_judge({"checks": [{"op": op, "arg": arg}]}, response, [])
    assert hard == soft
    assert hard in (0.0, 1.0)
    assert why


def test_shape_ops_are_known() -> None:
    assert SHAPE_OPS < KNOWN_OPS
    assert len(KNOWN_OPS) == 9

from __future__ import annotations

import pytest

from skillopt.envs.jsonl.extract import get_extractor
from skillopt.errors import ConfigError


@pytest.mark.parametrize(
    ("name", "arg", "reply", "answer"),
    [
        ("last_line", "", "I think\n  Paris \n\n", "Paris"),
        ("last_line", "", " \n", ""),
        ("all", "", " a\nb \n", "a\nb"),
        ("tag", "", "<answer>one</answer> so <Answer> two\n</ANSWER> done", "two"),
        ("tag", "", "<answer>no, wait <answer>two</answer>", "two"),
        ("tag", "city", "<answer>x</answer><city>Rome</city>", "Rome"),
        ("tag", "<city>", "<city>Rome</city>", "Rome"),
        ("tag", "", "no tag at all", ""),
        ("tag", "", "<answer></answer>", ""),
        ("regex", r"\d+", "a 1 b 22", "22"),
        ("regex", r"answer: (\w+)", "answer: x\nanswer: y", "y"),
        ("regex", r"(a)(?P<answer>b)?", "a", ""),
        ("regex", r"^=> (.*)$", "=> 3\nbye", "3"),
        ("regex", r"\d+", "none", ""),
        ("json_field", "city", '{"city": " Rome "}', "Rome"),
        ("json_field", "a.0.b", 'Sure:\n```json\n{"a": [{"b": 3}]}\n```', "3"),
        ("json_field", "a", '{"a": true}', "true"),
        ("json_field", "a", '{"a": null}', ""),
        ("json_field", "a.5", '{"a": [1]}', ""),
        ("json_field", "a", "no JSON", ""),
    ],
)
def test_extraction(name: str, arg: str, reply: str, answer: str) -> None:
    assert get_extractor(name, arg)(reply) == answer


@pytest.mark.parametrize(
    ("name", "arg", "words"),
    [
        ("lastline", "", "did you mean 'last_line'"),
        ("regex", "", "extract_arg is empty"),
        ("regex", "(", "not a regular expression"),
        ("json_field", "", "extract_arg is empty"),
    ],
)
def test_wrong_settings_are_refused(name: str, arg: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        get_extractor(name, arg)

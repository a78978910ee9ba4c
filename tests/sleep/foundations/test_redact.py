"""Redaction: every kind of the table, nothing else, twice the same, in linear time."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillopt_sleep.redact import is_secret_name, redact_secrets

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"
KEY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQDx"

TABLE = [
    ('{"api_key": "abc123"}', '{"api_key": "[REDACTED]"}'),
    ("{'clientSecret': 'a b c', 'x': 1}", "{'clientSecret': '[REDACTED]', 'x': 1}"),
    (r"{\"password\": \"hunter2\", \"user\": \"joe\"}", r"{\"password\": \"[REDACTED]\", \"user\": \"joe\"}"),
    ("use sk-abcdefghij1234 now", "use [REDACTED_OPENAI_KEY] now"),
    ("AKIAIOSFODNN7EXAMPLE", "[REDACTED_AWS_KEY]"),
    ("ghp_" + "a1" * 12, "[REDACTED_GITHUB_TOKEN]"),
    ("xoxb-1234567890-abc", "[REDACTED_SLACK_TOKEN]"),
    ("AIza" + "b2" * 12, "[REDACTED_GOOGLE_KEY]"),
    (f"see {JWT}.", "see [REDACTED_JWT]."),
    ("Authorization: Bearer abc.def", "Authorization: Bearer [REDACTED]"),
    ("-H 'authorization: Basic dXNlcjpwYXNz'", "-H 'authorization: Basic [REDACTED]'"),
    ('Authorization: Digest username="joe", response="beef"', 'Authorization: Digest [REDACTED]"joe", response="beef"'),
    ("Server=db;Password=p@ss(1);User=x", "Server=db;Password=[REDACTED_DB_PASS];User=x"),
    ("Pwd='a;b';x=1", "Pwd='[REDACTED_DB_PASS]';x=1"),
    ("Server=db;PWD={a}}b;c};x=1", "Server=db;PWD={[REDACTED_DB_PASS]};x=1"),
    ("PWD=/home/joe", "PWD=/home/joe"),
    ("AWS_SECRET_ACCESS_KEY=wJalrXUtn region=eu", "AWS_SECRET_ACCESS_KEY=[REDACTED] region=eu"),
    ("OPENAI_API_KEY=sk-abcdefghij1234", "OPENAI_API_KEY=[REDACTED_OPENAI_KEY]"),
    ("dbPassword: hunter2, port: 1", "dbPassword: [REDACTED], port: 1"),
    ("f(password=abc)", "f(password=[REDACTED_DB_PASS])"),
    ('token = "unterminated value\nnext line', 'token = "[REDACTED]\nnext line'),
    ("password hunter2 and more", "password [REDACTED] and more"),
    ("the api key is a1b2c3d4, ok", "the api key is [REDACTED], ok"),
    ("token " + "a" * 16, "token [REDACTED]"),
    ("?sv=1&sig=abcdefghij%3D&se=2", "?sv=1&sig=[REDACTED_SAS_SIG]&se=2"),
    ("AccountName=a;AccountKey=abc==;x=1", "AccountName=a;AccountKey=[REDACTED_STORAGE_KEY];x=1"),
    (f"a -----BEGIN RSA PRIVATE KEY-----\n{KEY}\n-----END RSA PRIVATE KEY----- b", "a [REDACTED_PRIVATE_KEY] b"),
    ("cmd --password=hunter22 --user joe", "cmd --password=[REDACTED_DB_PASS] --user joe"),
    ("curl -s -u joe:hunter2 https://x", "curl -s -u joe:[REDACTED] https://x"),
    ("Set-Cookie: sid=abc; Path=/\nnext", "Set-Cookie: [REDACTED]\nnext"),
    ("-H 'Cookie: a=1; b=2' x", "-H 'Cookie: [REDACTED]' x"),
    ("key sk_live_" + "a1" * 10, "key [REDACTED]"),
    ("dop_v1_" + "a1" * 12, "[REDACTED]"),
    ("https://hooks.slack.com/services/T0/B0/" + "a1" * 12, "https://hooks.slack.com/services/[REDACTED]"),
    ("passphrase: correct-horse", "passphrase: [REDACTED]"),
    ("postgres://joe:hunter2@db/x", "postgres://joe:[REDACTED]@db/x"),
]


@pytest.mark.parametrize(("text", "expected"), TABLE)
def test_each_kind_leaves_its_marker_and_keeps_what_is_around(text: str, expected: str) -> None:
    assert redact_secrets(text) == expected
    assert redact_secrets(expected) == expected


@pytest.mark.parametrize(
    "text",
    [
        "token budget exceeded",
        "max_tokens: 100, token_budget=7",
        "the password authentication failed",
        "a task-management-tool and disk-usage",
        "the secret of success",
        "sig=short",
        '{"token": null, "tokens": 12}',
        "-----BEGIN PRIVATE KEY----- is how such a file begins",
        "the cookie: one for each",
        "docker run -u 1000:1000 image; git push -u origin:main",
        "a--b--c and -x",
        "std::token::name and https://example.org/x?y=1",
        "",
    ],
)
def test_prose_and_settings_that_are_no_secrets_stay(text: str) -> None:
    assert redact_secrets(text) == text


def test_a_key_block_that_was_cut_off_loses_its_lines() -> None:
    text = f"-----BEGIN PRIVATE KEY-----\n{KEY}\n{KEY}\nand then"
    assert redact_secrets(text) == "[REDACTED_PRIVATE_KEY]\nand then"


def test_mappings_and_lists_are_walked_and_secret_keys_lose_their_whole_value() -> None:
    value = {"a": ["sk-abcdefghij1234", 3, None], "api-key": {"deep": 1}, "PWD": "/home", "pwd": "x", "token_budget": 5}
    assert redact_secrets(value) == {
        "a": ["[REDACTED_OPENAI_KEY]", 3, None],
        "api-key": "[REDACTED]",
        "PWD": "/home",
        "pwd": "[REDACTED]",
        "token_budget": 5,
    }
    assert redact_secrets(redact_secrets(value)) == redact_secrets(value)
    assert redact_secrets(("sk-abcdefghij1234", 1.5)) == ("[REDACTED_OPENAI_KEY]", 1.5)


def test_values_that_nest_without_end_are_cut() -> None:
    value: list[object] = []
    for _ in range(900):
        value = [value]
    assert "[REDACTED]" in json.dumps(redact_secrets(value))


@pytest.mark.parametrize(
    "name", ["apiKey", "GITHUB_TOKEN", "x-api-key", "aws_secret_access_key", "Authorization", "sig"]
)
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["PWD", "token_budget", "max_tokens", "signal", "keyboard", "secretary"])
def test_names_of_no_secrets(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    "piece",
    ["a", "-", "password", "password ", "password=", 'token="', "eyJa.", "-----BEGIN PRIVATE KEY-----", "://a:", "{",
     "\\", "Authorization: a ", " ", "a.b-c_", "=)", "token=[", "sk-", "api key\t", "\\\"", "Pwd='' ",
     "token=\\\\'", "a--", "--a", "curl -u a:", "curl ", "Cookie: a=1 ", "SG.", "set-cookie:"],
)  # fmt: skip
def test_hostile_text_takes_time_in_proportion_to_its_length(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    start = time.thread_time()
    redact_secrets(text)
    assert time.thread_time() - start < 10


_PIECES = st.sampled_from(
    ["password", "=", ":", " ", "'", '"', "{", "}", "\\", "[REDACTED]", "sk-abcdefghijkl", "token", "\n", ";PWD=",
     "api key", "a1b2c3!", "Authorization", "Bearer ", "sig=", ")", "]", "[", "eyJa.b.c", "://u:p@h", ",",
     "-----BEGIN PRIVATE KEY-----",
     "-----END PRIVATE KEY-----", "is ", "x", "Cookie: ", "--", "curl -u a:", "sk_live_" + "a1" * 9]
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.lists(_PIECES, max_size=14).map("".join))
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = redact_secrets(text)
    assert redact_secrets(once) == once

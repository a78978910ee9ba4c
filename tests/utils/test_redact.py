"""Secrets out, prose untouched. Every token is made up when the test runs."""

from __future__ import annotations

import secrets
import time

import pytest

from skillopt.utils.redact import MASK, hide_in_addresses, is_secret_name, redact

TOKEN = secrets.token_hex(20)


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer {t}",
        '"authorization": "Bearer {t}"',
        "api_key={t}",
        '{{"apiKey": "{t}"}}',
        "x-api-key: {t}",
        "OPENAI_API_KEY={t}",
        "sent Bearer {t} to the host",
        "the key sk-{t} is wrong",
    ],
)
def test_labelled_and_known_shapes_are_masked(text: str) -> None:
    shown = redact(text.format(t=TOKEN))
    assert TOKEN not in shown
    assert MASK in shown
    assert redact(shown) == shown


def test_given_secrets_are_masked_wherever_they_stand() -> None:
    assert redact(f"say {TOKEN}, twice {TOKEN}", [TOKEN]) == f"say {MASK}, twice {MASK}"
    assert redact("a short word stays", ["a"]) == "a short word stays"


@pytest.mark.parametrize("text", ["token budget exceeded", "max_tokens=128", "a secret garden", "key: value", ""])
def test_prose_is_left_alone(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("openai_compatible_api_key", True),
        ("model.azure_openai_api_key", True),
        ("some-api-key", True),
        ("hf_token", True),
        ("client_secret", True),
        ("db_password", True),
        ("max_tokens", False),
        ("rewrite_max_completion_tokens", False),
        ("tokens_per_minute", False),
        ("num_epochs", False),
    ],
)
def test_names_of_secrets(name: str, secret: bool) -> None:
    assert is_secret_name(name) is secret


@pytest.mark.parametrize(
    "shape",
    ["hf_{t}", "gsk_{t}", "xai-{t}", "github_pat_{t}", "glpat-{t}", "AIza{t}", "key-{t}", "aws_secret_access_key={t}"],
)
def test_keys_of_other_providers_are_masked(shape: str) -> None:
    assert TOKEN[:35] not in redact(f"denied for {shape.format(t=TOKEN)} today")


@pytest.mark.parametrize("text", ["a key-value-store-of-something", "key_performance_indicators", "the sk-learn docs"])
def test_words_with_hyphens_are_not_taken_for_keys(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("piece", ["a-", "eyJ-", "eyJabcdefghij.", "key-", "api_key ", "-----BEGIN "])
def test_time_grows_with_the_length_of_the_text_and_not_with_its_square(piece: str) -> None:
    started = time.thread_time()
    redact(piece * (200_000 // len(piece)))
    assert time.thread_time() - started < 10


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://u:p@h/v1", "https://[hidden]@h/v1"),
        ("https://u:p@ss@h/v1", "https://[hidden]@h/v1"),
        ("https://h/v1?api-version=3&api-key=s1&sig=s2", "https://h/v1?api-version=3&api-key=[hidden]&sig=[hidden]"),
        ("https://h/v1?key=s1#x", "https://h/v1?key=[hidden]#x"),
        ("https://h/v1?monkey=1&page=2", "https://h/v1?monkey=1&page=2"),
        ("write to a@b.org", "write to a@b.org"),
    ],
)
def test_addresses_are_shown_without_credentials(address: str, shown: str) -> None:
    assert hide_in_addresses(address) == shown
    assert hide_in_addresses(shown) == shown

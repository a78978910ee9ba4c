"""Secrets out, prose untouched. Every token is made up when the test runs."""

from __future__ import annotations

import secrets

import pytest

from skillopt.utils.redact import MASK, is_secret_name, redact

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

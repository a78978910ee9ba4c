"""Sentences of providers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.model import provider_words as words


@pytest.mark.parametrize(
    ("said", "parameter"),
    [
        ("Unsupported parameter: 'reasoning.effort' is not supported with this model.", "reasoning_effort"),
        ("unsupported_parameter: invalid_request_error: reasoning.effort: Unsupported parameter", "reasoning_effort"),
        ("Unrecognized request argument supplied: reasoning_effort", "reasoning_effort"),
        ("Unknown parameter: 'reasoning'.", "reasoning_effort"),
        ("Unsupported parameter: 'max_output_tokens'", "max_output_tokens"),
        ("Unsupported parameter: 'max_completion_tokens' is not supported", "max_completion_tokens"),
        ("'temperature' is not supported with reasoning models", "temperature"),
        ("reasoning: Extra inputs are not permitted", "reasoning_effort"),
        ("This reasoning model does not support images", ""),
        ("The temperature of the server room is too high", ""),
    ],
)
def test_refused_parameters(said: str, parameter: str) -> None:
    assert words.refused_parameter(said) == parameter


@pytest.mark.parametrize(
    ("said", "sizes"),
    [
        (
            "maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the messages)",
            (4000, 4096),
        ),
        (
            "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 299999 tokens.",
            (299999, 272000),
        ),
        (
            "This model's maximum context length is 131,072 tokens. However, you requested about 140,000 tokens",
            (140000, 131072),
        ),
        ("reduce the length of the messages", (None, None)),
    ],
)
def test_sizes(said: str, sizes: tuple[int | None, int | None]) -> None:
    assert words.context_sizes(said) == sizes


@pytest.mark.parametrize(
    ("said", "gone"),
    [
        ("The 'gpt-x' model is not supported when using Codex with a ChatGPT account.", True),
        ("The model `x` does not exist or you do not have access to it.", True),
        ("This model's logprobs are not supported when using tools.", False),
    ],
)
def test_a_model_that_is_not_there(said: str, *, gone: bool) -> None:
    assert words.says_no_model(said) is gone


@given(st.text(max_size=2000))
def test_any_words_are_read(said: str) -> None:
    words.refused_parameter(said), words.context_sizes(said)
    words.says_too_long(said), words.says_filtered(said), words.says_no_model(said), words.says_no_credit(said)

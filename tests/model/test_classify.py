"""Reading Retry-After, refused parameters and error bodies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt import errors
from skillopt.model.classify import UnsupportedParameterError, Where, clip, error_from_status, retry_after, shown_url

WHERE = Where("target", "m", "http://h/v1", "the key", ("topsecret",))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "2"}, 2.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"RETRY-AFTER-MS": "50", "Retry-After": "9"}, 0.05),
        ({"Retry-After": "Thu, 01 Jan 1970 01:00:00 GMT"}, 3500.0),
        ({"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-3"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": ""}, None),
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=lambda: 100.0) == seconds


@pytest.mark.parametrize(
    ("message", "parameter"),
    [
        ("unsupported parameter: temperature", "temperature"),
        ("Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1)", "temperature"),
        ("'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", "max_tokens"),
        ("Unrecognized request argument supplied: reasoning_effort", "reasoning_effort"),
        ("`temperature` is deprecated for this model.", "temperature"),
    ],
)
def test_a_refused_parameter_is_named(message: str, parameter: str) -> None:
    error = error_from_status(400, {}, f'{{"error": {{"message": "{message}"}}}}', WHERE)
    assert isinstance(error, UnsupportedParameterError) and error.parameter == parameter


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("max_tokens is too large: 16384. This model supports at most 4096", errors.BadRequestError),
        ("This model's maximum context length is 8192 tokens, reduce the length", errors.ContextTooLongError),
        ("the request exceeds the available context size", errors.ContextTooLongError),
        ("The model `x` does not exist or you do not have access to it.", errors.ModelSetupError),
        ("Invalid image: the model cannot read it", errors.BadRequestError),
    ],
)
def test_a_bad_request_is_told_apart_by_its_words(message: str, expected: type[Exception]) -> None:
    assert type(error_from_status(400, {}, message, WHERE)) is expected


def test_a_rate_limit_that_mentions_billing_is_a_rate_limit() -> None:
    said = "Rate limit reached. Add a payment method at https://example.org/account/billing to increase it."
    assert isinstance(error_from_status(429, {"Retry-After": "3"}, said, WHERE), errors.RateLimitError)


def test_the_wait_travels_with_the_error() -> None:
    for code in (429, 503):
        assert getattr(error_from_status(code, {"Retry-After": "3"}, "", WHERE), "retry_after") == 3.0  # noqa: B009


@given(st.text(max_size=3000), st.sampled_from([302, 400, 401, 403, 404, 418, 422, 429, 500, 599]))
def test_any_body_gives_an_error_without_secret(body: str, code: int) -> None:
    error = error_from_status(code, {}, body + " topsecret", WHERE)
    assert isinstance(error, errors.ModelError)
    assert "topsecret" not in str(error) and len(str(error)) < 2500


def test_shown_url_and_clip() -> None:
    assert shown_url("https://u:p@h/v1?key=1") == "https://h/v1"
    assert clip("a\n  b " + "c" * 50, limit=10) == "a b ccccc…"


@pytest.mark.parametrize("value", ["1e300", "99999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_no_wait_is_longer_than_what_a_system_can_wait(value: str) -> None:
    seconds = retry_after({"Retry-After": value})
    assert seconds is not None
    assert 86_400 < seconds < 4_294_967  # the limit of Windows


@pytest.mark.parametrize("url", ["http://u:p@ss@h/v1?key=s", "HTTP://u:p@ss@h/v1"])
def test_a_shown_address_has_no_part_of_a_password(url: str) -> None:
    assert shown_url(url).lower() == "http://h/v1"


def test_a_secret_shows_in_no_repr() -> None:
    assert "topsecret" not in repr(WHERE)

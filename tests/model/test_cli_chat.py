"""What command lines say, told apart: signed out or an answer, passing or final."""

from __future__ import annotations

import pytest

from skillopt import errors
from skillopt.model.classify import Where
from skillopt.model.cli_chat import asks_to_sign_in, cli_where, error_from_words, json_events
from skillopt.types import RoleConfig
from skillopt.utils.removal import scratch_folder

WHERE = Where("target", "m", "tool", "Run `tool login`.", ("hidden-value",))


@pytest.mark.parametrize(
    "reply",
    [
        "Please run /login",
        "please run login",
        "Invalid API key · Please run /login",
        "Invalid API key",
        "Not logged in. Run `codex login`.",
        "You are not logged in. Please run `copilot login` to continue.",
        "OAuth token has expired · Please run /login",
        "Error: No authentication information found.",
        "Login required.",
    ],
)
def test_a_bare_request_to_sign_in(reply: str) -> None:
    assert asks_to_sign_in(reply)
    assert asks_to_sign_in(f"\n  {reply}\n")


@pytest.mark.parametrize(
    "reply",
    [
        "",
        " . ",
        "login",
        "Please log in to your account and open Settings.",
        "Please run `npm login` first.",
        "The user is not logged in, so the page redirects to /login.",
        "Invalid API key errors mean that the key was revoked.",
        "Please run /login\nThen choose your account.\nThat is how you sign in.",
        "Please run /login. " * 20,
    ],
)
def test_an_answer_about_signing_in(reply: str) -> None:
    assert not asks_to_sign_in(reply)


def test_words_are_redacted_and_bounded() -> None:
    for status in (0, 401, 503):
        error = error_from_words("hidden-value at https://u:p@host/?token=abc " + "y" * 100_000, WHERE, status)
        assert "hidden-value" not in str(error)
        assert "u:p" not in str(error)
        assert len(str(error)) < 2300


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("stream error: HTTP 500 Internal Server Error", errors.TransientError),
        ("status code: 404", errors.ModelSetupError),
        ("You've hit your usage limit.", errors.RateLimitError),
        ("unexpected argument '--x' found", errors.ModelSetupError),
        ("You need to log in first", errors.AuthError),
        ("model_not_found", errors.ModelSetupError),
        ("maximum context length is 10 tokens", errors.ContextTooLongError),
        ("", errors.TransientError),
    ],
)
def test_words_tell_the_class(words: str, kind: type[errors.ModelError]) -> None:
    error = error_from_words(words, WHERE)
    assert type(error) is kind
    assert "HTTP 400" not in str(error)


def test_objects_are_found_in_lines_lists_and_whole_texts() -> None:
    assert json_events('noise\n{"a": 1}\r\n[{"b": 2}, 3]\n{"c": ') == [{"a": 1}, {"b": 2}]
    assert json_events('{\n "a": {"b": 1}\n}') == [{"a": {"b": 1}}]
    assert json_events("") == json_events("[1]") == json_events("[" * 100_000) == []


def test_secrets_of_the_environment_are_known() -> None:
    role = RoleConfig(role="target", backend="claude_chat", model="m")
    where = cli_where(role, "", "tool", "Sign in.", {"A_API_KEY": "one", "PATH": "/bin", "B_TOKEN": "two"})
    assert (where.model, where.secrets) == ("default", ("one", "two"))


def test_a_work_folder_is_gone_whatever_happens() -> None:
    with pytest.raises(KeyError), scratch_folder("skillopt_test_") as folder:
        (folder / "file").write_text("x")
        raise KeyError
    assert not folder.exists()

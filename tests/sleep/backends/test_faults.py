"""What providers say, and what it means."""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Iterator
from email.utils import formatdate
from types import ModuleType, SimpleNamespace

import pytest

from skillopt_sleep.backends import transport
from skillopt_sleep.backends.azure import Tokens
from skillopt_sleep.backends.faults import asked_wait, asks_to_sign_in, fault_from_status, fault_from_words, shown
from skillopt_sleep.errors import CallFailed

AZURE = "https://x.openai.azure.com/openai/deployments/m/chat/completions"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"RETRY-AFTER-MS": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": formatdate(1_000_000_060, usegmt=True)}, 60.0),
        ({"retry-after": formatdate(999, usegmt=True)}, 0.0),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_the_wait_that_is_asked_for(headers: dict[str, str], seconds: float | None) -> None:
    assert asked_wait(headers, now=lambda: 1_000_000_000.0) == seconds


@pytest.mark.parametrize(
    ("reply", "asks"),
    [
        ("Please run login", True),
        ("Not logged in \u00b7 Please run /login", True),
        ("Invalid API key. Run `claude /login`", True),
        ("", False),
        ("The token expired because the clock was wrong.", False),
        ("Please run the tests", False),
        ("Please run login" + " and read the long guide about it" * 9, False),
    ],
)
def test_a_request_to_sign_in_is_told_from_an_answer_about_it(reply: str, asks: bool) -> None:
    assert asks_to_sign_in(reply) is asks


def test_words_that_nobody_knows_are_a_passing_failure() -> None:
    fault = fault_from_words("something odd", "the tool", fix="sign in")
    assert (fault.kind, fault.passing, fault.fatal) == ("transient", True, False)
    until = fault_from_words(f"limit reached|{int(time.time()) + 600}", "the tool", fix="sign in")
    assert until.kind == "rate"
    assert until.wait is not None
    assert 590 < until.wait <= 600


def test_what_is_shown_is_one_short_line_without_secrets() -> None:
    text = shown("at https://me:hunter2@host/x\nwith marked-key and sk-abcdefghijklmnop " + "x" * 900, ["marked-key"])
    assert "\n" not in text
    assert len(text) <= 500
    assert not any(secret in text for secret in ("hunter2", "marked-key", "sk-abc"))


class Credential:
    """Azure's, played."""

    asked = 0

    def __init__(self, **_: object) -> None:
        """Takes anything."""

    def get_token(self, scope: str) -> SimpleNamespace:
        type(self).asked += 1
        if scope == "broken":
            raise RuntimeError("no identity endpoint")
        return SimpleNamespace(token=f"token {self.asked}", expires_on=time.time() + 400 * self.asked)


@pytest.fixture
def identity(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Credential]]:
    module = ModuleType("azure.identity")
    module.AzureCliCredential = module.ManagedIdentityCredential = Credential  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "azure.identity", module)
    Credential.asked = 0
    yield Credential


def test_a_token_is_kept_and_renewed_before_its_end(identity: type[Credential]) -> None:
    tokens = Tokens("azure_cli")
    assert [tokens.bearer(AZURE) for _ in range(2)] == ["token 1"] * 2
    tokens._until = time.time() + 200
    assert tokens.bearer(AZURE) == "token 2"
    assert identity.asked == 2
    assert "token" not in repr(tokens).replace("Tokens", "")


@pytest.mark.usefixtures("identity")
def test_a_failed_sign_in_says_how_to_mend_it() -> None:
    with pytest.raises(CallFailed, match="az login") as failure:
        Tokens("azure_cli", scope="broken").bearer(AZURE)
    assert failure.value.kind == "auth"


def test_a_server_that_never_shakes_hands_costs_no_more_than_the_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"https://127.0.0.1:{server.getsockname()[1]}/v1"
        begun = time.monotonic()
        with pytest.raises(CallFailed, match="did not answer"):
            transport.post(transport.HttpRequest(url, "it", b"{}", {}), seconds=0.3)
        assert time.monotonic() - begun < 20


@pytest.mark.parametrize("said", ["Incorrect API key provided", "Incorrect API key provided.", ""])
def test_what_the_provider_said_is_a_sentence_before_the_next_one(said: str) -> None:
    fault = fault_from_status(401, {}, json.dumps({"error": {"message": said}}), "the endpoint", fix="check KEY")
    assert str(fault).endswith(". Check KEY.")
    assert ".." not in str(fault)

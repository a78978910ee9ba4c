"""Signing in to Azure OpenAI: modes, the guard in front of every token, tokens kept and renewed."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from skillopt import errors
from skillopt.model.azure_auth import Credential, TokenSource, auth_mode, sign_in, token_source
from skillopt.model.values import CallContext
from skillopt.testing import role
from skillopt.types import RoleConfig
from skillopt.utils.cancel import CancelToken

AZURE = "https://unit-test.openai.azure.com/"


class Token(NamedTuple):
    token: str
    expires_on: int


class FakeCredential:
    """Gives `token-1`, `token-2`, …, each good for an hour of the fake clock."""

    def __init__(self, clock: Clock, *failures: Exception | None) -> None:
        self.clock, self.failures, self.scopes = clock, list(failures), []
        self.hold = threading.Event()
        self.hold.set()

    def get_token(self, *scopes: str) -> Token:
        self.scopes.append(scopes)
        self.hold.wait(60)
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None:
            raise failure
        return Token(f"token-{len(self.scopes)}", int(self.clock.now + 3600))


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def azure_role(**settings: object) -> RoleConfig:
    return role("http://unused/v1", backend="openai_chat", **{"endpoint": AZURE, **settings})


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("api_key", "api_key"),
        ("key", "api_key"),
        ("azure_cli", "azure_cli"),
        ("managed_identity", "managed_identity"),
        ("managed-identity", "managed_identity"),
        ("aad", "managed_identity"),
        (" AZURE_AD ", "managed_identity"),
        ("openai_compatible", "openai_compatible"),
        ("compat", "openai_compatible"),
        ("openai", "openai_compatible"),
    ],
)
def test_names_of_the_modes(name: str, mode: str) -> None:
    assert auth_mode(name) == mode


def test_another_mode_is_refused_with_the_list() -> None:
    with pytest.raises(errors.ConfigError, match=r"'kerberos'.*api_key.*azure_cli.*managed_identity.*compat"):
        sign_in(azure_role(auth_mode="kerberos"), CallContext(60.0))


@pytest.mark.parametrize("mode", ["api_key", "azure_cli", "aad", "compat", "kerberos"])
def test_a_missing_endpoint_is_said_before_anything_else(mode: str) -> None:
    with pytest.raises(errors.ConfigError, match="AZURE_OPENAI_ENDPOINT"):
        sign_in(azure_role(endpoint=" / ", auth_mode=mode, api_key=""), CallContext(60.0))


def test_key_modes_take_any_endpoint_and_say_which_header() -> None:
    ctx = CallContext(60.0)
    signed = sign_in(azure_role(endpoint="http://my-gateway:81/", auth_mode="key", api_key=" k "), ctx)
    assert (signed.azure, signed.endpoint, signed.key, signed.key_header) == (
        True,
        "http://my-gateway:81",
        "k",
        "api-key",
    )
    plain = sign_in(azure_role(endpoint="http://h/v1", auth_mode="openai", api_key=""), ctx)
    assert (plain.azure, plain.key, plain.key_header, plain.by_token) == (False, "", "Authorization", False)
    assert "secret" not in repr(sign_in(azure_role(auth_mode="key", api_key="secret"), ctx))


def test_a_missing_key_names_its_settings() -> None:
    with pytest.raises(errors.ConfigError, match=r"azure_openai_api_key.*AZURE_OPENAI_API_KEY"):
        sign_in(azure_role(auth_mode="api_key", api_key=""), CallContext(60.0))


@pytest.mark.parametrize("mode", ["azure_cli", "managed_identity", "aad"])
def test_a_token_mode_elsewhere_is_refused_before_identity_is_imported(mode: str) -> None:
    program = f"""
import sys
from skillopt import errors
from skillopt.model.azure_auth import sign_in
from skillopt.model.values import CallContext
from skillopt.testing import role
settings = {{"endpoint": "https://x.openai.azure.com.evil.com", "auth_mode": {mode!r}}}
made = role("http://unused/v1", backend="openai_chat", **settings)
try:
    sign_in(made, CallContext(60.0))
except errors.ConfigError as error:
    assert "openai_compatible" in str(error), error
else:
    raise SystemExit("not refused")
assert not [name for name in sys.modules if name == "azure" or name.startswith("azure.")]
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr


def test_a_token_is_used_until_five_minutes_before_its_end(clock: Clock) -> None:
    credential = FakeCredential(clock)
    source = TokenSource(lambda: credential, "scope", clock=clock)
    assert [source.token(60), source.token(60)] == ["token-1", "token-1"]
    clock.now += 3600 - 301
    assert source.token(60) == "token-1"
    clock.now += 2
    assert source.token(60) == "token-2"
    assert credential.scopes == [("scope",), ("scope",)]


def test_of_many_callers_one_asks(clock: Clock) -> None:
    credential = FakeCredential(clock)
    credential.hold.clear()
    source = TokenSource(lambda: credential, "scope", clock=clock)
    tokens: list[str] = []
    threads = [threading.Thread(target=lambda: tokens.append(source.token(60))) for _ in range(16)]
    for thread in threads:
        thread.start()
    while not credential.scopes:
        time.sleep(0.002)
    credential.hold.set()
    for thread in threads:
        thread.join()
    assert tokens == ["token-1"] * 16 and len(credential.scopes) == 1


def test_a_failed_renewal_uses_the_old_token_while_it_is_good(clock: Clock) -> None:
    credential = FakeCredential(clock, None, RuntimeError("down"), RuntimeError("down"))
    source = TokenSource(lambda: credential, "scope", clock=clock)
    source.token(60)
    clock.now += 3500
    assert [source.token(60), source.token(60)] == ["token-1", "token-1"]
    assert len(credential.scopes) == 2  # each attempt can take a minute: not one a call
    clock.now += 101
    with pytest.raises(errors.AuthError, match="down"):
        source.token(60)
    assert source.token(60) == "token-4"


def test_a_failure_says_what_to_do_and_no_secret(clock: Clock) -> None:
    token = "eyJ0eXAiOiJKV1QiLCJh.eyJhdWQiOiJodHRwczov.c2lnbmF0dXJl"
    credential = FakeCredential(clock, ValueError(f'no luck: {{"accessToken": "{token}"}}'))
    source = TokenSource(lambda: credential, "scope", who="azure_cli", fix="run `az login`", clock=clock)
    with pytest.raises(errors.AuthError, match=r"azure_cli.*no luck.*az login") as caught:
        source.token(60)
    assert token not in str(caught.value)
    for said in ("Azure CLI not found on path", "Please sign in."):
        failing = FakeCredential(clock, ValueError(said))
        with pytest.raises(errors.AuthError, match=rf"failed: {said.rstrip('.')}\. To mend it, sign in again\.$"):
            TokenSource(lambda failing=failing: failing, "scope", clock=clock).token(60)


def test_the_azure_package_says_nothing_on_the_screen(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("azure.identity", reason="needs azure-identity")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    with pytest.raises(errors.AuthError, match="install Azure's command line"):
        sign_in(azure_role(endpoint="https://x.openai.azure.com", auth_mode="azure_cli"), CallContext(timeout=60.0))
    assert capfd.readouterr().err == ""


def test_a_sign_in_that_hangs_ends(clock: Clock) -> None:
    credential = FakeCredential(clock)
    credential.hold.clear()
    source = TokenSource(lambda: credential, "scope", fix="run `az login`", clock=clock, limit=0.05)
    with pytest.raises(errors.AuthError, match="az login"):
        source.token(60)
    patient = TokenSource(lambda: credential, "scope", clock=clock)
    with pytest.raises(errors.DeadlineError):
        patient.token(0.05)
    stop = CancelToken()
    stop.cancel()
    with pytest.raises(errors.InterruptedRunError):
        patient.token(60, stop)
    credential.hold.set()


def test_a_session_keeps_one_source_for_a_mode_a_scope_and_a_client() -> None:
    ctx = CallContext(60.0)
    one = token_source(azure_role(), "azure_cli", ctx)
    assert token_source(azure_role(managed_identity_client_id="ignored by the CLI"), "azure_cli", ctx) is one
    assert token_source(azure_role(ad_scope="other"), "azure_cli", ctx) is not one
    mine = token_source(azure_role(managed_identity_client_id="a"), "managed_identity", ctx)
    assert token_source(azure_role(managed_identity_client_id="b"), "managed_identity", ctx) is not mine


def test_the_token_goes_into_the_authorization_header_and_shows_nowhere(clock: Clock) -> None:
    ctx = CallContext(60.0)
    scope = "https://cognitiveservices.azure.com/.default"
    credential: Credential = FakeCredential(clock)
    ctx.resources.get(
        ("azure_token", "azure_cli", scope, ""), lambda: TokenSource(lambda: credential, scope, clock=clock)
    )
    signed = sign_in(azure_role(auth_mode="azure_cli"), ctx)
    assert (signed.key, signed.key_header, signed.endpoint) == ("token-1", "Authorization", AZURE.rstrip("/"))
    source = token_source(azure_role(), "azure_cli", ctx)
    assert "token-1" not in repr(signed) + repr(source) + repr(vars(source))


@pytest.fixture
def fake_az(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Puts a program `az` first on the path that prints what it is given."""

    def install(output: str, *, code: int = 0, errors: str = "") -> Path:
        log = tmp_path / "az.log"
        program = (
            f"#!{sys.executable}\nimport sys\nopen({str(log)!r}, 'a').write(' '.join(sys.argv[1:]) + '\\n')\n"
            f"sys.stdout.write({output!r})\nsys.stderr.write({errors!r})\nsys.exit({code})\n"
        )
        az = tmp_path / "az"
        az.write_text(program, "utf-8")
        az.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        return log

    return install


posix = pytest.mark.skipif(os.name == "nt", reason="the fake program is a script")


@posix
def test_the_azure_command_line_is_asked_once(fake_az) -> None:
    log = fake_az(json.dumps({"accessToken": "cli-token", "expires_on": int(time.time()) + 3600}))
    ctx = CallContext(60.0)
    signed = [sign_in(azure_role(auth_mode="azure_cli"), ctx) for _ in range(3)]
    assert {s.key for s in signed} == {"cli-token"} and all(s.by_token for s in signed)
    asked = log.read_text("utf-8").splitlines()
    assert len(asked) == 1 and "https://cognitiveservices.azure.com" in asked[0]


@posix
def test_a_command_line_that_is_not_logged_in_names_the_fix(fake_az) -> None:
    fake_az("", code=1, errors="ERROR: Please run 'az login' to setup account.")
    with pytest.raises(errors.AuthError, match="az login"):
        sign_in(azure_role(auth_mode="azure_cli"), CallContext(60.0))

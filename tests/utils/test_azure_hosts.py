"""Where a sign-in token may go: a table of hosts, most of them hostile."""

from __future__ import annotations

import ast
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.errors import ConfigError
from skillopt.utils import azure_hosts
from skillopt.utils.azure_hosts import TOKEN_HOST_SUFFIXES, may_receive_token, require_token_host

APPROVED = [
    "https://x.openai.azure.com",
    "https://x.openai.azure.com/",
    "https://X.OpenAI.Azure.COM/",
    "HTTPS://x.openai.azure.com",
    "https://x.cognitiveservices.azure.com",
    "https://my-res-1.openai.azure.com:443/openai",
    "https://a.b.openai.azure.com/path?api-version=1",
    "https://x.openai.azure.com/@evil.com",
]
REFUSED = [
    "",
    "x.openai.azure.com",
    "//x.openai.azure.com",
    "http://x.openai.azure.com",
    "ftp://x.openai.azure.com",
    "http://127.0.0.1:8000/v1",
    "https://evil.example",
    "https://openai.azure.com",
    "https://cognitiveservices.azure.com/",
    "https://.openai.azure.com",
    "https://evil.com/.openai.azure.com",
    "https://evil.com/x.openai.azure.com",
    "https://evil.com?x.openai.azure.com",
    "https://evil.com#.openai.azure.com",
    "https://evil.com?@x.openai.azure.com",
    "https://x.openai.azure.com.evil.com",
    "https://x.openai.azure.com.",
    "https://x.openai.azure.com..",
    "https://x..openai.azure.com",
    "https://xopenai.azure.com",
    "https://x-openai.azure.com",
    "https://x.openai.azure.comx",
    "https://x.openai.azure.com@evil.com",
    "https://x.openai.azure.com:443@evil.com",
    "https://user:pw@x.openai.azure.com",
    "https://evil.com@x.openai.azure.com",
    "https://evil.com\\.openai.azure.com",
    "https://evil.com\\@x.openai.azure.com",
    "https:\\\\x.openai.azure.com",
    "https://evil.com/\\x.openai.azure.com",
    "https://evil.com%2F.openai.azure.com",
    "https://evil.com%00.openai.azure.com",
    "https://evil.com\x00.openai.azure.com",
    "https://evil.com\n.openai.azure.com",
    "https://x.openai.azure.com\n",
    "https://x.openai.azure.com\r\nHost: evil.com",
    " https://x.openai.azure.com",
    "https://x.openai.azure.com evil",
    "https://evil.com\t.openai.azure.com",
    "https://evil.com／.openai.azure.com",
    "https://evil.com＃.openai.azure.com",
    "https://evil.com℀.openai.azure.com",
    "https://x.openai.azure。com",
    "https://x.оpenai.azure.com",
    "https://ⓧ.openai.azure.com",
    "https://xſ.openai.azure.com",
    "https://\u212a.openai.azure.com",
    "https://x.openai.azure.com:99999999",
    "https://x.openai.azure.com:",
    "https://x.openai.azure.com:44a",
    "https://[::1].openai.azure.com",
    "https://[::1]",
    "https://-x.openai.azure.com",
    "https://x_y.openai.azure.com",
    "https://" + ".".join(["a" * 60] * 5) + ".openai.azure.com",
    "https:x.openai.azure.com",
    "https:///x.openai.azure.com",
    "https://x.openai.azure.us",
    "javascript://x.openai.azure.com",
]


@pytest.mark.parametrize("address", APPROVED)
def test_approved(address: str) -> None:
    assert may_receive_token(address)
    require_token_host(address)


@pytest.mark.parametrize("address", REFUSED)
def test_refused(address: str) -> None:
    assert not may_receive_token(address)
    with pytest.raises(ConfigError, match="openai_compatible"):
        require_token_host(address, error=ConfigError)


def test_the_message_does_not_repeat_the_address() -> None:
    with pytest.raises(ValueError) as caught:
        require_token_host("https://user:hunter2@evil.example")
    assert "hunter2" not in str(caught.value) and "evil" not in str(caught.value)


_PIECES = ["https://", "http://", "x", "evil.com", ".", "@", ":", "/", "\\", "?", "#", "%2e", ":443", "é", "\t", "//"]


@given(st.lists(st.sampled_from([*_PIECES, *TOKEN_HOST_SUFFIXES]), max_size=6).map("".join))
def test_what_is_approved_has_such_a_host_for_other_readers_too(tail: str) -> None:
    address = f"https://{tail}"
    if may_receive_token(address):
        parts = urlsplit(address)
        assert parts.scheme == "https" and parts.username is None
        assert (parts.hostname or "").endswith(TOKEN_HOST_SUFFIXES)
        assert address.isascii()


def test_the_rule_needs_the_standard_library_only() -> None:
    tree = ast.parse(Path(azure_hosts.__file__).read_text("utf-8"))
    imported = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {n.name for node in imported if isinstance(node, ast.Import) for n in node.names}
    names |= {node.module for node in imported if isinstance(node, ast.ImportFrom) and node.module}
    assert names == {"__future__", "re"}

"""Counting tokens exactly where that needs no network, and by estimate elsewhere."""

from __future__ import annotations

import hashlib
import socket
from pathlib import Path

import pytest

from skillopt.prompts import tables
from skillopt.prompts.tables import ESTIMATE, token_counter
from skillopt.prompts.tokens import count_tokens


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_kw: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def table_in(folder: Path) -> Path:
    return folder / hashlib.sha1(tables._URL.encode()).hexdigest()


def test_without_a_table_the_estimate_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    counter = token_counter()
    assert counter == ESTIMATE
    assert counter.name == "estimate"
    assert counter.count("twelve bytes") == count_tokens("twelve bytes") == 3


@pytest.mark.parametrize("folder", ["", "missing"])
def test_a_cache_that_is_not_there_is_no_error(monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", folder)
    assert token_counter() is ESTIMATE


def test_a_broken_table_is_neither_used_nor_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    monkeypatch.setenv("DATA_GYM_CACHE_DIR", str(tmp_path))
    table_in(tmp_path).write_bytes(b"IQ== 0\n")
    assert token_counter() is ESTIMATE
    assert table_in(tmp_path).exists()


def test_a_table_of_the_right_content_counts_exactly(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import tiktoken

    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    table_in(tmp_path).write_bytes(b"a stand-in for the table, which has 3.6 MB")
    monkeypatch.setattr(tables, "_SHA256", hashlib.sha256(table_in(tmp_path).read_bytes()).hexdigest())
    bytes_only = tiktoken.Encoding(
        "bytes", pat_str=r".", mergeable_ranks={bytes([n]): n for n in range(256)}, special_tokens={}
    )
    monkeypatch.setattr(tiktoken, "get_encoding", lambda name: bytes_only if name == "o200k_base" else None)
    counter = token_counter()
    assert counter.name == "tiktoken o200k_base"
    assert counter.count("abc<|endoftext|>") == 16

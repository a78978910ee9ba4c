"""What a program is asked about its tool servers, and how often."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from skillopt.utils.tool_servers import ServersUnknownError, Source, Told, resolved, servers_of


class Program:
    """Answers the question from a list, the last entry again and again."""

    def __init__(self, *answers: Told | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[list[str], Path]] = []
        self.empty: list[bool] = []

    def __call__(self, argv: Sequence[str], folder: Path) -> Told:
        self.asked.append((list(argv), folder))
        self.empty.append(not list(folder.iterdir()))
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer


def source(tmp_path: Path, key: str = "") -> Source:
    return Source(
        who="Tool",
        key=(key or str(tmp_path),),
        question=lambda folder: ["tool", "list", str(folder)],
        read=lambda output: tuple(output.split()) if output != "?" else None,
        files=(tmp_path / "config", tmp_path / "more"),
        may_have=Path.exists,
    )


def test_it_is_asked_once_in_an_empty_folder_that_is_gone_afterwards(tmp_path: Path) -> None:
    program = Program(Told("a b"))
    assert [servers_of(source(tmp_path), program) for _ in range(3)] == [("a", "b")] * 3
    ((argv, folder),) = program.asked
    assert argv == ["tool", "list", str(folder)]
    assert program.empty == [True]
    assert not folder.exists()
    assert servers_of(source(tmp_path, "another home"), program) == ("a", "b")
    assert len(program.asked) == 2


def test_it_is_asked_again_when_its_configuration_changed(tmp_path: Path) -> None:
    program = Program(Told("a"), Told("a b"), Told(""))
    assert servers_of(source(tmp_path), program) == ("a",)
    (tmp_path / "config").write_text("b", "utf-8")
    assert servers_of(source(tmp_path), program) == ("a", "b")
    os.utime(tmp_path / "config", (1, 1))
    assert servers_of(source(tmp_path), program) == servers_of(source(tmp_path), program) == ()
    assert len(program.asked) == 3


def test_many_threads_ask_once(tmp_path: Path) -> None:
    program, found, gate = Program(Told("a")), [], threading.Barrier(8)

    def work() -> None:
        gate.wait()
        found.append(servers_of(source(tmp_path), program))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [("a",)] * 8
    assert len(program.asked) == 1


@pytest.mark.parametrize("told", [Told("?"), Told(fault="unknown command")])
def test_what_cannot_tell_is_used_only_where_nothing_is_configured(tmp_path: Path, told: Told) -> None:
    program = Program(told)
    assert servers_of(source(tmp_path), program) == ()
    (tmp_path / "more").write_text("", "utf-8")
    with pytest.raises(
        ServersUnknownError, match=r"Tool does not .*more \((unknown command|its list).*; update Tool, or"
    ):
        servers_of(source(tmp_path), program)


def test_a_failure_is_not_kept(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("", "utf-8")
    program = Program(TimeoutError(), Told(fault="busy"), Told("a"))
    with pytest.raises(TimeoutError):
        servers_of(source(tmp_path), program)
    with pytest.raises(ServersUnknownError, match="busy"):
        servers_of(source(tmp_path), program)
    assert servers_of(source(tmp_path), program) == ("a",)
    assert not any(folder.exists() for _, folder in program.asked)


def test_a_program_is_told_by_its_file(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\n", "utf-8")
    (tmp_path / "tool").chmod(0o755)
    assert resolved("no-such-tool", str(tmp_path)) == "no-such-tool"
    if os.name == "posix":
        assert resolved("tool", str(tmp_path)) == str(tmp_path / "tool")

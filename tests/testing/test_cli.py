"""The fake command line: what it writes down, and what it acts out."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from patience import given_time

from skillopt.testing import CliTurn, FakeCli, claude_result, fake_claude
from skillopt.utils.process import ProcessResult, child_environment, run_process

pytestmark = pytest.mark.skipif(os.name == "nt", reason="checked on POSIX")


def start(cli: FakeCli, *args: str, cwd: Path, stdin: str = "", timeout: float = 60.0) -> ProcessResult:
    return run_process(
        [str(cli.path), *args], cwd=cwd, env=child_environment(MARKED="yes"), stdin=stdin, timeout=timeout
    )


def test_it_writes_down_what_it_was_given(tmp_path: Path) -> None:
    place = tmp_path / "place"
    (place / "deep").mkdir(parents=True)
    (place / "deep" / "note.txt").write_text("hi")
    cli = FakeCli(tmp_path / "bin", "tool", CliTurn("said é", "complained", code=4))
    result = start(cli, "-p", "two\nlines", "--flag", "", cwd=place, stdin="första\n")
    assert (result.stdout, result.stderr, result.code) == ("said é", "complained", 4)
    (call,) = cli.calls
    assert call.argv == ("-p", "two\nlines", "--flag", "")
    assert (call.number, call.stdin, call.cwd) == (1, "första\n", str(place))
    assert call.environment["MARKED"] == "yes"
    assert call.files == {"deep/note.txt": "hi"}
    assert (call.value("-p"), call.value("--flag"), call.value("--other")) == ("two\nlines", "", None)


def test_turns_are_played_in_order_and_words_win(tmp_path: Path) -> None:
    turns = [CliTurn("1"), CliTurn("France", when="capital"), CliTurn("2")]
    cli = FakeCli(tmp_path / "bin", "tool", turns)
    said = [start(cli, cwd=tmp_path, stdin=text).stdout for text in ("a", "the capital", "b", "c")]
    assert said == ["1", "France", "2", "2"]
    assert start(cli, "capital", cwd=tmp_path).stdout == "France"
    assert [call.number for call in cli.calls] == [1, 2, 3, 4, 5]


def test_calls_at_once_each_have_a_number_and_a_turn(tmp_path: Path) -> None:
    cli = FakeCli(tmp_path / "bin", "tool", [CliTurn(str(n)) for n in range(6)])
    with ThreadPoolExecutor(3) as pool:
        said = list(pool.map(lambda _: start(cli, cwd=tmp_path).stdout, range(6)))
    assert sorted(said) == [str(n) for n in range(6)]
    assert [call.number for call in cli.calls] == [1, 2, 3, 4, 5, 6]


def test_a_call_that_is_answered_aside_is_counted_apart(tmp_path: Path) -> None:
    cli = FakeCli(tmp_path, "codex", [CliTurn("one"), CliTurn("two")])
    said = [
        start(cli, *argv, cwd=tmp_path).stdout
        for argv in (["mcp", "list", "--json"], [], ["mcp", "list", "--json"], [])
    ]
    assert said == ["[]", "one", "[]", "two"]
    assert [call.number for call in cli.calls] == [call.number for call in cli.asides] == [1, 2]
    own = FakeCli(tmp_path / "own", "codex", CliTurn("mine", when="mcp list"))
    assert start(own, "mcp", "list", "--json", cwd=tmp_path).stdout == "mine"
    assert (len(own.calls), own.asides) == (1, ())


def test_a_call_without_a_turn_says_so(tmp_path: Path) -> None:
    cli = FakeCli(tmp_path / "bin", "tool", [CliTurn(when="never")])
    result = start(cli, cwd=tmp_path, stdin="hello")
    assert result.code == 1
    assert "no turn for this call" in result.stderr


def test_it_writes_the_file_that_a_flag_names_and_floods(tmp_path: Path) -> None:
    cli = FakeCli(tmp_path / "bin", "tool", CliTurn(files={"--out": "last words"}, flood=100_000))
    result = start(cli, "--out", str(tmp_path / "out.txt"), cwd=tmp_path)
    assert (tmp_path / "out.txt").read_text() == "last words"
    assert 90_000 < len(result.stdout) <= 100_000


def test_it_hangs_with_a_daemon_that_only_the_runner_can_end(tmp_path: Path) -> None:
    def hanging(seconds: float) -> tuple[FakeCli, ProcessResult]:
        cli = FakeCli(tmp_path / str(seconds), "tool", CliTurn("begun", hang=True, daemons=1))
        return cli, start(cli, cwd=tmp_path, timeout=seconds)

    cli, result = given_time(hanging, lambda made: bool(made[1].stdout))
    assert (result.timed_out, result.stdout) == (True, "begun")
    assert len(cli.calls[0].pids) == 2
    assert cli.survivors == ()


def test_the_fake_claude_prints_a_result(tmp_path: Path) -> None:
    cli = fake_claude(tmp_path, "Paris", code=3, stop_reason="max_tokens", session_id=None)
    result = start(cli, cwd=tmp_path)
    assert result.stdout == claude_result("Paris", stop_reason="max_tokens", session_id=None)
    assert result.code == 3
    assert cli.path.name == "claude"

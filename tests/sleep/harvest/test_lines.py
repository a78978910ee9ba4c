"""Reading JSON lines from files that others write."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt_sleep.harvest.lines import Transcript


def read(path: Path, longest: int = 4096) -> tuple[list[object], Transcript]:
    with Transcript(path, lambda _: None, longest=longest) as transcript:
        return list(transcript.records()), transcript


def test_a_line_above_the_cap_is_skipped_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"a": 1}\n{"b": "' + b"z" * 200_000 + b'"}\n{"c": 3}\n')
    records, transcript = read(path)
    assert records == [{"a": 1}, {"c": 3}]
    assert transcript.bad == {"too long": 1}
    assert transcript.offset == path.stat().st_size


def test_an_unfinished_line_above_the_cap_waits(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"a": 1}\n{"b": "' + b"z" * 200_000)
    records, transcript = read(path)
    assert records == [{"a": 1}]
    assert transcript.offset == 9
    with path.open("ab") as stream:
        stream.write(b'"}\n{"c": 3}\n')
    with Transcript(path, lambda _: None, longest=4096) as again:
        assert again.continues(transcript.marks)
        assert list(again.records()) == [{"c": 3}]


@given(st.lists(st.integers(0, 3000), max_size=6), st.integers(0, 6))
def test_reading_in_two_parts_is_reading_once(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], cut: int
) -> None:
    path = tmp_path_factory.mktemp("t") / "t.jsonl"
    lines = [json.dumps({"n": number, "text": "x" * size}).encode() + b"\n" for number, size in enumerate(sizes)]
    path.write_bytes(b"".join(lines[:cut]))
    first, transcript = read(path)
    with path.open("ab") as stream:
        stream.write(b"".join(lines[cut:]))
    with Transcript(path, lambda _: None, longest=4096) as again:
        assert again.continues(transcript.marks)
        rest = list(again.records())
        marks = again.marks
    assert [*first, *rest] == [json.loads(line) for line in lines]
    assert marks == read(path)[1].marks


def test_other_content_is_not_taken_for_a_continuation(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"a": 1}\n' * 400)
    marks = read(path)[1].marks
    for other in (b'{"a": 2}\n' * 500, b'{"a": 1}\n' * 399, b'{"a": 1}\n' * 399 + b'{"a": 3}\n' * 9):
        path.write_bytes(other)
        with Transcript(path, lambda _: None) as transcript:
            assert not transcript.continues(marks)
            assert len(list(transcript.records())) == other.count(b"\n")

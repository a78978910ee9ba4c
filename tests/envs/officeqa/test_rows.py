"""Rows of the public data and of other tools as items: names, ids, lists."""

from __future__ import annotations

import pytest

from skillopt.envs.officeqa.rows import listed, normal_row, page_hints, page_number


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("a.txt, b.txt", ["a.txt", "b.txt"]),
        ("a.txt,b.txt", ["a.txt", "b.txt"]),
        ("a.txt; b.txt", ["a.txt", "b.txt"]),
        ("a.txt\r\nb.txt\r\n", ["a.txt", "b.txt"]),
        ('["a.txt", "b.txt"]', ["a.txt", "b.txt"]),
        ("['a.txt', 'b.txt']", ["a.txt", "b.txt"]),
        (["a.txt", " ", "b.txt"], ["a.txt", "b.txt"]),
        ("Bulletin, May 1941.txt", ["Bulletin, May 1941.txt"]),
        ("first, second", ["first", "second"]),
        ("https://x.example/a?page=1,2 https://x.example/b", ["https://x.example/a?page=1,2", "https://x.example/b"]),
        ("https://x.example/a, https://x.example/b", ["https://x.example/a", "https://x.example/b"]),
        ("[not a list", ["[not a list"]),
        ("", []),
        (None, []),
    ],
)
def test_a_list_is_read_from_every_form(value: object, names: list[str]) -> None:
    assert listed(value) == names


def test_the_uid_is_the_id_and_other_names_stand_in() -> None:
    item = normal_row({"id": "row-0123456789", "uid": "UID1", "question": "q", "answer": 12, "difficulty": "hard"})
    assert (item["id"], item["ground_truth"], item["category"]) == ("UID1", "12", "hard")
    assert (item["source_files"], item["source_docs"]) == ([], [])
    assert normal_row(item) == item
    assert normal_row({"id": "7", "answer": 0})["ground_truth"] == "0"
    assert normal_row({"id": "7"})["category"] == "officeqa"


@pytest.mark.parametrize(
    ("address", "page"),
    [
        ("https://x.example/a?page=15", 15),
        ("https://x.example/a?pagenum=2&x=1", 2),
        ("https://x.example/a?page_id=0", 0),
        ("https://x.example/a?page=last", None),
        ("https://x.example/a", None),
        ("https://[broken", None),
    ],
)
def test_pages_are_read_from_addresses(address: str, page: int | None) -> None:
    assert page_number(address) == page


def test_pages_belong_to_the_file_at_their_position_or_to_the_only_one() -> None:
    docs = ["https://x.example/?page=1", "https://x.example/?page=2", "https://x.example/?page=2"]
    assert page_hints({"source_files": ["a.txt"], "source_docs": docs}) == [("a.txt", 1), ("a.txt", 2)]
    assert page_hints({"source_files": ["a.txt", "b.txt"], "source_docs": docs}) == [("a.txt", 1), ("b.txt", 2)]
    assert page_hints({"source_files": [], "source_docs": docs}) == []

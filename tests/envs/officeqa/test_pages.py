"""Parsed pages: found, rendered, bounded, missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt.envs.officeqa.pages import PAGE_CHARS, TOTAL_CHARS, PageShelf, join_pages, markdown_tables
from skillopt.errors import DataError


def test_a_page_is_its_elements_with_tables_as_markdown(docs: Path) -> None:
    shelf = PageShelf([(docs / "transformed").resolve()])
    path = shelf.file_of("some/folder/a.txt")
    assert path == (docs / "jsons" / "a.json").resolve()
    assert shelf.page(path, 3) == "Coal\n\n| Kind | Tons |\n| --- | --- |\n| Coal\\|Coke | 1,234 |"
    assert shelf.page(path, 4).startswith("| Kind")
    with pytest.raises(DataError, match="holds nothing on page 9"):
        shelf.page(path, 9)


@pytest.mark.parametrize("place", ["jsons", "transformed/jsons", "treasury_bulletins_parsed/jsons"])
def test_parsed_files_are_found_under_the_root_and_beside_it(tmp_path: Path, place: str) -> None:
    (tmp_path / "transformed").mkdir()
    (tmp_path / place).mkdir(parents=True)
    (tmp_path / place / "b.json").write_text("{}", encoding="utf-8")
    shelf = PageShelf([(tmp_path / "transformed").resolve()])
    assert shelf.file_of("b.txt") == (tmp_path / place / "b.json").resolve()
    assert shelf.file_of("../jsons/c.txt") is None


def test_a_parsed_file_that_leads_elsewhere_is_none(docs: Path, tmp_path: Path) -> None:
    (tmp_path / "gold.json").write_text("{}", encoding="utf-8")
    (docs / "jsons" / "z.json").symlink_to(tmp_path / "gold.json")
    assert PageShelf([docs.resolve()]).file_of("z.txt") is None


@pytest.mark.parametrize("text", ["{", "[]", '{"document": {"elements": [1]}}', '{"document": {}}', "[" * 100_000])
def test_a_broken_parsed_file_is_an_error_of_the_data(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"x\.json: is no parsed document"):
        PageShelf([]).page(path, 1)


def test_spans_leave_their_other_cells_blank() -> None:
    html = (
        "<table><tr><td rowspan='2'>Year</td><td colspan=2>Tons</td></tr><tr><td>in</td><td>out</td></tr>"
        "<tr><td>1931</td><td>5<br>6</td><td>&lt;7</td></tr></table>"
    )
    assert markdown_tables(html).splitlines() == [
        "| Year | Tons |  |", "| --- | --- | --- |", "|  | in | out |", "| 1931 | 5 6 | <7 |",
    ]  # fmt: skip


def test_pages_are_bounded_one_by_one_and_together(tmp_path: Path) -> None:
    element = {"content": "x" * 50_000, "bbox": [{"page_id": 1}]}
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"document": {"elements": [element]}}), encoding="utf-8")
    page = PageShelf([]).page(path, 1)
    assert len(page) == PAGE_CHARS and page.endswith("[… the page goes on]")
    joined = join_pages([(f"Page {n}", page) for n in range(9)])
    assert 0.95 * TOTAL_CHARS < len(joined) <= TOTAL_CHARS
    assert join_pages([("Page 1", "short")]) == "### Page 1\n\nshort"


@given(st.lists(st.tuples(st.text(max_size=20), st.integers(0, 60_000).map("x".__mul__)), max_size=6))
def test_pages_together_never_exceed_the_bound(pages: list[tuple[str, str]]) -> None:
    assert len(join_pages(pages)) <= TOTAL_CHARS


@given(st.text(alphabet="<>/tdrhable ='12|\n&;", max_size=200))
def test_no_markup_raises(html: str) -> None:
    markdown_tables(html)

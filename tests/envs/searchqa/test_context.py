"""Search results within their length: whole documents, and no mark lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skillopt.envs.searchqa.context import CUT_MARK, LIMIT, shorten_context


def document(name: str, length: int) -> str:
    return f"[DOC] {name} ".ljust(length, name)


def test_a_short_context_is_shown_as_it_is() -> None:
    assert shorten_context("") == ""
    text = "[DOC] one [DOC] two  "
    assert shorten_context(text) == text
    assert shorten_context("x" * LIMIT) == "x" * LIMIT


def test_documents_are_kept_whole_and_in_order_as_long_as_they_fit() -> None:
    parts = [document("a", 2500), document("b", 2500), document("c", 1500), document("d", 100)]
    assert shorten_context("".join(parts)) == "".join(parts[:2])  # d would fit, but c comes first


def test_the_mark_of_the_first_document_is_not_lost() -> None:
    shown = shorten_context(document("a", 4000) + document("b", 4000))
    assert shown == document("a", 4000)
    assert shown.startswith("[DOC]")


def test_text_before_the_first_mark_is_a_document_too() -> None:
    assert shorten_context("intro " + document("a", 6000)) == "intro"


def test_of_a_first_document_that_is_too_long_the_beginning_is_shown() -> None:
    text = document("a", 7000)
    assert shorten_context(text) == text[:LIMIT] + CUT_MARK
    assert len(shorten_context(text)) == 6015
    assert shorten_context("  " + text) == ("  " + text)[:LIMIT] + CUT_MARK


@given(st.lists(st.text(max_size=12), max_size=8), st.integers(1, 40))
def test_what_is_shown_is_a_beginning_within_the_limit(texts: list[str], limit: int) -> None:
    context = "".join(f"[DOC]{text}" for text in texts)
    shown = shorten_context(context, limit)
    kept = shown.removesuffix(CUT_MARK)
    assert context.startswith(kept) and len(kept) <= max(limit, 0)
    if context.strip():
        assert shown

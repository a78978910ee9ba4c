"""Properties of the rules for names and paths."""

from __future__ import annotations

import string
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt_sleep.errors import StagingError
from skillopt_sleep.staging.diff import unified, visible
from skillopt_sleep.staging.names import (
    check_live_path,
    check_name,
    fold,
    has_control,
    normalize_skill_name,
    proposal_filename,
)

SAFE = st.text(alphabet=string.ascii_letters + string.digits + "-_", min_size=1, max_size=40)


@given(st.text(max_size=60))
def test_a_storable_name_is_one_safe_segment(name: str) -> None:
    try:
        file = proposal_filename(name)
    except StagingError:
        return
    assert Path(file).name == file
    assert normalize_skill_name(name) == name
    assert not set(file) & set('/\\:*?"<>|')
    assert not name.endswith((".", " "))
    assert len(file.encode()) < 255


@given(st.text(max_size=60))
def test_normalising_a_name_is_idempotent_and_keeps_or_refuses(name: str) -> None:
    normal = normalize_skill_name(name)
    assert normal in ("", name.strip())
    assert normalize_skill_name(normal) == normal


@given(SAFE)
def test_plain_names_are_accepted_as_they_are(name: str) -> None:
    if name.lower().startswith(("con", "prn", "aux", "nul", "com", "lpt")):
        return
    assert check_name(name) == name


@given(st.text(max_size=40))
def test_folding_joins_what_a_file_system_may_join(name: str) -> None:
    assert fold(fold(name)) == fold(name)
    assert fold(unicodedata.normalize("NFD", name)) == fold(unicodedata.normalize("NFC", name))


@given(st.lists(st.one_of(SAFE, st.sampled_from(["..", ".", "", "~", "~x"])), max_size=8))
def test_a_path_with_a_parent_or_home_segment_is_refused_and_others_are_normal(segments: list[str]) -> None:
    raw = "/" + "/".join([*segments, "SKILL.md"])
    if any(segment == ".." or segment.startswith("~") for segment in segments):
        with pytest.raises(StagingError):
            check_live_path(raw, "row")
        return
    path = check_live_path(raw, "row")
    assert path == Path("/", *[segment for segment in segments if segment not in ("", ".")], "SKILL.md")
    assert check_live_path(str(path), "row") == path


@given(st.text(max_size=80))
def test_any_text_is_a_sound_absolute_path_or_refused(raw: str) -> None:
    try:
        path = check_live_path(raw, "row")
    except StagingError:
        return
    assert path.is_absolute()
    assert ".." not in path.parts
    assert not has_control(str(path))


@given(st.text(max_size=200), st.text(max_size=200))
def test_a_diff_never_holds_what_a_terminal_acts_on(before: str, after: str) -> None:
    text = unified(before, after, label="x")
    assert not any(unicodedata.category(letter) in ("Cc", "Cf") and letter not in "\n\t" for letter in text)
    assert visible(visible(after)) == visible(after)

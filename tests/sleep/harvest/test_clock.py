"""Times of transcripts as seconds since 1970."""

from __future__ import annotations

import time

import pytest

from skillopt_sleep.harvest.clock import epoch_of, iso_of

NOON = 1_785_844_800.0  # 2026-08-04T12:00:00Z


@pytest.mark.parametrize(
    "value",
    [
        "2026-08-04T12:00:00Z",
        "2026-08-04 12:00:00",
        "2026-08-04T12:00",
        "2026-08-04T12:00:00.000000000Z",
        "2026-08-04T21:00:00+09:00",
        "2026-08-04T21:00:00+0900",
        "2026-08-04T07:00:00-05",
        NOON,
        int(NOON),
        NOON * 1e3,
        NOON * 1e6,
        int(NOON) * 10**9,
        str(int(NOON) * 1000),
    ],
)
def test_every_form_of_one_moment(value: object) -> None:
    assert epoch_of(value) == NOON


@pytest.mark.parametrize(
    "value", [None, "", "soon", True, [], {}, float("nan"), float("inf"), -5, 10**30, 12, "2026-13-01"]
)
def test_what_is_no_time(value: object) -> None:
    assert epoch_of(value) is None


def test_a_fraction_is_kept() -> None:
    assert epoch_of("2026-08-04T12:00:00.25Z") == NOON + 0.25
    assert iso_of(NOON + 0.25) == "2026-08-04T12:00:00.250+00:00"
    assert epoch_of(iso_of(NOON)) == NOON
    assert iso_of(None) == ""


def test_without_an_offset_a_persons_time_is_local(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    try:
        assert epoch_of("2026-08-04T20:00:00", naive_is_local=True) == NOON
        assert epoch_of("2026-08-04T12:00:00") == NOON
    finally:
        monkeypatch.undo()
        time.tzset()

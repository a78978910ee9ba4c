"""The lexicon of praise and complaint."""

from __future__ import annotations

import pytest

from skillopt_sleep.harvest.feedback import signals


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("perfect, thanks", ["pos:thanks", "pos:perfect"]),
        ("Still broken", ["neg:still broken", "neg:broken"]),
        ("this is incorrect", ["neg:incorrect"]),
        ("use a fixed-width font", []),
        ("it is not fixed", ["neg:not fixed"]),
        ("not perfect", []),
        ("nothing wrong here", []),
        ("no, use tabs", ["neg:no,"]),
        ("There is no, or little, room", []),
        ("that doesn\u2019t work", ["neg:doesn't work"]),
        ("LGTM", ["pos:lgtm"]),
        ("a pundit spoke", []),
        ("works   now", ["pos:works now"]),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert signals([text]) == expected


def test_more_phrases_come_from_the_environment_at_each_use(monkeypatch: pytest.MonkeyPatch) -> None:
    assert signals(["passt nicht", "ありがとうございます"]) == []
    monkeypatch.setenv("SKILLOPT_SLEEP_NEG_FEEDBACK", " passt nicht ,")
    monkeypatch.setenv("SKILLOPT_SLEEP_POS_FEEDBACK", "ありがとう")
    assert signals(["passt nicht", "ありがとうございます"]) == ["neg:passt nicht", "pos:ありがとう"]


def test_signals_are_bounded() -> None:
    assert len(signals(["wrong"] * 1000)) == 100

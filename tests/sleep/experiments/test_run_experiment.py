"""The demonstration that needs no model: scores rise, harm is refused."""

from __future__ import annotations

import json

import pytest

from skillopt_sleep.backends.mock import HARMFUL, RULES, MockBackend
from skillopt_sleep.experiments.run_experiment import main
from skillopt_sleep.learn.measure import Decision

KEYS = [
    *("persona", "backend", "model", "n_tasks", "nights_run", "baseline_holdout", "after_holdout", "lift", "improved"),
    *("gate_blocks_harmful", "tokens_used", "final_skill_excerpt", "trace"),
]


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict]:
    code = main([*words, "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(("persona", "before"), [("researcher", 0.3333), ("programmer", 0.3194)])
def test_the_held_out_score_rises_as_published(capsys: pytest.CaptureFixture[str], persona: str, before: float) -> None:
    code, result = run(capsys, "--persona", persona, "--assert-improves")
    assert code == 0
    assert list(result) == KEYS
    assert result["baseline_holdout"] == pytest.approx(before, abs=5e-5)
    assert result["after_holdout"] == 1.0
    assert result["nights_run"] == 1
    assert result["improved"]
    assert result["tokens_used"] == 0


def test_the_gate_measures_the_harmful_rule_and_refuses_it(capsys: pytest.CaptureFixture[str]) -> None:
    _, result = run(capsys)
    assert result["gate_blocks_harmful"] is True
    row = result["trace"][-1]
    assert (row["phase"], row["verdict"], row["baseline_score"]) == ("harmful", "reject", 1.0)
    assert row["candidate_score"] < 0.5
    assert row["rejected"] == [RULES[HARMFUL]]
    assert RULES[HARMFUL] not in result["final_skill_excerpt"]


def test_a_gate_that_lets_harm_in_fails_the_assertion(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lax(*_: object, **__: object) -> Decision:
        return Decision("accept", "accept_new_best")

    monkeypatch.setattr("skillopt_sleep.learn.trial.decide", lax)
    code, result = run(capsys, "--assert-improves")
    assert code == 1
    assert result["gate_blocks_harmful"] is False


def test_no_rise_fails_the_assertion(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(MockBackend, "reflect", lambda *_, **__: [])
    assert main(["--assert-improves"]) == 1
    assert main([]) == 0
    assert "did not rise" in capsys.readouterr().err


def test_flags_reach_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    code, result = run(capsys, "--edit-budget", "1", "--nights", "2")
    assert code == 0
    assert (result["after_holdout"], result["nights_run"]) == (pytest.approx(1 / 3), 2)  # neither rule helps alone
    _, few = run(capsys, "--limit-tasks", "5")
    assert few["n_tasks"] == 5


def test_a_backend_that_is_not_there_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--backend", "copilot"]) == 2
    assert "copilot" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["--persona", "baker"])


def test_human_output_tells_the_story(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    out = capsys.readouterr().out
    assert "held-out score 0.333 -> 1.000" in out
    assert "harmful rule: reject (1.000 -> 0.000" in out

"""Deficient skills of a benchmark: reading, nights, transfer, sweep, report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skillopt_sleep.errors import BudgetSpent, UsageProblem
from skillopt_sleep.experiments import report, run_gbrain, run_transfer, sweep
from skillopt_sleep.experiments.common import Plan
from skillopt_sleep.experiments.gbrain import find_data, load_seed
from skillopt_sleep.experiments.run_gbrain import run_seed
from skillopt_sleep.experiments.run_transfer import transfer_seed


def row(task_id: str) -> dict:
    return {"task_id": task_id, "task": "y", "judge": {"kind": "rule", "checks": [{"op": "min_chars", "arg": 5}]}}


def test_a_seed_is_read_with_its_splits(data: Path) -> None:
    seed = load_seed(find_data(str(data)), "advisor")
    assert seed.skill.startswith("# Briefs")
    assert {task.split for task in seed.tasks} == {"train", "val", "test"}
    assert [task.id for task in seed.split("test")] == [f"advisor:held-out-{at}" for at in range(4)]
    assert len(seed.split("train")) + len(seed.split("val")) == 12
    assert len(load_seed(find_data(str(data)), "advisor", limit_replay=3, limit_holdout=2).tasks) == 5


def test_missing_data_ends_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert run_gbrain.main([]) == 2
    assert "--data-root" in capsys.readouterr().err
    assert run_transfer.main(["--data-root", str(tmp_path)]) == 2
    assert sweep.main(["--out", str(tmp_path / "rows.jsonl")]) == 2


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "task_id, task and judge"),
        ('{"task_id": "x", "task": "y"}', "judge"),
        ('{"task_id": "x", "task": "y", "judge": {"kind": "rubric"}}', "rule"),
        ('{"task_id": "x", "task": "y", "judge": {"kind": "rule", "checks": [{"op": "regex", "arg": "("}]}}', "regex"),
        (json.dumps(row("benchmark-0")), "twice"),
        (json.dumps(row("held-out-0")), "both files"),
    ],
)
def test_a_bad_line_is_named(data: Path, line: str, problem: str) -> None:
    root = find_data(str(data))
    file = root / "seed-no-verdict" / "benchmark.jsonl"
    file.write_text(file.read_text() + line + "\n")
    with pytest.raises(UsageProblem, match=problem):
        load_seed(root, "advisor")


def test_nights_raise_the_held_out_score(data: Path, writer) -> None:
    backend = writer()
    seed = load_seed(find_data(str(data)), "advisor")
    row = run_seed(backend, seed, Plan(nights=3, gate_min_val=1))
    assert (row["baseline"], row["after"], row["lift"], row["improved"]) == (0.0, 1.0, 1.0, True)
    assert row["nights_run"] == 1
    assert row["final_skill"].startswith(seed.skill)
    assert row["tokens_used"] == backend.tokens_used()


def test_held_out_tasks_are_never_learnt_from(data: Path, writer) -> None:
    seen: list[str] = []

    class Watched(writer):
        def reflect(self, failures, *rest, **more):
            seen.extend(task.id for task, _ in failures)
            return super().reflect(failures, *rest, **more)

    run_seed(Watched(), load_seed(find_data(str(data)), "advisor"), Plan(nights=1, gate_min_val=1))
    assert seen
    assert not any("held-out" in name for name in seen)


def test_few_validation_tasks_accept_nothing(data: Path, writer) -> None:
    seed = load_seed(find_data(str(data)), "advisor", limit_replay=4)
    row = run_seed(writer(), seed, Plan(nights=1))
    assert row["nights"][0]["action"] == "inconclusive"
    assert not row["improved"]


def test_summary_has_the_published_keys(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_gbrain.main(["--data-root", str(data), "--nights", "1", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert list(summary)[:7] == ["benchmark", "backend", "model", "n_seeds", "n_improved", "tokens_used", "results"]
    assert (summary["benchmark"], summary["n_seeds"], summary["n_improved"]) == ("skillopt-v1", 4, 0)
    assert run_gbrain.main(["--data-root", str(data), "--seeds", "advisor,poet"]) == 2


def test_a_budget_of_tokens_plans_the_depth(data: Path) -> None:
    seed = load_seed(find_data(str(data)), "advisor")
    flags = run_gbrain.parser().parse_args(["--budget-tokens", str(1500 * 36 * 2)])
    assert run_gbrain.plan_for(flags, seed, 1) == Plan(2, 4, 1)
    flags = run_gbrain.parser().parse_args(["--gate", "hard"])
    assert run_gbrain.plan_for(flags, seed, 1).gate_metric == "hard"
    flags = run_gbrain.parser().parse_args(["--gate", "off"])
    assert run_gbrain.plan_for(flags, seed, 1).gate_mode == "off"


def test_a_spent_budget_keeps_the_seeds_that_were_done(
    data: Path, writer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Poor(writer):
        def attempt(self, *args, **more):
            if self.calls > 60:
                raise BudgetSpent("the cap is reached", limit="calls")
            return super().attempt(*args, **more)

    monkeypatch.setattr(run_gbrain, "backend_of", lambda *_, **__: Poor())
    assert run_gbrain.main(["--data-root", str(data), "--nights", "1", "--gate-min-val", "1"]) == 0
    out = capsys.readouterr().out
    assert "2 of 2 improved" in out
    assert "the cap is reached" in out


def test_a_skill_moves_to_another_model(data: Path, writer) -> None:
    seed = load_seed(find_data(str(data)), "advisor")
    row = transfer_seed(writer(), writer(name="other"), seed, Plan(nights=1, gate_min_val=1))
    assert (row["baseline_target"], row["direct_target"], row["transferred"], row["transfer_gain"]) == (
        0.0,
        1.0,
        1.0,
        1.0,
    )
    row = transfer_seed(writer(), writer(gift=True), seed, Plan(nights=1, gate_min_val=1), direct=False)
    assert (row["baseline_target"], row["direct_target"], row["transfer_gain"]) == (1.0, None, 0.0)


def test_a_sweep_goes_on_where_it_was(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "rows.jsonl"
    words = ["--data-root", str(data), "--out", str(out), "--plan", "full", "--nights", "1"]
    assert sweep.main(words) == 0
    lines = out.read_text().splitlines()
    assert len(lines) == 12
    out.write_text("\n".join(lines[:5]) + '\n{"cfg_key": "cut')
    capsys.readouterr()
    assert sweep.main(words) == 0
    assert capsys.readouterr().out.count("done already") == 5
    assert len(sweep.read_rows(out)) == 12
    assert sweep.main(words) == 0


def test_errors_have_rows_and_count_as_done(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "rows.jsonl"
    words = ["--data-root", str(data), "--out", str(out), "--backend", "copilot"]
    assert sweep.main(words) == 1
    assert sweep.main(words) == 0
    assert len(out.read_text().splitlines()) == 1
    assert sweep.main([*words, "--retry-errors"]) == 1
    assert len(out.read_text().splitlines()) == 2
    capsys.readouterr()
    assert report.main([str(out)]) == 0
    text = capsys.readouterr().out
    assert "## Errors" in text
    assert text.count("copilot") >= 1
    assert "## Direct" not in text


def test_the_report_has_a_table_for_each_kind(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "rows.jsonl"
    sweep.main(["--data-root", str(data), "--out", str(out), "--plan", "full", "--nights", "1"])
    capsys.readouterr()
    assert report.main([str(out)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("# Experiments\n\n## Direct\n\n| Seed |")
    assert "| brief-writer | mock | on | 1 | 0.000 | 0.000 | +0.000 | 0 |" in text
    assert "## Transfer" in text
    assert report.main([str(tmp_path / "nothing.jsonl")]) == 2

"""A test split whose answers are in the run's store is scored without a call, and fast."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

import skillopt
from skillopt.config.resolve import resolve
from skillopt.testing import ScriptedModel

SIZE = 1400
DOCUMENTS = " ".join(f"[DOC] [TLE] page {n} [PAR] {'some words that lead nowhere ' * 8}" for n in range(20))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for split, size in {"train": 400, "val": 200, "test": SIZE}.items():
        texts = [(f"{split}-{n}", f"clue {split} {n}", f"[DOC] {n} {DOCUMENTS}", [f"a{n}"]) for n in range(size)]
        rows = [dict(zip(("id", "question", "context", "answers"), row, strict=True)) for row in texts]
        folder = tmp_path / "data" / split
        folder.mkdir(parents=True)
        (folder / "items.json").write_text(json.dumps(rows), encoding="utf-8")
    return tmp_path / "data"


def test_1400_stored_answers_are_scored_without_a_call(tmp_path: Path, data: Path) -> None:
    env = {"name": "searchqa", "split_mode": "split_dir", "split_dir": str(data), "out_root": str(tmp_path / "run")}
    settings = {"model": {"backend": "mock_chat"}, "env": {**env, "workers": 16}}
    config = resolve(settings, command="eval")
    target = ScriptedModel(lambda call: f"<answer>a{call.last_user.rsplit(' ', 1)[1]}</answer>")
    config = replace(config, roles={**config.roles, "target": target.role("target")})

    first = skillopt.evaluate("# Short answers\n", config, split="test")
    assert (first["n_items"], first["hard"], len(target.calls)) == (SIZE, 1.0, SIZE)
    start = time.perf_counter()
    again = skillopt.evaluate("# Short answers\n", config, split="test")
    print(f"{SIZE} stored answers: {time.perf_counter() - start:.2f} s")  # `pytest -s` shows it
    assert len(target.calls) == SIZE
    for name in ("n_items", "n_errors", "hard", "soft", "by_task_type"):
        assert again[name] == first[name]
    assert again["by_task_type"]["qa"] == {"total": SIZE, "hard_acc": 1.0}

"""What the shipped presets promise to a person who chooses one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skillopt.config.resolve import resolve

FEATURES = Path("configs/features")
DEFAULT = Path("configs/_base_/default.yaml")


def settings(path: Path) -> dict[str, Any]:
    """All settings but the run folder, whose built-in name holds the time."""
    return {name: value for name, value in resolve(path).flat().items() if name != "out_root"}


def test_the_defaults_are_the_decisions_of_the_paper() -> None:
    assert settings(FEATURES / "paper.yaml") == settings(DEFAULT)


def test_the_paper_preset_gates_the_bundle_on_any_gain() -> None:
    config = resolve(FEATURES / "paper.yaml")
    assert (config.evaluation.gate_policy, config.optimizer.screen_edits) == ("strict", False)
    assert config.optimizer.use_slow_update
    assert config.optimizer.use_meta_skill
    optimizer = config.optimizer
    assert (optimizer.learning_rate, optimizer.min_learning_rate, optimizer.lr_scheduler) == (4, 2, "cosine")


def test_the_efficient_preset_screens_edits_and_pays_for_nothing_else() -> None:
    config = resolve(FEATURES / "efficient.yaml")
    assert config.optimizer.screen_edits
    assert config.evaluation.early_stop == "exact"
    assert not config.optimizer.use_slow_update
    assert not config.optimizer.use_meta_skill


def test_the_careful_preset_wants_evidence_for_every_change() -> None:
    config = resolve(FEATURES / "careful.yaml")
    assert config.evaluation.gate_policy == "paired"
    assert config.evaluation.gate_alpha < 0.05
    assert config.env.samples_per_item > 1
    assert config.optimizer.leak_guard
    assert config.optimizer.slow_update_gate_with_selection


@pytest.mark.parametrize("path", sorted(FEATURES.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_preset_leaves_model_data_and_budget_to_the_user(path: Path) -> None:
    flat, base = settings(path), settings(DEFAULT)
    changed = {name for name, value in flat.items() if base.get(name) != value}
    assert not {name for name in changed if name.startswith(("max_", "target", "optimizer_", "split_", "data_"))}

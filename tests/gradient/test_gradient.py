"""The packages' lazy names."""

from __future__ import annotations

import subprocess
import sys

import pytest

import skillopt.evaluation
import skillopt.gradient
from skillopt.evaluation.gate import evaluate_gate
from skillopt.gradient.aggregate import merge_patches


def test_public_names() -> None:
    assert skillopt.gradient.merge_patches is merge_patches
    assert skillopt.evaluation.evaluate_gate is evaluate_gate
    for package in (skillopt.gradient, skillopt.evaluation):
        assert all(hasattr(package, name) for name in package.__all__)
        with pytest.raises(AttributeError, match="has no attribute 'nope'"):
            package.nope  # noqa: B018


def test_importing_loads_nothing_heavy() -> None:
    code = (
        "import sys, skillopt.gradient.reflect, skillopt.gradient.aggregate, skillopt.optimizer.select, "
        "skillopt.optimizer.step_buffer, skillopt.optimizer.update, skillopt.evaluation.gate\n"
        "print(sorted({'pydantic', 'tiktoken', 'openai', 'requests', 'json_repair', 'yaml'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

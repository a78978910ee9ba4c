"""LiveMathematicianBench: multiple-choice questions about theorems of recent papers."""

from __future__ import annotations

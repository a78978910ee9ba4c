"""The functions around coding agents under one import path, for environments that prepare the folder themselves."""

from __future__ import annotations

from skillopt.model.harness.codex_trace import extract_codex_trace_prefix, format_codex_trace_steps, parse_codex_raw
from skillopt.model.harness.target import run_target_exec
from skillopt.model.harness.workspace import prepare_workspace, render_skill_md

__all__ = [
    "extract_codex_trace_prefix",
    "format_codex_trace_steps",
    "parse_codex_raw",
    "prepare_workspace",
    "render_skill_md",
    "run_target_exec",
]

"""Environments: what a task is, how it is put to the target model, and how its answer is scored.

    adapter.py    the contract of an environment: EnvAdapter
    base.py       the base of those whose task is a question to a model: TaskEnv
    chat.py       the target model as one item sees it
    runner.py     the one way to run items: workers, deadlines, retries, storage, order
    registry.py   finds an environment by name
    jsonl/        bring your own data: CSV, JSON or JSON Lines

A new environment says what to ask and how to score. It has no thread pool, no retry loop and no result file.
"""

from __future__ import annotations

from skillopt.envs.base import EnvAdapter, TaskEnv

__all__ = ["EnvAdapter", "TaskEnv"]

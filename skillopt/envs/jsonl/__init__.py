"""Bring your own data: tasks from a CSV, JSON or JSON Lines file, asked with a prompt template, scored by name."""

from __future__ import annotations

"""Data sets: readers, checks, splits and seeded sampling. Calls no model."""

from __future__ import annotations

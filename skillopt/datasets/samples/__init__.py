"""Small data of our own making, one module a benchmark: each writes its items with `write(folder)`."""

from __future__ import annotations

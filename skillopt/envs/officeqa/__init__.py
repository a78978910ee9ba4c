"""OfficeQA: questions about figures in a collection of bulletins, answered with tools, search, or the right pages."""

from __future__ import annotations

"""DocVQA: questions about the image of one page."""

from __future__ import annotations

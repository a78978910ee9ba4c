"""SearchQA: short answers to trivia questions, from the snippets that a web search found."""

from __future__ import annotations

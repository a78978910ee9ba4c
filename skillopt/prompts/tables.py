"""Exact token counts with tiktoken, where its tables are on this machine already.

Used to report sizes and to plan, never to cut: what a prompt holds is decided by the estimate in `tokens`, which is
the same on every machine and needs no tables. So a run that goes on elsewhere asks the same questions and finds its
stored replies.

tiktoken downloads a table that it lacks. Here that cannot happen: it is asked only when its cache folder holds the
table, whole, as a file of the right content.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from skillopt.prompts.tokens import count_tokens

_ENCODING = "o200k_base"
_URL = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"


@dataclass(frozen=True, slots=True)
class TokenCounter:
    """A way to count tokens. `name` says which, for reports: `estimate` or `tiktoken o200k_base`."""

    name: str
    count: Callable[[str], int] = field(repr=False)


ESTIMATE = TokenCounter("estimate", count_tokens)


def token_counter() -> TokenCounter:
    """The exact counter if its table is cached on this machine, else the estimate. Never uses the network."""
    path = _cached_table()
    return _exact(str(path), path.stat().st_mtime_ns) if path is not None else ESTIMATE


def _cached_table() -> Path | None:
    """The cached table, at the place where tiktoken looks for it; None when there is none."""
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    if folder is None:
        folder = str(Path(tempfile.gettempdir()) / "data-gym-cache")
    path = Path(folder) / hashlib.sha1(_URL.encode(), usedforsecurity=False).hexdigest()
    return path if folder and path.is_file() else None


@lru_cache(maxsize=1)
def _exact(path: str, changed: int) -> TokenCounter:  # noqa: ARG001 - `changed` is part of the key
    try:
        if hashlib.sha256(Path(path).read_bytes()).hexdigest() != _SHA256:
            return ESTIMATE  # tiktoken would fetch it again
        import tiktoken

        encoding = tiktoken.get_encoding(_ENCODING)
    except (ImportError, OSError, ValueError):
        return ESTIMATE
    return TokenCounter(f"tiktoken {_ENCODING}", lambda text: len(encoding.encode_ordinary(text)))

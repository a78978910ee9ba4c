"""Patterns of checks: sound ones only, and never for longer than two seconds.

Patterns come from models and files, and Python's engine can take years over a short one. A search that is certain to
be short is made here; every other one in a child process, because nothing else can be ended for certain.
"""

from __future__ import annotations

import functools
import json
import math
import re
import sys
import tempfile
import warnings
from pathlib import Path

MAX_PATTERN_CHARS = 1000
TIMEOUT_SECONDS = 2.0
_START_SECONDS = 8.0  # for the interpreter of the child on a busy machine
_LOG_STEPS = 25.0  # 2^25 steps: well below a second
_ATOM = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_UNBOUNDED = re.compile(r"\)[*+?{]|\{\d{2,}|\{\d*,\d{2,}")
_CHILD = (
    "import json,re,sys\n"
    "p,t,s=json.loads(sys.stdin.buffer.read().decode('utf-8'))\n"
    "import signal\n"
    "if hasattr(signal,'setitimer'):\n"
    " signal.signal(signal.SIGALRM,signal.SIG_DFL)\n"
    " signal.setitimer(signal.ITIMER_REAL,s)\n"
    "print('yes' if re.search(p,t) else 'no')\n"
)


class PatternTimeout(Exception):
    """A search took too long and was ended."""


def regex_problem(pattern: str) -> str:
    """Why `pattern` cannot be used, in a few words; empty when it can."""
    if len(pattern) > MAX_PATTERN_CHARS:
        return f"(longer than {MAX_PATTERN_CHARS} characters)"
    try:
        _compiled(pattern)
    except (re.error, OverflowError, RecursionError, DeprecationWarning) as error:
        return f"({error})"
    return ""


@functools.lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("error", DeprecationWarning)  # inline flags in the middle: an error from Python 3.11 on
        return re.compile(pattern)


@functools.lru_cache(maxsize=2048)
def search(pattern: str, text: str) -> bool:
    """`re.search(pattern, text)` without flags. Raises PatternTimeout."""
    if is_cheap(pattern, len(text)):
        return _compiled(pattern).search(text) is not None
    from skillopt_sleep.vendored.utils.process import child_environment, run_process

    with tempfile.TemporaryDirectory(prefix="skillopt-sleep-regex-") as folder:
        result = run_process(
            [sys.executable, "-I", "-S", "-c", _CHILD],
            cwd=Path(folder),
            env=child_environment(),
            stdin=json.dumps([pattern, text, TIMEOUT_SECONDS]),
            timeout=TIMEOUT_SECONDS + _START_SECONDS,
        )
    word = result.stdout.strip()
    if word not in ("yes", "no"):
        raise PatternTimeout(
            f"The pattern {pattern[:80]!r} could not be searched for in {len(text)} characters within "
            f"{TIMEOUT_SECONDS:g} s; make it simpler."
        )
    return word == "yes"


def is_cheap(pattern: str, length: int) -> bool:
    """True when a search in `length` characters is certain to end soon, by a bound on the number of steps.

    With q unbounded repetitions of single characters the engine takes at most about length^(q+1) steps, times two for
    each option and branch. Repeated groups, counted repetitions above nine and back references have no such bound.
    """
    if re.search(r"\\[1-9]|\(\?P=|\(\?\(", pattern):
        return False
    body = _ATOM.sub("x", pattern)
    if _UNBOUNDED.search(body):
        return False
    repeats = len(re.findall(r"[*+]|\{\d*,\}", body))
    choices = len(re.findall(r"[?|]", body)) + 3 * len(re.findall(r"\{\d*,\d\}", body))
    return (repeats + 1) * math.log2(length + 1) + choices <= _LOG_STEPS

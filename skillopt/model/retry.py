"""Which failures are tried again, and after how long.

The class of an error decides (`retryable`); this module waits. It knows nothing of HTTP, usage or money.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import count
from typing import TypeVar

from skillopt.errors import DeadlineError, ModelError, RateLimitedUntilError, RateLimitError
from skillopt.utils.cancel import CancelToken

_T = TypeVar("_T")

LONGEST_WAIT_SECONDS = 30 * 86_400.0
"""What a longer asked-for wait is read as: a lock cannot wait, and a calendar cannot tell, any number of seconds."""


class CrowdedError(RateLimitError):
    """A 429 while other requests are served: there was no room. It goes again as soon as there is.

    Whoever sends takes care that there is room first, so nothing is waited here and no retry is counted.
    """


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how patiently. `retries` counts attempts after the first; 0 means one request, no more.

    Waits in seconds: a random part of `first_wait * 2**n`, at most `longest_wait` ("full jitter", so that many workers
    do not come back in step). A wait that the provider asks for is kept to, up to `retry_after_ceiling`.
    """

    retries: int = 5
    first_wait: float = 1.0
    longest_wait: float = 30.0
    retry_after_ceiling: float = 300.0

    def wait_after(self, error: ModelError, attempt: int) -> float:
        """Seconds to wait after `attempt` failed attempts (from 1; crowded ones do not count)."""
        if isinstance(error, CrowdedError):
            return 0.0
        asked = asked_wait(error)
        most = min(self.longest_wait, self.first_wait * 2.0 ** min(attempt - 1, 30))
        if asked is not None:
            # A little more than asked, spread out, so that the waiting calls do not all return at one instant.
            return asked + random.uniform(0, min(0.1 * asked, most))
        return random.uniform(0, most)


def asked_wait(error: ModelError) -> float | None:
    """Seconds that the provider asked to wait, if it said so."""
    asked = getattr(error, "retry_after", None)
    return min(float(asked), LONGEST_WAIT_SECONDS) if asked is not None else None


def run(
    attempt: Callable[[int], _T],
    policy: RetryPolicy,
    token: CancelToken,
    on_retry: Callable[[ModelError, int, float], None],
) -> _T:
    """The result of `attempt(n)`, n = 1, 2, …, until one succeeds or its error is not to be tried again.

    With `retries` of 0 there is one attempt. Never waits after the last attempt, nor when the wait would outlast the
    deadline of `token`. `on_retry(error, n, seconds)` is called before each wait. Raises RateLimitedUntilError when the
    provider asks for a wait above the ceiling, DeadlineError when no time is left, else the last error.
    """
    counted = 0
    for number in count(1):
        try:
            return attempt(number)
        except ModelError as error:
            _refuse_long_wait(error, policy)
            counted += not isinstance(error, CrowdedError)
            if not error.retryable or not policy.retries or counted > policy.retries:
                raise
            wait = policy.wait_after(error, counted)
            left = token.remaining()
            if left is not None and wait >= left:
                raise DeadlineError(f"No time is left for another attempt after: {error}") from error
            on_retry(error, number, wait)
        token.wait(wait)
    raise AssertionError("unreachable")


def _refuse_long_wait(error: ModelError, policy: RetryPolicy) -> None:
    asked = asked_wait(error)
    if asked is None or asked <= policy.retry_after_ceiling:
        return
    until = datetime.fromtimestamp(time.time() + asked, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    raise RateLimitedUntilError(
        f"Rate limited until {until} ({asked:.0f} s, above model.retry_after_ceiling_seconds = "
        f"{policy.retry_after_ceiling:g}); run the same command again then, everything finished is kept. {error}"
    ) from error

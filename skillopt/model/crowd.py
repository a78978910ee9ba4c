"""How many requests an endpoint bears at once, found out from which of them it serves and which it refuses.

Pure decisions; no clock, no threads. Start with a moderate number and double it while all is served. A refusal among
requests that are being served means that the crowd is too large: the refused one takes its place with it, so that
what is left is just what the endpoint serves. From there the limit is tried upwards rarely and by one, more rarely each
time that this fails, and in growing steps once it succeeds (the shape of CUBIC: Ha, Rhee and Xu 2008). When nothing is
served any more, the endpoint refuses for another reason (a quota a minute): everybody waits, then half as many go.
"""

from __future__ import annotations

START = 32
PATIENCE = 8
LONGEST_PATIENCE = 64
STRIKES = 3


class Crowd:
    """The number of requests that may run at once (`limit`), at most `most`. Its owner holds a lock.

    Every request has a number, in the order of sending. `PATIENCE`: rounds of successes before the limit is tried
    upwards again after a refusal. `STRIKES`: so many requests refused in turn, each sent after the refusal before was
    known, with none of them served, mean that the endpoint serves nobody now.
    """

    def __init__(self, most: int) -> None:
        self.limit = min(most, START)
        self._most = most
        self._newest = 0  # the number of the request sent last
        self._known = 0  # requests up to this number were sent before the last refusal was known
        self._strikes = 0
        self._before: int | None = None  # the limit when those refusals began that no success has followed yet
        self._calm = 0  # successes since the last refusal
        self._good = 0  # successes of the present round
        self._rounds = 0  # full rounds since the limit changed
        self._patience = 0  # full rounds before it grows for the first time after a refusal
        self._step = self.limit
        self._grown = 0  # times that the limit grew since the last refusal

    def sent(self) -> int:
        """The number of a request that is being sent."""
        self._newest += 1
        return self._newest

    def served(self, number: int, *, wanted: bool) -> None:
        """A request succeeded. `wanted`: others wait, so that a larger limit would be of use."""
        self._calm += 1
        if number > self._known:
            self._strikes, self._before = 0, None
        if not wanted or self.limit >= self._most:
            return
        self._good += 1
        if self._good >= self.limit:
            self._good = 0
            self._rounds += 1
            if self._grown or self._rounds > self._patience:
                self._grow()

    def is_news(self, number: int) -> bool:
        """Whether a refusal of this request says something new: it was sent after the last one was known."""
        return number > self._known

    def refused(self, number: int, others: int) -> bool:
        """A request was refused while `others` were running. False: the endpoint serves nobody now, all must wait."""
        news = self.is_news(number)
        alone = news and self._calm >= self.limit and (self._rounds > 0 or not self._grown)
        self._strikes += news and self._before is not None
        self._known, self._calm = self._newest, 0
        if not others or self._strikes >= STRIKES:
            self._start_over()
            return False
        if self._before is None:
            self._before = self.limit
        if alone:
            return True  # a whole round was served before it at the same limit: chance, until another one follows
        if news:
            self._settle()
        self.limit = min(self.limit, others)
        return True

    def _grow(self) -> None:
        self.limit = min(self._most, self.limit + self._step)
        self._step *= 2
        self._grown += 1
        self._rounds = 0

    def _settle(self) -> None:
        """Grow later and by one; still later when growing was what brought the refusal."""
        tried_in_vain = self._grown == 1 and not self._rounds and self._step == 2
        self._patience = min(LONGEST_PATIENCE, 2 * self._patience) if tried_in_vain and self._patience else PATIENCE
        self._restart()

    def _start_over(self) -> None:
        if self._before is not None:
            self.limit = max(self.limit, self._before // 2)
        self._strikes, self._before, self._patience = 0, None, 0
        self._restart()

    def _restart(self) -> None:
        self._step, self._grown, self._rounds, self._good = 1, 0, 0, 0

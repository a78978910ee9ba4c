"""When may the evaluation of a candidate stop? Only when the rest cannot change the decision.

A candidate has to score higher than the current skill. Items are taken in waves, those that the current skill fails
first; as soon as the candidate could not win even if it were perfect on every item left, the rest is not run. The
decision is always the one that all items would have led to. Pure functions on numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from skillopt.evaluation.gate import TIE_TOLERANCE, is_better

if TYPE_CHECKING:
    from skillopt.evaluation.evaluate import Evaluation

Means = tuple[float, float]
"""Hard and soft score, each in 0..1: of one item, or the means over some."""

Measure = Callable[[Means], float]
"""The number that the gate compares, from mean (hard, soft): it must not fall when a mean rises, and be affine."""

Verdict = Literal["", "won", "lost"]
"""Of a candidate against a bar; empty while both are possible."""

PERFECT, NOTHING = (1.0, 1.0), (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Bar:
    """What a candidate has to beat.

    `before`: scores of the current skill by item, every item graded. `score`: the number that they give.
    `current` and `candidate` measure the two skills (a bonus for the text belongs in them). With `two_sided` the
    evaluation also ends when the candidate has won for certain, for callers that need no full score of a winner;
    without `stop` nothing is left out, and only the verdict is wanted.
    """

    before: Mapping[str, Means]
    score: float
    current: Measure
    candidate: Measure
    two_sided: bool = False
    stop: bool = True

    def verdict(self, scores: Sequence[tuple[str, Means]]) -> Verdict:
        """Of a finished evaluation, on the items that both sides were graded on. `scores`: those of graded items."""
        shared = {item: means for item, means in scores if item in self.before}
        whole = len(shared) == len(self.before)
        bar = self.score if whole else self.current(mean_scores([self.before[item] for item in shared]))
        return "won" if is_better(self.candidate(mean_scores(list(shared.values()))), bar) else "lost"


@dataclass(frozen=True)
class Race:
    """One candidate against a bar, on the items `ids` (in item order).

    Positions in `ids` name the items. Methods take the scores that are known so far, by position.
    """

    bar: Bar
    ids: tuple[str, ...]

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Positions in the order of evaluation: what the current skill fails, then the rest, each in item order."""
        return tuple(sorted(range(len(self.ids)), key=lambda at: self._before[at][0] >= 1.0 - TIE_TOLERANCE))

    @cached_property
    def _before(self) -> list[Means]:
        return [self.bar.before[item] for item in self.ids]

    def bound(self, done: Mapping[int, Means]) -> float:
        """The highest score that the candidate can still reach."""
        return self.bar.candidate(self._filled(done, PERFECT, self._rest(done)))

    def verdict(self, done: Mapping[int, Means]) -> Verdict:
        """What is certain by now. When all items are done, it is what the gate says."""
        if not is_better(self.bound(done), self.bar.score) and not self._may(done, PERFECT, win=True):
            return "lost"
        lowest = self.bar.candidate(self._filled(done, NOTHING, self._rest(done)))
        if is_better(lowest, self.bar.score) and not self._may(done, NOTHING, win=False):
            return "won"
        return ""

    def over(self, done: Mapping[int, Means]) -> bool:
        """Whether nothing has to be evaluated any more."""
        verdict = self.verdict(done)
        return verdict == "lost" or (verdict == "won" and self.bar.two_sided) or len(done) == len(self.ids)

    def wave(self, done: Mapping[int, Means], smallest: int) -> tuple[int, ...]:
        """Positions to evaluate next.

        As many as must go wrong (or, if that can end it, right) before anything is certain, so that no call of them
        could have been saved; at least `smallest`, so that all workers have something to do.
        """
        left = [at for at in self.order if at not in done]
        size = max(smallest, self._soonest(done, left, NOTHING, "lost"))
        if self.bar.two_sided:
            size = max(smallest, min(size, self._soonest(done, left, PERFECT, "won")))
        return tuple(left if len(left) - size <= smallest // 4 else left[:size])

    def _soonest(self, done: Mapping[int, Means], left: Sequence[int], each: Means, verdict: Verdict) -> int:
        low, high = 1, len(left)
        while low < high:
            middle = (low + high) // 2
            if self.verdict({**done, **dict.fromkeys(left[:middle], each)}) == verdict:
                high = middle
            else:
                low = middle + 1
        return low

    def _rest(self, done: Mapping[int, Means]) -> list[int]:
        return [at for at in range(len(self.ids)) if at not in done]

    def _filled(self, done: Mapping[int, Means], each: Means, rest: Sequence[int]) -> Means:
        return mean_scores([*done.values(), *(each for _ in rest)])

    def _may(self, done: Mapping[int, Means], each: Means, *, win: bool) -> bool:
        """Whether errors among the items left could still turn the decision.

        Items that end in an error are left out on both sides. Where the two texts have different bonuses, leaving
        out items on which both do alike changes the weight of that difference.
        """
        disadvantage = self.bar.candidate(NOTHING) - self.bar.current(NOTHING)
        if disadvantage >= 0 if win else disadvantage <= 0:
            return False
        rest = [
            at for at in self._rest(done) if (self.bar.candidate(each) - self.bar.current(self._before[at]) > 0) is win
        ]
        candidate = self.bar.candidate(self._filled(done, each, rest))
        current = self.bar.current(mean_scores([self._before[at] for at in (*done, *rest)]))
        return is_better(candidate, current) is win


def mean_scores(scores: Sequence[Means]) -> Means:
    """Mean hard and soft score, (0, 0) for none. The sums are exact: the order of items cannot change them."""
    number = len(scores)
    if not number:
        return NOTHING
    return math.fsum(hard for hard, _ in scores) / number, math.fsum(soft for _, soft in scores) / number


def gains(before: Evaluation, after: Evaluation) -> bool:
    """Whether `after` did better than `before`.

    An evaluation that was made against a bar knows, even if it stopped early. Otherwise the mean hard scores of the
    items that both were graded on decide.
    """
    if after.decided:
        return after.decided == "won"
    was = before.graded
    shared = [item for item in after.graded if item in was]
    return is_better(after.on(shared)[0], before.on(shared)[0])

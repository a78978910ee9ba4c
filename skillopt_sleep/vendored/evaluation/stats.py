# A copy of skillopt/evaluation/stats.py, made by scripts/vendor.py: change the original, then run that.
"""What paired results say: the mean difference with an interval, and how often chance alone does as well.

Two skills on the same items give one difference an item. If the skills are alike, each difference is as likely to be
`+d` as `-d`; the sign-flip test counts how many of all ways to choose the signs give a sum at least as high. Pure
functions on numbers, standard library only.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from skillopt_sleep.vendored.types.canonical import JsonObject

_Z = 1.959963984540054  # the standard normal quantile of 0.975: the intervals cover 95 %
_TIE = 1e-9
_FINEST = 10_000  # largest denominator of a difference that is still looked at as a fraction
_MOST_BITS = 4_000_000_000  # size of an exact count, times the number of steps to it
_FEW = 28  # so many differences of any kind are counted exactly
_DRAWS = 50_000


@dataclass(frozen=True, slots=True)
class Comparison:
    """A candidate against the current skill on `n` items, `mean_difference` in score units (above 0: it did better).

    `low` and `high`: 95 % interval of the mean difference. `p_value`: one-sided; how often skills that are alike
    give a difference at least as high. `gained` and `lost` count the items that became right and wrong. `exact` is
    False for a p value from random signs.
    """

    n: int
    mean_difference: float
    low: float
    high: float
    p_value: float
    gained: int
    lost: int
    exact: bool = True

    def to_dict(self) -> JsonObject:
        """The comparison as written to records."""
        return {
            "n": self.n,
            "mean_difference": round(self.mean_difference, 6),
            "ci_low": round(self.low, 6),
            "ci_high": round(self.high, 6),
            "p_value": float(f"{self.p_value:.6g}"),
            "gained": self.gained,
            "lost": self.lost,
            "exact": self.exact,
        }


@dataclass(frozen=True, slots=True)
class ErrorBudget:
    """How much of the allowed chance of a false accept a run has used.

    Every look that could accept takes a share before it is made, so the chance of one false accept or more in the
    whole run is at most `alpha`, by Boole's inequality, however many looks there are and whatever they show. `looks`
    counts those made and `spent` adds up their shares.
    """

    alpha: float
    looks: int = 0
    spent: float = 0.0

    def share(self, planned: int) -> float:
        """What the next of `planned` looks of the run may take: an equal part of what is left. 0 beyond the plan."""
        return max(0.0, self.alpha - self.spent) / max(1, planned - self.looks)

    def after(self, share: float) -> ErrorBudget:
        """The budget after a look with this share."""
        return ErrorBudget(self.alpha, self.looks + 1, self.spent + share)


def paired(differences: Sequence[float], *, gained: int = 0, lost: int = 0, seed: int = 0) -> Comparison:
    """The comparison that the differences of each item (after minus before, in -1..1) give.

    `gained` and `lost` are counted by the caller, who knows what solving an item means. Raises ValueError for a
    difference that is not finite.
    """
    if not all(math.isfinite(value) for value in differences):
        raise ValueError("a difference is not finite: an item without a score cannot be compared")
    number = len(differences)
    mean = math.fsum(differences) / number if number else 0.0
    p_value, exact = sign_flip_test(differences, seed=seed)
    return Comparison(number, mean, *interval(differences), p_value, gained, lost, exact)


def interval(differences: Sequence[float]) -> tuple[float, float]:
    """95 % interval of the mean of paired differences that lie in -1..1.

    Wald's interval after adding two pairs that say nothing: half a gain and half a loss of 1, and one tie. With
    differences of -1, 0 and 1 it is the interval of Agresti and Min (2005), "Simple improved confidence intervals
    for comparing matched proportions", Statistics in Medicine 24, 729-740: `m = sum(d) / (n + 2)`,
    `v = (sum(d^2) + 1) / (n + 2) - m^2`, `m ± 1.96 sqrt(v / (n + 2))`. It does not shrink to nothing when all items
    agree. Cut to -1..1, and widened to hold the observed mean.
    """
    number = len(differences)
    if not number:
        return -1.0, 1.0
    observed = math.fsum(differences) / number
    mean = math.fsum(differences) / (number + 2)
    variance = max(0.0, (math.fsum(d * d for d in differences) + 1) / (number + 2) - mean * mean)
    half = _Z * math.sqrt(variance / (number + 2))
    return max(-1.0, min(mean - half, observed)), min(1.0, max(mean + half, observed))


def sign_flip_test(differences: Sequence[float], *, seed: int = 0) -> tuple[float, bool]:
    """(p value, whether it is exact) of the one-sided sign-flip test of Fisher (The Design of Experiments, 1935, § 21).

    p is the share of the 2^n equally likely choices of signs whose sum is at least the observed one; differences of
    0 do not matter. It is counted exactly when the differences are multiples of a common fraction, or few. Otherwise
    `seed` gives random signs, and `p = (1 + hits) / (1 + draws)` (Phipson and Smyth 2010, "Permutation P-values should
    never be zero"), which never claims too much.
    """
    values = [value for value in differences if abs(value) > _TIE]
    sizes = on_grid(values)
    if sizes is not None:
        observed = sum(size for size, value in zip(sizes, values, strict=True) if value > 0)
        return _share(tail_count(sizes, observed), len(sizes)), True
    if len(values) <= _FEW:
        return _share(_count_halves(values), len(values)), True
    return _random_signs(values, seed), False


def on_grid(values: Sequence[float]) -> list[int] | None:
    """Sizes of the values in units of one common fraction; None when there is no such unit that is practical."""
    fractions = [Fraction(abs(value)).limit_denominator(_FINEST) for value in values]
    if any(abs(float(f) - abs(value)) > _TIE for f, value in zip(fractions, values, strict=True)):
        return None
    unit = math.lcm(*(fraction.denominator for fraction in fractions))
    sizes = [int(fraction * unit) for fraction in fractions]
    common = math.gcd(*sizes) or 1
    sizes = [size // common for size in sizes]
    return sizes if sum(sizes) * (len(sizes) + 1) * len(sizes) <= _MOST_BITS else None


def tail_count(sizes: Sequence[int], least: int) -> int:
    """In how many of the 2^n choices of a subset its sizes add up to `least` or more.

    The counts of all sums are the coefficients of `prod (1 + x^size)`, held as the digits of one integer (Pagano and
    Tritchler 1983, "On obtaining permutation distributions in polynomial time").
    """
    digit = len(sizes) + 1
    counts = 1
    for size in sizes:
        counts += counts << (size * digit)
    # The tail's digits add up to less than the base minus 1, so they are the remainder by it.
    return (counts >> (max(0, least) * digit)) % ((1 << digit) - 1) if sizes else int(least <= 0)


def false_accept_rates(differences: Sequence[float], share: float, *, seed: int = 0) -> tuple[float, float]:
    """How often one look accepts by chance alone: (strict gate, paired gate with this share).

    `differences` are those of two runs of one skill, so their signs are pure chance. The strict gate accepts any sum
    above 0, the paired one a sum with a p value of at most `share`. Counted over all signs as in `sign_flip_test`, or
    estimated from random ones.
    """
    values = [value for value in differences if abs(value) > _TIE]
    sizes = on_grid(values)
    if sizes is None:
        sums = _random_sums(values, seed)
        middle = math.fsum(abs(value) for value in values) / 2 + _TIE
        return sum(total > middle for total in sums) / len(sums), math.floor(share * len(sums)) / len(sums)
    whole, number = sum(sizes), len(sizes)
    first = whole // 2 + 1  # the signs' sum is twice the sum of the positive sizes, less the whole
    strict = _share(tail_count(sizes, first), number) if sizes else 0.0
    low, high = first, whole + 1
    while low < high:
        middle_sum = (low + high) // 2
        if _share(tail_count(sizes, middle_sum), number) <= share:
            high = middle_sum
        else:
            low = middle_sum + 1
    return strict, _share(tail_count(sizes, low), number) if sizes else 0.0


def _share(count: int, number: int) -> float:
    return float(Fraction(count, 1 << number))


def _count_halves(values: Sequence[float]) -> int:
    """Choices of signs whose sum is at least that of `values`: sums of one half looked up among those of the other."""
    middle = len(values) // 2
    target = math.fsum(value for value in values if value > 0) - _TIE
    right = sorted(_subset_sums(values[middle:]))
    return sum(len(right) - bisect_left(right, target - left) for left in _subset_sums(values[:middle]))


def _subset_sums(values: Sequence[float]) -> list[float]:
    sums = [0.0]
    for value in values:
        sums += [known + abs(value) for known in sums]
    return sums


def _random_signs(values: Sequence[float], seed: int) -> float:
    target = math.fsum(value for value in values if value > 0) - _TIE
    hits = sum(total >= target for total in _random_sums(values, seed))
    return (1 + hits) / (1 + _DRAWS)


def _random_sums(values: Sequence[float], seed: int) -> list[float]:
    """Sums of the sizes with a positive sign, for many random choices of signs."""
    tables = [_chunk_sums(values[start : start + 8]) for start in range(0, len(values), 8)]
    rng = random.Random(seed)
    picks = (rng.getrandbits(8 * len(tables)).to_bytes(len(tables), "little") for _ in range(_DRAWS))
    return [sum(table[byte] for table, byte in zip(tables, pick, strict=True)) for pick in picks]


def _chunk_sums(values: Sequence[float]) -> list[float]:
    """Sum of the sizes that each byte picks; bits beyond the values pick nothing."""
    sizes = [abs(value) for value in values] + [0.0] * (8 - len(values))
    return [sum(size for bit, size in enumerate(sizes) if byte >> bit & 1) for byte in range(256)]

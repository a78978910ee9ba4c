"""Sample items of LiveMathematicianBench: questions of our own about theorems that every textbook has."""

from __future__ import annotations

import random
import string
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from skillopt.types import JsonObject
from skillopt.utils.files import atomic_write_json

SPLITS = {"train": range(6), "val": range(6, 10), "test": range(10, 14)}
_MONTH = "000000"  # no month: the items come from no paper


@dataclass(frozen=True, slots=True)
class _Question:
    """A question whose first choice is right, with the theorem behind it."""

    kinds: Sequence[str]
    theorem: str
    sketch: str
    question: str
    choices: tuple[str, ...]


_QUESTIONS = (
    _Question(
        ("inequality",),
        "For real numbers x_1, …, x_n the square of their sum is at most n times the sum of their squares; the two "
        "are equal exactly when all x_i are equal.",
        "The difference of the two sides is the sum of (x_i − x_j)² over all pairs i < j.",
        "Let n ≥ 2, let x_1, …, x_n be real numbers, S their sum and Q the sum of their squares. Which statement is "
        "true for all of them?",
        (
            "S² ≤ nQ, with equality exactly when all x_i are equal",
            "S² ≤ nQ, with equality exactly when all |x_i| are equal",
            "S² ≤ nQ, with equality exactly when all x_i are 0",
            "S² ≤ Q, with equality exactly when at most one x_i is not 0",
            "S² ≥ Q, with equality exactly when at most one x_i is not 0",
        ),
    ),
    _Question(
        ("extremal value", "existence"),
        "Any n + 1 of the numbers 1, …, 2n contain two different ones of which one divides the other; n of them need "
        "not.",
        "Write each number as a power of two times an odd number. There are only n odd parts, so two numbers share "
        "one. The numbers n + 1, …, 2n show that n are too few.",
        "For n ≥ 3, what is the least k such that any k of the numbers 1, 2, …, 2n contain two different ones of "
        "which one divides the other?",
        ("n + 1", "n", "n + 2", "2n − 1", "the integer part of 3n/2, plus 1"),
    ),
    _Question(
        ("characterization",),
        "Every group of order n is cyclic if and only if n and φ(n) have no common prime factor.",
        "If a square of a prime divides n, or a prime p divides q − 1 for another prime factor q, there is a group of "
        "order n that is not cyclic. Otherwise induction on n and Sylow's theorems give a cyclic group.",
        "Let φ be Euler's function. For which n ≥ 1 is every group of order n cyclic?",
        (
            "exactly for the n with gcd(n, φ(n)) = 1",
            "exactly for n = 1 and the primes",
            "exactly for the n that no square of a prime divides",
            "exactly for the odd n that no square of a prime divides",
            "exactly for the n with gcd(n, φ(n)) ≤ 2",
        ),
    ),
    _Question(
        ("quantifiers",),
        "A continuous real function on a compact interval is uniformly continuous.",
        "If it were not, two sequences of points would come together while their values stay apart; a convergent "
        "subsequence contradicts continuity at its limit.",
        "Let f: [0, 1] → ℝ be continuous. Which statement must be true?",
        (
            "for every ε > 0 there is δ > 0 such that |x − y| < δ implies |f(x) − f(y)| < ε for all x, y",
            "there is δ > 0 such that for every ε > 0, |x − y| < δ implies |f(x) − f(y)| < ε for all x, y",
            "there is L > 0 such that |f(x) − f(y)| ≤ L|x − y| for all x, y",
            "there is a point x in (0, 1) at which f is differentiable",
        ),
    ),
    _Question(
        ("extremal value", "inequality"),
        "A graph on n vertices without a triangle has at most ⌊n²/4⌋ edges, and some such graph has as many.",
        "The ends of an edge have at most n neighbours together. Summing over all edges gives the sum of squared "
        "degrees, which the inequality of Cauchy and Schwarz bounds below.",
        "What is the largest number of edges of a simple graph on n ≥ 3 vertices that contains no triangle?",
        ("⌊n²/4⌋", "⌈n²/4⌉", "⌊n²/3⌋", "⌊n(n − 1)/4⌋", "n"),
    ),
    _Question(
        ("characterization", "convergence"),
        "The sum of 1/(n (log n)^s) over n ≥ 2 converges if and only if s > 1.",
        "Compare with the integral of 1/(x (log x)^s), which the substitution u = log x turns into that of u^(−s).",
        "For which real s does the sum of 1/(n (log n)^s) over all n ≥ 2 converge?",
        ("exactly for s > 1", "exactly for s ≥ 1", "exactly for s > 0", "for all real s", "for no real s"),
    ),
    _Question(
        ("characterization",),
        "For a real n × n matrix A, rank A + rank(I − A) = n if and only if A² = A.",
        "The kernels of A and of I − A meet in 0 only. The ranks add up to n exactly when the kernels together span "
        "the space, and then A is the projection onto the second along the first.",
        "Let A be a real n × n matrix and I the identity. Which condition is equivalent to rank A + rank(I − A) = n?",
        ("A² = A", "A² = I", "A is diagonalizable", "A is symmetric", "A is invertible or A = 0"),
    ),
    _Question(
        ("extremal value",),
        "For k ≥ 3 the congruence x² ≡ 1 modulo 2^k has exactly four solutions.",
        "Of x − 1 and x + 1 only one is divisible by 4, so 2^(k−1) divides the other.",
        "Let k ≥ 3. How many residue classes x modulo 2^k satisfy x² ≡ 1?",
        ("4", "2", "8", "2^(k − 1)", "k"),
    ),
    _Question(
        ("existence", "characterization"),
        "Every tournament has a directed path through all its vertices; one with at least three vertices has a "
        "directed cycle through all of them if and only if it is strongly connected.",
        "A vertex that is missing can always be put into a path. In a strongly connected tournament a cycle that is "
        "not yet complete can be made longer.",
        "A tournament is a complete graph each of whose edges has a direction. Which statement is true for all "
        "tournaments with at least three vertices?",
        (
            "there is a directed path through all vertices, and a directed cycle through all exactly if it is "
            "strongly connected",
            "there is a directed path through all vertices exactly if it is strongly connected",
            "there is a directed cycle through all vertices",
            "there is a vertex from which an edge goes to every other vertex",
            "there is a directed cycle through all vertices exactly if there is a directed cycle",
        ),
    ),
    _Question(
        ("quantifiers", "existence"),
        "A map T of a nonempty complete metric space to itself has a fixed point if, for some c < 1, d(Tx, Ty) ≤ c "
        "d(x, y) for all x and y.",
        "The iterates of a point form a Cauchy sequence, because the distances of neighbours shrink geometrically.",
        "T maps a nonempty complete metric space to itself. Which condition, holding for all points x ≠ y, is enough "
        "for T to have a fixed point?",
        (
            "d(Tx, Ty) ≤ c d(x, y) with one c < 1 for all pairs",
            "d(Tx, Ty) ≤ c d(x, y) with a c < 1 that may depend on the pair",
            "d(Tx, Ty) < d(x, y)",
            "d(Tx, Ty) ≤ d(x, y)",
        ),
    ),
    _Question(
        ("characterization",),
        "In a commutative ring with 1 ≠ 0, every nonzero polynomial has at most as many roots as its degree if and "
        "only if the ring is an integral domain.",
        "If ab = 0 with a, b ≠ 0, then aX has the roots 0 and b. In a domain, roots split off as linear factors.",
        "R is a commutative ring with 1 ≠ 0. When does every nonzero polynomial over R have at most as many roots in "
        "R as its degree?",
        (
            "exactly if R is an integral domain",
            "exactly if R is a field",
            "exactly if R is a unique factorization domain",
            "exactly if R is infinite",
            "exactly if R has no nilpotent element but 0",
        ),
    ),
    _Question(
        ("extremal value",),
        "A connected graph with 2k > 0 vertices of odd degree is the union of k trails without a common edge, and of "
        "no fewer.",
        "Join the odd vertices in pairs by new edges, take a closed trail through all edges and remove the new ones. "
        "Each odd vertex is the end of some trail.",
        "A finite connected graph has exactly 2k vertices of odd degree, k ≥ 1. What is the least number of trails, "
        "no two with a common edge, that together use every edge?",
        ("k", "2k", "k + 1", "k − 1", "2k − 1"),
    ),
    _Question(
        ("existence", "quantifiers"),
        "The rational numbers can be covered by open intervals of any total length, however small.",
        "Number the rationals and give the k-th one an interval of length ε/2^k.",
        "Which statement about coverings of the set ℚ of rational numbers by countably many open intervals is true?",
        (
            "for every ε > 0 some covering has a total length of less than ε",
            "some covering has, for every ε > 0, a total length of less than ε",
            "every covering has infinite total length",
            "every covering covers all real numbers but countably many",
        ),
    ),
    _Question(
        ("inequality", "extremal value"),
        "The number of fixed points of a random permutation of n ≥ 2 things has mean 1 and variance 1.",
        "Write it as a sum of indicators. Each has mean 1/n, and two of them are 1 together with probability 1/(n(n − "
        "1)).",
        "Draw a permutation of n ≥ 2 things evenly at random. What are mean and variance of the number of its fixed "
        "points?",
        (
            "mean 1 and variance 1",
            "mean 1 and variance 1 − 1/n",
            "mean 1 and variance n/(n − 1)",
            "mean 1/n and variance (n − 1)/n²",
        ),
    ),
)


def write(folder: Path) -> None:
    """Write `<folder>/<split>/items.json` for train, val and test."""
    for split, numbers in SPLITS.items():
        atomic_write_json(folder / split / "items.json", [_item(number) for number in numbers])


def _item(number: int) -> JsonObject:
    given = _QUESTIONS[number]
    texts = list(given.choices)
    random.Random(f"livemathematicianbench {number}").shuffle(texts)
    choices = [{"label": label, "text": text} for label, text in zip(string.ascii_uppercase, texts, strict=False)]
    return {
        "id": f"{_MONTH}:{number + 1}",
        "month": _MONTH,
        "no": number + 1,
        "question": given.question,
        "choices": choices,
        "correct_choice": choices[texts.index(given.choices[0])],
        "theorem_type": list(given.kinds),
        "theorem": given.theorem,
        "sketch": given.sketch,
        "paper_link": "",
    }

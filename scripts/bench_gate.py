"""How often the gate accepts a candidate that is no better: runs of identical skills under a noisy target."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> int:
    """Print the share of runs with a false accept under both policies; 0."""
    sys.path[:0] = [str(ROOT / "tests")]
    from gate_worlds import accepts_of_alike_skills

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--looks", type=int, default=12)
    parser.add_argument("--items", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    strict, paired = accepts_of_alike_skills(args.runs, looks=args.looks, items=args.items, seed=args.seed)
    print(f"{args.runs} runs of {args.looks} looks at {args.items} items, all candidates equal to the current skill")
    print(f"runs with a false accept   strict {strict:6.1%}   paired {paired:6.1%}   allowed {0.05:.0%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

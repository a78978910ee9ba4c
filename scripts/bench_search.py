"""What each preset finds for how many calls, in the search world of the tests (see tests/search_world.py).

Twelve hidden rules are each worth a twelfth of the items, and a quarter of the optimizer's proposals is harmful. Rows:
mean test score of the best skill, lowest and highest; that of the skill at hand after 1,400 target calls; target and
optimizer calls before the final tests.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from statistics import mean

ROOT = Path(__file__).parents[1]


def main() -> int:
    """Print a table; 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("presets", nargs="*", default=["paper", "efficient"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--noise", type=float, default=0.0, help="how often an answer turns into its opposite")
    parser.add_argument("--repair", type=float, default=0.0, help="how often the optimizer strikes a harmful habit")
    args = parser.parse_args()
    sys.path[:0] = [str(ROOT / "tests")]
    from search_runs import search
    from search_world import SearchWorld

    print(f"{'preset':<12}{'test score':>16}{'at 1400':>9}{'target calls':>14}{'optimizer calls':>17}{'seconds':>9}")
    for preset in args.presets:
        runs, begun = [], time.monotonic()
        for seed in range(args.seeds):
            world = SearchWorld(seed, repair=args.repair, noise=args.noise)
            with tempfile.TemporaryDirectory() as folder:
                runs.append(search(preset, world, Path(folder)))
        scores = [run.score for run in runs]
        print(
            f"{preset:<12}{mean(scores):6.3f} ({min(scores):.2f}-{max(scores):.2f})"
            f"{mean(run.within for run in runs):8.3f} {mean(run.target_calls for run in runs):13.0f}"
            f"{mean(run.optimizer_calls for run in runs):17.0f}{(time.monotonic() - begun) / args.seeds:9.1f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""How many selection rollouts exact early stop saves, on the scripted worlds of the decision test but larger.

Only rejected candidates can save any: what is accepted is evaluated in full.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> int:
    """Print the figures; 0, or 1 when a decision differs."""
    sys.path[:0] = [str(ROOT / "tests")]
    from gate_worlds import GateWorld, memory_folder

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=200)
    parser.add_argument("--looks", type=int, default=6)
    parser.add_argument("--sizes", type=int, nargs="+", default=[12, 24, 40, 100])
    args = parser.parse_args()
    used = most = differing = rejected = 0
    with memory_folder() as folder:
        for seed in range(args.worlds):
            world = GateWorld(seed, looks=args.looks, sizes=tuple(args.sizes))
            exact, calls, full = world.run(Path(folder) / f"{seed}-exact", early_stop="exact")
            off, _, _ = world.run(Path(folder) / f"{seed}-off", early_stop="off")
            used, most, differing = used + calls, most + full, differing + (exact != off)
            rejected += sum(action == "reject" for action, _, _ in exact)
    print(f"{args.worlds} worlds, {args.looks} looks each: {differing} with another decision")
    print(f"rejected            {rejected:7} of {args.worlds * args.looks}")
    print(f"selection rollouts  {used:7} of {most}   {1 - used / most:.1%} saved")
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main())

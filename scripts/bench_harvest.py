"""Reading a person's transcripts: memory, time and bytes, for a large history and then for one new session.

Each harvest runs in a process of its own, so that its peak memory is its own. Memory is compared with a process that
only imports the harvest; bytes with those of the files that are new.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PROJECT = "/w/shop"


def main() -> int:
    """Print the figures; 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=2000)
    parser.add_argument("--megabytes", type=int, default=700)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report(measure(Path(folder), args.sessions, args.megabytes * 1_000_000))
    return 0


def measure(home: Path, count: int, size: int) -> dict[str, dict[str, Any]]:
    """Figures of a harvest of `count` sessions of `size` bytes together, of one more, of none, and of no harvest."""
    sys.path[:0] = [str(ROOT / "tests")]
    from sleep.worlds import sessions

    history = sessions(home, count, project=PROJECT, size=int(size / count / 1.55))
    figures = {"idle": run(home, idle=True)}
    figures["all"] = {**run(home), "new": sum(path.stat().st_size for path in history)}
    (new,) = sessions(home, 1, project=PROJECT, first=count, size=4000)
    figures["one more"] = {**run(home), "new": new.stat().st_size}
    figures["nothing new"] = {**run(home), "new": 0}
    return figures


def report(figures: dict[str, dict[str, Any]]) -> None:
    """Print figures of `measure`."""
    idle, first = figures["idle"], figures["all"]
    print(
        f"{first['digests']} sessions, {first['new'] / 1e6:.0f} MB; peak memory without a harvest {idle['rss']:.0f} MB"
    )
    for name in ("all", "one more", "nothing new"):
        row = figures[name]
        share = f"{row['read'] / row['new']:7.3f}x the new bytes" if row["new"] else "      of 0 new bytes"
        print(
            f"harvest of {name:<12}{row['seconds']:7.2f} s {row['read'] / 1e6:9.3f} MB read {share}"
            f"   memory {row['rss'] / idle['rss']:5.2f}x idle ({row['rss'] - idle['rss']:+.0f} MB)"
        )
    print(f"second harvest          {figures['one more']['seconds'] / first['seconds']:7.4f}x the time of the first")


def run(home: Path, *, idle: bool = False) -> dict[str, Any]:
    """Harvest and commit in another process: seconds, bytes read, digests, and peak memory in MB."""
    command = [sys.executable, __file__ if __name__ == "__main__" else str(ROOT / "scripts/bench_harvest.py")]
    done = subprocess.run([*command, "--child", str(home), str(int(idle))], check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout))


def child(home: Path, *, idle: bool) -> None:
    """The other process."""
    import resource
    import time

    sys.path[:0] = [str(ROOT)]
    from skillopt_sleep.config import SleepConfig
    from skillopt_sleep.harvest import commit, harvest

    settings = {"claude_home": str(home / ".claude"), "state_dir": str(home / "state"), "invoked_project": PROJECT}
    figures: dict[str, Any] = {}
    if not idle:
        begun = time.monotonic()
        found = harvest(SleepConfig(settings), limit=0)
        commit(found.receipt)
        figures = {
            "seconds": time.monotonic() - begun,
            "read": found.bytes_read,
            "digests": len(found.digests),
            "files": found.files_read,
        }
    unit = 1024 * 1024 if sys.platform == "darwin" else 1024
    figures["rss"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    print(json.dumps(figures))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(Path(sys.argv[2]), idle=sys.argv[3] == "1")
        sys.exit(0)
    sys.exit(main())

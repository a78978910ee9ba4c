"""What a person waits for, each beside its ideal, measured in one run on this machine.

Start-up is compared with `python -c pass`; model calls in flight with the number of workers; the wall time of a
training run with the time that its calls alone need.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
STARTS = {
    "python -c pass": ["-c", "pass"],
    "import skillopt": ["-c", "import skillopt"],
    "skillopt-train --help": ["-m", "skillopt.cli.train", "--help"],
    "skillopt-eval --help": ["-m", "skillopt.cli.evaluate", "--help"],
}


def main() -> int:
    """Print the figures; 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7, help="starts of each command")
    parser.add_argument("--workers", type=int, default=24)
    parser.add_argument("--latency", type=float, default=0.05, help="seconds that the server takes to answer")
    args = parser.parse_args()
    start_up(args.runs)
    throughput(args.workers, args.latency)
    return 0


def start_up(runs: int) -> None:
    """Median wall time of each start, and what it takes beyond the bare interpreter."""
    times: dict[str, list[float]] = {name: [] for name in STARTS}
    for _ in range(runs):
        for name, arguments in STARTS.items():
            times[name].append(_seconds([sys.executable, *arguments]))
    bare = statistics.median(times["python -c pass"])
    for name, values in times.items():
        median = statistics.median(values)
        print(f"{name:<24}{median:7.3f} s   {median / bare:5.1f}x bare python   {median - bare:+.3f} s")


def throughput(workers: int, latency: float) -> None:
    """A training run on a loopback server: mean calls in flight during rollouts, wall time beside the ideal."""
    sys.path[:0] = [str(ROOT / "tests")]
    from worlds import World, answer, write_data

    from skillopt.config.resolve import resolve
    from skillopt.engine.trainer import train
    from skillopt.testing import LoopbackServer

    with tempfile.TemporaryDirectory() as folder, LoopbackServer(answer, latency=latency) as server:
        world = World(Path(folder), server)
        write_data(world.root / "data", train=120, val=100, test=200)
        config = world.config(
            train={"num_epochs": 4, "batch_size": 40}, env={"workers": workers}, gradient={"failure_only": True}
        )
        begun = time.monotonic()
        train(resolve(config))
        wall = time.monotonic() - begun
        calls = world.requests("target-model")
        flights = [record.in_flight for record in server.requests if record.body["model"] == "target-model"]
    ideal = len(calls) * latency / workers
    print(f"{len(calls)} target calls, {workers} workers, {latency * 1000:.0f} ms each")
    print(f"mean calls in flight    {statistics.mean(flights):7.1f}     of {workers}")
    print(f"wall time               {wall:7.2f} s   {wall / ideal:5.2f}x the {ideal:.2f} s of the target calls alone")


def _seconds(command: Sequence[str]) -> float:
    begun = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begun


if __name__ == "__main__":
    sys.exit(main())

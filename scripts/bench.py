"""What a person waits for, each beside its ideal, measured in one run on this machine.

Start-up is compared with `python -c pass`; model calls in flight with the number of workers; the wall time of a
training run with the time that its calls alone need; a crowd of workers at a server with little room with as many
steady connections as it has room for.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import multiprocessing
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from skillopt.model.transport_http import HttpPool, HttpRequest
from skillopt.tracking.events import Event

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
    crowded(args.latency)
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
    """A training run with a server in another process: calls in flight during rollouts, wall time beside the ideal.

    A call is in flight from the moment it is handed to the transport until its answer is read.
    """
    sys.path[:0] = [str(ROOT / "tests")]
    from worlds import World, write_data

    from skillopt.config.resolve import resolve
    from skillopt.engine.trainer import train

    phases = _Phases()
    with tempfile.TemporaryDirectory() as folder, _server(latency) as url, _watched_calls() as calls:
        world = World(Path(folder), cast(Any, SimpleNamespace(url=url)))
        write_data(world.root / "data", train=120, val=100, test=200)
        config = world.config(
            train={"num_epochs": 4, "batch_size": 40},
            env={"workers": workers},
            gradient={"failure_only": True, "analyst_workers": 16},
        )
        begun = time.monotonic()
        train(resolve(config), sinks=[phases])
        wall = time.monotonic() - begun
    print(f"{len(calls)} target calls in {len(phases.done)} rollouts and evaluations, {latency * 1000:.0f} ms each")
    waiting = [(phase.begun, max(begun for begun, _ in calls if begun <= phase.ended)) for phase in phases.done]
    whole = [(phase.begun, phase.ended) for phase in phases.done]
    most = len(calls) / sum(math.ceil(phase.items / workers) for phase in phases.done)
    ideal = len(calls) * latency / workers
    print(f"mean calls in flight    {_in_flight(calls, waiting):7.1f}     of {workers}, while items wait for a worker")
    print(f"  to the last answer    {_in_flight(calls, whole):7.1f}     where rounds of {workers} allow {most:.1f}")
    print(f"wall time               {wall:7.2f} s   {wall / ideal:5.2f}x the {ideal:.2f} s of the target calls alone")


def crowded(latency: float, *, workers: int = 64, room: int = 10, calls: int = 500) -> None:
    """Many workers at a server that refuses what is above its room, beside as many steady connections as it has."""
    from skillopt.model.limiter import Limits
    from skillopt.model.session import Session
    from skillopt.testing import LoopbackServer
    from skillopt.utils.parallel import map_ordered

    seconds: dict[int, float] = {}
    sent = 0
    for number in (room, workers):
        with LoopbackServer("ok", latency=latency, max_in_flight=room, retry_after=1) as server:
            session = Session({"target": server.role()}, limits=Limits(max_concurrency=workers))
            begun = time.monotonic()
            ask = partial(session.ask, "target", "", stage="bench")
            failed = [
                r for r in map_ordered(ask, [str(n) for n in range(calls)], workers=number) if not hasattr(r, "text")
            ]
            seconds[number] = time.monotonic() - begun
            session.close()
        sent = len(server.requests)
        if failed:
            raise RuntimeError(f"{len(failed)} of {calls} calls failed, first: {failed[0]}")
    print(f"{calls} calls by {workers} workers to a server with room for {room} that refuses others (Retry-After: 1)")
    print(f"throughput              {seconds[room] / seconds[workers]:7.2f}     of that of {room} steady connections")
    print(f"refused                 {sent - calls:7d}     of {sent} requests ({(sent - calls) / sent:.1%})")


@contextlib.contextmanager
def _watched_calls() -> Iterator[list[tuple[float, float]]]:
    """When each call to the target began and ended, seen from the caller."""
    seen: list[tuple[float, float]] = []
    post = HttpPool.post

    def timed(pool: HttpPool, request: HttpRequest, **options: Any) -> Any:
        begun = time.monotonic()
        try:
            return post(pool, request, **options)
        finally:
            if b"target-model" in request.body and b"Reply with: ok" not in request.body:
                seen.append((begun, time.monotonic()))

    HttpPool.post = timed  # type: ignore[method-assign, assignment]
    try:
        yield seen
    finally:
        HttpPool.post = post  # type: ignore[method-assign]


def _in_flight(calls: Sequence[tuple[float, float]], windows: Sequence[tuple[float, float]]) -> float:
    """Mean number of calls (begun, ended) that are being served inside the windows."""
    inside = sum(max(0.0, min(e, end) - max(b, begun)) for begun, end in windows for b, e in calls)
    return inside / sum(end - begun for begun, end in windows)


@dataclass(frozen=True)
class _Phase:
    """A rollout or evaluation in which `items` were called for."""

    begun: float
    ended: float
    items: int


class _Phases:
    """A sink that notes when items are run."""

    def __init__(self) -> None:
        self.done: list[_Phase] = []
        self._begun, self._items = 0.0, 0

    def write(self, event: Event) -> None:
        if event.kind == "rollout_started":
            self._begun, self._items = time.monotonic(), event.data["total"] - event.data["done"]
        elif event.kind == "rollout_finished" and self._items:
            self.done.append(_Phase(self._begun, time.monotonic(), self._items))

    def close(self) -> None:
        """Nothing is open."""


@contextlib.contextmanager
def _server(latency: float) -> Iterator[str]:
    """The address of the world's server, in a process of its own."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, latency), daemon=True)
    process.start()
    try:
        yield ours.recv()
    finally:
        process.terminate()
        process.join()


def _serve(pipe: Connection, latency: float) -> None:
    sys.path[:0] = [str(ROOT / "tests")]
    from worlds import answer

    from skillopt.testing import LoopbackServer

    with LoopbackServer(answer, latency=latency) as server:
        pipe.send(server.url)
        pipe.recv()  # until the end of the process


def _seconds(command: Sequence[str]) -> float:
    begun = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begun


if __name__ == "__main__":
    sys.exit(main())

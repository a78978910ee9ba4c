"""`skillopt calibrate`: how noisy the target is on this data, and how often the gate would accept by chance."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from skillopt.cli.common import DONE, console, interruptible, print_json
from skillopt.types import JsonObject


def calibrate_command(config_path: Path, options: Sequence[str], out: TextIO, *, as_json: bool) -> int:
    """Run the initial skill twice on the validation split and print what the two runs say; the exit code."""
    from skillopt.config.resolve import resolve
    from skillopt.engine.calibrate import calibrate

    config = resolve(config_path, cfg_options=options, flags={}, command="train")
    with interruptible() as stop:
        report = calibrate(config, sinks=[console()], stop=stop)
    if as_json:
        print_json(report, out)
    else:
        out.write(calibrate_report(report))
    return DONE


def calibrate_report(report: JsonObject) -> str:
    """The noise, and the rates of false accepts of both policies of the gate."""
    first, second = report["hard"]
    errors = f", {report['errors']} results without a score left out" if report["errors"] else ""
    lines = [
        f"The same skill twice on {report['items']} validation items{errors}: hard {first:.4f} and {second:.4f}",
        f"  items that differ      {report['share_of_items_that_differ']:.1%}",
        f"  sd of the differences  {report['sd_of_differences']:.4f} ({report['gate_metric']})",
        f"A candidate that is no better is accepted, of {report['planned_looks']} planned looks:",
    ]
    for policy, rates in report["false_accept"].items():
        lines.append(f"  {policy:<8}in {rates['per_look']:7.2%} of looks, in {rates['per_run']:7.2%} of runs")
    lines.append(f"The paired gate asks for p <= {report['gate_share']:.2g} at each look.")
    if not report["share_of_items_that_differ"]:
        lines.append("Both runs agree on every item: this target repeats itself, and chance does not move the gate.")
    return "\n".join(lines) + "\n"

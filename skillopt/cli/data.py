"""`skillopt data`: make the splits of a benchmark, a manifest of one's own, sample data; check what is there."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, TextIO

from skillopt.cli.common import DONE, FAILED, add_cfg_options, add_json_option, print_json


def add_data_parser(verbs: Any) -> None:
    """Add the verb `data` and what can be done with it."""
    data = verbs.add_parser("data", help="make and check the data of a benchmark")
    nouns = data.add_subparsers(required=True, metavar="WHAT")
    _add_materialize(nouns)
    _add_manifest(nouns)
    check = nouns.add_parser("check", help="what would stop a run on a folder of splits")
    check.add_argument("folder", type=Path, metavar="DIR", help="folder with train, val and test")
    check.add_argument("--env", default="", metavar="NAME", help="environment; default: the one the folder is for")
    check.add_argument("--config", type=Path, default=None, help="a YAML file whose section env counts")
    add_cfg_options(check)
    add_json_option(check)
    check.set_defaults(action=_check)
    samples = nouns.add_parser("samples", help="write the small data of our own making; without a name, list them")
    samples.add_argument("name", nargs="?", default="", metavar="NAME")
    samples.add_argument("--out", type=Path, default=None, metavar="DIR", help="default: data/samples/NAME")
    add_json_option(samples)
    samples.set_defaults(action=_samples)


def _add_materialize(nouns: Any) -> None:
    parser = nouns.add_parser("materialize", help="make the splits of a benchmark from its public data")
    parser.add_argument("benchmark", metavar="BENCHMARK")
    parser.add_argument("--manifest-dir", type=Path, default=None, metavar="DIR", help="folder with the ids")
    parser.add_argument("--output-dir", type=Path, default=None, metavar="DIR", help="folder to make")
    parser.add_argument(
        "--source",
        "--dataset",
        default="",
        metavar="SOURCE",
        help="file or folder of this machine, else owner/name on the Hugging Face hub",
    )
    parser.add_argument("--revision", default="", metavar="REV", help="of the hub's data set; default: the manifest's")
    parser.add_argument("--force", action="store_true", help="replace a folder that was made by this command")
    add_json_option(parser)
    parser.set_defaults(action=_materialize)


def _add_manifest(nouns: Any) -> None:
    parser = nouns.add_parser("manifest", help="choose the items of train, val and test by a seed")
    parser.add_argument("benchmark", metavar="BENCHMARK")
    parser.add_argument("--source", default="", metavar="SOURCE", help="as for materialize")
    parser.add_argument("--revision", default="", metavar="REV", help="of the hub's data set; default: the newest")
    parser.add_argument("--manifest-dir", type=Path, default=None, metavar="DIR", help="folder to make")
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--counts", default="", metavar="A:B:C", help="items of each; default: as many as published")
    sizes.add_argument("--ratio", default="", metavar="A:B:C", help="deal out all items in these shares")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--force", action="store_true", help="replace a manifest that is there")
    add_json_option(parser)
    parser.set_defaults(action=_manifest)


def _materialize(args: argparse.Namespace, out: TextIO) -> int:
    from skillopt.datasets.materialize import Order
    from skillopt.engine.data import materialize_data

    order = Order(args.manifest_dir, args.output_dir, args.source, args.revision, force=args.force)
    made = materialize_data(args.benchmark, order)
    files = made.files_folder.as_posix() if made.files_folder else ""
    told = {"folder": made.folder.as_posix(), "files": files, "counts": dict(made.counts)}
    told |= {"source": made.source, "revision": made.revision}
    if args.json:
        print_json(told, out)
        return DONE
    out.write(f"{made.folder}: {_counted(made.counts)}\n")
    if files:
        out.write(f"{files}: their files (env.data_root)\n")
    out.write(f"from {made.source}{f', revision {made.revision}' if made.revision else ''}\n")
    out.write(f"Look at them with: skillopt data check {made.folder} --env {args.benchmark}\n")
    return DONE


def _manifest(args: argparse.Namespace, out: TextIO) -> int:
    from skillopt.datasets.materialize import Cut, Order, get_benchmark, make_manifest
    from skillopt.datasets.materialize.making import parse_counts

    order = Order(args.manifest_dir, None, args.source, args.revision, force=args.force)
    cut = Cut(parse_counts(args.counts) if args.counts else None, args.ratio, args.seed)
    folder, counts, revision = make_manifest(get_benchmark(args.benchmark), order, cut)
    if args.json:
        print_json({"folder": folder.as_posix(), "counts": counts, "revision": revision}, out)
    else:
        out.write(f"{folder}: {_counted(counts)}{f', revision {revision}' if revision else ''}\n")
        out.write(f"Make the splits with: skillopt data materialize {args.benchmark} --manifest-dir {folder}\n")
    return DONE


def _check(args: argparse.Namespace, out: TextIO) -> int:
    from skillopt.cli.doctor import tell_findings
    from skillopt.engine.data import check_data

    settings: dict[str, Any] = {}
    if args.config is not None or args.cfg_options:
        from skillopt.config.resolve import resolve

        settings = resolve(args.config or {}, cfg_options=args.cfg_options).flat()
    findings = check_data(args.folder, args.env or str(settings.get("env") or ""), settings)
    stops = any(finding.level == "fail" for finding in findings)
    if args.json:
        print_json({"ok": not stops, "findings": [finding.to_dict() for finding in findings]}, out)
    else:
        tell_findings(findings, out)
    return FAILED if stops else DONE


def _samples(args: argparse.Namespace, out: TextIO) -> int:
    from skillopt.datasets.samples.registry import sample_names, write_samples

    if args.name:
        folder = args.out or Path("data") / "samples" / args.name
        write_samples(args.name, folder)
        told: dict[str, str] = {"name": args.name, "folder": folder.as_posix()}
        lines = [f"{folder}: written"]
    else:
        told = sample_names()
        lines = [f"{name:<24} {about}" for name, about in told.items()]
    if args.json:
        print_json(told, out)
    else:
        out.write("\n".join(lines) + "\n")
    return DONE


def _counted(counts: Any) -> str:
    return ", ".join(f"{name} {number} items" for name, number in counts.items())

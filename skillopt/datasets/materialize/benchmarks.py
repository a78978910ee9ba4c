"""The six benchmarks as data: where they are published, what their manifests hold, what an item of each is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from skillopt.datasets.materialize import rows
from skillopt.datasets.materialize.rows import FileOf
from skillopt.datasets.materialize.sources import SourceRow, Wanted
from skillopt.datasets.materialize.tables import TABLE_SUFFIXES, Row
from skillopt.errors import ConfigError

Counts = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One benchmark. `counts`: sizes of the published train, val and test.

    `key`: the id of a row of the source; `entry`: what a manifest says of a row beside its id; `item`: the item of a
    row, given its manifest entry; `extra_files`: further files of an item. They go into the folder `files_folder`
    beside the output folder, or inside it when that is blank. `required`: fields that an item cannot do without;
    those in `may_be_blank` have to be there, with anything in them.
    `own_form`: the environment writes the items in its own form. `entry_id`: fields of a manifest entry that name the
    row, the first that is there counts.
    """

    name: str
    repo: str
    manifest: Path
    output: Path
    counts: Counts
    wanted: Wanted
    key: Callable[[SourceRow], str]
    entry: Callable[[SourceRow], Row]
    item: Callable[[SourceRow, Row], Row]
    required: tuple[str, ...]
    may_be_blank: tuple[str, ...] = ()
    entry_id: tuple[str, ...] = ("id",)
    extra_files: Callable[[SourceRow, Row], Iterator[FileOf]] = rows.no_files
    files_folder: str = ""
    own_form: bool = False
    table: str = "json"
    manifest_type: str = "id_split"
    plays: bool = False
    notes: str = ""

    def files_beside(self, output: Path) -> Path | None:
        """The folder of further files, None when they are inside the output folder."""
        return output.parent / self.files_folder if self.files_folder else None


_DATA = Path("data")
_ANY_TABLE = Wanted(tuple(f"*{suffix}" for suffix in TABLE_SUFFIXES))

SEARCHQA = Benchmark(
    name="searchqa",
    repo="lucadiliello/searchqa",
    manifest=_DATA / "searchqa_id_split",
    output=_DATA / "searchqa_split",
    counts=(400, 200, 1400),
    wanted=_ANY_TABLE,
    key=rows.searchqa_key,
    entry=rows.nothing,
    item=rows.searchqa_item,
    required=("question", "context", "answers"),
    may_be_blank=("context",),
)
DOCVQA = Benchmark(
    name="docvqa",
    repo="lmms-lab/DocVQA",
    manifest=_DATA / "docvqa_id_split",
    output=_DATA / "docvqa" / "splits",
    counts=(107, 53, 374),
    wanted=Wanted(("DocVQA/validation-*",), ("DocVQA/validation-*", "**/validation-*")),
    key=rows.docvqa_key,
    entry=rows.docvqa_entry,
    item=rows.docvqa_item,
    required=("question", "answer"),
    entry_id=("questionId", "id"),
    extra_files=rows.docvqa_image,
    table="csv",
    notes="The configuration DocVQA, split validation. Images lie in the folder images beside the splits.",
)
OFFICEQA = Benchmark(
    name="officeqa",
    repo="databricks/officeqa",
    manifest=_DATA / "officeqa_id_split",
    output=_DATA / "officeqa_split",
    counts=(50, 24, 172),
    wanted=Wanted(("*officeqa_full.csv",), ("**/officeqa_full.csv",)),
    key=rows.officeqa_key,
    entry=rows.officeqa_entry,
    item=rows.officeqa_item,
    required=("question", "ground_truth"),
    entry_id=("uid", "id"),
    notes="The bulletins themselves come from the same source; env.data_dirs names their folder.",
)
LIVEMATH = Benchmark(
    name="livemathematicianbench",
    repo="LiveMathematicianBench/LiveMathematicianBench",
    manifest=_DATA / "livemathematicianbench_id_split",
    output=_DATA / "livemathematicianbench_split",
    counts=(35, 17, 125),
    wanted=Wanted(("data/*/qa_*_final.json",), ("data/*/qa_*_final.json", "**/qa_*_final.json")),
    key=rows.livemath_key,
    entry=rows.livemath_entry,
    item=rows.livemath_item,
    required=("question", "choices", "correct_choice"),
    own_form=True,
)
SPREADSHEETBENCH = Benchmark(
    name="spreadsheetbench",
    repo="KAKA22/SpreadsheetBench",
    manifest=_DATA / "spreadsheetbench_id_split",
    output=_DATA / "spreadsheetbench_split",
    counts=(80, 40, 280),
    wanted=Wanted(("*spreadsheetbench_verified_400.tar.gz",), ("dataset.json", "*/dataset.json")),
    key=rows.plain_key,
    entry=rows.spreadsheet_entry,
    item=rows.spreadsheet_item,
    required=("instruction", "answer_position"),
    extra_files=rows.spreadsheet_files,
    files_folder="spreadsheetbench_verified_400",
    notes="The workbooks lie in the folder that env.data_root names.",
)
ALFWORLD = Benchmark(
    name="alfworld",
    repo="alfworld-download",
    manifest=_DATA / "alfworld_path_split",
    output=_DATA / "alfworld_path_split",
    counts=(39, 18, 134),
    wanted=Wanted(()),
    key=rows.plain_key,
    entry=rows.nothing,
    item=rows.alfworld_item,
    required=("gamefile",),
    manifest_type="path_split",
    plays=True,
    notes="Paths of games start at $ALFWORLD_DATA; val holds seen rooms (valid_seen), test unseen ones (valid_unseen).",
)
BENCHMARKS = {row.name: row for row in (SEARCHQA, DOCVQA, OFFICEQA, LIVEMATH, SPREADSHEETBENCH, ALFWORLD)}


def get_benchmark(name: str) -> Benchmark:
    """The benchmark of that name. Raises ConfigError, with the nearest name, for an unknown one."""
    if name in BENCHMARKS:
        return BENCHMARKS[name]
    near = get_close_matches(name.lower(), BENCHMARKS, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    raise ConfigError(f"there is no benchmark {name!r}{hint} Known: {', '.join(BENCHMARKS)}.")

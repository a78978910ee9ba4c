"""Items of SpreadsheetBench and the workbooks that belong to them."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from skillopt.errors import DataError, RunError
from skillopt.scoring.base import Mode
from skillopt.scoring.cells import CellRange, parse_answer_position
from skillopt.types import Item

_PAIRS = {"_input.xlsx": "_answer.xlsx", "_init.xlsx": "_golden.xlsx"}
_SINGLE = ("initial.xlsx", "golden.xlsx")
_LOCK_FILES = ("~$", ".")


@dataclass(frozen=True, slots=True)
class Case:
    """One workbook to change and the right result. `number` is the beginning of the files' names."""

    number: str
    source: Path
    gold: Path


@dataclass(frozen=True, slots=True)
class Task:
    """What an item asks for. `digests`: the content of each of its files when the item was loaded."""

    instruction: str
    instruction_type: str
    answer_position: str
    ranges: tuple[CellRange, ...]
    cases: tuple[Case, ...]
    digests: Mapping[str, str]

    def verify(self, case: Case) -> None:
        """Raise RunError if a file of the data was changed since it was loaded."""
        for path in (case.source, case.gold):
            if file_digest(path) != self.digests.get(path.name):
                raise RunError(
                    f"{path}: the workbook changed during the run, so its results cannot be trusted; restore the data "
                    "and start in another out_root."
                )


def task_folder(data_root: Path, data: Mapping[str, object], where: str) -> Path:
    """The folder with an item's workbooks. Raises DataError when it lies outside `data_root` or is not there."""
    root = Path(os.path.abspath(data_root))  # noqa: PTH100 - links below the root are the owner's, so none is followed
    given = str(data.get("spreadsheet_path") or "") or f"spreadsheet/{data.get('id')}"
    if "\0" in given:
        raise DataError(f"{where}: field 'spreadsheet_path' holds a NUL character; expected the name of a folder.")
    folder = Path(os.path.normpath(root / given.replace("\\", "/")))
    if root not in folder.parents:
        raise DataError(
            f"{where}: field 'spreadsheet_path' ({given!r}) leads out of env.data_root ({data_root}); "
            "expected a folder inside it."
        )
    if not folder.is_dir():
        raise DataError(f"{where}: its folder {folder} does not exist; check env.data_root and 'spreadsheet_path'.")
    return folder


def find_cases(folder: Path, where: str) -> tuple[Case, ...]:
    """The test cases of a folder: `1_…_input.xlsx` with `…_answer.xlsx`, `1_…_init.xlsx` with `…_golden.xlsx`.

    A folder without such files holds one case, `initial.xlsx` and `golden.xlsx`. Raises DataError, naming `where`, for
    a folder without a case and for a workbook without its partner.
    """
    files = {p.name: p for p in folder.iterdir() if p.is_file() and not p.name.startswith(_LOCK_FILES)}
    cases = []
    for name in sorted(files):
        for first, second in _PAIRS.items():
            for own, other in ((first, second), (second, first)):
                if not name.endswith(own):
                    continue
                partner = name.removesuffix(own) + other
                if partner not in files:
                    raise DataError(f"{where}: {folder} holds {name} without {partner}.")
                if own is first:
                    cases.append(Case(name.split("_", 1)[0], files[name], files[partner]))
    if not cases:
        missing = [name for name in _SINGLE if name not in files]
        if missing:
            raise DataError(
                f"{where}: {folder} has no test case; expected 1_…_input.xlsx with 1_…_answer.xlsx, "
                f"1_…_init.xlsx with 1_…_golden.xlsx, or {' with '.join(_SINGLE)} (no {missing[0]} here)."
            )
        cases.append(Case("1", files[_SINGLE[0]], files[_SINGLE[1]]))
    return tuple(sorted(cases, key=_in_order))


def read_task(item: Item, data_root: Path, mode: Mode) -> Task:
    """The task of an item. Raises DataError, naming item and field, for one that cannot be done or graded."""
    where = f"item {item.id!r}"
    texts = {
        name: str(item.data.get(name) or "")
        for name in ("instruction", "instruction_type", "answer_position", "answer_sheet")
    }
    if not texts["instruction"].strip():
        raise DataError(f"{where}: field 'instruction' is missing or empty.")
    ranges = parse_answer_position(
        texts["answer_position"], answer_sheet=texts["answer_sheet"], mode=mode, where=f"{where}, 'answer_position'"
    )
    cases = find_cases(task_folder(data_root, {**item.data, "id": item.id}, where), where)
    shown = texts["answer_position"]
    if texts["answer_sheet"] and "!" not in shown:
        shown = f"'{texts['answer_sheet']}'!{shown}"
    digests = item.data.get("workbooks")
    return Task(
        texts["instruction"],
        texts["instruction_type"],
        shown,
        ranges,
        cases,
        digests if isinstance(digests, Mapping) else digests_of(cases),
    )


def digests_of(cases: tuple[Case, ...]) -> dict[str, str]:
    """SHA-256 of every workbook of the cases, by file name."""
    return {path.name: file_digest(path) for case in cases for path in (case.source, case.gold)}


def file_digest(path: Path) -> str:
    """SHA-256 of a file, empty when it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


def task_type(instruction_type: str) -> str:
    """`cell_level`, `sheet_level` or `other`, from the words of the data set."""
    words = instruction_type.lower()
    return "cell_level" if "cell" in words else "sheet_level" if "sheet" in words else "other"


def _in_order(case: Case) -> tuple[int, str, str]:
    digits = re.match(r"\d{1,9}", case.number)
    return (int(digits[0]) if digits else 10**9, case.number, case.source.name)

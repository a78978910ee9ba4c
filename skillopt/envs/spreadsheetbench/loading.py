"""What is checked before anything is spent: the folder, the sandbox, and every item's workbooks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from skillopt.envs.spreadsheetbench.cases import Task
from skillopt.envs.spreadsheetbench.execution import Run
from skillopt.envs.spreadsheetbench.grading import grade
from skillopt.envs.spreadsheetbench.workbooks import sheet_names
from skillopt.errors import ConfigError, DataError
from skillopt.scoring.base import Mode
from skillopt.scoring.cells import Workbook, missing_sheets, parse_answer_position
from skillopt.utils.sandbox import strength

_NAMED = 5
_BYTES_LOOKED_AT = 4 * 1024**2  # of workbooks tried as they are; about ten seconds


def check_root(data_root: str) -> None:
    """Raise ConfigError or DataError when there is no folder with workbooks."""
    if not data_root.strip():
        raise ConfigError("env.data_root is not set; name the folder that holds the workbooks (spreadsheet/<id>/…).")
    if not Path(data_root).is_dir():
        raise DataError(
            f"env.data_root: {data_root} does not exist; `skillopt data materialize spreadsheetbench` gets the "
            "workbooks, `skillopt data samples spreadsheetbench` writes a few small ones."
        )


def sandbox_notices(*, require: bool) -> list[str]:
    """What the sandbox of this machine does not shut out. Raises ConfigError when it is required to."""
    found = strength()
    if require and not (found.isolates_files and found.isolates_network):
        raise ConfigError(f"env.code_sandbox=require: {found.note}")
    return [found.note] if found.note else []


def check_task(item_id: str, task: Task, answer_sheet: str, mode: Mode, notices: list[str]) -> None:
    """Raise DataError for a position or workbooks that cannot be graded; with the published rules, give a notice."""
    where = f"item {item_id!r}"
    try:
        ranges = task.ranges
        if mode == "paper":
            position = task.answer_position
            ranges = parse_answer_position(position, answer_sheet=answer_sheet, where=f"{where}, 'answer_position'")
        for case in task.cases:
            held = sheet_names(case.gold)
            lacking = missing_sheets(ranges, Workbook(lambda *_: None, dict.fromkeys(held, (0, 0))))
            if lacking or not held:
                raise DataError(f"{where}: {case.gold} has no sheet {lacking[0] if lacking else ''!r} to grade.")
            sheet_names(case.source)
    except DataError as error:
        if mode == "strict":
            raise error if where in str(error) else DataError(f"{where}: {error}") from error
        notices.append(f"{error} It is graded as the published code does.")


def data_notices(tasks: Mapping[str, Task], mode: Mode) -> list[str]:
    """A sentence about items whose input already holds what is asked for; the smallest workbooks are looked at."""
    sizes = {
        name: sum(path.stat().st_size for case in task.cases for path in (case.source, case.gold))
        for name, task in tasks.items()
    }
    done: list[str] = []
    spent = 0
    for name in sorted(sizes, key=lambda name: (sizes[name], name)):
        spent += sizes[name]
        if spent > _BYTES_LOOKED_AT:
            break
        task = tasks[name]
        if all(grade(task, case, Run(case.source), mode, lambda: None).passed for case in task.cases):
            done.append(name)
    if not done:
        return []
    named = ", ".join(repr(name) for name in done[:_NAMED]) + (" …" if len(done) > _NAMED else "")
    return [f"{len(done)} item(s) have full marks when the workbook is left as it is, so they teach nothing: {named}."]

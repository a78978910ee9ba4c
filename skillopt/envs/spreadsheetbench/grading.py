"""From what the runs made to a score, a reason, and a report in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skillopt.envs.spreadsheetbench.cases import Case, Task
from skillopt.envs.spreadsheetbench.execution import Run
from skillopt.envs.spreadsheetbench.workbooks import Tick, read_workbook, uncomputed_formulas
from skillopt.errors import DataError
from skillopt.scoring.base import Mode, Score
from skillopt.scoring.cells import CellReport, compare_cells, score_cases
from skillopt.types import JsonObject

_REPORT = 12_000
_NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One case: how its program ended, and how its cells compare. `formulas`: of the output, without a value."""

    case: Case
    run: Run
    report: CellReport
    formulas: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether there is an output with the right cells."""
        return self.report.passed

    @property
    def reason(self) -> str:
        """Why the case failed, as `kind: words`; empty if it passed."""
        if self.run.reason:
            return self.run.reason
        return "" if self.passed else f"eval-mismatch: {_first_problem(self.report)}"

    def row(self) -> JsonObject:
        """The case as it is kept in the item's row."""
        stage = "exec" if self.run.output is None else "eval"
        out: JsonObject = {"no": self.case.number, "stage": stage, "ok": self.passed}
        return out if self.passed else {**out, "error" if stage == "exec" else "reason": self.reason}

    def text(self, *, show_expected: bool = True, limit: int = _REPORT) -> str:
        """The verdict in words."""
        lines = [f"Case {self.case.number}: {'PASS' if self.passed else 'FAIL'}"]
        if self.run.reason:
            lines += [self.run.reason, self.run.detail]
        else:
            lines.append(self.report.text(show_expected=show_expected, limit=limit))
        lines += ["Formulas of the output that hold no value:", *self.formulas] if self.formulas else []
        return "\n".join(line for line in lines if line)


def grade(task: Task, case: Case, run: Run, mode: Mode, tick: Tick) -> Verdict:
    """Compare the output of a run with the right workbook, both read once.

    An output that cannot be read fails the case; raises DataError when it is the right workbook that cannot be.
    """
    if run.output is None:
        return Verdict(case, run, CellReport(problems=(run.reason,)))
    gold = read_workbook(case.gold, task.ranges, tick=tick)
    try:
        output = read_workbook(run.output, task.ranges, first=next(iter(gold.used), ""), tick=tick)
        report = compare_cells(task.ranges, gold, output, mode=mode)
        missed = {miss.sheet for miss in report.mismatches if miss.got == _NOTHING}
        names = [name for name in output.used if name.casefold() in {sheet.casefold() for sheet in missed}]
        formulas = uncomputed_formulas(run.output, names) if names else []
    except DataError as error:
        return Verdict(case, run, CellReport(problems=(str(error),)))
    return Verdict(case, run, report, tuple(formulas))


def total(verdicts: Sequence[Verdict]) -> Score:
    """The item's score: `soft` is the share of cases that passed, `hard` 1 if all did."""
    score = score_cases([verdict.report for verdict in verdicts])
    failed = next((verdict for verdict in verdicts if not verdict.passed), None)
    return score if failed is None else Score(score.hard, score.soft, failed.reason)


def verification(verdicts: Sequence[Verdict]) -> str:
    """The report of all cases in words, shortened in the middle to 12,000 characters."""
    text = "\n\n".join(verdict.text() for verdict in verdicts)
    if len(text) <= _REPORT:
        return text
    half = _REPORT // 2
    return f"{text[:half]}\n… ({len(text) - 2 * half} characters left out)\n{text[-half:]}"


def wrong_cells(verdict: Verdict) -> str:
    """What the target is told in training: which cells are wrong and what it wrote there, not what is right."""
    return verdict.text(show_expected=False, limit=3000)


def _first_problem(report: CellReport) -> str:
    if report.problems:
        return report.problems[0]
    miss = report.mismatches[0]
    more = f"; {report.wrong} cells wrong in all" if report.wrong > 1 else ""
    return f"cell {miss.sheet}!{miss.cell} holds {miss.got}, expected {miss.expected}{more}"

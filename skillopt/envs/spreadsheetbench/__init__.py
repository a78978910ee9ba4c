"""SpreadsheetBench: change a workbook as an instruction says; graded by the values of its cells."""

from __future__ import annotations

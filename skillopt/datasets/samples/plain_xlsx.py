"""Writes small workbooks whose bytes depend on nothing but their content: no clock, no library, no compression."""

from __future__ import annotations

import datetime as dt
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

Value = str | int | float | dt.date | None
Row = Sequence[Value]

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_LINKS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_KIND = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_EPOCH = dt.date(1899, 12, 30)
_CLOCK = (1980, 1, 1, 0, 0, 0)
_STYLES = (
    f'<styleSheet xmlns="{_MAIN}"><fonts count="1"><font><sz val="11"/><name val="Calibri"/></font></fonts>'
    '<fills count="2"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill>'
    '</fills><borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>'
    '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs><cellXfs count="2">'
    '<xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>'
    '<xf numFmtId="14" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/></cellXfs>'
    '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>'
)


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula without `=`, and its stored value; None: nothing has computed it."""

    text: str
    value: int | float | None = None


def write_workbook(path: Path, sheets: Mapping[str, Sequence[Sequence[Value | Formula]]]) -> None:
    """Write rows of cells, sheet by sheet; None leaves a cell out."""
    parts = {
        "[Content_Types].xml": _content_types(len(sheets)),
        "_rels/.rels": _links({"rId1": ("officeDocument", "xl/workbook.xml")}),
        "xl/workbook.xml": _book(list(sheets)),
        "xl/_rels/workbook.xml.rels": _links(
            {
                **{f"rId{n}": ("worksheet", f"worksheets/sheet{n}.xml") for n in range(1, len(sheets) + 1)},
                f"rId{len(sheets) + 1}": ("styles", "styles.xml"),
            }
        ),
        "xl/styles.xml": _STYLES,
        **{f"xl/worksheets/sheet{n}.xml": _sheet(rows) for n, rows in enumerate(sheets.values(), 1)},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, text in parts.items():
            entry = zipfile.ZipInfo(name, _CLOCK)
            entry.create_system = 3
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, (_HEAD + text).encode("utf-8"))


def _content_types(sheets: int) -> str:
    kinds = {"/xl/workbook.xml": "sheet.main", "/xl/styles.xml": "styles"}
    kinds |= {f"/xl/worksheets/sheet{n}.xml": "worksheet" for n in range(1, sheets + 1)}
    rows = "".join(f'<Override PartName="{name}" ContentType="{_KIND}.{kind}+xml"/>' for name, kind in kinds.items())
    return (
        f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Default Extension="xml" ContentType="application/xml"/>{rows}</Types>'
    )


def _links(targets: Mapping[str, tuple[str, str]]) -> str:
    rows = "".join(
        f'<Relationship Id="{key}" Type="{_LINKS}/{kind}" Target="{target}"/>'
        for key, (kind, target) in targets.items()
    )
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{rows}</Relationships>'


def _book(names: Sequence[str]) -> str:
    rows = "".join(f'<sheet name={quoteattr(name)} sheetId="{n}" r:id="rId{n}"/>' for n, name in enumerate(names, 1))
    return f'<workbook xmlns="{_MAIN}" xmlns:r="{_LINKS}"><sheets>{rows}</sheets></workbook>'


def _sheet(rows: Sequence[Sequence[Value | Formula]]) -> str:
    lines = []
    for number, row in enumerate(rows, 1):
        cells = "".join(_cell(f"{chr(64 + n)}{number}", value) for n, value in enumerate(row, 1) if value is not None)
        lines.append(f'<row r="{number}">{cells}</row>' if cells else "")
    return f'<worksheet xmlns="{_MAIN}"><sheetData>{"".join(lines)}</sheetData></worksheet>'


def _cell(place: str, value: Value | Formula) -> str:
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>'
    if isinstance(value, Formula):
        stored = "" if value.value is None else f"<v>{value.value}</v>"
        return f'<c r="{place}"><f>{escape(value.text)}</f>{stored}</c>'
    if isinstance(value, dt.date):
        return f'<c r="{place}" s="1"><v>{(value - _EPOCH).days}</v></c>'
    return f'<c r="{place}"><v>{value}</v></c>'

"""How the row of each benchmark's source becomes a manifest entry and an item. Pure but for reading an item's files."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillopt.datasets.materialize.sources import SourceRow
from skillopt.datasets.materialize.tables import Row
from skillopt.errors import DataError

IMAGES = "images"
_MONTH = re.compile(r"(?<!\d)(20\d{4})(?!\d)")
_WORKBOOK = (".xlsx", ".xlsm")
_IMAGE_KINDS = ((b"\x89PNG", ".png"), (b"\xff\xd8", ".jpg"), (b"GIF8", ".gif"), (b"RIFF", ".webp"))
_DOCVQA_FIELDS = ("docId", "ucsf_document_id", "ucsf_document_page_no")


@dataclass(frozen=True, slots=True)
class FileOf:
    """A file that belongs to an item: its path in the new folder, and its bytes."""

    name: str
    data: bytes


def no_files(row: SourceRow, item: Row) -> Iterator[FileOf]:  # noqa: ARG001
    """Most items are complete in themselves."""
    return iter(())


def nothing(row: SourceRow) -> Row:  # noqa: ARG001
    """A manifest entry that holds an id only."""
    return {}


def plain_key(row: SourceRow) -> str:
    """The field `id`."""
    return _key(row, "id")


def searchqa_key(row: SourceRow) -> str:
    """The field `key`."""
    return _key(row, "key", "id")


def searchqa_item(row: SourceRow, entry: Row) -> Row:
    """`id`, `question`, `context`, `answers` and nothing else."""
    answers = row.data.get("answers")
    if isinstance(answers, Mapping):
        answers = answers.get("text")
    listed = [answers] if isinstance(answers, str) else answers
    return {
        "id": entry["id"],
        "question": row.data.get("question"),
        "context": row.data.get("context"),
        "answers": listed,
    }


def docvqa_key(row: SourceRow) -> str:
    """The field `questionId`."""
    return _key(row, "questionId", "id")


def docvqa_entry(row: SourceRow) -> Row:
    """What tells where the page is from, and where its image will be."""
    own = {name: row.data[name] for name in _DOCVQA_FIELDS if name in row.data}
    image = _image_name(docvqa_key(row), row.data, ".png")
    return {
        "questionId": docvqa_key(row),
        **own,
        "image_path": f"data/docvqa_images/{image}",
        "topic": _topic(row.data),
        "source_dataset": "lmms-lab/DocVQA",
        "source_config": "DocVQA",
        "source_split": "validation",
    }


def docvqa_item(row: SourceRow, entry: Row) -> Row:
    """Question, accepted answers as a list in JSON, image, and where the page is from."""
    key = docvqa_key(row)
    names = ("answers", "answer", "ground_truth")
    answers: Any = next((row.data[name] for name in names if row.data.get(name)), "")
    if isinstance(answers, list):
        answers = json.dumps(answers, ensure_ascii=False)
    image = _image_name(key, row.data, _image_suffix(_image_bytes(row)))
    return {
        "questionId": key,
        "question": row.data.get("question"),
        "answer": answers,
        "image_path": f"{IMAGES}/{image}",
        **{name: row.data.get(name, entry.get(name, "")) for name in _DOCVQA_FIELDS},
        "topic": entry.get("topic") or _topic(row.data),
        "source_split": entry.get("source_split") or "validation",
    }


def docvqa_image(row: SourceRow, item: Row) -> Iterator[FileOf]:
    """The image of the page, byte for byte as it is in the source."""
    yield FileOf(str(item["image_path"]), _image_bytes(row))


def officeqa_key(row: SourceRow) -> str:
    """The field `uid`."""
    return _key(row, "uid", "id")


def officeqa_entry(row: SourceRow) -> Row:
    """Category and sources of a question."""
    names = ("source_files", "source_docs")
    return {"uid": officeqa_key(row), "category": _category(row.data), **{n: row.data.get(n, "") for n in names}}


def officeqa_item(row: SourceRow, entry: Row) -> Row:
    """All columns, with `ground_truth` and `category` under these names."""
    right = next((row.data[name] for name in ("ground_truth", "answer") if row.data.get(name) not in (None, "")), "")
    kept = {name: value for name, value in row.data.items() if name not in ("answer", "difficulty")}
    category = _category(row.data) or entry.get("category", "")
    return {**kept, "id": entry["id"], "uid": officeqa_key(row), "ground_truth": right, "category": category}


def livemath_key(row: SourceRow) -> str:
    """`<month>:<no>`; the month may be that of the file, the number that of the row."""
    month, number = _month(row), row.data.get("no")
    number = row.number if number in (None, "") else number
    return f"{month}:{number}" if month else str(number)


def livemath_entry(row: SourceRow) -> Row:
    """Month, number, paper and file of a question."""
    month, _, number = livemath_key(row).rpartition(":")
    paper = row.data.get("paper_link", "")
    return {
        "month": month,
        "no": int(number) if number.isdigit() else number,
        "paper_link": paper,
        "source_file": row.name,
    }


def livemath_item(row: SourceRow, entry: Row) -> Row:
    """The row with its question, choices and right choice at top level."""
    mcq = row.data.get("mcq")
    inner = dict(mcq) if isinstance(mcq, Mapping) else {}
    kept = {name: value for name, value in row.data.items() if name != "mcq"}
    return {**kept, **inner, "id": entry["id"], "month": _month(row)}


def spreadsheet_entry(row: SourceRow) -> Row:
    """Folder of the workbooks and type of the instruction."""
    return {"spreadsheet_path": _spreadsheet_path(row), "instruction_type": row.data.get("instruction_type", "")}


def spreadsheet_item(row: SourceRow, entry: Row) -> Row:
    """The row as it is, with the folder of its workbooks."""
    return {**row.data, "id": entry["id"], "spreadsheet_path": _spreadsheet_path(row)}


def spreadsheet_files(row: SourceRow, item: Row) -> Iterator[FileOf]:
    """The workbooks of an item."""
    folder = _inside(row.path.parent, str(item["spreadsheet_path"]), row.where)
    found = [path for path in sorted(folder.glob("*")) if path.suffix.lower() in _WORKBOOK and path.is_file()]
    if not found:
        raise DataError(f"{row.where}: item {item['id']!r} has no workbooks in {item['spreadsheet_path']}.")
    for path in found:
        yield FileOf(f"{item['spreadsheet_path']}/{path.name}", path.read_bytes())


def alfworld_item(row: SourceRow, entry: Row) -> Row:
    """The manifest's entry is the item."""
    return {**row.data, **entry}


def _key(row: SourceRow, *names: str) -> str:
    for name in names:
        value = row.data.get(name)
        if isinstance(value, (str, int)) and not isinstance(value, bool) and str(value).strip():
            return str(value)
    raise DataError(f"{row.where}: has no {' or '.join(repr(name) for name in names)}; is this the right source?")


def _month(row: SourceRow) -> str:
    month = row.data.get("month")
    if month not in (None, ""):
        return str(month)
    found = _MONTH.findall(row.name)
    return str(found[-1]) if found else ""


def _category(data: Row) -> str:
    return str(data.get("category") or data.get("difficulty") or "")


def _topic(data: Row) -> str:
    topic = data.get("topic") or data.get("question_types") or ""
    return "|".join(str(part) for part in topic) if isinstance(topic, (list, tuple)) else str(topic)


def _spreadsheet_path(row: SourceRow) -> str:
    return str(row.data.get("spreadsheet_path") or f"spreadsheet/{plain_key(row)}").replace("\\", "/")


def _image_name(key: str, data: Row, suffix: str) -> str:
    parts = f"q{key}_d{data.get('docId', '')}"
    return re.sub(r"[^A-Za-z0-9_.-]", "_", parts).lstrip(".") + suffix


def _image_suffix(data: bytes) -> str:
    return next((suffix for start, suffix in _IMAGE_KINDS if data.startswith(start)), ".png")


def _image_bytes(row: SourceRow) -> bytes:
    """Bytes of the row's image: in the row itself, or in a file that the row names beside its own file."""
    image: Any = row.data.get("image")
    if isinstance(image, Mapping):
        image = image.get("bytes") or image.get("path")
    if isinstance(image, bytes) and image:
        return image
    named = image or row.data.get("image_path")
    if not isinstance(named, str) or not named:
        raise DataError(f"{row.where}: has no image.")
    path = _inside(row.path.parent, named, row.where)
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{row.where}: the image {named!r} cannot be read ({error.strerror}).") from None


def _inside(root: Path, name: str, where: str) -> Path:
    """The path `name` below `root`. Raises DataError for one that leads out of it."""
    base = Path(os.path.normpath(root))
    path = Path(os.path.normpath(base / name))  # links inside the source are its owner's business
    if "\0" in name or base not in path.parents:
        raise DataError(f"{where}: the path {name!r} leads out of the source; expected one inside it.")
    return path

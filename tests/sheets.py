"""Programs that solve the sample items of SpreadsheetBench, as a model would write them."""

from __future__ import annotations

HEAD = "import openpyxl\nbook = openpyxl.load_workbook(INPUT_PATH)\n"
TAIL = "book.save(OUTPUT_PATH)\n"

_BODIES = {
    "total": """
sheet = book.worksheets[0]
sheet["D2"] = sum(int(str(cell.value).strip()) for cell in sheet["B"][1:] if cell.value is not None)
""",
    "days": """
for row in book["Loans"].iter_rows(min_row=2):
    if row[1].value:
        row[3].value = (row[2].value - row[1].value).days
""",
    "status": """
for row in book["Stock list"].iter_rows(min_row=2):
    row[3].value = "order" if row[1].value < row[2].value else "enough"
""",
    "groups": """
sums = {}
for name, cost in book["Costs"].iter_rows(min_row=2, values_only=True):
    sums[name] = sums.get(name, 0) + cost
for number, name in enumerate(sorted(sums), 2):
    book["Summary"].cell(number, 1).value = name
    book["Summary"].cell(number, 2).value = sums[name]
""",
    "unique": """
sheet = book["Shelves"]
rows = list(dict.fromkeys(sheet.iter_rows(values_only=True)))
sheet.delete_rows(1, sheet.max_row)
for row in rows:
    sheet.append(row)
""",
}
SOLUTIONS = {name: HEAD + body.lstrip() + TAIL for name, body in _BODIES.items()}

# What a hurried reader of "add up" writes: a formula, which nobody computes, so that the cell reads as empty.
WITH_FORMULA = HEAD + "book.worksheets[-1]['D2'] = '=SUM(B2:B9)'\n" + TAIL

_WORDS = {"total": "Add up", "days": "number of days", "status": "below the minimum", "groups": "each department"}


def kind_of(prompt: str) -> str:
    """The kind of a sample item, from its instruction."""
    return next((kind for kind, words in _WORDS.items() if words in prompt), "unique")


def fenced(code: str) -> str:
    return f"Here it is.\n\n```python\n{code}```\n"

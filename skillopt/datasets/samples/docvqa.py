"""Sample data of DocVQA: fifteen drawn pages (invoices, forms, letters, timetables) with invented facts.

Needs Pillow for the images. Equal everywhere are their pixels; how the file packs them is up to Pillow.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from skillopt.errors import MissingExtraError
from skillopt.types import JsonObject
from skillopt.utils.files import atomic_write_text

if TYPE_CHECKING:
    from PIL.Image import Image

SPLITS = {"train": 6, "val": 5, "test": 4}
IMAGES_FOLDER = "images"
COLUMNS = (
    *("questionId", "question", "answer", "image_path", "docId"),
    *("ucsf_document_id", "ucsf_document_page_no", "topic", "source_split"),
)

_SEED = "docvqa-sample-1"
_WIDTH, _HEIGHT, _ZOOM = 400, 500, 2  # of the page in small pixels; each becomes a square of `_ZOOM`
_LINE = 16
_FIRMS = ("Harrow & Finch Joinery", "Blue Kettle Tea Co.", "Ostler Bicycles", "Northgate Bindery", "Pell Lane Nursery")
_STREETS = ("14 Orchard Row", "220 Canal Street", "7 Beacon Hill", "58 Mill Lane", "31 Tanner's Yard")
_TOWNS = ("Wexcombe", "Port Alder", "Strathmoor", "Lower Quill", "Eastmere")
_FIRST = ("Mira", "Tobias", "Ines", "Callum", "Priya", "Anton", "Greta", "Samuel")
_LAST = ("Lindqvist", "Okoro", "Vasquez", "Hartley", "Menon", "Brandt", "Ferreira", "Quayle")
_GOODS = ("Oak shelf", "Brass hinge", "Green tea 250 g", "Inner tube", "Ledger, ruled", "Rose bush", "Saddle bag")
_JOBS = ("Bookbinder", "Surveyor", "Pharmacist", "Ferry pilot", "Gardener", "Organist")
_MONTHS = ("January", "February", "March", "April", "May", "June", "August", "October", "November")
_STOPS = ("Alder Quay", "Quill Bridge", "Moor Halt", "Wexcombe Town", "Eastmere Sands", "Tanner's Cross")
_THEMES = ("Repair of the clock tower", "Reading room hours", "Loan of the harmonium", "Flood gate survey")


@dataclass(slots=True)
class _Sheet:
    """A page before it is drawn, and what can be asked about it: questions with the answers that are right."""

    topic: str
    texts: list[tuple[int, int, str, int]] = field(default_factory=list)
    """Left, top, words and size of each text."""
    rules: list[tuple[int, int, int, int]] = field(default_factory=list)
    asked: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    def write(self, x: int, y: int, *lines: str, size: int = 1) -> int:
        """Put lines below each other; the top of the next one."""
        for line in lines:
            self.texts += [(x, y, line, size)] if line else []
            y += _LINE * size
        return y

    def rule(self, y: int, x0: int = 30, x1: int = _WIDTH - 30) -> None:
        """A line across the page."""
        self.rules.append((x0, y, x1, y))


@dataclass(frozen=True, slots=True)
class Sample:
    """One item: its row of the table, and its page."""

    row: JsonObject
    sheet: _Sheet


def samples() -> dict[str, list[Sample]]:
    """The items of each split, in their order."""
    numbers = iter(range(sum(SPLITS.values())))
    return {split: [_sample(split, next(numbers)) for _ in range(count)] for split, count in SPLITS.items()}


def table(split: str) -> str:
    """The text of a split's CSV file."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(sample.row for sample in samples()[split])
    return stream.getvalue()


def write(folder: Path) -> None:
    """Write the tables and the images: about 100 kB. Raises MissingExtraError without Pillow."""
    if importlib.util.find_spec("PIL") is None:
        raise MissingExtraError('the sample pages need the package pillow; run: pip install "skillopt[docvqa]"')
    (folder / IMAGES_FOLDER).mkdir(parents=True, exist_ok=True)
    for split, made in samples().items():
        atomic_write_text(folder / split / "items.csv", table(split))
        for sample in made:
            draw(sample.sheet).save(folder / str(sample.row["image_path"]), "PNG", optimize=True)


def draw(sheet: _Sheet) -> Image:
    """The page in grey, 800 x 1,000 pixels, written in the bitmap font that Pillow brings along."""
    from PIL import Image, ImageDraw, ImageFont

    font = getattr(ImageFont, "load_default_imagefont", ImageFont.load_default)()
    page = Image.new("L", (_WIDTH * _ZOOM, _HEIGHT * _ZOOM), 255)
    pen = ImageDraw.Draw(page)
    for place in sheet.rules:
        pen.line([_ZOOM * number for number in place], fill=0, width=_ZOOM)
    for x, y, words, size in sheet.texts:
        box = font.getbbox(words)
        stamp = Image.new("1", (int(box[2]), int(box[3])), 0)
        ImageDraw.Draw(stamp).text((0, 0), words, fill=1, font=font)
        large = stamp.resize((stamp.width * size * _ZOOM, stamp.height * size * _ZOOM), Image.Resampling.NEAREST)
        page.paste(0, (x * _ZOOM, y * _ZOOM), large)
    return page


def _sample(split: str, number: int) -> Sample:
    make = _KINDS[number % len(_KINDS)]
    sheet = make(random.Random(f"{_SEED}:{number}"))
    question, answers = sheet.asked[(number // len(_KINDS) + number) % len(sheet.asked)]
    question_id, document = str(90_001 + number), f"page_{number + 1:02d}"
    row: JsonObject = {
        "questionId": question_id,
        "question": question,
        "answer": json.dumps(answers),
        "image_path": f"{IMAGES_FOLDER}/{document}.png",
        "docId": str(7_001 + number),
        "ucsf_document_id": document,
        "ucsf_document_page_no": "1",
        "topic": sheet.topic,
        "source_split": split,
    }
    return Sample(row, sheet)


def _person(rng: random.Random) -> str:
    return f"{rng.choice(_FIRST)} {rng.choice(_LAST)}"


def _date(rng: random.Random, year: int = 0) -> str:
    return f"{rng.randrange(1, 29)} {rng.choice(_MONTHS)} {year or rng.randrange(1987, 2013)}"


def _money(cents: int) -> str:
    return f"{cents // 100:,}.{cents % 100:02d}"


def _invoice(rng: random.Random) -> _Sheet:
    sheet = _Sheet("layout")
    firm, buyer, number = rng.choice(_FIRMS), _person(rng), f"{rng.choice('ABKR')}-{rng.randrange(1000, 9999)}/2"
    date, due = _date(rng), f"{rng.randrange(10, 45)} days"
    y = sheet.write(30, 24, firm, size=2)
    sheet.write(30, y, f"{rng.choice(_STREETS)}, {rng.choice(_TOWNS)}")
    sheet.write(290, 70, "INVOICE")
    sheet.rule(92)
    y = sheet.write(30, 104, f"Invoice no.   {number}", f"Date          {date}", f"Payable in    {due}")
    y = sheet.write(30, y + 12, "Bill to:", f"  {buyer}", f"  {rng.choice(_STREETS)}, {rng.choice(_TOWNS)}") + 20
    sheet.write(30, y, "Item")
    sheet.write(200, y, "Qty")
    sheet.write(300, y, "Amount")
    sheet.rule(y + _LINE)
    y, total = y + _LINE + 8, 0
    for goods in rng.sample(_GOODS, 3):
        count, price = rng.randrange(2, 40), rng.randrange(150, 9900)
        total += count * price
        sheet.write(30, y, goods)
        sheet.write(200, y, str(count))
        sheet.write(300, y, _money(count * price))
        sheet.asked.append((f"How many of the item '{goods}' are billed?", (str(count),)))
        y += _LINE
    sheet.rule(y + 4)
    sheet.write(200, y + 12, "Total USD")
    sheet.write(300, y + 12, _money(total))
    sheet.asked[:0] = [
        ("What is the total amount of the invoice?", (_money(total), f"USD {_money(total)}")),
        ("What is the invoice number?", (number,)),
        ("Who is the invoice made out to?", (buyer,)),
        ("Within how many days is the invoice payable?", (due, due.split(maxsplit=1)[0])),
    ]
    return sheet


def _form(rng: random.Random) -> _Sheet:
    sheet = _Sheet("form")
    fields = {
        "Name": _person(rng),
        "Date of birth": _date(rng),
        "Occupation": rng.choice(_JOBS),
        "Telephone": f"0{rng.randrange(20, 99)} {rng.randrange(100, 999)} {rng.randrange(1000, 9999)}",
        "Membership no.": f"{rng.randrange(100, 999)}.{rng.randrange(10, 99)}",
    }
    sheet.write(30, 24, f"{rng.choice(_TOWNS)} Rowing Club", size=2)
    y = sheet.write(30, 64, "APPLICATION FOR MEMBERSHIP  -  please print") + 20
    for label, value in fields.items():
        sheet.write(30, y, f"{label}:")
        sheet.write(160, y, value)
        sheet.rule(y + 13, 155)
        y += 34
        sheet.asked.append((f"What is entered in the field '{label}'?", (value,)))
    fee = _money(rng.randrange(1_000, 9_000))
    sheet.write(30, y + 20, "FOR OFFICE USE ONLY", f"Fee received: {fee}   Clerk: {rng.choice(_LAST)}")
    sheet.asked.append(("What fee was received?", (fee,)))
    return sheet


def _letter(rng: random.Random) -> _Sheet:
    sheet = _Sheet("free_text")
    sender, reader, theme, year = _person(rng), _person(rng), rng.choice(_THEMES), rng.randrange(1987, 2013)
    day, sum_ = _date(rng, year + 1), _money(rng.randrange(20_000, 900_000))
    y = sheet.write(30, 30, f"{rng.choice(_TOWNS)} Parish Council", rng.choice(_STREETS))
    sheet.write(250, y + 12, _date(rng, year))
    y = sheet.write(30, y + 40, f"To: {reader}", f"Re: {theme}") + 20
    y = sheet.write(
        30,
        y,
        f"Dear {reader.split()[0]},",
        "",
        "The council met last week and has agreed to your",
        f"proposal. A sum of {sum_} is set aside for it,",
        f"and the work is to be finished by {day}.",
        "",
        "Please send us the signed copy in due course.",
        "",
        "Yours sincerely,",
    )
    sheet.write(30, y + 24, sender, "Clerk to the Council")
    sheet.asked += [
        ("What sum is set aside?", (sum_,)),
        ("Who signed the letter?", (sender,)),
        ("By which date is the work to be finished?", (day,)),
        ("What is the letter about?", (theme,)),
    ]
    return sheet


def _timetable(rng: random.Random) -> _Sheet:
    sheet = _Sheet("table/list")
    sheet.write(30, 24, "Coast Line", size=2)
    y = sheet.write(30, 64, f"Timetable valid from {_date(rng)}") + 20
    for x, label in ((30, "Stop"), (200, "Departs"), (300, "Platform")):
        sheet.write(x, y, label)
    sheet.rule(y + _LINE)
    y, minute = y + _LINE + 8, rng.randrange(6 * 60, 9 * 60)
    for stop in rng.sample(_STOPS, 5):
        time, platform = f"{minute // 60:02d}:{minute % 60:02d}", f"{rng.randrange(1, 6)}{rng.choice('ab')}"
        for x, value in ((30, stop), (200, time), (300, platform)):
            sheet.write(x, y, value)
        sheet.asked += [
            (f"When does the train leave {stop}?", (time,)),
            (f"From which platform does the train leave {stop}?", (platform,)),
        ]
        y, minute = y + 24, minute + rng.randrange(7, 50)
    sheet.write(30, y + 16, "No service on public holidays.")
    return sheet


_KINDS: Sequence[Callable[[random.Random], _Sheet]] = (_invoice, _form, _letter, _timetable)

"""Write the quickstart data set: `python scripts/make_quickstart_data.py [FOLDER]` (default: data/quickstart).

Sixty items in each of train, val and test. An item is a short text, the name of a field, and the field's value:

    city, person    as written in the text
    date            written "14 March 2021" in the text, asked for as 2021-03-14
    sentiment       of a two-sentence review: positive or negative

Everything is drawn with one fixed seed, so the same files come out, byte for byte. Names of people and sentence
templates are split before anything is drawn: a test text never has a sentence pattern or a name of another split.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

SEED = 20240607
SPLITS = ("train", "val", "test")
FIELDS = ("city", "person", "date", "sentiment")
PER_FIELD = 15


def words(text: str) -> list[str]:
    """The words of a text, divided at white space."""
    return text.split()


MONTHS = words("January February March April May June July August September October November December")
FIRST = words("""
Anna Tom Maria John Lena Omar Julia Peter Sara David Emma Victor Nina Paul Clara Hugo Ines Karl Mona Felix
Rosa Ivan Greta Luis Aisha Henry Elsa Marco Priya Oscar Hanna Jonas Ruth Samir Edith Leo Tara Simon Vera Adam
Nora Kenji Laura Max Dina
""")
LAST = words("""
Keller Becker Silva Carter Fischer Haddad Novak Olsen Lindgren Moreau Rossi Diaz Petrova Jensen Weber Martin
Costa Hofmann Larsen Dubois Marino Popov Nilsson Ortega Khan Walsh Bergman Ricci Nair Lund Schmidt Vogel Adler
Mansour Hughes Santos Patel Fraser Kovacs Brandt Meyer Tanaka Conti Wagner Aydin
""")
CITIES = words("""
Lisbon Oslo Madrid Vienna Prague Dublin Berlin Rome Athens Warsaw Paris Zurich Helsinki Budapest Toronto
Chicago Geneva Milan Hamburg Boston Seattle Lyon Porto Krakow Naples Munich Sydney Dallas Bergen Valencia Cairo Lima
Mumbai Osaka Nairobi Montreal Glasgow Antwerp Seville Denver Havana Manila Quito Turin Basel
""")
EVENTS = """{p} opened a small bakery in {c} on {d}.
On {d}, {p} gave a talk in {c}.
{p} flew to {c} on {d} to meet a client.
The museum in {c} hired {p} on {d}.
{p} sold the old house in {c} on {d}.
On {d} the city library of {c} lent its hall to {p}.
{p} moved to {c} on {d} for a new job.
A jury in {c} gave the first prize to {p} on {d}.
On {d}, {p} ran the marathon of {c} for the first time.
{p} signed the contract in {c} on {d}.
The choir of {c} sang a song by {p} on {d}.
On {d} the train brought {p} back to {c}.
{p} was elected to the council of {c} on {d}.
The clinic in {c} wrote to {p} on {d}.
On {d}, {p} started a language course in {c}.""".splitlines()
PRAISE = """The soup was hot and full of flavour.
The staff was kind and quick.
I loved every minute of the film.
The new phone works great and looks beautiful.
What a wonderful evening with great music.
The room was clean and very quiet.
The guide was friendly and knew everything.
My order came early and in perfect shape.
The bread is fresh and delicious.
The story is clever and moving.
This is the best bike I have ever had.
The garden is lovely and well kept.
The lesson was fun and easy to follow.
The coffee here is excellent.
The jacket fits perfectly and feels warm.
The battery lasts all day, I am very happy.
The hotel gave us a superb breakfast.
The actors were brilliant.
Great value, I would buy it again.
The doctor was patient and helpful.
The beach was beautiful and calm.
The driver was polite and right on time.
The sound of these speakers is amazing.
The app is simple and a joy to use.""".splitlines()
BLAME = """The soup was cold and had no taste.
The staff was rude and slow.
I hated the film, it was boring and far too long.
The new phone broke after two days.
What a terrible evening with awful music.
The room was dirty and very loud.
The guide was bored and knew nothing.
My order came late and was damaged.
The bread is stale and hard.
The story is dull and makes no sense.
This is the worst bike I have ever had.
The garden is ugly and full of rubbish.
The lesson was confusing and a waste of time.
The coffee here is horrible.
The jacket is too small and fell apart.
The battery died at noon, I am very angry.
The hotel gave us a disgusting breakfast.
The actors were terrible.
Poor value, I want my money back.
The doctor was impatient and unfriendly.
The beach was filthy and crowded.
The driver was rude and an hour late.
The sound of these speakers is awful.
The app is slow and crashes all the time.""".splitlines()


def shares(words: list[str], rng: random.Random) -> dict[str, list[str]]:
    """Deal shuffled words out to the splits."""
    shuffled = rng.sample(words, len(words))
    return {split: shuffled[place :: len(SPLITS)] for place, split in enumerate(SPLITS)}


def events(count: int, pools: list[list[str]], rng: random.Random) -> list[dict[str, str]]:
    """Sentences with a person, a city and a date; the pools hold templates, first names, last names and cities."""
    templates, firsts, lasts, cities = pools
    facts = []
    for place in range(count):
        year, month, day = rng.randint(1995, 2024), rng.randint(1, 12), rng.randint(1, 28)
        person, city = f"{rng.choice(firsts)} {rng.choice(lasts)}", rng.choice(cities)
        text = templates[place % len(templates)].format(p=person, c=city, d=f"{day} {MONTHS[month - 1]} {year}")
        facts.append({"text": text, "person": person, "city": city, "date": f"{year}-{month:02d}-{day:02d}"})
    return facts


def reviews(count: int, praise: list[str], blame: list[str], rng: random.Random) -> list[dict[str, str]]:
    """Reviews of two sentences with one mind, as many positive as negative (one more or less)."""
    pools = {"positive": praise, "negative": blame}
    drawn: dict[str, str] = {}
    while len(drawn) < count:
        label = ("positive", "negative")[len(drawn) % 2]
        drawn[" ".join(rng.sample(pools[label], 2))] = label
    return [{"text": text, "sentiment": label} for text, label in drawn.items()]


def build() -> dict[str, list[dict[str, str]]]:
    """All items by split."""
    rng = random.Random(SEED)
    names = [shares(words, rng) for words in (EVENTS, FIRST, LAST, CITIES)]
    praise, blame = shares(PRAISE, rng), shares(BLAME, rng)
    data = {}
    for split in SPLITS:
        facts = events(3 * PER_FIELD, [share[split] for share in names], rng)
        asked = [("city", "person", "date")[place % 3] for place in rng.sample(range(len(facts)), len(facts))]
        rows = list(zip(asked, facts, strict=True))
        rows += [("sentiment", fact) for fact in reviews(PER_FIELD, praise[split], blame[split], rng)]
        rng.shuffle(rows)
        data[split] = [
            {"id": f"{split}-{number:02d}", "text": fact["text"], "field": field, "answer": fact[field]}
            for number, (field, fact) in enumerate(rows, 1)
        ]
    return data


def write(folder: Path) -> None:
    """Write `<folder>/<split>/items.json`."""
    for split, items in build().items():
        path = folder / split / "items.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = ",\n".join("  " + json.dumps(item, ensure_ascii=False) for item in items)
        path.write_bytes(f"[\n{rows}\n]\n".encode())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the quickstart data set.")
    default = Path(__file__).resolve().parent.parent / "data" / "quickstart"
    parser.add_argument("folder", nargs="?", type=Path, default=default)
    write(parser.parse_args().folder)

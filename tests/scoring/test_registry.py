from __future__ import annotations

import pytest

from skillopt.errors import ConfigError
from skillopt.scoring import SCORERS, get_scorer, scorer_fingerprint


def test_names():
    own = ["exact", "f1", "contains", "regex", "numeric", "choice"]
    assert list(SCORERS) == [*own, "squad", "anls", "amount", "json_field"]


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("exat", {}, "unknown name 'exat' (did you mean 'exact'?)"),
        ("f1", {"treshold": 0.5}, "unknown option 'treshold' (did you mean 'threshold'?)"),
        ("f1", {"threshold": True}, "expected a finite number"),
        ("f1", {"threshold": "0.5"}, "expected a finite number"),
        ("f1", {"threshold": float("nan")}, "expected a finite number"),
        ("exact", {"normalize": "squads"}, "expected one of 'squad', 'casefold', 'none'"),
        ("contains", {"whole_words": 1}, "expected true or false"),
        ("choice", {"letters": 7}, "expected a text"),
        ("json_field", {"_inner": None}, "unknown option '_inner'"),
    ],
)
def test_mistakes_are_named(name, options, words):
    with pytest.raises(ConfigError) as caught:
        get_scorer(name, **options)
    assert words in str(caught.value)


def test_every_scorer_documents_itself():
    assert all((kind.__doc__ or "").strip() for kind in SCORERS.values())


def test_fingerprint_depends_on_what_decides():
    assert scorer_fingerprint("f1") == scorer_fingerprint("f1", {"threshold": 1})
    assert scorer_fingerprint("f1") != scorer_fingerprint("f1", {"threshold": 0.9})
    assert scorer_fingerprint("f1") != scorer_fingerprint("exact")
    with pytest.raises(ConfigError):
        scorer_fingerprint("f1", {"nope": 1})

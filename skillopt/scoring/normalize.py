"""Normal forms of text for comparing answers.

`squad` follows the evaluation script of SQuAD 1.1 (Rajpurkar et al. 2016, "SQuAD: 100,000+ Questions for Machine
Comprehension of Text"): lower-case, delete ASCII punctuation, replace the whole words a, an, the by a space, collapse
white space. `casefold` keeps punctuation and articles: Unicode NFC, case folding, collapsed white space. `none`
changes nothing.

One departure from the script: a text of which `squad` leaves nothing ("A", "the", "?!") is compared by its `casefold`
form instead, so that the letter "A" is not the same answer as "the" or as no answer at all.
"""

from __future__ import annotations

import re
import string
import unicodedata
from typing import Literal

Normalization = Literal["squad", "casefold", "none"]

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_DELETE = str.maketrans("", "", string.punctuation)


def casefold_text(text: str) -> str:
    """NFC, case-folded, white space collapsed."""
    return " ".join(unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold()).split())


def squad_script(text: str) -> str:
    """What the SQuAD script itself makes of `text`; empty where it leaves nothing."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_DELETE)).split())


def squad_text(text: str) -> str:
    """The SQuAD normal form; the `casefold` form if that leaves nothing."""
    return squad_script(unicodedata.normalize("NFC", text)) or casefold_text(text)


def normalize(text: str, form: Normalization) -> str:
    """`text` in the normal form `form`."""
    if form == "squad":
        return squad_text(text)
    return casefold_text(text) if form == "casefold" else text

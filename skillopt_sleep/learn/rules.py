"""The learned rules of a document: `- ` bullets in the learned block, one rule each.

A rule of several lines goes on in indented lines, as Markdown has it. What else stands in the block, such as its
heading or a person's remarks, is kept, and so are the bytes of every rule that does not change.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from difflib import SequenceMatcher

from skillopt_sleep.learn.block import BOM, LEARNED, find_region, lines_of, with_region

HEAD = (
    "## Learned preferences & procedures\n\n"
    "_SkillOpt-Sleep maintains this block; what you write outside of it is never touched._\n\n"
)
_BULLET = re.compile(r"-[ \t]+(?=\S)")
_BREAKS = re.compile(r"(?:#{1,6}(?:\s|$)|[-*+][ \t]|\d{1,9}[.)]\s|>|`{3}|~{3}|<|(?:[-*_][ \t]*){3,}$)")
_SAFE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_INDENT = 2


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the block: a rule with its text, or (`rule` None) anything else. `raw` are its bytes."""

    raw: str
    rule: str | None = None


def current_learned_lines(document: str) -> list[str]:
    """The rules of the document in order, each without its dash; [] without a block.

    Raises MalformedBlock when the markers do not pair up.
    """
    return [piece.rule for piece in _pieces_of(document) if piece.rule is not None]


def extract_learned(document: str) -> str:
    """What stands between the markers, with LF line ends and without blank lines around it; "" without a block."""
    region = find_region(document)
    return "" if region is None else _unix(document[region.inner : region.inner_end]).strip("\n")


def set_learned(document: str, lines: list[str], *, name: str = "the document") -> str:
    """The document with exactly these rules, in this order, in its learned block.

    Nothing outside of the block changes, and in it nothing but the rules that differ. Without a block, one is added at
    the end, if there is a rule. Raises MalformedBlock when the markers do not pair up.
    """
    rules = [clean_rule(line) for line in lines]
    rules = [rule for rule in rules if rule]
    region = find_region(document, name=name)
    if region is None:
        return with_region(document, HEAD + "".join(map(render_rule, rules)), name=name) if rules else document
    pieces = parse_pieces(_unix(document[region.inner : region.inner_end]))
    if [piece.rule for piece in pieces if piece.rule is not None] == rules:
        return document
    return _spliced(document, region.inner, region.newline, rules)


def clean_rule(text: str) -> str:
    """A rule as it is kept: LF line ends, no blanks around it, no bullet of its own (`--flags` stay)."""
    first, *rest = [line.rstrip() for line in _unix(text).replace("\r", "\n").strip().split("\n")]
    while (bullet := _BULLET.match(first)) is not None:
        first = first[bullet.end() :]
    return "\n".join([first, *rest]).strip()


def render_rule(rule: str) -> str:
    """The lines of a rule in the block, with LF line ends."""
    first, *rest = rule.split("\n")
    lines = [f"- {first}", *(f"{' ' * _INDENT}{line}" if line else "" for line in rest)]
    return "\n".join(lines) + "\n"


def parse_pieces(body: str) -> list[Piece]:
    """The block's text (LF line ends) as pieces whose raw texts make it up again."""
    pieces: list[Piece] = []
    lines = lines_of(body)
    at = 0
    while at < len(lines):
        end = _rule_end(lines, at) if _BULLET.match(lines[at]) else at + 1
        raw = "".join(lines[at:end])
        rule = _text_of(lines[at:end]) if _BULLET.match(lines[at]) else None
        if rule is None and pieces and pieces[-1].rule is None:
            pieces[-1] = Piece(pieces[-1].raw + raw)
        else:
            pieces.append(Piece(raw, rule))
        at = end
    return pieces


def ensure_skill_scaffold(document: str, *, name: str, description: str) -> str:
    """A document with front matter, heading and one sentence when there is no text yet; else `document` as it is."""
    if document.removeprefix(BOM).strip():
        return document
    title = name if _SAFE_NAME.fullmatch(name) else json.dumps(name, ensure_ascii=False)
    summary = " ".join(description.split())
    return f"---\nname: {title}\ndescription: {json.dumps(summary, ensure_ascii=False)}\n---\n\n# {name}\n\n{summary}\n"


def _pieces_of(document: str) -> list[Piece]:
    region = find_region(document, LEARNED)
    return [] if region is None else parse_pieces(_unix(document[region.inner : region.inner_end]))


def _rule_end(lines: list[str], start: int) -> int:
    """The line after the rule that starts at `start`: indented lines, also behind blank ones, and lazy ones."""
    end = start + 1
    blank = False
    for at in range(start + 1, len(lines)):
        line = lines[at]
        if not line.strip():
            blank = True
            continue
        lazy = not blank and not _BREAKS.match(line)
        if not (line[0] in " \t" or lazy):
            break
        end, blank = at + 1, False
    return end


def _text_of(lines: list[str]) -> str:
    return clean_rule("\n".join([lines[0].rstrip("\n"), *(_dedented(line) for line in lines[1:])]))


def _dedented(line: str) -> str:
    indent = min(_INDENT, len(line) - len(line.lstrip(" ")))
    if line.startswith("\t"):
        indent = 1
    return line[indent:].rstrip()


def _spliced(document: str, inner: int, newline: str, rules: list[str]) -> str:
    """The document with its rules replaced one by one, so that unchanged ones keep their bytes."""
    region = find_region(document)
    assert region is not None
    raw = document[inner : region.inner_end]
    pieces = _raw_pieces(raw)
    places = [index for index, piece in enumerate(pieces) if piece.rule is not None]
    texts = [pieces[index].raw for index in range(len(pieces))]
    old = [pieces[index].rule for index in places]
    new_after: dict[int, str] = {}
    for tag, low, high, new_low, new_high in SequenceMatcher(None, old, rules, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        added = "".join(render_rule(rule) for rule in rules[new_low:new_high]).replace("\n", newline)
        for index in places[low:high]:
            texts[index] = ""
        if low < high:
            texts[places[low]] = added
        else:
            at = places[low - 1] if low else (places[0] - 1 if places else len(pieces) - 1)
            new_after[at] = new_after.get(at, "") + added
    parts = [new_after.get(-1, "")]
    for index, text in enumerate(texts):
        follows = new_after.get(index, "")
        parts.append(_ended(text, newline) if follows else text)
        parts.append(follows)
    return document[:inner] + "".join(parts) + document[region.inner_end :]


def _raw_pieces(raw: str) -> list[Piece]:
    """The pieces with the document's own line ends."""
    pieces, at = [], 0
    lines = lines_of(raw)
    for piece in parse_pieces(_unix(raw)):
        count = len(lines_of(piece.raw))
        pieces.append(Piece("".join(lines[at : at + count]), piece.rule))
        at += count
    return pieces


def _ended(text: str, newline: str) -> str:
    return text if not text or text.endswith("\n") else text + newline


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n")

"""Merging: the patches of many analysts become one, in a tree of small merges.

Failure patches and success patches are merged apart and then joined. A merge whose call fails keeps every item, in a
fixed order, so a broken optimizer never loses what was learned.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from skillopt.model.values import Material
from skillopt.prompts.asking import Asked, Asks, Question, ask_typed
from skillopt.prompts.modes import PATCH, UpdateMode
from skillopt.prompts.sections import SKILL_TOKENS, advice_section, join_sections, section, skill_section
from skillopt.skill.document import Skill
from skillopt.tracking.events import Emit
from skillopt.types import Edit, Patch, PatchItem, RawPatch
from skillopt.utils.parallel import map_ordered

if TYPE_CHECKING:
    from skillopt.gradient.replies import PatchReply

Side = Literal["failure", "success"]

CONCATENATED = "fallback concatenation"
FAILURE_FIRST = "fallback: failure first, then success"
PATCH_TOKENS = 12_000
"""What one of the patches to be merged may take in a prompt."""

MERGE_TOKENS = 96_000
"""What all patches of one merge may take together."""

_SOURCES = ("failure", "success", "mixed")


@dataclass(frozen=True, slots=True)
class _Context:
    skill: Skill
    session: Asks
    batch_size: int
    workers: int
    meta_skill: str
    emit: Emit | None
    mode: UpdateMode


@dataclass(frozen=True, slots=True)
class _Merge:
    """One merge call: which prompt, the patches it joins, and the level that its items get."""

    prompt: str
    groups: tuple[tuple[str, Patch], ...]
    level: int
    source: str = ""  # forced on every item when not empty
    fallback: str = CONCATENATED

    @property
    def edits(self) -> tuple[PatchItem, ...]:
        return tuple(edit for _, patch in self.groups for edit in patch.edits)


def merge_patches(  # noqa: PLR0913 - a public signature
    failure_patches: Sequence[RawPatch | Patch],
    success_patches: Sequence[RawPatch | Patch],
    skill: Skill,
    *,
    session: Asks,
    merge_batch_size: int,
    workers: int,
    meta_skill_context: str = "",
    emit: Emit | None = None,
    mode: UpdateMode = PATCH,
) -> Patch:
    """One patch from all of them, whose items are those of `mode`.

    Each side is merged level by level in batches of `max(2, merge_batch_size)`; one patch alone passes without a call.
    If both sides have items, a last call joins them, else the side that has some is the result. Items made by a call
    carry its `merge_level`. A failed call is replaced by all items of its batch in order (failures before successes in
    the last one), with a UserWarning that holds nothing of the provider's text.
    """
    context = _Context(skill, session, max(2, merge_batch_size), max(1, workers), meta_skill_context, emit, mode)
    failure, failure_level = _hierarchical_merge(_patches(failure_patches, "failure"), "failure", context)
    success, success_level = _hierarchical_merge(_patches(success_patches, "success"), "success", context)
    if not success.edits:
        return failure
    if not failure.edits:
        return success
    final = _Merge(
        "merge_final",
        (("Learned from failures", failure), ("Learned from successes", success)),
        max(failure_level, success_level) + 1,
        fallback=FAILURE_FIRST,
    )
    return _finish(final, _merge_batch(final, context), context)


def normalize(raw: RawPatch) -> Patch:
    """The patch of an analyst with `source_type` and `support_count` filled in on every item that lacks them."""
    support = max(1, raw.batch_size)
    edits = tuple(
        replace(
            edit,
            source_type=edit.source_type or raw.source_type,
            support_count=support if edit.support_count is None else edit.support_count,
        )
        for edit in raw.patch.edits
    )
    return replace(raw.patch, edits=edits)


def _patches(given: Sequence[RawPatch | Patch], side: Side) -> list[Patch]:
    """The patches that hold items, every item marked with its side."""
    patches = [normalize(patch) if isinstance(patch, RawPatch) else patch for patch in given]
    return [
        replace(patch, edits=tuple(replace(edit, source_type=edit.source_type or side) for edit in patch.edits))
        for patch in patches
        if patch.edits
    ]


def _hierarchical_merge(patches: Sequence[Patch], side: Side, context: _Context) -> tuple[Patch, int]:
    """(the merged patch, the highest level reached); level 0 when nothing had to be merged."""
    level = 0
    current = list(patches)
    while len(current) > 1:
        level += 1
        size = context.batch_size
        batches = [current[start : start + size] for start in range(0, len(current), size)]
        current = _merge_level(batches, side, level, context)
    return (current[0] if current else Patch()), level


def _merge_level(batches: Sequence[Sequence[Patch]], side: Side, level: int, context: _Context) -> list[Patch]:
    """The result of each batch, in order; calls run side by side."""
    merges = {
        index: _Merge(
            f"merge_{side}",
            tuple((f"Proposal {number}", patch) for number, patch in enumerate(batch, 1)),
            level,
            source=side,
        )
        for index, batch in enumerate(batches)
        if len(batch) > 1
    }
    answers = map_ordered(
        lambda merge: _merge_batch(merge, context),
        list(merges.values()),
        workers=context.workers,
        on_done=_raise_error,
    )
    done = {
        index: _finish(merge, answer, context)
        for (index, merge), answer in zip(merges.items(), answers, strict=True)
        if not isinstance(answer, Exception)
    }
    return [done[index] if index in done else batch[0] for index, batch in enumerate(batches)]


def _raise_error(_index: int, outcome: object) -> None:
    if isinstance(outcome, Exception):
        raise outcome


def _merge_batch(merge: _Merge, context: _Context) -> Asked[PatchReply]:
    """Ask for one merge."""
    from skillopt.gradient.replies import parse_patch

    mode = context.mode
    room = min(PATCH_TOKENS if mode.limited else SKILL_TOKENS, MERGE_TOKENS // len(merge.groups))
    user = join_sections(
        advice_section(context.meta_skill),
        skill_section(context.skill.body),
        *(_group_section(title, patch, mode, room) for title, patch in merge.groups),
    )
    edits = tuple(item for item in merge.edits if isinstance(item, Edit))
    material = Material(edits=edits, budget=0, skill=context.skill.text)
    question = Question("merge", mode.prompt(merge.prompt), user, material, mode.max_completion_tokens)
    return ask_typed(context.session, question, partial(parse_patch, mode=mode))


def _group_section(title: str, patch: Patch, mode: UpdateMode, max_tokens: int) -> str:
    text = json.dumps(patch.to_dict(), ensure_ascii=False, indent=1)
    return section(f"{title} ({len(patch.edits)} {mode.labels})", text, "patch", max_tokens)


def _finish(merge: _Merge, answer: Asked[PatchReply], context: _Context) -> Patch:
    """The patch of a merge's answer, or all its items when there is none."""
    if answer.value is None:
        kind = type(answer.error).__name__
        if context.emit is not None:
            context.emit("merge_fallback", stage="merge", reason=kind, level=merge.level, n_patches=len(merge.groups))
        warnings.warn(f"a merge of {len(merge.groups)} patches failed ({kind}); {merge.fallback}", stacklevel=4)
        kept = tuple(e if e.merge_level is not None else replace(e, merge_level=merge.level) for e in merge.edits)
        return Patch(kept, merge.fallback)
    if context.emit is not None:
        for reason in answer.value.dropped:
            context.emit("edit_dropped", stage="merge", reason=reason)
    return Patch(tuple(_merged(edit, merge) for edit in answer.value.edits), answer.value.reasoning)


def _merged(edit: PatchItem, merge: _Merge) -> PatchItem:
    """The item with its level, its side, and a support that does not exceed what went into the merge."""
    most = sum(given.support_count or 1 for given in merge.edits)
    source = merge.source or (edit.source_type if edit.source_type in _SOURCES else "mixed")
    support = min(most, edit.support_count or 1)
    return replace(edit, source_type=source, support_count=support, merge_level=merge.level)

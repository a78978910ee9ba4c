"""Who decides tonight: validation tasks take turns, and those of earlier nights help where tonight's are too few.

A skill that the same few tasks choose night after night is fitted to them in the end. So the nights record who decided,
and a group of validation tasks (see `identity`) that has decided for some nights changes places with a group of
tonight's training tasks. That is the only way in which a task ever changes its side. Test tasks, dreams and tasks whose
split a person wrote never do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from skillopt_sleep.judges import conditions_of
from skillopt_sleep.mining.identity import group_keys
from skillopt_sleep.mining.splits import hash_number
from skillopt_sleep.types import TaskRecord

HELPS = "holdout"
"""The tag of a validation task of an earlier night that helps to decide."""

Parts = Mapping[str, Sequence[TaskRecord]]
_Rank = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class HoldoutRecord:
    """What the nights remember of a project's tasks, by task id.

    `decided`: the nights in which a task decided. `moved`: the night of its last change of sides. `written`: tasks
    whose split a person wrote.
    """

    decided: Mapping[str, Collection[int]] = field(default_factory=dict)
    moved: Mapping[str, int] = field(default_factory=dict)
    written: frozenset[str] = frozenset()

    def nights(self, ids: Collection[str]) -> int:
        """In how many nights any of these tasks decided since the last of them changed sides."""
        since = max((self.moved.get(name, 0) for name in ids), default=0)
        return len({night for name in ids for night in self.decided.get(name, ()) if night >= since})

    def last(self, ids: Collection[str]) -> int:
        """The last night in which any of these tasks decided; 0: in none."""
        return max((night for name in ids for night in self.decided.get(name, ())), default=0)


@dataclass(slots=True)
class _Group:
    """Tasks that are the same piece of work: the split of each by id, those of tonight by part, and who is archived."""

    splits: dict[str, str] = field(default_factory=dict)
    tonight: dict[str, str] = field(default_factory=dict)
    known: bool = False

    def having(self, split: str) -> list[str]:
        """The ids of all members in a split."""
        return [name for name, found in self.splits.items() if found == split]

    def tonight_in(self, split: str) -> Counter[str]:
        """How many of tonight's members are in a split, by part."""
        return Counter(part for name, part in self.tonight.items() if self.splits[name] == split)


class Holdout:
    """Tonight's tasks beside the project's archived ones.

    `tonight` and `known` hold tasks by part: what one consolidation works with (see `split_by_skill`). Splits have
    their names in use now, those of archived tasks as they hold today. `nights`: after so many nights of deciding a
    group changes places (None: never). `least`: with fewer validation tasks a part decides nothing. `seed` orders what
    is otherwise equal.
    """

    def __init__(
        self, tonight: Parts, known: Parts, record: HoldoutRecord, *, nights: int | None, least: int, seed: int
    ) -> None:
        self._tonight = {part: [task for task in tasks if task.origin != "dream"] for part, tasks in tonight.items()}
        self._known = {part: [task for task in tasks if task.origin != "dream"] for part, tasks in known.items()}
        self._record = record
        self._nights, self._least, self._seed = nights, least, seed
        archived = [task for tasks in self._known.values() for task in tasks]
        self._keys = group_keys([*archived, *(task for tasks in self._tonight.values() for task in tasks)])
        self._groups: dict[str, _Group] = {}
        for task in archived:
            group = self._groups.setdefault(self._keys[task.id], _Group(known=True))
            group.splits[task.id] = task.split
        for part, tasks in self._tonight.items():
            for task in tasks:
                group = self._groups.setdefault(self._keys[task.id], _Group())
                group.splits[task.id] = task.split
                group.tonight[task.id] = part

    def helpers(self) -> list[TaskRecord]:
        """Archived validation tasks that bring each part with a training task up to `least` validation tasks.

        None for a part that does not come so far. First come those that decided in the fewest nights, then those that
        did so least recently, and one task of a group before a second one of any. Left out is what cannot be judged, is
        like a training or test task of tonight, or would be due to move and may not. The tasks are copies under their
        own ids, with the tag `holdout`.
        """
        found: list[TaskRecord] = []
        for part, tasks in self._tonight.items():
            splits = Counter({task.id: task.split for task in tasks}.values())
            missing = self._least - splits["val"]
            if missing <= 0 or not splits["train"]:
                continue
            ranked = self._ranked(part)
            found += [_helping(task) for task in ranked[:missing]] if len(ranked) >= missing else []
        return found

    def exchange(self) -> dict[str, str]:
        """The new splits, by task id, of the groups that change places tonight, archived members included.

        Due is a validation group that has decided in `nights` nights since it came to validation. Its partner is the
        training group of its part that decided longest ago, never before all others, and one that no night has trained
        on before one that is known. One for one: no part loses its last task of a side or falls below `least`
        validation tasks, and without a partner nothing moves.
        """
        sizes = Counter[str]()
        for group in self._groups.values():
            sizes += group.tonight_in("val")
        due = sorted((one for one in self._groups.values() if self._is_due(one)), key=self._most_first)
        free = sorted((one for one in self._groups.values() if self._may_decide(one)), key=self._longest_ago)
        moves: dict[str, str] = {}
        for group in due:
            partner = next((one for one in free if _fit(group, one, sizes, self._least)), None)
            if partner is None:
                continue
            free.remove(partner)
            sizes = _after(group, partner, sizes)
            moves.update(dict.fromkeys(group.having("val"), "train"))
            moves.update(dict.fromkeys(partner.splits, "val"))
        return moves

    def _ranked(self, part: str) -> list[TaskRecord]:
        """The archived tasks that may help a part, best first."""
        order = sorted(filter(self._may_help, self._known.get(part, ())), key=self._rank)
        firsts: dict[str, TaskRecord] = {}
        for task in order:
            if not self._groups[self._keys[task.id]].tonight:
                firsts.setdefault(self._keys[task.id], task)
        chosen = {task.id for task in firsts.values()}
        return [*firsts.values(), *(task for task in order if task.id not in chosen)]

    def _may_help(self, task: TaskRecord) -> bool:
        group = self._groups[self._keys[task.id]]
        apart = task.id not in group.tonight and not group.tonight_in("train") and not group.tonight_in("test")
        stuck = self._has_decided_enough(group) and self._written(group)
        return task.split == "val" and apart and not stuck and not task.derived_from and can_be_judged(task)

    def _rank(self, task: TaskRecord) -> _Rank:
        ids = self._groups[self._keys[task.id]].having("val")
        return self._record.nights(ids), self._record.last(ids), hash_number(self._seed, task.id)

    def _has_decided_enough(self, group: _Group) -> bool:
        return self._nights is not None and self._record.nights(group.having("val")) >= self._nights

    def _is_due(self, group: _Group) -> bool:
        may_move = bool(group.tonight_in("val")) and not group.having("test") and not self._written(group)
        return may_move and self._has_decided_enough(group)

    def _may_decide(self, group: _Group) -> bool:
        return bool(group.tonight) and set(group.splits.values()) == {"train"} and not self._written(group)

    def _written(self, group: _Group) -> bool:
        return not self._record.written.isdisjoint(group.splits)

    def _most_first(self, group: _Group) -> tuple[int, int]:
        return -self._record.nights(group.having("val")), self._number(group)

    def _longest_ago(self, group: _Group) -> _Rank:
        return self._record.last(group.splits), int(group.known), self._number(group)

    def _number(self, group: _Group) -> int:
        return hash_number(self._seed, min(group.splits))


def can_be_judged(task: TaskRecord) -> bool:
    """Whether a task carries something to judge an answer by: a reference, a rubric, checks, or conditions on work."""
    if task.workspace and conditions_of(task.judge):
        return True
    if task.reference_kind == "rule":
        return bool(task.judge.get("checks"))
    return task.reference_kind != "none" and bool(task.reference.strip())


def _helping(task: TaskRecord) -> TaskRecord:
    tags = [*(tag for tag in task.tags if tag != HELPS), HELPS]
    return replace(task, judge=dict(task.judge), tags=tags, source_sessions=list(task.source_sessions))


def _fit(group: _Group, partner: _Group, sizes: Counter[str], least: int) -> bool:
    """Whether two groups can change places: in the same part, and validation stays large enough in every part."""
    leaving, coming = group.tonight_in("val"), partner.tonight_in("train")
    if len(coming) != 1 or next(iter(leaving)) not in coming:
        return False
    after = _after(group, partner, sizes)
    return all(after[part] >= min(least, sizes[part]) for part in leaving)


def _after(group: _Group, partner: _Group, sizes: Counter[str]) -> Counter[str]:
    """Validation tasks by part once two groups have changed places."""
    return sizes - group.tonight_in("val") + partner.tonight_in("train")

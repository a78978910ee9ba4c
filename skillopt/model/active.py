"""The session behind the public functions of `skillopt.model`.

A program has at most one default session, replaced as a whole and never changed in place. Whoever has a `Session` needs
nothing of this module.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from skillopt.errors import ConfigError
from skillopt.model.session import Session
from skillopt.types import RoleConfig

Options = Mapping[str, object]
_NOTHING: Options = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Active:
    """A session and the settings that the public setters gave it, by their names as flags."""

    session: Session
    options: Options = field(default_factory=lambda: _NOTHING, repr=False)


class _Holder:
    """One reference, replaced under a lock."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.value: Active | None = None

    def change(self, build: Callable[[Active | None], Active | None]) -> Active | None:
        """Replace the reference by what `build` makes of it, and return what it was."""
        with self._lock:
            before = self.value
            self.value = build(before)
            return before


_DEFAULT = _Holder()
_LOCAL: ContextVar[_Holder | None] = ContextVar("skillopt_session", default=None)


def current_session() -> Session | None:
    """The session of the innermost `use_session`, else the default one of this process, else None."""
    active = _holder().value
    return active.session if active else None


def active_session() -> Session:
    """As `current_session`. Raises ConfigError when there is none."""
    session = current_session()
    if session is None:
        raise ConfigError(
            "No model session is active; wrap the code in `with skillopt.model.use_session(session):`, "
            "or choose a backend with skillopt.model.set_backend(...)."
        )
    return session


@contextlib.contextmanager
def use_session(session: Session) -> Iterator[Session]:
    """Make `session` the one behind the public functions inside the block.

    Threads started inside that do not copy the context see it too, as the default of the process, unless another
    block was entered since.
    """
    holder = _Holder()
    holder.value = mine = Active(session)
    before = _DEFAULT.change(lambda _: mine)
    mark = _LOCAL.set(holder)
    try:
        yield session
    finally:
        _LOCAL.reset(mark)
        _DEFAULT.change(lambda now: before if now is mine else now)


def session_or_default() -> Session:
    """The active session; if there is none, one made of the environment and built-in values becomes the default."""
    return current_session() or configure({})


def configure(options: Options, *, replaced: tuple[str, ...] = ()) -> Session:
    """Change settings of the active session, given by their names as flags (None: leave unchanged).

    `replaced` names roles that take everything from the new settings; in others only what differs changes. Everything
    is checked first and then put in place at once; calls under way keep what they began with. Raises ConfigError.
    """
    given = {name: value for name, value in options.items() if value is not None}
    holder = _holder()
    holder.change(lambda active: _changed(active, given, replaced))
    assert holder.value is not None
    return holder.value.session


def _holder() -> _Holder:
    return _LOCAL.get() or _DEFAULT


def _changed(active: Active | None, given: Options, replaced: tuple[str, ...]) -> Active:
    before = dict(active.options) if active else {}
    after = {**before, **given}
    new = _resolve(after)
    if active is None:
        return Active(Session(new), after)
    old = _resolve(before)
    roles = {
        name: new[name] if name in replaced else _merge(role, old[name], new[name])
        for name, role in active.session.roles.items()
        if name in new
    }
    return Active(active.session.with_roles({**active.session.roles, **roles}), after)


def _merge(role: RoleConfig, old: RoleConfig, new: RoleConfig) -> RoleConfig:
    """`role` with what differs between two resolutions of the settings; a backend's own settings only if it is its."""
    if new.model != old.model:
        role = replace(role, model=new.model)
    if new.effort != old.effort:
        role = replace(role, effort=new.effort)
    if role.backend != new.backend:
        return role
    return role.with_settings(**{k: v for k, v in new.settings.items() if old.settings.get(k) != v})


def _resolve(options: Options) -> Mapping[str, RoleConfig]:
    """Roles by these options, the environment and built-in values. Raises ConfigError."""
    from skillopt.config.providers import default_model_for_backend
    from skillopt.config.roles import resolve_roles
    from skillopt.config.schema import build_section
    from skillopt.config.settings import Collected

    given = Collected()
    given.add_flags(options)
    section, problems = build_section("model", given.section("model"))
    if section is None or problems:
        raise ConfigError("; ".join(problem for _, problem in problems))
    resolved = resolve_roles(section, given, os.environ)
    return {
        name: replace(role, model=default_model_for_backend(role.backend))
        if resolved.sources[f"{name}.model"] == "default"
        else role
        for name, role in resolved.roles.items()
    }

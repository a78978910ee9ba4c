"""The session behind the public functions of `skillopt.model`.

A program has at most one default session, replaced as a whole and never changed in place. Whoever has a `Session` needs
nothing of this module.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from skillopt.config.providers import default_model_for_backend, get_provider
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
    """One reference, replaced under a lock. `outer` is the holder of the block around."""

    def __init__(self, value: Active | None = None, outer: _Holder | None = None) -> None:
        self._lock = threading.RLock()
        self.value = value
        self.outer = outer

    def change(self, build: Callable[[Active | None], Active | None]) -> Active | None:
        """Replace the reference by what `build` makes of it, and return what it was."""
        with self._lock:
            before = self.value
            self.value = build(before)
            return before


class _OpenBlocks:
    """The blocks of `use_session` that are open in this process, for threads that carry no context."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders: list[_Holder] = []

    def add(self, holder: _Holder) -> None:
        with self._lock:
            self._holders.append(holder)

    def remove(self, holder: _Holder) -> None:
        with self._lock:
            self._holders.remove(holder)

    def innermost(self) -> _Holder | None:
        """The innermost open block, or None. Raises ConfigError when blocks of two runs are open side by side."""
        with self._lock:
            around = [holder.outer for holder in self._holders]
            leaves = [holder for holder in self._holders if holder not in around]
        counters = {id(holder.value.session.usage) for holder in leaves if holder.value}
        if len(counters) > 1:
            raise ConfigError(
                f"{len(counters)} runs are under way in this process and this thread does not say which one it belongs "
                "to; start it with contextvars.copy_context().run, or use the session that the run was given."
            )
        return leaves[-1] if leaves else None


_DEFAULT = _Holder()
_OPEN = _OpenBlocks()
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

    Threads started inside that do not copy the context see it too, unless a block of another run is open at the same
    time: then the public functions raise ConfigError there instead of guessing.
    """
    holder = _Holder(Active(session), outer=_LOCAL.get())
    _OPEN.add(holder)
    mark = _LOCAL.set(holder)
    try:
        yield session
    finally:
        _LOCAL.reset(mark)
        _OPEN.remove(holder)


def session_or_default() -> Session:
    """The active session; if there is none, one made of the environment and built-in values becomes the default."""
    return current_session() or configure({})


def configure(
    options: Options, *, replaced: tuple[str, ...] = (), dropped: Collection[str] = (), checked: str = ""
) -> Session:
    """Change settings of the active session, given by their names as flags (None: leave unchanged).

    `replaced` names roles that take everything from the new settings; the others change only in what is named.
    `dropped` names settings to take back first: what earlier calls said about them is forgotten. Everything, also the
    settings of the backend `checked`, is checked first and then put in place at once; calls under way keep what they
    began with. Raises ConfigError.
    """
    given = {name: value for name, value in options.items() if value is not None}
    holder = _holder()

    def build(active: Active | None) -> Active:
        new = _changed(active, given, replaced, frozenset(dropped))
        for role in get_provider(checked).roles if checked else ():
            _Settings(new.options).on(checked, role)
        return new

    holder.change(build)
    assert holder.value is not None
    return holder.value.session


def role_in_force(backend: str, role: str) -> RoleConfig:
    """The settings that `role` has on `backend`, or would have if it used it: those that `configure` and others gave,
    the environment, built-in values.
    """
    active = _holder().value
    mine = active.session.roles.get(role) if active else None
    if mine is not None and mine.backend == backend:
        return mine
    return _Settings(active.options if active else _NOTHING).on(backend, role)


def _holder() -> _Holder:
    return _LOCAL.get() or _OPEN.innermost() or _DEFAULT


def _changed(active: Active | None, given: Options, replaced: tuple[str, ...], dropped: frozenset[str]) -> Active:
    before = active.options if active else _NOTHING
    after = {**{name: value for name, value in before.items() if name not in dropped}, **given}
    for role in active.session.roles.values() if active else ():
        if any(name in given for name in _model_keys(role)):
            after.pop(f"{role.role}_model", None)  # the later word about a model holds
    settings = _Settings(after)
    if active is None:
        return Active(Session(settings.roles()), after)
    named = dropped | given.keys()
    chosen = settings.roles()
    roles = {
        name: chosen[name] if name in replaced else _merge(role, settings.on(role.backend, name), named)
        for name, role in active.session.roles.items()
        if name in chosen
    }
    return Active(active.session.with_roles({**active.session.roles, **roles}), after)


def _merge(role: RoleConfig, new: RoleConfig, named: frozenset[str]) -> RoleConfig:
    """`role` with what is named taken from `new`, the same backend by the new settings."""
    changed = {field.name for field in get_provider(role.backend).fields if named & set(field.keys_for(role.role))}
    role = role.with_settings(**{name: new.settings[name] for name in changed}) if changed else role
    if named & {f"{role.role}_model", *_model_keys(role)}:
        role = replace(role, model=new.model)
    return replace(role, effort=new.effort) if "reasoning_effort" in named else role


def _model_keys(role: RoleConfig) -> tuple[str, ...]:
    """The backend's own keys for the model of a role."""
    field = get_provider(role.backend).model_field
    return field.keys_for(role.role) if field else ()


class _Settings:
    """Options, the environment and built-in values together. Raises ConfigError when an option is wrong."""

    def __init__(self, options: Options) -> None:
        from skillopt.config.schema import build_section
        from skillopt.config.settings import Collected

        self._given = Collected()
        self._given.add_flags(options)
        self._section, wrong = build_section("model", self._given.section("model"))
        if problems := [*self._given.problems, *(problem for _, problem in wrong)]:
            raise ConfigError("; ".join(problems))

    def roles(self) -> Mapping[str, RoleConfig]:
        """Both roles on the backends that the settings choose."""
        from skillopt.config.roles import resolve_roles

        resolved = resolve_roles(self._section, self._given, os.environ)
        return {name: _named_model(role, resolved.sources[f"{name}.model"]) for name, role in resolved.roles.items()}

    def on(self, backend: str, role: str) -> RoleConfig:
        """A role on one backend, whatever the settings choose."""
        from skillopt.config.roles import role_on_backend

        found, sources = role_on_backend(backend, role, self._section, self._given, os.environ)
        return _named_model(found, sources[f"{role}.model"])


def _named_model(role: RoleConfig, source: str) -> RoleConfig:
    """The backend's own default in place of the one that a run's configuration has."""
    return replace(role, model=default_model_for_backend(role.backend)) if source == "default" else role

"""Proof that a file of a staged night was written here: a code over its content with a key of this person.

A project folder may come from anywhere (a cloned repository can hold `.skillopt-sleep/`), and manifests, receipts and
journals name files to be written. The key lies in the state folder, which a project cannot reach.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillopt_sleep.errors import StagingError
from skillopt_sleep.paths import private_folder
from skillopt_sleep.staging import disk

KEY_FILE = "staging.key"
MAC = "mac"


@dataclass(frozen=True, slots=True)
class Seal:
    """Signs and checks JSON objects. Without a key (nothing was ever signed here) no check succeeds."""

    state_dir: Path
    key: bytes = b""

    def sign(self, value: Mapping[str, Any], *, purpose: str) -> dict[str, Any]:
        """`value` with its code as the last field."""
        body = {name: part for name, part in value.items() if name != MAC}
        return {**body, MAC: self._code(body, purpose)}

    def holds(self, value: Mapping[str, Any], *, purpose: str) -> bool:
        """True when `value` is what was signed for `purpose`."""
        body = {name: part for name, part in value.items() if name != MAC}
        code = value.get(MAC)
        return (
            bool(self.key)
            and isinstance(code, str)
            and hmac.compare_digest(code.encode("utf-8", "replace"), self._code(body, purpose).encode())
        )

    def _code(self, body: Mapping[str, Any], purpose: str) -> str:
        text = json.dumps([purpose, body], sort_keys=True, separators=(",", ":"))
        return hmac.new(self.key, text.encode(), hashlib.sha256).hexdigest()


def load_seal(folder: Path, *, create: bool = False) -> Seal:
    """The seal of a state folder. `create` makes the key when there is none.

    Raises StagingError when the key file is not one, since all that was signed with it would be refused.
    """
    path = folder / KEY_FILE
    if create and not os.path.lexists(path):
        private_folder(folder)
        with contextlib.suppress(FileExistsError):  # another process was quicker: its key is as good
            disk.create(path, secrets.token_hex(32).encode(), temporary=_spare(path), mode=0o600)
    seen = disk.look(path)
    if seen is None:
        return Seal(folder)
    key = seen.data.strip()
    if len(key) != 64 or not all(letter in b"0123456789abcdef" for letter in key):
        raise StagingError(
            f"{path} is damaged: it should hold 64 hex digits. Remove it; nights staged before need a new run."
        )
    if os.name == "posix" and seen.mode & 0o077:
        path.chmod(0o600)
    return Seal(folder, key)


def _spare(path: Path) -> Path:
    return path.with_name(f".tmp-{path.name}.{secrets.token_hex(8)}")
